"""Array types shared by all rooms. CSR is always the same three names in the same order."""

from typing import Any, NamedTuple, TypeAlias

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
