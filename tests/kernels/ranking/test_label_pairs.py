"""Edges between labels: the slow twin, the same bits wherever a pair stands, and what bounds a score."""

import numpy as np
import pytest
from tests.reference.label_pairs import compute_all_edges

from uncompiled_runs import run_with_and_without_compiler
from wsabie.kernels.ranking.top_pairs import TILE, LabelVectors, allocate_tile, compute_edges


def edges(W, weight, objects, parts):
    table = np.ascontiguousarray(W, np.float32)
    n, dim = table.shape
    out = np.full(len(objects), np.nan, np.float32)
    labels = LabelVectors(table.ravel(), dim, n, dim, np.float32(weight))
    compute_edges(labels, np.array(objects), np.array(parts), allocate_tile(dim), out)
    return out


def test_an_edge_worked_by_hand():
    W = [[1, 2, 3], [4, -5, 6]]
    assert edges(W, 0.5, [0, 1, 0], [1, 0, 0]).tolist() == [0.5 * (4 - 10 + 18)] * 2 + [0.5 * (1 + 4 + 9)]


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 100])
@pytest.mark.parametrize("weight", [0.1, -1.0])
def test_equals_the_slow_twin(dim, weight):
    W = np.random.default_rng(dim).normal(size=(20, dim)).astype(np.float32)
    objects, parts = np.divmod(np.arange(400), 20)
    edge_scores = edges(W, weight, objects, parts).reshape(20, 20)
    np.testing.assert_allclose(edge_scores, compute_all_edges(W, weight), atol=2e-6 * dim)


def test_equal_pairs_have_equal_bits_in_every_row_and_column():
    W = np.random.default_rng(0).normal(size=(3, 101)).astype(np.float32)
    rng, n = np.random.default_rng(1), 3 * TILE + 7
    for _ in range(20):
        objects, parts = rng.integers(3, size=(2, n))
        edge_scores = edges(W, 0.1, objects, parts)
        for i in range(3):
            for j in range(3):
                assert len(set(edge_scores[(objects == i) & (parts == j)].tolist())) == 1


WITHOUT_JIT = """
import numpy as np
from wsabie.search.label_pairs import LabelPairIndex
rng = np.random.default_rng(3)
W, a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((9, 3), (2, 9), (2, 9)))
pairs = LabelPairIndex(W, 0.5, [[1, 2], [3, 3]], 2.0, same=False)
print([found.tolist() for found in pairs.top(a, b, 6)], pairs.counts(a, b, [0, 8], [1, 2]).ranks.tolist())
print([found.tolist() for found in pairs.top(a, b, 6, couples=[[1, 2], [5, 6]])], pairs.n_scored_.tolist())
"""


def test_compiled_and_uncompiled_agree():
    answers = set(run_with_and_without_compiler(WITHOUT_JIT))
    assert len(answers) == 1
    assert "[[" in answers.pop()
