"""Models of dense rows: the constant feature inside the scaling, in training, ranking, saving and going on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import wsabie
from wsabie.models.full_rank import FullRank
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker

LABELS = ["often"] * 6 + ["rare", "seldom"]


def make_noise_rows(n: int = 240) -> tuple[Any, list[str]]:
    """Centred rows that say nothing of their labels."""
    return np.random.default_rng(0).standard_normal((n, 6)).astype(np.float32), LABELS * (n // 8)


def make(**changes: Any) -> Wsabie:
    return Wsabie(**{"dim": 20, "epochs": 20, "threads": 1, **changes})


def make_models() -> list[Any]:
    linear = LinearRanker(epochs=20, threads=1)
    return [make(), linear, FullRank(make(), linear, joint=True, threads=1)]


@pytest.mark.parametrize("model", make_models(), ids=lambda model: model.kind)
def test_frequent_labels_come_first_without_information(model: Any, tmp_path: Path) -> None:
    """Centred rows have no direction in common that could say so; the constant feature is one."""
    X, y = make_noise_rows()
    model.fit(X, y)
    ids, scores = model.rank(X, k=1)
    assert (ids == list(model.vocabulary_).index("often")).mean() > 0.95
    assert model.n_features_in_ == 6
    model.save(tmp_path / "m")
    again = wsabie.load(tmp_path / "m").rank(X, k=1)
    assert np.array_equal(again[0], ids)
    assert np.array_equal(again[1], scores)


def test_frequent_labels_do_not_come_first_without_the_constant() -> None:
    X, y = make_noise_rows()
    model = make(scaling=None).fit(X, y)
    assert (model.rank(X, k=1)[0] == list(model.vocabulary_).index("often")).mean() < 0.9


def test_scores_stay_products_of_points() -> None:
    X, y = make_noise_rows()
    model = make().fit(X, y)
    for _ in range(2):
        assert model.scores(X) == pytest.approx(model.transform(X) @ model.label_vectors.T, abs=1e-5)
        model.partial_fit(X[:8], ["new"] * 8)
    assert "new" in list(model.vocabulary_)
    assert model.space_.n_features == 7


def test_checkpoint_resumes_bit_for_bit(tmp_path: Path) -> None:
    X, y = make_noise_rows()

    def stop(stats: Any) -> None:
        if stats.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(epochs=5).fit(X, y, checkpoint=tmp_path / "c", on_epoch=stop)
    resumed = make(epochs=5).fit(X, y, checkpoint=tmp_path / "c", resume=True)
    assert np.array_equal(resumed.space_.features, make(epochs=5).fit(X, y).space_.features)


@pytest.mark.parametrize("units", [False, True])
def test_digits_are_recognised_in_any_unit(units: bool) -> None:
    """Grey values as they are, and each in a unit of its own (up to a million times the others')."""
    digits = load_digits()
    X = digits.data * (10.0 ** np.random.default_rng(0).integers(-3, 4, 64) if units else 1)
    model = make(epochs=15).fit(X[:1200], digits.target[:1200])
    assert model.score(X[1200:], digits.target[1200:]) > 0.92
