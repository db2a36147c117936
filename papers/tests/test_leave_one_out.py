"""Epochs that are chosen by a label held out of the training rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from papers.runs import leave_one_out
from papers.runs.leave_one_out import train_to_best_epoch
from wsabie.core.execution import SILENT
from wsabie.io.records import FeatureTable
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.workflows.batch_inference import evaluate_model
from wsabie.workflows.data_splits import split_labels


@pytest.fixture(scope="module")
def sides() -> dict[str, FeatureTable]:
    """Rows as ids, with four of the six labels of one half each."""
    rng, n = np.random.default_rng(0), 300
    Y = np.zeros((n, 12), np.int8)
    for i in range(n):
        Y[i, 6 * (i % 2) + rng.permutation(6)[:4]] = 1
    ids = [str(i) for i in range(n)]
    rows = FeatureTable(sp.identity(n, np.float32, format="csr"), sp.csr_matrix(Y), [str(y) for y in range(12)], ids)
    return split_labels(rows, valid=0.5, test=1.0, seed=0)


def test_the_best_epoch_is_kept_and_told(sides: dict[str, FeatureTable]) -> None:
    train, validation_rows = sides["train"], sides["valid"]
    model = Wsabie(dim=10, epochs=25, learning_rate=0.5, threads=1)
    result = train_to_best_epoch(model, train, validation_rows, SILENT)
    figures = [stats.validation or 0.0 for stats in result.model.history_]
    assert result.figure == max(figures) > figures[-1]
    assert figures[result.epoch - 1] == result.figure
    assert result.seconds == pytest.approx(sum(stats.seconds for stats in result.model.history_[: result.epoch]))
    at = [int(name) for name in validation_rows.ids]
    without = evaluate_model(result.model, validation_rows, (5,), "", exclude=train.Y[at]).means["MAP"]
    assert result.figure == pytest.approx(without)  # the labels of training are not candidates
    assert result.figure > evaluate_model(result.model, validation_rows, (5,), "").means["MAP"] + 0.05


def test_no_more_rows_judge_than_are_needed(sides: dict[str, FeatureTable], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave_one_out, "MAX_ROWS", 7)
    result = train_to_best_epoch(Wsabie(dim=4, epochs=2, threads=1), sides["train"], sides["valid"], SILENT)
    assert 0 < result.figure < 1


def test_without_judges_the_last_epoch_is_kept(sides: dict[str, FeatureTable]) -> None:
    result = train_to_best_epoch(Wsabie(dim=4, epochs=3, threads=1), sides["train"], None, SILENT)
    assert (result.epoch, result.figure, type(result.model)) == (3, 0.0, Wsabie)
