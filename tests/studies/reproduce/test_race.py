"""Training against the clock."""

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.base.progress import SILENT
from wsabie.sources.records import Rows
from wsabie.studies.reproduce import race
from wsabie.studies.reproduce.catalogue import record
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.models import available, task_of
from wsabie.studies.reproduce.record import Setting


@pytest.fixture
def setting() -> Setting:
    sides = []
    for seed, (n, prefix) in enumerate(((600, "a"), (40, "b"), (40, "c"))):
        y = np.random.default_rng(seed).integers(0, 6, n)
        eye = np.eye(6, dtype=np.float32)[y]
        sides.append(Rows(sp.csr_matrix(eye), sp.csr_matrix(eye.astype(np.int8)), list("abcdef"),
                          [f"{prefix}{i}" for i in range(n)]))  # fmt: skip
    data = Data("toy", "toy", *sides, published_split=True)
    return Setting(data, 0, 1, {"epochs": 3}, SILENT)


def test_all_three_have_a_curve(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "LIMIT", 1e9)
    found = race.training_curves(record("wsabie-figure-2"), setting)
    assert [row.row for row in found.rows if row.row.endswith("epoch 3")] == [
        "WARP, epoch 3", "AUC, epoch 3", "OWPC-SGD, epoch 3",
    ]  # fmt: skip
    assert all(isinstance(row.figures["MAP"], float) for row in found.rows)
    assert [note.partition(":")[0] for note in found.notes if "learning rate" in note] == ["WARP", "AUC", "OWPC-SGD"]


def test_the_best_learning_rate_is_shown(setting: Setting) -> None:
    task = task_of(setting.given)
    warp, *_ = available(record("wsabie-figure-2"), setting)[0]
    runs = {option["rate"]: race._run(warp, option, task, np.inf, setting).best for option in warp.options}
    assert sorted(runs) == pytest.approx([1 / 3, 1, 3])
    found = race.training_curves(record("wsabie-figure-2"), setting)
    best = max(float(row.figures["MAP"]) for row in found.rows if row.row.startswith("WARP"))  # type: ignore[arg-type]
    assert best == pytest.approx(max(runs.values()))


def test_who_runs_out_of_time_in_the_first_epoch_has_a_point_all_the_same(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "LIMIT", 0.0)
    found = race.training_curves(record("wsabie-figure-2"), setting)
    late = [row for row in found.rows if row.row.startswith("OWPC-SGD")]
    assert len(late) == 1
    assert 0 < float(late[0].figures["epoch"]) <= 1  # type: ignore[arg-type]
    assert any("OWPC-SGD was stopped after 0.0 s, in epoch 1" in note for note in found.notes)
