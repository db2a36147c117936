"""Details of one item, and the folders and labels by which a collection can be filtered."""

from dataclasses import dataclass
from itertools import starmap
from typing import Literal, NamedTuple

from sqlalchemy import Connection, and_, exists, func, not_, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import Row
from wsabie.collection.db.tables import annotations, item_scores, items, labels, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.core.errors import NotFoundError


@dataclass(frozen=True)
class Annotation:
    """Decision on a label of an item: a row of `annotations` with the label's name."""

    label_id: int
    label: str
    region: str
    state: Literal["accepted", "rejected"]
    origin: Literal["person", "import", "model"]
    by: str
    at: str
    model: int | None
    score: float | None
    probability: float | None


@dataclass(frozen=True)
class Suggestion:
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

    item: Row
    best_probability: float | None
    uncertainty: float | None
    annotations: tuple[Annotation, ...]
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True)
class FolderFacet:
    """Folder of a root with the number of present items directly in it."""

    root: int
    folder: str
    items: int


@dataclass(frozen=True)
class LabelFacet:
    """Label with the number of items that accept, reject, or still await it."""

    id: int
    name: str
    accepted: int
    rejected: int
    open_suggestions: int


@dataclass(frozen=True)
class Facets:
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
            raise NotFoundError(f"there is no item number {number}")
        model = find_model_in_use(connection)
        v = item_scores.c
        query = select(v.best_probability, v.uncertainty).where(v.model_id == model, v.item_id == number)
        best, uncertainty = connection.execute(query).first() or (None, None)
        return AnnotatedItem(
            dict(row._mapping),
            best,
            uncertainty,
            _read_annotations(connection, number),
            _read_suggestions(connection, number, model),
        )


def read_facets(collection: Collection) -> Facets:
    """Return folders and labels with their counts; label counts include items in any state."""
    c, a, s = items.c, annotations.c, suggestions.c
    folders = select(c.root_id, c.folder, func.count()).where(c.state == "present").group_by(c.root_id, c.folder)
    decided = select(a.label_id, a.state, func.count()).group_by(a.label_id, a.state)
    with begin_read(collection.engine) as connection:
        folder_facets = tuple(starmap(FolderFacet, connection.execute(folders.order_by(c.root_id, c.folder))))
        counts = {(row[0], row[1]): row[2] for row in connection.execute(decided)}
        model = find_model_in_use(connection)
        suggested: dict[int, int] = {}
        if model is not None:
            is_from_model = s.model_id == model
            waiting = select(s.label_id, func.count()).where(is_from_model).group_by(s.label_id)
            suggested |= dict(connection.execute(waiting).all())
            pairs = annotations.join(suggestions, and_(is_from_model, s.item_id == a.item_id, s.label_id == a.label_id))
            reviewed = select(a.label_id, func.count()).select_from(pairs).where(a.region == "").group_by(a.label_id)
            for label, count in connection.execute(reviewed):
                suggested[label] -= count
        rows = connection.execute(select(labels.c.id, labels.c.name).where(labels.c.merged_into.is_(None))).all()
    label_facets = [
        LabelFacet(
            number,
            name,
            counts.get((number, "accepted"), 0),
            counts.get((number, "rejected"), 0),
            suggested.get(number, 0),
        )
        for number, name in rows
    ]
    return Facets(folder_facets, tuple(sorted(label_facets, key=lambda label: (-label.accepted, label.name))))


def _read_annotations(connection: Connection, number: int) -> tuple[Annotation, ...]:
    a, names = annotations.c, labels.c
    columns = (a.region, a.state, a.origin, a.by, a.at, a.model_id, a.score, a.probability)
    query = select(names.id, names.name, *columns).join(labels, names.id == a.label_id).where(a.item_id == number)
    return tuple(starmap(Annotation, connection.execute(query.order_by(names.name, a.region))))


def _read_suggestions(connection: Connection, number: int, model: int | None) -> tuple[Suggestion, ...]:
    s, a, names = suggestions.c, annotations.c, labels.c
    decided = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
    is_viewed = and_(item_scores.c.model_id == s.model_id, item_scores.c.item_id == s.item_id)
    query = (
        select(names.id, names.name, s.score, s.probability, item_scores.c.scored_at)
        .join(labels, names.id == s.label_id)
        .outerjoin(item_scores, is_viewed)
        .where(s.model_id == model, s.item_id == number, not_(decided))
    )
    return tuple(starmap(Suggestion, connection.execute(query.order_by(s.probability.desc(), names.name))))
