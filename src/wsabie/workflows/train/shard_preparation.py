"""Preparation of training on shards: held-out rows, and the labels with enough rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabie.core.errors import InputError
from wsabie.features.images.augmentation import strip_view_ids
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.fingerprints import compute_shard_row_marks
from wsabie.io.records import FeatureTable
from wsabie.io.shards.sharded_table import ShardedFeatureTable
from wsabie.models.annotators.annotator import Annotator
from wsabie.models.base.validation_monitor import MAX_ROWS
from wsabie.workflows.collection_splits import require_enough_items

if TYPE_CHECKING:
    from wsabie.workflows.train.model_training import TrainingRecipe


@dataclass(frozen=True)
class ShardedTrainingData:
    """Shards ready for training, with the attributes of `TrainingData`.

    See `wsabie.workflows.train.model_training.TrainingData`. Memory holds no rows but the validation rows in use.
    """

    training: ShardedFeatureTable
    validation: FeatureTable | None
    aligned_validation: AlignedTable | None
    facts: dict[str, Any]
    extractor: None = None

    @property
    def validation_arguments(self) -> tuple[Any, Any] | None:
        """The `validation` argument of `fit`."""
        return None if self.validation is None else (self.validation.X, self.validation.Y)

    @property
    def training_arguments(self) -> dict[str, Any]:
        """The data arguments of `fit`."""
        return {"X": self.training}

    def annotator(self, estimator: Any) -> Annotator:
        """Return the fitted estimator with the facts of its data."""
        rows = self.training
        return Annotator(
            estimator, None, rows.feature_names, self.facts, rows.dictionary, compute_shard_row_marks(rows)
        )


def prepare_shards(
    rows: ShardedFeatureTable, valid: FeatureTable | None, recipe: "TrainingRecipe"
) -> ShardedTrainingData:
    """Prepare training on shards.

    Parameters
    ----------
    rows : ShardedFeatureTable
    valid : FeatureTable or None
        Chooses the epoch; None: `wanted.hold_out` of the rows, of which the first ones with a label are used.
    recipe : TrainingRecipe

    Raises
    ------
    InputError
        Data that do not fit each other, too few rows or groups, or no label with enough of them.
    """
    training, held_out, aligned = rows, None, None
    if valid is not None:
        aligned = align_table(valid, rows.label_names, rows.feature_names, rows.n_features, rows.dictionary)
    elif recipe.hold_out:
        require_enough_items(len(rows.shards), recipe.hold_out, "row")
        training, held_out = rows.held_out(recipe.hold_out)
    truth, held_out_truth = training.truth(), None if held_out is None else held_out.truth()
    for side, statistics in (("training", truth), ("validation", held_out_truth)):
        if statistics is not None and not statistics.rows:  # whole groups are on one side
            raise InputError(f"the {side} side of the split would be empty; use other fractions or more rows")
    counts = truth.of_label
    label_ids = np.flatnonzero(counts >= recipe.min_rows) if recipe.min_rows > 1 else np.arange(len(counts))
    if not len(label_ids):
        raise InputError(f"no label has {recipe.min_rows} training rows; lower --min-rows, or give more rows")
    if len(label_ids) < len(counts):
        training, held_out = (
            training.with_labels(label_ids),
            None if held_out is None else held_out.with_labels(label_ids),
        )
    validation, n_validation = None, 0
    if aligned is not None:
        validation = aligned.rows.with_labels(label_ids)
        n_validation = len(validation)
    elif held_out is not None and held_out_truth is not None and held_out_truth.of_label[label_ids].any():
        validation, n_validation = _drop_further_views(held_out.first(MAX_ROWS)), held_out_truth.rows
    elif held_out is not None:
        training = rows.with_labels(label_ids)  # rows without a known label cannot choose an epoch
    truth = training.truth()
    facts = {
        "system": recipe.system,
        "source": recipe.source,
        "fingerprint": rows.shards.fingerprint,
        "rows": truth.rows,
        "validation_rows": n_validation,
        "labels": len(training.label_names),
        "labels_dropped": len(rows.label_names) - len(training.label_names),
        "rows_without_labels": truth.unlabelled,
        "skipped": 0,
    }
    return ShardedTrainingData(training, validation, aligned, facts)


def _drop_further_views(rows: FeatureTable) -> FeatureTable:
    """Drop further views of images, which are not evaluated."""
    originals = strip_view_ids(rows.ids, rows.augment)
    return rows.take([i for i, name in enumerate(rows.ids) if name == originals[i]]) if rows.augment else rows
