"""Columns of tables of objects and parts, and tests by names of relations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable
from wsabie.models.object_parts.pair_ranker import QuadrupletTest, Values, evaluate_pairs, evaluate_triplets
from wsabie.vocabulary.label_quadruplets import Quadruplets, count_quadruplets

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
    """Draw n quadruplets of relations by name, relations first, then rows.

    Raises
    ------
    InputError
        No relation has a quadruplet.
    """
    label_ids = {name: y for y, name in enumerate(rows.label_names)}
    pairs = np.array([[label_ids[name] for name in pair] for pair in relations], np.int64).reshape(-1, 2)
    pairs = pairs[count_quadruplets(rows.Y, pairs) > 0] if len(pairs) else pairs
    if not len(pairs):
        raise InputError("no relation has two different test pictures; give more pictures or other relations")
    return QuadrupletTest(Quadruplets(rows.Y, pairs).sample(n, rng), rows.X)


def evaluate_all_tasks(test: QuadrupletTest, model: Any) -> Values:
    """Evaluate image annotation (if labels beside images do not score), part-object labelling and triplet."""
    figures = {PAIRS: evaluate_pairs(test, model), TRIPLET: evaluate_triplets(test, model)}
    if model.label_scores == "none":
        figures[ANNOTATION] = figures[TRIPLET]
    return label_by_column(figures)


def label_by_column(figures: Mapping[str, Values]) -> Values:
    return {f"{task} {metric}": values[metric] for task, values in figures.items() for metric in METRICS}
