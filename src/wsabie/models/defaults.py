"""What "auto" means: documented functions of the number of rows, pairs and labels.

docs/defaults.md shows what each does, on validation rows of the sample collection, Corel5k and a generated visual-word
task, and how the whole fares against random settings.
"""

from typing import NamedTuple

MAX_NORM = 1.5
"""The limit on the norm of every row of both tables: the one regulariser, sharper than the papers' C = 1."""


MANY_ROWS = 100_000
"""From so many training rows on the learning rate of an embedding falls."""


class Shape(NamedTuple):
    """Size of a training set."""

    n_rows: int
    n_pairs: int
    n_labels: int


def epochs(shape: Shape) -> int:
    """Passes over the pairs: about 5 million visits in all, at least 10 and at most 30 passes."""
    return int(min(30, max(10, round(5e6 / max(shape.n_pairs, 1)))))


def learning_rate(shape: Shape, positives: str = "mean") -> float:
    """The step of the first epoch, for both tables; rows have a length of about 1.

    From `MANY_ROWS` on it falls with their square root: what more rows can teach, large steps would drown in noise.
    """
    few = min(1.0, float((MANY_ROWS / max(shape.n_rows, 1)) ** 0.5))
    return 0.03 * few * _for_many_labels(shape, positives)


def _for_many_labels(shape: Shape, positives: str) -> float:
    """With positives="mean" a pair weighs 1 / labels of its row, so the step grows with the labels per row; a little
    less than in proportion, or rows with few labels would overshoot.
    """
    return 1.0 if positives == "pairs" else float(max(1.0, shape.n_pairs / max(shape.n_rows, 1)) ** 0.75)


def weight_epochs(shape: Shape) -> int:
    """Passes of a linear model, at most 10: each takes longer than an embedding's, and later ones hardly help."""
    return min(epochs(shape), 10)


WEIGHT_TRIALS = 100
"""Negatives drawn for a linear model: a draw reads as many places of memory as the row has features."""


def weight_rate(shape: Shape, positives: str = "mean", loss: str = "warp") -> float:
    """The step of the first epoch for a weight per label and feature; rows have a length of about 1.

    Without a rank weight ("auc") a step counts about a tenth, and the rate is ten times higher. On validation rows of
    the generated visual-word task S (8 epochs) rates of .03 and .1 give "warp" a MAP of .346 and .374, and rates of 1
    and 3 give "auc" .304 and .285.
    """
    return _for_many_labels(shape, positives) * (1.0 if loss == "auc" else 0.1)
