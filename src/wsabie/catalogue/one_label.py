"""One label with all that is known of it, labels near it, and a few pictures of some labels."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, func, or_, select, union_all

from wsabie.base.errors import InputError
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.label_space import neighbours
from wsabie.catalogue.points import opened_model
from wsabie.catalogue.probability import PRECISIONS
from wsabie.catalogue.shelf import OpenModel
from wsabie.catalogue.suggesting import waiting
from wsabie.catalogue.tables import annotations, items, kept_apart, labels, synonyms
from wsabie.catalogue.tidying import Named, merged_into
from wsabie.catalogue.vocabulary import Label, counted, label_of

CHILDREN = 500
"""Labels below one that are told, at most, the most frequent."""

_AT_ONCE = 500
_TOGETHER = 100  # a part of a query for each: an index gives it the newest few, where a window would read all


class Near(NamedTuple):
    """A label near to one in the space of the model in use."""

    label: Named
    cosine: float


class Synonym(NamedTuple):
    """Another name of a label."""

    name: str
    language: str


class Limit(NamedTuple):
    """From which probability on suggestions are right so often (None: from none), and whether it is the label's own."""

    precision: float
    probability: float | None
    own: bool


class HeldOut(NamedTuple):
    """How a model did for one label.

    Attributes
    ----------
    model : int
    known : bool
        Whether it has learnt the label.
    suggested, right : int
        Its suggestions for held-out items, and those that are among the tags there.
    limits : list of Limit
    """

    model: int
    known: bool
    suggested: int
    right: int
    limits: list[Limit]


class Whole(NamedTuple):
    """A label.

    Attributes
    ----------
    label : Label
    names : list of Synonym
        Its other names.
    above : list of Named
        The labels above it, nearest first.
    below : list of Named
        Those right below it.
    apart : list of Named
        Those that it is not to be merged with.
    waiting : int
        Suggestions of the model in use that nobody has decided.
    held_out : HeldOut or None
        By the model in use; None where there is none, or it cannot be opened.
    """

    label: Label
    names: list[Synonym]
    above: list[Named]
    below: list[Named]
    apart: list[Named]
    waiting: int
    held_out: HeldOut | None


class Example(NamedTuple):
    """An item that has a label, and the hash of its content."""

    id: int
    hash: str | None


def whole(collection: Collection, number: int) -> Whole:
    """A label by its number.

    Raises
    ------
    MissingError
        There is none, or it was merged into another.
    """
    opened = _opened(collection)
    with reading(collection.engine) as connection:
        book.label(connection, number)
        row = connection.execute(counted(number)).one()
        s, c = synonyms.c, labels.c
        query = select(s.name, s.language).where(s.label_id == number).order_by(s.language, s.name)
        names = [Synonym(*found) for found in connection.execute(query)]
        children = (
            connection.execute(select(c.id).where(c.parent_id == number, c.merged_into.is_(None))).scalars().all()
        )
        model, became = model_in_use(connection), merged_into(connection)
        below = sorted(others(connection, children).values(), key=lambda one: (-one.items, one.name))
        return Whole(
            label_of(row, [one.name for one in names], len(children)),
            names,
            _in_order(connection, book.above(connection, number)),
            below[:CHILDREN],
            _in_order(connection, _apart(connection, number, became)),
            0 if model is None else _count(connection, waiting(model, 0, number)),
            None if opened is None else _held_out(opened, connection, number, became),
        )


def near(collection: Collection, number: int, k: int = 10) -> list[Near]:
    """The labels nearest to a label, nearest first; none where no model knows it.

    Raises
    ------
    MissingError
        There is no such label.
    """
    with reading(collection.engine) as connection:
        book.label(connection, number)
    found = neighbours(collection, number, k)
    with reading(collection.engine) as connection:
        there = others(connection, [other for other, _, _ in found])
    return [Near(there[other], cosine) for other, _, cosine in found if other in there]


def others(connection: Connection, numbers: Sequence[int]) -> dict[int, Named]:
    """Labels by number, those that were merged left out."""
    found: dict[int, Named] = {}
    a, c = annotations.c, labels.c
    for lo in range(0, len(numbers), _AT_ONCE):
        part = numbers[lo : lo + _AT_ONCE]
        counts = select(a.label_id, func.count(a.item_id.distinct())).where(a.label_id.in_(part), a.state == "accepted")
        items_of: dict[int, int] = {row[0]: row[1] for row in connection.execute(counts.group_by(a.label_id))}
        query = select(c.id, c.name, c.language).where(c.id.in_(part), c.merged_into.is_(None))
        found |= {row[0]: Named(*row, items_of.get(row[0], 0)) for row in connection.execute(query)}
    return found


def examples(connection: Connection, numbers: Iterable[int], k: int) -> dict[int, list[Example]]:
    """A few items that have each of some labels, the newest first."""
    wanted, a, c = list(numbers), annotations.c, items.c
    joined = annotations.join(items, c.id == a.item_id)
    query = select(a.label_id, a.item_id, c.hash).select_from(joined).distinct()
    query = query.where(a.state == "accepted", c.state == "present").order_by(a.item_id.desc()).limit(k)
    found: dict[int, list[Example]] = {number: [] for number in wanted}
    for lo in range(0, len(wanted), _TOGETHER):
        each = (query.where(a.label_id == number).subquery() for number in wanted[lo : lo + _TOGETHER])
        for number, *item in connection.execute(union_all(*map(select, each))):
            found[number].append(Example(*item))
    return {number: sorted(shown, reverse=True) for number, shown in found.items()}


def _in_order(connection: Connection, numbers: Sequence[int]) -> list[Named]:
    there = others(connection, numbers)
    return [there[number] for number in numbers if number in there]


def _apart(connection: Connection, number: int, became: dict[int, int]) -> list[int]:
    """What a label is kept apart from; of labels that were merged, what they became."""
    own = [number, *(gone for gone, into in became.items() if into == number)]
    c, found = kept_apart.c, set[int]()
    for lo in range(0, len(own), _AT_ONCE):
        part = own[lo : lo + _AT_ONCE]
        query = select(c.label_a, c.label_b).where(or_(c.label_a.in_(part), c.label_b.in_(part)))
        found.update(became.get(one, one) for row in connection.execute(query) for one in row)
    return sorted(found - {number})


def _opened(collection: Collection) -> OpenModel | None:
    try:
        return opened_model(collection)
    except InputError:  # of which the routes and commands that need it tell
        return None


def _held_out(opened: OpenModel, connection: Connection, number: int, became: dict[int, int]) -> HeldOut | None:
    try:
        judged = opened.judged
        limits = [opened.threshold(precision) for precision in PRECISIONS]
    except InputError:
        return None
    own = [number, *(gone for gone, into in became.items() if into == number)]
    chosen = np.isin(judged.labels, own)
    return HeldOut(
        opened.number,
        bool((opened.labels_now(connection) == number).any()),
        int(chosen.sum()),
        int(judged.right[chosen].sum()),
        [Limit(one.precision, one.own.get(number, one.common), number in one.own) for one in limits],
    )


def _count(connection: Connection, query: Any) -> int:
    return connection.execute(select(func.count()).select_from(query.subquery())).scalar() or 0
