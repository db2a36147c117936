"""Softmax: the estimate of its time is logged before a long training."""

import logging

import numpy as np
import pytest

import wsabie
from wsabie.models import softmax


def test_long_training_is_announced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    X, Y = np.random.default_rng(0).standard_normal((60, 4)), [f"label {i % 3}" for i in range(60)]
    with caplog.at_level(logging.INFO, "wsabie"):
        wsabie.Softmax().fit(X, Y)
        assert "softmax with" not in caplog.text
        monkeypatch.setattr(softmax, "SECONDS_PER_PRODUCT", 60 / (60 * 4 * 3 * 200))
        wsabie.Softmax().fit(X, Y)
    assert "softmax with 3 labels and 4 features needs 0.0 MB and about 1.0 minutes" in caplog.text
