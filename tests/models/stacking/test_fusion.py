"""Fusion: parts and their sum, members that are left out, groups, storage, and public sets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import wsabie

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
    "check_fit2d_1sample": "one row leaves none to be held out, and the message says so",
}


def draw_rows(seed: int = 0, n: int = 300) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    centres, numbers = rng.standard_normal((12, 10)), rng.integers(0, 12, n)
    return centres[numbers] + 0.8 * rng.standard_normal((n, 10)), [f"label {number}" for number in numbers]


def test_scores_are_the_sum_of_the_members() -> None:
    X, Y = draw_rows()
    model = wsabie.Fusion(threads=1).fit(X, Y)
    scores = model.scores(X)
    np.testing.assert_allclose(sum(model.scores_by_member(X)), scores, rtol=1e-5, atol=1e-5)
    for member, weight, part in zip(model.members_, model.weights_, model.scores_by_member(X), strict=True):
        np.testing.assert_allclose(part, np.float32(weight) * member.scores(X))
    ids, best_scores = model.rank(X, 3)
    assert np.array_equal(np.take_along_axis(scores, ids, axis=1), best_scores)
    assert model.n_bytes == sum(member.n_bytes for member in model.members_)


def test_useless_member_is_dropped() -> None:
    Y = [f"label {i % 12}" for i in range(120)]
    model = wsabie.Fusion([wsabie.Popularity(), wsabie.NearestMean(scaling=None)]).fit(
        np.eye(12)[np.arange(120) % 12], Y
    )
    assert [member.kind for member in model.members_] == ["nearest-mean"]
    assert model.facts()["members"].keys() == {"nearest-mean"}


def test_members_train_on_all_rows_with_seed_and_threads() -> None:
    X, Y = draw_rows()
    unfitted = wsabie.Wsabie(dim=4, epochs=2)
    model = wsabie.Fusion([unfitted], threads=1, seed=5).fit(X, Y)
    alone = wsabie.Wsabie(dim=4, epochs=2, threads=1, seed=5).fit(X, Y)
    assert np.array_equal(model.members_[0].scores(X), alone.scores(X))
    assert not hasattr(unfitted, "vocabulary_")
    assert model.neighbours("label 1", 2) == alone.neighbours("label 1", 2)


def test_near_copies_in_groups_do_not_distort_weights() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((150, 10)), 2, axis=0) + 1e-3 * rng.standard_normal((300, 10))
    Y, groups = [f"label {i}" for i in np.repeat(rng.integers(0, 15, 150), 2)], [str(i // 2) for i in range(300)]
    members = [wsabie.NearestNeighbours(k=1)]
    assert wsabie.Fusion(members, k=1).fit(X, Y).validation_ndcg_ > 0.75
    assert wsabie.Fusion(members, k=1).fit(X, Y, groups=groups).validation_ndcg_ < 0.3  # labels are chance


def test_groups_of_another_length_are_refused() -> None:
    X, Y = draw_rows(n=30)
    with pytest.raises(wsabie.InputError, match="there are 2 groups for 30 rows; give one per row"):
        wsabie.Fusion().fit(X, Y, groups=["a", "b"])


def test_stated_holdout_share_is_used_once() -> None:
    X, Y = draw_rows()
    rounds = []

    class Counter(wsabie.NearestMean):
        def fit(self, X: Any, *arguments: Any, **options: Any) -> Any:
            rounds.append(len(X))
            return super().fit(X, *arguments, **options)

    wsabie.Fusion([Counter()], hold_out=0.25).fit(X, Y)
    assert rounds == [225, 300]
    with pytest.raises(wsabie.InputError, match=r"hold_out is 1; choose None or a number above 0 up to 0\.9"):
        wsabie.Fusion(hold_out=1).fit(X, Y)


def test_labels_with_one_row_each_give_no_weights() -> None:
    with pytest.raises(wsabie.InputError, match="each label has one row or group, so that none of 5 sample"):
        wsabie.Fusion().fit(np.eye(5), [f"label {i}" for i in range(5)])


@pytest.mark.parametrize("form", [sp.csr_matrix, np.asarray])
def test_loaded_model_gives_the_same_bits(tmp_path: Path, form: Any) -> None:
    X, Y = draw_rows()
    X = form(np.abs(X))
    model = wsabie.Fusion(threads=1).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert np.array_equal(loaded.scores(X), model.scores(X))
    assert loaded.facts() == model.facts()
    assert list(loaded.vocabulary_) == list(model.vocabulary_)


@pytest.mark.parametrize(
    ("members", "message"),
    [([], "there are no members"), ([wsabie.Ridge(penalty=-1)], "penalty is -1"), ([3], "a member is int")],
)
def test_invalid_members_are_refused(members: Any, message: str) -> None:
    X, Y = draw_rows(n=30)
    with pytest.raises(wsabie.InputError, match=message):
        wsabie.Fusion(members).fit(X, Y)


def test_parameters_follow_scikit_learn() -> None:
    assert clone(wsabie.Fusion([wsabie.Ridge()], k=3)).get_params(deep=False)["k"] == 3
    results = check_estimator(wsabie.Fusion([wsabie.NearestMean()]), on_skip=None, on_fail=None)
    assert {result["check_name"] for result in results if result["status"] == "failed"} <= set(EXPECTED_TO_FAIL)


@pytest.mark.data
def test_fusion_beats_every_member_on_corel5k(data_dir: Path) -> None:
    folder = data_dir / "corel5k_mulan"
    train, test = (wsabie.open_source(folder / f"Corel5k-{side}-sparse.arff") for side in ("train", "test"))
    members = [wsabie.Wsabie(epochs=10), wsabie.NearestMean(), wsabie.NearestNeighbours(k=50)]
    model = wsabie.Fusion(members).fit(train.X, train.Y, label_names=train.label_names)
    assert len(model.members_) == 3

    def measure(scores: np.ndarray) -> float:
        return wsabie.evaluate_scores([(0, scores)], test.Y).means["ndcg@10"]

    assert measure(model.scores(test.X)) > max(measure(member.scores(test.X)) for member in model.members_)
