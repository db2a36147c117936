"""Scalings of word counts offered to the peers (ours has its own, inside the model). NumPy and SciPy only."""

from typing import Any

import numpy as np
import scipy.sparse as sp

SCALINGS = ("counts", "log", "tfidf")


def scale_rows(name: str, X_fit: Any, tables: list[Any]) -> list[Any]:
    """The training rows and others, scaled; statistics come from the training rows alone.

    Parameters
    ----------
    name : {"counts", "log", "tfidf"}
        As they are; log(1 + x) at unit length; log(1 + x) * (log((1 + n) / (1 + df)) + 1) at unit length.
    X_fit : csr_matrix (n, n_words) float32
    others : list of csr_matrix
    """
    weight = np.ones(X_fit.shape[1], np.float32)
    if name == "tfidf":
        document_counts = np.bincount(X_fit.indices, minlength=X_fit.shape[1])
        weight = (np.log((1 + X_fit.shape[0]) / (1 + document_counts)) + 1).astype(np.float32)
    if name not in SCALINGS:
        raise ValueError(f"no scaling is called {name!r}; there are {', '.join(SCALINGS)}")
    return [X if name == "counts" else _at_unit_length(X, weight) for X in (X_fit, *tables)]


def _at_unit_length(X: Any, weight: Any) -> Any:
    data = np.log1p(X.data) * weight[X.indices]
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lengths = np.sqrt(np.bincount(row_of, data * data, minlength=X.shape[0]))
    data /= np.maximum(lengths, 1e-12)[row_of]
    return sp.csr_matrix((data.astype(np.float32), X.indices, X.indptr), shape=X.shape)
