"""What "auto" means: documented functions of the number of pairs, labels and non-zeros.

Each was chosen on validation rows of the sample collection, Corel5k and the generated visual-word tasks; see
docs/defaults.md for the search and what each costs.
"""

from typing import NamedTuple


class Shape(NamedTuple):
    """Size of a training set."""

    n_rows: int
    n_pairs: int
    n_features: int
    n_labels: int
    row_nnz: float  # mean non-zeros per row


def epochs(shape: Shape) -> int:
    """About 2.5 million pairs in all, between 8 and 60 passes."""
    return int(min(60, max(8, round(2.5e6 / max(shape.n_pairs, 1)))))


def learning_rate(shape: Shape) -> float:
    """The step of the first epoch."""
    return 0.03


def max_norm(shape: Shape) -> float:
    """The limit on the norm of every row of both tables."""
    return 2.0
