"""What is asked of models of objects and parts: true labels of quadruplets, and the ranks that models give them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError
from wsabie.evaluation.quadruplets import rank_metrics
from wsabie.labels.quadruplets import Drawn, Quadruplets, count_quadruplets
from wsabie.models.part_labels import Side
from wsabie.sources.records import Rows

KS = (1, 10)
METRICS = ("p@1", "p@10", "MAP")
ANNOTATION, PAIRS, TRIPLET, UNSEEN = "annotation", "pairs", "triplet", "unseen"
_ROWS = 1 << 12
Values = dict[str, Any]


def columns(*tasks: str) -> tuple[str, ...]:
    """The columns of a table.

    Examples
    --------
    >>> columns("pairs")
    ('pairs p@1', 'pairs p@10', 'pairs MAP')
    """
    return tuple(f"{task} {metric}" for task in tasks for metric in METRICS)


class Test(NamedTuple):
    """Drawn test quadruplets."""

    drawn: Drawn
    rows: Rows

    @property
    def pictures(self) -> list[tuple[Any, Any, Any, Side]]:
        """Row numbers, their labels, the labels of the others, and what they show: objects, then parts."""
        objects, object_labels, parts, part_labels = self.drawn
        return [(objects, object_labels, part_labels, "object"), (parts, part_labels, object_labels, "part")]

    @property
    def relations(self) -> list[str]:
        """The relation of each quadruplet."""
        return [f"{a} {b}" for a, b in zip(self.drawn.object_labels, self.drawn.part_labels, strict=True)]


def test_of(rows: Rows, relations: Sequence[tuple[str, str]], n: int, rng: np.random.Generator) -> Test:
    """Quadruplets of the relations that have some among the rows, drawn by relation.

    Raises
    ------
    InputError
        No relation has one.
    """
    number = {name: y for y, name in enumerate(rows.label_names)}
    pairs = np.array([[number[a], number[b]] for a, b in relations]).reshape(-1, 2)
    there = pairs[count_quadruplets(rows.Y, pairs) > 0] if len(pairs) else pairs
    if not len(there):
        raise InputError("no relation has two different test pictures; give more pictures or other relations")
    return Test(Quadruplets(rows.Y, there).sample(n, rng), rows)


def label_ranks(scores: Float32, labels: Any) -> Values:
    """p@k and MAP of each row's label among all.

    Examples
    --------
    >>> label_ranks(np.array([[3.0, 2, 1]]), [1])["MAP"].tolist()
    [0.5]
    """
    own = scores[np.arange(len(scores)), labels][:, None]
    return rank_metrics(1 + (scores > own).sum(axis=1), KS, tied=(scores == own).sum(axis=1) - 1)


def of_labels(test: Test, scores: Any) -> Values:
    """The values of all pictures of the test, objects first; scores(row numbers, other labels, side)."""
    parts = []
    for which, labels, others, side in test.pictures:
        for lo in range(0, len(which), _ROWS):
            some = slice(lo, lo + _ROWS)
            parts.append(label_ranks(scores(which[some], others[some], side), labels[some]))
    return {metric: np.concatenate([values[metric] for values in parts]) for metric in METRICS}


def of_pairs(test: Test, model: Any, couples: Any = None) -> Values:
    """The values of the true pair of labels of each quadruplet, among all pairs or the couples."""
    objects, object_labels, parts, part_labels = test.drawn
    X, ranks = test.rows.X, []
    for lo in range(0, len(objects), _ROWS):
        some = slice(lo, lo + _ROWS)
        given = X[objects[some]], X[parts[some]], object_labels[some], part_labels[some]
        ranks.append(model.ranks_of_pairs(*given, couples=couples))
    found = rank_metrics(np.concatenate(ranks), KS)
    return {metric: found[metric] for metric in METRICS}


def of_all_tasks(test: Test, model: Any) -> Values:
    """Image annotation (where labels beside pictures do not score), part-object labelling and triplet."""
    X, image_only = test.rows.X, model.label_scores == "none"
    figures: dict[str, Values] = {PAIRS: of_pairs(test, model)}
    figures[TRIPLET] = of_labels(test, lambda rows, others, side: model.scores_given(X[rows], others, side))
    if image_only:
        figures[ANNOTATION] = figures[TRIPLET]
    return by_column(figures)


def by_column(figures: Mapping[str, Values]) -> Values:
    return {f"{task} {metric}": values[metric] for task, values in figures.items() for metric in METRICS}
