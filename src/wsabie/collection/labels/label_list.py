"""The labels of a collection with parents, synonyms and counts."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from wsabie.collection.db.cache import DatabaseCache
from wsabie.collection.db.database import begin_read, group_pairs
from wsabie.collection.db.tables import annotations, labels, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store

Order = Literal["items", "name", "accuracy"]


@dataclass(frozen=True)
class LabelSummary(label_store.LabelCount):
    """Label with its counts.

    Attributes
    ----------
    id : int
    name, language : str
    items : int
        Number of items that accept it.
    wordnet : str
        WordNet id; it and the language are "" if unknown.
    parent : str or None
    synonyms : list of str
    rejected : int
        Number of items that reject it.
    reviewed_suggestions, accepted_suggestions : int
        Number of suggestions that people decided, and that they accepted.
    n_children : int
        Number of labels right below it.
    """

    wordnet: str
    parent: str | None
    synonyms: list[str]
    rejected: int
    reviewed_suggestions: int
    accepted_suggestions: int
    n_children: int

    @property
    def accuracy(self) -> float | None:
        """Share of the decided suggestions that were accepted; None where none was decided."""
        return self.accepted_suggestions / self.reviewed_suggestions if self.reviewed_suggestions else None


@dataclass(frozen=True)
class LabelPage:
    """Page of labels, and the number of all matches."""

    labels: list[LabelSummary]
    total: int


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
    order : {"items", "name", "accuracy"}
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
    candidates = [(label, names) for label, parent, names in entries if _is_below(label, parent, parent_id)]
    matches = [label for label, searchable_names in candidates if all(word in searchable_names for word in words)]
    keys: dict[Order, Callable[[LabelSummary], tuple[object, ...]]] = {
        "items": lambda label: (-label.items, label.id),
        "name": lambda label: (label.name.casefold(), label.name),
        "accuracy": lambda label: (label.accuracy is None, label.accuracy, -label.reviewed_suggestions, label.id),
    }
    matches.sort(key=keys[order])
    return LabelPage(matches[offset : None if k is None else offset + k], len(matches))


def find_label_ids(collection: Collection, names: Iterable[str]) -> list[int]:
    """Return the ids of the labels with these names or synonyms.

    Raises
    ------
    UnknownLabelError
        No label has one of the names.
    """
    with begin_read(collection.engine) as connection:
        return [label_store.find_label(connection, name) for name in names]


def build_label_query(label_id: int | None = None) -> Any:
    """Build the query for unmerged labels, or for one of them.

    Columns: id, name, language, WordNet, parent name, parent id, and the four counts of `LabelSummary`.
    """
    a, person = annotations.c, annotations.c.origin == "person"
    accepted, reviewed = a.state == "accepted", person & a.model_id.is_not(None)
    counts = select(
        a.label_id,
        func.count(a.item_id.distinct()).filter(accepted).label("items"),
        func.count().filter(a.state == "rejected").label("rejected"),
        func.count().filter(reviewed).label("reviewed_suggestions"),
        func.count().filter(reviewed & accepted).label("accepted_suggestions"),
    ).group_by(a.label_id)
    label_counts = (counts if label_id is None else counts.where(a.label_id == label_id)).subquery()
    parents, c = labels.alias("above"), labels.c
    count_columns = [func.coalesce(column, 0) for column in list(label_counts.c)[1:]]
    with_parents = labels.outerjoin(parents, parents.c.id == c.parent_id)
    joined = with_parents.outerjoin(label_counts, label_counts.c.label_id == c.id)
    columns = (c.id, c.name, c.language, c.wordnet, parents.c.name, parents.c.id, *count_columns)
    query = select(*columns).select_from(joined).where(c.merged_into.is_(None))
    return query if label_id is None else query.where(c.id == label_id)


def make_label(row: Any, other_names: list[str], n_children: int) -> LabelSummary:
    """Make a label from a row of `build_label_query`."""
    label_id, name, language, wordnet, parent, _, n_items, *counts = row
    label_counts: list[Any] = [*counts, n_children]
    return LabelSummary(label_id, name, language, n_items, wordnet, parent, other_names, *label_counts)


def _is_below(label: LabelSummary, parent: int | None, parent_id: int | None) -> bool:
    return parent_id is None or (parent == parent_id if parent_id else parent is None and label.n_children > 0)


def _read_labels(connection: Connection) -> list[tuple[LabelSummary, int | None, str]]:
    """Return labels with their parents' ids and all their names in one searchable text."""
    rows = connection.execute(build_label_query()).all()
    names = connection.execute(select(synonyms.c.label_id, synonyms.c.name).order_by(synonyms.c.name))
    other_names = group_pairs((label_id, name) for label_id, name in names)
    children = Counter(row[5] for row in rows)
    entries = [(make_label(row, other_names[row[0]], children[row[0]]), row[5]) for row in rows]
    return [(label, parent, "\n".join([label.name, *label.synonyms]).casefold()) for label, parent in entries]


_read_cached_labels = DatabaseCache(_read_labels)
