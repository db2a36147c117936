"""The models of a collection: which there are, which is in use, what each was judged."""

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError, MissingError, ModelFolderError, WsabieError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use, no_model
from wsabie.catalogue.examples import HELD_OUT
from wsabie.catalogue.journal import Row, entry, last_entry
from wsabie.catalogue.probability import Judged, Sureness, Threshold, load_judged, threshold_of
from wsabie.catalogue.tables import changes, journal, labels, models, views
from wsabie.features.describer import Describer
from wsabie.models.annotator import Annotator
from wsabie.storage.folder import is_model_folder

_THRESHOLDS = 100  # kept of a model
_FOLLOWING = threading.Lock()  # many ask at once when something has changed


class Shelved(NamedTuple):
    """A model that is or was in use, or could be.

    Attributes
    ----------
    number : int
    folder : str
        Within the collection's folder of models.
    made : str
    how : str
        "full", or "corrections" of `parent`.
    parent : int or None
    learnt_to : int
        The last entry of the journal that it knows.
    in_use : bool
    there : bool
        Its folder is.
    facts, figures : dict
        What it was made of, and how it did on the held-out items.
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
        """Why it was not put into use when it was trained; empty where it was."""
        return str(self.facts.get("kept_back", ""))


class WayBack(NamedTuple):
    """The entry of the journal by which the model in use came, and the model that is in use again when it is undone."""

    entry: int
    model: int


class Used(NamedTuple):
    """A model was put into use; `before` = the one that was, `unseen` = items that it has not looked at."""

    number: int
    before: int | None
    unseen: int


@dataclass(frozen=True)
class OpenModel:
    """A model with the labels of the catalogue that its columns stand for."""

    number: int
    path: Path
    annotator: Annotator
    about: Shelved

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.annotator.model

    @property
    def describer(self) -> Describer:
        """What describes items for it."""
        return self.annotator.terms  # type: ignore[return-value]  # a model of a collection has one

    @property
    def dictionary(self) -> str:
        """The fingerprint of `describer`."""
        return str(self.annotator.dictionary)

    @property
    def held_to(self) -> float:
        """The place up to which contents were held out when it was trained: it knows none of these."""
        return float(self.about.facts.get("held_to", HELD_OUT))

    @cached_property
    def labels(self) -> Int64:
        """Numbers of labels as they were when it was trained, (n_columns,)."""
        return np.array(self.annotator.facts["label_ids"], np.int64)

    @cached_property
    def judged(self) -> Judged:
        """Its suggestions for held-out items.

        Raises
        ------
        InputError
            They are gone or damaged.
        """
        return load_judged(self.path)

    @cached_property
    def sureness(self) -> Sureness:
        """How often its suggestions are right, from their probability on.

        Raises
        ------
        InputError
            What it was judged by is gone or damaged.
        """
        return Sureness(self.judged)

    def threshold(self, precision: float) -> Threshold:
        """The probabilities from which on its suggestions are right that often.

        Raises
        ------
        InputError
            The precision is no share, or what it was judged by is gone or damaged.
        """
        found = self._thresholds.get(precision)
        if found is None:
            found = threshold_of(self.judged, precision)
            if len(self._thresholds) >= _THRESHOLDS:  # whoever asks a service chooses the precision
                self._thresholds.clear()
            self._thresholds[precision] = found
        return found

    def labels_now(self, connection: Connection) -> Int64:
        """What became of them: of a merged label the one that it went into; -1 where there is none any more."""
        at = last_entry(connection)
        with _FOLLOWING:
            if at not in self._now:
                into = {row[0]: row[1] for row in connection.execute(select(labels.c.id, labels.c.merged_into))}
                self._now.clear()
                self._now[at] = np.array([_followed(int(number), into) for number in self.labels], np.int64)
            return self._now[at]

    @cached_property
    def _thresholds(self) -> dict[float, Threshold]:
        """By precision."""
        return {}

    @cached_property
    def _now(self) -> dict[int, Int64]:
        """What became of them, by the last entry of the journal."""
        return {}


def on_shelf(collection: Collection) -> list[Shelved]:
    """All models whose training came to its end and that were not removed, last first."""
    query = select(models).where(models.c.removed.is_(False)).order_by(models.c.id.desc())
    with reading(collection.engine) as connection:
        found = [_shelved(collection, dict(row._mapping)) for row in connection.execute(query)]
    return [one for one in found if one.figures or one.in_use]


def shelved(collection: Collection, number: int) -> Shelved:
    """One of these.

    Raises
    ------
    MissingError
        There is none, or it was removed.
    """
    for one in on_shelf(collection):
        if one.number == number:
            return one
    said = f"there is no model {number}"
    raise MissingError(f"{said}; `wsabie collection models {quote(str(collection.folder))}` lists them", served=said)


def removed(collection: Collection) -> list[int]:
    """Numbers of models that were removed, last first."""
    query = select(models.c.id).where(models.c.removed.is_(True), models.c.figures != {}).order_by(models.c.id.desc())
    with reading(collection.engine) as connection:
        return list(connection.execute(query).scalars())


def way_back(collection: Collection) -> WayBack | None:
    """How to go back to the model that was in use before; None where there was none, or it was removed."""
    c, j = changes.c, journal.c
    query = select(c.entry_id, c.row, c.before, c.after).join(journal, j.id == c.entry_id)
    query = query.where(c.table == models.name, c.before.is_not(None), j.undone_by.is_(None), j.undoes.is_(None))
    there = {one.number for one in on_shelf(collection) if one.there}
    with reading(collection.engine) as connection:
        last: int | None = None
        for number, model, before, after in connection.execute(query.order_by(c.entry_id.desc(), c.id.desc())):
            if last not in (None, number):
                break
            if after is not None and before["in_use"] != after["in_use"]:
                last = number
                if before["in_use"]:
                    return WayBack(number, model) if model in there else None
    return None


def open_model(collection: Collection, number: int | None = None) -> OpenModel:
    """A model; None: the one in use.

    Raises
    ------
    InputError
        There is none, or its folder is gone or damaged.
    """
    with reading(collection.engine) as connection:
        number = model_in_use(connection) if number is None else number
        row = connection.execute(select(models).where(models.c.id == number)).first()
        if number is None:
            raise no_model(connection, collection.folder)
    if row is None:
        said = f"there is no model {number}"
        raise InputError(f"{said}; `wsabie collection models {quote(str(collection.folder))}` lists them", served=said)
    about = _shelved(collection, dict(row._mapping))
    path = collection.models / about.folder
    try:
        annotator = Annotator.load(path)
        if not isinstance(annotator, Annotator) or len(annotator.facts["label_ids"]) != len(
            annotator.model.vocabulary_
        ):
            raise ModelFolderError(f"{path} is no model of a collection")
    except (WsabieError, KeyError, TypeError) as error:
        raise InputError(
            f"model {about.number} cannot be used ({error}); train again, or use another: wsabie collection models "
            f"{quote(str(collection.folder))} --use N",
            served=f"model {about.number} cannot be used; train again, or choose another on the page Training",
        ) from error
    return OpenModel(about.number, path, annotator, about)


def use(collection: Collection, number: int, *, by: str) -> Used:
    """Put a model into use; what it had suggested is there at once, and `undo` puts the other one back.

    Raises
    ------
    InputError
        There is no such model, or its folder is gone.
    """
    open_model(collection, number)
    with entry(collection.engine, by, "models", f"model {number} in use") as change:
        before = model_in_use(change.connection)
        if change.connection.execute(select(models.c.removed).where(models.c.id == number)).scalar():
            raise InputError(f"model {number} was removed; choose another, or train again")
        change.set(models, {n: {"in_use": n == number} for n in (before, number) if n is not None})
    with reading(collection.engine) as connection:
        return Used(number, before, unseen(connection, number))


def unseen(connection: Connection, number: int) -> int:
    """Items that a model has not looked at."""
    from wsabie.catalogue.tables import items

    seen = select(views.c.item_id).where(views.c.model_id == number, views.c.item_id == items.c.id).exists()
    query = select(func.count()).where(items.c.state == "present", items.c.hash.is_not(None), ~seen)
    return connection.execute(query).scalar() or 0


def _shelved(collection: Collection, row: Row) -> Shelved:
    there = not row["removed"] and is_model_folder(collection.models / row["folder"])
    given = {name: row[name] for name in ("folder", "made", "how", "learnt_to", "in_use", "facts", "figures")}
    return Shelved(number=row["id"], parent=row["parent_id"], there=there, **given)


def _followed(number: int, into: dict[int, int | None]) -> int:
    for _ in range(len(into) + 1):
        if number not in into:
            return -1
        after = into[number]
        if after is None:
            return number
        number = after
    raise RecursionError("labels were merged in a circle")
