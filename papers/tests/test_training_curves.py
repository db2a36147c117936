"""Training against the clock."""

import numpy as np
import pytest
import scipy.sparse as sp

from papers.datasets import PaperData
from papers.record import RunSettings
from papers.records.record_index import find_record
from papers.runs import training_curves
from papers.runs.model_tables import build_task, list_available_entrants
from wsabie.core.execution import SILENT
from wsabie.io.records import FeatureTable


@pytest.fixture
def setting() -> RunSettings:
    sides = []
    for seed, (n, prefix) in enumerate(((600, "a"), (40, "b"), (40, "c"))):
        y = np.random.default_rng(seed).integers(0, 6, n)
        eye = np.eye(6, dtype=np.float32)[y]
        sides.append(FeatureTable(sp.csr_matrix(eye), sp.csr_matrix(eye.astype(np.int8)), list("abcdef"),
                          [f"{prefix}{i}" for i in range(n)]))  # fmt: skip
    data = PaperData("toy", "toy", *sides, published_split=True)
    return RunSettings(data, 0, 1, {"epochs": 3}, SILENT)


def test_all_three_have_a_curve(setting: RunSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_curves, "LIMIT", 1e9)
    findings = training_curves.run_training_curves(find_record("wsabie-figure-2"), setting)
    assert [row.row for row in findings.rows if row.row.endswith("epoch 3")] == [
        "WARP, epoch 3", "AUC, epoch 3", "OWPC-SGD, epoch 3",
    ]  # fmt: skip
    assert all(isinstance(row.figures["MAP"], float) for row in findings.rows)
    assert [note.partition(":")[0] for note in findings.notes if "learning rate" in note] == ["WARP", "AUC", "OWPC-SGD"]


def test_the_best_learning_rate_is_shown(setting: RunSettings) -> None:
    task = build_task(setting.required_data)
    warp, *_ = list_available_entrants(find_record("wsabie-figure-2"), setting)[0]
    runs = {
        option["rate"]: training_curves._train_with_option(warp, option, task, np.inf, setting).best
        for option in warp.options
    }
    assert sorted(runs) == pytest.approx([1 / 3, 1, 3])
    findings = training_curves.run_training_curves(find_record("wsabie-figure-2"), setting)
    best = max(float(row.figures["MAP"]) for row in findings.rows if row.row.startswith("WARP"))  # type: ignore[arg-type]
    assert best == pytest.approx(max(runs.values()))


def test_entry_out_of_time_in_the_first_epoch_has_a_point(
    setting: RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_curves, "LIMIT", 0.0)
    findings = training_curves.run_training_curves(find_record("wsabie-figure-2"), setting)
    late = [row for row in findings.rows if row.row.startswith("OWPC-SGD")]
    assert len(late) == 1
    assert 0 < float(late[0].figures["epoch"]) <= 1  # type: ignore[arg-type]
    assert any("OWPC-SGD was stopped after 0.0 s, in epoch 1" in note for note in findings.notes)


def test_log_axis_spans_whole_powers() -> None:
    from papers.record_charts import build_log_axis

    axis = build_log_axis("n", [20, 900])
    assert (axis.low, axis.high) == (1.0, 3.0)
    assert axis.ticks == [(1.0, "10"), (2.0, "100"), (3.0, "1k")]
