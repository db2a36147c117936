"""Scores of several models on rows that they did not learn from."""

import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Bool, Float32, Float64, Int64, Matrix
from wsabie.core.errors import require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.label_lists import count_label_rows
from wsabie.models.base.feature_matrix import convert_to_matrix, iterate_row_ranges
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.label_model import LabelModel

Fold: TypeAlias = tuple[Int64, Int64]
"""Numbers of the rows that train, and of those that are held out."""
Groups: TypeAlias = Sequence[str | None] | None
"""Group of each row, None for a row of its own; or no groups."""
FOLDS = 5
"""Parts of training data of less than `FEW_ROWS`, each of which is held out once."""
FEW_ROWS = 5000
MAX_ROWS = 2000
"""Most rows that are held out of more training data, of which they are a tenth."""
MAX_SHARE = 0.9
"""Largest share of rows that can be held out."""
POOL_SIZE = 50
"""Best labels of each model that compete for a row."""
_LEAST_SPREAD = 1e-12


class HoldoutScores(NamedTuple):
    """Scores of the labels that compete for each held-out row: the best labels of each model.

    Attributes
    ----------
    scores : (n_models, n_rows, n_pool) float32
        -inf for a label that stands in the pool of its row twice.
    positives : (n_rows, n_pool) bool
    n_positives : (n_rows,) int64
        True labels of each row, also outside the pool; at least one.
    spread_sums : (n_models,) float64
        Standard deviations of each row's scores over labels, summed over the rows.
    seconds : (n_models,) float64
        Duration of the trainings.
    """

    scores: Float32
    positives: Bool
    n_positives: Int64
    spread_sums: Float64
    seconds: Float64

    @classmethod
    def from_scores(cls, scores: Sequence[Float32], truth: Matrix) -> "HoldoutScores":
        """Select from all scores of each model, (n_rows, n_labels)."""
        size = min(POOL_SIZE, truth.shape[1])
        best_labels = [np.argpartition(-model_scores, size - 1, axis=1)[:, :size] for model_scores in scores]
        labels = np.sort(np.concatenate(best_labels, axis=1), axis=1)
        is_repeated = np.zeros(labels.shape, bool)
        is_repeated[:, 1:] = labels[:, 1:] == labels[:, :-1]
        width = int((~is_repeated).sum(axis=1).max())
        order = np.argsort(is_repeated, axis=1, kind="stable")[:, :width]  # repeated labels last
        labels, is_repeated = (np.take_along_axis(array, order, axis=1) for array in (labels, is_repeated))
        pooled = np.stack([np.take_along_axis(model_scores, labels, axis=1) for model_scores in scores])
        pooled[:, is_repeated] = -np.inf
        positives = truth[np.arange(len(labels))[:, None], labels].toarray() & ~is_repeated
        spread_sums = np.array([model_scores.std(axis=1, dtype=np.float64).sum() for model_scores in scores])
        return cls(pooled, positives, np.diff(truth.indptr).astype(np.int64), spread_sums, np.zeros(len(scores)))

    @classmethod
    def join(cls, parts: Sequence["HoldoutScores"]) -> "HoldoutScores":
        """Join the scores of several sets of rows; pools may have different sizes."""
        width = max(part.positives.shape[1] for part in parts)
        padding = [width - part.positives.shape[1] for part in parts]
        scores = [
            np.pad(part.scores, ((0, 0), (0, 0), (0, n)), constant_values=-np.inf)
            for part, n in zip(parts, padding, strict=True)
        ]
        positives = [np.pad(part.positives, ((0, 0), (0, n))) for part, n in zip(parts, padding, strict=True)]
        n_positives = np.concatenate([part.n_positives for part in parts])
        spread_sums, seconds = (np.sum(sums, axis=0) for sums in zip(*(part[3:] for part in parts), strict=True))
        return cls(np.concatenate(scores, axis=1), np.concatenate(positives), n_positives, spread_sums, seconds)

    def select(self, numbers: Sequence[int]) -> "HoldoutScores":
        """Return the scores of some of the models."""
        by_model = {name: getattr(self, name)[list(numbers)] for name in ("scores", "spread_sums", "seconds")}
        return self._replace(**by_model)

    @property
    def spreads(self) -> Float64:
        """Standard deviation of a row's scores over labels, averaged over the rows, (n_models,)."""
        return np.maximum(self.spread_sums / len(self.n_positives), _LEAST_SPREAD)

    def standardise(self) -> "HoldoutScores":
        """Return the same at a spread of 1, in the same memory."""
        np.divide(self.scores, self.spreads[:, None, None], out=self.scores, casting="same_kind")
        return self

    def compute_ndcg(self, weights: Float64, k: int) -> Float64:
        """Return nDCG@k of each row for the sum of the models' scores with these weights, (n_rows,)."""
        nonzero = np.flatnonzero(weights)
        sums = np.tensordot(weights[nonzero].astype(np.float32), self.scores[nonzero], axes=1)
        discounts = 1 / np.log2(np.arange(2, min(k, sums.shape[1]) + 2))
        best = np.sort(np.argpartition(-sums, len(discounts) - 1, axis=1)[:, : len(discounts)], axis=1)
        order = np.argsort(-np.take_along_axis(sums, best, axis=1), axis=1, kind="stable")
        order = np.take_along_axis(best, order, axis=1)
        gains = np.take_along_axis(self.positives, order, axis=1) @ discounts
        ideal = np.cumsum(discounts)[np.minimum(self.n_positives, len(discounts)) - 1]
        return np.asarray(gains / ideal, np.float64)


class HoldoutModel(LabelModel):
    """Base of models that learn from held-out rows how others rank; a subclass implements `_learn`."""

    hold_out: float | None
    seed: int

    @abstractmethod
    def _learn(self, rows: Matrix, targets: Matrix, folds: Iterable[Fold], options: dict[str, Any]) -> None:
        """Learn from rows and their signed label matrix; `options` are those of `fit` of other models."""

    def fit(
        self,
        X: Matrix,
        Y: Labels,
        *,
        label_names: Sequence[str] | None = None,
        groups: Groups = None,
        progress: Progress = SILENT,
    ) -> Self:
        """Train the members and find their weights, or the candidates and choose one.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : (n,) integers or names; (n, n_labels) sparse matrix of 1 and -1; or lists of names
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        groups : list of str or None, or None
            Group of each row; rows of one group are held out together. A row without a group is its own.
        progress : Progress

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the message says where.
        UnsuitableModelError
            No row with a label can be held out, for a fusion.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        inputs, targets = fitted._open_rows(X, Y, label_names)
        folds = iterate_folds(csr_matrix(targets > 0), groups, self.seed, self.hold_out)
        options = {"label_names": list(fitted.vocabulary_), "progress": progress}
        fitted._learn(convert_to_matrix(inputs, fitted.n_features_in_), targets, folds, options)
        self._replace_state(fitted)
        return self

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        is_usable = self.hold_out is None or self.hold_out <= MAX_SHARE
        require(is_usable, f"hold_out is {self.hold_out!r}; choose None or a number above 0 up to {MAX_SHARE}")


def iterate_folds(truth: Matrix, groups: Groups, seed: int, share: float | None = None) -> Iterator[Fold]:
    """Yield the numbers of rows that train, and of those that are held out.

    They are this share of the rows, once. None: a tenth of the rows and at most `MAX_ROWS`; or each of `FOLDS` parts in
    turn where there are fewer than `FEW_ROWS` rows. Rows of one group stay together, and each part has its share of
    each label.

    Raises
    ------
    InputError
        `groups` has another length than the rows.
    """
    n = truth.shape[0]
    require(
        groups is None or len(groups) == n, f"there are {len(groups or ())} groups for {n:,} rows; give one per row"
    )
    names = [f"row {row}" if groups is None or groups[row] is None else f"group {groups[row]}" for row in range(n)]
    first_rows, units = np.unique(names, return_index=True, return_inverse=True)[1:]
    order = np.random.default_rng([seed, 5]).permutation(len(first_rows))
    starts, label_ids = truth.indptr[first_rows], np.append(truth.indices, truth.shape[1])
    first_labels = np.where(np.diff(truth.indptr)[first_rows] > 0, label_ids[starts], truth.shape[1])
    order = order[np.argsort(first_labels[order], kind="stable")]
    has_turns = share is None and n < FEW_ROWS
    n_parts = FOLDS if has_turns else 1 / share if share else math.ceil(n / min(MAX_ROWS, n / 10))
    parts = np.floor(np.arange(len(order)) % n_parts)
    for part in range(FOLDS if has_turns else 1):
        is_holdout = np.isin(units, order[parts == part])
        yield np.flatnonzero(~is_holdout), np.flatnonzero(is_holdout)


def score_fold(
    models: Sequence[Any], rows: Matrix, targets: Matrix, fold: Fold, **options: Any
) -> HoldoutScores | None:
    """Fit models to a fold's first rows, and score the others; labels that only these have do not count.

    Parameters
    ----------
    models : list of estimators
        They stay fitted.
    rows : (n, n_features)
    targets : csr_matrix (n, n_labels) of 1 and -1
    fold : (train, holdout)
    **options
        Options of `fit`.

    Returns
    -------
    HoldoutScores or None
        None if no row that is held out has a label that counts; nothing is trained then.
    """
    train, holdout = fold
    known_truth = csr_matrix(targets[holdout] > 0)
    known_truth.data &= (count_label_rows(csr_matrix(targets[train] > 0)) > 0)[known_truth.indices]
    known_truth.eliminate_zeros()
    has_known = np.diff(known_truth.indptr) > 0
    holdout, known_truth = holdout[has_known], known_truth[has_known]
    if not len(holdout):
        return None
    seconds = np.zeros(len(models))
    for number, model in enumerate(models):
        start = time.perf_counter()
        model.fit(rows[train], targets[train], **options)
        seconds[number] = time.perf_counter() - start
    parts = [
        HoldoutScores.from_scores([model.scores(rows[holdout[lo:hi]]) for model in models], known_truth[lo:hi])
        for lo, hi in iterate_row_ranges(len(holdout), len(models) * targets.shape[1])
    ]
    return HoldoutScores.join(parts)._replace(seconds=seconds)
