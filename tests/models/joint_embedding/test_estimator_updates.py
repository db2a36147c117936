"""The estimator after training: new labels, checkpoints and float16 models."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.models.joint_embedding.estimator_toy import ANSWER, X, Y, make, same

from toy_tasks import N_LABELS, names
from wsabie.core.errors import DivergenceError, InputError
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.joint_embedding.warm_start import copy_for_training
from wsabie.training import trainer
from wsabie.training.loops import BlockVisits


@pytest.fixture(scope="module")
def fitted() -> Wsabie:
    return make().fit(X, Y)


# ---- partial_fit


def test_new_labels_are_learned_without_renumbering() -> None:
    old = ANSWER[:, 0] < 8
    model = make().fit(X[old], names(ANSWER[old]))
    old_names = list(model.vocabulary_)
    model.partial_fit(X, names(ANSWER), epochs=15)
    assert list(model.vocabulary_)[: len(old_names)] == old_names
    assert len(model.vocabulary_) == N_LABELS
    expected = [{f"label {y}" for y in row} for row in ANSWER]
    assert [{name for name, _ in row} for row in model.annotate(X, 2)] == expected
    assert [s.epoch for s in model.history_] == list(range(45))


def test_new_label_starts_near_its_rows() -> None:
    old = ANSWER[:, 0] < 10
    model = make().fit(X[old], names(ANSWER[old]))
    model.partial_fit(X[~old], [["new"]] * int((~old).sum()), epochs=1)
    assert model.rank(X[~old], 1)[0].ravel().tolist() == [model.vocabulary_.ids(["new"])[0]] * int((~old).sum())


def test_partial_fit_uses_new_draws_and_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the order of the visits nor the stream of draws comes again; the same seed gives the same ones."""
    orders: list[bytes] = []
    streams: list[tuple[int, int]] = []

    def run(visits: BlockVisits) -> Iterator[int]:
        if len(visits.order) > 1:  # not the rehearsal
            orders.append(visits.order.tobytes())
            streams.append((visits.step_config.seed, visits.step_config.epoch))
        return iter(())

    monkeypatch.setattr(trainer, "run_blocks", run)
    for seed in (3, 4, 3):
        model = make(epochs=2, seed=seed).fit(X, Y)
        assert len(model.partial_fit(X, Y, epochs=2).partial_fit(X, Y, epochs=1).history_) == 5
    for epochs in (orders, streams):
        assert len({*epochs[:10]}) == 10
        assert epochs[10:] == epochs[:5]


def test_partial_fit_keeps_the_resolved_auto_values() -> None:
    """Two labels a row made the step larger; a batch with one label a row does not change it."""
    model = make(epochs=2, init="random").fit(X, Y)
    model.partial_fit(X[:40], ANSWER[:40, 0])
    first, later = model.history_[0], model.history_[-1]
    assert first.learning_rate == pytest.approx(0.03 * 2**0.75)
    assert later.learning_rate == first.learning_rate / 4


def test_partial_fit_uses_changed_parameters() -> None:
    model = make(epochs=2).fit(X, Y).set_params(learning_rate=0.5)
    assert model.partial_fit(X, Y).history_[-1].learning_rate == 0.125


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_new_label_starts_at_the_mean_of_its_rows(similarity: str) -> None:
    model = make(similarity=similarity).fit(X, names(ANSWER))
    targets = sp.hstack([Y, ANSWER[:, :1] == 4]).tocsr()
    space = copy_for_training(model.space_, targets.shape[1], [(model.scaling_(model._check_rows(X)), targets)], seed=0)
    points = space.compute_points(model.scaling_(model._check_rows(X)))[ANSWER[:, 0] == 4]
    new, mean = space.labels[-1], points.mean(axis=0)
    if similarity == "euclidean":
        assert new == pytest.approx(mean, abs=1e-5)
    else:
        assert new @ mean == pytest.approx(np.linalg.norm(new) * np.linalg.norm(mean), rel=1e-5)


def test_first_partial_fit_equals_fit() -> None:
    model = make().partial_fit(X, Y, epochs=2)
    assert same(model, make(epochs=2).fit(X, Y))
    assert model.epochs == 30


@pytest.mark.parametrize("wrong", ["labels", "features", "weights", "divergence", "values"])
def test_failed_partial_fit_leaves_the_model_unchanged(wrong: str) -> None:
    model = make(epochs=2).fit(X, names(ANSWER))
    old_space, history = model.space_.copy(), list(model.history_)
    rows, labels, options = X, [["quite new"]] * 120, {}
    if wrong == "labels":
        labels = [*labels[:-1], [3]]  # type: ignore[list-item]
    elif wrong == "features":
        rows = X[:, :-1]
    elif wrong == "weights":
        options = {"sample_weight": [1]}
    elif wrong == "values":
        rows = -X
    else:
        model.set_params(learning_rate=1e9, max_norm=None)
    with pytest.raises((InputError, DivergenceError)):
        model.partial_fit(rows, labels, **options)
    assert np.array_equal(model.space_.labels, old_space.labels)
    assert np.array_equal(model.space_.features, old_space.features)
    assert len(model.vocabulary_) == N_LABELS == model.space_.n_labels
    assert model.history_ == history


def test_failed_fit_leaves_the_model_unchanged() -> None:
    model = make(epochs=2).fit(X, Y)
    old_ranking = model.rank(X)[0]
    with pytest.raises(DivergenceError, match="lower the learning rate"):
        model.set_params(learning_rate=1e9, max_norm=None).fit(X, ANSWER[:, 0])
    assert np.array_equal(model.rank(X)[0], old_ranking)


# ---- checkpoints


def interrupt_fit(path: Any, last_epoch: int, **changes: Any) -> None:
    def stop(stats: Any) -> None:
        if stats.epoch == last_epoch:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(epochs=6, **changes).fit(X, Y, checkpoint=path, on_epoch=stop)


@pytest.mark.usefixtures("every_epoch")
@pytest.mark.parametrize("threads", [1, 2])
def test_resumed_fit_equals_an_uninterrupted_one(tmp_path: Any, threads: int) -> None:
    interrupt_fit(tmp_path / "c", 3)
    epochs: list[int] = []
    model = make(epochs=6, threads=threads).fit(
        X, Y, checkpoint=tmp_path / "c", resume=True, on_epoch=lambda s: epochs.append(s.epoch)
    )
    assert epochs == [3, 4, 5]
    assert same(model, make(epochs=6).fit(X, Y))


@pytest.mark.usefixtures("every_epoch")
@pytest.mark.parametrize(
    "change",
    [
        {"similarity": "cosine"},
        {"dim": 21},
        {"scaling": None},
        {"pair_weighting": "pairs"},
        {"init_scale": 0.1},
        {"learning_rate": 0.02},
        {"seed": 5},
        {"deterministic": False},
    ],
)
def test_checkpoint_of_other_settings_is_refused_by_name(tmp_path: Any, change: dict[str, Any]) -> None:
    """dim 20 and 21 have the same padded width: shapes alone would not tell."""
    interrupt_fit(tmp_path / "c", 2)
    with pytest.raises(InputError, match=f"was made with other .*{next(iter(change))}"):
        make(**{"epochs": 6, **change}).fit(X, Y, checkpoint=tmp_path / "c", resume=True)


@pytest.mark.usefixtures("every_epoch")
@pytest.mark.parametrize("argument", ["X", "Y", "weights", "validation", "other validation"])
def test_checkpoint_of_other_data_is_refused(tmp_path: Any, argument: str) -> None:
    interrupt_fit(tmp_path / "c", 2)
    rows, truth = X.copy(), Y.copy()
    if argument == "X":
        rows.data[5] = 2
    if argument == "Y":
        truth = Y[::-1]
    weights = np.linspace(1, 2, 120) if argument == "weights" else None
    validation = (X[:9], Y[:9]) if argument == "validation" else None
    if argument == "other validation":
        make(epochs=6).fit(X, Y, validation=(X[:9], Y[:9]), checkpoint=tmp_path / "c")
        validation = X[1:10], Y[1:10]
    with pytest.raises(InputError, match="was made with other data; use the same settings and data"):
        make(epochs=6).fit(
            rows, truth, sample_weight=weights, validation=validation, checkpoint=tmp_path / "c", resume=True
        )


# ---- halves


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_float16_model_ranks_as_its_rounded_points(similarity, tmp_path):
    model = make(similarity=similarity).fit(X, Y, validation=(X, Y))
    model.to_float16().save(tmp_path / "half")
    half = Wsabie.load(tmp_path / "half")
    assert half.label_vectors.dtype == np.float16
    np.testing.assert_array_equal(half.label_vectors, model.label_vectors.astype(np.float16))
    saved = [path.stat().st_size for path in (tmp_path / "half/tensors").iterdir()]
    assert any(2 * model.label_vectors.size <= size < 2 * model.label_vectors.size + 200 for size in saved)
    rounded = make(similarity=similarity).fit(X, Y, validation=(X, Y))
    rounded.space_.labels[:, :20] = half.label_vectors
    for values, rounded_values in zip(half.rank(X, 5), rounded.rank(X, 5), strict=True):
        np.testing.assert_array_equal(values, rounded_values)
    np.testing.assert_array_equal(half.scores(X), rounded.scores(X))
    np.testing.assert_array_equal(half.predict_proba(X), rounded.predict_proba(X))
    assert half.score(X, Y) == pytest.approx(model.score(X, Y), abs=0.01)
    assert half.neighbours(0, 3) == rounded.neighbours(0, 3)
    assert half.facts()["bytes_of_points"] == model.facts()["bytes_of_points"] - 2 * model.label_vectors.size


def test_float16_model_continues_in_float32(fitted):
    more = fitted.to_float16().partial_fit(X, Y)
    assert more.label_vectors.dtype == np.float32
    assert more.score(X, Y) > 0.8 * fitted.score(X, Y)


def test_points_beyond_float16_are_refused():
    model = make(epochs=1).fit(X, Y)
    model.space_.labels[0, 0] = 1e6
    with pytest.raises(InputError, match="too far out for float16"):
        model.to_float16()
