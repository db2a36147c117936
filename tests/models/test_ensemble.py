"""Ensembles in one space: mean scores of members by seed, rows or columns."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import wsabie
from toy_tasks import N_FEATURES, names, toy
from wsabie.core.errors import InputError
from wsabie.core.validation import check_features
from wsabie.models.base.feature_matrix import convert_to_matrix
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.ensemble import KINDS, Ensemble, draw_column_sets, draw_row_weights, group_columns
from wsabie.models.estimator_specs import SYSTEMS, build_estimator
from wsabie.models.explanations import compute_contributions
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.training.checkpoints import CheckpointFolder

X, Y, ANSWER = toy()
HALVES = [np.arange(15), np.arange(15, 30)]


def make_ensemble(n: int = 3, **options: Any) -> Ensemble:
    base = {
        name: options.pop(name)
        for name in ("label_bias", "similarity", "scaling", "learning_rate", "init")
        if name in options
    }
    return Ensemble(Wsabie(dim=12, epochs=4, **base), n=n, threads=1, **options)


@pytest.mark.parametrize("dense", [False, True])
def test_score_is_the_mean_of_standardised_member_scores(dense: bool) -> None:
    rows = X.toarray() if dense else X
    ensemble = make_ensemble(label_bias=True, init="random").fit(rows, Y)
    total = np.zeros(Y.shape)
    for member in ensemble.members_:
        single = Wsabie(dim=12, epochs=4, label_bias=True, threads=1, seed=member.seed, init="random").fit(rows, Y)
        scores = single.scores(rows)
        assert np.isclose(member.spread, scores.std(1).mean(), rtol=1e-5)
        total += scores / scores.std(1).mean() / 3
    assert np.allclose(ensemble.scores(rows), total, atol=1e-5)
    assert np.allclose(
        ensemble.transform(rows) @ ensemble.label_vectors.T + ensemble.joined_.space_.bias, total, atol=1e-5
    )
    ids, scores = ensemble.rank(rows, 12)
    assert np.allclose(scores, np.take_along_axis(total, ids, 1), atol=1e-5)


def test_one_member_ranks_as_the_model_alone() -> None:
    single = Wsabie(dim=12, epochs=4, threads=1, seed=5).fit(X, Y)
    assert np.array_equal(make_ensemble(1, seed=5).fit(X, Y).rank(X, 12)[0], single.rank(X, 12)[0])


@pytest.mark.parametrize("columns", [HALVES, 0.5, None, [np.arange(30) < 20, range(10, 30)]])
def test_column_members_ignore_other_columns(columns: Any) -> None:
    ensemble = make_ensemble(2, by="columns", columns=columns).fit(X, Y)
    for m, column_set in enumerate(draw_column_sets(columns, N_FEATURES, 2, 0)):
        table = ensemble.joined_.space_.features[:, 12 * m : 12 * (m + 1)]
        assert np.array_equal(np.flatnonzero(np.abs(table).sum(1)), column_set)
        assert ensemble.members_[m].columns == len(column_set)
    assert np.isfinite(ensemble.scores(X)).all()


def test_column_members_keep_the_full_row_length() -> None:
    """A factor makes up for the squares of the columns that are left out."""
    ensemble = make_ensemble(2, by="columns", columns=HALVES, init="random").fit(X, Y)
    checked = check_features(X)
    scaled = convert_to_matrix(RowScaling.fit(checked, N_FEATURES, "auto")(checked), N_FEATURES)
    rows = scaled[:, :15] * np.sqrt((scaled.data**2).sum() / (scaled[:, :15].data ** 2).sum())
    single = Wsabie(dim=12, epochs=4, scaling=None, threads=1, init="random").fit(
        rows, Y, label_names=[str(y) for y in range(12)]
    )
    partial_scores = ensemble.transform(X)[:, :12] @ ensemble.label_vectors[:, :12].T
    assert np.allclose(partial_scores, single.scores(rows) / ensemble.members_[0].spread / 2, atol=1e-4)


def test_column_members_are_validated_on_their_own_columns() -> None:
    """The half of the validation rows that it does not see is noise, and changes nothing of its figures."""
    valid = X[:60].toarray()
    figures = []
    for seed in (0, 1):
        valid[:, 15:] = np.random.default_rng(seed).random((60, 15))
        ensemble = make_ensemble(2, by="columns", columns=HALVES, scaling=None).fit(X, Y, validation=(valid, Y[:60]))
        figures.append([member.validation_map for member in ensemble.members_])
    assert figures[0][0] == figures[1][0] != figures[0][1] != figures[1][1]


def test_bags_weigh_rows_by_their_draws() -> None:
    row_weights = draw_row_weights(None, 1000, 0, 1)
    assert row_weights.sum() == 1000
    assert abs((row_weights == 0).mean() - np.exp(-1)) < 0.05
    assert not np.array_equal(row_weights, draw_row_weights(None, 1000, 0, 2))
    assert np.array_equal(draw_row_weights(np.full(1000, 2), 1000, 0, 1), 2 * row_weights)
    with pytest.raises(InputError, match="sample_weight must be 120 finite"):
        make_ensemble(1, by="rows").fit(X, Y, sample_weight=np.ones(119))
    bag = make_ensemble(1, by="rows").fit(X, Y, sample_weight=np.ones(120))
    weights = draw_row_weights(None, 120, 0, 0)
    single = Wsabie(dim=12, epochs=4, threads=1).fit(X, Y, sample_weight=weights)
    assert np.array_equal(bag.rank(X, 12)[0], single.rank(X, 12)[0])


def test_loaded_ensemble_equals_the_saved_one(tmp_path: Path) -> None:
    valid = (X[:30], Y[:30])
    saved = make_ensemble(2, by="columns", columns=HALVES).fit(X, names(ANSWER), validation=valid)
    saved.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert np.array_equal(saved.scores(X), loaded.scores(X))
    assert np.array_equal(saved.predict_proba(X), loaded.predict_proba(X))
    assert saved.neighbours("label 3") == loaded.neighbours("label 3")
    assert saved.facts() == loaded.facts()
    assert saved.history_ == loaded.history_
    assert loaded.estimator.get_params() == saved.estimator.get_params()
    assert isinstance(loaded.label_vectors, np.memmap)
    assert loaded.validation_map_ == loaded.score(*valid)


def test_threads_change_no_bit() -> None:
    single_threaded, two = (
        make_ensemble(2).set_params(threads=threads).fit(X, Y, validation=(X, Y)) for threads in (1, 2)
    )
    assert np.array_equal(single_threaded.scores(X), two.scores(X))
    assert single_threaded.validation_map_ == two.validation_map_


def test_contributions_add_up_to_the_score() -> None:
    ensemble = make_ensemble(by="columns").fit(X, names(ANSWER))
    parts = compute_contributions(ensemble, X[:1], "label 3")
    assert np.isclose(parts.sum(), ensemble.scores(X[:1])[0, 3], atol=1e-5)
    with pytest.raises(InputError, match="X has 2 rows; give one"):
        compute_contributions(ensemble, X[:2], "label 3")


def test_resume_keeps_trained_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_again: list[int] = []
    uninterrupted = make_ensemble().fit(X, Y)
    monkeypatch.setattr(CheckpointFolder.__init__, "__kwdefaults__", {"resume": False, "every": 0.0})
    with pytest.raises(KeyboardInterrupt):
        make_ensemble().fit(X, Y, checkpoint=tmp_path / "c", on_epoch=_stop_at(7))
    resumed = make_ensemble().fit(
        X, Y, checkpoint=tmp_path / "c", resume=True, on_epoch=lambda s: made_again.append(s.epoch)
    )
    assert made_again == [2, 3, 0, 1, 2, 3]  # the second member's last two, and the third
    assert np.array_equal(resumed.scores(X), uninterrupted.scores(X))
    assert len(resumed.history_) == 12


def _stop_at(number: int) -> Any:
    epochs: list[int] = []

    def stop(stats: Any) -> None:
        epochs.append(stats.epoch)
        if len(epochs) == number:
            raise KeyboardInterrupt

    return stop


def test_failed_fit_leaves_the_model_unchanged() -> None:
    ensemble = make_ensemble(2).fit(X, Y)
    old_scores = ensemble.scores(X)
    with pytest.raises(InputError, match="validation must be a pair"):
        ensemble.fit(X, Y, validation=X)
    assert np.array_equal(ensemble.scores(X), old_scores)


def test_ten_members_need_memory_of_one_training() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.random((200, 400), np.float32), rng.integers(0, 3000, 200)

    def peak(n: int) -> int:
        model = Ensemble(Wsabie(dim=32, epochs=1), n=n, threads=1)
        tracemalloc.start()
        model.fit(rows, labels)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    peak(1)
    peak_of_1, ten, tables = peak(1), peak(10), 4 * 32 * (400 + labels.max() + 1)
    assert ten - peak_of_1 < 9 * tables * 1.1


def test_scikit_learn_conventions_hold() -> None:
    model = make_ensemble(4, by="rows", seed=3)
    again = clone(model)
    assert again.get_params()["estimator__dim"] == 12
    assert again.set_params(estimator__dim=7).estimator.dim == 7
    assert model.estimator.dim == 12
    assert make_ensemble(2).fit(X, Y).score(X, Y) == pytest.approx(
        Ensemble(Wsabie(dim=12, epochs=4), n=2).fit(X, Y).score(X, Y)
    )


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (make_ensemble(similarity="euclidean"), "adds up inner products"),
        (make_ensemble(0), "n is 0; choose a whole number"),
        (make_ensemble(by="luck"), "by is 'luck'; choose one of seed, rows, columns"),
        (make_ensemble(columns=[[0]]), "columns are given, but members differ by seed"),
        (make_ensemble(1, by="columns", columns=HALVES), "2 sets of columns for 1 members"),
        (make_ensemble(by="columns", columns=[[0, 30]]), "no column 30; the 30 columns"),
        (make_ensemble(by="columns", columns=[[]]), "a set of columns is empty"),
        (make_ensemble(by="columns", columns=[[True]]), "a mask of columns has 1 entries; give 30"),
        (make_ensemble(by="columns", columns=1.5), "columns is 1.5; choose a share"),
        (make_ensemble(learning_rate=-1), "learning_rate is -1"),
        (make_ensemble(seed="a"), "seed is 'a'; choose a whole number"),
        (Ensemble(OneVsRest()), r"made of Wsabie models, not of OneVsRest; give a Wsabie .*`kind` wsabie, wsabie-auc"),  # type: ignore[arg-type]
    ],
)
def test_invalid_members_and_parameters_are_refused(model: Ensemble, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        model.fit(X, Y)


def test_documented_kinds_are_those_of_ensembles() -> None:
    models = {name: build_estimator(name) for name in SYSTEMS}
    able = [name for name, model in models.items() if isinstance(model, Wsabie) and model.kind == Wsabie.kind]
    assert list(KINDS) == able


def test_validation_rows_of_another_width_are_refused() -> None:
    with pytest.raises(InputError, match="validation X has 29 features"):
        make_ensemble(2).fit(X, Y, validation=(X[:, :29], Y))


def test_column_blocks_are_found_by_name() -> None:
    assert [block.tolist() for block in group_columns(["a:1", "b:1", "a:2"])] == [[0, 2], [1]]
    assert group_columns(["a:1", "plain"]) == []
    assert group_columns([]) == []
