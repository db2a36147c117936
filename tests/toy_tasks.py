"""A task whose right answer is known: rows of six groups, each with two labels of its own."""

from typing import Any

import numpy as np
import scipy.sparse as sp

GROUPS = 6
N_FEATURES, N_LABELS = 5 * GROUPS, 2 * GROUPS


def toy(n: int = 120, *, dense: bool = False, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows with three of the five features of their group, their label matrix, and their two labels in order."""
    rng, group = np.random.default_rng(seed), np.arange(n) % GROUPS
    X = np.zeros((n, N_FEATURES), np.float32)
    for i in range(n):
        X[i, 5 * group[i] + rng.choice(5, 3, replace=False)] = 1
    answer = np.stack([2 * group, 2 * group + 1], 1)
    Y = np.zeros((n, N_LABELS), np.int8)
    np.put_along_axis(Y, answer, 1, 1)
    return (X if dense else sp.csr_matrix(X)), sp.csr_matrix(Y), answer


def names(answer: Any) -> list[list[str]]:
    """The labels of the rows by name."""
    return [[f"label {y}" for y in row] for row in answer]
