"""What people do with the labels of a collection: look at them, merge, rename, put below another, keep apart."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, case, func, select

from wsabie.base.errors import InputError
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.journal import Change, entry
from wsabie.catalogue.tables import annotations, kept_apart, labels, synonyms

Order = Literal["items", "name", "right"]

_AT_ONCE = 500


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

    @property
    def accuracy(self) -> float | None:
        """Share of the decided suggestions that were accepted; None where none was decided."""
        return self.right / self.suggested if self.suggested else None


class Listed(NamedTuple):
    """Some labels, and how many there are in all."""

    labels: list[Label]
    found: int


class Merging(NamedTuple):
    """What merging did: annotations that moved, and those that fell together with another."""

    into: str
    labels: list[str]
    moved: int
    together: int


def listed(
    collection: Collection, *, containing: str = "", order: Order = "items", k: int | None = None, after: int = 0
) -> Listed:
    """Labels with what is known of them.

    Parameters
    ----------
    collection : Collection
    containing : str
        Only those whose name holds this, whatever its case.
    order : {"items", "name", "right"}
        The most frequent first; by name; those first of which models are wrong most often.
    k : int or None
        At most so many.
    after : int
        Leave out so many at the beginning.
    """
    wanted = containing.casefold()
    with reading(collection.engine) as connection:
        rows = [row for row in connection.execute(_counted()) if wanted in row[1].casefold()]
        keys: dict[Order, Any] = {
            "items": lambda row: (-row[5], row[0]),
            "name": lambda row: (row[1].casefold(), row[1]),
            "right": lambda row: (row[8] / row[7] if row[7] else 2, -row[7], row[0]),
        }
        rows.sort(key=keys[order])
        shown = rows[after : None if k is None else after + k]
        others = _synonyms(connection, [row[0] for row in shown])
    found = [_label(row, others.get(row[0], [])) for row in shown]
    return Listed(found, len(rows))


def merge(collection: Collection, names: Sequence[str], into: str, by: str) -> Merging:
    """Let labels go into another, as one entry of the journal.

    Raises
    ------
    InputError
        There is no such label, or it is named twice.
    """
    with entry(collection.engine, by, "merge") as change:
        target = book.found_one(change.connection, into)
        gone = [book.found_one(change.connection, name) for name in names]
        done = [book.merge(change, number, target) for number in dict.fromkeys(gone)]
        known = ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        change.told = f"merged {known} into {into!r}"
    return Merging(into, list(names), sum(one.moved for one in done), sum(one.together for one in done))


def rename(collection: Collection, name: str, new: str, by: str) -> None:
    """Give a label another name; the old one stays as a synonym.

    Raises
    ------
    InputError
        There is no such label, or another one is called so.
    """
    with entry(collection.engine, by, "rename", f"renamed {name!r} to {new!r}") as change:
        book.rename(change, book.found_one(change.connection, name), new)


def set_parent(collection: Collection, name: str, parent: str | None, by: str) -> None:
    """Put a label below another; None: below none.

    Raises
    ------
    InputError
        There is no such label, or the other is itself below it.
    """
    told = f"{name!r} is below {parent!r}" if parent is not None else f"{name!r} is below nothing"
    with entry(collection.engine, by, "parent", told) as change:
        above = None if parent is None else book.found_one(change.connection, parent)
        book.set_parent(change, book.found_one(change.connection, name), above)


def add_synonyms(collection: Collection, name: str, others: Sequence[str], by: str, language: str = "") -> None:
    """Give a label other names.

    Raises
    ------
    InputError
        There is no such label, or another one has one of the names.
    """
    told = f"{name!r} is also called {', '.join(map(repr, others))}"
    with entry(collection.engine, by, "synonym", told) as change:
        number = book.found_one(change.connection, name)
        taken = book.add_synonyms(change, number, dict.fromkeys(others, language))
        if taken:
            raise InputError(f"{taken[0]!r} is a label of its own, or another name of one; merge it into {name!r}")


def keep_apart(collection: Collection, names: Sequence[str], by: str) -> int:
    """Remember that labels are not to be merged with one another; how many pairs are new.

    Raises
    ------
    InputError
        There is no such label, or there are fewer than two.
    """
    with entry(collection.engine, by, "apart", f"kept apart: {', '.join(map(repr, names))}") as change:
        numbers = sorted({book.found_one(change.connection, name) for name in names})
        if len(numbers) < 2:
            raise InputError("give two labels or more that are to be kept apart")
        return len(_add_apart(change, list(combinations(numbers, 2))))


def _add_apart(change: Change, pairs: Sequence[tuple[int, int]]) -> list[int]:
    c = kept_apart.c
    query = select(c.label_a, c.label_b).where(c.label_a.in_({a for a, _ in pairs}))
    there = {(row[0], row[1]) for row in change.connection.execute(query)}
    return change.add(kept_apart, [{"label_a": a, "label_b": b} for a, b in pairs if (a, b) not in there])


def _counted() -> Any:
    """Labels that were not merged, with counts: number, name, language, WordNet, parent, and the four numbers."""
    a, person = annotations.c, annotations.c.origin == "person"
    accepted, suggested = a.state == "accepted", person & a.model_id.is_not(None)

    def several(of: Any) -> Any:
        return func.sum(case((of, 1), else_=0))

    counted = (
        select(
            a.label_id,
            func.count(case((accepted, a.item_id)).distinct()).label("items"),
            several(a.state == "rejected").label("rejected"),
            several(suggested).label("suggested"),
            several(suggested & accepted).label("right"),
        )
        .group_by(a.label_id)
        .subquery()
    )
    above, c = labels.alias("above"), labels.c
    numbers = [func.coalesce(column, 0) for column in list(counted.c)[1:]]
    joined = labels.outerjoin(above, above.c.id == c.parent_id).outerjoin(counted, counted.c.label_id == c.id)
    columns = (c.id, c.name, c.language, c.wordnet, above.c.name, *numbers)
    return select(*columns).select_from(joined).where(c.merged_into.is_(None))


def _label(row: Any, others: list[str]) -> Label:
    number, name, language, wordnet, parent, *counts = row
    items, rejected, suggested, right = map(int, counts)  # PostgreSQL's sums are decimals
    return Label(number, name, language, wordnet, parent, others, items, rejected, suggested, right)


def _synonyms(connection: Connection, numbers: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    c = synonyms.c
    for lo in range(0, len(numbers), _AT_ONCE):
        query = select(c.label_id, c.name).where(c.label_id.in_(numbers[lo : lo + _AT_ONCE])).order_by(c.name)
        for number, name in connection.execute(query):
            found.setdefault(number, []).append(name)
    return found
