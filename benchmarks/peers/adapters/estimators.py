"""Estimators of this package by their name, trained with `fit` as they are shipped: a trial is one round."""

import wsabie
from benchmarks.peers.harness import Run, main


def train(run: Run) -> None:
    """Train once and rank; `params["estimator"]` is the name, the others are its parameters."""
    options = dict(run.params)
    build = getattr(wsabie, options.pop("estimator"))
    options["threads"] = run.threads
    with run.measure_separately("compile_s"):
        build(**options, seed=run.seed).fit(run.X[:512], run.y[:512]).scores(run.judge_X[:1])
    model = build(**options, seed=run.seed)
    with run.training():
        model.fit(run.X, run.y)
    run.note(model_bytes=model.n_bytes, kind=getattr(model, "best_", model).kind)
    run.finish_round(1, lambda lo, hi: model.scores(run.judge_X[lo:hi]))


if __name__ == "__main__":
    main(train)
