"""Further training: label columns by name, and refitted probabilities."""

from copy import copy
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import wsabie
from relation_world import like, make, world
from wsabie import Relation, Space
from wsabie.core.errors import InputError, NotCalibratedError
from wsabie.models.joint_embedding.estimator import Wsabie


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy corners of a cube, and which corner."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return (np.eye(3)[labels] + rng.normal(size=(n, 3)) * 0.4).astype(np.float32), labels


def test_columns_are_matched_by_name_with_negatives() -> None:
    X, labels = rows(300, 0)
    model = Wsabie(dim=8, threads=1, epochs=10).fit(X, np.array(["red", "green", "blue"])[labels])
    names = ["violet", "blue", "red"]
    Y = csr_matrix(np.where(labels == 2, 1, -1)[:, None] * np.array([[1, 0, 0]]) + (labels == 0)[:, None] * [[0, 0, 1]])
    model.partial_fit(X, Y, label_names=names, epochs=10)
    assert list(model.vocabulary_)[3] == "violet"
    corner = np.where(labels == 2)[0]
    best = [row[0][0] for row in model.annotate(X[corner], k=1, candidates=["violet", "red"])]
    assert best.count("violet") > 0.9 * len(best)
    with pytest.raises(InputError, match="Y has 3 columns and 2 names"):
        model.partial_fit(X, Y, label_names=names[:2])


def test_probabilities_are_refitted() -> None:
    X, labels = rows(300, 0)
    held_out_X, truth = rows(200, 1)
    model = Wsabie(dim=8, threads=1, epochs=10).fit(X, labels, validation=(held_out_X, truth))
    first_probabilities = model.predict_proba(held_out_X)
    model.calibrate(held_out_X, truth)
    assert np.array_equal(
        model.predict_proba(held_out_X), first_probabilities
    )  # on the same rows it is what `fit` found
    model.partial_fit(X, labels)
    with pytest.raises(NotCalibratedError):
        _ = model.predict_proba
    probabilities = model.calibrate(held_out_X, truth).predict_proba(held_out_X)
    assert abs(probabilities.max(axis=1).mean() - (probabilities.argmax(axis=1) == truth).mean()) < 0.1
    with pytest.raises(InputError, match="no validation row has a label"):
        model.calibrate(held_out_X, np.full(200, 7))


def test_outdated_metric_is_not_reported() -> None:
    X, labels = rows(300, 0)
    model = Wsabie(dim=8, threads=1, epochs=5).fit(X, labels, validation=rows(200, 1))
    assert model.facts()["validation_map"] == pytest.approx(model.score(*rows(200, 1)), abs=1e-6)
    model.partial_fit(X, labels, epochs=1)
    assert model.facts()["validation_map"] is None


def test_metric_of_other_labels_is_not_reported(tmp_path: Path) -> None:
    X, labels = rows(300, 0)
    names = np.array(["red", "green", "blue"])[labels]
    held_out_X, truth = rows(200, 1)
    judge = held_out_X, np.array(["red", "green", "blue"])[truth]
    fitted = Wsabie(dim=8, threads=1, epochs=5).fit(X, names, validation=judge)
    renamed = copy(fitted).rename_label("red", "rouge")
    assert renamed.facts()["validation_map"] == fitted.facts()["validation_map"] > 0.5
    merged = copy(fitted).merge_labels("red", ["green"])
    removed = copy(fitted).remove_labels(["blue"])
    removed.save(tmp_path / "m")
    for edited in (merged, removed, wsabie.load(tmp_path / "m")):
        assert edited.facts()["validation_map"] is None
    refitted = removed.fit(X, names, validation=judge)
    assert refitted.facts()["validation_map"] == fitted.facts()["validation_map"]


def test_outdated_metric_of_a_space_is_not_reported(tmp_path: Path) -> None:
    space = make(epochs=3).fit(world(), validation=[Relation("track", "track", like(step=12))])
    assert "track - track" in space.facts()["validation"]
    space.partial_fit([Relation("track", "artist", [("t0", "artist 99")])], epochs=1)
    space.save(tmp_path / "s")
    assert space.facts()["validation"] == Space.load(tmp_path / "s").facts()["validation"] == {}
