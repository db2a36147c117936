"""Models of things that are found by things: a space at its best learning rate."""

from collections.abc import Sequence
from typing import Any

from wsabie.base.errors import DivergenceError
from wsabie.evaluation.evaluate import Evaluation
from wsabie.models import defaults
from wsabie.models.relations import Relation
from wsabie.models.space import Space
from wsabie.studies.reproduce.budget import RATES
from wsabie.studies.reproduce.record import Cell, Setting

COSINE, SPACE, SPACES = "cosine", "space", "spaces"
"""Entrants of such tables: the cosine, a space for all tasks, and one for each."""

_RATE = defaults.learning_rate(defaults.Shape(1, 1, 2), "mean")
"""Of `Space`, whatever the data."""


def best_space(
    learnt: Sequence[Relation], held_out: Sequence[Relation], setting: Setting, **parameters: Any
) -> tuple[Space, float]:
    """The space whose best epoch has the highest MAP on the held-out pairs, among `RATES`, and its multiple.

    Raises
    ------
    DivergenceError
        With every rate.
    """
    given = {name: value for name, value in setting.parameters.items() if name in Space().get_params()}
    run = {**given, **parameters, "seed": setting.seed, "threads": setting.threads}
    best: tuple[float, Space, float] | None = None
    for multiple in RATES:
        space = Space(**run, learning_rate=multiple * _RATE)
        try:
            space.fit(learnt, validation=held_out, progress=setting.progress)
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


def figures_of(name: str, found: Evaluation, ks: Sequence[int]) -> tuple[dict[str, Cell], dict[str, Any]]:
    """Precision at the first k as columns "NAME p@k", and the same of single queries."""
    columns = {f"{name} p@{k}": f"p@{k}" for k in ks}
    means = found.means
    return {c: means[m] for c, m in columns.items()}, {c: found.per_row[m] for c, m in columns.items()}
