"""Which items of a collection the lines of a file are about."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import numpy as np
from sqlalchemy import ColumnElement, Connection, Select, select

from wsabie.base.arrays import Int64
from wsabie.catalogue.collection import HERE, WEB, Collection
from wsabie.catalogue.formats.record import Said
from wsabie.catalogue.tables import items, roots
from wsabie.sources.build import BadRow

Found: TypeAlias = tuple[int, ...] | str | BadRow
"""Numbers of items, an address that is no item yet, or why there are none."""

NO_ITEM = "no such item"
SEVERAL = "name that several items have"
_AT_ONCE = 400


class Matcher:
    """Finds items by path, by the hash of their content, or by a name that no other file has.

    A path may be absolute, or relative to the file that is imported or to a root; the line may name the root. Items of
    the same content are all meant where only the hash leads to them.

    Parameters
    ----------
    collection : Collection
    connection : Connection
    beside : Path
        The folder of the file that is imported.
    """

    def __init__(self, collection: Collection, connection: Connection, beside: Path) -> None:
        self._connection = connection
        query = select(roots.c.id, roots.c.path)
        self._roots: dict[str, int] = {path: number for number, path in connection.execute(query)}
        self._folders = [
            ((collection.folder if path == HERE else Path(path)), number)
            for path, number in self._roots.items()
            if path != WEB
        ]
        self._beside = _within(beside.resolve(), self._folders)
        self._names: _FileNames | None = None

    def find(self, said: Sequence[Said]) -> list[Found]:
        """The items of some lines, in their order."""
        ways = [self._ways(one) for one in said]
        there = self._by_path({path for way in ways for step in way for _, path in step})
        found: list[Found] = []
        lost: list[int] = []
        for number, (one, way) in enumerate(zip(said, ways, strict=True)):
            found.append(_first(way, there))
            if found[-1] == ():
                if _is_address(one.path):
                    found[-1] = _address(one.path)
                else:
                    lost.append(number)
        same = self._by_hash({said[number].hash for number in lost} - {""})
        for number in lost:
            one = said[number]
            found[number] = tuple(same.get(one.hash, ())) or self._by_name(one.path)
        return found

    def _ways(self, said: Said) -> list[list[tuple[int, str]]]:
        """(root, path) that a line may mean, the likeliest first; those of one step are equally likely."""
        path = said.path
        if _is_address(path):
            return [[(self._roots[WEB], path)]] if WEB in self._roots else []
        ways: list[list[tuple[int, str]]] = []
        for spelt in _spellings(path):
            if spelt.startswith("/"):
                ways.append([(number, rest) for number, rest in _within(Path(spelt), self._folders)])
                continue
            if said.root in self._roots:
                ways.append([(self._roots[said.root], spelt)])
            else:
                ways.append([(number, f"{above}/{spelt}" if above else spelt) for number, above in self._beside])
                ways.append([(number, spelt) for _, number in self._folders])
        return ways

    def _by_path(self, paths: Iterable[str]) -> dict[tuple[int, str], int]:
        c = items.c
        rows = _among(self._connection, select(c.root_id, c.path, c.id), c.path, paths)
        return {(root, path): number for root, path, number in rows}

    def _by_hash(self, hashes: Iterable[str]) -> dict[str, list[int]]:
        found = defaultdict(list)
        for digest, number in _among(self._connection, select(items.c.hash, items.c.id), items.c.hash, hashes):
            found[digest].append(number)
        return found

    def _by_name(self, path: str) -> Found:
        if self._names is None:
            self._names = _FileNames(self._connection)
        return self._names.find(path)


class _FileNames:
    """The names of all files without their folders, as sorted hashes: 16 bytes an item."""

    def __init__(self, connection: Connection) -> None:
        query = select(items.c.id, items.c.path).join(roots, roots.c.id == items.c.root_id).where(roots.c.path != WEB)
        rows = connection.execute(query, execution_options={"yield_per": 5000})
        pairs = np.fromiter(
            ((number, _hash(path.rpartition("/")[2])) for number, path in rows), np.dtype((np.int64, 2))
        )
        order = np.argsort(pairs[:, 1], kind="stable")
        self._ids: Int64 = pairs[order, 0]
        self._hashes: Int64 = pairs[order, 1]

    def find(self, path: str) -> Found:
        for spelt in _spellings(path):
            wanted = _hash(spelt.rpartition("/")[2])
            low, high = (int(np.searchsorted(self._hashes, wanted, side)) for side in ("left", "right"))
            if high - low == 1:
                return (int(self._ids[low]),)
            if high > low:
                return BadRow(SEVERAL, path)
        return BadRow(NO_ITEM, path)


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def _first(way: list[list[tuple[int, str]]], there: dict[tuple[int, str], int]) -> Found:
    for step in way:
        found = sorted({there[key] for key in step if key in there})
        if len(found) == 1:
            return (found[0],)
        if found:
            return BadRow(SEVERAL, step[0][1])
    return ()


def _spellings(path: str) -> list[str]:
    """A path as it is, with / for \\, and as other systems write accents."""
    path = path.strip() if not path.startswith(" ") else path
    ways = [path, path.replace("\\", "/")] if "\\" in path else [path]
    if not path.isascii():
        ways += [unicodedata.normalize(form, way) for form in ("NFC", "NFD") for way in ways]
    return list(dict.fromkeys(way.removeprefix("./") for way in ways))


def _within(path: Path, folders: Iterable[tuple[Path, int]]) -> list[tuple[int, str]]:
    """(root, path within it) of those that hold a path; "" where it is the root itself."""
    return [
        (number, "" if path == folder else path.relative_to(folder).as_posix())
        for folder, number in folders
        if path.is_relative_to(folder)
    ]


def _is_address(path: str) -> bool:
    return path[:8].lower().startswith(("http://", "https://"))


def _address(path: str) -> Found:
    try:
        named = bool(urlsplit(path).hostname)
    except ValueError:
        named = False
    if not named or not path.isprintable() or " " in path:
        return BadRow("malformed address", path)
    return path


def _among(
    connection: Connection, query: Select[Any], column: ColumnElement[Any], wanted: Iterable[Any]
) -> Iterator[Any]:
    """Rows whose column is one of some values."""
    values = sorted(wanted)
    for lo in range(0, len(values), _AT_ONCE):
        yield from connection.execute(query.where(column.in_(values[lo : lo + _AT_ONCE])))
