"""Start at a reduced-rank ridge regression, compared with its closed form."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from wsabie.core.arrays import Csr, Float32, Matrix
from wsabie.core.errors import InputError
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.protocols import run_in_caller
from wsabie.models.base import ridge_start
from wsabie.models.base.parameter_defaults import TrainingShape, default_ridge_rate, has_ridge_start
from wsabie.models.base.ridge_start import LEAST_PENALTY, PENALTY, place_at_ridge
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.object_parts.ranker import ObjectParts
from wsabie.training.kernel_threads import KernelThreads
from wsabie.vocabulary.word_vectors import WordVectors

NO_SCALING = RowScaling("none", np.zeros(0, np.float32), np.zeros(0, np.float32))


def draw_rows(n: int = 200, d: int = 30, n_labels: int = 12, seed: int = 0) -> tuple[Float32, Matrix]:
    """Rows, and for each one to three labels that a linear map of them prefers."""
    rng = np.random.default_rng(seed)
    X = random_array((n, d), density=0.3, rng=rng, dtype=np.float32).toarray()
    scores = X @ rng.normal(size=(d, n_labels))
    best = np.argsort(-scores, axis=1)
    Y = np.zeros((n, n_labels), np.int8)
    for row, labels in enumerate(best):
        Y[row, labels[: 1 + row % 3]] = 1
    return X, csr_matrix(Y)


def compress(X: Float32) -> Csr:
    sparse = csr_matrix(X)
    return Csr(sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data.astype(np.float32))


def draw_space(d: int, n_labels: int, dim: int = 8, **changes: Any) -> JointSpace:
    return replace(JointSpace.random(d, n_labels, dim, "dot", np.random.default_rng(0)), **changes)


def solve(X: Float32, Y: Matrix, weights: Float32 | None = None, least_penalty: float = LEAST_PENALTY) -> Any:
    """The fitted targets of a ridge regression, dense, in float64."""
    Z, T = X.astype(float), Y.toarray().astype(float)
    T /= np.maximum((T > 0).sum(axis=1, keepdims=True), 1)
    if weights is not None:
        Z, T = Z * np.sqrt(weights)[:, None], T * np.sqrt(weights)[:, None]
    T /= np.sqrt(np.maximum((Y.toarray() > 0).sum(axis=0), 1))
    penalty = (Z**2).sum() * max(PENALTY / Z.shape[1], least_penalty / len(Z))
    return X @ np.linalg.solve(Z.T @ Z + penalty * np.eye(Z.shape[1]), Z.T @ T)


def correlate(space: JointSpace, X: Float32, fitted: Any) -> float:
    """The least correlation of the scores of a label over all rows with its fitted targets."""
    scores = (X @ space.features) @ space.labels.T
    return min(float(np.corrcoef(scores[:, y], fitted[:, y])[0, 1]) for y in range(fitted.shape[1]))


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("case", ["plain", "weights", "negatives"])
def test_full_dimension_start_equals_ridge_regression(sparse: bool, case: str) -> None:
    X, Y = draw_rows()
    weights = np.random.default_rng(1).uniform(0, 3, len(X)).astype(np.float32) if case == "weights" else None
    if case == "negatives":
        dense = Y.toarray()
        dense[:, 0] -= (dense[:, 0] == 0) & (np.arange(len(X)) % 2 == 0)
        Y = csr_matrix(dense)
    space = draw_space(30, 12, dim=16)
    place_at_ridge(
        space, TrainingRows(compress(X) if sparse else X, Y, weights), NO_SCALING, 1.0, run_in_caller, seed=0
    )
    assert correlate(space, X, solve(X, Y, weights)) > 0.999
    if case != "plain":
        assert correlate(space, X, solve(X, draw_rows()[1])) < 0.999


def test_few_rows_do_not_lower_the_penalty_further() -> None:
    X, Y = draw_rows(n=12, d=600, n_labels=4)
    space = draw_space(600, 4)
    place_at_ridge(space, TrainingRows(X, Y), NO_SCALING, 1.0, run_in_caller, seed=0)
    assert correlate(space, X, solve(X, Y)) > 0.999 > correlate(space, X, solve(X, Y, least_penalty=0))


def test_lower_dimension_start_is_the_best_map_of_that_rank() -> None:
    X, Y = draw_rows(n=400, d=40, n_labels=30)
    fitted = solve(X, Y)
    space = draw_space(40, 30, dim=16)
    place_at_ridge(space, TrainingRows(compress(X), Y), NO_SCALING, 1.0, run_in_caller, seed=0)
    points = X @ space.features
    left_over = np.linalg.norm(fitted - points @ np.linalg.lstsq(points, fitted, rcond=None)[0])
    assert left_over < 1.2 * np.linalg.norm(np.linalg.svd(fitted, compute_uv=False)[16:])


def test_row_blocks_and_samples_give_similar_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = draw_rows(n=2000)
    from_all, part = draw_space(30, 12), draw_space(30, 12)
    place_at_ridge(from_all, TrainingRows(compress(X), Y), NO_SCALING, 1.0, run_in_caller, seed=0)
    monkeypatch.setattr(ridge_start, "MAX_ROWS", 500)
    place_at_ridge(part, TrainingRows(compress(X), Y), NO_SCALING, 1.0, run_in_caller, seed=0)
    scores = [(X @ space.features) @ space.labels.T for space in (from_all, part)]
    assert not np.array_equal(*scores)
    assert np.corrcoef(scores[0].ravel(), scores[1].ravel())[0, 1] > 0.97


@pytest.mark.parametrize("sparse", [True, False])
def test_threads_change_no_bit(sparse: bool) -> None:
    X, Y = draw_rows(n=700)
    tables = []
    for n in (1, 2, 3):
        space = draw_space(30, 12)
        with KernelThreads(n) as threads:
            rows = TrainingRows(compress(X) if sparse else X, Y)
            place_at_ridge(space, rows, NO_SCALING, 1.0, threads.split, seed=0)
        tables.append(np.concatenate([space.features, space.labels]).tobytes())
    assert len(set(tables)) == 1


def test_own_labels_score_a_margin_above_the_mean() -> None:
    X, Y = draw_rows()
    space = draw_space(30, 12)
    place_at_ridge(space, TrainingRows(compress(X), Y), NO_SCALING, 2.5, run_in_caller, seed=0)
    scores = (X @ space.features) @ space.labels.T
    rows, labels = Y.nonzero()
    assert np.median(scores[rows, labels] - scores.mean(axis=1)[rows]) == pytest.approx(2.5, rel=1e-3)
    assert np.median(np.linalg.norm(space.labels, axis=1)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_points_have_unit_length_unless_scores_are_products(similarity: Any) -> None:
    X, Y = draw_rows()
    space = draw_space(30, 12, similarity=similarity)
    place_at_ridge(space, TrainingRows(compress(X), Y), NO_SCALING, 1.0, run_in_caller, seed=0)
    assert np.median(np.linalg.norm(space.compute_points(compress(X)), axis=1)) == pytest.approx(1, abs=1e-4)


def test_empty_labels_and_extra_dimensions_stay_random() -> None:
    X, Y = draw_rows(n_labels=4)
    Y = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(len(X), 6))
    space, random_space = draw_space(30, 6), draw_space(30, 6)
    place_at_ridge(space, TrainingRows(compress(X), Y), NO_SCALING, 1.0, run_in_caller, seed=0)
    assert np.array_equal(space.features[:, 4:], random_space.features[:, 4:])
    assert not np.isclose(space.features[:, :4], random_space.features[:, :4]).all(axis=0).any()
    cosines = np.einsum("ij,ij->i", space.labels[4:], random_space.labels[4:]) / np.linalg.norm(
        random_space.labels[4:], axis=1
    )
    assert cosines == pytest.approx(1, abs=1e-5)
    assert not space.labels[:4, 4:].any()


@pytest.mark.parametrize(
    ("rows", "is_whole"),
    [(np.zeros((4, 3), np.float32), False), (np.eye(1, dtype=np.float32), True)],
    ids=["rows of zeros", "one row"],
)
def test_zero_rows_give_finite_tables(rows: Float32, is_whole: bool) -> None:
    model = Wsabie(dim=4, epochs=2, threads=1, init="ridge").fit(csr_matrix(rows), ["a"] * len(rows))
    assert np.isfinite(model.space_.features).all()
    assert np.isfinite(model.label_vectors).all()


def test_auto_chooses_ridge_for_warp_alone() -> None:
    words = WordVectors(["a"], np.ones((1, 4), np.float32))
    assert has_ridge_start(Wsabie().get_params())
    assert has_ridge_start(Wsabie(similarity="cosine").get_params())
    changes: list[dict[str, Any]] = [
        {"init": "random"}, {"learning_rate": 0.1}, {"loss": "auc"}, {"surrogate": "logistic"}, {"init_scale": 0.1},
        {"init_labels": words}, {"similarity": "euclidean"}, {"init_model": Wsabie(init="random")},
    ]  # fmt: skip
    assert not any(has_ridge_start(Wsabie(**change).get_params()) for change in changes)
    assert has_ridge_start(Wsabie(init="ridge", loss="auc", learning_rate=0.1).get_params())
    assert has_ridge_start(Wsabie(init_model=Wsabie()).get_params())
    assert not has_ridge_start(ObjectParts([(0, 1)])._list_parameters())


@pytest.mark.parametrize("changes", [{"init_model": Wsabie()}, {"init_scale": 0.1}])
def test_two_starts_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match='init="ridge" and init_'):
        Wsabie(init="ridge", dim=100, **changes).fit(np.eye(3), ["a", "b", "c"])


def test_learning_rate_follows_rows_and_labels() -> None:
    def rate(n_rows: int, n_pairs: int, n_labels: int, n_features: int) -> float:
        return round(default_ridge_rate(TrainingShape(n_rows, n_pairs, n_labels, n_features)), 5)

    assert rate(4500, 13500, 374, 499) < rate(4880, 11712, 159, 1836)
    assert rate(100, 100, 10, 50) < rate(1000, 1000, 10, 50) < rate(10_000, 10_000, 10, 50)
    assert rate(10**7, 10**7, 10, 50) < 0.01


def test_ridge_start_finds_more_labels_than_a_random_start() -> None:
    X, Y = draw_rows(n=900, d=60, n_labels=40)
    train, held_out = (csr_matrix(X[:600]), Y[:600]), (csr_matrix(X[600:]), Y[600:])
    ridge, chance = (
        Wsabie(dim=16, epochs=3, threads=1, init=init).fit(*train).score(*held_out)  # type: ignore[arg-type]
        for init in ("ridge", "random")
    )
    assert ridge > chance + 0.02
