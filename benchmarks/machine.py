"""Machine of a benchmark, and the verdict on its bar."""

import os
import platform
from pathlib import Path
from typing import Any

from wsabie.core.machine import resolve_threads


def machine(threads: int | None = None) -> dict[str, Any]:
    """The processor, its cores, the threads used (default: all cores), the widest vectors, the system."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    flags = next((set(line.split(":", 1)[1].split()) for line in lines if line.startswith("flags")), set())
    vectors = next((name for name in ("avx512f", "avx2", "avx") if name in flags), "none of AVX")
    threads = resolve_threads(threads)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "vectors": vectors,
        "threads": threads,
        "system": platform.platform(),
    }


def describe_machine() -> str:
    """The machine in one line."""
    facts = machine()
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['vectors']}; load {os.getloadavg()[0]:.1f} at the start"


def verdict(value: float, *, least: float | None = None, most: float | None = None) -> str:
    """ "bar .5: met" or "bar .5: MISSED".

    Examples
    --------
    >>> verdict(0.61, least=0.5), verdict(1.4, most=1.3)
    ('bar 0.5: met', 'bar 1.3: MISSED')
    """
    met = (least is None or value >= least) and (most is None or value <= most)
    return f"bar {least if least is not None else most:g}: {'met' if met else 'MISSED'}"
