"""What every model of a table is given alike: as many settings to choose from, and a limit on time."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wsabie.models import defaults
from wsabie.models.linear import LinearRanker
from wsabie.sources.records import Rows, label_counts
from wsabie.studies.entrants import Entrant
from wsabie.studies.reproduce.data import Data

RATES = (1.0, 1 / 3, 3.0)
"""Learning rates that a trained model chooses from on the validation rows, as multiples of its own."""

_NEGATIVES = (None, 10_000, 3_000, 1_000, 300, 100)


def same_budget(entrant: Entrant, data: Data) -> Entrant:
    """The entrant with as many settings to choose from as every other that is trained."""
    if entrant.quick:
        return entrant
    if not entrant.compiles:
        at = np.linspace(0, len(entrant.options) - 1, min(len(RATES), len(entrant.options)))
        return replace(entrant, options=tuple(entrant.options[round(i)] for i in at))
    options = tuple({**option, "rate": rate} for rate in RATES for option in entrant.options)
    return replace(entrant, build=partial(_at_rate, entrant.build, shape_of(data)), options=options)


def shape_of(data: Data) -> defaults.Shape:
    """What "auto" will be a function of."""
    counts = label_counts(data.train)
    kept = counts[counts >= max(data.min_rows, 1)]
    return defaults.Shape(len(data.train), int(kept.sum()), len(kept))


def _at_rate(build: Any, shape: defaults.Shape, rate: float = 1.0, **parameters: Any) -> Any:
    """A model whose learning rates are multiples of what they would be."""
    model = build(**parameters)
    rates = {}
    for name in model.get_params():
        part, _, last = name.rpartition("__")
        if last == "learning_rate":
            rates[name] = rate * _rate(getattr(model, part) if part else model, shape)
    return model.set_params(**rates)


def _rate(model: Any, shape: defaults.Shape) -> float:
    if model.learning_rate != "auto":
        return float(model.learning_rate)
    if isinstance(model, LinearRanker):
        return defaults.weight_rate(shape, model.positives, model.loss)
    return defaults.learning_rate(shape, model.positives)


def within_time(entrant: Entrant, train: Rows) -> Entrant:
    """One-versus-rest with as many negatives for each label as its limit on time allows, by its own estimate."""
    model = entrant.build()
    if not hasattr(model, "work"):
        return entrant
    X, counts, most = train.X, label_counts(train), None
    for most in _NEGATIVES:
        model.set_params(max_negatives=most)
        n_values = X.nnz if hasattr(X, "nnz") else X.size
        if model.work(n_values, X.shape[1], counts, len(train)).seconds <= 60 * model.max_minutes:
            break
    if most is None:
        return entrant
    title = f"{entrant.title}, {most:,} random negatives for each label"
    return replace(entrant, title=title, build=partial(entrant.build, max_negatives=most))
