"""Epochs that are chosen by a label held out of the training rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.base.progress import SILENT
from wsabie.models.wsabie import Wsabie
from wsabie.sources.records import Rows
from wsabie.studies.fitting import evaluated
from wsabie.studies.reproduce import judged
from wsabie.studies.reproduce.judged import trained
from wsabie.studies.splitting import split_labels


@pytest.fixture(scope="module")
def sides() -> dict[str, Rows]:
    """Rows as ids, with four of the six labels of one half each."""
    rng, n = np.random.default_rng(0), 300
    Y = np.zeros((n, 12), np.int8)
    for i in range(n):
        Y[i, 6 * (i % 2) + rng.permutation(6)[:4]] = 1
    ids = [str(i) for i in range(n)]
    rows = Rows(sp.identity(n, np.float32, format="csr"), sp.csr_matrix(Y), [str(y) for y in range(12)], ids)
    return split_labels(rows, valid=0.5, test=1.0, seed=0)


def test_the_best_epoch_is_kept_and_told(sides: dict[str, Rows]) -> None:
    train, held = sides["train"], sides["valid"]
    model = Wsabie(dim=10, epochs=25, learning_rate=0.5, threads=1)
    found = trained(model, train, held, SILENT)
    figures = [stats.validation or 0.0 for stats in found.model.history_]
    assert found.figure == max(figures) > figures[-1]
    assert figures[found.epoch - 1] == found.figure
    assert found.seconds == pytest.approx(sum(stats.seconds for stats in found.model.history_[: found.epoch]))
    at = [int(name) for name in held.ids]
    without = evaluated(found.model, held, (5,), "", exclude=train.Y[at]).means["MAP"]
    assert found.figure == pytest.approx(without)  # the labels of training are no candidates
    assert found.figure > evaluated(found.model, held, (5,), "").means["MAP"] + 0.05


def test_no_more_rows_judge_than_are_needed(sides: dict[str, Rows], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "MAX_ROWS", 7)
    found = trained(Wsabie(dim=4, epochs=2, threads=1), sides["train"], sides["valid"], SILENT)
    assert 0 < found.figure < 1


def test_without_judges_the_last_epoch_is_kept(sides: dict[str, Rows]) -> None:
    found = trained(Wsabie(dim=4, epochs=3, threads=1), sides["train"], None, SILENT)
    assert (found.epoch, found.figure, type(found.model)) == (3, 0.0, Wsabie)
