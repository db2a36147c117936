"""Columns of tables of objects and parts, and tests by names of relations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wsabie.io.records import FeatureTable
from wsabie.models.object_parts.pair_ranker import (
    QuadrupletTest,
    Values,
    draw_test,
    evaluate_pairs,
    evaluate_triplets,
)

METRICS = ("p@1", "p@10", "MAP")
ANNOTATION, PAIRS, TRIPLET, UNSEEN = "annotation", "pairs", "triplet", "unseen"


def list_columns(*tasks: str) -> tuple[str, ...]:
    """Return the columns of a table.

    Examples
    --------
    >>> list_columns("pairs")
    ('pairs p@1', 'pairs p@10', 'pairs MAP')
    """
    return tuple(f"{task} {metric}" for task in tasks for metric in METRICS)


def draw_named_test(
    rows: FeatureTable, relations: Sequence[tuple[str, str]], n: int, rng: np.random.Generator
) -> QuadrupletTest:
    """Draw a test (`draw_test`) of relations by name."""
    label_ids = {name: y for y, name in enumerate(rows.label_names)}
    return draw_test(
        rows.X,
        rows.Y,
        [[label_ids[object_label], label_ids[part_label]] for object_label, part_label in relations],
        n,
        rng,
    )


def evaluate_all_tasks(test: QuadrupletTest, model: Any) -> Values:
    """Evaluate image annotation (if labels beside images do not score), part-object labelling and triplet."""
    figures = {PAIRS: evaluate_pairs(test, model), TRIPLET: evaluate_triplets(test, model)}
    if model.label_scores == "none":
        figures[ANNOTATION] = figures[TRIPLET]
    return label_by_column(figures)


def label_by_column(figures: Mapping[str, Values]) -> Values:
    return {f"{task} {metric}": values[metric] for task, values in figures.items() for metric in METRICS}
