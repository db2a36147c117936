"""Figures of rows before they are learned, and the test for drift with its rate of false alarms."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import wsabie
from wsabie.models.joint_embedding import drift as stream
from wsabie.models.joint_embedding.drift import BatchReport, detect_drift, measure_movement
from wsabie.models.joint_embedding.estimator import Wsabie


def arrived(losses: np.ndarray) -> BatchReport:
    return BatchReport(
        len(losses), len(losses), 1 - float(losses.mean()), None, float(losses.var()), None, None, 0.0, 0.0
    )


def run(chunks: list[np.ndarray]) -> list[BatchReport]:
    reports: list[BatchReport] = []
    for losses in chunks:
        drift, window = detect_drift([*reports, arrived(losses)])
        reports.append(BatchReport(**{**vars(arrived(losses)), "drift": drift, "window": window}))
    return reports


def test_false_alarms_are_rare() -> None:
    """100 streams of 30 looks of one law: at most FALSE_ALARMS of the 3,000 looks find something."""
    rng = np.random.default_rng(0)
    looks = [report.drift for _ in range(100) for report in run([rng.beta(2, 2, 50) for _ in range(30)])]
    assert np.mean([drift != "" for drift in looks]) <= stream.FALSE_ALARMS


def test_drift_is_detected_and_resets_the_window() -> None:
    rng = np.random.default_rng(1)
    chunks = [rng.beta(2, 4, 100) for _ in range(10)] + [rng.beta(4, 2, 100) for _ in range(5)]
    reports = run(chunks)
    assert [report.drift for report in reports[:10]] == [""] * 10
    alarmed = [i for i, report in enumerate(reports) if report.drift]
    assert alarmed == [10]
    assert (reports[10].drift, reports[10].window) == ("worse", 0)
    assert "train a model on all rows again" in reports[10].advice()
    assert reports[14].window == 4


def test_improvement_is_no_alarm() -> None:
    rng = np.random.default_rng(2)
    reports = run([rng.beta(4, 2, 200), rng.beta(2, 4, 200)])
    assert reports[1].drift == "better"
    assert reports[1].advice() == ""


def test_miscalibrated_probabilities_are_refitted() -> None:
    """By who trains on the command line, and by who calls from Python."""
    off = BatchReport(**{**vars(arrived(np.array([0.5]))), "ece": 0.23})
    assert off.advice() == (
        "probabilities were off by 0.23: train again, or call `Wsabie.calibrate` in Python with more rows "
        "that the model has not learned"
    )


def test_bound_equals_a_manual_computation() -> None:
    """Two chunks of 100 without spread inside: v = gap^2 / 4, m = 50, one cut, ln(2 / .01) = 5.298."""
    log = np.log(2 / 0.01)
    least = next(gap for gap in np.arange(0.01, 1, 0.01) if gap > np.sqrt(gap**2 / 4 * 2 / 50 * log) + 2 / 150 * log)
    for gap, expected in ((least - 0.01, ""), (least + 0.01, "worse")):
        assert run([np.full(100, 0.0), np.full(100, gap)])[1].drift == expected


def test_metrics_equal_a_manual_computation() -> None:
    assert measure_movement(
        np.array([[3.0, 4.0], [0, 5]]), np.array([[3.0, 4.0, 0], [0, 0, 0], [9, 9, 9]])
    ) == pytest.approx(0.5)


def words(n: int, seed: int, shift: int = 0) -> tuple[csr_matrix, list[str]]:
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, 4, n)
    X = np.zeros((n, 20), np.float32)
    X[np.arange(n), (topics + shift) % 4 * 3 + rng.integers(0, 3, n)] = 1
    X[np.arange(n), 12 + rng.integers(0, 6, n)] = 1
    return csr_matrix(X), [f"label {y}" for y in topics]


def test_batch_is_evaluated_before_learning(tmp_path: Path) -> None:
    X, y = words(400, 0)
    model = Wsabie(dim=8, epochs=8, threads=1, replay=200).fit(X, y, validation=words(200, 1))
    more, truth = words(100, 2)
    more = more.tolil()
    more[0, 19] = 1  # a feature that no row had
    truth[5] = "label 9"
    more, score_at_start = more.tocsr(), model.score(*words(100, 2))
    model.partial_fit(more, truth)
    (first,) = model.batch_reports_
    assert (first.rows, first.evaluated) == (100, 99)
    assert first.map == pytest.approx(score_at_start, abs=0.02)
    assert (first.unseen_labels, first.unseen_features) == (pytest.approx(0.01), pytest.approx(1 / 201))
    assert first.ece is not None
    assert first.ece < 0.1
    assert 0 < first.movement < 0.5
    model.partial_fit(*words(300, 3, shift=1))  # every label's words are another's now
    model.save(tmp_path / "m")
    last = wsabie.load(tmp_path / "m").batch_reports_[-1]
    assert last == model.batch_reports_[-1]
    assert (last.drift, last.ece) == ("worse", None)
    assert wsabie.load(tmp_path / "m").facts()["last_batch"]["advice"].startswith("the rows are of another kind")
    assert model.fit(X, y).batch_reports_ == []


def test_removed_labels_do_not_count_in_metrics() -> None:
    """Three of four labels are left, and all rows have the last one."""
    model = Wsabie(dim=8, epochs=8, threads=1, replay=200).fit(*words(400, 0), validation=words(200, 1))
    model.remove_labels(["label 0"])
    more, truth = words(200, 2)
    more = more[np.array(truth) == "label 3"]
    living = model.vocabulary_.ids([f"label {y}" for y in (1, 2, 3)])
    expected = ((model.predict_proba(more)[:, living] - [0, 0, 1]) ** 2).mean()
    model.partial_fit(more, ["label 3"] * more.shape[0])
    assert model.batch_reports_[0].brier == pytest.approx(expected, rel=1e-4)
