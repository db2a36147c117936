"""Growth of the resident set while training, after import: `python benchmarks/memory.py [S|M|tiny]`.

The bar: the bytes of the arrays given + 2.5 times the model + 100 MB.
"""

import sys
import threading
import time
from pathlib import Path

import numpy as np

from visterm_task import load
from wsabie.models.wsabie import Wsabie


def resident() -> int:
    """Bytes in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "S"
    task = load(name)
    X, y = task.X[: task.n_train], task.y[: task.n_train]
    Wsabie(epochs=1).fit(X[:64], np.arange(64))  # compilation and imports are not training
    before, peak, done = resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, resident())
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = Wsabie(epochs=2).fit(X[: task.n_fit], y[: task.n_fit], validation=(X[task.n_fit :], y[task.n_fit :]))
    done.set()
    watcher.join()
    given = sum(array.nbytes for array in (X.indptr, X.indices, X.data, y))
    bar = given + 2.5 * model.space_.nbytes + 100e6
    mega = {"grown": peak - before, "arrays given": given, "model": model.space_.nbytes, "bar": bar}
    print(f"task {name}: " + ", ".join(f"{key} {value / 1e6:,.0f} MB" for key, value in mega.items()))
    print(f"growth / bar {(peak - before) / bar:.2f}")


if __name__ == "__main__":
    main()
