"""Validation during training, from our own fixed-order kernels: the same bits for any number of threads."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Float64, Matrix
from wsabie.base.validation import require
from wsabie.evaluation import metrics
from wsabie.evaluation.evaluate import evaluate_scores
from wsabie.evaluation.ranking import ranks_of_points
from wsabie.models.inputs import Inputs, row_ranges, rows_between, take_rows
from wsabie.space.joint import JointSpace
from wsabie.space.linear import FullSpace, LinearSpace
from wsabie.space.parts import PartsSpace
from wsabie.space.protocol import Space
from wsabie.training.threads import Threads

MAX_ROWS = 2000
"""Validation rows that steer training; evenly spread over those given. Evaluation reads them all."""


def check_metric(metric: str, n_labels: int | None = None, others: Sequence[str] = ()) -> None:
    """Refuse a figure by which no epoch can be chosen.

    Parameters
    ----------
    metric : str
    n_labels : int or None
        None: not known yet, so that any k will do.
    others : sequence of str
        Figures beside MAP and p@k that a kind of model has.

    Raises
    ------
    InputError

    Examples
    --------
    >>> check_metric("p@5", n_labels=5)
    >>> check_metric("map")
    Traceback (most recent call last):
    wsabie.base.errors.InputError: no epoch can be chosen by 'map'; choose MAP, or p@k such as p@10
    """
    k = _length(metric)
    known = metric == "MAP" or metric in others or (k >= 1 and (n_labels is None or k <= n_labels))
    which = "such as p@10" if n_labels is None else f"with k from 1 to {n_labels} (the labels)"
    require(known, f"no epoch can be chosen by {metric[:40]!r}; choose {', '.join(['MAP', *others])}, or p@k {which}")


class ValidationMap:
    """Mean average precision of a space on rows with labels, and p@10 beside it, expected over ties.

    Parameters
    ----------
    inputs : Csr or (n, n_features) float32
        Scaled rows.
    Y : csr_matrix (n, n_labels)
        Positive entries are true labels; rows without one do not count.
    max_rows : int or None
        At most so many rows are looked at, to choose an epoch; None: all there are, be it none, to judge a model.
    metric : str
        The figure that decides: "MAP", or "p@k" for any k up to the number of labels.

    Raises
    ------
    InputError
        No row has a label, and an epoch is to be chosen: all would look the same; or an unknown metric.
    """

    def __init__(
        self, inputs: Inputs, Y: Matrix, threads: int, max_rows: int | None = MAX_ROWS, metric: str = "MAP"
    ) -> None:
        check_metric(metric, Y.shape[1])
        labelled = np.flatnonzero(np.diff((Y > 0).tocsr().indptr))
        require(
            max_rows is None or len(labelled) > 0,
            "no validation row has a label that the training rows have, so that no epoch is better than another; "
            "give other validation rows, or train without them",
        )
        n = min(max_rows or len(labelled), len(labelled))
        rows = labelled[np.linspace(0, len(labelled) - 1, n).astype(int)] if n else labelled
        self.threads = threads
        self.metric = metric
        self.inputs = take_rows(inputs, rows)
        self.Y = Y[rows]
        self.n_rows = n

    def __call__(self, space: Space) -> float:
        """The mean average precision; 0 when no row counts."""
        return self.figures(space)["MAP"]

    def figures(self, space: Space) -> dict[str, float]:
        """By name: the metric that decides, MAP, p@10 (p@k of k < 10 labels); 0 when no row counts."""
        space = _of_things(space)
        names = dict.fromkeys([self.metric, "MAP", f"p@{min(10, self.Y.shape[1])}"])
        if not self.n_rows:
            return dict.fromkeys(names, 0.0)
        if not isinstance(space, JointSpace):
            lengths = sorted({_length(name) for name in names} - {0})
            means = evaluate_scores(self.blocks_of_scores(space), self.Y, ks=lengths).means
            return {name: float(means[name]) for name in names}
        with Threads(self.threads) as threads:
            points = space.points(self.inputs, threads.split)
        labels = space.label_arrays()
        points = np.ascontiguousarray(points[:, : labels.table.shape[1]])  # a mapped table has no padding
        ranks = ranks_of_points(labels, points, self.Y, threads=self.threads)
        return {name: float(_per_row(ranks, name).mean()) for name in names}

    def rehearse(self, space: Space) -> None:
        """The figures of one row (and of one label, where a label is a point), so that the kernels are compiled."""
        from scipy.sparse import csr_matrix

        space = _of_things(space)
        one, truth = take_rows(self.inputs, np.arange(min(1, self.n_rows))), self.Y[:1]
        if isinstance(space, JointSpace):
            space, truth = replace(space, labels=space.labels[:1], bias=space.bias[:1]), csr_matrix([[1]])
        ValidationMap(one, truth, 1).figures(space)

    def blocks_of_scores(self, space: Space) -> Iterator[tuple[int, Float32]]:
        """All scores of the rows, (first row, (b, n_labels)) a block."""
        with Threads(self.threads) as threads:
            for lo, hi in row_ranges(self.n_rows, space.n_labels):
                yield lo, scores_of(space, rows_between(self.inputs, lo, hi), threads)


def scores_of(space: Space, inputs: Inputs, threads: Threads) -> Float32:
    """All scores of a block of scaled rows, (n, n_labels) float32."""
    from wsabie.search.dense import all_scores

    if isinstance(space, (LinearSpace, FullSpace)):
        return space.scores(inputs, threads.split)
    if not isinstance(space, JointSpace):
        raise TypeError(f"no scores of a {type(space).__name__}")
    labels = space.label_arrays()
    points = space.points(inputs, threads.split)
    return all_scores(labels, np.ascontiguousarray(points[:, : labels.table.shape[1]]), threads=threads.n)


def _of_things(space: Any) -> Space:
    """The part of a space by which things are labelled one by one."""
    things: Space = space.things if isinstance(space, PartsSpace) else space
    return things


def _length(metric: str) -> int:
    """k of "p@k"; 0 for anything else."""
    kind, _, k = metric.partition("@")
    return int(k) if kind == "p" and k.isascii() and k.isdigit() and len(k) < 10 else 0


def _per_row(ranks: metrics.Ranks, metric: str) -> Float64:
    return metrics.average_precision(ranks) if metric == "MAP" else metrics.precision_at(ranks, _length(metric))
