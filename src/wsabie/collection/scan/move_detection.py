"""Files of a scan beside the items of the database, and the detection of moved and renamed files."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from wsabie.collection.db.database import group_pairs
from wsabie.collection.scan.file_inspection import FileInspection

FileChange = Literal["new", "moved", "changed", "same", "tags"]
UnlistedTagState = Literal["kept", "withdrawn", "held"]
"""Fate of tags that a file supplied and no longer lists; "held" tags stay, and are counted."""


class ItemRecord(NamedTuple):
    """An item as the database has it."""

    id: int
    root: int
    path: str
    hash: str | None
    size: int | None
    mtime_ns: int | None
    state: str
    sidecar: str | None


class FileRecord(NamedTuple):
    """An inspected file and what becomes of it.

    Attributes
    ----------
    root : int
    path : str
    inspection : FileInspection
    item : ItemRecord or None
        The item at its path; of a classified file the item that the file is, None for a new one.
    sidecar : str or None
        Stamp of its sidecar.
    change : {"new", "moved", "changed", "same", "tags"}
        "same": an item with unchanged content; "tags": an item that only gets labels.
    labels : tuple of str
    tag_origin : str
        Source of the labels.
    unlisted_tags : {"kept", "withdrawn", "held"}
        Fate of earlier tags that the file no longer lists.
    """

    root: int
    path: str
    inspection: FileInspection
    item: ItemRecord | None
    sidecar: str | None = None
    change: FileChange = "new"
    labels: tuple[str, ...] = ()
    tag_origin: str = ""
    unlisted_tags: UnlistedTagState = "kept"


class MoveDetector:
    """Index of the items that may have moved.

    Parameters
    ----------
    vanished : iterable of ItemRecord
        Items without a file at their path.
    files : sequence of FileRecord
        All files that the scan will inspect.
    """

    def __init__(self, vanished: Iterable[ItemRecord], files: Sequence[FileRecord]) -> None:
        self.vanished = group_pairs((item.hash, item) for item in vanished if item.hash is not None)
        self._suspect_hashes = {file.item.hash for file in files if file.item is not None} - {None}
        self._sizes = Counter(file.inspection.stat.size for file in files if file.inspection.stat is not None)

    def find_unique_match(self, file: FileRecord) -> ItemRecord | None:
        """Return the vanished item that a new file is, if no other file can be the same item."""
        candidates = self.vanished.get(file.inspection.hash or "", [])
        has_unique_size = file.inspection.stat is not None and self._sizes[file.inspection.stat.size] == 1
        is_suspect = file.item is not None or file.inspection.hash in self._suspect_hashes
        return candidates[0] if len(candidates) == 1 and has_unique_size and not is_suspect else None

    def is_ambiguous(self, file: FileRecord) -> bool:
        """Return True if a file can be classified only after all others.

        That is so if it may be a moved item, or if the item at its path may have moved.
        """
        content = file.inspection.hash
        if content is not None and (content in self.vanished or content in self._suspect_hashes):
            return True
        if file.item is None or file.item.hash is None or file.item.size is None:
            return False
        has_same_size = file.inspection.stat is not None and file.inspection.stat.size == file.item.size
        return self._sizes[file.item.size] > int(has_same_size)


def assign_items(files: Sequence[FileRecord], vanished: Mapping[str, Sequence[ItemRecord]]) -> dict[int, ItemRecord]:
    """Assign moved items to files, by position in `files`; files that did not move are left out.

    An item whose path another item takes moves only if its own content is found at some path.
    """
    candidates = [*chain.from_iterable(vanished.values()), *(file.item for file in files if file.item is not None)]
    available = group_pairs((item.hash, item) for item in candidates if item.hash is not None)
    contents = [(file.inspection.hash or "", position) for position, file in enumerate(files)]
    by_content = group_pairs((content, position) for content, position in contents if content in available)
    moves: dict[int, ItemRecord] = {}
    for content, positions in by_content.items():
        moves |= _pair_files(positions, files, available[content])
    return _drop_blocked_moves(moves, files)


_PAIRING_KEYS: tuple[Callable[[FileRecord | ItemRecord], object], ...] = (
    lambda entry: (entry.root, entry.path),
    lambda entry: PurePosixPath(entry.path).name,
    lambda entry: (entry.root, PurePosixPath(entry.path).parent),
    lambda entry: None,
)


def _pair_files(positions: list[int], files: Sequence[FileRecord], items: list[ItemRecord]) -> dict[int, ItemRecord]:
    """Pair files and items of the same content: by path, then by name, by folder, and by order."""
    pairs: dict[int, ItemRecord] = {}
    unpaired = sorted(items, key=lambda item: item.id)
    for key in _PAIRING_KEYS:
        by_key: defaultdict[object, deque[ItemRecord]] = defaultdict(deque)
        for item in unpaired:
            by_key[key(item)].append(item)
        for position in positions:
            if position not in pairs and (matches := by_key[key(files[position])]):
                pairs[position] = matches.popleft()
        unpaired = sorted((item for matches in by_key.values() for item in matches), key=lambda item: item.id)
    return pairs


def _drop_blocked_moves(moves: dict[int, ItemRecord], files: Sequence[FileRecord]) -> dict[int, ItemRecord]:
    """Drop moves onto the path of an item that stays; each may make another item stay."""
    while True:
        moving_ids = {item.id for item in moves.values()}
        blocked = {i for i in moves if (occupant := files[i].item) is not None and occupant.id not in moving_ids}
        if not blocked:
            return moves
        moves = {i: item for i, item in moves.items() if i not in blocked}
