"""Details of one item, and the folders and labels by which a collection can be filtered."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, exists, func, not_, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.tables import annotations, item_scores, items, labels, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.core.errors import NotFoundError


class Annotation(NamedTuple):
    """Decision on a label of an item: a row of `annotations` with the label's name."""

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


class Suggestion(NamedTuple):
    """Undecided suggestion of the model in use; `at` is the time of the prediction."""

    label_id: int
    label: str
    score: float
    probability: float
    at: str | None


class AnnotatedItem(NamedTuple):
    """Item with its annotations and suggestions.

    Attributes
    ----------
    item : dict
        Row of `items`.
    best_probability, uncertainty : float or None
        Scores of the model in use; None: no prediction yet.
    annotations : tuple of Annotation
        Sorted by label name.
    suggestions : tuple of Suggestion
        Most probable first.
    """

    item: dict[str, Any]
    best_probability: float | None
    uncertainty: float | None
    annotations: tuple[Annotation, ...]
    suggestions: tuple[Suggestion, ...]


class FolderFacet(NamedTuple):
    """Folder of a root with the number of present items directly in it."""

    root: int
    folder: str
    items: int


class LabelFacet(NamedTuple):
    """Label with the number of items that accept, reject, or still await it."""

    id: int
    label: str
    accepted: int
    rejected: int
    suggested: int


class Facets(NamedTuple):
    """Folders in order, and labels with the most accepted first."""

    folders: tuple[FolderFacet, ...]
    labels: tuple[LabelFacet, ...]


def read_item_details(collection: Collection, number: int) -> AnnotatedItem:
    """Return an item by its id.

    Raises
    ------
    NotFoundError
        There is no such item.
    """
    with begin_read(collection.engine) as connection:
        row = connection.execute(select(items).where(items.c.id == number)).first() if abs(number) < 2**63 else None
        if row is None:
            message = f"there is no item number {number}"
            raise NotFoundError(f"{message}; `wsabie collection status` says what there is", served=message)
        model = find_model_in_use(connection)
        columns = item_scores.c
        scores = connection.execute(
            select(columns.best_probability, columns.uncertainty).where(
                columns.model_id == model, columns.item_id == number
            )
        ).first()
        return AnnotatedItem(
            dict(row._mapping),
            None if scores is None else scores.best_probability,
            None if scores is None else scores.uncertainty,
            _read_annotations(connection, number),
            _read_suggestions(connection, number, model),
        )


def read_facets(collection: Collection) -> Facets:
    """Return folders and labels with their counts; label counts include items in any state."""
    c, a, s = items.c, annotations.c, suggestions.c
    folders = select(c.root_id, c.folder, func.count()).where(c.state == "present").group_by(c.root_id, c.folder)
    is_whole_item = a.region == ""
    decided = select(a.label_id, a.state, func.count()).group_by(a.label_id, a.state)
    with begin_read(collection.engine) as connection:
        folder_facets = tuple(FolderFacet(*row) for row in connection.execute(folders.order_by(c.root_id, c.folder)))
        counts = {(row[0], row[1]): row[2] for row in connection.execute(decided)}
        model = find_model_in_use(connection)
        suggested: dict[int, int] = {}
        if model is not None:
            is_from_model = s.model_id == model
            suggested = _read_counts(
                connection, select(s.label_id, func.count()).where(is_from_model).group_by(s.label_id)
            )
            pairs = annotations.join(suggestions, and_(is_from_model, s.item_id == a.item_id, s.label_id == a.label_id))
            decided_suggestions = (
                select(a.label_id, func.count()).select_from(pairs).where(is_whole_item).group_by(a.label_id)
            )
            for label, count in _read_counts(connection, decided_suggestions).items():
                suggested[label] -= count
        rows = connection.execute(select(labels.c.id, labels.c.name).where(labels.c.merged_into.is_(None))).all()
    label_facets = [
        LabelFacet(
            count, name, counts.get((count, "accepted"), 0), counts.get((count, "rejected"), 0), suggested.get(count, 0)
        )
        for count, name in rows
    ]
    return Facets(folder_facets, tuple(sorted(label_facets, key=lambda label: (-label.accepted, label.label))))


def _read_annotations(connection: Connection, number: int) -> tuple[Annotation, ...]:
    a, names = annotations.c, labels.c
    columns = (a.region, a.state, a.origin, a.by, a.at, a.model_id, a.score, a.probability)
    query = select(names.id, names.name, *columns).join(labels, names.id == a.label_id).where(a.item_id == number)
    return tuple(Annotation._make(row) for row in connection.execute(query.order_by(names.name, a.region)))


def _read_suggestions(connection: Connection, number: int, model: int | None) -> tuple[Suggestion, ...]:
    s, a, names = suggestions.c, annotations.c, labels.c
    decided = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
    is_viewed = and_(item_scores.c.model_id == s.model_id, item_scores.c.item_id == s.item_id)
    query = select(names.id, names.name, s.score, s.probability, item_scores.c.scored_at).join(
        labels, names.id == s.label_id
    )
    query = query.outerjoin(item_scores, is_viewed)
    query = query.where(s.model_id == model, s.item_id == number, not_(decided))
    return tuple(Suggestion._make(row) for row in connection.execute(query.order_by(s.probability.desc(), names.name)))


def _read_counts(connection: Connection, query: Any) -> dict[int, int]:
    return {row[0]: row[1] for row in connection.execute(query)}
