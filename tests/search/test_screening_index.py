"""Screening by bytes: the exact search bit for bit, whatever the table, the threads, the filters, the processor."""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.core.execution import run_in_threads
from wsabie.search import screening_index
from wsabie.search.exact_index import ExactIndex
from wsabie.search.screening_index import ScreeningIndex
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

N, DIM = 3000, 10


def grouped(n: int = N, dim: int = DIM, seed: int = 0) -> tuple[Any, Any]:
    """A table with groups, long and short labels, some of them equal; queries near to some of it, and labels."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n // 30, dim))
    table = centres[rng.integers(0, len(centres), n)] + 0.3 * rng.normal(size=(n, dim))
    table *= rng.uniform(0.5, 1.5, (n, 1))
    table[n // 2 : n // 2 + 20] = table[7]
    table[11] = 0
    queries = np.vstack([table[rng.integers(0, n, 80)] + 0.1 * rng.normal(size=(80, dim)), table[:12]])
    return table.astype(np.float32), queries.astype(np.float32)


@pytest.fixture(autouse=True)
def by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search as on a processor that has the instruction."""
    monkeypatch.setattr(screening_index, "has_byte_products", lambda: True)


EACH: list[Callable[[Any], ExactIndex]] = [
    ExactIndex,
    lambda table: ExactIndex(table.astype(np.float16)),
    lambda table: ExactIndex(table, bias=np.linspace(-2, 2, len(table)).astype(np.float32)),
    lambda table: ExactIndex(table, bias=np.linspace(1e4, 1e4 + 1, len(table)).astype(np.float32)),
    lambda table: ExactIndex(table, similarity="cosine"),
    lambda table: ExactIndex(table, similarity="cosine", bias=np.linspace(-1, 1, len(table)).astype(np.float32)),
    lambda table: ExactIndex(table, similarity="euclidean"),
    lambda table: ExactIndex(table + np.float32(100), similarity="euclidean"),
    lambda table: ExactIndex(table * np.float32(1e-18)),
    lambda table: ExactIndex(table * np.float32(1e-41)),
    lambda table: ExactIndex(table * np.float32(1e17)),
    lambda table: ExactIndex(np.zeros_like(table)),
]


def assert_same_arrays(mine: Any, theirs: Any) -> None:
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("of", EACH)
def test_it_is_the_exact_search_bit_for_bit(of: Callable[[Any], ExactIndex]) -> None:
    table, queries = grouped()
    exact = of(table)
    if exact.centre is not None:
        queries = queries + np.float32(100)
    index = ScreeningIndex.build(exact)
    for k in (1, 10, 70):
        assert_same_arrays(index.top_k(queries, k), exact.top_k(queries, k))


@settings(max_examples=40, deadline=None)
@given(
    dim=st.integers(1, 6),
    n=st.integers(1, 9),
    k=st.integers(1, 30),
    similarity=st.sampled_from(["dot", "cosine", "euclidean"]),
    seed=st.integers(0, 99),
    share=st.sampled_from([None, 0.05, 0.5, 0.99]),
    has_integers=st.booleans(),
    pieces=st.booleans(),
)
def test_ties_filters_and_hidden_labels(
    dim: int, n: int, k: int, similarity: Any, seed: int, share: float | None, has_integers: bool, pieces: bool
) -> None:
    """Small integers tie by the hundred."""
    rng, size = np.random.default_rng(seed), 4000  # so many that codes are looked through for half of them
    table, queries = rng.normal(size=(size, dim)), rng.normal(size=(n, dim))
    if has_integers:
        table, queries = rng.integers(-3, 4, (size, dim)), rng.integers(-3, 4, (n, dim))
    bias = None if similarity == "euclidean" else rng.integers(-1, 2, size).astype(np.float32)
    exact = ExactIndex(table.astype(np.float32), bias=bias, similarity=similarity)
    with mock.patch.object(ScreeningIndex, "_measure"):
        index = ScreeningIndex.build(exact)
    hidden = csr_matrix(rng.random((n, size)) < 0.005)
    chosen_ids = None if share is None else np.flatnonzero(rng.random(size) < share)
    options: Any = {"exclude": hidden, "candidates": chosen_ids, "threads": 3}
    with (
        mock.patch.object(screening_index, "_MIN_PARALLEL_BYTES", 0 if pieces else screening_index._MIN_PARALLEL_BYTES),
        mock.patch.object(index, "_screen_candidates", wraps=index._screen_candidates) as screen_spy,
    ):
        assert_same_arrays(index.top_k(queries, k, **options), exact.top_k(queries, k, **options))
    assert screen_spy.called == (share != 0.05)


@pytest.mark.parametrize("rows", [1, 3, 80])
def test_threads_blocks_and_companions_change_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    queries = np.array([queries[i] for i in range(rows)])
    best = exact.top_k(queries, 5)[0]
    hidden = csr_matrix((np.ones(best.size), (np.repeat(range(rows), 5), best.ravel())), (rows, N))
    true, visible = exact.top_k(queries, 10), exact.top_k(queries, 10, exclude=hidden)
    monkeypatch.setattr(screening_index, "_MIN_PARALLEL_BYTES", 0)
    for threads, block in ((1, 1024), (2, 1024), (3, 7), (40, 1)):
        monkeypatch.setattr(screening_index, "BLOCK_ROWS", block)
        assert_same_arrays(index.top_k(queries, 10, threads=threads), true)
        assert_same_arrays(index.top_k(queries, 10, exclude=hidden, threads=threads), visible)


def test_rows_that_hide_much_or_want_much_go_by_what_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    monkeypatch.setattr(screening_index, "_CELLS", 5000)
    sizes = []

    def record_sizes(codes: Any, batch: Any, k: int, n_spans: int) -> Any:
        sizes.append(len(batch.words) * screening_index._compute_room(k))
        return ScreeningIndex._screen_candidates(index, codes, batch, k, n_spans)

    with mock.patch.object(index, "_screen_candidates", record_sizes):
        for k in (3, 100):
            assert_same_arrays(index.top_k(queries, k, threads=1), exact.top_k(queries, k))
        hidden = csr_matrix(([1.0] * 150, ([5] * 150, range(150))), (len(queries), N))
        assert_same_arrays(index.top_k(queries, 3, exclude=hidden[:, :]), exact.top_k(queries, 3, exclude=hidden))
    assert len(sizes) > 10
    assert max(sizes) <= 5000


def test_codes_do_the_work_and_not_the_exact_search(monkeypatch: pytest.MonkeyPatch) -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    assert 10 <= index.effort < 60
    few = queries[:10]
    true = exact.top_k(few, 10)
    monkeypatch.setattr(ExactIndex, "top_k", mock.Mock(side_effect=AssertionError))
    assert_same_arrays(index.top_k(few, 10), true)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.95])
@pytest.mark.parametrize("n_hidden", [0, 40])
def test_codes_do_the_work_among_some_labels_too(share: float, n_hidden: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of queries whose best are not candidates, or are hidden."""
    n = 12_000
    table, queries = grouped(n)
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    best = exact.top_k(queries[:10], 40)[0]
    chosen_ids = np.flatnonzero(np.random.default_rng(1).random(n) < share)
    hidden = csr_matrix((np.ones(10 * n_hidden), (np.repeat(range(10), n_hidden), best[:, :n_hidden].ravel())), (10, n))
    options: Any = {"candidates": chosen_ids, "exclude": hidden}
    true = exact.top_k(queries[:10], 10, **options)
    assert not np.isin(best[:, :10], chosen_ids).all()
    monkeypatch.setattr(ExactIndex, "top_k", mock.Mock(side_effect=AssertionError))
    assert_same_arrays(index.top_k(queries[:10], 10, **options), true)


def test_rows_of_which_codes_cannot_tell_are_searched_exactly_among_the_same_labels() -> None:
    """All labels are equal to every third query."""
    table, queries = grouped()
    queries = queries[:30]
    queries[::3] = 0
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    n = len(queries)
    hidden = csr_matrix((np.ones(2 * n), (np.repeat(range(n), 2), [2 * (i % 9) for i in range(2 * n)])), (n, N))
    options: Any = {"candidates": np.arange(0, N, 2), "exclude": hidden}
    true = exact.top_k(queries, 10, **options)
    with mock.patch.object(ExactIndex, "top_k", autospec=True, side_effect=ExactIndex.top_k) as exactly:
        assert_same_arrays(index.top_k(queries, 10, **options), true)
    np.testing.assert_array_equal(exactly.call_args.args[1], queries[::3])


def test_wrong_bounds_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bit-for-bit tests can fail: without the bound of what bytes leave out, labels are lost."""
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    index._codes.largest[:] = 0
    assert (index.top_k(queries, 10)[0] != exact.top_k(queries, 10)[0]).any()


def test_sums_that_rounding_parts_are_no_reason_to_lose_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes leave nothing out here, but sums beyond 2^24 are rounded one way for codes and another way for scores."""
    rng = np.random.default_rng(1)
    table, queries = np.full((1200, 6000), 127, np.float32), np.full((20, 6000), 127, np.float32)
    table[:, :4], queries[:, :4] = rng.integers(-127, 128, (1200, 4)), rng.integers(-1, 2, (20, 4))
    exact = ExactIndex(table)
    with mock.patch.object(ScreeningIndex, "_measure"):
        index = ScreeningIndex.build(exact)
    true = exact.top_k(queries, 10)
    monkeypatch.setattr(ExactIndex, "top_k", mock.Mock(side_effect=AssertionError))
    assert_same_arrays(index.top_k(queries, 10), true)


def test_without_the_instruction_many_rows_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    monkeypatch.setattr(screening_index, "has_byte_products", lambda: False)
    true = exact.top_k(queries, 10)
    with mock.patch.object(index, "_screen_candidates", side_effect=AssertionError):
        assert_same_arrays(index.top_k(queries, 10), true)
    with mock.patch.object(index, "_screen_candidates", wraps=index._screen_candidates) as screen_spy:
        assert_same_arrays(index.top_k(queries[:4], 10), exact.top_k(queries[:4], 10))
    assert screen_spy.called


def test_as_many_as_there_are() -> None:
    table, queries = grouped()
    exact = ExactIndex(table)
    index = ScreeningIndex.build(exact)
    for k in (247, 248, N // 2, N, N + 5):  # 8 * 247 + 1024 is the most that codes are asked for
        with mock.patch.object(index, "_screen_candidates", wraps=index._screen_candidates) as screen_spy:
            assert_same_arrays(index.top_k(queries[:3], k), exact.top_k(queries[:3], k))
        assert screen_spy.called == (k == 247)
    assert_same_arrays(index.top_k(queries[:0], 5), exact.top_k(queries[:0], 5))


def test_many_threads_at_once_find_the_same() -> None:
    table, queries = grouped()
    index = ScreeningIndex.build(ExactIndex(table))
    true = index.top_k(queries, 10)[0]

    def ask(i: int) -> None:
        np.testing.assert_array_equal(index.top_k(queries[i : i + 1], 10)[0][0], true[i])

    run_in_threads(ask, [i for i, _ in zip(cycle(range(len(queries))), range(300), strict=False)], 6)


@pytest.mark.parametrize("half", [False, True])
def test_kept_in_a_folder_it_finds_the_same(half: bool, tmp_path: Path) -> None:
    table, queries = grouped()
    exact = ExactIndex(table.astype(np.float16) if half else table, bias=np.linspace(0, 1, N))
    index = ScreeningIndex.build(exact, queries=queries)
    save_model_folder(tmp_path / "index", index.to_state())
    again = ScreeningIndex.from_state(open_model_folder(tmp_path / "index"), exact)
    assert again is not None
    assert_same_arrays(again.top_k(queries, 10), exact.top_k(queries, 10))
    assert again.facts() == index.facts()
    assert again.facts()["bytes"] < N * (12 + 8) * 1.05
    assert ScreeningIndex.from_state(open_model_folder(tmp_path / "index"), ExactIndex(table * 2)) is None


def test_other_parts_are_refused() -> None:
    table, _ = grouped()
    exact = ExactIndex(table)
    state = ScreeningIndex.build(exact).to_state()
    for name in ("words", "scales", "largest"):
        for broken in (state.tensors[name][:-1], state.tensors[name].astype(np.float64)):
            with pytest.raises(ValueError, match=name):
                ScreeningIndex.from_state(ModelState(state.kind, state.config, {**state.tensors, name: broken}), exact)
    with pytest.raises(ValueError, match="no codes"):
        ScreeningIndex.from_state(ModelState("wsabie", state.config, state.tensors), exact)


def test_what_cannot_be_coded_says_so() -> None:
    table, queries = grouped()
    with pytest.raises(InputError, match="search exactly"):
        ScreeningIndex.build(ExactIndex(table[:200]))
    with pytest.raises(InputError, match="distances with a bias"):
        ScreeningIndex.build(ExactIndex(table, bias=np.ones(N), similarity="euclidean"))
    with pytest.raises(InputError, match="two queries"):
        ScreeningIndex.build(ExactIndex(table), queries=queries[:1])
    with pytest.raises(InputError, match="60,000 at most"):
        ScreeningIndex.build(ExactIndex(np.zeros((1000, 60_001), np.float16)))
    index = ScreeningIndex.build(ExactIndex(table))
    with pytest.raises(InputError, match="dimensions"):
        index.top_k(queries[:, :3], 5)
    with pytest.raises(InputError, match="candidate 3000 does not exist"):
        index.top_k(queries, 5, candidates=[3000])
    with pytest.raises(InputError, match="not finite"):
        index.top_k(np.full((1, DIM), np.nan, np.float32), 5)
