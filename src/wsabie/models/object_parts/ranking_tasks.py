"""Evaluation of the ranking tasks of objects and parts (Mesnil et al. 2014, section 6.2)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Float64, Matrix
from wsabie.core.errors import InputError
from wsabie.evaluation.quadruplet_metrics import compute_rank_metrics
from wsabie.models.base.feature_matrix import iterate_row_ranges
from wsabie.models.object_parts.pair_ranker import Side
from wsabie.vocabulary.label_quadruplets import QuadrupletBatch, Quadruplets, count_quadruplets

KS = (1, 10)
Values = dict[str, Float64]
"""Results of `compute_rank_metrics`: a value per row for each metric."""


class QuadrupletTest(NamedTuple):
    """Drawn quadruplets and their rows."""

    drawn: QuadrupletBatch
    X: Matrix

    @property
    def pictures(self) -> list[tuple[Any, Any, Any, Side]]:
        """Row numbers, their labels, the labels of the related pictures, and the side: objects, then parts."""
        objects, object_labels, parts, part_labels = self.drawn
        return [(objects, object_labels, part_labels, "object"), (parts, part_labels, object_labels, "part")]

    @property
    def relations(self) -> list[str]:
        """The relation of each quadruplet."""
        return [f"{a} {b}" for a, b in zip(self.drawn.object_labels, self.drawn.part_labels, strict=True)]


def draw_test(X: Matrix, Y: Matrix, relations: Any, n: int, rng: np.random.Generator) -> QuadrupletTest:
    """Draw n quadruplets of the relations, (m, 2) label numbers, relations first, then rows.

    Raises
    ------
    InputError
        No relation has a quadruplet.
    """
    pairs = np.asarray(relations, np.int64).reshape(-1, 2)
    present_pairs = pairs[count_quadruplets(Y, pairs) > 0] if len(pairs) else pairs
    if not len(present_pairs):
        raise InputError("no relation has two different test pictures; give more pictures or other relations")
    return QuadrupletTest(Quadruplets(Y, present_pairs).sample(n, rng), X)


def compute_label_metrics(scores: Float32, labels: Any, ks: Sequence[int] = KS) -> Values:
    """Return the metrics of each row's label among all labels.

    Examples
    --------
    >>> compute_label_metrics(np.array([[3.0, 2, 1]]), [1])["MAP"].tolist()
    [0.5]
    """
    label_scores = scores[np.arange(len(scores)), labels][:, None]
    return compute_rank_metrics(
        1 + (scores > label_scores).sum(axis=1), ks, tied=(scores == label_scores).sum(axis=1) - 1
    )


def evaluate_labels(
    test: QuadrupletTest, scores: Callable[..., Float32], n_labels: int, ks: Sequence[int] = KS
) -> Values:
    """Return the metrics of all pictures, objects first; `scores` takes row numbers, labels and the side."""
    blocks = []
    for rows, labels, other_labels, side in test.pictures:
        for lo, hi in iterate_row_ranges(len(rows), 2 * n_labels):
            blocks.append(compute_label_metrics(scores(rows[lo:hi], other_labels[lo:hi], side), labels[lo:hi], ks))
    return {metric: np.concatenate([values[metric] for values in blocks]) for metric in blocks[0]}


def evaluate_triplets(test: QuadrupletTest, model: Any, ks: Sequence[int] = KS) -> Values:
    """Return the metrics of each picture's label, given the label of the related picture, objects first."""
    return evaluate_labels(
        test,
        lambda rows, other_labels, side: model.scores_given(test.X[rows], other_labels, side),
        len(model.vocabulary_),
        ks,
    )


def evaluate_pairs(
    test: QuadrupletTest,
    model: Any,
    couples: Any = None,
    ks: Sequence[int] = KS,
    tell: Callable[[int], object] = lambda n: None,
) -> Values:
    """Return the metrics of the true pair of labels of each quadruplet, among all pairs or the couples.

    `tell` is called with the number of quadruplets of each block that is done.
    """
    objects, object_labels, parts, part_labels = test.drawn
    ranks = []
    for lo, hi in iterate_row_ranges(len(objects), 2 * len(model.vocabulary_)):
        block = test.X[objects[lo:hi]], test.X[parts[lo:hi]], object_labels[lo:hi], part_labels[lo:hi]
        ranks.append(model.ranks_of_pairs(*block, couples=couples))
        tell(hi - lo)
    return compute_rank_metrics(np.concatenate(ranks), ks)
