"""Training that is judged, epoch by epoch, by a label held out of rows that are trained on ([V])."""

from typing import Any, NamedTuple, Self

import numpy as np

from wsabie.base.progress import Progress
from wsabie.evaluation.metrics import average_precision
from wsabie.evaluation.ranking import ranks_of_points
from wsabie.models.monitor import MAX_ROWS
from wsabie.models.wsabie import Wsabie
from wsabie.sources.records import Rows


class Trained(NamedTuple):
    """A model as it was after its best epoch.

    Attributes
    ----------
    model : Wsabie
    epoch : int
        From 1; the last one where nothing was held out to judge by.
    seconds : float
        Of training until then, without compilation and judging.
    figure : float
        MAP of the labels that judge; 0 without them.
    """

    model: Wsabie
    epoch: int
    seconds: float
    figure: float


def trained(model: Wsabie, train: Rows, held: Rows | None, progress: Progress) -> Trained:
    """Fit a model, and keep its best epoch.

    Parameters
    ----------
    model : Wsabie
        With its parameters, not yet fitted.
    train : Rows
    held : Rows or None
        Some of the training rows with a further label each, which judges; their ids are numbers of training rows.
    progress : Progress
    """
    given: dict[str, Any] = {}
    if held is not None:
        some = held.take(range(0, len(held), 1 + len(held) // MAX_ROWS))
        model = _Judged(**model.get_params()).by(train.Y[[int(name) for name in some.ids]])
        given = {"validation": (some.X, some.Y)}
    model.fit(train.X, train.Y, label_names=train.label_names, progress=progress, **given)
    figures = [stats.validation or 0.0 for stats in model.history_]
    best = len(figures) - 1 if held is None else int(np.argmax(figures))
    return Trained(model, best + 1, sum(stats.seconds for stats in model.history_[: best + 1]), figures[best])


class _HeldOutMap(NamedTuple):
    """MAP of held-out labels among those that their rows were not trained with: a monitor."""

    inputs: Any
    Y: Any
    exclude: Any
    threads: int

    def figures(self, space: Any) -> dict[str, float]:
        points = space.points(self.inputs)
        ranks = ranks_of_points(space.label_arrays(), points, self.Y, exclude=self.exclude, threads=self.threads)
        return {"MAP": float(average_precision(ranks).mean())}


class _Judged(Wsabie):
    """The estimator with such a monitor; it gives no probabilities."""

    exclude: Any

    def by(self, exclude: Any) -> Self:
        self.exclude = exclude
        return self

    def _monitor(self, X: Any, Y: Any, threads: int, *given: Any, **named: Any) -> Any:
        return _HeldOutMap(self.scaling_(self._checked(X)), Y, self.exclude, threads)

    def _calibrated(self, monitor: Any) -> None:
        return None
