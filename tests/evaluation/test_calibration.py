"""Calibration: recovers a known truth, keeps the order of scores, shrinks label offsets, and its table tells
the truth.
"""

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.evaluation.calibration import (
    Calibration,
    ScoredPairs,
    compute_calibration_error,
    fit_calibration,
    fit_competition,
    sample_pairs,
)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def draw_pairs(n, slope, offset, label_offsets, seed=0):
    """Pairs whose outcomes really follow the model."""
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(size=n) * 2, rng.integers(len(label_offsets), size=n)
    truth = sigmoid(slope * scores + offset + label_offsets[labels])
    return ScoredPairs(scores, labels, (rng.random(n) < truth).astype(float), np.ones(n)), truth


def test_slope_and_offset_are_recovered_within_their_standard_errors():
    pairs, _ = draw_pairs(40_000, 1.7, -1.0, np.zeros(1))
    calibration = fit_calibration(pairs)
    p = calibration.predict_proba(pairs.scores)
    design = np.stack([pairs.scores, np.ones(len(p))], axis=1)
    errors = np.sqrt(np.diag(np.linalg.inv((design.T * (p * (1 - p))) @ design)))
    assert abs(calibration.slope - 1.7) < 4 * errors[0]
    assert abs(calibration.offset + 1.0) < 4 * errors[1]


def test_scikit_learn_finds_the_same_maximum():
    from sklearn.linear_model import LogisticRegression

    pairs, _ = draw_pairs(3000, 0.8, 0.3, np.zeros(1))
    oracle = LogisticRegression(C=np.inf, tol=1e-8).fit(pairs.scores[:, None], pairs.outcomes)
    calibration = fit_calibration(pairs)
    assert calibration.slope == pytest.approx(oracle.coef_[0, 0], abs=5e-3)  # softened targets differ by about 1 / n
    assert calibration.offset == pytest.approx(oracle.intercept_[0], abs=5e-3)


def test_probabilities_are_calibrated_on_new_pairs_and_label_offsets_help():
    label_offsets = np.random.default_rng(5).normal(size=40) * 1.5
    pairs, _ = draw_pairs(30_000, 1.2, -0.5, label_offsets, seed=1)
    fresh, truth = draw_pairs(30_000, 1.2, -0.5, label_offsets, seed=2)
    common, per_label = fit_calibration(pairs), fit_calibration(pairs, n_labels=40)
    with_labels = per_label.predict_proba(fresh.scores, fresh.labels)
    assert compute_calibration_error(with_labels, fresh.outcomes) < 0.01
    assert np.abs(with_labels - truth).mean() < 0.02 < np.abs(common.predict_proba(fresh.scores) - truth).mean()


def test_label_offsets_solve_the_penalised_equations():
    pairs, _ = draw_pairs(400, 1.0, 0.0, np.array([1.0, -1.0, 0.5]))
    calibration = fit_calibration(pairs, n_labels=5, shrinkage=2.0)
    right = pairs.outcomes.sum()
    soft = np.where(pairs.outcomes > 0, (right + 1) / (right + 2), 1 / (len(pairs.scores) - right + 2))
    residual = calibration.predict_proba(pairs.scores, pairs.labels) - soft
    gradient = np.bincount(pairs.labels, residual, minlength=5) + 2.0 * calibration.label_offsets
    np.testing.assert_allclose(gradient, 0, atol=1e-3)
    np.testing.assert_allclose([residual.sum(), residual @ pairs.scores], 0, atol=1e-3)
    assert calibration.label_offsets[3:].tolist() == [0, 0]


def test_more_shrinkage_means_smaller_label_offsets():
    pairs, _ = draw_pairs(500, 1.0, 0.0, np.array([2.0, -2.0]))
    sizes = [np.abs(fit_calibration(pairs, n_labels=2, shrinkage=s).label_offsets).max() for s in (0.1, 10, 1e4)]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 0.05


def test_the_order_of_scores_is_kept_even_when_they_mislead():
    pairs, _ = draw_pairs(500, -2.0, 0.0, np.zeros(1))
    calibration = fit_calibration(pairs)
    assert calibration.slope == 0
    assert calibration.predict_proba(np.array([0.0]))[0] == pytest.approx(pairs.outcomes.mean(), abs=0.01)
    good = fit_calibration(draw_pairs(500, 2.0, 0.0, np.zeros(1))[0])
    assert (np.diff(good.predict_proba(np.linspace(-9, 9, 50))) > 0).all()


def test_a_perfect_scorer_gets_finite_probabilities():
    calibration = fit_calibration(
        ScoredPairs(np.array([-1.0, 1.0]), np.array([0, 0]), np.array([0.0, 1.0]), np.ones(2))
    )
    assert np.isfinite(calibration.slope)
    np.testing.assert_allclose(calibration.predict_proba(np.array([-1.0, 1.0])), [1 / 3, 2 / 3], atol=1e-6)


def test_a_weight_of_2_is_the_pair_twice_and_units_do_not_matter():
    pairs, _ = draw_pairs(300, 1.0, 0.0, np.zeros(1))
    doubled = ScoredPairs(*(np.concatenate([column, column]) for column in pairs))
    weighted = fit_calibration(pairs._replace(weights=pairs.weights * 2))
    assert weighted.slope == pytest.approx(fit_calibration(doubled).slope, rel=1e-9)
    scaled = fit_calibration(pairs._replace(scores=pairs.scores * 1e6 + 3e6))
    np.testing.assert_allclose(
        scaled.predict_proba(pairs.scores * 1e6 + 3e6), fit_calibration(pairs).predict_proba(pairs.scores), atol=1e-6
    )


def test_label_offsets_by_column_by_id_and_for_no_label():
    calibration = Calibration(1.0, 0.0, np.array([0.0, 2.0], np.float32))
    by_column = calibration.predict_proba(np.zeros((3, 2)))
    by_id = calibration.predict_proba(np.zeros((3, 2)), np.array([[0, 1]] * 3))
    np.testing.assert_array_equal(by_column, by_id)
    assert calibration.predict_proba(np.array([0.0]), np.array([-1]))[0] == 0.5


def draw_suggestions(compete, n=4000, k=5, seed=0):
    """Scores of rows where the labels' chances are independent, or those of the better of the first two of rows."""
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(size=(n, k)) * 2, np.tile(np.arange(k), (n, 1))
    if compete:
        scores[:, 2:] = -9
        best = (rng.random(n) < sigmoid(scores[:, 0] - scores[:, 1])).astype(int)
        return scores, labels, (labels == 1 - best[:, None]).astype(int)
    return scores, labels, (rng.random((n, k)) < sigmoid(scores)).astype(int)


def test_competition_is_that_of_the_data():
    one_fits, independent = (fit_competition(Calibration(1.0, 0.0), *draw_suggestions(compete)) for compete in (1, 0))
    assert one_fits.competition == pytest.approx(1, abs=0.1)
    assert independent.competition == pytest.approx(0, abs=0.05)
    assert [one_fits.slope, independent.slope] == pytest.approx([1, 1], abs=0.1)
    scores, labels, outcomes = draw_suggestions(True, seed=1)
    p = one_fits.predict_proba(scores, labels)
    assert compute_calibration_error(p[:, :2].ravel(), outcomes[:, :2].ravel()) < 0.02
    np.testing.assert_allclose(p[:, :2].sum(axis=1), 1, atol=0.05)


def test_competition_keeps_the_order_of_a_row():
    scores, labels, outcomes = draw_suggestions(True)
    offsets = np.linspace(-1, 1, 5).astype(np.float32)
    calibration = fit_competition(Calibration(0.7, -0.3, offsets), scores, labels, outcomes)
    independent = Calibration(calibration.slope, calibration.offset, calibration.label_offsets)
    p, former = calibration.predict_proba(scores, labels), independent.predict_proba(scores, labels)
    assert calibration.competition > 0.5
    np.testing.assert_array_equal(np.argsort(p, axis=1), np.argsort(former, axis=1))


def test_competition_counts_only_suggested_labels():
    scores, labels, outcomes = draw_suggestions(False, k=12)
    shown = np.argsort(-scores, axis=1)[:, :3]
    few = (np.take_along_axis(table, shown, axis=1) for table in (scores, labels, outcomes))
    expected, calibration = Calibration(1.0, 0.0), Calibration(1.0, 0.0)
    expected = fit_competition(expected, *few)
    calibration = fit_competition(calibration, scores, labels, outcomes, n_suggestions=3)
    assert calibration == expected


def test_rivals_by_hand():
    """The best other label: of the list, of the best labels beside it, or none (label -1)."""
    calibration = Calibration(2.0, 1.0, np.array([0.0, 0.0, 4.0], np.float32), competition=0.5)
    scores, labels = np.array([[3.0, 2.0, -np.inf]]), np.array([[0, 1, -1]])
    np.testing.assert_array_equal(calibration.find_rivals(labels, scores, labels), [[5, 7, 7]])
    best = np.array([[3.0, 2.5]]), np.array([[0, 2]])
    np.testing.assert_array_equal(calibration.find_rivals(labels, *best), [[10, 10, 10]])
    np.testing.assert_array_equal(calibration.find_rivals(np.array([[2]]), *best), [[7]])
    np.testing.assert_array_equal(calibration.find_rivals(labels[:, :1], scores[:, :1], labels[:, :1]), [[1]])
    expected = sigmoid(np.array([7 - 0.5 * (5 - 1), 5 - 0.5 * (7 - 1)]))
    np.testing.assert_allclose(calibration.predict_proba(scores, labels)[0], [*expected, 0])


@pytest.mark.parametrize("outcomes", [[1, 1], [0, 0]])
def test_suggestions_of_one_outcome_change_nothing(outcomes):
    calibration = Calibration(1.0, 0.5, np.zeros(2, np.float32))
    arrays = np.array([[1.0, 0.0]]), np.array([[0, 1]]), np.array([outcomes])
    assert fit_competition(calibration, *arrays) is calibration


def test_misleading_suggestions_change_nothing():
    scores, labels, outcomes = draw_suggestions(False)
    calibration = Calibration(1.0, 0.0)
    assert fit_competition(calibration, -scores, labels, outcomes) is calibration


def test_sampled_pairs_stand_for_all_pairs():
    rng = np.random.default_rng(0)
    scores, Y = rng.normal(size=(40, 500)), rng.integers(500, size=40)
    pairs = sample_pairs([(0, scores[:25]), (25, scores[25:])], Y, top=10, n_drawn=30)
    assert pairs.weights.sum() == pytest.approx(40 * 500)
    assert pairs.outcomes.sum() == 40
    assert len(pairs.scores) == 40 * (1 + 10 + 30)
    first = slice(0, 41)
    np.testing.assert_allclose(pairs.scores[first], scores[0, pairs.labels[first]])
    negative_scores = np.delete(scores[0], Y[0])
    assert set(np.sort(negative_scores)[-10:]) == set(pairs.scores[1:11])


def test_a_fit_on_sampled_pairs_is_near_the_fit_on_all():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(400, 300))
    Y = (rng.random(scores.shape) < sigmoid(2 * scores - 5)).astype(int)
    everything = ScoredPairs(
        scores.ravel(), np.tile(np.arange(300), 400), Y.ravel().astype(float), np.ones(scores.size)
    )
    full, part = fit_calibration(everything), fit_calibration(sample_pairs([(0, scores)], Y, top=10, n_drawn=60))
    assert part.slope == pytest.approx(full.slope, abs=0.1)
    assert part.offset == pytest.approx(full.offset, abs=0.2)


def test_the_calibration_error_by_hand():
    """Bins of 4 and 2 pairs, with mean predictions .25 and .95 where 3 of 4 and 2 of 2 are right."""
    error = compute_calibration_error([0.1, 0.3, 0.3, 0.3, 0.9, 1.0], [0, 1, 1, 1, 1, 1], bins=2)
    assert error == pytest.approx((4 * 0.5 + 2 * 0.05) / 6)


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (ScoredPairs(np.array([np.inf, 0]), np.zeros(2, int), np.array([1.0, 0]), np.ones(2)), {}, "not finite"),
        (ScoredPairs(np.zeros(2), np.zeros(2, int), np.ones(2), np.ones(2)), {}, "both right and wrong"),
        (ScoredPairs(np.arange(2.0), np.zeros(2, int), np.arange(2.0), np.ones(2)), {"shrinkage": 0}, "above 0"),
    ],
)
def test_uncalibratable_scores_are_refused(pairs, options, message):
    with pytest.raises(InputError, match=message):
        fit_calibration(pairs, **options)
    with pytest.raises(InputError, match="no scores to calibrate on"):
        sample_pairs([], np.array([0]))
