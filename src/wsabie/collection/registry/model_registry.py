"""Registry of a collection's models: records, the model in use, and evaluations."""

import re
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from wsabie.collection.annotations.decisions import find_model_in_use, require_model
from wsabie.collection.annotations.training_examples import HELD_OUT
from wsabie.collection.db.cache import DatabaseCache, FileCache
from wsabie.collection.db.database import begin_read, begin_write, fetch_rows
from wsabie.collection.db.errors import format_step
from wsabie.collection.db.journal import JournalWriter, Row, begin_entry, format_current_time, next_id
from wsabie.collection.db.tables import changes, item_scores, items, journal, models, suggestions
from wsabie.collection.folder.collection import Collection, lock_models
from wsabie.collection.labels import label_store
from wsabie.collection.registry import thresholds
from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, ModelFolderError, NotFoundError, WsabieError
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.models.annotators import Annotator
from wsabie.storage.atomic_files import remove_drafts
from wsabie.storage.model_folder import is_model_folder

NO_MODEL = "there is no model in use yet"
ZERO_SHOT = "zero-shot"
"""Method of models that know labels by their names alone."""
_MAX_CACHED_THRESHOLDS = 100  # cached for each model
_RECORDS = select(
    models.c.id, models.c.folder, models.c.created_at, models.c.method,
    models.c.parent_id.label("parent"), models.c.last_entry_id, models.c.in_use, models.c.facts, models.c.figures,
)  # fmt: skip
_FOLDER_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_CHUNK = 500  # items whose suggestions are deleted in one transaction


class ModelRecord(NamedTuple):
    """Record of a model.

    Attributes
    ----------
    id : int
    folder : str
        Name within the collection's folder of models.
    created_at : str
    method : str
        "full", "corrections" of `parent`, or `ZERO_SHOT`.
    parent : int or None
    last_entry_id : int
        Last journal entry that it was trained on.
    in_use : bool
    is_available : bool
        True if its folder exists.
    facts, figures : dict
        Training data, and metrics on the held-out items.
    """

    id: int
    folder: str
    created_at: str
    method: str
    parent: int | None
    last_entry_id: int
    in_use: bool
    is_available: bool
    facts: JsonObject
    figures: JsonObject

    @property
    def rejection_reason(self) -> str:
        """Reason why the model was not put into use after its training; "" if it was."""
        return str(self.facts.get("rejection_reason", ""))


@dataclass(frozen=True)
class Rollback:
    """Journal entry that put the model into use, and the model that undoing it brings back."""

    entry: int
    model: int


class ModelSwitch(NamedTuple):
    """Switch of the model in use; `unseen_items` counts items that the new one has not processed."""

    model: int
    previous_model: int | None
    unseen_items: int


@dataclass(frozen=True)
class LoadedModel:
    """Model with the label ids of its columns."""

    id: int
    path: Path
    annotator: Annotator
    record: ModelRecord

    @property
    def model(self) -> Any:
        """Fitted estimator."""
        return self.annotator.model

    @property
    def extractor(self) -> FeatureExtractor:
        """Feature extractor of the model."""
        return self.annotator.extractor  # type: ignore[return-value]  # models of a collection have one

    @property
    def fingerprint(self) -> str:
        """Fingerprint of `extractor`."""
        return str(self.annotator.extractor_fingerprint)

    @property
    def is_zero_shot(self) -> bool:
        """True if it knows only the names of labels."""
        return self.record.method == ZERO_SHOT

    @property
    def holdout_bound(self) -> float:
        """Position up to which contents were held out in its training."""
        return float(self.record.facts.get("holdout_bound", HELD_OUT))

    @cached_property
    def labels(self) -> Int64:
        """Label ids of the columns at the time of the training, (n_columns,)."""
        return np.array(self.annotator.facts["label_ids"], np.int64)

    @cached_property
    def holdout_suggestions(self) -> thresholds.HoldoutSuggestions:
        """Suggestions of the model for held-out items.

        Raises
        ------
        InputError
            They are missing or damaged.
        """
        return thresholds.load_holdout_suggestions(self.path)

    @cached_property
    def precision_curve(self) -> thresholds.PrecisionCurve:
        """Precision of its suggestions as a function of their probability.

        Raises
        ------
        InputError
            Its held-out suggestions are missing or damaged.
        """
        return thresholds.PrecisionCurve(self.holdout_suggestions)

    @cached_property
    def find_threshold(self) -> Callable[[float], thresholds.Threshold]:
        """Cached function from a precision to the lowest probabilities whose suggestions reach it.

        Raises
        ------
        InputError
            The precision is not a share, or the held-out suggestions are missing or damaged.
        """
        return lru_cache(_MAX_CACHED_THRESHOLDS)(self.precision_curve.find_threshold)

    @cached_property
    def read_current_labels(self) -> DatabaseCache[Int64]:
        """Cached reader of the current label ids of the columns; merged labels are followed, -1 is deleted."""
        return DatabaseCache(self._follow_merges)

    def _follow_merges(self, connection: Connection) -> Int64:
        targets = label_store.read_merge_targets(connection)
        targets |= {label_id: label_id for label_id in label_store.read_label_names(connection)}
        return np.array([targets.get(n, -1) for n in self.labels.tolist()], np.int64)


_loaded_models = FileCache[LoadedModel](1)


def list_models(collection: Collection) -> list[ModelRecord]:
    """Return the records of all finished models that were not removed, last first."""
    query = _RECORDS.where(models.c.is_removed.is_(False)).order_by(models.c.id.desc())
    records = [_make_record(collection, row._mapping) for row in fetch_rows(collection.engine, query)]
    return [record for record in records if record.figures or record.in_use]


def read_model(collection: Collection, model_id: int) -> ModelRecord:
    """Return the record of a model.

    Raises
    ------
    NotFoundError
        There is none, or it was removed.
    """
    for record in list_models(collection):
        if record.id == model_id:
            return record
    raise _make_unknown_error(collection, model_id)


def _make_unknown_error(collection: Collection, model_id: int | None) -> NotFoundError:
    return NotFoundError(f"there is no model {model_id}; {format_step('models', collection.folder)} lists them")


def list_removed_models(collection: Collection) -> list[int]:
    """Return the ids of removed models, last first."""
    query = select(models.c.id).where(models.c.is_removed.is_(True), models.c.figures != {})
    return [row[0] for row in fetch_rows(collection.engine, query.order_by(models.c.id.desc()))]


def find_rollback(collection: Collection) -> Rollback | None:
    """Return the way back to the model used before; None if there was none or it was removed."""
    c, j = changes.c, journal.c
    query = select(c.entry_id, c.row, c.old_row, c.new_row).join(journal, j.id == c.entry_id)
    query = query.where(c.table == models.name, c.old_row.is_not(None), j.undone_by.is_(None), j.undoes.is_(None))
    available = {record.id for record in list_models(collection) if record.is_available}
    with begin_read(collection.engine) as connection:
        for entry_id, model, old_row, new_row in connection.execute(query.order_by(c.id.desc())):
            if new_row is not None and old_row["in_use"] and not new_row["in_use"]:
                return Rollback(entry_id, model) if model in available else None
    return None


def load_model(collection: Collection, model_id: int | None = None) -> LoadedModel:
    """Load a model; None loads the one in use.

    Raises
    ------
    InputError
        There is none, or its folder is missing or damaged.
    """
    with begin_read(collection.engine) as connection:
        model_id = require_model(connection, collection.folder) if model_id is None else model_id
        row = connection.execute(_RECORDS.where(models.c.id == model_id)).first()
    if row is None:
        raise _make_unknown_error(collection, model_id)
    record = _make_record(collection, row._mapping)
    path = collection.models / record.folder
    try:
        annotator = Annotator.load(path)
        is_annotator = isinstance(annotator, Annotator)
        if not is_annotator or len(annotator.facts["label_ids"]) != len(annotator.model.vocabulary_):
            raise ModelFolderError(f"{path} is not a model of a collection")
    except (WsabieError, KeyError, TypeError) as error:
        fact = f"model {record.id} cannot be used"
        step = f"train again, or use another: {format_step('models', collection.folder, use='N')}"
        raise InputError(f"{fact} ({error}); {step}", web_message=f"{fact}; {step}") from error
    return LoadedModel(record.id, path, annotator, record)


def load_model_in_use(collection: Collection) -> LoadedModel:
    """Return the model in use; it is read once, as its folder never changes.

    Raises
    ------
    InputError
        There is none, or its folder is missing or damaged.
    """
    folder, model_id = find_model_folder(collection, None)
    return _loaded_models.get((folder, folder.is_dir()), lambda: load_model(collection, model_id))


def find_usable_model(collection: Collection) -> tuple[LoadedModel | None, str]:
    """Return the model in use, or None and the reason why it is unusable."""
    with begin_read(collection.engine) as connection:
        model_id = find_model_in_use(connection)
    if model_id is None:
        return None, NO_MODEL
    try:
        return load_model_in_use(collection), ""
    except InputError as error:
        return None, str(error)


def find_model_folder(collection: Collection, model: int | None) -> tuple[Path, int]:
    """Return the folder and the id of a model; None is the one in use."""
    with begin_read(collection.engine) as connection:
        model_id = require_model(connection, collection.folder) if model is None else model
        folder = connection.execute(select(models.c.folder).where(models.c.id == model_id)).scalar_one()
    return collection.models / folder, model_id


def use_model(collection: Collection, model_id: int, *, by: str) -> ModelSwitch:
    """Put a model into use; its earlier suggestions are there at once, and `undo` reverts the switch.

    Raises
    ------
    InputError
        There is no such model, or its folder is missing.
    """
    load_model(collection, model_id)
    with begin_entry(collection.engine, by, "models", f"model {model_id} in use") as change:
        if change.connection.scalar(select(models.c.is_removed).where(models.c.id == model_id)):
            raise InputError(f"model {model_id} was removed; choose another, or train again")
        return ModelSwitch(model_id, put_into_use(change, model_id), count_unseen_items(change.connection, model_id))


def put_into_use(change: JournalWriter, model_id: int) -> int | None:
    """Mark a model as the one in use; return the previous one."""
    previous = find_model_in_use(change.connection)
    change.update(models, {n: {"in_use": n == model_id} for n in (previous, model_id) if n is not None})
    return previous


def count_unseen_items(connection: Connection, model_id: int) -> int:
    """Return the number of items that a model has not processed."""
    v = item_scores.c
    is_scored = select(v.item_id).where(v.model_id == model_id, v.item_id == items.c.id).exists()
    query = select(func.count()).where(items.c.state == "present", items.c.hash.is_not(None), ~is_scored)
    return connection.scalar(query) or 0


def _make_record(collection: Collection, row: RowMapping) -> ModelRecord:
    return ModelRecord(**dict(row), is_available=is_model_folder(collection.models / row["folder"]))


def make_folder_name() -> str:
    """Return a name for the folder of a new model."""
    time = format_current_time()
    return f"{time[:10].replace('-', '')}-{time[11:19].replace(':', '')}-{secrets.token_hex(3)}"


def save_model(
    collection: Collection, model: Any, extractor: FeatureExtractor, row: Row, **annotator_facts: object
) -> int:
    """Save the folder, then the row, of a model that is not in use yet; return its id.

    Parameters
    ----------
    collection : Collection
    model : LabelModel
    extractor : FeatureExtractor
    row : dict
        Columns "method", "parent_id", "last_entry_id", "facts" (with the fingerprint of the extractor) and "figures".
    **annotator_facts : object
        Facts that the folder holds beside those of the row, such as "label_ids".
    """
    folder, facts = make_folder_name(), row["facts"]
    all_facts = {"system": "wsabie", "source": collection.folder.name, "fingerprint": None, **facts, **annotator_facts}
    Annotator(model, extractor, None, all_facts, facts["extractor"]).save(collection.models / folder)
    return register_model(collection, row | {"folder": folder})


def register_model(collection: Collection, row: Row) -> int:
    """Insert the row of a model that is not in use yet; return its id, which is never reused."""
    defaults = {"created_at": format_current_time(), "in_use": False, "is_removed": False}
    with begin_write(collection.engine) as connection:
        model_id = next_id(connection, models)
        connection.execute(insert(models), [defaults | row | {"id": model_id}])
    return model_id


def remove_old_models(collection: Collection, n: int, *, by: str) -> list[int]:
    """Remove folders and suggestions of all but the last `n` models and the one in use.

    Return their ids. This cannot be undone; the journal records it.
    """
    with lock_models(collection):
        old = [record.id for record in list_models(collection)[n:] if not record.in_use]
        if old:
            is_unused = models.c.id.in_(old) & models.c.in_use.is_(False)
            with begin_entry(collection.engine, by, "models", f"{len(old)} old models removed", always=True) as change:
                change.connection.execute(update(models).where(is_unused).values(is_removed=True))
        remove_unfinished_models(collection)
    return old


def remove_unfinished_models(collection: Collection) -> None:
    """Remove the remains of unfinished trainings and of removed models; the caller holds the lock."""
    c = models.c
    rows = fetch_rows(collection.engine, select(c.id, c.folder, c.in_use, c.figures, c.is_removed))
    unfinished = {row.id for row in rows if not (row.in_use or row.figures or row.is_removed)}
    for row in rows:
        if row.is_removed or row.id in unfinished:
            _delete_data(collection, row.id, row.folder)
    if unfinished:
        with begin_write(collection.engine) as connection:
            connection.execute(delete(models).where(c.id.in_(unfinished)))
    folders = {row.folder for row in rows if not row.is_removed}
    for path in collection.models.glob("*"):
        if path.name not in folders and _FOLDER_NAME.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    remove_drafts(collection.place)


def _delete_data(collection: Collection, model_id: int, folder: str) -> None:
    """Remove the folder, the suggestions and the scores of a model, a few items at a time."""
    if _FOLDER_NAME.fullmatch(folder):
        shutil.rmtree(collection.models / folder, ignore_errors=True)
    for table in (suggestions, item_scores):
        query = select(table.c.item_id).where(table.c.model_id == model_id).distinct().limit(_CHUNK)
        item_ids: Sequence[int] | None = None
        while item_ids is None or item_ids:
            with begin_write(collection.engine) as connection:
                item_ids = connection.scalars(query).all()
                connection.execute(delete(table).where(table.c.model_id == model_id, table.c.item_id.in_(item_ids)))
