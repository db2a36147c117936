"""Compare models of a collection on the same held-out items with their current tags."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from wsabie.collection.annotations.training_examples import read_examples
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.folder.model_lock import lock_models
from wsabie.collection.learning.evaluation import (
    HoldoutSet,
    compute_differences,
    evaluate_model,
    judge_difference,
    make_holdout_set,
    open_feature_stores,
    select_items_with_features,
    summarize_metrics,
)
from wsabie.collection.learning.feature_store import extract_missing_features
from wsabie.collection.registry.model_registry import LoadedModel, load_model
from wsabie.collection.scan.file_inspection import rescan_error
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.evaluation.score_evaluation import Evaluation

MOST = 8
"""Maximum number of models in a comparison."""
_N_LISTED = 10  # labels listed as gained, and as lost


class LabelDifference(NamedTuple):
    """Change of a label: mean reciprocal rank on the `items` that have it, before and after."""

    label: str
    items: int
    before: float
    after: float


class ComparisonEntry(NamedTuple):
    """Model in a comparison.

    Attributes
    ----------
    model : int
    labels : int
        Number of evaluated labels that the model knows.
    describe : str
        Name of its feature extractor.
    figures : dict
        MAP, p@1 and p@5.
    difference : dict of str to PairedDifference, or None
        Differences from the first model, with 95 % intervals; None for the first.
    verdict : {"better", "worse", "alike"} or None
        Verdict of the difference in MAP.
    gained, lost : tuple of LabelDifference
        Labels that changed most, weighted by their items.
    """

    model: int
    labels: int
    describe: str
    figures: dict[str, float]
    difference: dict[str, PairedDifference] | None
    verdict: str | None
    gained: tuple[LabelDifference, ...]
    lost: tuple[LabelDifference, ...]


class Comparison(NamedTuple):
    """Comparison of models.

    Attributes
    ----------
    items, labels, tags : int
        Size of the evaluation; labels that no model knows are left out.
    models : tuple of ComparisonEntry
    told : tuple of str
        Notes, such as the number of items that are not counted.
    """

    items: int
    labels: int
    tags: int
    models: tuple[ComparisonEntry, ...]
    told: tuple[str, ...]


def compare_models(
    collection: Collection,
    numbers: Sequence[int],
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Comparison:
    """Evaluate models on the items held out from all of them, with the items' current tags.

    Parameters
    ----------
    collection : Collection
    numbers : sequence of int
        Ids of two models or more; the others are compared with the first.
    executor : Executor or None
        Executor of the feature extraction for items without features.
    progress : Progress

    Raises
    ------
    InputError
        There are fewer than two models, more than `MOST` or one twice, a model is missing or damaged, or no tagged item
        was held out from all of them.
    """
    if not 2 <= len(numbers) <= MOST or len(set(numbers)) < len(numbers):
        listing = ", ".join(map(str, numbers)) or "none"
        raise InputError(f"models to compare: {listing}; give two to {MOST} different ones")
    models = [load_model(collection, number) for number in numbers]
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection)
        column_labels = [model.labels_now(connection) for model in models]
    all_holdout = make_holdout_set(examples, models, column_labels)
    holdout, rows = _compute_features(collection, models, all_holdout, executor, progress)
    n_unreadable = len(all_holdout.hashes) - len(holdout.hashes)
    if not len(holdout.items) and n_unreadable:
        raise rescan_error(
            collection.folder, f"none of the {n_unreadable:,} held-out items can be read as it was scanned"
        )
    if not len(holdout.items):
        raise InputError("no item with a tag was held out from all of these models; tag some more items")
    n_trained_on = int((examples.held_out & ~examples.unjudged).sum()) - len(all_holdout.hashes)
    evaluations = []
    with progress.stage("judging", len(models), "models") as stage:
        for model, labels, X in zip(models, column_labels, rows, strict=True):
            evaluations.append(evaluate_model(model, labels, X, holdout))
            stage.advance(1)
    return Comparison(
        items=evaluations[0].n_rows,
        labels=len(holdout.labels),
        tags=int((holdout.Y > 0).sum()),
        models=tuple(
            _make_entry(model, np.isin(holdout.labels, columns), evaluation, evaluations[0], holdout)
            for model, columns, evaluation in zip(models, column_labels, evaluations, strict=True)
        ),
        told=tuple(_make_notes(models, n_trained_on, n_unreadable)),
    )


def serialize_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON document."""
    return comparison._asdict() | {
        "models": [_serialize_entry(entry) for entry in comparison.models],
        "told": list(comparison.told),
    }


def _serialize_entry(entry: ComparisonEntry) -> dict[str, Any]:
    differences = (
        None if entry.difference is None else {name: value._asdict() for name, value in entry.difference.items()}
    )
    shifts = {name: [label._asdict() for label in getattr(entry, name)] for name in ("gained", "lost")}
    return entry._asdict() | {"difference": differences} | shifts


def _compute_features(
    collection: Collection,
    models: list[LoadedModel],
    holdout: HoldoutSet,
    executor: Executor | None,
    progress: Progress,
) -> tuple[HoldoutSet, list[Any]]:
    """Return features for every model; missing ones are computed."""
    stores = open_feature_stores(collection, models)
    missing = any(name not in store.places for store in stores.values() for name in holdout.hashes)
    with lock_models(collection) if missing else nullcontext():
        if missing:
            stores = open_feature_stores(collection, models)
        for store in stores.values():
            extract_missing_features(collection, store, holdout.hashes, executor=executor, progress=progress)
    return select_items_with_features(holdout, models, stores)


def _make_entry(
    model: LoadedModel, is_known: Any, evaluation: Evaluation, reference: Evaluation, holdout: HoldoutSet
) -> ComparisonEntry:
    differences = None if evaluation is reference else compute_differences(evaluation, reference)
    shifts = [] if evaluation is reference else _compare_labels(evaluation, reference, holdout.names)
    return ComparisonEntry(
        model=model.number,
        labels=int(is_known.sum()),
        describe=model.extractor.name,
        figures=summarize_metrics(evaluation),
        difference=differences,
        verdict=None if differences is None else judge_difference(differences["MAP"], evaluation.n_rows),
        gained=tuple(shift for shift in shifts[:_N_LISTED] if shift.after > shift.before),
        lost=tuple(shift for shift in shifts[: -_N_LISTED - 1 : -1] if shift.after < shift.before),
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


def _make_notes(models: list[LoadedModel], n_trained_on: int, n_unreadable: int) -> Iterator[str]:
    if len({model.dictionary for model in models}) > 1:
        extractors = ", ".join(f"model {model.number} by {model.extractor.name}" for model in models)
        yield f"items are described in different ways: {extractors}"
    if n_trained_on:
        yield (
            f"not counted: {n_trained_on:,} of the items that are held out now, "
            "as one of the models has learnt from them"
        )
    if n_unreadable:
        yield f"not counted: {n_unreadable:,} of the held-out items, as they cannot be read or are not what was scanned"
