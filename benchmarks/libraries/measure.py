"""Processor time, memory and result of several ways to do one thing, by turns in one process."""

import ctypes
import gc
import importlib.metadata
import math
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

REPEATS = 7
Work: TypeAlias = Callable[[], object]
Entrants: TypeAlias = Mapping[str, Callable[[], Work]]
"""Name of a library to the function that imports it and returns the work; "ours" comes first."""


def compare(
    title: str,
    entrants: Entrants,
    note: Callable[[object], str] = lambda _: "",
    *,
    with_memory: bool = True,
    repeats: int = REPEATS,
) -> None:
    """Print medians of processor time, growth of memory, and a note on each result; leave out what is not installed.

    `with_memory` is False for libraries whose threads do not survive a fork.
    """
    works: dict[str, Work] = {}
    lines: dict[str, str] = {}
    for name, prepare in entrants.items():
        try:
            works[name] = prepare()
            lines[name] = note(works[name]())
        except ImportError as error:
            print(f"  {name}: not installed ({error.name})")
            works.pop(name, None)
    peaks = {name: measure_peak(work) if with_memory else math.nan for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = read_clock()
            work()
            seconds[name].append(read_clock() - start)
    print(f"\n{title}")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, median in medians.items():
        ratio = median / medians[next(iter(medians))]
        version = find_version(name)
        print(f"  {name + version:36} {1e3 * median:10.2f} ms {ratio:8.2f} x {peaks[name]:9.1f} MB  {lines[name]}")
    sys.stdout.flush()


def read_clock() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def find_version(name: str) -> str:
    """Return " 1.2.3" of the distribution that is the first word of a name; empty for code of ours."""
    try:
        return f" [{importlib.metadata.version(name.partition(' ')[0])}]"
    except importlib.metadata.PackageNotFoundError:
        return ""


def measure_peak(work: Work) -> float:
    """Return the MB by which the resident set of a forked process grows while it works; NaN where it fails."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            Path("/proc/self/clear_refs").write_text("5")
            memory_before = read_status("VmRSS")
            work()
            os.write(writer, str(read_status("VmHWM") - memory_before).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return float(text or "nan")


def read_status(field: str) -> float:
    """Return a size of this process from /proc in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(field)) / 1024
