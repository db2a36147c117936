"""What this machine offers and what versions run on it, for defaults and for reports."""

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_REPORTED = ("wsabie", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "safetensors", "pillow")


def available_cores() -> int:
    """Cores that this process may use (respects CPU affinity)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


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
