"""A model fitted on examples, or corrected by what changed."""

from copy import copy
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.catalogue.curves import Curve, Point, Watch
from wsabie.catalogue.examples import Examples
from wsabie.catalogue.rows import RowStore
from wsabie.catalogue.shelf import OpenModel
from wsabie.labels.names import Vocabulary
from wsabie.models.wsabie import Wsabie
from wsabie.training.stats import EpochStats

REPLAYED = 4
"""Old items beside each changed one when a model is corrected, so that what it knew stays."""
FEWEST_REPLAYED = 1000
EPOCHS = 5
"""Passes when a model is corrected."""


class Run(NamedTuple):
    """How long, where and from which seed; epochs None: as many as are usual."""

    epochs: int | None
    threads: int | None
    seed: int
    executor: Executor | None
    progress: Progress
    watch: Watch


class Fitted(NamedTuple):
    """A model, the labels that its columns stand for, and how its training went; `best` = the epoch that was kept."""

    model: Wsabie
    labels: Int64
    n_rows: int
    n_epochs: int
    curve: list[Point]
    best: int


class _Watched:
    """The epochs of a training: their figures as they come, and which is the best."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._curve = watch, Curve()
        self.epochs, self.best, self.best_figure = 0, 0, -1.0

    def note(self, loss: float, figure: float) -> bool:
        """One more epoch; whether it is the best so far."""
        self.epochs += 1
        point: Point = {"epoch": self.epochs, "loss": round(loss, 6), "MAP": round(figure, 6)}
        self._curve.add(point)
        self._watch(point)
        if figure <= self.best_figure:
            return False
        self.best, self.best_figure = self.epochs, figure
        return True

    def told(self, model: Wsabie, labels: Int64, n_rows: int) -> Fitted:
        return Fitted(model, labels, n_rows, len(model.history_), self._curve.points, self.best)


def fitted(examples: Examples, store: RowStore, dim: int, run: Run) -> Fitted:
    """From scratch; labels that no item of the training side has are left out."""
    learnt, judge = examples.take(~examples.held_out), _judge(examples)
    columns = np.flatnonzero(np.asarray((learnt.Y > 0).sum(axis=0)).ravel())
    model = Wsabie(dim, epochs=run.epochs or "auto", threads=run.threads, seed=run.seed)
    X, Y = store.matrix(learnt.hashes)[0], learnt.Y[:, columns]
    truth = judge.Y[:, columns]
    _refuse_blind(truth)
    names = [examples.names[i] for i in columns]
    validation = store.matrix(judge.hashes)[0], truth
    watched = _Watched(run.watch)

    def noted(stats: EpochStats) -> None:
        watched.note(stats.loss, stats.validation or 0.0)

    model.fit(
        X,
        Y,
        validation=validation,
        sample_weight=learnt.weights,
        label_names=names,
        progress=run.progress,
        on_epoch=noted,
    )
    return watched.told(model, examples.labels[columns], len(learnt.hashes))


def corrected(base: OpenModel, examples: Examples, store: RowStore, changed: frozenset[str], run: Run) -> Fitted:
    """On top of a model: items that changed, those of labels that it lacks, and some old ones.

    The held-out items choose the epoch and the probabilities.
    """
    learnt, judge = examples.take(~examples.held_out), _judge(examples)
    counts = np.asarray((learnt.Y > 0).sum(axis=0)).ravel()
    new = np.array([n > 0 and label not in base.labels for n, label in zip(counts, examples.labels, strict=True)])
    labels = np.concatenate([base.labels, examples.labels[new]])
    model = copy(base.model)
    model.threads = run.threads
    model.vocabulary_ = Vocabulary(_renamed(base, examples))
    rows = _replayed(learnt, changed, np.flatnonzero(new), run.seed + len(model.history_))
    some = learnt.take(rows)
    X, Y = store.matrix(some.hashes)[0], _in_columns(some.Y, examples.labels, labels)
    names = [*model.vocabulary_, *(name for name, yes in zip(examples.names, new, strict=True) if yes)]
    held, truth = store.matrix(judge.hashes)[0], _in_columns(judge.Y, examples.labels, labels)
    _refuse_blind(truth)
    best, watched = model, _Watched(run.watch)
    n_epochs = run.epochs or EPOCHS
    with run.progress.stage("learning changes", n_epochs, "epochs") as stage:
        for _ in range(n_epochs):
            model.partial_fit(X, Y, sample_weight=some.weights, label_names=names, epochs=1)
            figure = model.score(held, truth)
            stage.advance(1, MAP=figure)
            if watched.note(model.history_[-1].loss, figure):
                best = copy(model)
    return watched.told(best.calibrate(held, truth), labels, len(rows))


def _judge(examples: Examples) -> Examples:
    return examples.take(examples.held_out & ~examples.unjudged)


def _refuse_blind(truth: Matrix) -> None:
    if not (truth.data > 0).any():
        raise InputError(
            "none of the items that are held out to judge a model has a label that other items have; tag more items "
            "with the same labels"
        )


def _in_columns(Y: Matrix, labels: Int64, wanted: Int64) -> Matrix:
    """The columns of some labels, in their order; of one that Y lacks an empty one."""
    from scipy.sparse import csr_matrix

    at = {int(label): column for column, label in enumerate(wanted)}
    columns = np.array([at.get(int(label), -1) for label in labels])
    entries = Y.tocoo()
    kept = columns[entries.col] >= 0
    places = entries.row[kept], columns[entries.col[kept]]
    return csr_matrix((entries.data[kept], places), (Y.shape[0], len(wanted)))


def _renamed(base: OpenModel, examples: Examples) -> list[str]:
    """The model's labels as they are called now; of two with one name the older meaning is marked."""
    now = dict(zip(examples.labels.tolist(), examples.names, strict=True))
    taken = set(examples.names)
    names = []
    for label, old in zip(base.labels.tolist(), base.model.vocabulary_, strict=True):
        name = now.get(label, old)
        names.append(f"{name} (label {label}, before)" if label not in now and name in taken else name)
    return names


def _replayed(learnt: Examples, changed: frozenset[str], new: Int64, seed: int) -> Int64:
    """Rows that changed or have a new label, and a random draw of the others."""
    chosen = np.array([name in changed for name in learnt.hashes], bool)
    chosen |= np.asarray((learnt.Y[:, new] > 0).sum(axis=1)).ravel() > 0
    others = np.flatnonzero(~chosen)
    n = min(len(others), max(FEWEST_REPLAYED, REPLAYED * int(chosen.sum())))
    drawn = np.random.default_rng([seed, 5]).choice(others, n, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(chosen), drawn]))
