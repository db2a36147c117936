"""Approximate indices: exact where all is looked at, exact scores always, filters, files, no faiss."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.search.approximate_index import ApproximateIndex, FaissCodes
from wsabie.search.exact_index import ExactIndex
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

faiss = pytest.importorskip("faiss", reason="faiss is not installed")

N, DIM = 3000, 10


def grouped(n: int = N, dim: int = DIM, seed: int = 0) -> tuple[Any, Any]:
    """A table with groups, and queries near to some of it."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n // 30, dim))
    table = centres[rng.integers(0, len(centres), n)] + 0.3 * rng.normal(size=(n, dim))
    table *= rng.uniform(0.5, 1.5, (n, 1))
    queries = table[rng.integers(0, n, 120)] + 0.1 * rng.normal(size=(120, dim))
    return table.astype(np.float32), queries.astype(np.float32)


def looking_everywhere(index: ApproximateIndex) -> ApproximateIndex:
    """Every cell, and so many labels scored as the planner lets pass."""
    index.effort, index.shortlist = 10**6, 29
    return index


def looking(index: ApproximateIndex) -> Any:
    """Spy on the search of the codes: the exact search alone does not call it."""
    return mock.patch.object(index._codes, "search", wraps=index._codes.search)


EACH: list[Callable[[Any], ExactIndex]] = [
    ExactIndex,
    lambda table: ExactIndex(table.astype(np.float16)),
    lambda table: ExactIndex(table, bias=np.linspace(-2, 2, len(table)).astype(np.float32)),
    lambda table: ExactIndex(table, similarity="cosine"),
    lambda table: ExactIndex(table, similarity="euclidean"),
    lambda table: ExactIndex(table + np.float32(100), similarity="euclidean"),
    lambda table: ExactIndex(table * np.float32(1e-3)),
]


@pytest.mark.parametrize("of", EACH)
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_all_looked_at_is_the_exact_search_bit_for_bit(of: Callable[[Any], ExactIndex], kind: Any) -> None:
    table, queries = grouped()
    exact = of(table)
    if exact.centre is not None:
        queries = queries + np.float32(100)
    index = looking_everywhere(ApproximateIndex.build(exact, kind=kind, queries=queries))
    ids, scores = index.top_k(queries, 10)
    true_ids, true_scores = exact.top_k(queries, 10)
    same = (ids == true_ids).all(axis=1)
    assert same.mean() >= 0.97
    np.testing.assert_array_equal(scores[same], true_scores[same])
    if kind == "ivf":
        assert same.all()


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_what_is_asked_for_is_reached_on_other_queries(kind: Any) -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ApproximateIndex.build(exact, kind=kind, recall=0.8, queries=queries[:60])
    assert index.recall > 0.7
    ids, true = index.top_k(queries[60:], 10)[0], exact.top_k(queries[60:], 10)[0]
    reached = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(ids, true, strict=True)])
    assert abs(reached - index.recall) < 0.1
    recalls = [point.recall for point in index.curve]
    assert recalls[-1] > 0.95
    assert kind == "hnsw" or recalls[0] < 0.9


def test_scores_are_exact_and_ties_go_by_label() -> None:
    table, queries = grouped()
    table[1:4] = table[0]
    index = looking_everywhere(ApproximateIndex.build(ExactIndex(table, similarity="euclidean"), queries=queries))
    ids, scores = index.top_k(table[:1], 10)
    at = ids[0].tolist().index(0)
    assert ids[0, at : at + 4].tolist() == [0, 1, 2, 3]
    assert len(set(scores[0, at : at + 4].tolist())) == 1


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
@pytest.mark.parametrize("share", [0.01, 0.09, 0.5, 0.999])
def test_filters(kind: Any, share: float) -> None:
    """Below a tenth exactly; above it only what was asked for, and nearly all of the best."""
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ApproximateIndex.build(exact, kind=kind, recall=0.95, queries=queries)
    candidates_ = np.flatnonzero(np.random.default_rng(1).random(N) < share)
    with looking(index) as search_spy:
        ids, _ = index.top_k(queries, 5, candidates=candidates_)
    assert search_spy.called == (share > 0.1)
    true, _ = exact.top_k(queries, 5, candidates=candidates_)
    assert np.isin(ids, candidates_).all()
    if share < 0.1:
        np.testing.assert_array_equal(ids, true)
    assert np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(ids, true, strict=True)]) > 0.85


def test_a_filter_does_not_cost_recall_above_the_tenth() -> None:
    """The more is left out, the more cells are looked into."""
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ApproximateIndex.build(exact, recall=0.9, queries=queries)
    index.shortlist = 2
    for n_tenths in (3, 9):
        candidates_ = np.arange(0, N, 10 - n_tenths)
        with looking(index) as search_spy:
            ids, _ = index.top_k(queries, 10, candidates=candidates_)
        effort = search_spy.call_args.args[2]
        assert effort * len(candidates_) >= index.effort * N > (effort - 1) * len(candidates_)
        true, _ = exact.top_k(queries, 10, candidates=candidates_)
        assert np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(ids, true, strict=True)]) > 0.8


def test_hidden_labels_are_never_found() -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ApproximateIndex.build(exact, queries=queries)
    best, _ = exact.top_k(queries, 10)
    rows = np.repeat(np.arange(len(queries)), 10)
    hidden = csr_matrix((np.ones(best.size), (rows, best.ravel())), (len(queries), N))
    with looking(index) as search_spy:
        ids, scores = looking_everywhere(index).top_k(queries, 10, exclude=hidden)
    assert search_spy.call_args.args[1] == 290 + 10  # so many more as may be hidden
    true_ids, true_scores = exact.top_k(queries, 10, exclude=hidden)
    np.testing.assert_array_equal(ids, true_ids)
    np.testing.assert_array_equal(scores, true_scores)


def test_as_many_as_there_are_are_given_exactly() -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ApproximateIndex.build(exact, queries=queries)
    for k in (N // 2, N, N + 5):
        for mine, theirs in zip(index.top_k(queries[:3], k), exact.top_k(queries[:3], k), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_no_row_gets_fewer_than_there_are() -> None:
    """One cell holds too few: the row is searched exactly."""
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ApproximateIndex.build(exact, queries=queries)
    index.effort, index.shortlist = 1, 1
    ids, _ = index.top_k(queries, 250)
    assert (ids >= 0).all()
    best, n = exact.top_k(queries, 1)[0][:, 0], len(queries)
    hidden = csr_matrix((np.ones(n), (np.arange(n), best)), (n, N))
    options: Any = {"candidates": np.arange(0, N, 2), "exclude": hidden}
    with looking(index) as search_spy:
        result = index.top_k(queries, 140, **options)
    assert search_spy.called
    for mine, theirs in zip(result, exact.top_k(queries, 140, **options), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_same_seed_gives_the_same_index() -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    for kind in ("ivf", "hnsw"):
        first_result, two = (
            FaissCodes.train(lambda ids: table[ids], N, DIM, kind=kind, seed=3, threads=1).to_bytes() for _ in range(2)
        )
        np.testing.assert_array_equal(first_result, two)
    first, second = (ApproximateIndex.build(exact, queries=queries, seed=5).top_k(queries, 10) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_kept_in_a_folder_it_finds_the_same(kind: Any, tmp_path: Path) -> None:
    table, queries = grouped()
    exact = ExactIndex(table, bias=np.linspace(0, 1, N))
    index = ApproximateIndex.build(exact, kind=kind, queries=queries)
    save_model_folder(tmp_path / "index", index.to_state())
    again = ApproximateIndex.from_state(open_model_folder(tmp_path / "index"), exact)
    assert again is not None
    for mine, theirs in zip(again.top_k(queries, 10), index.top_k(queries, 10), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.facts() == index.facts()
    assert again.curve == index.curve
    assert ApproximateIndex.from_state(open_model_folder(tmp_path / "index"), ExactIndex(table)) is None
    nudged = table.copy()
    nudged[7, 3] += 1e-3
    assert ApproximateIndex.from_state(index.to_state(), ExactIndex(nudged, bias=exact.bias)) is None


def test_other_bytes_are_refused() -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    state = ApproximateIndex.build(exact, queries=queries).to_state()
    graph = FaissCodes.train(lambda ids: table[ids], N, DIM, kind="hnsw").to_bytes()
    for codes in (state.tensors["codes"][:500], np.zeros(1000, np.uint8), np.zeros(0, np.uint8), graph):
        with pytest.raises((ValueError, InputError)):
            ApproximateIndex.from_state(ModelState(state.kind, state.config, {"codes": codes}), exact)
    with pytest.raises(ValueError, match="no index"):
        ApproximateIndex.from_state(ModelState("wsabie", state.config, state.tensors), exact)


def test_what_cannot_be_indexed_says_so() -> None:
    table, queries = grouped()
    with pytest.raises(InputError, match="search exactly"):
        ApproximateIndex.build(ExactIndex(table[:200]))
    with pytest.raises(InputError, match="distances with a bias"):
        ApproximateIndex.build(ExactIndex(table, bias=np.ones(N), similarity="euclidean"))
    with pytest.raises(InputError, match='"ivf" or "hnsw"'):
        ApproximateIndex.build(ExactIndex(table), kind="tree")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"such as 0\.95"):
        ApproximateIndex.build(ExactIndex(table), recall=95)
    with pytest.raises(InputError, match="two queries"):
        ApproximateIndex.build(ExactIndex(table), queries=queries[:1])
    index = ApproximateIndex.build(ExactIndex(table), queries=queries)
    with pytest.raises(InputError, match="dimensions"):
        index.top_k(queries[:, :3], 5)
    with pytest.raises(InputError, match="candidate 3000 does not exist"):
        index.top_k(queries, 5, candidates=[3000])
    with pytest.raises(InputError, match="not finite"):
        index.top_k(np.full((1, DIM), np.nan, np.float32), 5)


def test_zeros_are_vectors_too() -> None:
    table, queries = grouped()
    table[:40] = 0
    for similarity in ("dot", "cosine", "euclidean"):
        exact = ExactIndex(table, similarity=similarity)
        index = looking_everywhere(ApproximateIndex.build(exact, queries=queries))
        ids, scores = index.top_k(np.zeros((1, DIM), np.float32), 5)
        assert np.isfinite(scores).all()
        assert len(set(ids[0].tolist())) == 5


def test_without_faiss_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r"pip install 'wsabie\[ann\]'"):
        ApproximateIndex.build(ExactIndex(grouped()[0]))
