"""Rows as columns, of numbers or of lists of numbers, and files of them that are mapped into memory.

A file is one of safetensors: a column of numbers is a tensor `name`, a column of lists has `name/starts` and a tensor
`name/part` for each of the arrays that lie side by side in it. What is to be known beside the columns stands in the
file's metadata as JSON, under the key `wsabie`.
"""

import hashlib
import json
import math
import mmap
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.input_files import open_input
from wsabie.storage.atomic import replacing
from wsabie.storage.folder import CODES, DTYPES

Array = np.ndarray[Any, np.dtype[Any]]
_ROWS_AT_ONCE = 1 << 13
_MOST_HEADER = 1 << 28
_PIECE = 1 << 24
_ALIGNED = 64
_KEY = "wsabie"


class Lists(NamedTuple):
    """A column of lists: that of row i is starts[i]..starts[i + 1] - 1 of each part."""

    starts: Array  # (n + 1,)
    parts: dict[str, Array]


@dataclass(frozen=True)
class Columns:
    """Some rows.

    Attributes
    ----------
    numbers : dict of str to (n, ...) array
    lists : dict of str to Lists
    """

    numbers: dict[str, Array] = field(default_factory=dict)
    lists: dict[str, Lists] = field(default_factory=dict)

    def __len__(self) -> int:
        for array in self.numbers.values():
            return len(array)
        return next((len(column.starts) - 1 for column in self.lists.values()), 0)

    def part(self, lo: int, hi: int) -> "Columns":
        """The rows lo..hi - 1, sharing memory."""
        lists = {}
        for name, column in self.lists.items():
            starts = column.starts[lo : hi + 1].astype(np.int64)
            at = slice(int(starts[0]), int(starts[-1]))
            lists[name] = Lists(starts - starts[0], {key: flat[at] for key, flat in column.parts.items()})
        return Columns({name: array[lo:hi] for name, array in self.numbers.items()}, lists)

    def take(self, index: Int64) -> "Columns":
        """A copy of the rows of those numbers, in their order."""
        lists = {name: taken(column, index) for name, column in self.lists.items()}
        return Columns({name: array[index] for name, array in self.numbers.items()}, lists)


def joined(pieces: Sequence[Columns]) -> Columns:
    """Rows of several pieces, which have the same columns, one after the other.

    Examples
    --------
    >>> piece = Columns({"id": np.arange(2)}, {"words": Lists(np.array([0, 1, 3]), {"letters": np.arange(3)})})
    >>> both = joined([piece, piece.part(1, 2)])
    >>> both.numbers["id"].tolist(), both.lists["words"].starts.tolist(), both.lists["words"].parts["letters"].tolist()
    ([0, 1, 1], [0, 1, 3, 5], [0, 1, 2, 1, 2])
    """
    first = pieces[0]
    numbers = {name: np.concatenate([piece.numbers[name] for piece in pieces]) for name in first.numbers}
    lists = {}
    for name, column in first.lists.items():
        lengths = [np.diff(piece.lists[name].starts).astype(np.int64) for piece in pieces]
        parts = {key: np.concatenate([piece.lists[name].parts[key] for piece in pieces]) for key in column.parts}
        lists[name] = Lists(starts_of(np.concatenate(lengths)), parts)
    return Columns(numbers, lists)


def starts_of(lengths: Any) -> Int64:
    """Where lists of these lengths begin, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def taken(column: Lists, index: Int64) -> Lists:
    """A copy of some of the lists, in their order.

    A part is copied after the other, so that the places of all entries are never in memory together."""
    lengths = np.diff(column.starts).astype(np.int64)[index]
    starts = starts_of(lengths)
    parts = {key: np.empty(int(starts[-1]), flat.dtype) for key, flat in column.parts.items()}
    for lo in range(0, len(index), _ROWS_AT_ONCE):
        some = slice(lo, lo + _ROWS_AT_ONCE)
        first = column.starts[:-1][index[some]].astype(np.int64) - starts[:-1][some]
        filled = slice(int(starts[lo]), int(starts[min(lo + _ROWS_AT_ONCE, len(index))]))
        at = np.repeat(first, lengths[some]) + np.arange(filled.start, filled.stop)
        for key, flat in column.parts.items():
            np.take(flat, at, out=parts[key][filled])
    return Lists(starts, parts)


def texts(words: Sequence[str]) -> Lists:
    """Words as a column."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    return Lists(starts_of([len(word) for word in encoded]), {"text": np.frombuffer(b"".join(encoded), np.uint8)})


def words_of(column: Lists) -> list[str]:
    """The words of such a column.

    Examples
    --------
    >>> words_of(texts(["a", "", "Zürich"]))
    ['a', '', 'Zürich']
    """
    content = column.parts["text"].tobytes()
    return [content[lo:hi].decode("utf-8", "surrogatepass") for lo, hi in pairwise(column.starts.tolist())]


# ---- files


def write_columns(path: Path, columns: Columns, note: Mapping[str, Any]) -> str:
    """Write a file, atomically, and return its SHA-256 in hex digits.

    Raises
    ------
    UnwritableError
        As `replacing`.
    """
    tensors = dict(_tensors(columns))
    # wide numbers first: then every tensor lies at a multiple of its own width
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    digest = hashlib.sha256()
    with replacing(path) as draft, draft.open("wb") as out:
        for piece in (_header(tensors, order, note), *(p for name in order for p in _pieces(tensors[name]))):
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()


def _tensors(columns: Columns) -> Iterator[tuple[str, Array]]:
    yield from columns.numbers.items()
    for name, column in columns.lists.items():
        yield f"{name}/starts", column.starts
        for key, flat in column.parts.items():
            yield f"{name}/{key}", flat


def _header(tensors: Mapping[str, Array], order: Sequence[str], note: Mapping[str, Any]) -> bytes:
    info: dict[str, Any] = {"__metadata__": {_KEY: json.dumps(note, ensure_ascii=False, sort_keys=True)}}
    end = 0
    for name in order:
        start, end = end, end + tensors[name].nbytes
        code = CODES[tensors[name].dtype.newbyteorder("<")]
        info[name] = {"dtype": code, "shape": list(tensors[name].shape), "data_offsets": [start, end]}
    text = json.dumps(info, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    text += b" " * (-(len(text) + 8) % _ALIGNED)
    return len(text).to_bytes(8, "little") + text


def _pieces(array: Array) -> Iterator[Any]:
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
    for at in range(0, len(flat), _PIECE):
        yield flat[at : at + _PIECE]


def map_columns(path: Path, *, scattered: bool = False, check: bool = True) -> tuple[Columns, dict[str, Any]]:
    """The columns of a file, mapped, and its note.

    Parameters
    ----------
    path : Path
    scattered : bool
        Some rows here and some there are wanted: the system reads what is touched or `expect`ed, and nothing around it.
        Else it reads far beyond each of them: megabytes, where a disk is set up so.
    check : bool
        Look at where lists begin, all of it; False: that has been done.

    Raises
    ------
    ValueError
        It is no such file, or cut off.
    OSError
        It cannot be read.
    """
    with open_input(path) as stream:
        length = int.from_bytes(stream.read(8), "little")
        size = path.stat().st_size
        if not 0 < length <= min(size - 8, _MOST_HEADER):
            raise ValueError("header length out of range")
        info = json.loads(stream.read(length).decode("utf-8", "surrogatepass"))
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered and hasattr(mmap, "MADV_RANDOM"):
        with suppress(OSError):
            content.madvise(mmap.MADV_RANDOM)
    try:
        note = json.loads(info.pop("__metadata__")[_KEY])
        end = max((int(entry["data_offsets"][1]) for entry in info.values()), default=0)
        if 8 + length + end != size or not isinstance(note, dict):
            raise ValueError("size does not agree with the header")
        tensors = {name: _mapped(content, 8 + length, entry) for name, entry in info.items()}
        columns = _columns(tensors)
        if check:
            _check(columns)
        return columns, note
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise ValueError("damaged header") from error


def expect(array: Array) -> Array:
    """The same slice of a mapped array, which the system begins to read from the disk, all of it at once."""
    content = _behind(array) if array.nbytes and hasattr(mmap, "MADV_WILLNEED") else None
    if content is not None:
        begin = array.ctypes.data - np.frombuffer(content, np.uint8).ctypes.data
        page = begin - begin % mmap.PAGESIZE
        with suppress(OSError):  # advice; what cannot be read says so when it is used
            content.madvise(mmap.MADV_WILLNEED, page, begin - page + array.nbytes)
    return array


def expected(slices: Iterable[Sequence[Array]], ahead: int = 64) -> Iterator[Sequence[Array]]:
    """The same slices of mapped arrays, the next ones of which the system is reading already: the disk never waits."""
    coming: deque[Sequence[Array]] = deque()
    for some in slices:
        for array in some:
            expect(array)
        coming.append(some)
        if len(coming) > ahead:
            yield coming.popleft()
    yield from coming


def _behind(array: Any) -> mmap.mmap | None:
    """The mapped file that an array is a view of; None: it is in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    content = array.obj if isinstance(array, memoryview) else array
    return content if isinstance(content, mmap.mmap) else None


def _mapped(content: mmap.mmap, offset: int, entry: Mapping[str, Any]) -> Array:
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(int(n) for n in entry["shape"])
    start, end = (int(n) for n in entry["data_offsets"])
    count = math.prod(shape)
    if min(shape, default=0) < 0 or start < 0 or end - start != count * dtype.itemsize:
        raise ValueError("data size does not agree with the shape")
    return np.frombuffer(content, dtype, count, offset + start).reshape(shape)


def _columns(tensors: Mapping[str, Array]) -> Columns:
    numbers = {name: array for name, array in tensors.items() if "/" not in name}
    lists: dict[str, Lists] = {}
    for name, array in tensors.items():
        column, slash, part = name.partition("/")
        if slash and part != "starts":
            lists.setdefault(column, Lists(tensors[f"{column}/starts"], {})).parts[part] = array
    return Columns(numbers, lists)


def _check(columns: Columns) -> None:
    """Refuse columns of different lengths, and lists that leave their arrays; what entries mean is not known here."""
    n = len(columns)
    for column in columns.lists.values():
        starts = expect(column.starts)
        if starts.ndim != 1 or len(starts) != n + 1 or starts[0] != 0 or (np.diff(starts.astype(np.int64)) < 0).any():
            raise ValueError("lists do not agree with the rows")
        if any(flat.ndim != 1 or len(flat) != starts[-1] for flat in column.parts.values()):
            raise ValueError("lists do not agree with their entries")
    if any(array.ndim not in (1, 2) or len(array) != n for array in columns.numbers.values()):
        raise ValueError("columns of different lengths")


class KeptOpen:
    """Files that are mapped when they are asked for, of which some stay so: a process may not have any number open.

    Parameters
    ----------
    mapped : callable
        Maps the file of a number.
    most : int
        Files that stay mapped.
    """

    def __init__(self, mapped: Callable[[int], Columns], most: int) -> None:
        self._mapped, self._most = mapped, most
        self._open: OrderedDict[int, Columns] = OrderedDict()
        self._lock = Lock()

    def __call__(self, number: int) -> Columns:
        """The columns of a file; may be called from several threads."""
        with self._lock:
            found = self._open.pop(number, None)
            if found is None:
                while len(self._open) >= self._most:
                    self._open.popitem(last=False)
                found = self._mapped(number)
            self._open[number] = found
            return found

    def __len__(self) -> int:
        return len(self._open)


def changed(columns: Columns, name: str, change: Callable[[Lists], Lists]) -> Columns:
    """The same rows with one column of lists changed."""
    return Columns(columns.numbers, {**columns.lists, name: change(columns.lists[name])})
