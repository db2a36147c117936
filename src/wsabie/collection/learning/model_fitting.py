"""Fit models on examples, or update them with changes."""

from collections.abc import Callable
from copy import copy
from itertools import compress
from typing import NamedTuple

import numpy as np
from typing_extensions import TypedDict

from wsabie.collection.annotations.training_examples import TrainingExamples
from wsabie.collection.learning.feature_store import FeatureStore, Resources
from wsabie.collection.registry.model_registry import LoadedModel
from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.label_lists import count_label_rows
from wsabie.evaluation.calibration import fit_competition
from wsabie.models.annotators import MIN_CANDIDATES
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.vocabulary.label_names import Vocabulary

MAX_POINTS = 200
"""Maximum number of stored points."""
REPLAYED_PER_CHANGE = 4
"""Number of old items for each changed one in an update, so that the model forgets nothing."""
MIN_REPLAYED_ITEMS = 1000
EPOCHS = 5
"""Number of epochs of an update."""


class TrainingPoint(TypedDict):
    """Figures of an epoch, counted from 1; MAP is that of the held-out items."""

    epoch: int
    loss: float
    MAP: float


EpochCallback = Callable[[TrainingPoint], None]
"""Receiver of the figures of every epoch."""


class LearningCurve:
    """Figures of epochs; long curves are thinned to every second, fourth ... epoch and the last.

    Parameters
    ----------
    watch : callable
        Receives each point.

    Attributes
    ----------
    best : int
        Best epoch.
    best_figure : float
        Its MAP.

    Examples
    --------
    >>> curve = LearningCurve()
    >>> for epoch in range(1, 1001):
    ...     curve.add({"epoch": epoch, "loss": 0.1, "MAP": epoch / 1000})
    >>> len(curve.points) <= MAX_POINTS, curve.points[0]["epoch"], curve.points[-1]["epoch"]
    (True, 1, 1000)
    """

    def __init__(self, watch: EpochCallback = lambda _: None) -> None:
        self._watch = watch
        self._all_points: list[TrainingPoint] = []
        self.best, self.best_figure = 0, -1.0

    def add_point(self, loss: float, figure: float) -> None:
        """Add the next epoch, with its MAP."""
        self.add({"epoch": len(self._all_points) + 1, "loss": round(loss, 6), "MAP": round(figure, 6)})
        if figure > self.best_figure:
            self.best, self.best_figure = len(self._all_points), figure

    def add(self, point: TrainingPoint) -> None:
        """Add an epoch."""
        self._all_points.append(point)
        self._watch(point)

    @property
    def points(self) -> list[TrainingPoint]:
        """Points in the order of the epochs."""
        points = self._all_points
        while len(points) >= MAX_POINTS:
            points = points[::2]
        return points if points[-1:] == self._all_points[-1:] else [*points, self._all_points[-1]]


class FitSettings(NamedTuple):
    """Length, seed and resources of a training; epochs None chooses the default."""

    epochs: int | None
    seed: int
    resources: Resources
    watch: EpochCallback


class FitResult(NamedTuple):
    """Fitted model, label ids of its columns, and its training."""

    model: Wsabie
    labels: Int64
    n_rows: int
    curve: LearningCurve


def fit_model(
    examples: TrainingExamples, store: FeatureStore, dim: int, run: FitSettings, start: Wsabie | None = None
) -> FitResult:
    """Fit a model from scratch or from a start; labels without a training item are left out."""
    train, holdout = examples.take(~examples.is_holdout), _select_holdout(examples)
    columns = np.flatnonzero(count_label_rows(train.Y))
    dim = dim if start is None else start.dim
    model = Wsabie(dim, init_model=start, epochs=run.epochs or "auto", threads=run.resources.threads, seed=run.seed)
    truth = holdout.Y[:, columns]
    _require_known_label(truth)
    curve = LearningCurve(run.watch)
    model.fit(
        store.matrix(train.hashes)[0],
        train.Y[:, columns],
        validation=(store.matrix(holdout.hashes)[0], truth),
        sample_weight=train.weights,
        label_names=[examples.names[i] for i in columns],
        progress=run.resources.progress,
        on_epoch=lambda stats: curve.add_point(stats.loss, stats.validation or 0.0),
    )
    fit_suggestions(model, store.matrix(holdout.hashes)[0], truth)
    return FitResult(model, examples.labels[columns], len(train.hashes), curve)


def update_model(
    base: LoadedModel, examples: TrainingExamples, store: FeatureStore, changed: frozenset[str], run: FitSettings
) -> FitResult:
    """Update a model with changed items, items of new labels, and a sample of old ones.

    The held-out items choose the epoch and calibrate the probabilities.
    """
    train, holdout = examples.take(~examples.is_holdout), _select_holdout(examples)
    counts = count_label_rows(train.Y)
    is_new = (counts > 0) & ~np.isin(examples.labels, base.labels)
    labels = np.concatenate([base.labels, examples.labels[is_new]])
    model = copy(base.model)
    model.threads = run.resources.threads
    model.vocabulary_ = Vocabulary(_list_current_names(base, examples))
    rows = _select_rows(train, changed, np.flatnonzero(is_new), run.seed + len(model.history_))
    sample = train.take(rows)
    X, Y = store.matrix(sample.hashes)[0], sample.read_columns(labels)
    names = [*model.vocabulary_, *compress(examples.names, is_new)]
    X_holdout, truth = store.matrix(holdout.hashes)[0], holdout.read_columns(labels)
    _require_known_label(truth)
    best, curve = model, LearningCurve(run.watch)
    n_epochs = run.epochs or EPOCHS
    with run.resources.progress.stage("learning changes", n_epochs, "epochs") as stage:
        for epoch in range(1, n_epochs + 1):
            model.partial_fit(X, Y, sample_weight=sample.weights, label_names=names, epochs=1)
            figure = model.score(X_holdout, truth)
            stage.advance(1, MAP=figure)
            curve.add_point(model.history_[-1].loss, figure)
            if curve.best == epoch:
                best = copy(model)
    fit_suggestions(best.calibrate(X_holdout, truth), X_holdout, truth)
    return FitResult(best, labels, len(rows), curve)


def fit_suggestions(model: Wsabie, X: Matrix, Y: Matrix) -> None:
    """Fit the probabilities of a model to its best labels of tagged held-out rows, which compete."""
    rows = np.flatnonzero(np.diff((Y > 0).tocsr().indptr))
    if model.calibration_ is None or not len(rows):
        return
    labels, scores = model.rank(X[rows], min(MIN_CANDIDATES, len(model.vocabulary_)))
    outcomes = np.asarray((Y[rows] > 0)[np.arange(len(rows))[:, None], labels].todense())
    model.calibration_ = fit_competition(model.calibration_, scores, labels, outcomes)


def _select_holdout(examples: TrainingExamples) -> TrainingExamples:
    return examples.take(examples.is_holdout & ~examples.unjudged)


def _require_known_label(truth: Matrix) -> None:
    if not (truth.data > 0).any():
        fact = "none of the items that are held out to judge a model has a label that other items have"
        raise InputError(f"{fact}; tag more items with the same labels")


def _list_current_names(base: LoadedModel, examples: TrainingExamples) -> list[str]:
    """Return the current names of the model's labels; a former name that is taken is marked."""
    current_names = dict(zip(examples.labels.tolist(), examples.names, strict=True))
    used_names = set(examples.names)
    names = []
    for label, former_name in zip(base.labels.tolist(), base.model.vocabulary_, strict=True):
        name = current_names.get(label, former_name)
        names.append(f"{name} (label {label}, before)" if label not in current_names and name in used_names else name)
    return names


def _select_rows(train: TrainingExamples, changed: frozenset[str], new: Int64, seed: int) -> Int64:
    """Return the rows that changed or have a new label, and a random sample of the others."""
    is_changed = np.array([name in changed for name in train.hashes], bool)
    is_changed |= np.asarray((train.Y[:, new] > 0).sum(axis=1)).ravel() > 0
    unchanged = np.flatnonzero(~is_changed)
    n = min(len(unchanged), max(MIN_REPLAYED_ITEMS, REPLAYED_PER_CHANGE * int(is_changed.sum())))
    sample = np.random.default_rng([seed, 5]).choice(unchanged, n, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(is_changed), sample]))
