"""How a collection stands: what it holds, what is decided, what waits."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from wsabie.catalogue.collection import Collection
from wsabie.catalogue.damage import find_damage
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.drafts import list_drafts
from wsabie.catalogue.journal import Entry, history
from wsabie.catalogue.roots import all_roots
from wsabie.catalogue.tables import annotations, items, labels, models, suggestions

STATES = ("present", "missing", "unreadable")


class RootStanding(NamedTuple):
    """A folder: whether it can be reached now, its items by state, and where its tags come from."""

    folder: str
    reachable: bool
    items: dict[str, int]
    tags: str | None


class Decisions(NamedTuple):
    """How many annotations there are of one state and origin."""

    state: str
    origin: str
    annotations: int


class ModelInUse(NamedTuple):
    """The model whose suggestions are seen."""

    id: int
    made: str
    how: str
    folder: str


class Beginning(NamedTuple):
    """Whether anything is tagged yet, and whether there are sub-folders whose names nobody takes for tags."""

    tagged: bool
    folders: bool


class Standing(NamedTuple):
    """How a collection stands.

    Attributes
    ----------
    medium : str or None
    items : dict
        By state: "present", "missing", "unreadable".
    roots : tuple of RootStanding
    labels : int
    annotations : tuple of Decisions
    model : ModelInUse or None
    suggestions : int
        Of the model in use, for which nothing is decided yet.
    last : tuple of Entry
    damage : tuple of str or None
        What is wrong with the database; None: not looked.
    drafts : tuple of str
        Files that killed exports left among the pictures.
    """

    medium: str | None
    items: dict[str, int]
    roots: tuple[RootStanding, ...]
    labels: int
    annotations: tuple[Decisions, ...]
    model: ModelInUse | None
    suggestions: int
    last: tuple[Entry, ...]
    damage: tuple[str, ...] | None
    drafts: tuple[str, ...] = ()


def standing(collection: Collection, *, check: bool = False, entries: int = 5) -> Standing:
    """How a collection stands now; with `check` the whole database is read and looked through for damage."""
    found = tuple(find_damage(collection.engine)) if check else None
    places = all_roots(collection)
    with reading(collection.engine) as connection:
        by_root: dict[int, dict[str, int]] = {root.id: {} for root in places}
        query = select(items.c.root_id, items.c.state, func.count()).group_by(items.c.root_id, items.c.state)
        for root, state, n in connection.execute(query):
            by_root.setdefault(root, {})[state] = n
        n_labels = connection.execute(select(func.count()).where(labels.c.merged_into.is_(None)).select_from(labels))
        known = n_labels.scalar() or 0
        decided, model, waiting = _decisions(connection), _model(connection), _waiting(connection)
    total = {state: sum(one.get(state, 0) for one in by_root.values()) for state in STATES}
    roots = tuple(
        RootStanding(str(root.folder), root.folder.is_dir(), by_root[root.id], root.options.get("tags"))
        for root in places
    )
    medium = next((root.options["medium"] for root in places if "medium" in root.options), None)
    last = tuple(history(collection.engine, entries))
    drafts = tuple(map(str, list_drafts(collection.place)))
    return Standing(medium, total, roots, known, decided, model, waiting, last, found, drafts)


def beginning(collection: Collection) -> Beginning:
    """What a collection still lacks for its first model."""
    with reading(collection.engine) as connection:
        tagged = connection.execute(select(annotations.c.id).where(annotations.c.state == "accepted").limit(1)).first()
        below = connection.execute(select(items.c.id).where(items.c.folder != "").limit(1)).first()
    asked = any(root.options.get("tags") == "folders" for root in all_roots(collection))
    return Beginning(tagged is not None, below is not None and not asked)


def as_json(found: Standing) -> dict[str, Any]:
    """The same as a document."""
    return found._asdict() | {
        "roots": [root._asdict() for root in found.roots],
        "annotations": [one._asdict() for one in found.annotations],
        "model": found.model and found.model._asdict(),
        "last": [entry._asdict() for entry in found.last],
    }


def _decisions(connection: Connection) -> tuple[Decisions, ...]:
    a = annotations.c
    query = select(a.state, a.origin, func.count()).group_by(a.state, a.origin).order_by(a.state, a.origin)
    return tuple(Decisions(*row) for row in connection.execute(query))


def _model(connection: Connection) -> ModelInUse | None:
    m = models.c
    row = connection.execute(select(m.id, m.made, m.how, m.folder).where(m.in_use.is_(True))).first()
    return None if row is None else ModelInUse(*row)


def _waiting(connection: Connection) -> int:
    model = model_in_use(connection)
    if model is None:
        return 0
    s, a = suggestions.c, annotations.c
    same = (a.item_id == s.item_id) & (a.label_id == s.label_id) & (a.region == "")
    all_of_them = connection.execute(select(func.count()).where(s.model_id == model)).scalar() or 0
    decided = select(func.count()).select_from(suggestions.join(annotations, same)).where(s.model_id == model)
    return all_of_them - (connection.execute(decided).scalar() or 0)
