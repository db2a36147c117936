"""Screening of the best labels: a row by hand, the slow twin, blocks, lack of room, bounds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.topk_screening import bound_scores, select_candidates

from wsabie.kernels.ranking.topk import ByteQueries, allocate_candidates, drop_below_bounds, screen_labels
from wsabie.kernels.simd.byte_products import LABELS
from wsabie.search.screening_index import encode_byte_queries, encode_byte_rows


def screen_codes(codes, queries, k, *, room=1000, blocks=None, parts=1):
    """Settled, of all blocks or some, looked through in parts one after the other."""
    kept_candidates = allocate_candidates(len(queries.words), k, room)
    lo, hi = blocks or (0, len(codes.largest))
    edges = np.linspace(lo, hi, parts + 1).astype(int).tolist()
    for first, stop in pairwise(edges):
        screen_labels(codes, queries, kept_candidates, np.empty((4, LABELS), np.int32), first, stop)
    drop_below_bounds(kept_candidates, kept_candidates.bounds)
    return kept_candidates


def of(rows, offsets, points, slack=0.0):
    rows, points = np.asarray(rows, np.float32), np.asarray(points, np.float32)
    codes = encode_byte_rows(lambda part: rows[part], np.asarray(offsets, np.float32), rows.shape[1])
    return codes, encode_byte_queries(points, np.full(len(points), slack))


def test_whole_numbers_are_coded_as_they_are():
    """Scores 127 * 127 + 1 * 1, 127 * 127 - 1, -127 * 127 + 5: nothing is left out, and one is wanted."""
    codes, queries = of([[127, 1], [127, -1], [-127, 5]], [0, 0, 0], [[127, 1]])
    kept_candidates = screen_codes(codes, queries, 1)
    assert kept_candidates.labels[0, :2].tolist() == [0, -1]
    assert kept_candidates.upper[0, 0] == pytest.approx(127 * 127 + 1, rel=1e-4)
    assert kept_candidates.bounds[0] == pytest.approx(127 * 127 + 1, rel=1e-4)
    np.testing.assert_array_equal(codes.largest[0, 1] >= np.hypot(127, 5), True)


@settings(max_examples=60, deadline=None)
@given(
    n_labels=st.integers(1, 200),
    dim=st.integers(1, 9),
    n=st.integers(1, 9),
    k=st.integers(1, 12),
    spread=st.sampled_from([0.0, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
def test_nobody_is_lost_and_few_are_kept(n_labels, dim, n, k, spread, seed):
    """All that the slow twin sees with bounds of each label's own, and what it sees with those of blocks; no more."""
    rng = np.random.default_rng(seed)
    rows, points = rng.normal(size=(n_labels, dim)), rng.normal(size=(n, dim))
    rows *= np.exp(rng.normal(size=(n_labels, 1)))
    offsets, k = (spread * rng.normal(size=n_labels)).astype(np.float32), min(k, n_labels)
    slack = 1e-4 * (1 + spread)
    codes, queries = of(rows, offsets, points, slack=slack)
    kept_candidates = screen_codes(codes, queries, k)
    scores = points.astype(np.float32).astype(np.float64) @ rows.astype(np.float32).T.astype(np.float64) + offsets
    lower, upper = bound_scores(rows.astype(np.float32), offsets, points.astype(np.float32))
    assert (lower <= scores + 1e-9).all()
    assert (scores <= upper + 1e-9).all()
    middle, error_bound = (lower + upper) / 2, bound_block_errors(codes, queries)[:, :n_labels]
    selected = select_candidates(lower, upper, k, 0.0)
    least, most = (select_candidates(middle - error_bound, middle + error_bound, k, times * slack) for times in (0, 4))
    for i in range(n):
        mine = kept_candidates.labels[i][kept_candidates.labels[i] >= 0].tolist()
        assert len(mine) == kept_candidates.counts[i] == len(set(mine))
        best = np.argsort(-scores[i], kind="stable")[:k]
        assert set(best.tolist()) | set(selected[i].tolist()) | set(least[i].tolist()) <= set(mine)
        assert set(mine) <= set(most[i].tolist())
        assert (kept_candidates.upper[i, : kept_candidates.counts[i]] >= scores[i][mine] - slack).all()


def bound_block_errors(codes, queries):
    """Return the error bound of coded scores by the largest of each block, (n, n_labels and padding)."""
    label_error, length = np.repeat(codes.largest.astype(np.float64), LABELS, axis=0).T
    return (np.outer(queries.lengths, label_error) + np.outer(queries.residual_norms, length)) * codes.scales


def test_a_list_is_short_where_scores_lie_apart():
    rng = np.random.default_rng(0)
    rows, points = rng.normal(size=(5000, 32)), rng.normal(size=(20, 32))
    codes, queries = of(rows, np.zeros(5000), points)
    counts = screen_codes(codes, queries, 10).counts
    assert counts.min() >= 10
    assert counts.mean() < 30


def test_parts_and_companions_change_nothing():
    rng = np.random.default_rng(0)
    rows, points = rng.normal(size=(1000, 12)), rng.normal(size=(11, 12))
    codes, queries = of(rows, rng.normal(size=1000), points)
    baseline = screen_codes(codes, queries, 5)
    for variant in (screen_codes(codes, queries, 5, parts=7), screen_codes(codes, queries, 5, room=40)):
        np.testing.assert_array_equal(variant.counts, baseline.counts)
        np.testing.assert_array_equal(variant.bounds, baseline.bounds)
    for i in range(11):
        single_query = screen_codes(codes, ByteQueries(*(part[i : i + 1] for part in queries)), 5)
        assert (
            single_query.labels[0, : single_query.counts[0]].tolist()
            == baseline.labels[i, : baseline.counts[i]].tolist()
        )


def test_who_has_no_room_is_told_apart():
    """So many equal labels that none can be sent away."""
    rows = np.ones((300, 4), np.float32)
    codes, queries = of(rows, np.zeros(300), np.vstack([np.ones((1, 4)), np.zeros((1, 4))]))
    kept_candidates = screen_codes(codes, queries, 3, room=100)
    assert kept_candidates.counts.tolist() == [-1, -1]
    assert (screen_codes(codes, queries, 3, room=400).counts == 300).all()


def test_padding_is_never_in_sight():
    codes, queries = of(-np.ones((3, 2)), np.zeros(3), np.ones((1, 2)))
    kept_candidates = screen_codes(codes, queries, 3)
    assert sorted(kept_candidates.labels[0, : kept_candidates.counts[0]].tolist()) == [0, 1, 2]
    fewer = screen_codes(codes._replace(offsets=np.where(np.arange(LABELS) == 1, codes.offsets, -np.inf)), queries, 1)
    assert fewer.labels[0, : fewer.counts[0]].tolist() == [1]


@pytest.mark.parametrize("size", [1e-44, 1e-38, 1e-20, 1e15])
def test_bytes_and_what_they_leave_out_make_up_the_vector(size):
    """Whatever the size of the numbers."""
    rng = np.random.default_rng(0)
    rows = (size * rng.normal(size=(70, 6))).astype(np.float32)
    rows[3] = 0
    codes = encode_byte_rows(lambda part: rows[part], np.zeros(70, np.float32), 6)
    signed = codes.words.reshape(2, 2, LABELS).transpose(0, 2, 1).copy().view(np.uint8).astype(np.float64) - 128
    near = signed.reshape(2 * LABELS, 8) * codes.scales[:, None]
    assert not near[:, 6:].any()
    assert not near[3].any()
    assert not near[70:].any()
    remainder = np.linalg.norm(rows - near[:70, :6], axis=1)
    assert (remainder <= codes.scales[:70] * np.repeat(codes.largest[:, 0].astype(float), LABELS)[:70]).all()
