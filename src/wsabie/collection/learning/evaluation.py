"""Evaluate models on held-out items that none of them was trained on, with the items' current tags."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wsabie.collection.annotations.training_examples import TrainingExamples, compute_hash_positions, read_examples
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection, lock_models, make_rescan_error
from wsabie.collection.learning import feature_store
from wsabie.collection.learning.model_fitting import fit_suggestions
from wsabie.collection.learning.suggestions import LabelRanker
from wsabie.collection.registry.model_registry import LoadedModel, load_model
from wsabie.collection.registry.thresholds import HoldoutSuggestions
from wsabie.core.arrays import Bool, Float32, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.evaluation.bootstrap import PairedDifference, paired_bootstrap
from wsabie.evaluation.calibration import Calibration
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores
from wsabie.models.base.label_model import LabelModel

FIGURES = ("MAP", "p@1", "p@5")
Verdict = Literal["better", "worse", "alike"]
MIN_JUDGED_ITEMS = 20
"""Minimum number of held-out items for a verdict; with fewer, intervals say too little."""

_BLOCK = 1000
_N_SUGGESTIONS = 10  # for each held-out item
_N_PARTS = 5  # of the held-out bursts, each judged by probabilities of the others
MAX_COMPARED_MODELS = 8
"""Maximum number of models in a comparison."""
_MAX_LISTED_LABELS = 10  # labels listed as gained, and as lost


def make_holdout_set(
    examples: TrainingExamples, models: Sequence[LoadedModel], column_labels: Sequence[Int64]
) -> TrainingExamples:
    """Return the items with decisions that are held out now and were for every model.

    A model stores the position up to which contents were held out in its training. Items with tags that a model
    accepted by itself are left out, and so are labels that no model knows.

    Parameters
    ----------
    examples : TrainingExamples
    models : sequence of LoadedModel
    column_labels : sequence of (n_columns,) int64
        Current label ids of the models' columns.
    """
    holdout_bound = min([examples.holdout_bound, *(model.holdout_bound for model in models)])
    holdout = examples.take((compute_hash_positions(examples.leaders) <= holdout_bound) & ~examples.unjudged)
    columns = np.flatnonzero(np.isin(holdout.labels, np.concatenate(column_labels)))
    names = [holdout.names[i] for i in columns]
    return holdout._replace(Y=holdout.Y[:, columns], labels=holdout.labels[columns], names=names)


def find_tagged_rows(holdout: TrainingExamples) -> Int64:
    """Return the rows of items with one of the labels; only these count."""
    return np.flatnonzero(np.diff((holdout.Y > 0).tocsr().indptr))


def open_feature_stores(collection: Collection, models: Iterable[LoadedModel]) -> dict[str, feature_store.FeatureStore]:
    """Return the feature stores of the models' extractors by fingerprint."""
    return {model.fingerprint: feature_store.open_feature_store(collection, model.extractor) for model in models}


def read_features(
    collection: Collection,
    holdout: TrainingExamples,
    models: Sequence[LoadedModel],
    stores: dict[str, feature_store.FeatureStore],
    resources: feature_store.Resources,
) -> tuple[TrainingExamples, list[Matrix]]:
    """Return the held-out items with features for every model, and these; missing ones are computed."""
    for store in stores.values():
        feature_store.extract_missing_features(collection, store, holdout.hashes, resources)
    matrices = [stores[model.fingerprint].matrix(holdout.hashes) for model in models]
    is_complete = np.logical_and.reduce([is_stored for _, is_stored in matrices])
    return holdout.take(is_complete), [X[is_complete[is_stored]] for X, is_stored in matrices]


def evaluate_model(model: LabelModel, column_labels: Int64, X: Matrix, holdout: TrainingExamples) -> Evaluation:
    """Return the metrics of a model for each item; labels that it does not know rank last."""
    blocks = (
        (lo, pool_scores_by_label(model.scores(X[lo : lo + _BLOCK]), column_labels, holdout.labels))
        for lo in range(0, X.shape[0], _BLOCK)
    )
    return evaluate_scores(blocks, holdout.Y, ks=(1, 5))


def summarize_metrics(evaluation: Evaluation, optimism: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the mean metrics, less what the choice of the epoch by the same items adds to them."""
    means = {name: evaluation.means[name] - (optimism or {}).get(name, 0.0) for name in FIGURES}
    return {name: round(min(max(mean, 0.0), 1.0), 6) for name, mean in means.items()}


def compute_differences(evaluation: Evaluation, reference: Evaluation) -> dict[str, PairedDifference]:
    """Return the differences of one model from another on the same items, with 95 % intervals."""
    return {name: paired_bootstrap(evaluation.per_row[name], reference.per_row[name]) for name in FIGURES}


def judge_difference(difference: PairedDifference, items: int) -> Verdict:
    """Return "better", "worse", or "alike" if a difference on so many items may be chance.

    Examples
    --------
    >>> (
    ...     judge_difference(PairedDifference(-0.03, -0.05, -0.01, 0.0), 100),
    ...     judge_difference(PairedDifference(-0.03, -0.05, -0.01, 0.0), 10),
    ... )
    ('worse', 'alike')
    """
    if items < MIN_JUDGED_ITEMS or difference.low <= 0 <= difference.high:
        return "alike"
    return "better" if difference.low > 0 else "worse"


def score_suggestions(
    loaded_model: LoadedModel, column_labels: Int64, X: Matrix, holdout: TrainingExamples
) -> HoldoutSuggestions:
    """Return the suggestions for held-out items with tags, and whether each is among the tags.

    The model's probabilities are fitted to all held-out items, so they are too good for these. Each of five parts gets
    probabilities that are fitted to the others. A burst is in one part.
    """
    rows = find_tagged_rows(holdout)
    leaders, bursts = np.unique([holdout.leaders[row] for row in rows], return_inverse=True)
    part_of_row = (np.random.default_rng(0).permutation(len(leaders)) % _N_PARTS)[bursts]
    parts = []
    for part in np.unique(part_of_row):
        calibration = _calibrate(loaded_model, column_labels, X, holdout, rows[part_of_row != part])
        ranker = LabelRanker(loaded_model, column_labels, calibration)
        is_of_part = part_of_row == part
        parts.append(_score_rows(ranker, X, holdout, rows[is_of_part], bursts[is_of_part]))
    return HoldoutSuggestions(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _calibrate(
    loaded_model: LoadedModel, column_labels: Int64, X: Matrix, holdout: TrainingExamples, rows: Int64
) -> Calibration:
    """Fit the probabilities of a model to some held-out items; if these are too few, return its own."""
    model = copy(loaded_model.model)
    stored_calibration: Calibration = model.calibration_
    try:
        truth = holdout.take(rows).read_columns(column_labels)
        fit_suggestions(model.calibrate(X[rows], truth), X[rows], truth)
    except InputError:
        return stored_calibration
    return model.calibration_ or stored_calibration


def _score_rows(
    ranker: LabelRanker, X: Matrix, holdout: TrainingExamples, rows: Int64, bursts: Int64
) -> HoldoutSuggestions:
    top, labels = ranker.top(ranker.loaded_model.model.transform(X[rows]), _N_SUGGESTIONS), holdout.labels
    position, rank = np.nonzero(top.labels >= 0)
    suggested_labels = top.labels[position, rank]
    columns = np.minimum(np.searchsorted(labels, suggested_labels), len(labels) - 1)
    truth = np.asarray(holdout.Y[rows[position], columns]).ravel()
    right = ((labels[columns] == suggested_labels) & (truth > 0)).astype(np.int64)
    return HoldoutSuggestions(suggested_labels, top.probabilities[position, rank], right, bursts[position])


def pool_scores_by_label(scores: Float32, columns: Int64, labels: Int64) -> Float32:
    """Return scores of columns as scores of labels: the highest column, -inf without one."""
    label_scores = np.full((len(scores), len(labels)), -np.inf, np.float32)
    for position, label in enumerate(labels):
        label_columns = np.flatnonzero(columns == label)
        if len(label_columns):
            label_scores[:, position] = scores[:, label_columns].max(axis=1)
    return label_scores


@dataclass(frozen=True)
class LabelDifference:
    """Mean reciprocal rank of a label on its `items`, in the reference model and the candidate."""

    label: str
    items: int
    reference: float
    candidate: float


@dataclass(frozen=True)
class FigureDifference:
    """Mean difference of a metric with its 95 % interval; `ahead`: fraction of resamples above 0."""

    mean: float
    low: float
    high: float
    ahead: float


@dataclass(frozen=True)
class ComparedModel:
    """Model in a comparison.

    Attributes
    ----------
    model : int
    labels : int
        Number of evaluated labels that the model knows.
    features : str
        Name of its feature extractor.
    figures : dict
        MAP, p@1 and p@5, less the "optimism" that the training of the newest model measured.
    difference : dict of str to FigureDifference, or None
        Differences from the first model; None for the first.
    verdict : {"better", "worse", "alike"} or None
        Verdict of the difference in MAP.
    gained, lost : tuple of LabelDifference
        Labels that changed most, weighted by their items.
    """

    model: int
    labels: int
    features: str
    figures: dict[str, float]
    difference: dict[str, FigureDifference] | None
    verdict: Verdict | None
    gained: tuple[LabelDifference, ...]
    lost: tuple[LabelDifference, ...]


@dataclass(frozen=True)
class Comparison:
    """Comparison of models.

    Attributes
    ----------
    items, labels, tags : int
        Size of the evaluation; labels that no model knows are left out.
    models : tuple of ComparedModel
    notes : tuple of str
        Notes, such as the number of items that are not counted.
    """

    items: int
    labels: int
    tags: int
    models: tuple[ComparedModel, ...]
    notes: tuple[str, ...]


def compare_models(
    collection: Collection, model_ids: Sequence[int], *, executor: Executor | None = None, progress: Progress = SILENT
) -> Comparison:
    """Evaluate models on the items held out from all of them, with the items' current tags.

    Parameters
    ----------
    collection : Collection
    model_ids : sequence of int
        Ids of two models or more; the others are compared with the first.
    executor : Executor or None
        Executor of the feature extraction for items without features.
    progress : Progress

    Raises
    ------
    InputError
        There are fewer than two models, more than `MAX_COMPARED_MODELS` or one twice, a model is missing or damaged, or
        no tagged item was held out from all of them.
    """
    if not 2 <= len(model_ids) <= MAX_COMPARED_MODELS or len(set(model_ids)) < len(model_ids):
        listing = ", ".join(map(str, model_ids)) or "none"
        raise InputError(f"models to compare: {listing}; give two to {MAX_COMPARED_MODELS} different ones")
    models = [load_model(collection, model_id) for model_id in model_ids]
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection)
        column_labels = [model.read_current_labels(connection) for model in models]
    all_holdout = make_holdout_set(examples, models, column_labels)
    stores = open_feature_stores(collection, models)
    is_missing = any(name not in store.positions for store in stores.values() for name in all_holdout.hashes)
    with lock_models(collection) if is_missing else nullcontext():
        stores = open_feature_stores(collection, models) if is_missing else stores
        resources = feature_store.Resources(executor, progress=progress)
        holdout, rows = read_features(collection, all_holdout, models, stores, resources)
    n_unreadable = len(all_holdout.hashes) - len(holdout.hashes)
    n_tagged = len(find_tagged_rows(holdout))
    if not n_tagged and n_unreadable:
        fact = f"none of the {n_unreadable:,} held-out items can be read as it was scanned"
        raise make_rescan_error(collection.folder, fact)
    require(n_tagged > 0, "no item with a tag was held out from all of these models; tag some more items")
    n_trained_on = int((examples.is_holdout & ~examples.unjudged).sum()) - len(all_holdout.hashes)
    evaluations = []
    with progress.stage("judging", len(models), "models") as stage:
        for model, labels, X in zip(models, column_labels, rows, strict=True):
            evaluations.append(evaluate_model(model.model, labels, X, holdout))
            stage.advance(1)
    measured = [model.record.figures.get("optimism") for model in sorted(models, key=lambda model: -model.id)]
    optimism: dict[str, float] | None = next(filter(None, measured), None)
    return Comparison(
        items=evaluations[0].n_rows,
        labels=len(holdout.labels),
        tags=int((holdout.Y > 0).sum()),
        models=tuple(
            _make_entry(model, np.isin(holdout.labels, columns), evaluation, evaluations[0], holdout, optimism)
            for model, columns, evaluation in zip(models, column_labels, evaluations, strict=True)
        ),
        notes=tuple(_make_notes(models, n_trained_on, n_unreadable, optimism is None)),
    )


def _make_entry(
    model: LoadedModel,
    is_known: Bool,
    evaluation: Evaluation,
    reference: Evaluation,
    holdout: TrainingExamples,
    optimism: dict[str, float] | None,
) -> ComparedModel:
    differences = {} if evaluation is reference else compute_differences(evaluation, reference)
    shifts = [] if evaluation is reference else _compare_labels(evaluation, reference, holdout.names)
    return ComparedModel(
        model=model.id,
        labels=int(is_known.sum()),
        features=model.extractor.name,
        figures=summarize_metrics(evaluation, optimism),
        difference={name: FigureDifference(*gap) for name, gap in differences.items()} or None,
        verdict=judge_difference(differences["MAP"], evaluation.n_rows) if differences else None,
        gained=tuple(shift for shift in shifts[:_MAX_LISTED_LABELS] if shift.candidate > shift.reference),
        lost=tuple(shift for shift in shifts[: -_MAX_LISTED_LABELS - 1 : -1] if shift.candidate < shift.reference),
    )


def _compare_labels(evaluation: Evaluation, reference: Evaluation, names: list[str]) -> list[LabelDifference]:
    """Return the changes of labels, the largest gain first."""
    support = evaluation.labels.support
    new_ranks, old_ranks = evaluation.labels.reciprocal_rank, reference.labels.reciprocal_rank
    indices = np.flatnonzero(support)
    order = indices[np.argsort(-(support * (new_ranks - old_ranks))[indices], kind="stable")]
    return [
        LabelDifference(names[i], int(support[i]), round(float(old_ranks[i]), 4), round(float(new_ranks[i]), 4))
        for i in order
    ]


def _make_notes(models: list[LoadedModel], n_trained_on: int, n_unreadable: int, is_optimistic: bool) -> Iterator[str]:
    if len({model.fingerprint for model in models}) > 1:
        extractors = ", ".join(f"model {model.id} by {model.extractor.name}" for model in models)
        yield f"the models have different feature extractors: {extractors}"
    if n_trained_on:
        fact = f"{n_trained_on:,} of the items that are held out now"
        yield f"not counted: {fact}, because one of the models learned from them"
    if n_unreadable:
        yield f"not counted: {n_unreadable:,} of the held-out items, which cannot be read or changed since the scan"
    if is_optimistic:
        yield "the figures are slightly too high, because these items also chose the epochs of the models"
