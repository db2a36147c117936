"""One classifier per label: equal to scikit-learn's own, refused when too large, right on real data."""

import logging
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from toy_tasks import toy
from wsabie.core.errors import InputError
from wsabie.models import one_vs_rest
from wsabie.models.one_vs_rest import LEARNERS, ModelTooLargeError, OneVsRest, select_training_rows
from wsabie.storage.rejects import Rejects

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
}


def task(n: int = 60, d: int = 6, n_labels: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d)).astype(np.float32)
    Y = (X @ rng.standard_normal((d, n_labels)) + rng.standard_normal((n, n_labels)) > 0.5).astype(np.int8)
    return X, Y


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_scores_equal_those_of_scikit_learn(sparse: bool, threads: int) -> None:
    X, Y = task()
    rows = sp.csr_matrix(X) if sparse else X
    model = OneVsRest(2.0, scaling=None, threads=threads).fit(rows, Y)
    oracle = OneVsRestClassifier(LogisticRegression(C=2.0, solver="liblinear")).fit(X, Y)
    np.testing.assert_allclose(model.scores(rows), oracle.decision_function(X), atol=1e-4)
    assert model.n_unconverged_ == 0


def test_dense_labels_share_passes_and_threads_change_no_bit() -> None:
    X, Y = task(n=400, d=20, n_labels=70)  # three blocks
    models = [OneVsRest(threads=threads).fit(X, Y) for threads in (1, 2)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    oracle = OneVsRestClassifier(LogisticRegression(solver="liblinear")).fit(models[0].scaling_(X), Y)
    np.testing.assert_allclose(models[0].scores(X), oracle.decision_function(models[0].scaling_(X)), atol=1e-2)
    assert models[0].n_unconverged_ == 0
    assert OneVsRest(threads=1, max_iter=1).fit(X, Y).n_unconverged_ > 60


def test_large_step_is_halved_until_the_loss_falls() -> None:
    rng = np.random.default_rng(0)
    X = 30 * rng.standard_normal((200, 3)).astype(np.float32)  # far from the quadratic
    Y = (X[:, :1] + 10 * rng.standard_normal((200, 1)) > 60).astype(np.int8)
    oracle = OneVsRestClassifier(LogisticRegression(C=100, solver="liblinear", tol=1e-8)).fit(X, Y)
    model = OneVsRest(100.0, scaling=None, threads=1).fit(X, np.hstack([Y, 1 - Y]))
    np.testing.assert_allclose(model.scores(X)[:, 0], oracle.decision_function(X), atol=0.05)


def test_constant_labels_keep_their_log_odds() -> None:
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


def test_too_large_problems_are_refused_with_their_cost() -> None:
    X, Y = task()
    with pytest.raises(
        ModelTooLargeError, match=r"4 labels and 6 features needs .* the limits are 1e-08 GB and 10 min"
    ):
        OneVsRest(max_gigabytes=1e-8).fit(X, Y)
    model = OneVsRest(max_minutes=1e-6, threads=1)
    with pytest.raises(ModelTooLargeError, match="set max_negatives, or raise max_gigabytes and max_minutes"):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")


def test_large_memory_and_time_needs_are_announced(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y = task()
    with caplog.at_level(logging.INFO, logger="wsabie"):
        model = OneVsRest(threads=1).fit(X, Y)
        assert caplog.text == ""
        monkeypatch.setattr(one_vs_rest, "LARGE_MEMORY_BYTES", 100)
        OneVsRest(threads=1).fit(X, Y)
    assert "4 labels and 6 features needs 0.0 GB and about 0.1 minutes" in caplog.text
    work = model.work(n_values=360, n_features=6, counts=Y.sum(0), rows=60)
    assert work.n_bytes == model.coef_.nbytes + model.intercept_.nbytes
    twice = model.work(n_values=360, n_features=6, counts=[*Y.sum(0)] * 2, rows=60)
    assert twice.seconds == pytest.approx(2 * work.seconds)
    assert model.work(n_values=360, n_features=6, counts=[0, 60], rows=60).seconds == 0


def test_unconverged_labels_are_counted() -> None:
    X, Y = task()
    assert OneVsRest(1e6, scaling=None, max_iter=1, threads=1).fit(X, Y).n_unconverged_ == 4


def test_progress_covers_every_label() -> None:
    steps = []

    class Bar:
        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *exc: object) -> None:
            return None

        def advance(self, n: int = 1, **figures: float) -> None:
            steps.append(n)

    class Recorder:
        def stage(self, name: str, total: int | None, unit: str) -> Bar:
            assert (total, unit) == (4, "labels")
            return Bar()

    OneVsRest(threads=1).fit(*task(), progress=Recorder())
    assert sum(steps) == 4


def train_passive_aggressive(X: Any, y: Any, C: float, passes: list[Any]) -> Any:
    """PA-I of Crammer et al. (2006), row after row: tau = min(C, loss / |x|^2), w += tau y x."""
    w = np.zeros(X.shape[1])
    for order in passes:
        for i in order:
            loss = max(0.0, 1 - y[i] * (w @ X[i]))
            w += min(C, loss / (X[i] @ X[i])) * y[i] * X[i]
    return w


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_passive_aggressive_equals_a_manual_computation(C: float) -> None:
    X = np.diag([2.0, 1.0, 0.5])
    model = OneVsRest(C, learner="passive-aggressive", scaling=None, max_iter=3, threads=1).fit(
        X, [["a"], ["b"], ["b"]]
    )
    # three visits of each row, of which no other row undoes anything, until its margin is 1
    step = {2.0: min(3 * C, 1 / 4), 1.0: min(3 * C, 1), 0.5: min(3 * C, 4)}
    expected = [[step[2.0] * 2, -step[1.0], -step[0.5] / 2], [-step[2.0] * 2, step[1.0], step[0.5] / 2]]
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-5)
    assert model.intercept_.tolist() == [0, 0]


@pytest.mark.parametrize("sparse", [True, False])
def test_passive_aggressive_pass_equals_the_twin_in_some_order(sparse: bool) -> None:
    X, y = np.array([[1.0, 0.5, 0], [0.4, 1, 0.3], [0.2, 0.1, 1]]), np.array([1, -1, -1])
    rows = sp.csr_matrix(X) if sparse else X
    model = OneVsRest(0.7, learner="passive-aggressive", scaling=None, max_iter=1, threads=1)
    weights = model.fit(rows, [["a"], ["b"], ["b"]]).coef_[0]
    twins = [train_passive_aggressive(X, y, 0.7, [order]) for order in permutations(range(3))]
    assert min(np.abs(weights - twin).max() for twin in twins) < 1e-6
    assert np.ptp(np.array(twins), 0).max() > 0.01


def test_svm_scores_equal_those_of_scikit_learn() -> None:
    X, Y = task()
    oracle = OneVsRestClassifier(LinearSVC(C=0.3, dual=False)).fit(X, Y)
    svm_scores = OneVsRest(0.3, learner="svm", scaling=None, threads=1).fit(X, Y).scores(X)
    np.testing.assert_allclose(svm_scores, oracle.decision_function(X), atol=1e-4)


def test_hinge_weights_equal_those_of_scikit_learn() -> None:
    """C is the weight of a row against the penalty: alpha = 1 / (C n)."""
    X, Y = task()
    weights = OneVsRest(0.3, learner="hinge", scaling=None, threads=1, seed=2).fit(X, Y).coef_
    for y in range(4):
        oracle = SGDClassifier("hinge", alpha=1 / (0.3 * 60), fit_intercept=False, max_iter=100, random_state=2 + y)
        np.testing.assert_allclose(weights[y], oracle.fit(X, Y[:, y]).coef_[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("max_negatives", [None, 15])
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_learns_and_threads_change_no_bit(learner: Any, max_negatives: int | None) -> None:
    X, Y, answer = toy()
    params = {"learner": learner, "max_negatives": max_negatives, "seed": 3}
    single_threaded, two = (OneVsRest(threads=threads, **params).fit(X, Y) for threads in (1, 2))
    assert np.array_equal(single_threaded.coef_, two.coef_)
    assert np.array_equal(single_threaded.intercept_, two.intercept_)
    assert np.array_equal(np.sort(single_threaded.rank(X, 2)[0], 1), answer)
    reseeded = OneVsRest(threads=1, **{**params, "seed": 4}).fit(X, Y)
    assert np.array_equal(single_threaded.coef_, reseeded.coef_) is (
        max_negatives is None and learner in ("logistic", "svm")
    )


@given(st.integers(2, 40), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_negative_sample_has_the_requested_size(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    positives = np.sort(rng.choice(n, rng.integers(1, n), replace=False))
    row_ids, share = select_training_rows(positives, n, m, [seed, 1])
    assert np.isin(positives, row_ids).all()
    assert (np.diff(row_ids) > 0).all()
    assert row_ids[0] >= 0
    assert row_ids[-1] < n
    assert len(row_ids) == len(positives) + min(m, n - len(positives))
    assert share == min(m, n - len(positives)) / (n - len(positives))


def test_negatives_are_sampled_evenly() -> None:
    row_ids = np.concatenate([select_training_rows(np.array([2, 5]), 8, 3, [seed])[0] for seed in range(600)])
    times = np.bincount(row_ids, minlength=8)
    assert times[[2, 5]].tolist() == [600, 600]
    assert np.abs(times[[0, 1, 3, 4, 6, 7]] - 300).max() < 5 * np.sqrt(600 / 4)


def test_log_odds_are_corrected_for_sampling() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 2))
    Y = sp.csr_matrix((rng.random(4000) < 1 / (1 + np.exp(3 - X[:, 0])))[:, None].astype(np.int8))
    full = OneVsRest(scaling=None, threads=1).fit(X, Y).scores(X[:50])
    subsampled = OneVsRest(scaling=None, threads=1, max_negatives=400).fit(X, Y).scores(X[:50])
    assert np.abs(subsampled - full).mean() < 0.3  # left as it is, the intercept would be off by log(3700 / 400) = 2.2


def test_fewer_negatives_take_less_time() -> None:
    counts, sizes = np.full(16_000, 12), {"n_values": 49_000_000, "n_features": 10_000, "rows": 200_000}
    every, subsampled = (OneVsRest(max_negatives=m, threads=2).work(counts=counts, **sizes) for m in (None, 300))
    assert every.n_bytes == subsampled.n_bytes == 4 * 16_000 * 10_001
    assert every.seconds > 3600
    assert subsampled.seconds < 600


def test_scoring_copies_no_weights(tmp_path: Path) -> None:
    X, Y, _ = toy()
    model = OneVsRest(learner="svm", threads=1).fit(X, Y)
    model.save(tmp_path / "m")
    for model_at_hand in (model, OneVsRest.load(tmp_path / "m")):
        assert model_at_hand.coef_.shape == (12, 30)
        assert model_at_hand.coef_.T.flags.c_contiguous


def test_scikit_learn_conventions_hold() -> None:
    assert clone(OneVsRest(3.0)).get_params()["C"] == 3.0
    checks = check_estimator(OneVsRest(threads=1), on_skip=None, on_fail=None)
    failed = {check["check_name"] for check in checks if check["status"] == "failed"}
    assert failed <= set(EXPECTED_TO_FAIL)


@pytest.mark.parametrize(
    "wrong", [{"C": 0}, {"C": "a"}, {"C": None}, {"max_minutes": -1}, {"max_gigabytes": float("nan")}]
)
def test_invalid_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="choose a number above 0"):
        OneVsRest(**wrong).fit(*task())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learner": "perceptron"}, "choose one of logistic, passive-aggressive, hinge, svm"),
        ({"learner": None}, "learner is None"),
        ({"max_negatives": 0}, "choose None or a whole number above 0"),
        ({"max_negatives": 2.5}, "choose None or a whole number above 0"),
        ({"seed": -1}, "seed is -1; choose a whole number from 0"),
        ({"threads": 0}, "threads is 0; choose None or a whole number"),
        ({"max_iter": 0}, "max_iter is 0; choose a whole number"),
    ],
)
def test_invalid_choices_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OneVsRest(**wrong).fit(*task())


@pytest.mark.data
def test_corel5k_map_is_reached(data_dir: Path) -> None:
    from wsabie.io.formats.mulan import read_mulan

    folder = data_dir / "corel5k_mulan"
    train = read_mulan(folder / "Corel5k-train-sparse.arff", rejects=Rejects())
    test = read_mulan(folder / "Corel5k-test-sparse.arff", rejects=Rejects())
    model = OneVsRest().fit(train.X, train.Y, label_names=train.label_names)
    assert model.score(test.X, test.Y) == pytest.approx(0.333, abs=0.005)
