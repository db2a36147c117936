"""List of a collection's labels with parents, synonyms and counts."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, func, select

from wsabie.collection.db.cache import CatalogueCache
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.tables import annotations, labels, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store

Order = Literal["items", "name", "right"]


class Label(NamedTuple):
    """Label of a collection.

    Attributes
    ----------
    id : int
    name, language, wordnet : str
        Language and WordNet id are "" if unknown.
    parent : str or None
    synonyms : list of str
    items, rejected : int
        Number of items that accept it, and that reject it.
    suggested, right : int
        Number of suggestions that people decided, and that they accepted.
    children : int
        Number of labels right below it.
    """

    id: int
    name: str
    language: str
    wordnet: str
    parent: str | None
    synonyms: list[str]
    items: int
    rejected: int
    suggested: int
    right: int
    children: int

    @property
    def accuracy(self) -> float | None:
        """Share of the decided suggestions that were accepted; None where none was decided."""
        return self.right / self.suggested if self.suggested else None


class LabelPage(NamedTuple):
    """Part of the labels, and the number of all matches."""

    labels: list[Label]
    n_labels: int


def list_labels(
    collection: Collection,
    *,
    containing: str = "",
    order: Order = "items",
    k: int | None = None,
    offset: int = 0,
    parent_id: int | None = None,
) -> LabelPage:
    """List labels with parents, synonyms and counts.

    Parameters
    ----------
    collection : Collection
    containing : str
        Only labels whose names or synonyms contain all of these words, in any case.
    order : {"items", "name", "right"}
        By frequency; by name; by the accuracy of suggestions, lowest first.
    k : int or None
        Largest number of labels.
    offset : int
        Number of labels to skip.
    parent_id : int or None
        Only labels right below the label with this id; 0: top labels with labels below them.
    """
    with begin_read(collection.engine) as connection:
        entries = _read_cached_labels(connection)
    words = containing.casefold().split()
    matches = [
        label
        for label, parent, searchable_names in entries
        if all(word in searchable_names for word in words) and _is_below(label, parent, parent_id)
    ]
    keys: dict[Order, Callable[[Label], tuple[object, ...]]] = {
        "items": lambda label: (-label.items, label.id),
        "name": lambda label: (label.name.casefold(), label.name),
        "right": lambda label: (2 if label.accuracy is None else label.accuracy, -label.suggested, label.id),
    }
    matches.sort(key=keys[order])
    return LabelPage(matches[offset : None if k is None else offset + k], len(matches))


def find_label_numbers(collection: Collection, names: Iterable[str]) -> list[int]:
    """Return the ids of the labels with these names or synonyms.

    Raises
    ------
    UnknownLabelError
        No label has one of the names.
    """
    with begin_read(collection.engine) as connection:
        return [label_store.find_label(connection, name) for name in names]


def build_label_query(number: int | None = None) -> Any:
    """Build the query for unmerged labels, or for one of them.

    Columns: id, name, language, WordNet, parent name, parent id, and the four counts of `Label`.
    """
    a, person = annotations.c, annotations.c.origin == "person"
    accepted, suggested = a.state == "accepted", person & a.model_id.is_not(None)

    def several(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return func.sum(case((condition, 1), else_=0))

    counts = select(
        a.label_id,
        func.count(case((accepted, a.item_id)).distinct()).label("items"),
        several(a.state == "rejected").label("rejected"),
        several(suggested).label("suggested"),
        several(suggested & accepted).label("right"),
    ).group_by(a.label_id)
    label_counts = (counts if number is None else counts.where(a.label_id == number)).subquery()
    parents, c = labels.alias("above"), labels.c
    numbers = [func.coalesce(column, 0) for column in list(label_counts.c)[1:]]
    joined = labels.outerjoin(parents, parents.c.id == c.parent_id).outerjoin(
        label_counts, label_counts.c.label_id == c.id
    )
    columns = (c.id, c.name, c.language, c.wordnet, parents.c.name, parents.c.id, *numbers)
    query = select(*columns).select_from(joined).where(c.merged_into.is_(None))
    return query if number is None else query.where(c.id == number)


def make_label(row: Any, other_names: list[str], children: int) -> Label:
    """Make a label from a row of `build_label_query`."""
    number, name, language, wordnet, parent, _, *counts = row
    items, rejected, suggested, right = map(int, counts)  # PostgreSQL returns sums as decimals
    return Label(number, name, language, wordnet, parent, other_names, items, rejected, suggested, right, children)


def _is_below(label: Label, parent: int | None, parent_id: int | None) -> bool:
    return parent_id is None or (parent == parent_id if parent_id else parent is None and label.children > 0)


def _read_labels(connection: Connection) -> list[tuple[Label, int | None, str]]:
    """Return labels with their parents' ids and all their names in one searchable text."""
    rows = connection.execute(build_label_query()).all()
    other_names: dict[int, list[str]] = {}
    for number, name in connection.execute(select(synonyms.c.label_id, synonyms.c.name).order_by(synonyms.c.name)):
        other_names.setdefault(number, []).append(name)
    children = Counter(row[5] for row in rows)
    entries = [(make_label(row, other_names.get(row[0], []), children[row[0]]), row[5]) for row in rows]
    return [(label, parent, "\n".join([label.name, *label.synonyms]).casefold()) for label, parent in entries]


_read_cached_labels = CatalogueCache(_read_labels)
