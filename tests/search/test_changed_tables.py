"""An index over a table of which rows went and others came."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.search.approximate import ApproximateIndex
from wsabie.search.exact import ExactIndex

pytest.importorskip("faiss", reason="faiss is not installed")

N, DIM = 2000, 8


@pytest.fixture(scope="module")
def before() -> tuple[Any, ApproximateIndex]:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(N, DIM)).astype(np.float32)
    index = ApproximateIndex.build(ExactIndex(table))
    index.effort, index.shortlist = 10**6, 15
    return table, index


def changed(table: Any, gone: int, came: int) -> tuple[Any, Any]:
    """Rows without `gone` of them, in another order, with `came` others between; and where the old ones are now."""
    rng = np.random.default_rng(gone + came)
    kept = np.sort(rng.permutation(N)[gone:])
    now = np.vstack([table[kept], rng.normal(size=(came, DIM)).astype(np.float32)])
    order = rng.permutation(len(now))
    places, at = np.full(N, -1), np.argsort(order)
    places[kept] = at[: len(kept)]
    return now[order], places


@pytest.mark.parametrize(("gone", "came"), [(0, 0), (50, 0), (0, 50), (100, 150), (600, 20), (10, 900)])
def test_it_finds_what_an_exact_search_finds(before: tuple[Any, ApproximateIndex], gone: int, came: int) -> None:
    table, index = before
    now, places = changed(table, gone, came)
    exact = ExactIndex(now)
    moved = index.over(exact, places)
    queries = np.random.default_rng(9).normal(size=(30, DIM)).astype(np.float32)
    hidden = csr_matrix((np.ones(30), (np.arange(30), exact.top_k(queries, 1)[0][:, 0])), (30, len(now)))
    chosen = np.arange(0, len(now), 3)
    for options in ({}, {"candidates": chosen}, {"exclude": hidden}, {"candidates": chosen, "exclude": hidden}):
        for mine, theirs in zip(moved.top_k(queries, 5, **options), exact.top_k(queries, 5, **options), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_the_first_index_stays_as_it_was(before: tuple[Any, ApproximateIndex]) -> None:
    table, index = before
    now, places = changed(table, 5, 5)
    index.over(ExactIndex(now), places)
    np.testing.assert_array_equal(index.top_k(table[:9], 3)[0], ExactIndex(table).top_k(table[:9], 3)[0])
