"""Registry of a collection's models: records, the model in use, and evaluations."""

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.collection.annotations.decisions import find_model_in_use, make_no_model_error
from wsabie.collection.annotations.training_examples import HELD_OUT
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import Row, begin_entry, read_last_entry
from wsabie.collection.db.tables import changes, journal, labels, models, views
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry.thresholds import (
    HoldoutSuggestions,
    PrecisionCurve,
    Threshold,
    compute_threshold,
    load_holdout_suggestions,
)
from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, ModelFolderError, NotFoundError, WsabieError
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.models.annotators.annotator import Annotator
from wsabie.storage.model_folder import is_model_folder

_THRESHOLDS = 100  # cached for each model
_MERGE_LOCK = threading.Lock()  # after a change, many requests ask at once


class ModelRecord(NamedTuple):
    """Record of a model.

    Attributes
    ----------
    number : int
    folder : str
        Name within the collection's folder of models.
    made : str
    how : str
        "full", or "corrections" of `parent`.
    parent : int or None
    learnt_to : int
        Last journal entry that it was trained on.
    in_use : bool
    there : bool
        True if its folder exists.
    facts, figures : dict
        Training data, and metrics on the held-out items.
    """

    number: int
    folder: str
    made: str
    how: str
    parent: int | None
    learnt_to: int
    in_use: bool
    there: bool
    facts: dict[str, Any]
    figures: dict[str, Any]

    @property
    def kept_back(self) -> str:
        """Reason why the model was not put into use after its training; "" if it was."""
        return str(self.facts.get("kept_back", ""))


class Rollback(NamedTuple):
    """Journal entry that put the model into use, and the model that undoing it brings back."""

    entry: int
    model: int


class ModelSwitch(NamedTuple):
    """Switch of the model in use; `unseen` counts items that the new one has not processed."""

    number: int
    before: int | None
    unseen: int


@dataclass(frozen=True)
class LoadedModel:
    """Model with the label ids of its columns."""

    number: int
    path: Path
    annotator: Annotator
    about: ModelRecord

    @property
    def model(self) -> Any:
        """Fitted estimator."""
        return self.annotator.model

    @property
    def extractor(self) -> FeatureExtractor:
        """Feature extractor of the model."""
        return self.annotator.terms  # type: ignore[return-value]  # models of a collection have one

    @property
    def dictionary(self) -> str:
        """Fingerprint of `extractor`."""
        return str(self.annotator.dictionary)

    @property
    def held_to(self) -> float:
        """Position up to which contents were held out in its training."""
        return float(self.about.facts.get("held_to", HELD_OUT))

    @cached_property
    def labels(self) -> Int64:
        """Label ids of the columns at the time of the training, (n_columns,)."""
        return np.array(self.annotator.facts["label_ids"], np.int64)

    @cached_property
    def judged(self) -> HoldoutSuggestions:
        """Suggestions of the model for held-out items.

        Raises
        ------
        InputError
            They are missing or damaged.
        """
        return load_holdout_suggestions(self.path)

    @cached_property
    def sureness(self) -> PrecisionCurve:
        """Precision of its suggestions as a function of their probability.

        Raises
        ------
        InputError
            Its held-out suggestions are missing or damaged.
        """
        return PrecisionCurve(self.judged)

    def threshold(self, precision: float) -> Threshold:
        """Return the lowest probabilities whose suggestions reach a precision.

        Raises
        ------
        InputError
            The precision is no share, or the held-out suggestions are missing or damaged.
        """
        threshold = self._thresholds.get(precision)
        if threshold is None:
            threshold = compute_threshold(self.judged, precision)
            if len(self._thresholds) >= _THRESHOLDS:  # clients of a server choose the precision
                self._thresholds.clear()
            self._thresholds[precision] = threshold
        return threshold

    def labels_now(self, connection: Connection) -> Int64:
        """Return the current label ids of the columns; merged labels are followed, -1 is deleted."""
        entry = read_last_entry(connection)
        with _MERGE_LOCK:
            if entry not in self._labels_by_entry:
                merged_into = {row[0]: row[1] for row in connection.execute(select(labels.c.id, labels.c.merged_into))}
                self._labels_by_entry.clear()
                self._labels_by_entry[entry] = np.array(
                    [_follow_merges(int(number), merged_into) for number in self.labels], np.int64
                )
            return self._labels_by_entry[entry]

    @cached_property
    def _thresholds(self) -> dict[float, Threshold]:
        """Thresholds by precision."""
        return {}

    @cached_property
    def _labels_by_entry(self) -> dict[int, Int64]:
        """Current label ids by the last journal entry."""
        return {}


def list_models(collection: Collection) -> list[ModelRecord]:
    """Return the records of all finished models that were not removed, last first."""
    query = select(models).where(models.c.removed.is_(False)).order_by(models.c.id.desc())
    with begin_read(collection.engine) as connection:
        records = [_make_record(collection, dict(row._mapping)) for row in connection.execute(query)]
    return [record for record in records if record.figures or record.in_use]


def read_model(collection: Collection, number: int) -> ModelRecord:
    """Return the record of a model.

    Raises
    ------
    NotFoundError
        There is none, or it was removed.
    """
    for record in list_models(collection):
        if record.number == number:
            return record
    message = f"there is no model {number}"
    raise NotFoundError(
        f"{message}; `wsabie collection models {quote(str(collection.folder))}` lists them", served=message
    )


def list_removed_models(collection: Collection) -> list[int]:
    """Return the ids of removed models, last first."""
    query = select(models.c.id).where(models.c.removed.is_(True), models.c.figures != {}).order_by(models.c.id.desc())
    with begin_read(collection.engine) as connection:
        return list(connection.execute(query).scalars())


def find_rollback(collection: Collection) -> Rollback | None:
    """Return the way back to the model used before; None if there was none or it was removed."""
    c, j = changes.c, journal.c
    query = select(c.entry_id, c.row, c.before, c.after).join(journal, j.id == c.entry_id)
    query = query.where(c.table == models.name, c.before.is_not(None), j.undone_by.is_(None), j.undoes.is_(None))
    available = {record.number for record in list_models(collection) if record.there}
    with begin_read(collection.engine) as connection:
        last: int | None = None
        for number, model, old_row, new_row in connection.execute(query.order_by(c.entry_id.desc(), c.id.desc())):
            if last not in (None, number):
                break
            if new_row is not None and old_row["in_use"] != new_row["in_use"]:
                last = number
                if old_row["in_use"]:
                    return Rollback(number, model) if model in available else None
    return None


def load_model(collection: Collection, number: int | None = None) -> LoadedModel:
    """Load a model; None loads the one in use.

    Raises
    ------
    InputError
        There is none, or its folder is missing or damaged.
    """
    with begin_read(collection.engine) as connection:
        number = find_model_in_use(connection) if number is None else number
        row = connection.execute(select(models).where(models.c.id == number)).first()
        if number is None:
            raise make_no_model_error(connection, collection.folder)
    if row is None:
        message = f"there is no model {number}"
        raise InputError(
            f"{message}; `wsabie collection models {quote(str(collection.folder))}` lists them", served=message
        )
    record = _make_record(collection, dict(row._mapping))
    path = collection.models / record.folder
    try:
        annotator = Annotator.load(path)
        if not isinstance(annotator, Annotator) or len(annotator.facts["label_ids"]) != len(
            annotator.model.vocabulary_
        ):
            raise ModelFolderError(f"{path} is no model of a collection")
    except (WsabieError, KeyError, TypeError) as error:
        raise InputError(
            f"model {record.number} cannot be used ({error}); train again, or use another: wsabie collection models "
            f"{quote(str(collection.folder))} --use N",
            served=f"model {record.number} cannot be used; train again, or choose another on the page Training",
        ) from error
    return LoadedModel(record.number, path, annotator, record)


def use_model(collection: Collection, number: int, *, by: str) -> ModelSwitch:
    """Put a model into use; its earlier suggestions are there at once, and `undo` reverts the switch.

    Raises
    ------
    InputError
        There is no such model, or its folder is missing.
    """
    load_model(collection, number)
    with begin_entry(collection.engine, by, "models", f"model {number} in use") as change:
        previous = find_model_in_use(change.connection)
        if change.connection.execute(select(models.c.removed).where(models.c.id == number)).scalar():
            raise InputError(f"model {number} was removed; choose another, or train again")
        change.set(models, {n: {"in_use": n == number} for n in (previous, number) if n is not None})
    with begin_read(collection.engine) as connection:
        return ModelSwitch(number, previous, count_unseen_items(connection, number))


def count_unseen_items(connection: Connection, number: int) -> int:
    """Return the number of items that a model has not processed."""
    from wsabie.collection.db.tables import items

    is_scored = select(views.c.item_id).where(views.c.model_id == number, views.c.item_id == items.c.id).exists()
    query = select(func.count()).where(items.c.state == "present", items.c.hash.is_not(None), ~is_scored)
    return connection.execute(query).scalar() or 0


def _make_record(collection: Collection, row: Row) -> ModelRecord:
    is_available = not row["removed"] and is_model_folder(collection.models / row["folder"])
    columns = {name: row[name] for name in ("folder", "made", "how", "learnt_to", "in_use", "facts", "figures")}
    return ModelRecord(number=row["id"], parent=row["parent_id"], there=is_available, **columns)


def _follow_merges(number: int, merged_into: dict[int, int | None]) -> int:
    for _ in range(len(merged_into) + 1):
        if number not in merged_into:
            return -1
        target = merged_into[number]
        if target is None:
            return number
        number = target
    raise RecursionError("labels were merged in a circle")
