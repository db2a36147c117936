"""Match the lines of a file to items of a collection."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import numpy as np
from sqlalchemy import Connection, select

from wsabie.collection.db.database import group_pairs, select_in
from wsabie.collection.db.tables import items, roots
from wsabie.collection.folder.collection import WEB_ROOT, Collection
from wsabie.collection.interchange.tag_record import TagLine
from wsabie.core.arrays import Int64
from wsabie.io.file_discovery import fold_path
from wsabie.io.file_matching import list_relative_paths, list_spellings
from wsabie.io.modalities import detect_modality
from wsabie.storage.rejects import RowError

Match: TypeAlias = tuple[int, ...] | str | RowError
"""Item ids, an address that is not an item yet, or the reason why no item matches."""

NO_ITEM = "unknown item"
SEVERAL = "name that several items have"


class ItemMatcher:
    """Matcher that finds items by path, content hash, or unique file name, with or without ending.

    A path may be absolute, or relative to the imported file or to a root; the line may name the root. A hash matches
    all items of that content.

    Parameters
    ----------
    collection : Collection
    connection : Connection
    file_folder : Path
        Folder of the imported file.
    """

    def __init__(self, collection: Collection, connection: Connection, file_folder: Path) -> None:
        self._connection = connection
        query = select(roots.c.id, roots.c.path)
        self._roots: dict[str, int] = {path: root_id for root_id, path in connection.execute(query)}
        self._folders = [(folder, root_id) for root_id, folder in collection.roots().items()]
        self._file_folders = list_relative_paths(file_folder.resolve(), self._folders)
        self._index_names = cache(partial(_FileNames, connection))

    def find(self, lines: Sequence[TagLine]) -> list[Match]:
        """Return the matches of some lines, in their order."""
        candidates = [self._list_candidates(line) for line in lines]
        query = select(items.c.root_id, items.c.path, items.c.id)
        paths = {path for steps in candidates for step in steps for _, path in step}
        rows = select_in(self._connection, query, items.c.path, sorted(paths))
        ids_by_path = {(root, path): item_id for root, path, item_id in rows}
        matches = [
            _match_first(steps, ids_by_path) or (_check_address(line.path) if _is_address(line.path) else ())
            for line, steps in zip(lines, candidates, strict=True)
        ]
        unmatched = [position for position, match in enumerate(matches) if match == ()]
        hashes = {lines[position].hash for position in unmatched} - {""}
        rows = select_in(self._connection, select(items.c.hash, items.c.id), items.c.hash, sorted(hashes))
        ids_by_hash = group_pairs((digest, item) for digest, item in rows)
        for position in unmatched:
            line = lines[position]
            matches[position] = tuple(ids_by_hash[line.hash]) or self._find_by_name(line.path)
        return matches

    def _find_by_name(self, path: str) -> Match:
        for spell in (str, fold_path) if detect_modality(path) else (str, fold_path, _fold_stem):
            if (match := self._index_names(spell).find(path)) is not None:
                return match
        return RowError(NO_ITEM, path)

    def _list_candidates(self, line: TagLine) -> list[list[tuple[int, str]]]:
        """Return the (root, path) pairs that a line may mean, in steps from likely to unlikely."""
        path = line.path
        if _is_address(path):
            return [[(self._roots[WEB_ROOT], path)]] if WEB_ROOT in self._roots else []
        steps: list[list[tuple[int, str]]] = []
        for spelling in list_spellings(path):
            if spelling.startswith("/"):
                steps.append(list_relative_paths(Path(spelling), self._folders))
                continue
            if line.root in self._roots:
                steps.append([(self._roots[line.root], spelling)])
            else:
                siblings = [(root_id, f"{prefix}/{spelling}".lstrip("/")) for root_id, prefix in self._file_folders]
                steps += [siblings, [(root_id, spelling) for _, root_id in self._folders]]
        return steps


class _FileNames:
    """Names of all files without folders, as sorted hashes: 16 bytes an item."""

    def __init__(self, connection: Connection, spell: Callable[[str], str]) -> None:
        self._spell = spell
        query = select(items.c.id, items.c.path).join(roots).where(roots.c.path != WEB_ROOT)
        rows = connection.execute(query, execution_options={"yield_per": 5000})
        hashes = ((item_id, _hash(self._spell(path.rpartition("/")[2]))) for item_id, path in rows)
        pairs = np.fromiter(hashes, np.dtype((np.int64, 2)))
        order = np.argsort(pairs[:, 1], kind="stable")
        self._ids: Int64 = pairs[order, 0]
        self._hashes: Int64 = pairs[order, 1]

    def find(self, path: str) -> Match | None:
        for spelling in list_spellings(path):
            name_hash = _hash(self._spell(spelling.rpartition("/")[2]))
            low, high = (int(np.searchsorted(self._hashes, name_hash, side)) for side in ("left", "right"))
            if high - low == 1:
                return (int(self._ids[low]),)
            if high > low:
                return RowError(SEVERAL, path)
        return None


def _fold_stem(name: str) -> str:
    """Return the name of a file without its ending, for names in tables that lack theirs."""
    stem, dot, ending = fold_path(name).rpartition(".")
    return stem if dot and detect_modality(name) else f"{stem}{dot}{ending}"


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def _match_first(steps: list[list[tuple[int, str]]], ids_by_path: dict[tuple[int, str], int]) -> Match:
    for step in steps:
        ids = sorted({ids_by_path[key] for key in step if key in ids_by_path})
        if len(ids) == 1:
            return (ids[0],)
        if ids:
            return RowError(SEVERAL, step[0][1])
    return ()


def _is_address(path: str) -> bool:
    return path[:8].lower().startswith(("http://", "https://"))


def _check_address(path: str) -> Match:
    with suppress(ValueError):
        if urlsplit(path).hostname and path.isprintable() and " " not in path:
            return path
    return RowError("malformed address", path)
