"""Start from another model's space: labels by name, features by column or name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import wsabie
from wsabie.core.errors import InputError
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.joint_embedding.warm_start import reorder_features

WORDS = [f"word {i}" for i in range(24)]


def rows(n: int, labels: range, seed: int) -> tuple[csr_matrix, list[str]]:
    rng = np.random.default_rng(seed)
    topics = rng.choice(np.array(labels), n)
    X = np.zeros((n, 24), np.float32)
    X[np.arange(n), topics * 3 + rng.integers(0, 3, n)] = 1
    X[np.arange(n), 18 + rng.integers(0, 6, n)] = 1
    return csr_matrix(X), [f"label {y}" for y in topics]


def model(**changes: Any) -> Wsabie:
    return Wsabie(**{"dim": 8, "epochs": 8, "threads": 1, **changes})


def test_warm_start_equals_the_other_space() -> None:
    start = model(label_bias=True).fit(*rows(300, range(5), 0))
    X, y = rows(60, range(6), 1)
    warm = model(init_model=start, epochs=1, learning_rate=1e-6).fit(X, y)
    old = [name for name in warm.vocabulary_ if name in start.vocabulary_]
    mine, theirs = warm.vocabulary_.ids(old), start.vocabulary_.ids(old)
    assert np.allclose(warm.label_vectors[mine], start.label_vectors[theirs], atol=1e-3)
    assert np.allclose(warm.space_.features, start.space_.features, atol=1e-3)
    assert np.allclose(warm.space_.bias[mine], start.space_.bias[theirs], atol=1e-3)
    assert start.space_.bias.any()
    new = warm.label_vectors[warm.vocabulary_.ids(["label 5"])[0]]
    mean = start.transform(X[np.array(y) == "label 5"]).sum(axis=0)
    assert new @ mean > 0.99 * np.linalg.norm(new) * np.linalg.norm(mean)


def test_warm_start_needs_few_rows_and_epochs() -> None:
    start = model().fit(*rows(500, range(6), 0))
    few, held_out = rows(24, range(6), 1), rows(300, range(6), 2)
    warm, cold = (model(init_model=init, epochs=2).fit(*few).score(*held_out) for init in (start, None))
    assert warm > cold + 0.05


def test_warm_started_model_is_cloned_and_saved(tmp_path: Path) -> None:
    start = model().fit(*rows(100, range(6), 0))
    warm = clone(model(init_model=start, replay=20)).fit(*rows(50, range(6), 1))
    warm.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert loaded.init_model is None
    assert np.array_equal(loaded.label_vectors, warm.label_vectors)


def test_features_are_matched_by_name() -> None:
    start = model().fit(*rows(300, range(6), 0))
    order = np.random.default_rng(0).permutation(24)
    names = [WORDS[i] for i in order] + ["another word"]
    moved = reorder_features(start, WORDS, names)
    X, _ = rows(50, range(6), 1)
    wide = csr_matrix(np.hstack([X.toarray()[:, order], np.zeros((50, 1), np.float32)]))
    assert np.allclose(moved.transform(wide), start.transform(X), atol=1e-6)
    assert start.n_features_in_ == 24


def test_dense_features_and_constant_are_matched_by_name() -> None:
    X, y = rows(300, range(6), 0)
    start = model().fit(X.toarray(), y)
    assert start.scaling_.n_added == 1
    order = np.random.default_rng(0).permutation(24)
    moved = reorder_features(start, WORDS, [WORDS[i] for i in order])
    assert np.allclose(moved.transform(X.toarray()[:, order]), start.transform(X.toarray()), atol=1e-6)


def test_incompatible_spaces_are_refused() -> None:
    X, y = rows(50, range(6), 0)
    start = model().fit(X, y)
    for estimator, data, message in (
        (model(init_model=start, dim=9), X, "init_model has dim=8"),
        (model(init_model=start, similarity="cosine"), X, "init_model has similarity='dot'"),
        (model(init_model="folder"), X, "init_model is str; give a fitted Wsabie"),
        (model(init_model=model()), X, "give a fitted Wsabie"),
        (model(init_model=start), X[:, :20], "init_model maps 24 features"),
        (model(init_model=start), X.toarray(), "scaled by 'homogeneous'"),
    ):
        with pytest.raises(InputError, match=message):
            estimator.fit(data, y)
    with pytest.raises(InputError, match="knows 1"):
        reorder_features(start, WORDS, [WORDS[0], "x", "y"])
    with pytest.raises(
        InputError, match="init_model is this model itself; give another one, or go on with partial_fit"
    ):
        start.set_params(init_model=start).fit(X, y)
