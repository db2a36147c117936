"""One logistic regression per label: equal to scikit-learn's own, refused when too large, right on real data."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_estimator

from wsabie.base.errors import InputError
from wsabie.models.one_vs_rest import OneVsRest, TooLargeError

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is no number is an InputError, which is a ValueError, not a TypeError",
}


def task(n: int = 60, d: int = 6, n_labels: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d)).astype(np.float32)
    Y = (X @ rng.standard_normal((d, n_labels)) + rng.standard_normal((n, n_labels)) > 0.5).astype(np.int8)
    return X, Y


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_scores_are_those_of_scikit_learn(sparse: bool, threads: int) -> None:
    X, Y = task()
    given = sp.csr_matrix(X) if sparse else X
    model = OneVsRest(2.0, rows=None, threads=threads).fit(given, Y)
    oracle = OneVsRestClassifier(LogisticRegression(C=2.0, solver="liblinear")).fit(X, Y)
    np.testing.assert_allclose(model.scores(given), oracle.decision_function(X), atol=1e-4)
    assert model.n_unconverged_ == 0


def test_labels_of_no_row_and_of_every_row_keep_their_log_odds() -> None:
    X, Y = task()
    Y[:, 0], Y[:, 1] = 0, 1
    scores = OneVsRest(threads=1).fit(X, Y).scores(X[:3])
    assert scores[:, 0] == pytest.approx([np.log(0.5 / 60.5)] * 3)
    assert scores[:, 1] == pytest.approx([np.log(60.5 / 0.5)] * 3)


def test_explicit_negatives_are_negatives() -> None:
    X, Y = task()
    signed = Y.copy()
    signed[(Y == 0) & (np.arange(60) % 2 == 0)[:, None]] = -1
    np.testing.assert_array_equal(
        OneVsRest(threads=1).fit(X, signed).scores(X), OneVsRest(threads=1).fit(X, Y).scores(X)
    )


def test_what_is_too_large_is_refused_before_it_starts_with_its_price() -> None:
    X, Y = task()
    with pytest.raises(TooLargeError, match=r"4 labels and 6 features needs .* the limits are 1e-08 GB and 10 min"):
        OneVsRest(max_gigabytes=1e-8).fit(X, Y)
    model = OneVsRest(max_minutes=1e-6, threads=1)
    with pytest.raises(TooLargeError, match="use fewer labels, or raise max_gigabytes and max_minutes"):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")


def test_memory_and_time_are_stated_before_the_start(caplog: pytest.LogCaptureFixture) -> None:
    X, Y = task()
    with caplog.at_level(logging.INFO, logger="wsabie"):
        model = OneVsRest(threads=1).fit(X, Y)
    assert "4 labels and 6 features needs 0.0 GB and about 0.1 minutes" in caplog.text
    work = model.work(n_values=360, n_features=6, counts=Y.sum(0), rows=60)
    assert work.n_bytes == model.coef_.nbytes + model.intercept_.nbytes
    twice = model.work(n_values=360, n_features=6, counts=[*Y.sum(0)] * 2, rows=60)
    assert twice.seconds == pytest.approx(2 * work.seconds)
    assert model.work(n_values=360, n_features=6, counts=[0, 60], rows=60).seconds == 0


def test_labels_that_have_not_settled_are_counted_not_warned_of() -> None:
    X, Y = task()
    assert OneVsRest(1e6, rows=None, max_iter=1, threads=1).fit(X, Y).n_unconverged_ == 4


def test_progress_tells_of_every_label() -> None:
    seen = []

    class Bar:
        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *exc: object) -> None:
            return None

        def advance(self, n: int = 1, **figures: float) -> None:
            seen.append(n)

    class Told:
        def stage(self, name: str, total: int | None, unit: str) -> Bar:
            assert (total, unit) == (4, "labels")
            return Bar()

    OneVsRest(threads=1).fit(*task(), progress=Told())
    assert sum(seen) == 4


def test_it_follows_scikit_learn() -> None:
    assert clone(OneVsRest(3.0)).get_params()["C"] == 3.0
    found = check_estimator(OneVsRest(threads=1), on_skip=None, on_fail=None)
    failed = {check["check_name"] for check in found if check["status"] == "failed"}
    assert failed <= set(EXPECTED_TO_FAIL)


@pytest.mark.parametrize("wrong", [{"C": 0}, {"max_minutes": -1}, {"max_gigabytes": float("nan")}, {"max_iter": 0}])
def test_parameters_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="choose a number above 0"):
        OneVsRest(**wrong).fit(*task())


@pytest.mark.data
def test_corel5k(data_dir: Path) -> None:
    from wsabie.sources.mulan import read_mulan

    folder = data_dir / "corel5k_mulan"
    train = read_mulan(folder / "Corel5k-train-sparse.arff")
    test = read_mulan(folder / "Corel5k-test-sparse.arff")
    model = OneVsRest().fit(train.X, train.Y, label_names=train.label_names)
    assert model.score(test.X, test.Y) == pytest.approx(0.333, abs=0.005)
