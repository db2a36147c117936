"""Resources of this machine, and the versions that run on it."""

import getpass
import os
import platform
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from wsabie.core.execution import SharedContext

_REPORTED = ("wsabie", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pillow")

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processor time and the period that they are for (Linux, control groups of version 2)."""
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Bytes, or "max"."""
LARGE_MEMORY_BYTES = 10**8
"""Memory in bytes from which a command announces what it is about to allocate."""
MAX_THREADS = 1024
"""Threads of a computation, at most."""


def get_user_name() -> str:
    """Return the login name of this process's user, or "uid 12345" if the system has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def count_available_cores() -> int:
    """Count the cores that this process may use, given CPU affinity and the quota of a container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    with suppress(OSError, ValueError):  # no such file, or "max 100000"
        allowed, period = map(int, CPU_QUOTA.read_text(encoding="ascii").split())
        cores = min(cores, allowed // max(period, 1))
    return max(1, cores)


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads; None: all cores that this process may use.

    Examples
    --------
    >>> resolve_threads(3), resolve_threads(None) >= 1
    (3, True)
    """
    return threads or count_available_cores()


def get_available_memory() -> int:
    """Return the bytes of memory of the machine, or of a container's limit if that is lower."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no such file, or "max"
        memory = min(memory, int(MEMORY_LIMIT.read_text(encoding="ascii")))
    return memory


def collect_versions() -> dict[str, str]:
    """Return the versions for every report and model folder, by package name."""
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _REPORTED:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def limit_blas_threads() -> AbstractContextManager[None]:
    """Run BLAS on one thread until the block ends, for work divided among our own threads.

    BLAS's threads keep spinning after a product and take the core from the next thread; two products at once
    would wait for each other. Several threads may enter; the last to leave restores the previous limit.
    """
    return _blas_limit


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


_blas_limit = SharedContext(lambda: _controller().limit(limits=1, user_api="blas"))
