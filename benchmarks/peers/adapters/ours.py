"""wsabie: the estimator as it is shipped, with validation by the benchmark's own code."""

import os
from typing import Any

from benchmarks.peers.harness import Run, main


class _EnoughError(Exception):
    """Ends training after an epoch; the model then holds that epoch's tables."""


def train(run: Run) -> None:
    """Train once; `params["epochs"]` is the length of the schedule, which may be left early."""
    from wsabie.models.wsabie import Wsabie

    options = {"dim": run.job["dim"], "threads": run.threads, "seed": run.seed, **run.params}
    with run.apart("compile_s"):
        warm = Wsabie(**{**options, "epochs": 1}).fit(run.X[:512], run.y[:512])
        _Scores(warm, run)(0, 1)
    model = Wsabie(**options)
    scores, last = _Scores(model, run), run.job["epochs"]

    def on_epoch(stats: Any) -> None:
        done = stats.epoch + 1
        watched = run.searching or run.mode == "curve"
        if (watched and run.after(done, scores)) or done == last:
            raise _EnoughError

    try:
        with run.training():
            model.fit(run.X, run.y, on_epoch=on_epoch)
    except _EnoughError:
        pass
    run.note(model_bytes=model.space_.nbytes, cores=len(os.sched_getaffinity(0)))
    if run.mode == "final":
        run.after(last, scores)


class _Scores:
    """Scores of judged rows. Labels beyond the highest in the training rows are left out (-inf)."""

    def __init__(self, model: Any, run: Run) -> None:
        self.model, self.run = model, run

    def __call__(self, lo: int, hi: int) -> Any:
        import numpy as np

        known = self.model.transform(self.run.judge_X[lo:hi]) @ self.model.label_vectors.T
        scores = np.full((hi - lo, self.run.n_labels), -np.inf, np.float32)
        scores[:, : known.shape[1]] = known
        return scores


if __name__ == "__main__":
    main(train)
