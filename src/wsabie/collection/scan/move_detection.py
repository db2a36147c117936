"""Detection of moved and renamed files by their content, then by file name, then by folder.

After a renaming another file may stand at the old path: when pictures are renumbered, every path holds the content of
another picture. So an item counts as moved if its path is empty or holds other content.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from wsabie.collection.scan.file_inspection import FileInspection, FileStat


class ItemRecord(NamedTuple):
    """An item as the catalogue has it."""

    id: int
    root: int
    path: str
    hash: str | None
    size: int | None
    modified: int | None
    state: str
    sidecar: str | None


class FileRecord(NamedTuple):
    """An inspected file, the item at its path in the catalogue, and the stamp of its sidecar."""

    root: int
    path: str
    inspection: FileInspection
    item: ItemRecord | None
    sidecar: str | None = None


class MoveDetector:
    """Index of the items that may have moved.

    Parameters
    ----------
    vanished : iterable of ItemRecord
        Items without a file at their path.
    suspects : iterable of ItemRecord
        Items whose file may have other content now.
    stats : iterable of FileStat
        Sizes and times of all files that the scan will inspect.
    """

    def __init__(
        self, vanished: Iterable[ItemRecord], suspects: Iterable[ItemRecord], stats: Iterable[FileStat]
    ) -> None:
        self.vanished: defaultdict[str, list[ItemRecord]] = defaultdict(list)
        for item in vanished:
            if item.hash is not None:
                self.vanished[item.hash].append(item)
        self._suspect_hashes = {item.hash for item in suspects} - {None}
        self._sizes = Counter(stat.size for stat in stats)

    def find_unique_match(self, file: FileRecord) -> ItemRecord | None:
        """Return the vanished item that a new file is, if no other file can be the same item."""
        candidates = self.vanished.get(file.inspection.hash or "", [])
        has_unique_size = file.inspection.stat is not None and self._sizes[file.inspection.stat.size] == 1
        if (
            file.item is None
            and len(candidates) == 1
            and has_unique_size
            and file.inspection.hash not in self._suspect_hashes
        ):
            return candidates[0]
        return None

    def must_wait(self, file: FileRecord) -> bool:
        """Return whether a file can be classified only after all others.

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
    available: defaultdict[str, list[ItemRecord]] = defaultdict(list)
    for content, items in vanished.items():
        available[content] += items
    for file in files:
        if file.item is not None and file.item.hash is not None:
            available[file.item.hash].append(file.item)
    by_content: defaultdict[str, list[int]] = defaultdict(list)
    for number, file in enumerate(files):
        if (content_hash := file.inspection.hash) is not None and content_hash in available:
            by_content[content_hash].append(number)
    moves: dict[int, ItemRecord] = {}
    for content, numbers in by_content.items():
        moves |= _pair_files(numbers, files, available[content])
    return _drop_blocked_moves(moves, files)


def _pair_files(
    numbers: Sequence[int], files: Sequence[FileRecord], items: Sequence[ItemRecord]
) -> dict[int, ItemRecord]:
    """Pair files and items of the same content: by path, then by name, by folder, and by order."""
    pairs: dict[int, ItemRecord] = {}
    unpaired = sorted(items, key=lambda item: item.id)
    for key in (_get_path, _get_name, _get_folder, _get_constant):
        by_key: defaultdict[object, deque[ItemRecord]] = defaultdict(deque)
        for item in unpaired:
            by_key[key(item)].append(item)
        for number in numbers:
            if number not in pairs and (matches := by_key[key(files[number])]):
                pairs[number] = matches.popleft()
        unpaired = sorted((item for matches in by_key.values() for item in matches), key=lambda item: item.id)
    return pairs


def _drop_blocked_moves(moves: dict[int, ItemRecord], files: Sequence[FileRecord]) -> dict[int, ItemRecord]:
    """Drop moves onto the path of an item that stays; each may make another item stay."""
    while True:
        moving_ids = {item.id for item in moves.values()}
        blocked = [i for i in moves if (occupant := files[i].item) is not None and occupant.id not in moving_ids]
        if not blocked:
            return moves
        for number in blocked:
            del moves[number]


def _get_path(entry: FileRecord | ItemRecord) -> object:
    return entry.root, entry.path


def _get_name(entry: FileRecord | ItemRecord) -> object:
    return PurePosixPath(entry.path).name


def _get_folder(entry: FileRecord | ItemRecord) -> object:
    return entry.root, PurePosixPath(entry.path).parent


def _get_constant(entry: FileRecord | ItemRecord) -> object:
    return None
