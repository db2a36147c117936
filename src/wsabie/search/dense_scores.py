"""Dense scores of a block of rows, each summed in a fixed order."""

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.execution import run_in_ranges
from wsabie.kernels.embedding.similarity import Similarity
from wsabie.kernels.ranking.label_ranks import allocate_scratch, score_rows

_ROWS = 256
"""Rows of one task, enough to amortise the tiles of the label table."""


def compute_all_scores(labels: Similarity, queries: Float32, *, threads: int = 1) -> Float32:
    """Return every score, (n, n_labels) float32, of blocks of rows that fit into memory.

    Equal vectors have equal scores, whatever stands beside them, and the bits do not depend on the number of threads
    or on what other rows there are; a matrix product promises neither, and takes half the time.

    Parameters
    ----------
    labels : kernels.similarity.Dot, Euclidean or Cosine
        `table` (n_labels, dim) and `bias` (n_labels,), both float32.
    queries : (n, dim) float32, C order
    threads : int

    Raises
    ------
    InputError
        The dimensions differ.

    Examples
    --------
    >>> from wsabie.kernels.embedding.similarity import Euclidean
    >>> index = Euclidean(np.zeros((1, 2), np.float32), np.zeros(1, np.float32))
    >>> compute_all_scores(index, np.array([[3, 4]], np.float32))
    array([[-5.]], dtype=float32)
    """
    n_labels, dim = labels.table.shape
    if queries.shape[1] != dim:
        raise InputError(f"the points have {queries.shape[1]} dimensions but the label vectors {dim}; use one space")
    out = np.empty((len(queries), n_labels), np.float32)

    def work(lo: int, hi: int) -> None:
        score_rows(labels, queries, out, lo, hi, allocate_scratch(hi - lo, dim))

    run_in_ranges(work, len(queries), _ROWS, threads)
    return out
