"""Metrics on validation rows: those of the evaluation, for any number of threads, and saved."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from toy_tasks import names, toy
from wsabie.core.errors import InputError
from wsabie.core.validation import check_features
from wsabie.embedding.joint_space import SIMILARITIES, JointSpace
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.kernels.embedding import towers
from wsabie.kernels.ranking import label_ranks
from wsabie.models.base.feature_matrix import BLOCK_BYTES
from wsabie.models.base.validation_monitor import MAX_ROWS, ValidationMonitor
from wsabie.models.joint_embedding.estimator import Wsabie


def draw_rows(n_labels: int, n: int = 150) -> tuple[Any, sp.csr_matrix]:
    """Rows with any labels; the last has none."""
    rng = np.random.default_rng(1)
    Y = sp.csr_matrix(rng.random((n, n_labels)) < 0.15, dtype=np.int8).tolil()
    Y[:-1, 0], Y[-1] = 1, 0
    return rng.normal(size=(n, 12)).astype(np.float32), Y.tocsr()


def make_space(n_labels: int) -> JointSpace:
    return JointSpace.random(12, n_labels, 20, "dot", np.random.default_rng(2))


@pytest.mark.parametrize(("n_labels", "k"), [(40, 10), (10, 10), (4, 4)])
@pytest.mark.parametrize("threads", [1, 2])
def test_epoch_metrics_equal_those_of_the_evaluation(n_labels: int, k: int, threads: int) -> None:
    X, Y = draw_rows(n_labels)
    inputs, space = check_features(X), make_space(n_labels)
    monitor = ValidationMonitor(inputs, Y, threads)
    figures = monitor.figures(space)
    points = space.compute_points(inputs)[:, : space.dim]
    expected = evaluate_scores([(0, points @ space.labels[:, : space.dim].T)], Y, ks=(k,)).means
    assert list(figures) == ["MAP", f"p@{k}"]
    assert figures == pytest.approx({name: expected[name] for name in figures}, abs=1e-6)
    assert monitor(space) == figures["MAP"]
    assert figures == ValidationMonitor(inputs, Y, 1).figures(space)


def test_stated_metric_decides_and_comes_first() -> None:
    X, Y = draw_rows(40)
    inputs, space = check_features(X), make_space(40)
    plain, figures = (ValidationMonitor(inputs, Y, 1, metric=name).figures(space) for name in ("MAP", "p@3"))
    assert list(figures) == ["p@3", "MAP", "p@10"]
    assert {name: figures[name] for name in plain} == plain
    points = space.compute_points(inputs)[:, : space.dim]
    expected = evaluate_scores([(0, points @ space.labels[:, : space.dim].T)], Y, ks=(3,)).means
    assert figures["p@3"] == pytest.approx(expected["p@3"], abs=1e-6)
    for unknown in ("p@0", "p@41", "p@", "AUC", "p@-1"):
        with pytest.raises(InputError, match="no epoch can be chosen by"):
            ValidationMonitor(inputs, Y, 1, metric=unknown)


def test_checkpoint_of_another_metric_is_refused(tmp_path: Path) -> None:
    X, Y = draw_rows(12)
    model = Wsabie(dim=4, epochs=2, threads=1)
    model.fit(X, Y, validation=(X, Y), checkpoint=tmp_path / "c")
    with pytest.raises(InputError):
        model.fit(X, Y, validation=(X, Y), checkpoint=tmp_path / "c", resume=True, metric="p@1")
    model.fit(X, Y, validation=(X, Y), metric="p@1")
    assert [stats.validation for stats in model.history_] == [s.validation_metrics["p@1"] for s in model.history_]


def test_callback_error_leaves_the_model_unchanged() -> None:
    X, Y = draw_rows(12)
    model = Wsabie(dim=4, epochs=2, threads=1).fit(X, Y)
    attributes = dict(model.__dict__)

    def stop(stats: Any) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        model.fit(X, Y, on_epoch=stop)
    assert model.__dict__ == attributes


def make_numbered_rows(n: int) -> tuple[Any, sp.csr_matrix, Any]:
    """Rows whose only feature is their number, with one label by that number (every fourth denied), and the others."""
    i = np.arange(n)
    Y = sp.csr_matrix((np.where(i % 4, 1, -1), i % 7, np.arange(n + 1)), (n, 7), np.int8)
    return i[:, None].astype(np.float32), Y, np.flatnonzero(i % 4)


def test_many_validation_rows_are_thinned_evenly() -> None:
    """From the first to the last row that has a label, in steps that differ by one at most, each with its own label."""
    X, Y, labelled = make_numbered_rows(3 * MAX_ROWS)
    monitor = ValidationMonitor(X, Y, threads=1)
    row_ids = np.asarray(monitor.inputs)[:, 0].astype(int)
    assert len(row_ids) == monitor.n_rows == MAX_ROWS == 2000
    places = np.searchsorted(labelled, row_ids)
    assert np.array_equal(labelled[places], row_ids)
    assert (places[0], places[-1]) == (0, len(labelled) - 1)
    assert np.ptp(np.diff(places)) <= 1
    assert np.array_equal(monitor.Y.indices, row_ids % 7)


@pytest.mark.parametrize("max_rows", [None, 30, 41])
def test_few_validation_rows_are_all_used(max_rows: int | None) -> None:
    X, Y, labelled = make_numbered_rows(40)
    assert np.array_equal(np.asarray(ValidationMonitor(X, Y, 1, max_rows).inputs)[:, 0], labelled)


def test_unlabelled_validation_rows_choose_no_epoch() -> None:
    X, Y = draw_rows(6)
    assert ValidationMonitor(check_features(X), Y * 0, 1, None).figures(make_space(6)) == {"MAP": 0.0, "p@6": 0.0}
    with pytest.raises(InputError, match=r"^no validation row has a label .*; give other validation rows, or train"):
        ValidationMonitor(check_features(X), Y * 0, 1)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_mapped_label_table_gives_the_same_metrics(similarity: Any) -> None:
    X, Y = draw_rows(40)
    space = replace(make_space(40), similarity=similarity)
    bare = np.ascontiguousarray(space.labels[:, : space.dim])
    bare.setflags(write=False)
    monitor = ValidationMonitor(check_features(X), Y, 2)
    assert monitor.figures(replace(space, labels=bare)) == pytest.approx(monitor.figures(space), abs=1e-6)


def test_score_blocks_fit_in_memory() -> None:
    X, Y, _ = make_numbered_rows(200)
    n_labels = 400_000
    space = JointSpace(4, "dot", np.ones((1, 16), np.float32), np.zeros((n_labels, 16), np.float32), np.zeros(n_labels))
    lows, rows = [], 0
    for lo, scores in ValidationMonitor(X, Y, 1).iterate_score_blocks(space):
        assert scores.nbytes <= BLOCK_BYTES
        assert scores.shape[1] == n_labels
        lows.append(lo)
        rows += len(scores)
        if len(lows) == 3:
            break
    assert lows == [0, rows // 3, 2 * rows // 3]


@pytest.mark.parametrize("dense", [False, True])
def test_warm_up_uses_the_types_of_the_metrics(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or something would be compiled in the first epoch, and its bar would stand still."""
    X, Y = draw_rows(40)
    monitor, space = ValidationMonitor(check_features(X if dense else sp.csr_matrix(X)), Y, 2), make_space(40)
    called: list[set[Any]] = []

    def recorded(name: str, kernel: Any) -> Any:
        def call(*arguments: Any) -> None:
            called[-1].add((name, *map(numba.typeof, arguments)))
            kernel(*arguments)

        return call

    for module, name in (
        (towers, "encode_rows"),
        (label_ranks, "score_listed_labels"),
        (label_ranks, "count_query_ranks"),
    ):
        monkeypatch.setattr(module, name, recorded(name, getattr(module, name)))
    for run in (monitor.warm_up, monitor.figures):
        called.append(set())
        run(space)
    assert len(called[0]) == 3
    assert called[0] == called[1]


def test_named_metrics_are_saved_and_optional() -> None:
    X, _, answer = toy()
    fitted = Wsabie(dim=16, epochs=2, threads=1).fit(X, names(answer), validation=(X[:30], names(answer[:30])))
    for stats in fitted.history_:
        assert stats.validation_metrics["MAP"] == stats.validation
        assert len(stats.validation_metrics) == 2
    state = fitted.to_state()
    assert Wsabie.from_state(state).history_ == fitted.history_
    for stats in state.config["history"]:
        del stats["validation_metrics"]
    opened = Wsabie.from_state(state)
    assert [s.validation for s in opened.history_] == [s.validation for s in fitted.history_]
    assert [s.validation_metrics for s in opened.history_] == [{}, {}]
