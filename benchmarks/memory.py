"""Growth of the resident set while training, after import: `python -m benchmarks.memory [S|M|tiny] [--trials N]`.

The bar: the bytes of the arrays given + 2.5 times the model + 100 MB. With --trials: that of a search with one trial
and with N of them, which are to take the same.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine, verdict
from benchmarks.visterm_task import load
from papers.datasets import open_data
from wsabie.core.execution import SILENT, SerialExecutor
from wsabie.features.base.sampling import WorkContext
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.storage.rejects import Rejects
from wsabie.workflows.model_training import TrainingRecipe
from wsabie.workflows.tune.model_tuning import TuningPlan, tune_model
from wsabie.workflows.tune.search_spaces import build_search_space


def resident(status_field: str = "VmRSS") -> int:
    """Bytes in memory now: all, or "RssAnon", without pages of files, which the system may take away."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{status_field}:"))


def measure_growth(work: Callable[[], Any], status_field: str = "VmRSS") -> tuple[int, Any]:
    """By how much what is resident grows while something is done, at most; and what that gives back."""
    memory_before, peak, stop = resident(status_field), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.is_set():
            peak = max(peak, resident(status_field))
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    value = work()
    stop.set()
    watcher.join()
    return peak - memory_before, value


def csr(X: Any) -> tuple[Any, ...]:
    return X.indptr, X.indices, X.data


def measure_search(name: str, trials: int) -> None:
    """A search with one trial and with more, all of one width: the peak may not grow with their number."""
    data = open_data(f"visterm:{name}")

    def work(n: int) -> Any:
        plan = TuningPlan(build_search_space({"dim": 100, "epochs": 2}), trials=n, halving=False)
        with tempfile.TemporaryDirectory() as folder:
            recipe = TrainingRecipe(name, Path(folder) / "model", Wsabie(), {})
            run = WorkContext(SerialExecutor(), SILENT, Rejects())
            return tune_model(data.train, data.valid, None, plan, recipe, run)

    work(trials)  # compilation and imports are not training
    single_trial, _ = measure_growth(lambda: work(1))
    many, result = measure_growth(lambda: work(trials))
    print(
        f"task {name}: 1 trial {single_trial / 1e6:,.0f} MB, {len(result.trials)} trials {many / 1e6:,.0f} MB, "
        f"on top of the {data.train.X.data.nbytes * 2 / 1e6:,.0f} MB of the rows"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default="S", choices=["S", "M", "tiny"])
    parser.add_argument("--trials", type=int, help="measure a search with so many trials")
    options = parser.parse_args()
    name = options.task
    print(describe_machine())
    if options.trials:
        measure_search(name, options.trials)
        return
    task = load(name)
    n, m = task.n_fit, task.n_train
    X, y, valid = task.X[:n], task.y[:n], (task.X[n:m], task.y[n:m])
    del task
    Wsabie(epochs=1).fit(X[:64], np.arange(64))  # compilation and imports are not training
    grown, model = measure_growth(lambda: Wsabie(epochs=2).fit(X, y, validation=valid))
    input_bytes = sum(array.nbytes for rows, truth in ((X, y), valid) for array in (*csr(rows), truth))
    bar = input_bytes + 2.5 * model.space_.nbytes + 100e6
    mega = {"grown": grown, "arrays given": input_bytes, "model": model.space_.nbytes, "bar": bar}
    print(f"task {name}: " + ", ".join(f"{key} {value / 1e6:,.0f} MB" for key, value in mega.items()))
    print(f"growth / bar {grown / bar:.2f}, {verdict(grown / bar, most=1)}")


if __name__ == "__main__":
    main()
