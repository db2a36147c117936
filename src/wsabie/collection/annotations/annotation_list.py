"""Pages of annotations, newest first.

The newest annotation is the one that was first decided last: rows are walked by their ids, and a row that changed later
keeps its place. Sorting by `at` would need an index; without one the first page alone would scan all rows.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Select, select

from wsabie.collection.db import cursors
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.tables import annotations, items, labels
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError

LARGEST = 1_000
"""Maximum number of annotations on a page."""
SORTED = 20_000
"""Largest number of annotations of a label that are sorted; above it all annotations are walked until enough match."""

_SORT = "-decided"
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?)?)?)?Z?")


@dataclass(frozen=True)
class AnnotationFilter:
    """Filter of annotations; every condition that is set must hold.

    Attributes
    ----------
    item : int or None
        Item id.
    label : str or None
        Name or synonym.
    state : {"accepted", "rejected"} or None
    origin : {"person", "import", "model"} or None
    by : str or None
        The person, or the name of the imported file.
    model : int or None
        Id of the model that suggested the label.
    since, until : str or None
        Bounds of the last change, days or times in UTC such as "2026-05" or "2026-05-01T12:00"; `until` is inclusive.
    """

    item: int | None = None
    label: str | None = None
    state: Literal["accepted", "rejected"] | None = None
    origin: Literal["person", "import", "model"] | None = None
    by: str | None = None
    model: int | None = None
    since: str | None = None
    until: str | None = None


class AnnotationRecord(NamedTuple):
    """Row of `annotations` with the path of its item and the name of its label."""

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


class AnnotationPage(NamedTuple):
    """Page of annotations.

    Attributes
    ----------
    annotations : tuple of AnnotationRecord
    next_cursor : str or None
        Cursor of the next page; None on the last page.
    """

    annotations: tuple[AnnotationRecord, ...]
    next_cursor: str | None


def read_annotation_page(
    collection: Collection, criteria: AnnotationFilter | None = None, *, cursor: str | None = None, limit: int = 100
) -> AnnotationPage:
    """Return the page of annotations after a cursor.

    Parameters
    ----------
    collection : Collection
    criteria : AnnotationFilter or None
        None selects all annotations.
    cursor : str or None
        `next_cursor` of the previous page.
    limit : int
        Page size, 1 to 1,000.

    Raises
    ------
    InputError
        The filter, the limit or the cursor is invalid.
    UnknownLabelError
        There is no such label.
    """
    criteria = criteria or AnnotationFilter()
    if not 1 <= limit <= LARGEST:
        raise InputError(f"a page has 1 to {LARGEST:,} annotations, not {limit}; choose another limit")
    position = None if cursor is None else cursors.decode_cursor(cursor, _SORT)
    with begin_read(collection.engine) as connection:
        query = _select_ids(connection, criteria)
        if position is not None:
            query = query.where(annotations.c.id < position.id)
        numbers = list(connection.execute(query.limit(limit + 1)).scalars())
        records = _read_records(connection, numbers[:limit])
    next_cursor = (
        cursors.encode_cursor(cursors.Cursor(_SORT, None, numbers[limit - 1])) if len(numbers) > limit else None
    )
    return AnnotationPage(records, next_cursor)


def _select_ids(connection: Connection, criteria: AnnotationFilter) -> Select[tuple[Any]]:
    """Return the query for the annotation ids in page order."""
    a = annotations.c
    query, is_small = select(a.id), criteria.item is not None
    if criteria.item is not None:
        query = query.where(a.item_id == _check_id(criteria.item))
    if criteria.label is not None:
        label = label_store.find_label(connection, criteria.label)
        sample = select(a.id).where(a.label_id == label).limit(SORTED + 1)
        is_small = is_small or len(connection.execute(sample).all()) <= SORTED
        query = query.where((a.label_id if is_small else a.label_id + 0) == label)  # + 0 keeps the index of labels out
    equalities = ((a.state, criteria.state), (a.origin, criteria.origin), (a.by, criteria.by))
    query = query.where(*(column == value for column, value in equalities if value is not None))
    if criteria.model is not None:
        query = query.where(a.model_id == _check_id(criteria.model))
    if criteria.since is not None:
        query = query.where(a.at >= _parse_time(criteria.since))
    if criteria.until is not None:
        query = query.where(a.at < _parse_time(criteria.until) + "~")  # "~" sorts after every time with this prefix
    return query.order_by((a.id + 0 if is_small else a.id).desc())  # sort a small result, walk a large one


def _read_records(connection: Connection, numbers: list[int]) -> tuple[AnnotationRecord, ...]:
    a, i, names = annotations.c, items.c, labels.c
    columns = (a.id, a.item_id, i.path, a.label_id, names.name, a.region, a.state, a.origin, a.by, a.at)
    tables = annotations.join(items, i.id == a.item_id).join(labels, names.id == a.label_id)
    query = select(*columns, a.model_id, a.score, a.probability).select_from(tables).where(a.id.in_(numbers))
    return tuple(AnnotationRecord._make(row) for row in connection.execute(query.order_by(a.id.desc())))


def _check_id(number: int) -> int:
    if not 0 < number < 2**63:
        raise InputError(f"{number} is no number of an item or a model; they count from 1 on")
    return number


def _parse_time(text: str) -> str:
    if not _TIME.fullmatch(text):
        raise InputError(f"{text[:40]!r} is no time; write it such as 2026-05 or 2026-05-01T12:00, in UTC")
    return text.removesuffix("Z")
