"""The columns of tables of objects and parts, and what is tested by name of relations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wsabie.models.part_tasks import PartsTest, Values, drawn_test, of_pairs, of_triplets
from wsabie.sources.records import Rows

METRICS = ("p@1", "p@10", "MAP")
ANNOTATION, PAIRS, TRIPLET, UNSEEN = "annotation", "pairs", "triplet", "unseen"


def columns(*tasks: str) -> tuple[str, ...]:
    """The columns of a table.

    Examples
    --------
    >>> columns("pairs")
    ('pairs p@1', 'pairs p@10', 'pairs MAP')
    """
    return tuple(f"{task} {metric}" for task in tasks for metric in METRICS)


def test_of(rows: Rows, relations: Sequence[tuple[str, str]], n: int, rng: np.random.Generator) -> PartsTest:
    """`drawn_test` of relations by name."""
    number = {name: y for y, name in enumerate(rows.label_names)}
    return drawn_test(rows.X, rows.Y, [[number[a], number[b]] for a, b in relations], n, rng)


def of_all_tasks(test: PartsTest, model: Any) -> Values:
    """Image annotation (where labels beside pictures do not score), part-object labelling and triplet."""
    figures = {PAIRS: of_pairs(test, model), TRIPLET: of_triplets(test, model)}
    if model.label_scores == "none":
        figures[ANNOTATION] = figures[TRIPLET]
    return by_column(figures)


def by_column(figures: Mapping[str, Values]) -> Values:
    return {f"{task} {metric}": values[metric] for task, values in figures.items() for metric in METRICS}
