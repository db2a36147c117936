"""Training against the clock."""

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.base.progress import SILENT
from wsabie.sources.records import Rows
from wsabie.studies.reproduce import race
from wsabie.studies.reproduce.catalogue import record
from wsabie.studies.reproduce.data import Data
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


def test_who_runs_out_of_time_in_the_first_epoch_has_a_point_all_the_same(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "LIMIT", 0.0)
    found = race.training_curves(record("wsabie-figure-2"), setting)
    late = [row for row in found.rows if row.row.startswith("OWPC-SGD")]
    assert len(late) == 1
    assert 0 < float(late[0].figures["epoch"]) <= 1  # type: ignore[arg-type]
    assert any("OWPC-SGD was stopped after 0.0 s, in epoch 1" in note for note in found.notes)
