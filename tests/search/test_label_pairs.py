"""Best pairs of labels: brute force by the slow twin, ties, couples, known pairs, ranks, memory, refusals."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.label_pairs import count_pairs, score_pairs, select_top_pairs

from wsabie.core.errors import InputError
from wsabie.search import label_pairs
from wsabie.search.label_pairs import LabelPairIndex


def table(n_labels, dim, seed, *, has_integers=False):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, (n_labels, dim)) if has_integers else rng.normal(size=(n_labels, dim))
    return values.astype(np.float32)


def edges_of(pairs):
    """All edges, as the kernel makes them one by one."""
    n = pairs.n_labels
    return pairs._compute_edges(*np.divmod(np.arange(n * n), n)).reshape(n, n)


def extra_of(n_labels, *, relations=(), offset=0.0, same=True, couples=None):
    """Return the (n_labels, n_labels) term that is added to the scores of all pairs."""
    extra = np.zeros((n_labels, n_labels), np.float32)
    for i, j in relations:
        extra[i, j] = offset
    if not same:
        np.fill_diagonal(extra, -np.inf)
    if couples is not None:
        listed = np.zeros(extra.shape, bool)
        listed[tuple(np.transpose(couples))] = True
        extra[~listed] = -np.inf
    return extra


def check(W, a, b, k, weight, *, known_relations=(), offset=0.0, same=True, couples=None):
    """Labels and scores equal to brute force bit by bit, and ranks of all candidates."""
    pairs = LabelPairIndex(W, weight, known_relations, offset, same=same)
    extra, edges, n = (
        extra_of(len(W), relations=known_relations, offset=offset, same=same, couples=couples),
        edges_of(pairs),
        len(W),
    )
    best = pairs.top(a, b, k, couples=couples)
    for q in range(len(a)):
        scores = score_pairs(a[q], b[q], edges, extra)
        for values, expected in zip(best, select_top_pairs(scores, k), strict=True):
            np.testing.assert_array_equal(values[q], expected)
        i, j = np.nonzero(np.isfinite(scores))
        counts = pairs.counts(np.tile(a[q], (len(i), 1)), np.tile(b[q], (len(i), 1)), i, j, couples=couples)
        expected = [count_pairs(scores, *pair) for pair in zip(i, j, strict=True)]
        assert list(zip(counts.n_above.tolist(), counts.n_tied.tolist(), strict=True)) == expected
    assert (best[0].dtype, best[1].dtype, best[2].dtype, n) == (np.int64, np.int64, np.float32, pairs.n_labels)


@st.composite
def tasks(draw):
    """Small tasks, half of them of whole numbers, so that ties abound."""
    n_labels, dim, n, k = (draw(st.integers(lo, hi)) for lo, hi in ((1, 12), (1, 9), (1, 3), (1, 160)))
    seed, has_integers = draw(st.integers(0, 999)), draw(st.booleans())
    W, a, b = (
        table(n_labels, dim, seed, has_integers=has_integers),
        *(table(n, n_labels, seed + s, has_integers=has_integers) for s in (1, 2)),
    )
    options = {"weight": draw(st.sampled_from([0.5, -1.0, 0.0, 0.1, 3.0])), "same": draw(st.booleans())}
    options |= {"offset": draw(st.sampled_from([100.0, -2.0, 0.5])), "known_relations": []}
    pair = st.tuples(st.integers(0, n_labels - 1), st.integers(0, n_labels - 1))
    if draw(st.booleans()):
        options["known_relations"] = draw(st.lists(pair, max_size=20))
    if draw(st.booleans()):
        options["couples"] = draw(st.lists(pair, min_size=1, max_size=20))
    return (W, a, b, k), options


@given(task=tasks())
def test_equals_brute_force_bit_by_bit(task):
    (W, a, b, k), options = task
    check(W, a, b, k, **options)


@pytest.mark.parametrize("weight", [0.1, 1.0, -1.0, 0.0])
@pytest.mark.parametrize("spread", [1.0, 0.01, 0.0])
def test_equals_brute_force_over_several_tiles(weight, spread):
    """With scores that decide alone, that leave it to the edges, and that say nothing."""
    W, a, b = table(203, 30, 0) / 4, *(spread * table(3, 203, seed) for seed in (1, 2))
    pairs = LabelPairIndex(W, weight)
    best, edges = pairs.top(a, b, 25), edges_of(pairs)
    given_i, given_j = np.array([[7, 0, 202], [7, 202, 64]])
    counts = pairs.counts(a, b, given_i, given_j)
    for q in range(3):
        scores = score_pairs(a[q], b[q], edges)
        for values, expected in zip(best, select_top_pairs(scores, 25), strict=True):
            np.testing.assert_array_equal(values[q], expected)
        assert (counts.n_above[q], counts.n_tied[q]) == count_pairs(scores, given_i[q], given_j[q])


def test_a_case_worked_by_hand():
    """Scores without edges: 1 + (0, 1, .75), .75 + the same, 0 + the same; edges: half of the products."""
    W = np.array([[1, 0], [0.75, 0.5], [0, -1]], np.float32)
    a, b = np.array([[1, 0.75, 0]], np.float32), np.array([[0, 1, 0.75]], np.float32)
    scores = {(i, j): float(a[0, i] + b[0, j] + 0.5 * (W[i] @ W[j])) for i in range(3) for j in range(3)}
    assert scores[0, 1] == 1 + 1 + 0.5 * 0.75
    assert scores[1, 2] == 0.75 + 0.75 - 0.5 * 0.5
    order = sorted(scores, key=lambda pair: (-scores[pair], pair))
    objects, parts, best = LabelPairIndex(W, 0.5).top(a, b, 9)
    assert list(zip(objects[0].tolist(), parts[0].tolist(), strict=True)) == order
    assert best[0].tolist() == [scores[pair] for pair in order]
    every = np.divmod(np.arange(9), 3)
    ranks = LabelPairIndex(W, 0.5).counts(np.tile(a, (9, 1)), np.tile(b, (9, 1)), *every).ranks
    n_above = {pair: sum(s > scores[pair] for s in scores.values()) for pair in scores}
    tied = {pair: sum(s == scores[pair] for s in scores.values()) - 1 for pair in scores}
    assert ranks.tolist() == [1 + n_above[pair] + (tied[pair] + 1) // 2 for pair in zip(*every, strict=True)]


def test_equal_scores_go_by_object_and_then_by_part():
    objects, parts, scores = LabelPairIndex(np.ones((70, 3)), 1.0).top(np.zeros((1, 70)), np.zeros((1, 70)), 72)
    assert objects[0].tolist() == [0] * 70 + [1] * 2
    assert parts[0].tolist() == [*range(70), 0, 1]
    assert (scores == 3).all()


@pytest.mark.parametrize("n_labels", [3, 4])
def test_a_scorer_that_knows_nothing_ranks_as_chance(n_labels):
    nothing = np.zeros((1, n_labels))
    rank = LabelPairIndex(np.ones((n_labels, 2)), 0.1).counts(nothing, nothing, [1], [2]).ranks
    assert rank.tolist() == [int(np.ceil((n_labels**2 + 1) / 2))]


def test_more_pairs_than_there_are():
    for options, n in (({}, 4), ({"same": False}, 2)):
        objects, parts, scores = LabelPairIndex(np.eye(2), 1.0, **options).top(np.zeros((1, 2)), np.zeros((1, 2)), 6)
        assert (objects[0, n:] == -1).all()
        assert (parts[0, n:] == -1).all()
        assert (scores[0, n:] == -np.inf).all()
        assert (np.minimum(objects, parts)[0, :n] >= 0).all()


def test_one_label():
    pairs = LabelPairIndex([[2.0]], 0.5, [[0, 0]], 100)
    assert [values.tolist() for values in pairs.top([[1.0]], [[2.0]], 1)] == [[[0]], [[0]], [[105.0]]]
    assert pairs.counts([[1.0]], [[2.0]], [0], [0]).ranks.tolist() == [1]


def test_known_pairs_come_first_and_only_couples_count():
    rng = np.random.default_rng(0)
    W, a, b = table(50, 4, 0), *rng.normal(size=(2, 5, 50)).astype(np.float32)
    relations = [[3, 4], [9, 1], [3, 4]]
    objects, parts, scores = LabelPairIndex(W, 0.0, relations, 100).top(a, b, 3)
    assert (scores[:, :2] > 50).all()
    assert (scores[:, 2] < 50).all()
    best_pairs = np.sort(50 * objects[:, :2] + parts[:, :2], axis=1)
    assert (best_pairs == [50 * 3 + 4, 50 * 9 + 1]).all()
    ranks = LabelPairIndex(W, 0.0).counts(a, b, np.full(5, 3), np.full(5, 4), couples=relations).ranks
    np.testing.assert_array_equal(ranks, 1 + (a[:, 9] + b[:, 1] > a[:, 3] + b[:, 4]))


def test_threads_chunks_and_neighbours_change_nothing(monkeypatch):
    W, a, b = table(300, 20, 0), table(40, 300, 1), table(40, 300, 2)
    pairs, pair = LabelPairIndex(W, 0.3), (np.arange(40), np.arange(40) + 200)
    best, counts = pairs.top(a, b, 7, threads=1), pairs.counts(a, b, *pair, threads=1)
    monkeypatch.setattr(label_pairs, "_CELLS", 900)
    monkeypatch.setattr(label_pairs, "_QUERIES_AT_ONCE", 7)
    for threads in (1, 3):
        for values, all_values in zip(pairs.top(a, b, 7, threads=threads), best, strict=True):
            np.testing.assert_array_equal(values, all_values)
        for values, all_values in zip(pairs.counts(a, b, *pair, threads=threads), counts, strict=True):
            np.testing.assert_array_equal(values, all_values)
    for values, all_values in zip(pairs.top(a[5:6], b[5:6], 7), best, strict=True):
        np.testing.assert_array_equal(values[0], all_values[5])


def test_the_best_have_the_first_ranks():
    W, a, b = table(100, 10, 0), table(1, 100, 1), table(1, 100, 2)
    pairs = LabelPairIndex(W, 0.5)
    objects, parts, _ = pairs.top(a, b, 50)
    ranks = pairs.counts(np.tile(a, (50, 1)), np.tile(b, (50, 1)), objects[0], parts[0]).ranks
    assert ranks.tolist() == list(range(1, 51))


def test_arrays_as_they_come_are_taken():
    """Cut from a padded table, read-only, in Fortran order, in float64."""
    padded = np.zeros((60, 16), np.float32)
    padded[:, :10] = table(60, 10, 0)
    a, b = table(2, 60, 1), table(2, 60, 2)
    expected = LabelPairIndex(padded[:, :10].copy(), 0.5).top(a, b, 5)
    for array in (a, b, padded):
        array.flags.writeable = False
    queries = a.astype(np.float64), np.asfortranarray(b)
    for values, expected_values in zip(LabelPairIndex(padded[:, :10], 0.5).top(*queries, 5), expected, strict=True):
        np.testing.assert_array_equal(values, expected_values)


def test_no_queries_and_no_couples():
    pairs, none = LabelPairIndex(np.eye(3), 1.0), np.empty((0, 3), np.float32)
    assert [values.shape for values in pairs.top(none, none, 2)] == [(0, 2)] * 3
    assert pairs.counts(none, none, np.empty(0, int), np.empty(0, int)).ranks.shape == (0,)
    objects, _, scores = pairs.top(np.zeros((1, 3)), np.zeros((1, 3)), 2, couples=[])
    assert (objects.tolist(), scores.tolist()) == ([[-1, -1]], [[-np.inf, -np.inf]])


def peak_of(work):
    """Bytes allocated at the peak."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_labels_and_not_with_the_pairs():
    peaks = []
    for n_labels in (2000, 4000):
        W, a, b = table(n_labels, 8, 0) / 10, table(1, n_labels, 1), table(1, n_labels, 2)
        peaks.append(peak_of(lambda W=W, a=a, b=b: LabelPairIndex(W, 0.1).top(a, b, 10)))
        peaks.append(peak_of(lambda W=W, a=a, b=b: LabelPairIndex(W, 0.1).counts(a, b, [0], [1]).ranks))
    assert max(peaks) < 4000 * 8 * 30  # thirty arrays of one number a label, where all pairs are four thousand
    assert peaks[2] < 2.5 * peaks[0]


def test_few_pairs_are_looked_at():
    W, a, b = table(2000, 50, 0) / 10, table(2, 2000, 1), table(2, 2000, 2)
    pairs = LabelPairIndex(W, 0.1)
    pairs.top(a, b, 10)
    assert (pairs.n_scored_ < 2000**2 / 100).all()


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LabelPairIndex([[1.0, NAN]], 1), "not finite"),
        (lambda: LabelPairIndex([[1.0, INF]], 1), "not finite"),
        (lambda: LabelPairIndex([[1e30, 1]], 1), "too long"),
        (lambda: LabelPairIndex([1.0, 2.0], 1), "1 dimension"),
        (lambda: LabelPairIndex(np.empty((0, 2)), 1), "no rows"),
        (lambda: LabelPairIndex(np.eye(2), NAN), "choose finite"),
        (lambda: LabelPairIndex(np.eye(2), 1, [[0, 1]], INF), "choose finite"),
        (lambda: LabelPairIndex(np.eye(2), 1, [[0, 2]], 1), "label 2 of the related pairs does not exist"),
        (lambda: LabelPairIndex(np.eye(2), 1, [[-1, 0]], 1), "label -1 of the related pairs does not exist"),
        (lambda: LabelPairIndex(np.eye(2), 1, [[0.5, 1]], 1), "two label numbers a row"),
        (lambda: LabelPairIndex(np.eye(2), 1, [0, 1], 1), "two label numbers a row"),
    ],
)
def test_tables_that_do_not_do_are_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        ([[0, NAN]], [[0, 0]], "row 0 of the scores holds NaN"),
        ([[0, 0], [0, 0]], [[0, 0], [INF, 0]], "row 1 of the scores"),
        ([[3e38, 0]], [[0, 0]], "too large"),
        ([[0, 0, 0]], [[0, 0, 0]], "there are 2 labels"),
        ([[0, 0], [0, 0]], [[0, 0]], "shapes"),
        ([0, 0], [0, 0], "1 dimension"),
        ([["x", "y"]], [[0, 0]], "real numbers"),
    ],
)
def test_scores_that_do_not_do_are_refused(a, b, sentence):
    pairs = LabelPairIndex(np.eye(2), 0.1)
    with pytest.raises(InputError, match=sentence):
        pairs.top(a, b, 1)
    with pytest.raises(InputError, match=sentence):
        pairs.counts(a, b, [0], [1])


def test_other_things_that_do_not_do_are_refused():
    pairs, query = LabelPairIndex(np.eye(2), 0.1, same=False), np.zeros((1, 2))
    with pytest.raises(InputError, match="k is 0"):
        pairs.top(query, query, 0)
    with pytest.raises(InputError, match="label 5 of the couples"):
        pairs.top(query, query, 1, couples=[[0, 5]])
    with pytest.raises(InputError, match=r"pair \(1, 1\) of row 0 is not a candidate"):
        pairs.counts(query, query, [1], [1])
    with pytest.raises(InputError, match=r"pair \(0, 1\) of row 0 is not a candidate"):
        pairs.counts(query, query, [0], [1], couples=[[1, 0]])
    with pytest.raises(InputError, match="do not fit 1 queries"):
        pairs.counts(query, query, [0, 1], [1, 0])
    with pytest.raises(InputError, match="do not fit 1 queries"):
        pairs.counts(query, query, [0.5], [1])
    with pytest.raises(InputError, match="label 2 of the given pairs"):
        pairs.counts(query, query, [0], [2])
