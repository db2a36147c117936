"""Tables of points: float32 rows padded with zeros to a multiple of 16 and aligned to cache lines."""

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import LANES, Array, Float32, iterate_slices
from wsabie.core.errors import InputError
from wsabie.core.machine import get_available_memory

_LINE = 64  # bytes; an unaligned row costs a second cache line on every vector load


def compute_padded_width(dim: int) -> int:
    """Return the columns of a table for points of `dim` coordinates.

    Examples
    --------
    >>> compute_padded_width(100), compute_padded_width(16)
    (112, 16)
    """
    return -(-dim // LANES) * LANES


def allocate_zeros(n_rows: int, dim: int) -> Float32:
    """Return an aligned table of zeros, (n_rows, padded width)."""
    require_memory(n_rows, dim)
    try:
        return _allocate_aligned(n_rows, compute_padded_width(dim), np.float32)
    except MemoryError as error:
        raise _make_memory_error(n_rows, dim) from error


def _allocate_aligned(n_rows: int, columns: int, dtype: npt.DTypeLike) -> Array:
    """Return zeros whose first row begins at a cache line."""
    memory = np.zeros(n_rows * columns + _LINE, dtype)
    start = (-memory.ctypes.data % _LINE) // memory.itemsize
    return memory[start : start + n_rows * columns].reshape(n_rows, columns)


def require_memory(n_rows: int, dim: int) -> None:
    """Refuse tables that would fill the memory of the machine.

    Raises
    ------
    InputError
    """
    if 4 * n_rows * compute_padded_width(dim) > get_available_memory():
        raise _make_memory_error(n_rows, dim)


def _make_memory_error(n_rows: int, dim: int) -> InputError:
    size, available = 4 * n_rows * compute_padded_width(dim) / 1e9, get_available_memory() / 1e9
    return InputError(
        f"{n_rows:,} points of {dim} dimensions need {size:,.1f} GB, and there are {available:,.1f} GB of memory; "
        "lower dim, or leave out features or labels (is the number of features in the file right?)"
    )


def allocate_bytes_like(table: Float32) -> npt.NDArray[np.int8]:
    """Return zero bytes, one for each number of a table; each row begins at a cache line."""
    n_rows, columns = table.shape
    return _allocate_aligned(n_rows, -(-columns // _LINE) * _LINE, np.int8)


def draw_gaussian(n_rows: int, dim: int, std: float, rng: np.random.Generator) -> Float32:
    """Return random rows with coordinates of mean 0 and standard deviation `std`.

    Mesnil et al. 2014, section 4.2, take 1/sqrt(dim).
    """
    table = allocate_zeros(n_rows, dim)
    for part in iterate_slices(n_rows, max(1, (1 << 20) // dim)):  # a table may be most of the memory
        table[part, :dim] = rng.standard_normal((part.stop - part.start, dim), dtype=np.float32)
        table[part, :dim] *= np.float32(std)
    return table


def pad_rows(values: Float32) -> Float32:
    """Return a padded table with the rows of an (n_rows, dim) array."""
    table = allocate_zeros(*values.shape)
    table[:, : values.shape[1]] = values
    return table


def append_rows(table: Float32, dim: int, new_rows: Float32) -> Float32:
    """Return `table` with new rows below; old rows keep their numbers."""
    out = allocate_zeros(len(table) + len(new_rows), dim)
    out[: len(table)] = table
    out[len(table) :] = new_rows
    return out


def clip_row_norms(table: Float32, max_norm: float | None) -> None:
    """Scale every row down to norm `max_norm`, in place; None leaves them free."""
    if max_norm is None:
        return
    for part in iterate_slices(len(table), 1 << 14):
        rows = table[part]
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows *= np.minimum(1, max_norm / np.maximum(norms, 1e-30)).astype(np.float32)[:, None]
