"""The full-rank model: the sum of its terms, the blend that validation rows choose, both terms trained at once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toy_tasks import names, toy
from wsabie.core.errors import InputError
from wsabie.models.full_rank import BLENDS, FullRank
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.training.checkpoints import CheckpointFolder

X, Y, ANSWER = toy()
VALIDATION = (X[::3], names(ANSWER[::3]))


def make_model(**changes: Any) -> FullRank:
    return FullRank(Wsabie(dim=16, epochs=3), LinearRanker(epochs=3), threads=1, **changes)


@pytest.mark.parametrize("joint", [False, True])
def test_scores_are_the_blended_sum_of_the_terms(joint: bool) -> None:
    model = make_model(blend=0.5, joint=joint).fit(X, names(ANSWER))
    blend = 1.0 if joint else 0.5
    assert model.blend_ == blend
    np.testing.assert_allclose(
        model.scores(X), model.linear_.scores(X) + blend * model.embedding_.scores(X), rtol=1e-5, atol=1e-5
    )
    assert len(model.history_) == (3 if joint else 6)


def test_best_tried_blend_is_chosen() -> None:
    model = make_model().fit(X, names(ANSWER), validation=VALIDATION)
    scores_by_blend = dict(model.searched_)
    assert set(BLENDS) <= set(scores_by_blend)
    assert scores_by_blend[model.blend_] == max(scores_by_blend.values())
    validated = make_model(blend=model.blend_).fit(X, names(ANSWER), validation=VALIDATION)
    assert validated.score(*VALIDATION) == pytest.approx(scores_by_blend[model.blend_], abs=1e-6)


def test_blend_search_is_refined_around_the_best() -> None:
    """Two rounds of five more; the sum of noisy terms is best at a blend that no first round has."""
    model = make_model().fit(X, names(ANSWER), validation=VALIDATION)
    noise = np.random.default_rng(3)
    model.linear_.space_.weights += noise.standard_normal(model.linear_.coef_.shape).astype(np.float32)
    model.embedding_.space_.labels[:, :16] += 0.5 * noise.standard_normal((12, 16))
    model._search_blend(*VALIDATION)
    scores_by_blend = dict(model.searched_)
    finer = sorted(set(scores_by_blend) - set(BLENDS))
    coarse = max(BLENDS, key=lambda blend: scores_by_blend[blend])
    at = BLENDS.index(coarse)
    assert 5 < len(finer) <= 10
    assert BLENDS[max(at - 1, 0)] < finer[0] <= finer[-1] < BLENDS[min(at + 1, len(BLENDS) - 1)]


def test_metric_chooses_the_blend() -> None:
    """With two right labels to a row the precision at 4 is at most .5, whatever the MAP."""
    model = make_model().fit(X, names(ANSWER), validation=VALIDATION, metric="p@4")
    first = [{name for name, _ in row} for row in model.annotate(VALIDATION[0], 4)]
    right = np.mean([len(top & {*true}) / 4 for top, true in zip(first, VALIDATION[1], strict=True)])
    assert max(figure for _, figure in model.searched_) == pytest.approx(right, abs=1e-6)
    assert model.validation_map_ == pytest.approx(model.score(*VALIDATION), abs=1e-6)


def test_useless_term_gets_no_weight() -> None:
    """The blend is the largest if the linear term is loud noise, and 0 if the points are."""
    model = make_model().fit(X, names(ANSWER), validation=VALIDATION)
    noise = np.random.default_rng(0)
    model.linear_.space_.weights[:] = noise.standard_normal(model.linear_.coef_.shape)
    model._search_blend(*VALIDATION)
    assert model.blend_ > 1
    model = make_model().fit(X, names(ANSWER), validation=VALIDATION)
    model.embedding_.space_.labels[:, :16] = noise.standard_normal((12, 16))
    model._search_blend(*VALIDATION)
    assert model.blend_ < 1


def test_joint_training_moves_both_terms_with_l2() -> None:
    free = make_model(joint=True).fit(X, names(ANSWER))
    short = FullRank(Wsabie(dim=16, epochs=3), LinearRanker(epochs=3, l2=1.0), joint=True, threads=1)
    short.fit(X, names(ANSWER))
    assert free.linear_.coef_.any()
    assert np.abs(short.linear_.coef_).sum() < np.abs(free.linear_.coef_).sum()
    limited = FullRank(Wsabie(dim=16, epochs=3), LinearRanker(max_norm=0.2), joint=True, threads=1).fit(
        X, names(ANSWER)
    )
    assert np.linalg.norm(free.linear_.coef_, axis=1).max() > 0.2
    assert np.linalg.norm(limited.linear_.coef_, axis=1).max() <= 0.2 * (1 + 1e-5)
    two = make_model(joint=True).set_params(threads=2).fit(X, names(ANSWER))
    assert np.array_equal(free.linear_.coef_, two.linear_.coef_)
    assert np.array_equal(free.embedding_.label_vectors, two.embedding_.label_vectors)


def test_stopped_joint_training_resumes_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bias in each term, which both have moved."""
    monkeypatch.setattr(CheckpointFolder.__init__, "__kwdefaults__", {"resume": False, "every": 0.0})

    def fit(**options: Any) -> FullRank:
        model = FullRank(Wsabie(dim=16, epochs=4, label_bias=True), LinearRanker(l2=0.01, max_norm=1.0), joint=True)
        return model.set_params(threads=1).fit(X, names(ANSWER), **options)

    def stop(stats: Any) -> None:
        if stats.epoch == 2:
            raise KeyboardInterrupt

    uninterrupted = fit()
    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint=tmp_path / "c", on_epoch=stop)
    resumed = fit(checkpoint=tmp_path / "c", resume=True)
    assert np.abs(uninterrupted.linear_.space_.bias).max() > 0.01
    assert np.array_equal(resumed.scores(X), uninterrupted.scores(X))
    assert len(resumed.history_) == 4


def test_bias_in_joint_training_uses_the_label_rate() -> None:
    """One row, one step up: the sum of both biases is the rate."""
    points = Wsabie(dim=4, epochs=1, label_bias=True, learning_rate=0.25, init_scale=0.01)
    model = FullRank(points, LinearRanker(), joint=True, threads=1)
    model.fit(np.eye(2)[:1], [["a"]], label_names=["a", "b"])
    bias = model.embedding_.space_.bias + model.linear_.space_.bias
    assert bias.tolist() == [0.25, -0.25]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "blend is chosen on validation rows"),
        ({"blend": -1}, "blend is -1"),
        ({"blend": "much"}, "blend is 'much'"),
    ],
)
def test_invalid_blend_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model(**changes).fit(X, names(ANSWER))


def test_adaptive_sampler_is_refused() -> None:
    with pytest.raises(InputError, match="scores are by dot and weights; choose another sampler"):
        FullRank(Wsabie(sampler="adaptive"), joint=True).fit(X, names(ANSWER))
