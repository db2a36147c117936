"""Growth of the resident set while training, after import: `python -m benchmarks.memory [S|M|tiny]`.

The bar: the bytes of the arrays given + 2.5 times the model + 100 MB.
"""

import argparse
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import told, verdict
from benchmarks.visterm_task import load
from wsabie.models.wsabie import Wsabie


def resident() -> int:
    """Bytes in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown_by(work: Callable[[], Any]) -> tuple[int, Any]:
    """By how much the resident set grows while something is done, at most; and what that gives back."""
    before, peak, done = resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, resident())
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    found = work()
    done.set()
    watcher.join()
    return peak - before, found


def csr(X: Any) -> tuple[Any, ...]:
    return X.indptr, X.indices, X.data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default="S", choices=["S", "M", "tiny"])
    name = parser.parse_args().task
    print(told())
    task = load(name)
    n, m = task.n_fit, task.n_train
    X, y, valid = task.X[:n], task.y[:n], (task.X[n:m], task.y[n:m])
    del task
    Wsabie(epochs=1).fit(X[:64], np.arange(64))  # compilation and imports are not training
    grown, model = grown_by(lambda: Wsabie(epochs=2).fit(X, y, validation=valid))
    given = sum(array.nbytes for rows, truth in ((X, y), valid) for array in (*csr(rows), truth))
    bar = given + 2.5 * model.space_.nbytes + 100e6
    mega = {"grown": grown, "arrays given": given, "model": model.space_.nbytes, "bar": bar}
    print(f"task {name}: " + ", ".join(f"{key} {value / 1e6:,.0f} MB" for key, value in mega.items()))
    print(f"growth / bar {grown / bar:.2f}, {verdict(grown / bar, most=1)}")


if __name__ == "__main__":
    main()
