"""Votes of neighbours from a full matrix of cosines."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def labels(n: int, n_labels: int, rng: np.random.Generator) -> sp.csr_matrix:
    Y = rng.choice([-1, 0, 1], (n, n_labels), p=[0.1, 0.6, 0.3]).astype(np.int8)
    Y[0, 0] = 1
    return sp.csr_matrix(Y)


def by_brute_force(train: Any, Y: Any, rows: Any, k: int) -> Any:
    """Votes from a full matrix of cosines in float64."""

    def unit(M: Any) -> Any:
        M = np.asarray(M.toarray() if hasattr(M, "toarray") else M, np.float64)
        return M / np.maximum(np.linalg.norm(M, axis=1, keepdims=True), 1e-12)

    cosines = unit(rows) @ unit(train).T
    out = np.zeros((len(cosines), Y.shape[1]))
    for i, row in enumerate(cosines):
        for j in np.lexsort((np.arange(len(row)), -row))[:k]:
            out[i] += max(row[j], 0) * (Y[[j]].toarray()[0] > 0)
    return out
