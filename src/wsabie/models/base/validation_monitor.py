"""Validation during training by kernels with a fixed order: the same bits for any number of threads."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Float32, Float64, Int64, Matrix
from wsabie.core.errors import require
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.linear_space import JointLinearSpace, LinearSpace
from wsabie.embedding.protocols import EmbeddingSpace
from wsabie.embedding.relation_spaces import PartsSpace
from wsabie.evaluation import metrics
from wsabie.evaluation.positive_ranks import rank_embeddings
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.base.feature_matrix import FeatureMatrix, iterate_row_ranges, slice_rows, take_rows
from wsabie.search.dense_scores import compute_all_scores
from wsabie.training.kernel_threads import KernelThreads

MAX_ROWS = 2000
"""Most validation rows during training, evenly spread over those given. Evaluation reads all."""


def check_metric(metric: str, n_labels: int | None = None, extra_metrics: Sequence[str] = ()) -> None:
    """Raise InputError for a figure that cannot choose an epoch.

    Parameters
    ----------
    metric : str
    n_labels : int or None
        None if it is not known yet; then every k is accepted.
    extra_metrics : sequence of str
        Further figures beside MAP and p@k of a kind of model.

    Raises
    ------
    InputError

    Examples
    --------
    >>> check_metric("p@5", n_labels=5)
    >>> check_metric("map")
    Traceback (most recent call last):
    wsabie.core.errors.InputError: no epoch can be chosen by 'map'; choose MAP, or p@k such as p@10
    """
    k = _parse_cutoff(metric)
    is_usable = metric == "MAP" or metric in extra_metrics or (k >= 1 and (n_labels is None or k <= n_labels))
    example = "such as p@10" if n_labels is None else f"with k from 1 to {n_labels} (the labels)"
    require(
        is_usable,
        f"no epoch can be chosen by {metric[:40]!r}; choose {', '.join(['MAP', *extra_metrics])}, or p@k {example}",
    )


class ValidationMonitor:
    """Mean average precision and p@10 of a space on rows with labels, expected over ties.

    Parameters
    ----------
    inputs : Csr or (n, n_features) float32
        Scaled rows.
    Y : csr_matrix (n, n_labels)
        Positive entries are true labels; rows without one do not count.
    max_rows : int or None
        Most rows that are read to choose an epoch; None reads all rows, even none, to evaluate a model.
    metric : str
        The figure that chooses the epoch: "MAP", or "p@k" for any k up to the number of labels.

    Raises
    ------
    InputError
        No row has a label although an epoch is to be chosen, or the metric is unknown.
    """

    def __init__(
        self, inputs: FeatureMatrix, Y: Matrix, threads: int, max_rows: int | None = MAX_ROWS, metric: str = "MAP"
    ) -> None:
        check_metric(metric, Y.shape[1])
        rows = sample_labelled_rows(Y, max_rows)
        fact = "no validation row has a label that the training rows have, so that no epoch is better than another"
        require(max_rows is None or len(rows) > 0, f"{fact}; give other validation rows, or train without them")
        self.threads = threads
        self.metric = metric
        self.inputs = take_rows(inputs, rows)
        self.Y = Y[rows]
        self.n_rows = len(rows)

    def __call__(self, space: EmbeddingSpace) -> float:
        """Return the mean average precision; 0 if no row counts."""
        return self.figures(space)["MAP"]

    def figures(self, space: EmbeddingSpace) -> dict[str, float]:
        """Return figures by name: the chosen metric, MAP, p@10 (p@k of k < 10 labels); 0 if no row counts."""
        space = _select_item_space(space)
        names = dict.fromkeys([self.metric, "MAP", f"p@{min(10, self.Y.shape[1])}"])
        if not self.n_rows:
            return dict.fromkeys(names, 0.0)
        if not isinstance(space, JointSpace):
            lengths = sorted({_parse_cutoff(name) for name in names} - {0})
            means = evaluate_scores(self.iterate_score_blocks(space), self.Y, ks=lengths).means
            return {name: float(means[name]) for name in names}
        with KernelThreads(self.threads) as threads:
            points = space.compute_points(self.inputs, threads.split)
        labels = space.label_arrays()
        points = np.ascontiguousarray(points[:, : labels.table.shape[1]])  # a mapped table has no padding
        ranks = rank_embeddings(labels, points, self.Y, threads=self.threads)
        return {name: float(_compute_row_values(ranks, name).mean()) for name in names}

    def warm_up(self, space: EmbeddingSpace) -> None:
        """Compute the figures of one row (and one label if labels are points), which compiles the kernels."""
        space = _select_item_space(space)
        row, truth = take_rows(self.inputs, np.arange(min(1, self.n_rows))), self.Y[:1]
        if isinstance(space, JointSpace):
            space, truth = replace(space, labels=space.labels[:1], bias=space.bias[:1]), csr_matrix([[1]])
        ValidationMonitor(row, truth, 1).figures(space)

    def iterate_score_blocks(self, space: EmbeddingSpace) -> Iterator[tuple[int, Float32]]:
        """Yield all scores in blocks: (first row, (b, n_labels))."""
        with KernelThreads(self.threads) as threads:
            for lo, hi in iterate_row_ranges(self.n_rows, space.n_labels):
                yield lo, compute_scores(space, slice_rows(self.inputs, lo, hi), threads)


def sample_labelled_rows(Y: Matrix, most: int | None) -> Int64:
    """Return the rows with a true label, or at most so many of them, evenly spread."""
    rows = np.flatnonzero(np.diff((Y > 0).tocsr().indptr))
    n = min(most or len(rows), len(rows))
    return rows[np.linspace(0, len(rows) - 1, n).astype(int)] if n else rows


def compute_scores(space: EmbeddingSpace, inputs: FeatureMatrix, threads: KernelThreads) -> Float32:
    """Return all scores of a block of scaled rows, (n, n_labels) float32."""
    if isinstance(space, (LinearSpace, JointLinearSpace)):
        return space.scores(inputs, threads.split)
    if not isinstance(space, JointSpace):
        raise TypeError(f"no scores of a {type(space).__name__}")
    labels = space.label_arrays()
    points = space.compute_points(inputs, threads.split)
    return compute_all_scores(labels, np.ascontiguousarray(points[:, : labels.table.shape[1]]), threads=threads.n)


def _select_item_space(space: Any) -> EmbeddingSpace:
    """Return the part of a space that labels items one by one."""
    return space.items if isinstance(space, PartsSpace) else space


def _parse_cutoff(metric: str) -> int:
    """Return k of "p@k"; 0 for anything else."""
    kind, _, k = metric.partition("@")
    return int(k) if kind == "p" and k.isascii() and k.isdigit() and len(k) < 10 else 0


def _compute_row_values(ranks: metrics.PositiveRanks, metric: str) -> Float64:
    return metrics.average_precision(ranks) if metric == "MAP" else metrics.precision_at(ranks, _parse_cutoff(metric))
