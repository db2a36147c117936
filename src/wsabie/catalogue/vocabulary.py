"""The labels of a collection as they are: their names, what they are below, and their counts."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, case, func, select

from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.remembered import Remembered
from wsabie.catalogue.tables import annotations, labels, synonyms

Order = Literal["items", "name", "right"]


class Label(NamedTuple):
    """A label of a collection.

    Attributes
    ----------
    id : int
    name, language, wordnet : str
        The latter two "" where they are not told.
    parent : str or None
    synonyms : list of str
    items, rejected : int
        How many items have it, and of how many it was said that they have not.
    suggested, right : int
        Suggestions of models that persons decided, and those of them that they accepted.
    children : int
        Labels right below it.
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


class Listed(NamedTuple):
    """Some labels, and how many there are in all."""

    labels: list[Label]
    found: int


def listed(
    collection: Collection,
    *,
    containing: str = "",
    order: Order = "items",
    k: int | None = None,
    after: int = 0,
    below: int | None = None,
) -> Listed:
    """Labels with what is known of them.

    Parameters
    ----------
    collection : Collection
    containing : str
        Only those whose names, their own and others, hold all of these words, whatever their case.
    order : {"items", "name", "right"}
        The most frequent first; by name; those first of which models are wrong most often.
    k : int or None
        At most so many.
    after : int
        Leave out so many at the beginning.
    below : int or None
        Only those right below this label, by its number; 0: those below none that have some below them.
    """
    with reading(collection.engine) as connection:
        known = _known(connection)
    words = containing.casefold().split()
    found = [
        one for one, parent, names in known if all(word in names for word in words) and _is_below(one, parent, below)
    ]
    keys: dict[Order, Any] = {
        "items": lambda one: (-one.items, one.id),
        "name": lambda one: (one.name.casefold(), one.name),
        "right": lambda one: (2 if one.accuracy is None else one.accuracy, -one.suggested, one.id),
    }
    found.sort(key=keys[order])
    return Listed(found[after : None if k is None else after + k], len(found))


def numbers_of(collection: Collection, names: Iterable[str]) -> list[int]:
    """The numbers of the labels that names mean.

    Raises
    ------
    UnknownLabelError
        There is none that one of them means.
    """
    with reading(collection.engine) as connection:
        return [book.found_one(connection, name) for name in names]


def counted(number: int | None = None) -> Any:
    """The query for labels that were not merged, or for one: number, name, language, WordNet, parent, its number, and
    the four counts of `Label`."""
    a, person = annotations.c, annotations.c.origin == "person"
    accepted, suggested = a.state == "accepted", person & a.model_id.is_not(None)

    def several(of: Any) -> Any:
        return func.sum(case((of, 1), else_=0))

    counts = select(
        a.label_id,
        func.count(case((accepted, a.item_id)).distinct()).label("items"),
        several(a.state == "rejected").label("rejected"),
        several(suggested).label("suggested"),
        several(suggested & accepted).label("right"),
    ).group_by(a.label_id)
    of_each = (counts if number is None else counts.where(a.label_id == number)).subquery()
    above, c = labels.alias("above"), labels.c
    numbers = [func.coalesce(column, 0) for column in list(of_each.c)[1:]]
    joined = labels.outerjoin(above, above.c.id == c.parent_id).outerjoin(of_each, of_each.c.label_id == c.id)
    columns = (c.id, c.name, c.language, c.wordnet, above.c.name, above.c.id, *numbers)
    query = select(*columns).select_from(joined).where(c.merged_into.is_(None))
    return query if number is None else query.where(c.id == number)


def label_of(row: Any, others: list[str], children: int) -> Label:
    """A row of `counted` as a label."""
    number, name, language, wordnet, parent, _, *counts = row
    items, rejected, suggested, right = map(int, counts)  # PostgreSQL's sums are decimals
    return Label(number, name, language, wordnet, parent, others, items, rejected, suggested, right, children)


def _is_below(one: Label, parent: int | None, below: int | None) -> bool:
    return below is None or (parent == below if below else parent is None and one.children > 0)


def _all(connection: Connection) -> list[tuple[Label, int | None, str]]:
    """Labels, the numbers of their parents, and all their names to be searched."""
    rows = connection.execute(counted()).all()
    others: dict[int, list[str]] = {}
    for number, name in connection.execute(select(synonyms.c.label_id, synonyms.c.name).order_by(synonyms.c.name)):
        others.setdefault(number, []).append(name)
    children = Counter(row[5] for row in rows)
    found = [(label_of(row, others.get(row[0], []), children[row[0]]), row[5]) for row in rows]
    return [(one, parent, "\n".join([one.name, *one.synonyms]).casefold()) for one, parent in found]


_known = Remembered(_all)
