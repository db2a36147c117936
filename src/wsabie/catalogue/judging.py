"""How models do on items that none of them has learnt from, with the tags that these items have today."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.examples import Examples, places_of
from wsabie.catalogue.probability import Judged
from wsabie.catalogue.ranking import Ranking
from wsabie.catalogue.rows import RowStore, opened_rows
from wsabie.catalogue.shelf import OpenModel
from wsabie.evaluation.bootstrap import Difference, paired_bootstrap
from wsabie.evaluation.evaluate import Evaluation, evaluate_scores

FIGURES = ("MAP", "p@1", "p@5")
FEWEST_JUDGED = 20
"""Held-out items below which no model is called worse than another: of fewer an interval says too little."""

_BLOCK = 1000
_JUDGED = 10  # suggestions of a held-out item


class Exam(NamedTuple):
    """Items to judge models by.

    Attributes
    ----------
    hashes : list of str, length n
    Y : csr_matrix (n, n_labels) int8
        1 = accepted, -1 = rejected.
    labels : (n_labels,) int64
        Those that one of the models knows, ascending.
    names : list of str
    """

    hashes: list[str]
    Y: Matrix
    labels: Int64
    names: list[str]

    @property
    def items(self) -> Int64:
        """Rows of items that have one of the labels: only these count."""
        found: Int64 = np.flatnonzero(np.diff((self.Y > 0).tocsr().indptr))
        return found

    def take(self, rows: Any) -> "Exam":
        """Some of the items."""
        rows = np.flatnonzero(rows)
        return self._replace(hashes=[self.hashes[i] for i in rows], Y=self.Y[rows])


def exam_of(examples: Examples, models: Sequence[OpenModel], now: Sequence[Int64]) -> Exam:
    """Items with decisions that are held out now and that none of the models has learnt from.

    A model knows up to which place contents were held out when it was trained. What a model accepted by itself judges
    nothing.

    Parameters
    ----------
    examples : Examples
    models : sequence of OpenModel
    now : sequence of (n_columns,) int64
        What became of their labels.
    """
    to = min([examples.held_to, *(model.held_to for model in models)])
    some = examples.take((places_of(examples.hashes) <= to) & ~examples.unjudged)
    known = np.flatnonzero(np.isin(some.labels, np.concatenate(now)))
    return Exam(some.hashes, some.Y[:, known], some.labels[known], [some.names[i] for i in known])


def stores_of(collection: Collection, models: Iterable[OpenModel]) -> dict[str, RowStore]:
    """The rows of every way in which the models describe items, by its fingerprint."""
    return {model.dictionary: opened_rows(collection, model.describer) for model in models}


def with_rows(exam: Exam, models: Sequence[OpenModel], stores: dict[str, RowStore]) -> tuple[Exam, list[Matrix]]:
    """The items of an exam that have a row for each of the models, and these rows."""
    found = [stores[model.dictionary].matrix(exam.hashes) for model in models]
    everywhere = np.logical_and.reduce([there for _, there in found])
    return exam.take(everywhere), [X[everywhere[there]] for X, there in found]


def evaluation_of(opened: OpenModel, now: Int64, X: Matrix, exam: Exam) -> Evaluation:
    """The figures of a model for each item; labels that it does not know come last."""
    blocks = (
        (lo, by_label(opened.model.scores(X[lo : lo + _BLOCK]), now, exam.labels))
        for lo in range(0, X.shape[0], _BLOCK)
    )
    return evaluate_scores(blocks, exam.Y, ks=(1, 5))


def figures_of(found: Evaluation) -> dict[str, float]:
    """The means that are shown."""
    return {name: round(found.means[name], 6) for name in FIGURES}


def differences(found: Evaluation, first: Evaluation, seed: int = 0) -> dict[str, Difference]:
    """One model minus another on the same items, with 95 % intervals."""
    return {name: paired_bootstrap(found.per_row[name], first.per_row[name], seed=seed) for name in FIGURES}


def verdict(difference: Difference, items: int) -> str:
    """What can be said of a difference on so many items: "better", "worse", or "alike" where it may be chance.

    Examples
    --------
    >>> verdict(Difference(-0.03, -0.05, -0.01, 0.0), 100), verdict(Difference(-0.03, -0.05, -0.01, 0.0), 10)
    ('worse', 'alike')
    """
    if items < FEWEST_JUDGED or difference.low <= 0 <= difference.high:
        return "alike"
    return "better" if difference.low > 0 else "worse"


def suggested(opened: OpenModel, now: Int64, X: Matrix, exam: Exam) -> Judged:
    """What is suggested for held-out items that have a tag, and whether it is among their tags."""
    rows, labels = exam.items, exam.labels
    top = Ranking(opened, now).top(opened.model.transform(X[rows]), _JUDGED)
    place, rank = np.nonzero(top.labels >= 0)
    found = top.labels[place, rank]
    columns = np.minimum(np.searchsorted(labels, found), len(labels) - 1)
    truth = np.asarray(exam.Y[rows[place], columns]).ravel()
    right = ((labels[columns] == found) & (truth > 0)).astype(np.int64)
    return Judged(found, top.probabilities[place, rank], right)


def by_label(scores: Float32, columns: Int64, wanted: Int64) -> Float32:
    """Scores (n, n_columns) as those of labels (n, n_wanted): the highest of its columns, -inf where it has none."""
    found = np.full((len(scores), len(wanted)), -np.inf, np.float32)
    for place, label in enumerate(wanted):
        own = np.flatnonzero(columns == label)
        if len(own):
            found[:, place] = scores[:, own].max(axis=1)
    return found
