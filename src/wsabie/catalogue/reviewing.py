"""What people do with suggestions: decide about some by name, or accept all from a probability on."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select

from wsabie.base.errors import MissingError
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import Decision, State, Written, decide, model_in_use, no_model
from wsabie.catalogue.journal import entry, rows_of
from wsabie.catalogue.suggesting import accept, waiting
from wsabie.catalogue.tables import items
from wsabie.sources.regions import parse_region

_TOLD = 3


class Wanted(NamedTuple):
    """A label, by name, fits an item (or a region of it), or does not; None: as if nothing had been decided."""

    item: int
    label: str
    state: State | None
    region: str = ""


def review(collection: Collection, wanted: Sequence[Wanted], *, by: str) -> Written:
    """Decide about items, as one entry of the journal; labels that are new are made where they are accepted.

    Raises
    ------
    InputError
        There is no such item, a name cannot be a label, or a region cannot be read.
    UnknownLabelError
        A label that nobody knows is rejected or cleared.
    """
    for one in wanted:
        if one.region:
            parse_region(one.region)
    spelt = {one.label: book.spelt(one.label) for one in wanted}
    with entry(collection.engine, by, "review", _told(wanted)) as change:
        numbers = {one.item for one in wanted}
        there = {row["id"] for row in rows_of(change.connection, items, numbers)}
        if numbers - there:
            raise MissingError(f"there is no item {min(numbers - there)}")
        known = book.ensure(change, [spelt[one.label] for one in wanted if one.state == "accepted"])
        for name in {spelt[one.label] for one in wanted} - known.keys():
            known[name] = book.found_one(change.connection, name)
        done = decide(change, [Decision(w.item, known[spelt[w.label]], w.state, w.region) for w in wanted])
    return Written(change.id if done.added + done.changed + done.removed else None, done)


def count_above(collection: Collection, probability: float, label: str | None = None) -> int:
    """How many suggestions of the model in use, of a label or of all, wait from a probability on."""
    with reading(collection.engine) as connection:
        model = model_in_use(connection)
        number = None if label is None else book.found_one(connection, label)
        if model is None:
            return 0
        found = waiting(model, probability, number).subquery()
        return connection.execute(select(func.count()).select_from(found)).scalar() or 0


def accept_above(collection: Collection, probability: float, label: str | None = None, *, by: str) -> Written:
    """Accept them, as one entry of the journal; each is noted as accepted by the model.

    Raises
    ------
    InputError
        There is no model.
    """
    with reading(collection.engine) as connection:
        model = model_in_use(connection)
        number = None if label is None else book.found_one(connection, label)
        if model is None:
            raise no_model(connection, collection.folder)
    return accept(collection, model, probability, label=number, by=by)


def _told(wanted: Sequence[Wanted]) -> str:
    """A line for the journal: what and of how many."""
    signs: dict[State | None, str] = {"accepted": "+", "rejected": "-", None: "?"}
    named = list(dict.fromkeys(f"{signs[one.state]}{one.label}" for one in wanted))
    n = len({one.item for one in wanted})
    more = f" and {len(named) - _TOLD} more" if len(named) > _TOLD else ""
    return f"{n:,} {'item' if n == 1 else 'items'}: {', '.join(named[:_TOLD])}{more}"
