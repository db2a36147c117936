"""Kernel ridge regression: scikit-learn's figures, landmarks, threads, storage, and bad parameters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

import wsabie
from wsabie.core.arrays import Float32, Matrix

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
}


def draw_data(form: Any, n: int = 60) -> tuple[Matrix, Matrix, Float32]:
    """Return rows in the form, a fifth of whose entries are not zero, the targets, and both in one array each."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, 30)) * (rng.random((n, 30)) < 0.2)).astype(np.float32)
    return form(X), sp.csr_matrix(rng.random((n, 7)) < 0.3), X


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_scores_equal_those_of_scikit_learn(form: Any) -> None:
    X, Y, array = draw_data(form)
    expected = SklearnKernelRidge(alpha=0.3, kernel="rbf", gamma=0.7).fit(array[:50], Y[:50].toarray()).predict(array)
    model = wsabie.KernelRidge(0.3, 0.7, scaling=None).fit(X[:50], Y[:50])
    np.testing.assert_allclose(model.scores(X), expected, atol=1e-4)


def test_scores_of_digits_equal_those_of_scikit_learn() -> None:
    X, labels = load_digits(return_X_y=True)
    train, test = slice(0, 1200), slice(1200, None)
    model = wsabie.KernelRidge().fit(X[train], labels[train])
    rows = model.scaling_(X.astype(np.float32))
    expected = SklearnKernelRidge(kernel="rbf", gamma=1.0).fit(rows[train], np.eye(10)[labels[train]])
    scores = model.scores(X[test])
    np.testing.assert_allclose(scores, expected.predict(rows[test]), atol=1e-4)
    assert np.mean(scores.argmax(axis=1) == labels[test]) > 0.93


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_landmarks_have_the_best_function_of_their_kernels(form: Any) -> None:
    X, Y, array = draw_data(form)
    model = wsabie.KernelRidge(0.2, 0.5, n_landmarks=20, scaling=None).fit(X, Y)
    landmarks = model.landmarks_.T.toarray() if sp.issparse(X) else model.landmarks_
    assert {row.tobytes() for row in landmarks} < {row.tobytes() for row in array}
    kernel = rbf_kernel(array, landmarks, gamma=0.5).astype(np.float64)
    gram = kernel.T @ kernel + 0.2 * rbf_kernel(landmarks, gamma=0.5)
    np.testing.assert_allclose(model.scores(X), kernel @ np.linalg.solve(gram, kernel.T @ Y.toarray()), atol=1e-3)


def test_duplicates_and_large_offsets_are_solved() -> None:
    X = np.repeat(np.eye(3), 30, axis=0) + 1000.0
    model = wsabie.KernelRidge(1e-6, scaling=None).fit(X, np.repeat([0, 1, 2], 30))
    assert model.scores(X).argmax(axis=1).tolist() == np.repeat([0, 1, 2], 30).tolist()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_threads_and_storage_change_no_bit(tmp_path: Path, form: Any) -> None:
    X, Y, _ = draw_data(form, 300)
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models.append(wsabie.KernelRidge(n_landmarks=100).fit(X, Y))
    assert np.array_equal(*(model.coef_ for model in models))
    models[0].save(tmp_path / "m")
    assert np.array_equal(wsabie.load(tmp_path / "m").scores(X), models[1].scores(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": 0.0}, "penalty is 0.0; choose a number above 0"),
        ({"gamma": -1.0}, "gamma is -1.0; choose a number above 0"),
        ({"n_landmarks": 0}, "n_landmarks is 0; choose a whole number above 0"),
    ],
)
def test_invalid_parameters_are_refused(parameters: Any, message: str) -> None:
    with pytest.raises(wsabie.InputError, match=message):
        wsabie.KernelRidge(**parameters).fit(np.eye(3), ["a", "b", "c"])


def test_scikit_learn_checks_pass() -> None:
    results = check_estimator(wsabie.KernelRidge(), on_skip=None, on_fail=None)
    assert {result["check_name"] for result in results if result["status"] == "failed"} <= set(EXPECTED_TO_FAIL)
