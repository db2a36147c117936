"""One item with all that is decided and suggested of it; and what a whole collection can be narrowed by."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, exists, func, not_, select

from wsabie.base.errors import MissingError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.tables import annotations, items, labels, suggestions, views


class Annotation(NamedTuple):
    """What is decided of an item: a row of `annotations` with the name of its label."""

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
    """A label that the model in use suggests, of which nothing is decided; `at` = when it looked at the item."""

    label_id: int
    label: str
    score: float
    probability: float
    at: str | None


class One(NamedTuple):
    """An item.

    Attributes
    ----------
    item : dict
        Its row of `items`.
    best, doubt : float or None
        What the model in use thinks of it; None: it has not looked at it.
    annotations : tuple of Annotation
        By name.
    suggestions : tuple of Suggestion
        The surest first.
    """

    item: dict[str, Any]
    best: float | None
    doubt: float | None
    annotations: tuple[Annotation, ...]
    suggestions: tuple[Suggestion, ...]


class FolderFacet(NamedTuple):
    """A folder of a root, and how many items that are present lie directly in it."""

    root: int
    folder: str
    items: int


class LabelFacet(NamedTuple):
    """A label, on how many items it is accepted and rejected, and for how many it is suggested and undecided."""

    id: int
    label: str
    accepted: int
    rejected: int
    suggested: int


class Facets(NamedTuple):
    """Folders in their order and labels, those with most accepted first."""

    folders: tuple[FolderFacet, ...]
    labels: tuple[LabelFacet, ...]


def one(collection: Collection, number: int) -> One:
    """An item by its number.

    Raises
    ------
    MissingError
        There is none.
    """
    with reading(collection.engine) as connection:
        row = connection.execute(select(items).where(items.c.id == number)).first() if abs(number) < 2**63 else None
        if row is None:
            said = f"there is no item number {number}"
            raise MissingError(f"{said}; `wsabie collection status` says what there is", served=said)
        model = model_in_use(connection)
        v = views.c
        seen = connection.execute(select(v.best, v.doubt).where(v.model_id == model, v.item_id == number)).first()
        best, doubt = (None, None) if seen is None else (seen[0], seen[1])
        return One(
            dict(row._mapping), best, doubt, _annotations(connection, number), _waiting(connection, number, model)
        )


def facets(collection: Collection) -> Facets:
    """Folders and labels with their counts; those of labels are of items in any state."""
    c, a, s = items.c, annotations.c, suggestions.c
    folders = select(c.root_id, c.folder, func.count()).where(c.state == "present").group_by(c.root_id, c.folder)
    whole = a.region == ""
    decided = select(a.label_id, a.state, func.count()).group_by(a.label_id, a.state)
    with reading(collection.engine) as connection:
        found = tuple(FolderFacet(*row) for row in connection.execute(folders.order_by(c.root_id, c.folder)))
        counts = {(row[0], row[1]): row[2] for row in connection.execute(decided)}
        model = model_in_use(connection)
        suggested: dict[int, int] = {}
        if model is not None:
            ours = s.model_id == model
            suggested = _counted(connection, select(s.label_id, func.count()).where(ours).group_by(s.label_id))
            pairs = annotations.join(suggestions, and_(ours, s.item_id == a.item_id, s.label_id == a.label_id))
            gone = select(a.label_id, func.count()).select_from(pairs).where(whole).group_by(a.label_id)
            for label, n in _counted(connection, gone).items():
                suggested[label] -= n
        rows = connection.execute(select(labels.c.id, labels.c.name).where(labels.c.merged_into.is_(None))).all()
    named = [
        LabelFacet(n, name, counts.get((n, "accepted"), 0), counts.get((n, "rejected"), 0), suggested.get(n, 0))
        for n, name in rows
    ]
    return Facets(found, tuple(sorted(named, key=lambda label: (-label.accepted, label.label))))


def _annotations(connection: Connection, number: int) -> tuple[Annotation, ...]:
    a, names = annotations.c, labels.c
    columns = (a.region, a.state, a.origin, a.by, a.at, a.model_id, a.score, a.probability)
    query = select(names.id, names.name, *columns).join(labels, names.id == a.label_id).where(a.item_id == number)
    return tuple(Annotation._make(row) for row in connection.execute(query.order_by(names.name, a.region)))


def _waiting(connection: Connection, number: int, model: int | None) -> tuple[Suggestion, ...]:
    s, a, names = suggestions.c, annotations.c, labels.c
    decided = exists().where(a.item_id == s.item_id, a.label_id == s.label_id, a.region == "")
    looked = and_(views.c.model_id == s.model_id, views.c.item_id == s.item_id)
    query = select(names.id, names.name, s.score, s.probability, views.c.at).join(labels, names.id == s.label_id)
    query = query.outerjoin(views, looked)
    query = query.where(s.model_id == model, s.item_id == number, not_(decided))
    return tuple(Suggestion._make(row) for row in connection.execute(query.order_by(s.probability.desc(), names.name)))


def _counted(connection: Connection, query: Any) -> dict[int, int]:
    return {row[0]: row[1] for row in connection.execute(query)}
