"""Values of parameters that are "auto": functions of the number of rows, pairs and labels.

docs/defaults.md shows the effect of each on validation rows of the sample collection, of Corel5k and of a generated
visual-word task, and compares all of them with random settings.
"""

from typing import NamedTuple

MAX_NORM = 1.5
"""The limit on the norm of every row of both tables: the one regulariser, sharper than the papers' C = 1."""


MANY_ROWS = 100_000
"""Number of training rows from which on the learning rate of an embedding falls."""


class TrainingShape(NamedTuple):
    """Size of a training set."""

    n_rows: int
    n_pairs: int
    n_labels: int


def default_epochs(shape: TrainingShape) -> int:
    """Return the number of passes over the pairs, 10 to 30: about 5 million visits in all."""
    return int(min(30, max(10, round(5e6 / max(shape.n_pairs, 1)))))


def default_learning_rate(shape: TrainingShape, positives: str = "mean") -> float:
    """Return the learning rate of the first epoch for both tables, for rows of a length of about 1.

    From `MANY_ROWS` on it falls with the square root of their number: noise of large steps would hide what more rows
    can teach.
    """
    row_factor = min(1.0, float((MANY_ROWS / max(shape.n_rows, 1)) ** 0.5))
    return 0.03 * row_factor * _for_many_labels(shape, positives)


def _for_many_labels(shape: TrainingShape, positives: str) -> float:
    """Return the factor of the rate for rows with several labels.

    With positives="mean" a pair weighs 1 / labels of its row, so the rate grows with the labels per row. It grows a
    little less than in proportion, or rows with few labels would overshoot.
    """
    return 1.0 if positives == "pairs" else float(max(1.0, shape.n_pairs / max(shape.n_rows, 1)) ** 0.75)


def default_linear_epochs(shape: TrainingShape) -> int:
    """Return the passes of a linear model, at most 10, because later ones are slow and hardly help."""
    return min(default_epochs(shape), 10)


WEIGHT_TRIALS = 100
"""Most negatives drawn for a linear model: each draw reads memory for every feature of the row."""


def default_linear_rate(shape: TrainingShape, positives: str = "mean", loss: str = "warp") -> float:
    """Return the learning rate of a linear model's first epoch, for rows of a length of about 1.

    Without a rank weight ("auc") a step counts about a tenth, and the rate is ten times higher. On validation rows of
    the generated visual-word task S (8 epochs) rates of .03 and .1 give "warp" a MAP of .346 and .374, and rates of 1
    and 3 give "auc" .304 and .285.
    """
    return _for_many_labels(shape, positives) * (1.0 if loss == "auc" else 0.1)
