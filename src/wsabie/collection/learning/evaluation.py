"""Evaluate models on held-out items that none of them was trained on, with the items' current tags."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.collection.annotations.training_examples import TrainingExamples, compute_hash_positions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.learning.feature_store import FeatureStore, open_feature_store
from wsabie.collection.learning.label_ranking import LabelRanker
from wsabie.collection.registry.model_registry import LoadedModel
from wsabie.collection.registry.thresholds import HoldoutSuggestions
from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.evaluation.bootstrap import PairedDifference, paired_bootstrap
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores

FIGURES = ("MAP", "p@1", "p@5")
FEWEST_JUDGED = 20
"""Minimum number of held-out items for a verdict; with fewer, intervals say too little."""

_BLOCK = 1000
_N_SUGGESTIONS = 10  # for each held-out item


class HoldoutSet(NamedTuple):
    """Held-out items for the evaluation of models.

    Attributes
    ----------
    hashes : list of str, length n
    Y : csr_matrix (n, n_labels) int8
        1 = accepted, -1 = rejected.
    labels : (n_labels,) int64
        Labels that at least one model knows, ascending.
    names : list of str
    """

    hashes: list[str]
    Y: Matrix
    labels: Int64
    names: list[str]

    @property
    def items(self) -> Int64:
        """Rows of items with one of the labels; only these count."""
        rows: Int64 = np.flatnonzero(np.diff((self.Y > 0).tocsr().indptr))
        return rows

    def take(self, rows: Any) -> "HoldoutSet":
        """Return the holdout set of some items, given as a mask."""
        rows = np.flatnonzero(rows)
        return self._replace(hashes=[self.hashes[i] for i in rows], Y=self.Y[rows])


def make_holdout_set(
    examples: TrainingExamples, models: Sequence[LoadedModel], column_labels: Sequence[Int64]
) -> HoldoutSet:
    """Return the items with decisions that are held out now and were for every model.

    A model stores the position up to which contents were held out in its training. Items with tags that a model
    accepted by itself are left out.

    Parameters
    ----------
    examples : TrainingExamples
    models : sequence of LoadedModel
    column_labels : sequence of (n_columns,) int64
        Current label ids of the models' columns.
    """
    held_to = min([examples.held_to, *(model.held_to for model in models)])
    held_out = examples.take((compute_hash_positions(examples.hashes) <= held_to) & ~examples.unjudged)
    columns = np.flatnonzero(np.isin(held_out.labels, np.concatenate(column_labels)))
    return HoldoutSet(
        held_out.hashes, held_out.Y[:, columns], held_out.labels[columns], [held_out.names[i] for i in columns]
    )


def open_feature_stores(collection: Collection, models: Iterable[LoadedModel]) -> dict[str, FeatureStore]:
    """Return the feature stores of the models' extractors by fingerprint."""
    return {model.dictionary: open_feature_store(collection, model.extractor) for model in models}


def select_items_with_features(
    holdout: HoldoutSet, models: Sequence[LoadedModel], stores: dict[str, FeatureStore]
) -> tuple[HoldoutSet, list[Matrix]]:
    """Return the held-out items that have features for every model, and these features."""
    matrices = [stores[model.dictionary].matrix(holdout.hashes) for model in models]
    is_complete = np.logical_and.reduce([is_stored for _, is_stored in matrices])
    return holdout.take(is_complete), [X[is_complete[is_stored]] for X, is_stored in matrices]


def evaluate_model(loaded_model: LoadedModel, column_labels: Int64, X: Matrix, holdout: HoldoutSet) -> Evaluation:
    """Return the metrics of a model for each item; labels that it does not know rank last."""
    blocks = (
        (lo, pool_scores_by_label(loaded_model.model.scores(X[lo : lo + _BLOCK]), column_labels, holdout.labels))
        for lo in range(0, X.shape[0], _BLOCK)
    )
    return evaluate_scores(blocks, holdout.Y, ks=(1, 5))


def summarize_metrics(evaluation: Evaluation) -> dict[str, float]:
    """Return the mean metrics."""
    return {name: round(evaluation.means[name], 6) for name in FIGURES}


def compute_differences(evaluation: Evaluation, reference: Evaluation, seed: int = 0) -> dict[str, PairedDifference]:
    """Return the differences of one model from another on the same items, with 95 % intervals."""
    return {name: paired_bootstrap(evaluation.per_row[name], reference.per_row[name], seed=seed) for name in FIGURES}


def judge_difference(difference: PairedDifference, items: int) -> str:
    """Return "better", "worse", or "alike" if a difference on so many items may be chance.

    Examples
    --------
    >>> (
    ...     judge_difference(PairedDifference(-0.03, -0.05, -0.01, 0.0), 100),
    ...     judge_difference(PairedDifference(-0.03, -0.05, -0.01, 0.0), 10),
    ... )
    ('worse', 'alike')
    """
    if items < FEWEST_JUDGED or difference.low <= 0 <= difference.high:
        return "alike"
    return "better" if difference.low > 0 else "worse"


def score_suggestions(
    loaded_model: LoadedModel, column_labels: Int64, X: Matrix, holdout: HoldoutSet
) -> HoldoutSuggestions:
    """Return the suggestions for held-out items with tags, and whether each is among the tags."""
    rows, labels = holdout.items, holdout.labels
    top = LabelRanker(loaded_model, column_labels).top(loaded_model.model.transform(X[rows]), _N_SUGGESTIONS)
    place, rank = np.nonzero(top.labels >= 0)
    suggested_labels = top.labels[place, rank]
    columns = np.minimum(np.searchsorted(labels, suggested_labels), len(labels) - 1)
    truth = np.asarray(holdout.Y[rows[place], columns]).ravel()
    right = ((labels[columns] == suggested_labels) & (truth > 0)).astype(np.int64)
    return HoldoutSuggestions(suggested_labels, top.probabilities[place, rank], right)


def pool_scores_by_label(scores: Float32, columns: Int64, labels: Int64) -> Float32:
    """Return scores of columns as scores of labels: the highest column, -inf without one."""
    label_scores = np.full((len(scores), len(labels)), -np.inf, np.float32)
    for place, label in enumerate(labels):
        label_columns = np.flatnonzero(columns == label)
        if len(label_columns):
            label_scores[:, place] = scores[:, label_columns].max(axis=1)
    return label_scores
