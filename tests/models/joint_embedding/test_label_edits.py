"""Labels renamed, merged and removed without renumbering: in the vocabulary, in every answer, on disk."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import wsabie
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.io.alignment import merge_columns
from wsabie.models.index_files import find_index, index_labels, renew_index
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.object_parts.ranker import ObjectParts
from wsabie.storage.model_folder import open_model_folder
from wsabie.vocabulary.label_names import Vocabulary

NAMES = ["red", "green", "rouge", "blue"]


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy corners of a cube; "red" and "rouge" (0, 2) are one corner."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    return (np.eye(3)[[0, 1, 0, 2]][labels] + rng.normal(size=(n, 3)) * 0.3).astype(np.float32), labels


def model(**changes: Any) -> Wsabie:
    X, labels = rows(300, 0)
    held_out_X, truth = rows(200, 1)
    estimator = Wsabie(**{"dim": 8, "threads": 1, "epochs": 10, "replay": 100, **changes})
    return estimator.fit(X, labels, label_names=NAMES, validation=(held_out_X, truth))


def test_old_names_lead_to_merged_labels() -> None:
    words = Vocabulary(NAMES)
    assert words.edits() == {}
    assert words.rename("rouge", "crimson") == 2
    assert words.merge("red", ["crimson"]).tolist() == [2]
    assert words.merge("blue", ["red"]).tolist() == [0]
    assert words.ids(["rouge", "crimson", "red", "blue"]).tolist() == [3, 3, 3, 3]
    assert (words.current_ids().tolist(), words.retired_ids().tolist()) == ([3, 1, 3, 3], [0, 2])
    assert words.remove(["green"]).tolist() == [1]
    assert words.add(["green"]).tolist() == [4]  # the name is free, the number is not
    assert words.current_ids().tolist() == [3, -1, 3, 3, 4]
    again = Vocabulary.restore(list(words), words.edits())
    assert (again.current_ids().tolist(), list(again)) == (words.current_ids().tolist(), list(words))
    assert again.ids(["rouge", "green"]).tolist() == [3, 4]
    assert again.edits() == words.edits() == words.copy().edits()


def test_invalid_label_edits_are_refused() -> None:
    words = Vocabulary(NAMES)
    for act, message in (
        (lambda: words.rename("red", "green"), "another label is called 'green' already"),
        (lambda: words.rename("red", "  "), "is empty"),
        (lambda: words.merge("red", ["red"]), "cannot be merged into itself"),
        (lambda: words.merge("red", ["no such"]), "no label 'no such'"),
    ):
        with pytest.raises((InputError, UnknownLabelError), match=message):
            act()
    assert words.edits() == {}
    for edits in ({"aliases": {"x": 9}, "retired": {}}, {"aliases": {"x": 1}, "retired": {"1": 0}},
                  {"aliases": {}, "retired": {"7": -1}}):  # fmt: skip
        with pytest.raises(ValueError, match="do not agree"):
            Vocabulary.restore(NAMES, edits)


def test_positive_wins_over_negative_in_a_merge() -> None:
    Y = csr_matrix(np.array([[1, 0, -1], [-1, 0, -1], [0, 1, 0], [0, 0, 1]], np.int8))
    assert merge_columns(Y, np.array([0, -1, 0]), 3).toarray().tolist() == [[1, 0, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_renamed_label_ranks_as_before() -> None:
    fitted, X = model(), rows(50, 2)[0]
    annotations = fitted.annotate(X, k=4)
    fitted.rename_label("green", "vert")
    renamed = [[("vert" if name == "green" else name, score) for name, score in row] for row in annotations]
    assert fitted.annotate(X, k=4) == renamed
    fitted.partial_fit(X[:4], ["green"] * 4)  # the old name still leads to it
    assert len(fitted.vocabulary_) == 4


def test_merged_points_are_weighed_by_counts() -> None:
    fitted = model(label_bias=True)
    assert fitted.replay_buffer_ is not None
    assert fitted.calibration_ is not None
    a, b = fitted.replay_buffer_.label_counts[[0, 2]].astype(float)
    W, offsets = fitted.label_vectors.astype(np.float64), (fitted.space_.bias, fitted.calibration_.label_offsets)
    mean = (a * W[0] + b * W[2]) / (a + b)
    length = (a * np.linalg.norm(W[0]) + b * np.linalg.norm(W[2])) / (a + b)
    fitted.merge_labels("red", ["rouge"])
    assert fitted.label_vectors[0] == pytest.approx(mean * length / np.linalg.norm(mean), abs=1e-6)
    for was, now in zip(offsets, (fitted.space_.bias, fitted.calibration_.label_offsets), strict=True):
        assert was[0] != was[2]
        assert now[0] == pytest.approx((a * was[0] + b * was[2]) / (a + b), abs=1e-6)
    assert fitted.replay_buffer_.label_counts.tolist() == [
        a + b,
        *fitted.replay_buffer_.label_counts[1:2],
        0,
        *fitted.replay_buffer_.label_counts[3:],
    ]
    assert not (fitted.replay_buffer_.Y.indices == 2).any()


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_merged_labels_are_never_returned(tmp_path: Path, loaded: bool, similarity: str) -> None:
    fitted, (X, label_ids) = model(similarity=similarity), rows(200, 2)
    old_score = fitted.score(X, np.where(label_ids == 2, 0, label_ids))
    fitted.merge_labels("red", ["rouge"])
    if loaded:
        fitted.save(tmp_path / "m")
        fitted = wsabie.load(tmp_path / "m")
    ids, scores = fitted.rank(X, 4)
    assert sorted(set(ids.ravel().tolist())) == [-1, 0, 1, 3]
    assert np.isneginf(scores[:, 3]).all()
    assert {name for row in fitted.annotate(X, k=4) for name, _ in row} == {"red", "green", "blue"}
    assert fitted.rank(X, 2, candidates=["rouge", "blue"])[0].max() == 3  # by its old name it is red
    assert set(fitted.rank(X, 1, candidates=[2])[0].ravel()) == {0}
    assert sorted(name for name, _ in fitted.neighbours("red", k=9)) == ["blue", "green"]
    assert fitted.predict_proba(X)[:, 2].max() < 1e-6
    names = np.array(NAMES)[label_ids].tolist()
    assert fitted.score(X, label_ids) == fitted.score(X, names) > old_score
    fitted.calibrate(X, names)
    assert fitted.predict_proba(X)[label_ids == 1, 1].mean() > 0.7
    fitted.partial_fit(X, names)
    assert 2 not in fitted.rank(X, 4)[0]
    assert not fitted.space_.labels[2].any()  # training did not touch it
    assert fitted.facts()["labels"] == 3


def test_repeated_merge_changes_nothing() -> None:
    fitted = model().merge_labels("red", ["rouge"])
    W = fitted.label_vectors.copy()
    with pytest.raises(InputError, match="cannot be merged into itself"):
        fitted.merge_labels("red", ["rouge"])
    assert np.array_equal(fitted.label_vectors, W)


def test_former_name_is_not_removed() -> None:
    """It would take the label that it went into, with all that was merged there."""
    words = Vocabulary(["red", "green", "rouge"])
    words.merge("red", ["rouge"])
    words.rename("green", "vert")
    for old, became, now in (("rouge", "is part of", "red"), ("green", "is called", "vert")):
        with pytest.raises(InputError, match=f"the label '{old}' {became} '{now}' now; remove '{now}' if that is"):
            words.remove([old])
        with pytest.raises(InputError, match=f"the label '{old}' {became} '{now}' now; rename '{now}' if that is"):
            words.rename(old, "other")
    assert words.remove(["vert"]).tolist() == [1]


def test_removed_label_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    fitted, (X, labels) = model(), rows(200, 2)
    fitted.remove_labels(["blue"])
    assert 3 not in fitted.rank(X, 4)[0]
    with pytest.raises(InputError, match="was removed"):
        fitted.rank(X, 1, candidates=[3])
    fitted.partial_fit(X[labels == 3], ["blue"] * int((labels == 3).sum()))
    fitted.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert loaded.vocabulary_.ids(["blue"]).tolist() == [4]
    assert loaded.annotate(X[labels == 3][:1], k=1)[0][0][0] == "blue"
    with pytest.raises(InputError, match="no label would be left"):
        loaded.remove_labels(["red", "green", "rouge", "blue"])
    assert loaded.vocabulary_.retired_ids().tolist() == [3]


def test_single_remaining_label_has_no_probabilities() -> None:
    """Nothing is wrong among its rows; more of them, which the sentence asked for, would not help."""
    X, labels = rows(50, 2)
    reduced = model(epochs=2).remove_labels(["green", "rouge", "blue"])
    assert reduced.calibrate(X[labels == 0], ["red"] * int((labels == 0).sum())).calibration_ is None


def test_models_without_label_edits_refuse_them() -> None:
    numbered = Wsabie(dim=4, epochs=1, threads=1).fit(np.eye(3), [0, 1, 2])
    with pytest.raises(InputError, match="nothing but numbers"):
        numbered.merge_labels("0", ["1"])
    parts = ObjectParts([("car", "wheel")], dim=4, epochs=1, threads=1).fit(np.eye(2), ["car", "wheel"])
    with pytest.raises(InputError, match="kind parts cannot be changed"):
        parts.rename_label("car", "auto")
    with pytest.raises(InputError, match="the text 'green'"):
        model().merge_labels("red", "green")


def make_many_labels() -> tuple[Wsabie, Any]:
    X = np.random.default_rng(0).normal(size=(1500, 8)).astype(np.float32)
    return Wsabie(dim=4, epochs=1, threads=1, init="random").fit(X, [f"label {i}" for i in range(1500)]), X


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_index_follows_edited_labels(kind: Any, tmp_path: Path) -> None:
    """Changed labels are scored one by one; the others keep their codes, also after loading."""
    fitted, X = make_many_labels()
    fitted.save(tmp_path / "m")
    index_labels(fitted, kind=kind, folder=tmp_path / "m")
    often = np.argsort(np.bincount(fitted.rank(X, k=10, exact=True)[0].ravel(), minlength=1500))
    rare, merged_away, merged = (int(label) for label in (often[0], *often[-2:]))
    fitted.remove_labels([f"label {rare}"]).merge_labels(f"label {merged}", [f"label {merged_away}"])
    fitted.save(tmp_path / "m")
    assert renew_index(fitted, tmp_path / "m") is None
    loaded = wsabie.load(tmp_path / "m")
    find_index(loaded, tmp_path / "m")
    for model in (fitted, loaded):
        assert model.facts()["index"]["kind"] == kind
        index = model._index()
        index.effort, index.shortlist = 10**6, 14
        ids, true = (model.rank(X, k=10, exact=exact) for exact in (False, True))
        assert not np.isin(ids[0], [rare, merged_away]).any()
        assert (ids[0] == merged).sum() == (true[0] == merged).sum() > 10  # it has no code
        assert all(
            (row_ids == its).mean() >= (1 if kind == "ivf" else 0.95) for row_ids, its in zip(ids, true, strict=True)
        )
    places = open_model_folder(tmp_path / "m" / "index").tensors["places"]
    assert np.flatnonzero(places < 0).tolist() == sorted([rare, merged_away, merged])
    fitted.remove_labels([f"label {label}" for label in often[1:41]])
    assert "index" not in fitted.facts()  # too many to be scored one by one


def test_outdated_index_is_neither_used_nor_reported() -> None:
    fitted, X = make_many_labels()
    index_labels(fitted, kind="int8")
    assert fitted.facts()["index"]["kind"] == "int8"
    fitted.remove_labels(["label 3"])
    assert "index" not in fitted.facts()
    assert 3 not in fitted.rank(X[3:4], k=20)[0]
