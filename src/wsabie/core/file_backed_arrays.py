"""Arrays as long as the data, kept in unnamed files once they are large.

The system keeps their pages in memory while there is room and writes them to the disk otherwise, so that only
the model itself has to fit. Where there are no such files (another system, a full disk) they are ordinary
arrays.
"""

import os
import tempfile
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Array

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
