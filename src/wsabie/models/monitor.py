"""Validation during training, from our own fixed-order kernels: the same bits for any number of threads."""

import numpy as np

from wsabie.base.arrays import Csr, Float32, Matrix
from wsabie.models.scaling import Inputs
from wsabie.space.joint import JointSpace
from wsabie.training.threads import Threads

MAX_ROWS = 2000
"""Validation rows that steer training; evenly spread over those given. Evaluation reads them all."""


class ValidationMap:
    """Mean average precision of a space on rows with labels.

    Parameters
    ----------
    inputs : Csr or (n, n_features) float32
        Scaled rows.
    Y : csr_matrix (n, n_labels)
        Positive entries are true labels.
    """

    def __init__(self, inputs: Inputs, Y: Matrix, threads: int) -> None:
        from wsabie.kernels.ranks import Counts, Lists

        labelled = np.flatnonzero(np.diff((Y > 0).tocsr().indptr))
        rows = labelled[np.linspace(0, len(labelled) - 1, min(MAX_ROWS, len(labelled))).astype(int)] if len(labelled) else labelled
        true = (Y[rows] > 0).tocsr()
        true.sort_indices()
        self.threads = threads
        self.inputs = _take(inputs, rows)
        self.listed = Lists(true.indptr.astype(np.int64), true.indices.astype(np.int32))
        self.excluded = Lists(np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int32))
        self.counts = Counts(np.zeros(true.nnz, np.int32), np.zeros(true.nnz, np.int32))

    def __call__(self, space: JointSpace) -> float:
        """MAP with expected values over ties; 0 when there is no row with labels."""
        from wsabie.kernels.ranks import rank_counts

        n = len(self.listed.indptr) - 1
        if n == 0:
            return 0.0
        labels = space.label_arrays()
        with Threads(self.threads) as threads:
            points = space.points(self.inputs, threads.split)
            bounds = np.linspace(0, n, threads.n + 1).astype(int)
            threads.each(
                lambda t: rank_counts(labels, points, self.listed, self.excluded, self.counts, bounds[t], bounds[t + 1])
            )
        return float(_average_precision(self.counts.above, self.listed.indptr).mean())


def _average_precision(above: np.ndarray, indptr: np.ndarray) -> Float32:
    counts = np.diff(indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((above, rows))
    nth = np.arange(len(above)) - np.repeat(indptr[:-1], counts) + 1
    precision = nth / (above[order] + 1.0)
    return np.bincount(rows, precision, len(counts)) / counts


def _take(inputs: Inputs, rows: np.ndarray) -> Inputs:
    if not isinstance(inputs, Csr):
        return np.ascontiguousarray(inputs[rows])
    counts = np.diff(inputs.indptr)[rows]
    at = np.repeat(inputs.indptr[rows] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return Csr(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), inputs.indices[at], inputs.data[at])
