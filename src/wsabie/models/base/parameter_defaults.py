"""Values that "auto" means for training parameters, by the shape of the training set.

benchmarks/pages/defaults.md shows the effect of each value of "auto" on validation rows of the sample collection, of
Corel5k and of a generated visual-word task, and compares all of them with random settings.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wsabie.models.base.row_scaling import Scaling

MAX_NORM = 1.5
"""The limit on the norm of every row of both tables: the one regulariser, sharper than the papers' C = 1."""
MANY_ROWS = 100_000
"""Number of training rows from which on the learning rate of an embedding falls."""
MAX_RIDGE_RATE = 0.01
"""Highest learning rate after a ridge start of rows with one label and labels with 100 rows."""
WEIGHT_TRIALS = 100
"""Most negatives drawn for a linear model: each draw reads memory for every feature of the row."""


class TrainingShape(NamedTuple):
    """Size of a training set; a space of several tables has no number of features."""

    n_rows: int
    n_pairs: int
    n_labels: int
    n_features: int = 0


def default_epochs(shape: TrainingShape, *, is_ridge: bool = False) -> int:
    """Return the passes over the pairs, 10 to 30: about 5 million visits, 4.4 after a ridge start."""
    return int(min(30, max(10, round((4.4e6 if is_ridge else 5e6) / max(shape.n_pairs, 1)))))


def default_learning_rate(shape: TrainingShape, pair_weighting: str = "mean") -> float:
    """Return the learning rate of the first epoch for both tables, for rows of a length of about 1.

    From `MANY_ROWS` on it falls with the square root of their number: noise of large steps would hide what more rows
    can teach.
    """
    row_factor = min(1.0, float((MANY_ROWS / max(shape.n_rows, 1)) ** 0.5))
    return 0.03 * row_factor * _for_many_labels(shape, pair_weighting)


def _for_many_labels(shape: TrainingShape, pair_weighting: str) -> float:
    """Return the factor of the rate for rows with several labels."""
    # with pair_weighting="mean" a pair weighs 1 / labels of its row, so the rate grows with the labels per row, a
    # little less than in proportion, or rows with few labels would overshoot
    return 1.0 if pair_weighting == "pairs" else float(max(1.0, shape.n_pairs / max(shape.n_rows, 1)) ** 0.75)


def has_many_labels(shape: TrainingShape) -> bool:
    """Return True for rows with 1.5 labels or more on average, which a ridge start treats differently."""
    return shape.n_pairs >= 1.5 * shape.n_rows


def needs_norm_limit(shape: TrainingShape) -> bool:
    """Return True unless rows have several labels and labels 25 rows: a limit would undo a ridge start."""
    return not has_many_labels(shape) or shape.n_pairs < 25 * shape.n_labels


def default_ridge_rate(shape: TrainingShape, pair_weighting: str = "mean") -> float:
    """Return the learning rate of the first epoch after a ridge start: large steps would destroy it.

    Under a norm limit steps grow with the number of rows, up to a limit that is higher where labels have many rows, and
    with the root of the labels of a row, because a pair weighs 1 / labels. Without one they are smaller, and the more
    so the fewer features there are for the rows, which leave more errors then. docs/decisions/ridge-start.md has the
    measurements.
    """
    if not needs_norm_limit(shape):
        rate = float(np.clip(0.0035 * (shape.n_features / shape.n_rows) ** (1 / 3), 0.0015, 0.005))
    else:
        most = MAX_RIDGE_RATE * float(np.clip((shape.n_pairs / shape.n_labels / 100) ** 0.25, 1, 2))
        rate = float(np.clip(0.0025 * (shape.n_rows / 200) ** 0.5, 0.0025, most))
        rate *= 1.0 if pair_weighting == "pairs" else max(1.0, shape.n_pairs / shape.n_rows) ** 0.5
    return min(rate, default_learning_rate(shape, pair_weighting))


def has_ridge_start(parameters: Mapping[str, Any]) -> bool:
    """Return whether these parameters mean training from a ridge start (`init`).

    "auto" is a ridge start for WARP with hinges and nothing said about the rate or the random start. After
    `init_model` training goes on as that model was trained.
    """
    p = parameters
    if p.get("init_model") is not None:
        return has_ridge_start(p["init_model"].get_params(deep=False))
    if p.get("init", "random") != "auto":
        return bool(p.get("init", "random") == "ridge")
    is_default = p["loss"] == "warp" and p.get("surrogate", "hinge") == "hinge" and p["learning_rate"] == "auto"
    is_default = is_default and p.get("similarity") != "euclidean"
    return is_default and p.get("init_labels") is None and p.get("init_scale") is None


def default_embedding_rate(parameters: Mapping[str, Any], shape: TrainingShape) -> float:
    """Return the learning rate that "auto" is."""
    rate = default_ridge_rate if has_ridge_start(parameters) else default_learning_rate
    return rate(shape, parameters["pair_weighting"])


def default_max_norm(parameters: Mapping[str, Any], shape: TrainingShape) -> float | None:
    """Return the norm limit that "auto" is."""
    return MAX_NORM if needs_norm_limit(shape) or not has_ridge_start(parameters) else None


def default_scaling(parameters: Mapping[str, Any], shape: TrainingShape) -> Scaling:
    """Return the scaling that "auto" is: "tfidf" of sparse rows with several labels after a ridge start."""
    is_tfidf = parameters["scaling"] == "auto" and has_ridge_start(parameters) and has_many_labels(shape)
    scaling: Scaling = "tfidf" if is_tfidf else parameters["scaling"]
    return scaling


def default_linear_epochs(shape: TrainingShape) -> int:
    """Return the passes of a linear model, at most 10, because later ones are slow and hardly help."""
    return min(default_epochs(shape), 10)


def default_linear_rate(parameters: Mapping[str, Any], shape: TrainingShape) -> float:
    """Return the learning rate of a linear model's first epoch, for rows of a length of about 1.

    After a ridge start it is a tenth, because large steps would destroy the start. Without a rank weight ("auc") a
    step counts about a tenth, and the rate is ten times higher. On validation rows of
    the generated visual-word task S (8 epochs) rates of .03 and .1 give "warp" a MAP of .346 and .374, and rates of 1
    and 3 give "auc" .304 and .285.
    """
    rate = 0.01 if has_ridge_start(parameters) else 1.0 if parameters["loss"] == "auc" else 0.1
    return _for_many_labels(shape, parameters["pair_weighting"]) * rate
