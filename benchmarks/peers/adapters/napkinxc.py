"""napkinXC: probabilistic label trees and hierarchical softmax over linear classifiers.

It trains straight into a folder, here in memory where the system has a memory file system; loading it back is told
apart. It has no epochs that could be watched (its solver runs until it has converged), so a trial is one round.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.harness import Run, main
from benchmarks.peers.ranks import dense

BEST_LABELS = 100
"""Labels that it returns; the rest is tied behind them, and moves the mean by less than a thousandth."""


def train(run: Run) -> None:
    """Train, load, rank."""
    from napkinxc.models import HSM, PLT

    options = dict(run.params)
    X, judge_X = run.scale_rows(options.pop("rows"))
    kind = {"plt": PLT, "hsm": HSM}[options.pop("model")]
    memory = Path("/dev/shm")  # noqa: S108 - a memory file system, and mkdtemp makes a private folder in it
    folder = tempfile.mkdtemp(prefix="napkinxc-", dir=memory if memory.is_dir() else None)
    try:
        model = kind(folder, threads=run.threads, seed=run.seed + 1, **options)
        labels = run.y.astype(int).tolist()
        with run.training():
            model.fit(X, labels if kind is HSM else [[label] for label in labels])
        run.note(model_bytes=sum(file.stat().st_size for file in Path(folder).iterdir()))
        with run.measure_separately("load_s"):
            model.load()
        run.finish_round(1, _scores(model, judge_X, run.n_labels))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _scores(model: Any, judge_X: Any, n_labels: int) -> Any:
    k = min(BEST_LABELS, n_labels)

    def scores(lo: int, hi: int) -> Any:
        predictions = model.predict_proba(judge_X[lo:hi], top_k=k)
        ids = [np.array([label for label, _ in row], dtype=int) for row in predictions]
        return dense(ids, [np.array([chance for _, chance in row], np.float32) for row in predictions], n_labels)

    return scores


if __name__ == "__main__":
    main(train)
