"""What was decided, a page at a time, newest first.

Newest is what was first decided last: rows are walked by their numbers, and one that was changed later keeps its place.
By `at` it would want an index, and without one the first page alone would look through all rows.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Select, select

from wsabie.base.errors import InputError
from wsabie.catalogue import book, cursors
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.tables import annotations, items, labels

LARGEST = 1_000
"""Annotations of a page, at most."""
SORTED = 20_000
"""Up to so many of a label are sorted; of more, all annotations are walked until enough are of it."""

_SORT = "-decided"
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?)?)?)?Z?")


@dataclass(frozen=True)
class Sought:
    """Which annotations are wanted; all that is said must hold.

    Attributes
    ----------
    item : int or None
        Its number.
    label : str or None
        Its name or a synonym.
    state : {"accepted", "rejected"} or None
    origin : {"person", "import", "model"} or None
    by : str or None
        The person, or what was imported.
    model : int or None
        The number of the one that had suggested it.
    since, until : str or None
        Of the last change: days or times in UTC such as "2026-05" or "2026-05-01T12:00"; `until` holds to its own end.
    """

    item: int | None = None
    label: str | None = None
    state: Literal["accepted", "rejected"] | None = None
    origin: Literal["person", "import", "model"] | None = None
    by: str | None = None
    model: int | None = None
    since: str | None = None
    until: str | None = None


class Decided(NamedTuple):
    """A row of `annotations`, with the path of its item and the name of its label."""

    id: int
    item: int
    path: str
    label_id: int
    label: str
    region: str
    state: str
    origin: str
    by: str
    at: str
    model: int | None
    score: float | None
    probability: float | None


class Page(NamedTuple):
    """Some annotations.

    Attributes
    ----------
    annotations : tuple of Decided
    next_cursor : str or None
        For the page after; None: this was the last.
    """

    annotations: tuple[Decided, ...]
    next_cursor: str | None


def page(collection: Collection, sought: Sought | None = None, *, cursor: str | None = None, limit: int = 100) -> Page:
    """The annotations after a cursor.

    Parameters
    ----------
    collection : Collection
    sought : Sought or None
        None: all.
    cursor : str or None
        `next_cursor` of the page before.
    limit : int
        1 to 1,000.

    Raises
    ------
    InputError
        Something that is asked for, or the cursor, cannot be.
    UnknownLabelError
        There is no such label.
    """
    sought = sought or Sought()
    if not 1 <= limit <= LARGEST:
        raise InputError(f"a page has 1 to {LARGEST:,} annotations, not {limit}; choose another limit")
    after = None if cursor is None else cursors.read(cursor, _SORT)
    with reading(collection.engine) as connection:
        query = _numbers(connection, sought)
        if after is not None:
            query = query.where(annotations.c.id < after.id)
        numbers = list(connection.execute(query.limit(limit + 1)).scalars())
        found = _rows(connection, numbers[:limit])
    more = cursors.written(cursors.Cursor(_SORT, None, numbers[limit - 1])) if len(numbers) > limit else None
    return Page(found, more)


def _numbers(connection: Connection, sought: Sought) -> Select[tuple[Any]]:
    """Numbers of annotations in their order."""
    a = annotations.c
    query, few = select(a.id), sought.item is not None
    if sought.item is not None:
        query = query.where(a.item_id == _number(sought.item))
    if sought.label is not None:
        label = book.found_one(connection, sought.label)
        first = select(a.id).where(a.label_id == label).limit(SORTED + 1)
        few = few or len(connection.execute(first).all()) <= SORTED
        query = query.where((a.label_id if few else a.label_id + 0) == label)  # with + 0 no index is tempted
    same = ((a.state, sought.state), (a.origin, sought.origin), (a.by, sought.by))
    query = query.where(*(column == value for column, value in same if value is not None))
    if sought.model is not None:
        query = query.where(a.model_id == _number(sought.model))
    if sought.since is not None:
        query = query.where(a.at >= _time(sought.since))
    if sought.until is not None:
        query = query.where(a.at < _time(sought.until) + "~")  # after all that begin so
    return query.order_by((a.id + 0 if few else a.id).desc())  # few are sorted, many walked


def _rows(connection: Connection, numbers: list[int]) -> tuple[Decided, ...]:
    a, i, names = annotations.c, items.c, labels.c
    what = (a.id, a.item_id, i.path, a.label_id, names.name, a.region, a.state, a.origin, a.by, a.at)
    joined = annotations.join(items, i.id == a.item_id).join(labels, names.id == a.label_id)
    query = select(*what, a.model_id, a.score, a.probability).select_from(joined).where(a.id.in_(numbers))
    return tuple(Decided._make(row) for row in connection.execute(query.order_by(a.id.desc())))


def _number(number: int) -> int:
    if not 0 < number < 2**63:
        raise InputError(f"{number} is no number of an item or a model; they count from 1 on")
    return number


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise InputError(f"{text[:40]!r} is no time; write it such as 2026-05 or 2026-05-01T12:00, in UTC")
    return text.removesuffix("Z")
