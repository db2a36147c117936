"""Label embedding trees: their shape, training against the tree loss, going down, filters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_tree import LabelTree, _choose_training_points, grow_tree
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

N, DIM = 600, 8


def grouped(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(N // 20, DIM))
    return (centres[np.arange(N) % (N // 20)] + rng.normal(size=(N, DIM))).astype(np.float32)


def test_every_label_has_one_place_and_children_share_out_their_parents() -> None:
    shape = grow_tree(grouped(), 5, 12, 0)
    assert sorted(shape.order) == list(range(N))
    for node, (lo, hi, first, count) in enumerate(
        zip(shape.starts, shape.stops, shape.first, shape.counts, strict=True)
    ):
        if count == 0:
            assert 0 < hi - lo <= 12
            continue
        assert 2 <= count <= 5
        assert (shape.parents[first : first + count] == node).all()
        assert shape.starts[first] == lo
        assert shape.stops[first + count - 1] == hi
        assert (shape.stops[first : first + count - 1] == shape.starts[first + 1 : first + count]).all()
    paths = shape.paths()
    assert (paths[:, 0] > 0).all()
    deeper = paths[:, 1][paths[:, 1] >= 0]
    assert (shape.parents[deeper] == paths[:, 0][paths[:, 1] >= 0]).all()


def test_labels_of_one_group_go_down_together() -> None:
    group = np.random.default_rng(0).permutation(N) % 4
    points = (20 * np.eye(4, DIM)[group] + np.random.default_rng(1).normal(size=(N, DIM))).astype(np.float32)
    shape = grow_tree(points, 4, N // 3, 0)
    for node in np.flatnonzero(shape.parents == 0):
        assert len(np.unique(group[shape.order[shape.starts[node] : shape.stops[node]]])) == 1


def test_equal_points_are_split_evenly() -> None:
    shape = grow_tree(np.ones((100, 3), np.float32), 4, 10, 0)
    assert (shape.stops - shape.starts)[shape.counts == 0].max() <= 10


@pytest.mark.parametrize("similarity", ["dot", "cosine", "euclidean"])
@pytest.mark.parametrize("biased", [False, True])
def test_with_a_beam_of_all_it_is_the_exact_search(similarity: Any, biased: bool) -> None:
    table = grouped()
    bias = np.linspace(-3, 3, N).astype(np.float32) if biased else None
    exact = ExactIndex(table, bias=bias, similarity=similarity)
    tree = LabelTree.grow(exact, branching=4, leaf=9, beam=N)
    queries = grouped(3)[:20]
    hidden = csr_matrix((np.ones(20), (np.arange(20), exact.top_k(queries, 1)[0][:, 0])), (20, N))
    for options in ({}, {"exclude": hidden}, {"candidates": np.arange(0, N, 2)}, {"candidates": [4, 7, 9]}):
        for mine, theirs in zip(tree.top_k(queries, 5, **options), exact.top_k(queries, 5, **options), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_where_fewer_come_into_question_than_are_asked_for_there_are_no_others() -> None:
    """By an exact search among the same labels."""
    exact = ExactIndex(grouped())
    tree = LabelTree.grow(exact, branching=4, leaf=9)
    queries = grouped(3)[:5]
    hidden = csr_matrix((np.ones(5), (np.arange(5), exact.top_k(queries, 1)[0][:, 0])), (5, N))
    options: Any = {"candidates": np.arange(0, N, 6), "exclude": hidden}
    ids, scores = tree.top_k(queries, 120, **options)
    assert ((ids >= 0).sum(axis=1) <= 100).all()
    for mine, theirs in zip((ids, scores), exact.top_k(queries, 120, **options), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_training_lowers_the_tree_loss() -> None:
    """Points that the means of a random tree cannot tell apart: greedy answers become right."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(64, DIM)).astype(np.float32)
    exact = ExactIndex(table)
    tree = LabelTree.grow(exact, branching=4, leaf=4, beam=1)
    labels = rng.integers(0, 64, 4000)
    points = (table[labels] + 0.1 * rng.normal(size=(4000, DIM))).astype(np.float32)
    Y = csr_matrix((np.ones(4000), (np.arange(4000), labels)), (4000, 64))

    def right() -> float:
        leaf_labels = [tree._descend(point, 1) for point in points[3000:]]
        return float(
            np.mean([y in labels_of_leaf for y, labels_of_leaf in zip(labels[3000:], leaf_labels, strict=True)])
        )

    old_accuracy = right()
    wrong = tree.train(points[:3000], Y[:3000], epochs=10)
    assert wrong[-1] < 0.6 * wrong[0]
    assert right() > old_accuracy + 0.1


def test_a_sibling_with_another_label_of_the_row_is_no_violator() -> None:
    table = np.eye(4, dtype=np.float32)
    tree = LabelTree.grow(ExactIndex(table), branching=4, leaf=1)
    old_points = tree.points.copy()
    tree.train(np.ones((5, 4), np.float32), csr_matrix(np.ones((5, 4))), epochs=3)
    np.testing.assert_array_equal(tree.points, old_points)


def test_the_same_seed_gives_the_same_tree() -> None:
    table = grouped()
    trees = [LabelTree.grow(ExactIndex(table), branching=4, leaf=9, seed=4) for _ in range(2)]
    for tree in trees:
        tree.train(table, csr_matrix(np.eye(N)), epochs=2, seed=1)
    np.testing.assert_array_equal(trees[0].points, trees[1].points)
    np.testing.assert_array_equal(trees[0].shape.order, trees[1].shape.order)


def test_bad_input() -> None:
    exact = ExactIndex(grouped())
    with pytest.raises(InputError, match="two children"):
        LabelTree.grow(exact, branching=1)
    with pytest.raises(InputError, match="no row has a label"):
        LabelTree.grow(exact).train(grouped()[:2], csr_matrix((2, N)))
    with pytest.raises(InputError, match="dimensions"):
        LabelTree.grow(exact).top_k(np.ones((1, 3), np.float32), 2)


def many(n: int = 2000) -> Any:
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(n // 20, DIM))
    return (centres[rng.integers(0, len(centres), n)] + rng.normal(size=(n, DIM))).astype(np.float32)


@pytest.mark.parametrize("far", [0, 50])
def test_built_it_reaches_what_is_asked_for_and_is_kept_in_a_folder(far: float, tmp_path: Path) -> None:
    table = many() + np.float32(far)
    exact = ExactIndex(table, similarity="euclidean" if far else "dot")
    rows = table[::2] + np.float32(0.2)
    tree = LabelTree.build(exact, recall=0.8, queries=rows)
    assert tree.queries == "200 of 400 rows"
    assert tree.recall > 0.7
    assert [point.effort for point in tree.curve][:3] == [1, 2, 4]
    assert tree.facts()["effort"] == tree.effort
    assert tree.facts()["kind"] == "tree"
    save_model_folder(tmp_path / "index", tree.to_state())
    again = LabelTree.from_state(open_model_folder(tmp_path / "index"), exact)
    assert again is not None
    assert (again.facts(), again.curve) == (tree.facts(), tree.curve)
    for mine, theirs in zip(again.top_k(rows[:40], 10), tree.top_k(rows[:40], 10), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert LabelTree.from_state(tree.to_state(), ExactIndex(table * 2)) is None


def test_labels_stand_in_for_rows_and_are_not_judged_by() -> None:
    exact = ExactIndex(many())
    label_points = exact.table[:400]
    for rows in (None, exact.table[:500] + 1):
        training_points = _choose_training_points(exact, rows, label_points, np.random.default_rng(0))
        assert len(training_points) == 1600
        assert not (training_points[:, None] == label_points[None, :3]).all(axis=2).any()
    assert LabelTree.build(exact, recall=0.5).queries == "200 of 400 labels"


def test_other_parts_are_refused() -> None:
    exact = ExactIndex(many())
    state = LabelTree.build(exact, recall=0.3).to_state()
    tensors = state.tensors
    loop = tensors["first"].copy()
    loop[0] = 0
    outside = tensors["stops"].copy()
    outside[3] = 10**6
    broken_tensors = {"order": tensors["order"][:-1], "starts": tensors["starts"][:-1], "first": loop, "stops": outside}
    broken_tensors |= {"points": tensors["points"][:, :-1], "counts": tensors["counts"] * 3}
    for name, broken in broken_tensors.items():
        with pytest.raises(ValueError, match="its nodes"):
            LabelTree.from_state(ModelState(state.kind, state.config, tensors | {name: broken}), exact)
    with pytest.raises(ValueError, match="no label tree"):
        LabelTree.from_state(ModelState("wsabie", state.config, tensors), exact)
    with pytest.raises(InputError, match="search exactly"):
        LabelTree.build(ExactIndex(grouped()))
