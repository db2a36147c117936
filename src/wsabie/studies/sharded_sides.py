"""Rows in shards made ready to be trained on: what is set aside, and which labels count."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.features.augment import original_ids
from wsabie.models.annotator import Annotator
from wsabie.models.monitor import MAX_ROWS
from wsabie.sources.align import Aligned, align
from wsabie.sources.fingerprint import marks_of_shards
from wsabie.sources.records import Rows
from wsabie.sources.sharded import ShardedRows
from wsabie.studies.splitting import refuse_few

if TYPE_CHECKING:
    from wsabie.studies.training import Recipe


@dataclass(frozen=True)
class ShardedSides:
    """Rows in shards ready to be trained on; attributes are those of `wsabie.studies.training.Sides`.

    No more than the validation rows that are looked at are together in memory.
    """

    learnt: ShardedRows
    validation: Rows | None
    given: Aligned | None
    facts: dict[str, Any]
    terms: None = None

    @property
    def judge(self) -> tuple[Any, Any] | None:
        """What `fit` takes as `validation`."""
        return None if self.validation is None else (self.validation.X, self.validation.Y)

    @property
    def given_to_fit(self) -> dict[str, Any]:
        """What is trained on, as `fit` takes it."""
        return {"X": self.learnt}

    def annotator(self, estimator: Any) -> Annotator:
        """The fitted estimator with what is known of its data."""
        rows = self.learnt
        return Annotator(estimator, None, rows.feature_names, self.facts, rows.dictionary, marks_of_shards(rows))


def prepare_shards(rows: ShardedRows, valid: Rows | None, wanted: "Recipe") -> ShardedSides:
    """Everything before training on shards.

    Parameters
    ----------
    rows : ShardedRows
    valid : Rows or None
        Chooses the epoch; None: `wanted.hold_out` of the rows, of which the first ones with a label are looked at.
    wanted : Recipe

    Raises
    ------
    InputError
        Data that do not fit each other, too few rows or groups, or no label with enough of them.
    """
    learnt, judged, aligned = rows, None, None
    if valid is not None:
        aligned = align(valid, rows.label_names, rows.feature_names, rows.n_features, rows.dictionary)
    elif wanted.hold_out:
        refuse_few(len(rows.shards), wanted.hold_out, "row")
        learnt, judged = rows.held_out(wanted.hold_out)
    truth, aside = learnt.truth(), None if judged is None else judged.truth()
    for side, found in (("training", truth), ("validation", aside)):
        if found is not None and not found.rows:  # whole groups are on one side
            raise InputError(f"the {side} side of the split would be empty; use other fractions or more rows")
    counts = truth.of_label
    keep = np.flatnonzero(counts >= wanted.min_rows) if wanted.min_rows > 1 else np.arange(len(counts))
    if not len(keep):
        raise InputError(f"no label has {wanted.min_rows} training rows; lower --min-rows, or give more rows")
    if len(keep) < len(counts):
        learnt, judged = learnt.with_labels(keep), None if judged is None else judged.with_labels(keep)
    validation, set_aside = None, 0
    if aligned is not None:
        validation = aligned.rows.with_labels(keep)
        set_aside = len(validation)
    elif judged is not None and aside is not None and aside.of_label[keep].any():
        validation, set_aside = _centred(judged.first(MAX_ROWS)), aside.rows
    elif judged is not None:
        learnt = rows.with_labels(keep)  # nothing can be chosen by rows without a known label
    truth = learnt.truth()
    facts = {
        "system": wanted.system,
        "source": wanted.source,
        "fingerprint": rows.shards.fingerprint,
        "rows": truth.rows,
        "validation_rows": set_aside,
        "labels": len(learnt.label_names),
        "labels_dropped": len(rows.label_names) - len(learnt.label_names),
        "rows_without_labels": truth.unlabelled,
        "skipped": 0,
    }
    return ShardedSides(learnt, validation, aligned, facts)


def _centred(rows: Rows) -> Rows:
    """Without the further views of pictures, by which nothing is judged."""
    originals = original_ids(rows.ids, rows.augment)
    return rows.take([i for i, name in enumerate(rows.ids) if name == originals[i]]) if rows.augment else rows
