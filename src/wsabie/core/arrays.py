"""Array types shared by all rooms, and arrays as long as the data. CSR is always the same three names.

Long arrays lie in unnamed files. The system keeps their pages in memory while there is room and writes them to the disk
otherwise, so that only the model itself has to fit. Where there are no such files (another system, a full disk) they
are ordinary arrays.
"""

import os
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Bool = npt.NDArray[np.bool_]

Array: TypeAlias = npt.NDArray[Any]
"""An array of numbers of any type."""

LANES = 16
"""Tables of points are padded with zeros to a multiple of this many floats: one cache line."""

Matrix: TypeAlias = Any
"""A scipy CSR matrix or a 2-D NumPy array (scipy ships no types)."""


class Csr(NamedTuple):
    """Sparse rows as kernels take them: row i holds columns `indices[indptr[i]:indptr[i + 1]]`."""

    indptr: Int64  # (n_rows + 1,)
    indices: Int32  # (nnz,), sorted inside a row, no duplicates
    data: Float32  # (nnz,)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1


def count_rows(rows: Csr | Array) -> int:
    """Return the number of rows, sparse or dense."""
    return rows.n_rows if isinstance(rows, Csr) else len(rows)


class _View:
    """Array interface that declares the memory of an array writable."""

    def __init__(self, array: Array) -> None:
        self.array = array  # keeps the memory
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def view_as_writable(array: Any) -> Any:
    """Return an array that numba compiles for like a writable one; no kernel writes to it.

    A read-only array (mapped from a file, or of Arrow) is another type to numba, and every kernel would be
    compiled again for it. Training writes only to tables of its own.
    """
    return array if array.flags.writeable else np.asarray(_View(array))


Value = TypeVar("Value")

MIN_MAPPED_BYTES = 16 << 20
"""Bytes from which an array is mapped from a file, in the folder that `TMPDIR` names."""
CHUNK_VALUES = 1 << 20
"""Values per chunk where a whole long array would have to be copied otherwise."""


def allocate_array(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an uninitialised array like `np.empty`, backed by an unnamed file if it is large."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    reserve = getattr(os, "posix_fallocate", None)
    if n_bytes < MIN_MAPPED_BYTES or reserve is None:
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile(prefix="wsabie-") as file:
            reserve(file.fileno(), 0, n_bytes)  # a page that the full disk has no room for would end the process
            return np.memmap(file, dtype, "r+", shape=shape).view(np.ndarray)
    except OSError:
        return np.empty(shape, dtype)


def copy_array(array: Array) -> Array:
    """Copy an array into one from `allocate_array`."""
    out = allocate_array(array.shape, array.dtype)
    out[...] = array
    return out


def move_to_file(value: Value) -> Value | Array:
    """Return a large array moved to a file; anything else unchanged."""
    return copy_array(value) if isinstance(value, np.ndarray) and value.nbytes >= MIN_MAPPED_BYTES else value


def iterate_slices(n: int, step: int | None = None) -> Iterator[slice]:
    """Yield the slices that make up a long array, of `step` values each (None: CHUNK_VALUES).

    Examples
    --------
    >>> list(iterate_slices(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    step = step or CHUNK_VALUES
    for lo in range(0, n, step):
        yield slice(lo, min(lo + step, n))
