"""What this machine offers and what versions run on it, for defaults and for reports."""

import getpass
import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_REPORTED = ("wsabie", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "safetensors", "pillow")

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processor time and the period that they are for (Linux, control groups of version 2)."""
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Bytes, or "max"."""
TOLD = 10**8
"""Bytes of memory from which on what is to be made of them says so before it begins."""


def user_name() -> str:
    """Return the login name of whoever runs this process, or such as "uid 12345" where the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def available_cores() -> int:
    """Cores that this process may use: CPU affinity and the quota of a container are respected."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, min(cores, _quota(CPU_QUOTA)))


def _quota(file: Path) -> int:
    """Whole cores that the control group's quota allows; very many without one."""
    try:
        allowed, period = map(int, file.read_text(encoding="ascii").split())
    except (OSError, ValueError):  # no such file, or "max 100000"
        return sys.maxsize
    return allowed // max(period, 1)


def available_memory() -> int:
    """Bytes of memory that this process may use: those of the machine, or a container's limit where that is lower."""
    names = ("SC_PHYS_PAGES", "SC_PAGE_SIZE")
    known = hasattr(os, "sysconf") and all(name in os.sysconf_names for name in names)
    machine = os.sysconf(names[0]) * os.sysconf(names[1]) if known else sys.maxsize
    try:
        return min(machine, int(MEMORY_LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no such file, or "max"
        return machine


def versions() -> dict[str, str]:
    """Versions that go into every report and model folder, by package name."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _REPORTED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


_blas_lock = threading.Lock()
_blas_users = 0
_blas_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS in one thread while anybody is inside, for work that is parted among threads of our own.

    BLAS's threads go on spinning after a product and take the core from whoever comes next; and two products at once
    would wait for each other. May be entered from several threads; the last to leave restores what was before.
    """
    global _blas_users, _blas_limit
    with _blas_lock:
        if not _blas_users:
            _blas_limit = _controller().limit(limits=1, user_api="blas")
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if not _blas_users:
                _blas_limit.restore_original_limits()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
