"""Toy task, estimators and a comparison that the tests of the estimator share."""

from typing import Any

import numpy as np

from toy_tasks import toy
from wsabie.models.joint_embedding.estimator import Wsabie

X, Y, ANSWER = toy()


def make(**changes: Any) -> Wsabie:
    return Wsabie(**{"dim": 20, "epochs": 30, "threads": 1, **changes})


def same(a: Wsabie, b: Wsabie) -> bool:
    return all(
        np.array_equal(getattr(a.space_, name), getattr(b.space_, name)) for name in ("features", "labels", "bias")
    )
