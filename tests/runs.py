"""A run of the trainer that is the same in every process: rows of three kinds, labels that follow them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wsabie.core.validation import check_features
from wsabie.embedding.joint_space import JointSpace
from wsabie.training.resolved_settings import TrainingSettings
from wsabie.training.trainer import Trainer
from wsabie.training.training_data import RowBlock, TrainingData, build_targets


def make_settings(**changes: Any) -> TrainingSettings:
    values: dict[str, Any] = {
        "loss": "warp",
        "rank_weight": "precision",
        "margin": 1.0,
        "max_sampled": 40,
        "learning_rate": 0.05,
        "feature_rate": 0.1,
        "bias_rate": 0.01,
        "schedule": "linear",
        "max_norm": 1.5,
        "epochs": 6,
        "patience": None,
        "threads": 1,
        "deterministic": True,
        "seed": 3,
    }
    return TrainingSettings(**{**values, **changes})


def make_block(n: int = 700, dense: bool = False) -> RowBlock:
    """Rows with 0 to 12 of 40 labels, several blocks' worth of pairs; row 0 is empty, row 1 has no label."""
    rng = np.random.default_rng(0)
    X = sp.random(n, 30, 0.3, format="lil", dtype=np.float32, random_state=rng)
    X[0] = 0
    Y = sp.lil_matrix((n, 40), dtype=np.int8)
    for i in range(n):
        Y[i, rng.choice(40, rng.integers(1, 13), replace=False)] = 1
    Y[1] = 0
    X = X.tocsr().astype(np.float32)
    return RowBlock(check_features(X.toarray() if dense else X), build_targets(Y.tocsr(), None, "mean"))


def make_space(similarity: Any = "dot") -> JointSpace:
    return JointSpace.random(30, 40, 20, similarity, np.random.default_rng(9))


def same_points(a: JointSpace, b: JointSpace) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("features", "labels", "bias"))


class Watch(NamedTuple):
    """A monitor from a function; a second figure says the opposite."""

    compute: Callable[[JointSpace], float]

    def figures(self, space: JointSpace) -> dict[str, float]:
        value = self.compute(space)
        return {"figure": value, "opposite": -value}


def train(
    block: RowBlock, space: JointSpace, settings: TrainingSettings, *, monitor: Any = None, **options: Any
) -> Any:
    """(history, space) after a run; `monitor` is a function of the space."""
    watch = None if monitor is None else Watch(monitor)
    history = Trainer(settings, monitor=watch, **options).train(space, TrainingData([block]))
    return history, space


def figure(space: JointSpace) -> float:
    """Stands for a validation figure; any number that depends on all points."""
    return float(np.abs(space.features).sum() - np.abs(space.labels[::2]).sum())
