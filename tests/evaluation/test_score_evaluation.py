"""Streaming evaluation: the same figures for any blocks, counts of ties and skipped rows, coverage, labels,
errors.
"""

import json
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.evaluation.calibration import sample_pairs
from wsabie.evaluation.score_evaluation import evaluate_scores, group_by_frequency


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 30, size=(50, 25)).astype(np.float32)
    Y = csr_matrix((rng.random((50, 25)) < 0.1).astype(np.int8))
    return scores, Y


def in_blocks(scores, size):
    return ((lo, scores[lo : lo + size]) for lo in range(0, len(scores), size))


def test_the_size_and_order_of_blocks_do_not_matter(task):
    scores, Y = task
    unblocked = evaluate_scores([(0, scores)], Y)
    for blocks in (in_blocks(scores, 7), reversed(list(in_blocks(scores, 13)))):
        blocked = evaluate_scores(blocks, Y)
        assert blocked.as_dict() == unblocked.as_dict()
        for name in unblocked.per_row:
            np.testing.assert_array_equal(blocked.per_row[name], unblocked.per_row[name])
        np.testing.assert_allclose(blocked.labels.recall, unblocked.labels.recall)


def test_rows_without_positives_are_skipped_and_counted():
    Y = csr_matrix(np.array([[1, 0], [0, 0], [-1, 0]]))
    evaluation = evaluate_scores([(0, np.array([[2.0, 1.0]] * 3))], Y, ks=(1,))
    assert evaluation.rows.tolist() == [0]
    assert evaluation.n_skipped == 2
    assert evaluation.means == {"p@1": 1, "recall@1": 1, "hit@1": 1, "ndcg@1": 1, "MAP": 1, "MRR": 1, "AUC": 1}


def test_values_per_row_are_float64_and_means_their_means(task):
    evaluation = evaluate_scores([(0, task[0])], task[1])
    assert {values.dtype for values in evaluation.per_row.values()} == {np.dtype(np.float64)}
    assert evaluation.means["MAP"] == pytest.approx(evaluation.per_row["MAP"].mean())
    one_of_five = evaluate_scores([(0, -np.arange(12.0)[None])], np.array([3]), ks=(5, 10)).as_dict()["metrics"]
    assert (one_of_five["p@5"], one_of_five["p@10"]) == (0.2, 0.1)  # and not 0.20000000298
    assert len(evaluation.rows) == evaluation.n_rows == len(evaluation.per_row["p@10"])


def test_ties_are_counted_at_each_cut_and_between_positives_and_negatives():
    scores = np.array([[3, 2, 2, 1], [3, 3, 2, 1], [4, 3, 2, 1]], float)
    evaluation = evaluate_scores([(0, scores)], np.array([1, 0, 3]), ks=(1, 2, 4))
    assert evaluation.tied_at_cut == {1: 1, 2: 1, 4: 0}
    assert evaluation.tied_positives == 2


def test_coverage_is_the_fraction_of_labels_shown():
    scores = np.array([[3, 2, 1, 0], [3, 1, 2, 0]], float)
    evaluation = evaluate_scores([(0, scores)], np.array([0, 0]), ks=(1, 2))
    assert evaluation.coverage == {1: 1 / 4, 2: 3 / 4}


def test_excluded_labels_are_not_shown_nor_counted_as_ties():
    scores = np.array([[3, 3, 1, 0]], float)
    evaluation = evaluate_scores([(0, scores)], np.array([1]), ks=(1,), exclude=csr_matrix([[1, 0, 0, 0]]))
    assert evaluation.means["p@1"] == 1
    assert evaluation.tied_at_cut == {1: 0}
    assert evaluation.coverage == {1: 1 / 4}
    assert scores[0, 0] == 3
    single_candidate = evaluate_scores([(0, scores)], np.array([0]), ks=(2,), exclude=csr_matrix([[0, 1, 1, 1]]))
    assert single_candidate.tied_at_cut == {2: 0}


def test_ceilings_are_what_a_perfect_ranker_reaches(task):
    Y = task[1]
    perfect = evaluate_scores([(0, Y.toarray().astype(float))], Y)
    for name, ceiling in perfect.ceilings.items():
        assert perfect.means[name] == pytest.approx(ceiling)


def test_figures_per_label(task):
    scores = np.array([[2, 1, 0], [2, 1, 0], [0, 1, 2]], float)
    labels = evaluate_scores([(0, scores)], np.array([0, 1, 1]), ks=(1,)).labels
    assert labels.support.tolist() == [1, 2, 0]
    np.testing.assert_allclose(labels.recall, [1, 0, np.nan])
    np.testing.assert_allclose(labels.reciprocal_rank, [1, 1 / 2, np.nan])


def test_bands_of_frequency_hold_every_label_once(task):
    evaluation = evaluate_scores([(0, task[0])], task[1])
    counts = np.arange(25)
    bands = group_by_frequency(evaluation.labels, counts)
    assert sum(band.n_labels for band in bands) == 25
    assert [(band.low, band.high) for band in bands] == [(0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 24)]


def test_the_summary_is_json_of_schema_1(task):
    summary = json.loads(json.dumps(evaluate_scores([(0, task[0])], task[1]).as_dict()))
    assert summary["schema"] == 1
    assert set(summary["rows_tied_at_cut"]) == {"@1", "@5", "@10"}


def test_float32_float64_and_integer_scores_agree(task):
    scores, Y = task
    reports = [evaluate_scores([(0, scores.astype(t))], Y).as_dict() for t in (np.float32, np.float64, np.int64)]
    assert reports[0] == reports[1] == reports[2]


def test_minus_infinity_ranks_last_but_is_legal():
    evaluation = evaluate_scores([(0, np.array([[-np.inf, 1.0, -np.inf]]))], np.array([0]), ks=(1,))
    assert evaluation.means["MAP"] == pytest.approx((1 / 2 + 1 / 3) / 2)


@pytest.mark.parametrize(
    ("blocks", "Y", "options", "message"),
    [
        ([(0, [[0.0, np.nan]])], [0], {}, "a score of row 0 is NaN"),
        ([(0, [[0.0, 1.0]])], [0, 1], {}, "1 rows have no scores, the first is row 1"),
        ([(0, [[0.0, 1.0]]), (0, [[0.0, 1.0]])], [0], {}, "row 0 has scores in two blocks"),
        ([(1, [[0.0, 1.0]])], [0], {}, "scores for the rows 1 to 1 but Y has 1 rows"),
        ([(0, [[0.0, 1.0]])], [2], {}, "row 0 of Y has label 2 but the labels are 0 to 1"),
        ([(0, [[0.0, 1.0]])], [-1], {}, "row 0 of Y has label -1"),
        ([(0, [[0.0, 1.0]])], [0.5], {}, "one label per row is given by integers"),
        ([(0, [[0.0, 1.0]])], [[1, 0, 0]], {}, "Y has 3 columns but there are 2 labels"),
        ([(0, [[0.0, 1.0]])], [[0, 0]], {}, "no row has a positive label"),
        ([(0, [[0.0, 1.0]])], [0], {"ks": (0,)}, "every k must be 1 or more"),
        ([(0, [[0.0, 1.0]])], [0], {"ks": 5}, r"ks is 5; give a list of numbers, such as \(5,\)"),
        ([(0, [0.0, 1.0])], [0], {}, "are not a block"),
        ([(0, [[0.0, 1.0]])], [0], {"exclude": np.zeros((2, 2))}, "exclude has 2 rows but there are 1"),
        ([(0, [[0.0, 1.0]]), (1, [[0.0]])], [0, 0], {}, "scores from row 1 on have 1 columns, others 2"),
        ([], [0], {}, "there are no scores"),
    ],
)
def test_input_that_cannot_be_evaluated_is_named(blocks, Y, options, message):
    with pytest.raises(InputError, match=message):
        evaluate_scores([(lo, np.array(s)) for lo, s in blocks], np.array(Y), **options)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([(0, [[0.0, 1.0], [1.0]])], "a block of scores has rows of different lengths"),
        ([(0, None)], "are not a block"),
        ([(0,)], "is not a pair of a row's number and an array"),
        ([0], "is not a pair of a row's number and an array"),
        ([(0, np.eye(2), 1)], "is not a pair of a row's number and an array"),
        ([("0", np.eye(2))], "is not a pair of a row's number and an array"),
        ([(0.5, np.eye(2))], "is not a pair of a row's number and an array"),
        (None, "the scores are NoneType where blocks are expected"),
    ],
)
def test_blocks_of_another_form_are_named(blocks, message):
    with pytest.raises(InputError, match=message):
        evaluate_scores(blocks, np.array([0, 1]))


@pytest.mark.parametrize("ks", [["a"], [None], [[1]], [2**70], [float("nan")]])
def test_ks_that_are_no_numbers_are_named(ks):
    with pytest.raises(InputError, match=r"^ks = "):
        evaluate_scores([(0, np.eye(2))], np.array([0, 1]), ks=ks)


def test_ragged_labels_are_named():
    with pytest.raises(InputError, match="Y has rows of different lengths"):
        evaluate_scores([(0, np.eye(2))], [[0, 1], [1]])


def test_an_error_of_whoever_yields_scores_stays_as_it_is():
    def blocks():
        raise TypeError("of theirs")
        yield

    with pytest.raises(TypeError, match="of theirs") as raised:
        evaluate_scores(blocks(), np.array([0, 1]))
    assert not isinstance(raised.value, InputError)


def test_scores_in_one_array_are_no_blocks():
    with pytest.raises(InputError, match=r"one array where blocks are expected; give \[\(0, scores\)\]"):
        evaluate_scores(np.eye(2), np.array([0, 1]))


@pytest.mark.parametrize("use", [lambda blocks, Y: evaluate_scores(blocks, Y, ks=(1,)), sample_pairs])
def test_one_block_of_scores_is_held_at_a_time(use):
    def blocks():
        rng = np.random.default_rng(0)
        for lo in range(0, 600, 200):
            yield lo, rng.random((200, 20_000), np.float32)

    Y = np.arange(600)
    tracemalloc.start()
    use(blocks(), Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    block = 200 * 20_000 * 4
    assert block < peak < 1.6 * block
