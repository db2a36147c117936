"""One place for every compiler flag.

`jit` marks a leaf, pasted into its callers by LLVM; `cold` one that stays a call. `entry` marks an entry point that
Python calls: it is cached on disk, in a file whose name has a checksum of all kernel sources, because numba looks only
at the entry's own file. It would go on using old code after an edit of a leaf elsewhere, and after a new version of
the package it would stop at an index that names a type which is no more.
"""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from wsabie.base.arrays import LANES
from wsabie.kernels.interrupts import hold_interrupts

FLAGS: dict[str, Any] = {
    "nogil": True,
    # No reference counting, so kernels allocate nothing. With it numba counts every array of every NamedTuple up and
    # down, atomically, wherever it cannot prove that it need not: that was three quarters of the time of a draw.
    "_nrt": False,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
}
# Not "nnan"/"ninf": divergence checks must still see NaN and infinity.


INLINE = {**FLAGS, "forceinline": True}
IN_ORDER = {**FLAGS, "fastmath": {"contract"}}
STRICT = {"nogil": True, "error_model": "numpy"}


def sources_checksum(folder: Path) -> int:
    """CRC-32 over the names and contents of all kernel sources but the slow twins."""
    crc = zlib.crc32(f"{numba.__version__} {LANES}".encode())
    for file in sorted(f for f in folder.glob("*.py") if not f.stem.endswith("reference")):
        crc = zlib.crc32(file.read_bytes(), zlib.crc32(file.name.encode(), crc))
    return crc


_SOURCES = sources_checksum(Path(__file__).parent)


hold_interrupts()


def jit(function: Callable[..., Any]) -> Any:
    """Compile a leaf into its callers. A call would cost about 18 ns, as much as a row of 100 floats."""
    return numba.njit(**INLINE)(function)


def cold(function: Callable[..., Any]) -> Any:
    """Compile a leaf that stays a call: for the rare branch, so that the frequent one keeps its registers."""
    return numba.njit(**FLAGS)(function)


def in_order(function: Callable[..., Any]) -> Any:
    """Compile a leaf that stays a call and sums in the order that is written, as NumPy does with the same terms.

    A product that is added may go into the sum unrounded.
    """
    return numba.njit(**IN_ORDER)(function)


def strict(function: Callable[..., Any]) -> Any:
    """Compile a leaf of what reads text: it may allocate, and sums in the order that is written."""
    return numba.njit(**STRICT)(function)


def entry(function: Callable[..., Any]) -> Any:
    """Compile what Python calls, cached on disk."""
    function.__qualname__ += f"_{_SOURCES:08x}"
    return cached(**FLAGS)(function)


def cached(**flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with these flags, cached on disk where there is a folder that can be written."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            if not numba.config.CACHE_DIR:
                Path.home()  # raises where there is none: numba would make a folder "~" in the current one
            return numba.njit(cache=True, **flags)(function)
        except RuntimeError:
            return numba.njit(**flags)(function)

    return compiled
