"""The brittleness of approximate neighbours: hand-worked chances, the exact end of the trees, real data."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from papers.runs.neighbour_brittleness import measure_brittleness
from toy_tasks import toy
from wsabie.core.errors import InputError
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.io.records import FeatureTable
from wsabie.models.nearest_neighbours import ApproximateNeighbours, NearestNeighbours
from wsabie.storage.rejects import Rejects


def rows(X: object, Y: object, prefix: str) -> FeatureTable:
    Y = sp.csr_matrix(Y)
    return FeatureTable(X, Y, [f"label {y}" for y in range(Y.shape[1])], [f"{prefix}{i}" for i in range(Y.shape[0])])


def test_chances_by_hand() -> None:
    # the test row's neighbours in order: all labels wrong, half of them right, all right, all wrong
    X = np.array([[1.0, 0], [0.9, 0.1], [0.7, 0.3], [0.5, 0.5]])
    train = rows(X, np.array([[0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]]), "a")
    test = rows(np.array([[1.0, 0], [0, 1]]), np.array([[1, 0, 0], [0, 0, 0]]), "b")  # the second has no label
    results = measure_brittleness(train, test, chances=(0.5, 0.2), neighbours=4, scaling=None)
    assert [f.kind for f in results] == ["exact", "first", "first", "any", "any"]
    expected = [0, 0.5 * 0.5, 0.8 * 0.5, 0.25 * 0.5 + 0.125, 0.8 * 0.2 * 0.5 + 0.8**2 * 0.2]
    assert [f.p1 for f in results] == pytest.approx(expected)
    assert [f.share_found for f in results] == [1, 0.5, 0.2, 0.5, 0.2]
    assert (results[0].shared, results[0].leaf) == (1, 4)


@pytest.mark.parametrize("dense", [True, False])
def test_one_neighbour_is_judged_as_the_model_is(dense: bool) -> None:
    X, Y, _ = toy(160, dense=dense)
    noisy = sp.csr_matrix(np.where(np.random.default_rng(0).random(Y.shape) < 0.2, 1, Y.toarray()))
    train, test = rows(X[:120], noisy[:120], "a"), rows(X[120:], noisy[120:], "b")
    results = measure_brittleness(train, test, depths=(0, 3, 9))
    exact, trees = results[0], [f for f in results if f.kind == "tree"]
    assert [f.leaf for f in trees] == [120, 15]
    assert trees[0][4:7] == exact[4:7]
    assert trees[1].share_found < 1
    assert trees[1].shared < 1
    for model, p1 in ((NearestNeighbours(1), exact.p1), (ApproximateNeighbours(3, 1), trees[1].p1)):
        scores = model.fit(train.X, train.Y).scores(test.X)
        assert p1 == pytest.approx(evaluate_scores([(0, scores)], test.Y, ks=(1,)).means["p@1"])


@pytest.mark.data
def test_corel5k(data_dir: Path) -> None:
    from wsabie.io.formats.mulan import read_mulan

    folder = data_dir / "corel5k_mulan"
    train, test = (read_mulan(folder / f"Corel5k-{side}-sparse.arff", rejects=Rejects()) for side in ("train", "test"))
    results = measure_brittleness(train, test, depths=(1, 3, 6))
    trees = [f for f in results if f.kind == "tree"]
    assert all(0 < f.share_found < 1 for f in trees)
    assert [f.share_found for f in trees] == sorted((f.share_found for f in trees), reverse=True)
    assert results[0].p1 > trees[0].p1 > trees[2].p1


def test_invalid_arguments_are_refused() -> None:
    X, Y, _ = toy(24)
    train = rows(X, Y, "a")
    with pytest.raises(InputError, match="choose numbers from 0 to 1"):
        measure_brittleness(train, train, chances=(1.5,))
    with pytest.raises(InputError, match="too few"):
        measure_brittleness(train, train, neighbours=1)
    with pytest.raises(InputError, match="no test row has a label"):
        measure_brittleness(train, rows(X, 0 * Y, "b"))
