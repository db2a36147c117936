"""A model fitted on examples, or corrected by what changed; and how it does on the held-out ones."""

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.progress import Progress
from wsabie.catalogue.examples import Examples
from wsabie.catalogue.probability import Judged
from wsabie.catalogue.ranking import Ranking
from wsabie.catalogue.rows import RowStore
from wsabie.catalogue.shelf import OpenModel, by_label
from wsabie.evaluation.evaluate import evaluate_scores
from wsabie.labels.names import Vocabulary
from wsabie.models.wsabie import Wsabie

REPLAYED = 4
"""Old items beside each changed one when a model is corrected, so that what it knew stays."""
FEWEST_REPLAYED = 1000
EPOCHS = 5
"""Passes when a model is corrected."""
FIGURES = ("MAP", "p@1", "p@5")

_BLOCK = 1000
_JUDGED = 10  # suggestions of a held-out item


class Run(NamedTuple):
    """How long, where and from which seed; epochs None: as many as are usual."""

    epochs: int | None
    threads: int | None
    seed: int
    progress: Progress


class Fitted(NamedTuple):
    """A model and the labels that its columns stand for."""

    model: Wsabie
    labels: Int64
    n_rows: int
    n_epochs: int


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
    model.fit(X, Y, validation=validation, sample_weight=learnt.weights, label_names=names, progress=run.progress)
    return Fitted(model, examples.labels[columns], len(learnt.hashes), len(model.history_))


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
    best, best_map = model, -1.0
    n_epochs = run.epochs or EPOCHS
    with run.progress.stage("learning changes", n_epochs, "epochs") as stage:
        for _ in range(n_epochs):
            model.partial_fit(X, Y, sample_weight=some.weights, label_names=names, epochs=1)
            figure = model.score(held, truth)
            stage.advance(1, MAP=figure)
            if figure > best_map:
                best, best_map = copy(model), figure
    return Fitted(best.calibrate(held, truth), labels, len(rows), len(best.history_))


def judged_by(
    examples: Examples, store: RowStore, opened: OpenModel, now: Int64, parent: OpenModel | None, before: Int64 | None
) -> tuple[dict[str, Any], Judged]:
    """Figures of a model and of the one before on the same held-out items and labels, and its suggestions for them.

    Labels that a model does not know come last.
    """
    judge = _judge(examples)
    X, _ = store.matrix(judge.hashes)
    known = np.isin(examples.labels, now)
    Y, labels = judge.Y[:, known], examples.labels[known]
    figures: dict[str, Any] = {"items": int((np.diff((Y > 0).tocsr().indptr) > 0).sum()), "labels": len(labels)}
    figures["now"] = _figures(opened.model, X, Y, now, labels)
    usable = parent is not None and parent.annotator.dictionary == store.fingerprint
    figures["before"] = _figures(parent.model, X, Y, before, labels) if usable and parent is not None else None
    return figures, _suggested(opened, now, X, Y, labels)


def _figures(model: Any, X: Matrix, Y: Matrix, columns: Any, labels: Int64) -> dict[str, float]:
    blocks = (
        (lo, by_label(_scores(model, X[lo : lo + _BLOCK]), columns, labels)) for lo in range(0, X.shape[0], _BLOCK)
    )
    means = evaluate_scores(blocks, Y, ks=(1, 5)).means
    return {name: round(float(means[name]), 6) for name in FIGURES}


def _scores(model: Any, X: Matrix) -> Float32:
    scores: Float32 = model.scores(X)
    return scores


def _suggested(opened: OpenModel, now: Int64, X: Matrix, Y: Matrix, labels: Int64) -> Judged:
    """What is suggested for held-out items that have a tag, and whether it is among their tags."""
    rows = np.flatnonzero(np.diff((Y > 0).tocsr().indptr))
    top = Ranking(opened, now).top(opened.model.transform(X[rows]), _JUDGED)
    place, rank = np.nonzero(top.labels >= 0)
    suggested = top.labels[place, rank]
    columns = np.searchsorted(labels, suggested)
    known = (columns < len(labels)) & (labels[np.minimum(columns, len(labels) - 1)] == suggested)
    truth = np.asarray(Y[rows[place], np.minimum(columns, len(labels) - 1)]).ravel()
    right = (known & (truth > 0)).astype(np.int64)
    return Judged(suggested, top.probabilities[place, rank], right)


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
