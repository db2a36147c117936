"""Status of a collection: folders, items, annotations, model and open suggestions."""

from itertools import starmap
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from wsabie.collection.db.damage import find_damage
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import JournalEntry, read_history
from wsabie.collection.db.tables import annotations, items, labels, models, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.folder.drafts import list_drafts
from wsabie.collection.scan.roots import list_roots

STATES = ("present", "missing", "unreadable")


class RootStatus(NamedTuple):
    """Folder with its reachability, its items by state, and its source of tags."""

    folder: str
    reachable: bool
    items: dict[str, int]
    tags: str | None


class AnnotationCount(NamedTuple):
    """Number of annotations of one state and origin."""

    state: str
    origin: str
    annotations: int


class ActiveModel(NamedTuple):
    """Model whose suggestions are shown."""

    id: int
    created_at: str
    method: str
    folder: str


class TrainingReadiness(NamedTuple):
    """Presence of tags, and of sub-folders whose names are not used as tags."""

    tagged: bool
    folders: bool


class CollectionStatus(NamedTuple):
    """Status of a collection.

    Attributes
    ----------
    modality : str or None
    items : dict
        Counts by state: "present", "missing", "unreadable".
    roots : tuple of RootStatus
    labels : int
    annotations : tuple of AnnotationCount
    model : ActiveModel or None
    suggestions : int
        Number of undecided suggestions of the model in use.
    last : tuple of JournalEntry
    damage : tuple of str or None
        Faults of the database; None: not searched.
    drafts : tuple of str
        Drafts that killed exports left among the pictures.
    """

    modality: str | None
    items: dict[str, int]
    roots: tuple[RootStatus, ...]
    labels: int
    annotations: tuple[AnnotationCount, ...]
    model: ActiveModel | None
    suggestions: int
    last: tuple[JournalEntry, ...]
    damage: tuple[str, ...] | None
    drafts: tuple[str, ...] = ()


def read_status(collection: Collection, *, check: bool = False, entries: int = 5) -> CollectionStatus:
    """Return the status of a collection; with `check` the whole database is searched for damage."""
    faults = tuple(find_damage(collection.engine)) if check else None
    root_list = list_roots(collection)
    with begin_read(collection.engine) as connection:
        by_root: dict[int, dict[str, int]] = {root.id: {} for root in root_list}
        query = select(items.c.root_id, items.c.state, func.count()).group_by(items.c.root_id, items.c.state)
        for root, state, count in connection.execute(query):
            by_root.setdefault(root, {})[state] = count
        is_unmerged = labels.c.merged_into.is_(None)
        n_labels = connection.execute(select(func.count()).where(is_unmerged).select_from(labels)).scalar() or 0
        a, m = annotations.c, models.c
        query = select(a.state, a.origin, func.count()).group_by(a.state, a.origin).order_by(a.state, a.origin)
        decided = tuple(starmap(AnnotationCount, connection.execute(query)))
        query = select(m.id, m.created_at, m.method, m.folder).where(m.in_use.is_(True))
        model = next(starmap(ActiveModel, connection.execute(query)), None)
        waiting = _count_pending(connection, model.id) if model else 0
    item_counts = {state: sum(state_counts.get(state, 0) for state_counts in by_root.values()) for state in STATES}
    roots = tuple(
        RootStatus(str(root.folder), root.folder.is_dir(), by_root[root.id], root.options.get("tags"))
        for root in root_list
    )
    modality = next((root.options["modality"] for root in root_list if "modality" in root.options), None)
    last = tuple(read_history(collection.engine, entries))
    drafts = tuple(map(str, list_drafts(collection.place)))
    return CollectionStatus(modality, item_counts, roots, n_labels, decided, model, waiting, last, faults, drafts)


def check_readiness(collection: Collection) -> TrainingReadiness:
    """Return what a collection has for training its first model."""
    with begin_read(collection.engine) as connection:
        tagged = connection.execute(select(annotations.c.id).where(annotations.c.state == "accepted").limit(1)).first()
        nested_item = connection.execute(select(items.c.id).where(items.c.folder != "").limit(1)).first()
    uses_folder_names = any(root.options.get("tags") == "folders" for root in list_roots(collection))
    return TrainingReadiness(tagged is not None, nested_item is not None and not uses_folder_names)


def _count_pending(connection: Connection, model: int) -> int:
    s, a = suggestions.c, annotations.c
    is_same = (a.item_id == s.item_id) & (a.label_id == s.label_id) & (a.region == "")
    n_suggestions = connection.execute(select(func.count()).where(s.model_id == model)).scalar() or 0
    decided = select(func.count()).select_from(suggestions.join(annotations, is_same)).where(s.model_id == model)
    return n_suggestions - (connection.execute(decided).scalar() or 0)
