"""The tasks of models of objects and parts ([P] 6.2): what quadruplets ask, and how far up true labels stand."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Float64, Matrix
from wsabie.base.errors import InputError
from wsabie.evaluation.quadruplets import rank_metrics
from wsabie.labels.quadruplets import Drawn, Quadruplets, count_quadruplets
from wsabie.models.inputs import row_ranges
from wsabie.models.part_labels import Side

KS = (1, 10)
Values = dict[str, Float64]
"""What `rank_metrics` gives: a value per row for each metric."""


class PartsTest(NamedTuple):
    """Drawn quadruplets, and the rows that they are of."""

    drawn: Drawn
    X: Matrix

    @property
    def pictures(self) -> list[tuple[Any, Any, Any, Side]]:
        """Row numbers, their labels, the labels of the others, and what they show: objects, then parts."""
        objects, object_labels, parts, part_labels = self.drawn
        return [(objects, object_labels, part_labels, "object"), (parts, part_labels, object_labels, "part")]

    @property
    def relations(self) -> list[str]:
        """The relation of each quadruplet."""
        return [f"{a} {b}" for a, b in zip(self.drawn.object_labels, self.drawn.part_labels, strict=True)]


def drawn_test(X: Matrix, Y: Matrix, relations: Any, n: int, rng: np.random.Generator) -> PartsTest:
    """n quadruplets of the relations, (m, 2) label numbers, that have some among the rows, drawn by relation.

    Raises
    ------
    InputError
        No relation has one.
    """
    pairs = np.asarray(relations, np.int64).reshape(-1, 2)
    there = pairs[count_quadruplets(Y, pairs) > 0] if len(pairs) else pairs
    if not len(there):
        raise InputError("no relation has two different test pictures; give more pictures or other relations")
    return PartsTest(Quadruplets(Y, there).sample(n, rng), X)


def label_ranks(scores: Float32, labels: Any, ks: Sequence[int] = KS) -> Values:
    """The values of each row's label among all.

    Examples
    --------
    >>> label_ranks(np.array([[3.0, 2, 1]]), [1])["MAP"].tolist()
    [0.5]
    """
    own = scores[np.arange(len(scores)), labels][:, None]
    return rank_metrics(1 + (scores > own).sum(axis=1), ks, tied=(scores == own).sum(axis=1) - 1)


def of_labels(test: PartsTest, scores: Callable[..., Float32], n_labels: int, ks: Sequence[int] = KS) -> Values:
    """The values of all pictures of the test, objects first; scores(row numbers, other labels, side)."""
    found = []
    for which, labels, others, side in test.pictures:
        for lo, hi in row_ranges(len(which), 2 * n_labels):
            found.append(label_ranks(scores(which[lo:hi], others[lo:hi], side), labels[lo:hi], ks))
    return {metric: np.concatenate([values[metric] for values in found]) for metric in found[0]}


def of_triplets(test: PartsTest, model: Any, ks: Sequence[int] = KS) -> Values:
    """The values of each picture's label, given that of the other one: objects first."""
    return of_labels(
        test,
        lambda rows, others, side: model.scores_given(test.X[rows], others, side),
        len(model.vocabulary_),
        ks,
    )


def of_pairs(
    test: PartsTest,
    model: Any,
    couples: Any = None,
    ks: Sequence[int] = KS,
    tell: Callable[[int], object] = lambda n: None,
) -> Values:
    """The values of the true pair of labels of each quadruplet, among all pairs or the couples.

    `tell` hears how many quadruplets are done.
    """
    objects, object_labels, parts, part_labels = test.drawn
    ranks = []
    for lo, hi in row_ranges(len(objects), 2 * len(model.vocabulary_)):
        given = test.X[objects[lo:hi]], test.X[parts[lo:hi]], object_labels[lo:hi], part_labels[lo:hi]
        ranks.append(model.ranks_of_pairs(*given, couples=couples))
        tell(hi - lo)
    return rank_metrics(np.concatenate(ranks), ks)
