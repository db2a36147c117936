"""An index over a table of which rows went and others came."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.search.approximate_index import ApproximateIndex
from wsabie.search.exact_index import ExactIndex

pytest.importorskip("faiss", reason="faiss is not installed")

N, DIM = 20_000, 8  # so many that a search among a third of them goes by codes


@pytest.fixture(scope="module")
def table_and_index() -> tuple[Any, ApproximateIndex]:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(N, DIM)).astype(np.float32)
    index = ApproximateIndex.build(ExactIndex(table))
    index.effort, index.shortlist = 10**6, 120
    return table, index


def changed(table: Any, n_removed: int, came: int) -> tuple[Any, Any]:
    """Rows without `gone` of them, in another order, with `came` others between; and where the old ones are now."""
    rng = np.random.default_rng(n_removed + came)
    remaining = np.sort(rng.permutation(N)[n_removed:])
    now = np.vstack([table[remaining], rng.normal(size=(came, DIM)).astype(np.float32)])
    order = rng.permutation(len(now))
    places, at = np.full(N, -1), np.argsort(order)
    places[remaining] = at[: len(remaining)]
    return now[order], places


@pytest.mark.parametrize(("n_removed", "came"), [(0, 0), (50, 0), (0, 50), (100, 150), (600, 20), (10, 1800)])
def test_it_finds_what_an_exact_search_finds(
    table_and_index: tuple[Any, ApproximateIndex], n_removed: int, came: int
) -> None:
    """By codes: only what came is searched exactly."""
    table, index = table_and_index
    now, places = changed(table, n_removed, came)
    exact = ExactIndex(now)
    moved = index.rebase(exact, places)
    new = np.setdiff1d(np.arange(len(now)), places)
    queries = np.vstack([np.random.default_rng(9).normal(size=(30, DIM)).astype(np.float32), now[new[:10]]])
    best, n = exact.top_k(queries, 1)[0][:, 0], len(queries)
    hidden = csr_matrix((np.ones(n), (np.arange(n), best)), (n, len(now)))
    candidates_ = np.arange(0, len(now), 3)
    for options in (
        {},
        {"candidates": candidates_},
        {"exclude": hidden},
        {"candidates": candidates_, "exclude": hidden},
    ):
        expected = exact.top_k(queries, 5, **options)
        with mock.patch.object(ExactIndex, "top_k", autospec=True, side_effect=ExactIndex.top_k) as exactly:
            result = moved.top_k(queries, 5, **options)
        searched = [call.kwargs["candidates"] for call in exactly.call_args_list]
        assert len(searched) == bool(came)
        assert all(np.isin(label_ids, new).all() for label_ids in searched)
        for mine, theirs in zip(result, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_where_much_came_all_is_searched_exactly(table_and_index: tuple[Any, ApproximateIndex]) -> None:
    table, index = table_and_index
    now, places = changed(table, 0, 2400)
    exact = ExactIndex(now)
    moved = index.rebase(exact, places)
    with mock.patch.object(moved._codes, "search", side_effect=AssertionError):
        for mine, theirs in zip(moved.top_k(now[:9], 5), exact.top_k(now[:9], 5), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_the_first_index_stays_as_it_was(table_and_index: tuple[Any, ApproximateIndex]) -> None:
    table, index = table_and_index
    now, places = changed(table, 5, 5)
    index.rebase(ExactIndex(now), places)
    np.testing.assert_array_equal(index.top_k(table[:9], 3)[0], ExactIndex(table).top_k(table[:9], 3)[0])


def test_what_is_gone_has_not_come(table_and_index: tuple[Any, ApproximateIndex]) -> None:
    table, index = table_and_index
    now, places = changed(table, 5, 7)
    new = np.setdiff1d(np.arange(len(now)), places)
    removed_ids = np.sort(np.append(new[:3], places[places >= 0][:3000]))
    exact = ExactIndex(now, removed=removed_ids)
    moved = index.rebase(exact, np.where(np.isin(places, removed_ids), -1, places))
    np.testing.assert_array_equal(moved._uncoded_labels, new[3:])
    with mock.patch.object(moved._codes, "search", wraps=moved._codes.search) as search_spy:
        result = moved.top_k(now[removed_ids[:20]], 5)
    assert search_spy.called
    for mine, theirs in zip(result, exact.top_k(now[removed_ids[:20]], 5), strict=True):
        np.testing.assert_array_equal(mine, theirs)
