"""Spaces for items that are found by items, at their best learning rate."""

from collections.abc import Sequence
from typing import Any

from papers.record import Cell, RunSettings
from papers.tuning_budget import RATES
from wsabie.core.errors import DivergenceError
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.models.base.parameter_defaults import TrainingShape, default_learning_rate
from wsabie.models.entity_space.relations import Relation
from wsabie.models.entity_space.space import Space

COSINE, SPACE, SPACES = "cosine", "space", "spaces"
"""Entrants of such tables: the cosine, a space for all tasks, and one for each."""

_RATE = default_learning_rate(TrainingShape(1, 1, 2), "mean")
"""Default rate of `Space`, the same for all data."""


def find_best_space(
    relations: Sequence[Relation], held_out: Sequence[Relation], setting: RunSettings, **parameters: Any
) -> tuple[Space, float]:
    """Return the space with the highest validation MAP among `RATES`, and its multiple.

    Raises
    ------
    DivergenceError
        With every rate.
    """
    space_parameters = {name: value for name, value in setting.parameters.items() if name in Space().get_params()}
    run = {**space_parameters, **parameters, "seed": setting.seed, "threads": setting.threads}
    best: tuple[float, Space, float] | None = None
    for multiple in RATES:
        space = Space(**run, learning_rate=multiple * _RATE)
        try:
            space.fit(relations, validation=held_out, progress=setting.progress)
        except DivergenceError:
            if best is None and multiple == max(RATES):
                raise
            continue
        figure = max(stats.validation or 0.0 for stats in space.history_)
        if best is None or figure > best[0]:
            best = figure, space, multiple
    if best is None:
        raise ValueError("there is no rate to try")
    return best[1], best[2]


def format_space_figures(
    name: str, evaluation: Evaluation, ks: Sequence[int]
) -> tuple[dict[str, Cell], dict[str, Any]]:
    """Return precision at k as columns "NAME p@k", and the same of single queries."""
    columns = {f"{name} p@{k}": f"p@{k}" for k in ks}
    means = evaluation.means
    return {column: means[metric] for column, metric in columns.items()}, {
        column: evaluation.per_row[metric] for column, metric in columns.items()
    }
