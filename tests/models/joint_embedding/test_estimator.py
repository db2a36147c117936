"""The estimator: known answers, its contract, determinism and learning."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.models.joint_embedding.estimator_toy import ANSWER, X, Y, make, same
from threadpoolctl import threadpool_limits

from toy_tasks import N_FEATURES, N_LABELS, names, toy
from wsabie.core.errors import InputError, NotCalibratedError
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.joint_embedding.estimator import Wsabie


@pytest.fixture(scope="module")
def fitted() -> Wsabie:
    return make().fit(X, Y)


# ---- known answers


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
@pytest.mark.parametrize("loss", ["warp", "auc"])
def test_toy_task_is_learned(loss: str, similarity: str, dense: bool, deterministic: bool) -> None:
    rows, truth, answer = toy(dense=dense)
    model = make(loss=loss, similarity=similarity, deterministic=deterministic).fit(rows, truth)
    new_rows, new_truth, new_answer = toy(60, dense=dense, seed=1)
    for X_, Y_, expected in ((rows, truth, answer), (new_rows, new_truth, new_answer)):
        ids, scores = model.rank(X_, 2)
        assert np.array_equal(np.sort(ids, 1), expected)
        assert np.isfinite(scores).all()
        assert model.score(X_, Y_) == 1


@pytest.mark.parametrize("rank_weight", ["precision", "mean_rank", "top1", [1, 0.5, 0.1]])
@pytest.mark.parametrize("positives", ["mean", "pairs"])
def test_every_weighting_learns_the_toy_task(rank_weight: Any, positives: str) -> None:
    rate = 0.3 if isinstance(rank_weight, str) and rank_weight == "mean_rank" else 0.05
    model = make(rank_weight=rank_weight, pair_weighting=positives, learning_rate=rate).fit(X, Y)
    assert np.array_equal(np.sort(model.rank(X, 2)[0], 1), ANSWER)


@pytest.mark.parametrize("trials", [1, 3, None])
def test_every_number_of_draws_learns_the_toy_task(trials: int | None) -> None:
    model = make(max_sampled=trials).fit(X, Y)
    assert np.array_equal(np.sort(model.rank(X, 2)[0], 1), ANSWER)
    assert all(s.mean_draws <= (trials or N_LABELS) for s in model.history_)


# ---- contract


def test_scores_are_products_of_points_and_label_vectors(fitted: Wsabie) -> None:
    points = fitted.transform(X)
    assert points.shape == (120, 20)
    assert fitted.label_vectors.shape == (N_LABELS, 20)
    np.testing.assert_allclose(fitted.scores(X), points @ fitted.label_vectors.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_scores_and_ranks_equal_those_of_the_kernels(similarity: str) -> None:
    """BLAS ranks by the scores that the kernels trained."""
    from tests.reference import candidates as candidates_reference
    from tests.reference import training_loops as training_loops_reference

    model = make(similarity=similarity, epochs=2, label_bias=True, init="random").fit(X, Y)
    labels = training_loops_reference.convert_to_float64(model.space_.label_arrays())
    points = np.pad(model.transform(X[:5]).astype(float), ((0, 0), (0, 12)))
    expected = np.array([[candidates_reference.score_label(labels, q, y) for y in range(N_LABELS)] for q in points])
    np.testing.assert_allclose(model.scores(X[:5]), expected, rtol=1e-4, atol=1e-5)
    ids, scores = model.rank(X[:5], 4)
    assert np.array_equal(ids, np.argsort(-expected, 1)[:, :4])
    np.testing.assert_allclose(scores, -np.sort(-expected, 1)[:, :4], rtol=1e-4, atol=1e-5)


def test_rank_excludes_selects_and_pads(fitted: Wsabie) -> None:
    ids, scores = fitted.rank(X, N_LABELS + 3)
    assert (ids.dtype, scores.dtype) == (np.int64, np.float32)
    assert (ids[:, N_LABELS:] == -1).all()
    assert (scores[:, N_LABELS:] == -np.inf).all()
    assert (np.sort(ids[:, :N_LABELS], 1) == np.arange(N_LABELS)).all()
    assert (np.diff(scores[:, :N_LABELS], axis=1) <= 0).all()
    ranked, _ = fitted.rank(X, 2, exclude=Y)
    assert not any(set(row) & set(true) for row, true in zip(ranked, ANSWER, strict=True))
    ranked_candidates, _ = fitted.rank(X, 3, candidates=["4", "0"])
    assert {int(y) for y in ranked_candidates.ravel()} == {4, 0, -1}
    assert np.array_equal(ranked_candidates, fitted.rank(X, 3, candidates=[0, 4])[0])


def test_ties_are_ordered_by_id(fitted: Wsabie) -> None:
    """An empty row scores 0 with every label."""
    ids, scores = fitted.rank(sp.csr_matrix((1, N_FEATURES)), 5)
    assert ids.tolist() == [[0, 1, 2, 3, 4]]
    assert not scores.any()


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_scores_are_never_nan(similarity: str) -> None:
    """Empty rows, huge rows, a label with its point at the origin."""
    rows = sp.vstack([X, sp.csr_matrix((3, N_FEATURES)), 1e30 * X[:1]]).tocsr()
    truth = sp.vstack([Y, Y[:4]]).tocsr()
    model = make(similarity=similarity, epochs=3).fit(rows, truth)
    model.space_.labels[3] = 0
    assert np.isfinite(model.scores(rows)).all()
    assert np.isfinite(model.transform(rows)).all()


def test_label_order_changes_only_ids() -> None:
    from copy import copy
    from dataclasses import replace

    fitted = make(init="random").fit(X, Y)  # without equal scores
    order = np.random.default_rng(0).permutation(N_LABELS)
    renumbered = copy(fitted)
    renumbered.space_ = replace(fitted.space_, labels=fitted.space_.labels[order], bias=fitted.space_.bias[order])
    ids, scores = fitted.rank(X, 5)
    ids_, scores_ = renumbered.rank(X, 5)
    np.testing.assert_allclose(scores_, scores, rtol=1e-6)
    assert np.array_equal(order[ids_], ids)


def test_annotate_and_neighbours_return_names() -> None:
    model = make().fit(X, names(ANSWER))
    first = model.annotate(X[:1], 2)[0]
    assert {name for name, _ in first} == {"label 0", "label 1"}
    assert first[0][1] >= first[1][1]
    near = model.neighbours("label 4", 3)
    assert near[0][0] == "label 5"
    assert near == model.neighbours(model.vocabulary_.ids(["label 4"])[0], 3)
    assert "label 4" not in dict(near)
    assert all(-1.001 <= cosine <= 1.001 for _, cosine in near)


def test_label_forms_give_the_same_model() -> None:
    by_matrix = make(epochs=2).fit(X, Y)
    numbers = [str(y) for y in range(N_LABELS)]
    by_names = make(epochs=2).fit(X, [[str(y) for y in row] for row in ANSWER], label_names=numbers)
    assert same(by_matrix, by_names)
    single = make(epochs=2).fit(X, ANSWER[:, 0])
    assert same(single, make(epochs=2).fit(X, ANSWER[:, 0].astype(float)))


# ---- determinism


@pytest.mark.parametrize("dense", [False, True])
def test_threads_change_no_bit_with_validation(dense: bool) -> None:
    rows, truth, _ = toy(600, dense=dense)
    models = [
        make(epochs=3, threads=n, label_bias=True).fit(rows, truth, validation=(rows[:100], truth[:100]))
        for n in (1, 2, 4)
    ]
    for model in models[1:]:
        assert same(model, models[0])
        assert [s.validation for s in model.history_] == [s.validation for s in models[0].history_]
        assert np.array_equal(model.transform(rows), models[0].transform(rows))
        assert np.array_equal(model.predict_proba(rows), models[0].predict_proba(rows))
        for values, first_values in zip(model.rank(rows, 3), models[0].rank(rows, 3), strict=True):
            assert np.array_equal(values, first_values)


def test_probabilities_are_independent_of_blas_threads() -> None:
    """At this size its products come out otherwise with four threads."""
    rng = np.random.default_rng(0)
    rows = sp.random(600, 200, 0.1, format="csr", random_state=rng, dtype=np.float32)
    truth, calibrations = rng.integers(0, 500, 600), []
    for threads in (1, 4):
        with threadpool_limits(threads, user_api="blas"):
            model = Wsabie(100, epochs=2, threads=1).fit(rows, truth, validation=(rows[:300], truth[:300]))
            calibrations.append(model.calibration_)
    assert (calibrations[0].slope, calibrations[0].offset) == (calibrations[1].slope, calibrations[1].offset)
    assert np.array_equal(calibrations[0].label_offsets, calibrations[1].label_offsets)


@pytest.mark.parametrize("deterministic", [True, False])
def test_equal_seeds_give_equal_models_and_others_differ(deterministic: bool) -> None:
    model = make(epochs=2, deterministic=deterministic).fit(X, Y)
    first = model.space_.copy()
    model.fit(X, Y)
    assert np.array_equal(model.space_.features, first.features)
    assert np.array_equal(model.space_.labels, first.labels)
    reseeded = make(epochs=2, deterministic=deterministic, seed=1).fit(X, Y)
    assert not np.array_equal(reseeded.space_.features, first.features)


def test_weight_2_equals_twice_the_learning_rate() -> None:
    """Doubling is exact in floating point, wherever it is done."""
    weighted = make(epochs=3, learning_rate=0.01).fit(X, Y, sample_weight=np.full(120, 2.0))
    faster = make(epochs=3, learning_rate=0.02).fit(X, Y)
    assert same(weighted, faster)
    assert [s.loss for s in weighted.history_] == [2 * s.loss for s in faster.history_]


def test_rows_of_weight_0_are_ignored() -> None:
    """Half of the rows carry wrong labels and no weight."""
    rows, truth = sp.vstack([X, X]).tocsr(), sp.vstack([Y, Y[::-1]]).tocsr()
    model = make().fit(rows, truth, sample_weight=np.repeat([1.0, 0.0], 120))
    assert np.array_equal(np.sort(model.rank(X, 2)[0], 1), ANSWER)
    assert {s.skipped for s in model.history_} == {240}


def test_rows_without_labels_are_counted() -> None:
    truth = Y.tolil()
    truth[3] = truth[7] = 0
    model = make(epochs=1).fit(X, truth.tocsr())
    assert (model.history_[0].unlabelled, model.history_[0].pairs) == (2, 236)


# ---- learning


def test_explicit_negatives_rank_lower() -> None:
    """Label 0 is known not to hold for the rows of group 1."""
    truth = Y.tolil()
    truth[ANSWER[:, 0] == 2, 0] = -1
    rows = X[ANSWER[:, 0] == 2]
    unknown, with_negatives = (make(epochs=10).fit(X, labels).scores(rows)[:, 0] for labels in (Y, truth.tocsr()))
    assert with_negatives.mean() < unknown.mean() - 0.1


def test_auto_defaults_ignore_explicit_negatives() -> None:
    """A full matrix of 1 and -1, as multi-label sets often come."""
    signed = make(epochs="auto").fit(X[:12], np.where(Y[:12].toarray() > 0, 1, -1))
    plain = make(epochs="auto").fit(X[:12], Y[:12])
    assert signed.settings_ == plain.settings_


def test_label_bias_learns_frequencies() -> None:
    """Rows say nothing; nine of ten carry label 1."""
    rows, labels = sp.csr_matrix(np.ones((200, 3))), np.where(np.arange(200) % 10 == 0, 0, 1)
    model = make(dim=20, epochs=5, label_bias=True).fit(rows, labels)
    assert model.space_.bias[1] > 0 > model.space_.bias[0]
    assert not make(epochs=5).fit(rows, labels).space_.bias.any()
    assert model.rank(rows[:1], 1)[0] == 1


def test_rows_stay_within_max_norm() -> None:
    model = make(max_norm=0.7).fit(X, Y)
    for table in (model.space_.features, model.space_.labels):
        assert np.linalg.norm(table, axis=1).max() <= 0.7 * (1 + 1e-6)


def test_rates_and_scales_are_set_per_table() -> None:
    model = make(epochs=2, learning_rate={"V": 1e-9, "W": 0.1}, init_scale={"V": 0.5, "W": 0.01}, max_norm=None)
    fresh = make(epochs=1, learning_rate=1e-9, init_scale={"V": 0.5, "W": 0.01}, max_norm=None).fit(X, Y)
    model.fit(X, Y)
    assert fresh.space_.features[:, :20].std() == pytest.approx(0.5, rel=0.1)
    assert fresh.space_.labels[:, :20].std() == pytest.approx(0.01, rel=0.2)
    np.testing.assert_allclose(model.space_.features, fresh.space_.features, atol=1e-5)
    assert abs(model.space_.labels - fresh.space_.labels).max() > 0.05


def test_best_validation_epoch_is_kept_and_stops_training() -> None:
    rows, truth, _ = toy(60, seed=2)
    model = make(epochs=60, patience=3, learning_rate=0.002).fit(X, Y, validation=(rows, truth))
    figures = [s.validation for s in model.history_]
    best = int(np.argmax(figures))
    assert model.score(rows, truth) == figures[best]
    assert len(figures) == max(best + 1 + 3, 31) < 60


def test_validation_may_hold_unknown_labels() -> None:
    model = make(epochs=2).fit(X, names(ANSWER), validation=(X[:3], [["label 0", "unheard of"], ["unheard of"], []]))
    assert model.history_[0].validation is not None
    assert "unheard of" not in model.vocabulary_


def test_probabilities_need_validation_rows(fitted: Wsabie) -> None:
    assert not hasattr(fitted, "predict_proba")
    with pytest.raises(NotCalibratedError, match=r"probabilities need validation rows; fit with validation="):
        fitted.predict_proba(X)
    rows, truth, answer = toy(60, seed=3)
    model = make(epochs=5).fit(X, Y, validation=(rows, truth))
    p = model.predict_proba(rows)
    assert p.shape == (60, N_LABELS)
    assert ((p >= 0) & (p <= 1)).all()
    assert np.take_along_axis(p, answer, 1).mean() > p.mean() + 0.2


# ---- use


def test_large_k_costs_no_more_than_all_labels(fitted: Wsabie) -> None:
    assert [len(row) for row in fitted.annotate(X[:3], 10**12)] == [12, 12, 12]
    assert len(fitted.neighbours(0, 10**12)) == 11


def test_search_is_rebuilt_after_more_training() -> None:
    model = make(epochs=2).fit(X, Y)
    old_scores = model.rank(X, 3)[1]
    assert "_searched" in model.__dict__
    assert "_searched" not in model.__getstate__()  # it would be saved with the model
    model.partial_fit(X, Y[::-1], epochs=3)
    new_ranking = model.rank(X, 3)
    assert not np.array_equal(old_scores, new_ranking[1])
    del model._searched
    assert all(np.array_equal(a, b) for a, b in zip(new_ranking, model.rank(X, 3), strict=True))
    assert "_searched" not in model.fit(X, Y).__dict__  # nor is the old table kept


def test_rank_and_scores_ignore_later_bias_changes() -> None:
    model = make(epochs=3, label_bias=True, init="random").fit(X, Y).set_params(label_bias=False)
    ids, scores = model.rank(X, 3)
    assert model.space_.bias.any()
    np.testing.assert_allclose(scores, np.take_along_axis(model.scores(X), ids, axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("later", [{"dim": 1}, {"dim": 100}, {"similarity": "cosine"}])
def test_fitted_model_ignores_later_parameter_changes(tmp_path, later) -> None:
    model = make(epochs=3).fit(X, Y)
    old_ranking = model.rank(X, 3)
    model.set_params(**later).save(tmp_path / "model")
    del model._searched
    for now in (model, type(model).load(tmp_path / "model")):
        for values, old_values in zip(now.rank(X, 3), old_ranking, strict=True):
            np.testing.assert_array_equal(values, old_values)
        np.testing.assert_allclose(np.sort(now.scores(X))[:, ::-1][:, :3], old_ranking[1], rtol=1e-5, atol=1e-6)


def test_read_only_matrix_is_accepted() -> None:
    """Arrays are read-only, like those of numpy.load(mmap_mode="r")."""
    frozen, expected = X.copy(), make(epochs=1, scaling=None).fit(X, Y)
    for array in (frozen.data, frozen.indices, frozen.indptr):
        array.setflags(write=False)
    assert same(make(epochs=1, scaling=None).fit(frozen, Y), expected)
    rows, _, _ = toy(dense=True)
    expected = make(epochs=1, scaling=None).fit(rows, Y)
    rows.setflags(write=False)
    assert same(make(epochs=1, scaling=None).fit(rows, Y), expected)


@pytest.mark.parametrize("dense", [False, True])
def test_validation_metric_uses_scaled_rows(dense: bool) -> None:
    """Rows whose scaling changes ranks: large counts here, columns of unlike scale there."""
    rng = np.random.default_rng(0)
    rows: Any = rng.integers(0, 50, (120, 30)) * (rng.random((120, 30)) < 0.3)
    rows = rows * 10.0 ** rng.integers(-2, 3, 30) if dense else sp.csr_matrix(rows.astype(np.float32))
    model = make(epochs=2).fit(rows, Y, validation=(rows, Y))
    expected = evaluate_scores([(0, model.scores(rows))], Y, ks=(1,)).means["MAP"]
    assert model.score(rows, Y) == pytest.approx(expected, abs=1e-6)
    assert model.history_[-1].validation == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("labels", [["a"] * 120, [["a", "b"]] * 120])
def test_uncalibratable_validation_rows_keep_the_model(labels: Any) -> None:
    model = make(epochs=2).fit(X, labels, validation=(X[:20], labels[:20]))
    assert model.calibration_ is None
    assert not hasattr(model, "predict_proba")


def test_rows_with_all_labels_decided_are_calibrated() -> None:
    signed = np.where(np.arange(60).reshape(20, 3) % 4 < 2, 1, -1)
    model = make(epochs=2).fit(X[:20], signed, validation=(X[:20], signed))
    assert model.predict_proba(X[:20]).shape == (20, 3)


def test_model_with_label_names_refuses_numbers() -> None:
    model = make(epochs=2).fit(X, names(ANSWER))
    with pytest.raises(InputError, match="label number 12, but there are 12 label names"):
        model.partial_fit(X[:1], [12])
    assert len(model.vocabulary_) == 12
