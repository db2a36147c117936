"""Estimators of this package by their name, trained with `fit` as they are shipped: a trial is one round."""

import wsabie
from benchmarks.peers.harness import Run, main


def train(run: Run) -> None:
    """Train once and rank; `params["estimator"]` is the name, the others are its parameters."""
    options = dict(run.params)
    build = getattr(wsabie, options.pop("estimator"))
    names = build().get_params(deep=False)
    options |= {name: value for name, value in (("threads", run.threads), ("seed", run.seed)) if name in names}
    with run.measure_separately("compile_s"):
        build(**options).fit(run.X[:128], run.y[:128]).scores(run.judge_X[:1])
    model = build(**options)
    with run.training():
        model.fit(run.X, run.y)
    run.note(model_bytes=model.n_bytes, kind=getattr(model, "best_", model).kind)
    run.finish_round(1, lambda lo, hi: model.scores(run.judge_X[lo:hi]))


if __name__ == "__main__":
    main(train)
