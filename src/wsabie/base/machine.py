"""What this machine offers and what versions run on it, for defaults and for reports."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

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
