"""Annotations of items, the decisions that were written, page by page.

Pages of annotations begin with the newest, the one that was first decided last: rows are walked by their ids, and a row
that changed later keeps its place. Sorting by `at` would need an index; without one the first page alone would scan all
rows.
"""

from dataclasses import dataclass
from itertools import starmap

from sqlalchemy import Connection, select

from wsabie.collection.annotations.decisions import Origin, State
from wsabie.collection.db.cursors import make_next_cursor, read_position
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import check_time
from wsabie.collection.db.tables import Query, annotations, items, labels
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError

SORTED = 20_000
"""Largest number of annotations of a label that are sorted; above it all annotations are walked until enough match."""
_SORT = "-decided"
_COLUMNS = ("region", "state", "origin", "by", "at", "model_id", "score", "probability")
_ANNOTATIONS = select(labels.c.id, labels.c.name, *(annotations.c[n] for n in _COLUMNS)).join_from(annotations, labels)
_RECORDS = _ANNOTATIONS.add_columns(annotations.c.id, annotations.c.item_id, items.c.path).join(items)


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
    state: State | None = None
    origin: Origin | None = None
    by: str | None = None
    model: int | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class Annotation:
    """Decision on a label of an item: a row of `annotations` with the label's name."""

    label_id: int
    label: str
    region: str
    state: State
    origin: Origin
    by: str
    at: str
    model: int | None
    score: float | None
    probability: float | None


@dataclass(frozen=True)
class AnnotationRecord(Annotation):
    """Row of `annotations` with the path of its item and the name of its label."""

    id: int
    item: int
    path: str


@dataclass(frozen=True)
class AnnotationPage:
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
    position = read_position(cursor, _SORT, limit, "annotations")
    with begin_read(collection.engine) as connection:
        query = _select_ids(connection, criteria or AnnotationFilter())
        if position is not None:
            query = query.where(annotations.c.id < position.id)
        ids = connection.scalars(query.limit(limit + 1)).all()
        rows = connection.execute(_RECORDS.where(annotations.c.id.in_(ids[:limit])).order_by(annotations.c.id.desc()))
        records = tuple(starmap(AnnotationRecord, rows))
    return AnnotationPage(records, make_next_cursor([(row_id, None) for row_id in ids], _SORT, limit))


def _select_ids(connection: Connection, criteria: AnnotationFilter) -> Query:
    """Return the query for the annotation ids in page order."""
    a = annotations.c
    query, is_small = select(a.id), criteria.item is not None
    if criteria.label is not None:
        label = label_store.find_label(connection, criteria.label)
        sample = select(a.id).where(a.label_id == label).limit(SORTED + 1)
        is_small = is_small or len(connection.execute(sample).all()) <= SORTED
        query = query.where((a.label_id if is_small else a.label_id + 0) == label)  # + 0 keeps the index of labels out
    id_conditions = ((a.item_id, _check_id(criteria.item)), (a.model_id, _check_id(criteria.model)))
    equalities = (*id_conditions, (a.state, criteria.state), (a.origin, criteria.origin), (a.by, criteria.by))
    query = query.where(*(column == value for column, value in equalities if value is not None))
    if criteria.since is not None:
        query = query.where(a.at >= check_time(criteria.since, ", in UTC"))
    if criteria.until is not None:  # "~" sorts after every time with this prefix
        query = query.where(a.at < check_time(criteria.until, ", in UTC") + "~")
    return query.order_by((a.id + 0 if is_small else a.id).desc())  # sort a small result, walk a large one


def read_item_annotations(connection: Connection, item: int) -> tuple[Annotation, ...]:
    """Return the annotations of an item, by label name and region."""
    query = _ANNOTATIONS.where(annotations.c.item_id == item).order_by(labels.c.name, annotations.c.region)
    return tuple(starmap(Annotation, connection.execute(query)))


def _check_id(entity_id: int | None) -> int | None:
    if entity_id is not None and not 0 < entity_id < 2**63:
        raise InputError(f"{entity_id} is not the id of an item or a model; ids count from 1")
    return entity_id
