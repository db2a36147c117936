"""Equal budgets for the models of a table: the number of settings, and a limit on time."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from papers.datasets import PaperData
from wsabie.io.records import FeatureTable, count_labels
from wsabie.models.base.parameter_defaults import TrainingShape, default_learning_rate, default_linear_rate
from wsabie.models.linear_ranker import LinearRanker
from wsabie.workflows.compare.entrants import Entrant

RATES = (1.0, 1 / 3, 3.0)
"""Candidate learning rates of a trained model, as multiples of its own."""

_NEGATIVES = (None, 10_000, 3_000, 1_000, 300, 100)


def equalise_budget(entrant: Entrant, data: PaperData) -> Entrant:
    """Return the entrant with as many candidate settings as every other trained model."""
    if entrant.quick:
        return entrant
    if not entrant.trained:
        positions = np.linspace(0, len(entrant.options) - 1, min(len(RATES), len(entrant.options)))
        return replace(entrant, options=tuple(entrant.options[round(position)] for position in positions))
    options = tuple({**option, "rate": rate} for rate in RATES for option in entrant.options)
    return replace(entrant, build=partial(_build_at_rate, entrant.build, measure_data_shape(data)), options=options)


def measure_data_shape(data: PaperData) -> TrainingShape:
    """Return the sizes that "auto" depends on."""
    counts = count_labels(data.train)
    counts_of_used = counts[counts >= max(data.min_rows, 1)]
    return TrainingShape(len(data.train), int(counts_of_used.sum()), len(counts_of_used))


def _build_at_rate(build: Any, shape: TrainingShape, rate: float = 1.0, **parameters: Any) -> Any:
    """Build a model with multiples of its own learning rates."""
    model = build(**parameters)
    rates = {}
    for name in model.get_params():
        part, _, last = name.rpartition("__")
        if last == "learning_rate":
            rates[name] = rate * _resolve_rate(getattr(model, part) if part else model, shape)
    return model.set_params(**rates)


def _resolve_rate(model: Any, shape: TrainingShape) -> float:
    if model.learning_rate != "auto":
        return float(model.learning_rate)
    if isinstance(model, LinearRanker):
        return default_linear_rate({**model.get_params(), "init": "random"}, shape)  # as the papers begin
    return default_learning_rate(shape, model.pair_weighting)


def limit_training_time(entrant: Entrant, train: FeatureTable) -> Entrant:
    """Limit the negatives of one-versus-rest so that its own estimate stays within its time limit."""
    model = entrant.build()
    if not hasattr(model, "work"):
        return entrant
    X, counts, max_negatives = train.X, count_labels(train), None
    for max_negatives in _NEGATIVES:
        model.set_params(max_negatives=max_negatives)
        n_values = X.nnz if hasattr(X, "nnz") else X.size
        if model.work(n_values, X.shape[1], counts, len(train)).seconds <= 60 * model.max_minutes:
            break
    if max_negatives is None:
        return entrant
    title = f"{entrant.title}, {max_negatives:,} random negatives for each label"
    return replace(entrant, title=title, build=partial(entrant.build, max_negatives=max_negatives))
