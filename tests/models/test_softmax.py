"""Softmax: probabilities, convergence, and the estimate of its time before a long training."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from tests.models.planted_vectors import TRUE, X

import wsabie
from wsabie.models import softmax
from wsabie.models.softmax import Softmax


def test_long_training_is_announced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    X, Y = np.random.default_rng(0).standard_normal((60, 4)), [f"label {i % 3}" for i in range(60)]
    with caplog.at_level(logging.INFO, "wsabie"):
        wsabie.Softmax().fit(X, Y)
        assert "softmax with" not in caplog.text
        monkeypatch.setattr(softmax, "SECONDS_PER_PRODUCT", 60 / (60 * 4 * 3 * 200))
        wsabie.Softmax().fit(X, Y)
    assert "softmax with 3 labels and 4 features needs 0.0 MB and about 1.0 minutes" in caplog.text


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_softmax_gives_probabilities(n_labels):
    rows, y = X[n_labels > TRUE], TRUE[n_labels > TRUE]
    model = Softmax().fit(rows, y)
    chances = model.probabilities(rows)
    assert chances.sum(axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-5)
    assert np.mean(chances.argmax(axis=1) == y) > 0.9


def test_softmax_shares_a_row_among_its_labels():
    """A row with two labels is each of them by half."""
    Y = sp.csr_matrix([[1, 1, 0], [0, 0, 1]])
    chances = Softmax(C=1e4, scaling=None).fit(np.eye(2), Y).probabilities(np.eye(2))
    assert chances[0] == pytest.approx([0.5, 0.5, 0], abs=0.02)


def test_softmax_reports_missing_convergence_once(caplog):
    rows, y = np.random.default_rng(0).random((60, 5)), np.arange(60) % 3
    Softmax(max_iter=1).fit(rows, y)
    assert [record.message for record in caplog.records] == [
        "softmax had not settled at max_iter = 1 steps, which regularises too; a higher one lets it settle"
    ]
    caplog.clear()
    Softmax(max_iter=1000, C=0.1).fit(rows, y)
    assert not caplog.records
