"""Memory budget shared by threads, and by the processes that one command or service starts.

A process counts what its threads hold. Between processes a file stands for the budget, as `_N_UNITS` equal
parts: whoever holds a part locks its byte. The system frees the locks of a process that ends, however it
ends.
"""

import ctypes
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from wsabie.core.input_limits import read_limits

VARIABLE = "WSABIE_MEMORY_FILE"
"""Names the file that processes share; unset: this process has the budget for itself."""

_N_UNITS = 64
_MIN_LOCKED_SHARE = 1 / 256  # of the budget: not worth a lock between processes
_TRIM_BYTES = 64 << 20  # from which a share returned makes the allocator give free memory back
_RETRY_SECONDS = 0.005


class MemoryBudget:
    """Shares of a number of bytes; a request waits, in order, until its share is free.

    Parameters
    ----------
    limit : callable
        Returns the bytes of all shares together.

    Examples
    --------
    >>> budget = MemoryBudget(lambda: 1000)
    >>> with budget.share(600):
    ...     budget.used
    600
    >>> budget.used
    0
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self.limit = limit
        self.used = 0
        self._turn = threading.Lock()
        self._change = threading.Condition()
        self._path = ""
        self._file: int | None = None
        self._units: set[int] = set()

    @contextmanager
    def share(self, n_bytes: int) -> Iterator[None]:
        """Hold `n_bytes` until the block ends, more than the limit alone. A thread holds one share at a time."""
        units: list[int] = []
        with self._turn:
            with self._change:
                self._change.wait_for(lambda: self.used == 0 or self.used + n_bytes <= self.limit())
                self.used += n_bytes
            try:
                self._acquire_units(n_bytes, units)
            except BaseException:
                self._release(n_bytes, units)
                raise
        try:
            yield
        finally:
            self._release(n_bytes, units)

    def _release(self, n_bytes: int, units: list[int]) -> None:
        if n_bytes >= _TRIM_BYTES:  # glibc keeps up to 64 MB pieces of free memory for each thread
            with suppress(OSError, AttributeError, TypeError):  # another C library
                ctypes.CDLL(None).malloc_trim(0)
        for unit in units:
            self._lock(fcntl.LOCK_UN, unit)
            self._units.discard(unit)
        with self._change:
            self.used -= n_bytes
            self._change.notify_all()

    def _acquire_units(self, n_bytes: int, units: list[int]) -> None:
        """Lock the parts of the shared file for a share; one process at a time looks for free ones."""
        limit = self.limit()
        if n_bytes < _MIN_LOCKED_SHARE * limit or not self._is_shared():
            return
        n_units = min(_N_UNITS, -(-n_bytes * _N_UNITS // limit))
        self._lock(fcntl.LOCK_EX, _N_UNITS)
        try:
            while len(units) < n_units:
                for unit in sorted(set(range(_N_UNITS)) - self._units):
                    if len(units) < n_units and self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB, unit):
                        self._units.add(unit)
                        units.append(unit)
                if len(units) < n_units:
                    time.sleep(_RETRY_SECONDS)
        finally:
            self._lock(fcntl.LOCK_UN, _N_UNITS)

    def _is_shared(self) -> bool:
        """Open the file that the environment names, once, and return whether there is one."""
        path = os.environ.get(VARIABLE, "")
        if path != self._path and not self._units:
            if self._file is not None:
                os.close(self._file)
            try:
                self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC) if path else None
            except OSError:
                self._file = None
            self._path = path
        return self._file is not None

    def _lock(self, command: int, unit: int) -> bool:
        if self._file is None:
            return True
        try:
            fcntl.lockf(self._file, command, 1, unit)
        except OSError as error:  # any other error: there are no locks here
            return not isinstance(error, BlockingIOError)
        return True


ITEM_MEMORY = MemoryBudget(lambda: read_limits().picture_bytes)
"""Memory of all pictures that are decoded and all image encoders that run at a time, beside their weights."""


@contextmanager
def share_memory_budgets() -> Iterator[None]:
    """Let this process and those that it starts share their budgets; nested blocks do nothing.

    Where no temporary file can be made each process has a budget of its own.
    """
    with ExitStack() as stack:
        if VARIABLE not in os.environ:
            with suppress(OSError):
                file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="wsabie-memory-"))
                os.environ[VARIABLE] = file.name
                stack.callback(os.environ.pop, VARIABLE, None)
        yield
