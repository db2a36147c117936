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
from wsabie.models.object_parts.object_parts import ObjectParts
from wsabie.models.wsabie.estimator import Wsabie
from wsabie.storage.model_folder import open_model_folder
from wsabie.vocabulary.label_names import Vocabulary

NAMES = ["red", "green", "rouge", "blue"]


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy corners of a cube; "red" and "rouge" (0, 2) are one corner."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 4, n)
    return (np.eye(3)[[0, 1, 0, 2]][which] + rng.normal(size=(n, 3)) * 0.3).astype(np.float32), which


def model(**changes: Any) -> Wsabie:
    X, which = rows(300, 0)
    held, truth = rows(200, 1)
    own = Wsabie(**{"dim": 8, "threads": 1, "epochs": 10, "replay": 100, **changes})
    return own.fit(X, which, label_names=NAMES, validation=(held, truth))


def test_names_lead_to_what_a_label_became() -> None:
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


def test_what_names_refuse() -> None:
    words = Vocabulary(NAMES)
    for act, said in (
        (lambda: words.rename("red", "green"), "another label is called 'green' already"),
        (lambda: words.rename("red", "  "), "is empty"),
        (lambda: words.merge("red", ["red"]), "cannot be merged into itself"),
        (lambda: words.merge("red", ["no such"]), "no label 'no such'"),
    ):
        with pytest.raises((InputError, UnknownLabelError), match=said):
            act()
    assert words.edits() == {}
    for edits in ({"aliases": {"x": 9}, "retired": {}}, {"aliases": {"x": 1}, "retired": {"1": 0}},
                  {"aliases": {}, "retired": {"7": -1}}):  # fmt: skip
        with pytest.raises(ValueError, match="do not agree"):
            Vocabulary.restore(NAMES, edits)


def test_right_and_wrong_at_once_is_right() -> None:
    Y = csr_matrix(np.array([[1, 0, -1], [-1, 0, -1], [0, 1, 0], [0, 0, 1]], np.int8))
    assert merge_columns(Y, np.array([0, -1, 0]), 3).toarray().tolist() == [[1, 0, 0], [-1, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_a_renamed_label_answers_as_before() -> None:
    own, X = model(), rows(50, 2)[0]
    before = own.annotate(X, k=4)
    own.rename_label("green", "vert")
    renamed = [[("vert" if name == "green" else name, score) for name, score in row] for row in before]
    assert own.annotate(X, k=4) == renamed
    own.partial_fit(X[:4], ["green"] * 4)  # the old name still leads to it
    assert len(own.vocabulary_) == 4


def test_points_are_put_together_by_counts() -> None:
    own = model(label_bias=True)
    assert own.memory_ is not None
    assert own.calibration_ is not None
    a, b = own.memory_.label_counts[[0, 2]].astype(float)
    W, others = own.label_vectors.astype(np.float64), (own.space_.bias, own.calibration_.label_offsets)
    mean = (a * W[0] + b * W[2]) / (a + b)
    length = (a * np.linalg.norm(W[0]) + b * np.linalg.norm(W[2])) / (a + b)
    own.merge_labels("red", ["rouge"])
    assert own.label_vectors[0] == pytest.approx(mean * length / np.linalg.norm(mean), abs=1e-6)
    for was, now in zip(others, (own.space_.bias, own.calibration_.label_offsets), strict=True):
        assert was[0] != was[2]
        assert now[0] == pytest.approx((a * was[0] + b * was[2]) / (a + b), abs=1e-6)
    assert own.memory_.label_counts.tolist() == [
        a + b,
        *own.memory_.label_counts[1:2],
        0,
        *own.memory_.label_counts[3:],
    ]
    assert not (own.memory_.Y.indices == 2).any()


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_merged_labels_never_appear(tmp_path: Path, loaded: bool, similarity: str) -> None:
    own, (X, which) = model(similarity=similarity), rows(200, 2)
    before = own.score(X, np.where(which == 2, 0, which))
    own.merge_labels("red", ["rouge"])
    if loaded:
        own.save(tmp_path / "m")
        own = wsabie.load(tmp_path / "m")
    ids, scores = own.rank(X, 4)
    assert sorted(set(ids.ravel().tolist())) == [-1, 0, 1, 3]
    assert np.isneginf(scores[:, 3]).all()
    assert {name for row in own.annotate(X, k=4) for name, _ in row} == {"red", "green", "blue"}
    assert own.rank(X, 2, candidates=["rouge", "blue"])[0].max() == 3  # by its old name it is red
    assert set(own.rank(X, 1, candidates=[2])[0].ravel()) == {0}
    assert sorted(name for name, _ in own.neighbours("red", k=9)) == ["blue", "green"]
    assert own.predict_proba(X)[:, 2].max() < 1e-6
    names = np.array(NAMES)[which].tolist()
    assert own.score(X, which) == own.score(X, names) > before
    own.calibrate(X, names)
    assert own.predict_proba(X)[which == 1, 1].mean() > 0.7
    own.partial_fit(X, names)
    assert 2 not in own.rank(X, 4)[0]
    assert not own.space_.labels[2].any()  # training did not touch it
    assert own.facts()["labels"] == 3


def test_merging_twice_is_merging_once() -> None:
    own = model().merge_labels("red", ["rouge"])
    W = own.label_vectors.copy()
    with pytest.raises(InputError, match="cannot be merged into itself"):
        own.merge_labels("red", ["rouge"])
    assert np.array_equal(own.label_vectors, W)


def test_a_former_name_is_no_name_to_remove() -> None:
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


def test_a_removed_label_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    own, (X, which) = model(), rows(200, 2)
    own.remove_labels(["blue"])
    assert 3 not in own.rank(X, 4)[0]
    with pytest.raises(InputError, match="was removed"):
        own.rank(X, 1, candidates=[3])
    own.partial_fit(X[which == 3], ["blue"] * int((which == 3).sum()))
    own.save(tmp_path / "m")
    found = wsabie.load(tmp_path / "m")
    assert found.vocabulary_.ids(["blue"]).tolist() == [4]
    assert found.annotate(X[which == 3][:1], k=1)[0][0][0] == "blue"
    with pytest.raises(InputError, match="no label would be left"):
        found.remove_labels(["red", "green", "rouge", "blue"])
    assert found.vocabulary_.retired_ids().tolist() == [3]


def test_a_single_label_that_is_left_has_no_probabilities() -> None:
    """Nothing is wrong among its rows; more of them, which the sentence asked for, would not help."""
    X, which = rows(50, 2)
    left = model(epochs=2).remove_labels(["green", "rouge", "blue"])
    assert left.calibrate(X[which == 0], ["red"] * int((which == 0).sum())).calibration_ is None


def test_models_whose_labels_stay() -> None:
    numbered = Wsabie(dim=4, epochs=1, threads=1).fit(np.eye(3), [0, 1, 2])
    with pytest.raises(InputError, match="nothing but numbers"):
        numbered.merge_labels("0", ["1"])
    parts = ObjectParts([("car", "wheel")], dim=4, epochs=1, threads=1).fit(np.eye(2), ["car", "wheel"])
    with pytest.raises(InputError, match="kind parts cannot be changed"):
        parts.rename_label("car", "auto")
    with pytest.raises(InputError, match="the text 'green'"):
        model().merge_labels("red", "green")


def many_labels() -> tuple[Wsabie, Any]:
    X = np.random.default_rng(0).normal(size=(1500, 8)).astype(np.float32)
    return Wsabie(dim=4, epochs=1, threads=1, init="random").fit(X, [f"label {i}" for i in range(1500)]), X


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_an_index_follows_its_labels(kind: Any, tmp_path: Path) -> None:
    """Those that changed are scored one by one; the others have their codes, also when all is loaded again."""
    learnt, X = many_labels()
    learnt.save(tmp_path / "m")
    index_labels(learnt, kind=kind, folder=tmp_path / "m")
    often = np.argsort(np.bincount(learnt.rank(X, k=10, exact=True)[0].ravel(), minlength=1500))
    rare, other, merged = (int(label) for label in (often[0], *often[-2:]))
    learnt.remove_labels([f"label {rare}"]).merge_labels(f"label {merged}", [f"label {other}"])
    learnt.save(tmp_path / "m")
    assert renew_index(learnt, tmp_path / "m") is None
    loaded = wsabie.load(tmp_path / "m")
    find_index(loaded, tmp_path / "m")
    for model in (learnt, loaded):
        assert model.facts()["index"]["kind"] == kind
        index = model._index()
        index.effort, index.shortlist = 10**6, 14
        found, true = (model.rank(X, k=10, exact=exact) for exact in (False, True))
        assert not np.isin(found[0], [rare, other]).any()
        assert (found[0] == merged).sum() == (true[0] == merged).sum() > 10  # it has no code
        assert all((own == its).mean() >= (1 if kind == "ivf" else 0.95) for own, its in zip(found, true, strict=True))
    kept = open_model_folder(tmp_path / "m" / "index").tensors["places"]
    assert np.flatnonzero(kept < 0).tolist() == sorted([rare, other, merged])
    learnt.remove_labels([f"label {label}" for label in often[1:41]])
    assert "index" not in learnt.facts()  # too many to be scored one by one


def test_an_index_of_the_labels_as_they_were_is_neither_used_nor_told() -> None:
    learnt, X = many_labels()
    index_labels(learnt, kind="int8")
    assert learnt.facts()["index"]["kind"] == "int8"
    learnt.remove_labels(["label 3"])
    assert "index" not in learnt.facts()
    assert 3 not in learnt.rank(X[3:4], k=20)[0]
