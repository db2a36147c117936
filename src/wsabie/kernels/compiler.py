"""Compiler flags and decorators of all kernels.

`jit` marks a leaf, pasted into its callers by LLVM; `jit_noinline` one that stays a call. `jit_entry` marks an entry
point that Python calls: it is cached on disk, in a file whose name has a checksum of all kernel sources, because numba
looks only at the entry's own file. It would go on using old code after an edit of a leaf elsewhere, and after a new
version of the package it would stop at an index that names a deleted type.
"""

import fcntl
import signal
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import Event, Listener, register
from numba.core.registry import CPUDispatcher

from wsabie.core.arrays import LANES

FLAGS: dict[str, Any] = {
    "nogil": True,
    # No reference counting, so kernels allocate nothing. With it numba counts every array of every NamedTuple up and
    # down, atomically, wherever it cannot prove that it need not: that was three quarters of the time of a draw.
    "_nrt": False,
    "error_model": "numpy",
    # Not "nnan"/"ninf": divergence checks must still see NaN and infinity.
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "no_cfunc_wrapper": True,
}
INLINE = {**FLAGS, "forceinline": True}
IN_ORDER = {**FLAGS, "fastmath": {"contract"}}
STRICT = {"nogil": True, "error_model": "numpy"}


class _InterruptDeferral(Listener):  # type: ignore[misc]
    """Listener that defers interrupts while the main thread holds the compiler, or waits for it."""

    def __init__(self) -> None:
        self._depth, self._was_interrupted = 0, False
        self._handler: Any = None

    def on_start(self, event: Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth += 1
        if self._depth == 1:
            self._was_interrupted, self._handler = False, signal.getsignal(signal.SIGINT)
            if self._handler is not None:  # installed outside Python, where it cannot be read
                signal.signal(signal.SIGINT, self._record_interrupt)

    def on_end(self, event: Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0 and self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._was_interrupted:
                signal.raise_signal(signal.SIGINT)

    def _record_interrupt(self, number: int, frame: Any) -> None:
        self._was_interrupted = True


def defer_interrupts() -> None:
    """Defer interrupts during every compilation from now on."""
    register("numba:compiler_lock", _InterruptDeferral())


def compute_sources_checksum(folder: Path) -> int:
    """Return the CRC-32 over the paths and contents of all kernel sources in a folder and below it."""
    crc = zlib.crc32(f"{numba.__version__} {LANES}".encode())
    for file in sorted(folder.rglob("*.py")):
        crc = zlib.crc32(file.read_bytes(), zlib.crc32(file.relative_to(folder).as_posix().encode(), crc))
    return crc


class _Leaf(CPUDispatcher):  # type: ignore[misc]
    """Function that kernels call. Python may too, as tests do: then it is compiled again, with a wrapper."""

    @cached_property
    def _entry(self) -> Callable[..., Any]:
        return numba.jit(**{**self.targetoptions, "no_cpython_wrapper": False})(self.py_func)  # type: ignore[no-any-return]

    def __call__(self, *arguments: Any) -> Any:
        return self._entry(*arguments)


class _CachedEntry(CPUDispatcher):  # type: ignore[misc]
    """Entry point that one process at a time compiles: the others wait, then load what it saved."""

    # without the lock each process would compile it, and of two that save at once numba's index keeps one

    def compile(self, signature: Any) -> Any:
        with ExitStack() as stack:
            if not global_compiler_lock.is_locked():  # by this thread: two locks in two orders could wait for ever
                with suppress(OSError):  # where no file can be locked, each process compiles
                    folder = Path(self._cache.cache_path)
                    folder.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context((folder / f"{self.__name__}.lock").open("w"))
                    fcntl.flock(file, fcntl.LOCK_EX)
            return super().compile(signature)


def _make_leaf(function: Callable[..., Any], flags: Mapping[str, Any]) -> Any:
    """Compile without a wrapper for Python: wrappers took a third of the compiler's time."""
    leaf = numba.njit(**flags, no_cpython_wrapper=True)(function)
    if isinstance(leaf, CPUDispatcher):  # and not NUMBA_DISABLE_JIT
        leaf.__class__ = _Leaf
    return leaf


_SOURCES = compute_sources_checksum(Path(__file__).parent)


defer_interrupts()


def jit(function: Callable[..., Any]) -> Any:
    """Compile a leaf into its callers. A call would cost about 18 ns, as much as a row of 100 floats."""
    return _make_leaf(function, INLINE)


def jit_noinline(function: Callable[..., Any]) -> Any:
    """Compile a leaf that stays a call: for the rare branch, so that the frequent one keeps its registers."""
    return _make_leaf(function, FLAGS)


def jit_ordered(function: Callable[..., Any]) -> Any:
    """Compile a leaf that stays a call and sums in the written order, as NumPy does with the same terms.

    A product that is added may go into the sum unrounded.
    """
    return _make_leaf(function, IN_ORDER)


def jit_strict(function: Callable[..., Any]) -> Any:
    """Compile a leaf of a text parser, which may allocate and sums in the written order."""
    return numba.njit(**STRICT)(function)


def jit_entry(function: Callable[..., Any]) -> Any:
    """Compile an entry point for Python, cached on disk."""
    function.__qualname__ += f"_{_SOURCES:08x}"
    return make_cached_jit(**FLAGS)(function)


def make_cached_jit(**flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with these flags, cached on disk where there is a folder that can be written."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            if not numba.config.CACHE_DIR:
                Path.home()  # raises where there is none: numba would make a folder "~" in the current one
            entry = numba.njit(cache=True, **flags)(function)
        except RuntimeError:
            return numba.njit(**flags)(function)
        if isinstance(entry, CPUDispatcher):  # and not NUMBA_DISABLE_JIT
            entry.__class__ = _CachedEntry
        return entry

    return compiled
