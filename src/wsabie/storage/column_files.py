"""Tables of columns, of numbers or of lists of numbers, in files that are mapped into memory.

A file is one of safetensors: a column of numbers is a tensor `name`, a column of lists has `name/starts` and
a tensor `name/part` for each of the arrays that lie side by side in it. Further facts stand in the file's
metadata as JSON, under the key `wsabie`.

The safetensors package reads the same files, but copies each tensor instead of mapping it
(`docs/decisions/rows-and-files.md`).
"""

import hashlib
import json
import math
import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wsabie.core.arrays import Array, Int64
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.storage import model_folder
from wsabie.storage.atomic_files import replace_file

_ROWS_AT_ONCE = 1 << 13
_MAX_HEADER_BYTES = 1 << 28
_ALIGNMENT = 64
_KEY = "wsabie"


class ListColumn(NamedTuple):
    """Column of lists: that of row i is starts[i]..starts[i + 1] - 1 of each part."""

    starts: Array  # (n + 1,)
    parts: dict[str, Array]


@dataclass(frozen=True)
class ColumnTable:
    """Rows stored as columns.

    Attributes
    ----------
    numbers : dict of str to (n, ...) array
    lists : dict of str to ListColumn
    """

    numbers: dict[str, Array] = field(default_factory=dict)
    lists: dict[str, ListColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        for array in self.numbers.values():
            return len(array)
        return next((len(column.starts) - 1 for column in self.lists.values()), 0)

    def part(self, lo: int, hi: int) -> "ColumnTable":
        """Return the rows lo..hi - 1, sharing memory."""
        lists = {}
        for name, column in self.lists.items():
            starts = column.starts[lo : hi + 1].astype(np.int64)
            entries = slice(int(starts[0]), int(starts[-1]))
            lists[name] = ListColumn(starts - starts[0], {key: flat[entries] for key, flat in column.parts.items()})
        return ColumnTable({name: array[lo:hi] for name, array in self.numbers.items()}, lists)

    def take(self, index: Int64) -> "ColumnTable":
        """Copy the rows with these numbers, in their order."""
        lists = {name: take_lists(column, index) for name, column in self.lists.items()}
        return ColumnTable({name: array[index] for name, array in self.numbers.items()}, lists)


def concatenate_columns(pieces: Sequence[ColumnTable]) -> ColumnTable:
    """Concatenate the rows of several pieces, which have the same columns.

    Examples
    --------
    >>> piece = ColumnTable({"id": np.arange(2)}, {"words": ListColumn(np.array([0, 1, 3]), {"letters": np.arange(3)})})
    >>> both = concatenate_columns([piece, piece.part(1, 2)])
    >>> both.numbers["id"].tolist(), both.lists["words"].starts.tolist(), both.lists["words"].parts["letters"].tolist()
    ([0, 1, 1], [0, 1, 3, 5], [0, 1, 2, 1, 2])
    """
    first = pieces[0]
    numbers = {name: np.concatenate([piece.numbers[name] for piece in pieces]) for name in first.numbers}
    lists = {}
    for name, column in first.lists.items():
        lengths = [np.diff(piece.lists[name].starts).astype(np.int64) for piece in pieces]
        parts = {key: np.concatenate([piece.lists[name].parts[key] for piece in pieces]) for key in column.parts}
        lists[name] = ListColumn(compute_offsets(np.concatenate(lengths)), parts)
    return ColumnTable(numbers, lists)


def compute_offsets(lengths: Any) -> Int64:
    """Return the start of each list of these lengths, and the end of the last one."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def take_lists(column: ListColumn, index: Int64) -> ListColumn:
    """Copy some of the lists, in their order.

    Parts are copied one after the other, so that the positions of all entries are never in memory together.
    """
    lengths = np.diff(column.starts).astype(np.int64)[index]
    starts = compute_offsets(lengths)
    parts = {key: np.empty(int(starts[-1]), flat.dtype) for key, flat in column.parts.items()}
    for lo in range(0, len(index), _ROWS_AT_ONCE):
        batch = slice(lo, lo + _ROWS_AT_ONCE)
        first = column.starts[:-1][index[batch]].astype(np.int64) - starts[:-1][batch]
        filled = slice(int(starts[lo]), int(starts[min(lo + _ROWS_AT_ONCE, len(index))]))
        positions = np.repeat(first, lengths[batch]) + np.arange(filled.start, filled.stop)
        for key, flat in column.parts.items():
            np.take(flat, positions, out=parts[key][filled])
    return ListColumn(starts, parts)


def encode_text_column(words: Sequence[str]) -> ListColumn:
    """Encode words as a column."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    return ListColumn(
        compute_offsets([len(word) for word in encoded]), {"text": np.frombuffer(b"".join(encoded), np.uint8)}
    )


def decode_text_column(column: ListColumn) -> list[str]:
    """Decode the words of a column from `encode_text_column`.

    Examples
    --------
    >>> decode_text_column(encode_text_column(["a", "", "Zürich"]))
    ['a', '', 'Zürich']
    """
    content = column.parts["text"].tobytes()
    return [content[lo:hi].decode("utf-8", "surrogatepass") for lo, hi in pairwise(column.starts.tolist())]


# ---- files


def write_columns(path: Path, columns: ColumnTable, note: JsonObject) -> str:
    """Write a file, atomically, and return its SHA-256 in hex digits.

    Raises
    ------
    WriteError
        As `replace_file`.
    """
    tensors = dict(_tensors(columns))
    # wide numbers first: then every tensor lies at a multiple of its own width
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    digest = hashlib.sha256()
    with replace_file(path) as draft, draft.open("wb") as out:
        pieces = (piece for name in order for piece in model_folder.iterate_pieces(tensors[name]))
        for piece in (_header(tensors, order, note), *pieces):
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()


def _tensors(columns: ColumnTable) -> Iterator[tuple[str, Array]]:
    yield from columns.numbers.items()
    for name, column in columns.lists.items():
        yield f"{name}/starts", column.starts
        for key, flat in column.parts.items():
            yield f"{name}/{key}", flat


def _header(tensors: Mapping[str, Array], order: Sequence[str], note: JsonObject) -> bytes:
    info: JsonObject = {"__metadata__": {_KEY: json.dumps(note, ensure_ascii=False, sort_keys=True)}}
    end = 0
    for name in order:
        start, end = end, end + tensors[name].nbytes
        code = model_folder.CODES[tensors[name].dtype.newbyteorder("<")]
        info[name] = {"dtype": code, "shape": list(tensors[name].shape), "data_offsets": [start, end]}
    return model_folder.encode_safetensors_header(info, _ALIGNMENT)


def map_columns(path: Path, *, scattered: bool = False, check: bool = True) -> tuple[ColumnTable, JsonObject]:
    """Map the columns of a file into memory; return them and its note.

    Parameters
    ----------
    path : Path
    scattered : bool
        Rows are read at random: the system reads the pages that are used or prefetched, and nothing around them.
        Otherwise it reads ahead, megabytes if the disk is set up so.
    check : bool
        Check where lists begin; False: an earlier call has done so.

    Raises
    ------
    ValueError
        It is not such a file, or cut off.
    OSError
        It cannot be read.
    """
    with open_input(path) as stream:
        size = path.stat().st_size
        info, begin = model_folder.read_safetensors_header(stream, size, _MAX_HEADER_BYTES)
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered:
        with suppress(OSError):
            content.madvise(mmap.MADV_RANDOM)
    try:
        note = json.loads(info.pop("__metadata__")[_KEY])
        end = max((int(entry["data_offsets"][1]) for entry in info.values()), default=0)
        if begin + end != size or not isinstance(note, dict):
            raise ValueError("size does not agree with the header")
        tensors: dict[str, Array] = {}
        for name, entry in info.items():
            dtype, shape, start = model_folder.parse_tensor_entry(entry)
            tensors[name] = np.frombuffer(content, dtype, math.prod(shape), begin + start).reshape(shape)
        columns = _group_tensors(tensors)
        if check:
            _check_lengths(columns)
        return columns, note
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise ValueError("damaged header") from error


def prefetch_array(array: Array) -> Array:
    """Return the same slice of a mapped array after asking the system to read it from the disk."""
    content = _get_mapped_file(array) if array.nbytes else None
    if content is not None:
        begin = array.ctypes.data - np.frombuffer(content, np.uint8).ctypes.data
        page = begin - begin % mmap.PAGESIZE
        with suppress(OSError):  # advice; what cannot be read says so when it is used
            content.madvise(mmap.MADV_WILLNEED, page, begin - page + array.nbytes)
    return array


def prefetch_slices(slices: Iterable[Sequence[Array]], n_prefetched: int = 64) -> Iterator[Sequence[Array]]:
    """Yield the same slices of mapped arrays while the system already reads the next ones."""
    queue: deque[Sequence[Array]] = deque()
    for arrays in slices:
        for array in arrays:
            prefetch_array(array)
        queue.append(arrays)
        if len(queue) > n_prefetched:
            yield queue.popleft()
    yield from queue


def _get_mapped_file(array: Any) -> mmap.mmap | None:
    """Return the mapped file that an array is a view of; None if it is in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    content = array.obj if isinstance(array, memoryview) else array
    return content if isinstance(content, mmap.mmap) else None


def _group_tensors(tensors: Mapping[str, Array]) -> ColumnTable:
    numbers = {name: array for name, array in tensors.items() if "/" not in name}
    lists: dict[str, ListColumn] = {}
    for name, array in tensors.items():
        column, slash, part = name.partition("/")
        if slash and part != "starts":
            lists.setdefault(column, ListColumn(tensors[f"{column}/starts"], {})).parts[part] = array
    return ColumnTable(numbers, lists)


def _check_lengths(columns: ColumnTable) -> None:
    """Refuse columns of different lengths and lists that leave their arrays; entries are not checked."""
    n = len(columns)
    for column in columns.lists.values():
        starts = prefetch_array(column.starts)
        if starts.ndim != 1 or len(starts) != n + 1 or starts[0] != 0 or (np.diff(starts.astype(np.int64)) < 0).any():
            raise ValueError("lists do not agree with the rows")
        if any(flat.ndim != 1 or len(flat) != starts[-1] for flat in column.parts.values()):
            raise ValueError("lists do not agree with their entries")
    if any(array.ndim not in (1, 2) or len(array) != n for array in columns.numbers.values()):
        raise ValueError("columns of different lengths")


ColumnFileCache: TypeAlias = Callable[[int], ColumnTable]
"""Returns the columns of a file by its number; may be called from several threads.

`functools.lru_cache` keeps the last files mapped: a process may not have any number open, and files have no sizes to
count and no time after which they are stale.
"""


def replace_list_column(columns: ColumnTable, name: str, change: Callable[[ListColumn], ListColumn]) -> ColumnTable:
    """Return the same rows with one column of lists changed."""
    return ColumnTable(columns.numbers, {**columns.lists, name: change(columns.lists[name])})
