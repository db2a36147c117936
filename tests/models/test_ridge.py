"""Ridge regression: the closed form, the low-rank solution, threads, storage, and bad parameters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

import wsabie
from wsabie.models import ridge

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
}


def draw_targets(n: int, n_labels: int, rng: np.random.Generator) -> sp.csr_matrix:
    return sp.csr_matrix(rng.random((n, n_labels)) < 0.3).astype(np.float32)


@pytest.mark.parametrize("shape", [(60, 12), (20, 50)])
def test_dense_weights_equal_those_of_scikit_learn(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    Y = draw_targets(len(X), 5, rng)
    expected = SklearnRidge(alpha=2.0).fit(X, Y.toarray()).predict(X)
    np.testing.assert_allclose(wsabie.Ridge(2.0, scaling=None).fit(X, Y).scores(X), expected, atol=1e-4)


@pytest.mark.parametrize("n_exact", [0, 2048])
def test_sparse_rows_have_the_exact_solution(n_exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "MAX_EXACT_FEATURES", n_exact)  # 0: the solution in all directions
    rng = np.random.default_rng(1)
    X, rows = (sp.random(n, 30, 0.3, "csr", np.float32, random_state=n) for n in (50, 9))
    Y = draw_targets(50, 7, rng)
    expected = SklearnRidge(alpha=0.5, fit_intercept=False).fit(X.toarray(), Y.toarray()).predict(rows.toarray())
    np.testing.assert_allclose(wsabie.Ridge(0.5, scaling=None).fit(X, Y).scores(rows), expected, atol=1e-3)


def test_more_directions_approach_the_exact_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "MAX_EXACT_FEATURES", 0)
    rng = np.random.default_rng(2)
    X = sp.random(200, 80, 0.2, "csr", np.float32, random_state=2)
    Y = draw_targets(200, 6, rng)
    exact = wsabie.Ridge(directions=80).fit(X, Y).scores(X)
    errors = [np.abs(wsabie.Ridge(directions=n).fit(X, Y).scores(X) - exact).mean() for n in (1, 10, 40)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.3 * errors[0]


@pytest.mark.parametrize(("form", "n_exact"), [(sp.csr_matrix, 0), (sp.csr_matrix, 2048), (np.asarray, 0)])
def test_threads_and_storage_change_no_bit(
    tmp_path: Path, form: type, n_exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ridge, "MAX_EXACT_FEATURES", n_exact)
    rng = np.random.default_rng(3)
    X = form(rng.random((300, 70)).astype(np.float32) * (rng.random((300, 70)) < 0.4))
    Y = draw_targets(300, 9, rng)
    scores = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = wsabie.Ridge().fit(X, Y)
            scores.append(model.scores(X))
    assert np.array_equal(*scores)
    model.save(tmp_path / "m")
    assert np.array_equal(wsabie.load(tmp_path / "m").scores(X), scores[0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_exact", [0, 100])
def test_tau_divides_scores_by_a_power_of_the_lengths_of_weights(
    form: Any, n_exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ridge, "MAX_EXACT_FEATURES", n_exact)
    rng = np.random.default_rng(4)
    X = form((rng.random((60, 20)) * (rng.random((60, 20)) < 0.5)).astype(np.float32))
    Y = draw_targets(60, 5, rng)
    plain, other = (wsabie.Ridge(directions=20, tau=tau, scaling=None).fit(X, Y) for tau in (None, 0.5))
    zero = form(np.zeros((1, 20), np.float32))
    weights = plain.scores(form(np.eye(20, dtype=np.float32))) - plain.scores(zero)
    expected = plain.scores(X) / np.sqrt(np.linalg.norm(weights, axis=0))
    np.testing.assert_allclose(other.scores(X), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": 0.0}, "penalty is 0.0; choose a number above 0"),
        ({"penalty": float("nan")}, "penalty"),
        ({"tau": -1.0}, "tau is -1.0; choose None or a number above 0"),
        ({"directions": 0}, "directions is 0; choose a whole number above 0"),
        ({"scaling": "log"}, "scaling is 'log'"),
    ],
)
def test_invalid_parameters_are_refused(parameters: Any, message: str) -> None:
    with pytest.raises(wsabie.InputError, match=message):
        wsabie.Ridge(**parameters).fit(np.eye(3), ["a", "b", "c"])


def test_scikit_learn_checks_pass() -> None:
    results = check_estimator(wsabie.Ridge(), on_skip=None, on_fail=None)
    assert {result["check_name"] for result in results if result["status"] == "failed"} <= set(EXPECTED_TO_FAIL)


@pytest.mark.data
def test_bibtex_is_ranked(data_dir: Path) -> None:
    train, test = (
        wsabie.open_source(data_dir / "bibtex_mulan" / f"bibtex-{side}.arff.gz") for side in ("train", "test")
    )
    model = wsabie.Ridge().fit(train.X, train.Y, label_names=train.label_names)
    assert wsabie.evaluate_scores([(0, model.scores(test.X))], test.Y).means["p@1"] == pytest.approx(0.65, abs=0.02)
