"""Labels that were merged or removed: as if only the others were candidates, whatever looks for them."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.search import screening_index
from wsabie.search.approximate_index import ApproximateIndex
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_index import LabelSearchIndex
from wsabie.search.label_tree import LabelTree
from wsabie.search.screening_index import ScreeningIndex

N, DIM = 12_000, 10  # so many that a search among half of them goes by codes
REMOVED = np.unique(np.random.default_rng(5).integers(0, N, 1600))
REMAINING = np.delete(np.arange(N), REMOVED)


def everywhere(exact: ExactIndex) -> ApproximateIndex:
    index = ApproximateIndex.build(exact)
    index.effort, index.shortlist = 10**6, 45
    return index


LOOKING: list[Callable[[ExactIndex], Any]] = [
    lambda exact: exact,
    ScreeningIndex.build,
    lambda exact: LabelTree.grow(exact, branching=4, leaf=9, beam=N),
    everywhere,
]


@pytest.fixture(autouse=True)
def by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search as on a processor that has the instruction."""
    monkeypatch.setattr(screening_index, "has_byte_products", lambda: True)


def table_and_queries() -> tuple[Any, Any]:
    """Half of what is gone has no point any more; the other half has one, and is nearest to half of the queries."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(N, DIM)).astype(np.float32)
    table[REMOVED[::2]] = 0
    queries = rng.normal(size=(40, DIM)).astype(np.float32)
    queries[::2] = 1.01 * table[REMOVED[1:40:2]]
    return table, queries


def assert_same_arrays(mine: Any, theirs: Any) -> None:
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("looking", LOOKING)
@pytest.mark.parametrize("similarity", ["dot", "cosine", "euclidean"])
def test_it_is_the_search_among_the_others_bit_for_bit(
    looking: Any, similarity: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what looks for them, and not by the exact search."""
    table, queries = table_and_queries()
    bias = None if similarity == "euclidean" else np.linspace(-1, 1, N).astype(np.float32)
    full_index = ExactIndex(table, bias=bias, similarity=similarity)
    index = looking(ExactIndex(table, bias=bias, similarity=similarity, removed=REMOVED))
    even = np.arange(0, N, 2)  # some of them gone
    remaining = np.setdiff1d(even, REMOVED)
    few = np.append(REMOVED[:20], REMAINING[:3])
    assert np.isin(full_index.top_k(queries, 10)[0], REMOVED).any()
    for n_queries in (1, 5, 40):
        batch = queries[:n_queries]
        hidden = csr_matrix(np.random.default_rng(1).random((n_queries, N)) < 0.002)
        each: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({}, {"candidates": REMAINING}),
            ({"exclude": hidden}, {"exclude": hidden, "candidates": REMAINING}),
            ({"candidates": even}, {"candidates": remaining}),
            ({"candidates": even, "exclude": hidden}, {"candidates": remaining, "exclude": hidden}),
        ]
        expected = [full_index.top_k(batch, 10, **options) for _, options in each]
        with monkeypatch.context() as patch:
            if not isinstance(index, ExactIndex):
                patch.setattr(ExactIndex, "top_k", mock.Mock(side_effect=AssertionError))
            for (options, _), theirs in zip(each, expected, strict=True):
                assert_same_arrays(index.top_k(batch, 10, **options), theirs)
        assert_same_arrays(index.top_k(batch, 5, candidates=few), full_index.top_k(batch, 5, candidates=REMAINING[:3]))


def test_where_fewer_than_k_are_left_there_are_no_others() -> None:
    table, queries = table_and_queries()
    ids, scores = ExactIndex(table, removed=np.arange(3, N)).top_k(queries, 5)
    assert (np.sort(ids, axis=1) == [-1, -1, 0, 1, 2]).all()
    assert (np.isneginf(scores) == (ids < 0)).all()


@pytest.mark.parametrize("looking", LOOKING[1:])
def test_an_index_knows_which_are_gone(looking: Any) -> None:
    """Kept and opened again, it is the same; of other labels, none."""
    table, queries = table_and_queries()
    exact = ExactIndex(table, removed=REMOVED)
    index: LabelSearchIndex = looking(exact)
    again = type(index).from_state(index.to_state(), exact)
    assert again is not None
    assert_same_arrays(again.top_k(queries, 10), index.top_k(queries, 10))
    for other_index in (ExactIndex(table), ExactIndex(table, removed=REMOVED[1:])):
        assert type(index).from_state(index.to_state(), other_index) is None


@pytest.mark.parametrize("looking", LOOKING)
def test_what_is_excluded_has_any_form(looking: Any) -> None:
    """Also where a row is searched exactly in the end: all its labels are equal."""
    table, queries = table_and_queries()
    queries[:3] = 0
    index = looking(ExactIndex(table, removed=REMOVED))
    hidden = csr_matrix(np.random.default_rng(1).random((len(queries), N)) < 0.004)
    expected = index.top_k(queries, 10, exclude=hidden)
    for form in (hidden.tocoo(), hidden.tocsc(), hidden.toarray()):
        assert_same_arrays(index.top_k(queries, 10, exclude=form), expected)
