"""wsabie: the estimator as it is shipped, with validation by the benchmark's own code.

A trial runs its schedule to the end, for the learning rate falls to zero there: leaving it after a few epochs without
a rise would measure the middle of a schedule. The best epoch counts, as for every system.
"""

from typing import Any

import numpy as np

from benchmarks.peers.harness import LONGEST, Run, main
from wsabie.models.base.parameter_defaults import TrainingShape, default_embedding_rate
from wsabie.models.joint_embedding.estimator import Wsabie


class _EnoughError(Exception):
    """Ends training after an epoch; the model then holds that epoch's tables."""


class _Watched(Wsabie):
    """The estimator that shows itself while it trains; `fit` works on a copy until all has gone well."""

    def _train(self, *arguments: Any) -> Any:
        self.shown_to.model = self
        return super()._train(*arguments)


def train(run: Run) -> None:
    """Train once; `params["epochs"]` is the length of the schedule, which may be left early."""
    options = {"dim": run.job["dim"], "threads": run.threads, "seed": run.seed, **run.params}
    if "rate_factor" in options:
        factor, n = options.pop("rate_factor"), run.X.shape[0]
        shape = TrainingShape(n, n, int(np.max(run.y)) + 1, run.X.shape[1])
        options["learning_rate"] = factor * default_embedding_rate(Wsabie(**options).get_params(), shape)
    scores, last = _Scores(run), run.job["epochs"]
    with run.measure_separately("compile_s"):
        scores.model = Wsabie(**{**options, "epochs": 1}).fit(run.X[:512], run.y[:512])
        scores(0, 1)

    def on_epoch(stats: Any) -> None:
        n_epochs = stats.epoch + 1
        if (run.searching and run.finish_round(n_epochs, scores, patience=LONGEST)) or n_epochs == last:
            raise _EnoughError

    model = _Watched(**options)
    model.shown_to = scores
    try:
        with run.training():
            model.fit(run.X, run.y, on_epoch=on_epoch)
    except _EnoughError:
        pass
    run.note(model_bytes=scores.model.space_.nbytes)
    if not run.searching:
        run.finish_round(last, scores)


class _Scores:
    """Scores of judged rows. Labels beyond the highest in the training rows are left out (-inf)."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.model: Any = None

    def __call__(self, lo: int, hi: int) -> Any:
        known_scores = self.model.transform(self.run.judge_X[lo:hi]) @ self.model.label_vectors.T
        scores = np.full((hi - lo, self.run.n_labels), -np.inf, np.float32)
        scores[:, : known_scores.shape[1]] = known_scores
        return scores


if __name__ == "__main__":
    main(train)
