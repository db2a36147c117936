"""What people do with the labels of a collection: merge, rename, put below another, keep apart, delete."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from sqlalchemy import select

from wsabie.base.errors import InputError
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.journal import Change, Row, entry, rows_of
from wsabie.catalogue.tables import kept_apart, labels

_TOLD = 1000


class Merging(NamedTuple):
    """What merging did: annotations that moved, those that fell together with another, the entry of the journal."""

    into: str
    labels: list[str]
    moved: int
    together: int
    entry: int | None


class Apart(NamedTuple):
    """How many pairs are kept apart from now on, and the entry of the journal, if there are any."""

    pairs: int
    entry: int | None


class Deletion(NamedTuple):
    """What deleting did: tags that went too, labels that were right below, the entry of the journal."""

    labels: list[str]
    tags: int
    children: int
    entry: int | None


def delete(collection: Collection, numbers: Iterable[int], by: str, *, with_tags: bool = False) -> Deletion:
    """Remove labels and their other names, as one entry of the journal; labels below them move up.

    Parameters
    ----------
    collection : Collection
    numbers : iterable of int
    by : str
    with_tags : bool
        Whether what was decided of them goes too.

    Raises
    ------
    MissingError
        One of them is none, or was merged.
    InputError
        Something was decided of one, and `with_tags` is not said.
    """
    with entry(collection.engine, by, "delete") as change:
        gone = [book.delete(change, number, with_tags=with_tags) for number in dict.fromkeys(numbers)]
        names, tags = [one.name for one in gone], sum(one.tags for one in gone)
        change.told = f"deleted {_quoted(names)}" + (f" with {tags:,} tags" if tags else "")
    return Deletion(names, tags, sum(one.children for one in gone), _entry_of(change))


def merge(collection: Collection, numbers: Iterable[int], into: int, by: str) -> Merging:
    """Let labels go into another, as one entry of the journal.

    Raises
    ------
    MissingError
        One of them is none, or was merged before.
    InputError
        One of them is the other.
    """
    gone = list(dict.fromkeys(numbers))
    with entry(collection.engine, by, "merge") as change:
        *names, kept = _names(change, [*gone, into])
        done = [book.merge(change, number, into) for number in gone]
        change.told = f"merged {_quoted(names)} into {kept!r}"
    moved, together = sum(one.moved for one in done), sum(one.together for one in done)
    return Merging(kept, names, moved, together, _entry_of(change))


def edit(
    collection: Collection,
    number: int,
    by: str,
    *,
    name: str | None = None,
    language: str | None = None,
    wordnet: str | None = None,
    parent: str | None = None,
    add: Mapping[str, str] | None = None,
    remove: Sequence[str] = (),
) -> int | None:
    """Change several things of a label as one entry of the journal.

    Parameters
    ----------
    collection : Collection
    number : int
        Of the label.
    by : str
    name, language, wordnet, parent : str or None
        What they are from now on; None: as they were, "": none. The old name stays as a synonym.
    add : mapping of str to str, or None
        Other names, with their languages.
    remove : sequence of str
        Other names that it has no more, perhaps the old one.

    Returns
    -------
    int or None
        The entry of the journal; None where everything was so already.

    Raises
    ------
    MissingError
        There is no such label.
    InputError
        A name, a language or an id cannot be one, a name is another label's, or the parent is below it.
    """
    with entry(collection.engine, by, "label") as change:
        old = book.label(change.connection, number)["name"]
        if name is not None:
            book.rename(change, number, name)
        book.remove_synonyms(change, number, remove)
        _call_also(change, number, {other: book.spoken(tongue) for other, tongue in (add or {}).items()})
        if parent is not None:
            book.set_parent(change, number, book.found_one(change.connection, parent) if parent else None)
        new: Row = {} if language is None else {"language": book.spoken(language)}
        new |= {} if wordnet is None else {"wordnet": book.meaning(wordnet)}
        change.set(labels, {number: new})
        told = {"called": name, "language": language, "meaning": wordnet, "below": parent}
        said = [
            f"{what} {value!r}" if value else f"{what} nothing" for what, value in told.items() if value is not None
        ]
        said += [f"also called {other!r}" for other in add or ()] + [f"not called {other!r}" for other in remove]
        change.told = f"changed {old!r}: {', '.join(said)}"[:_TOLD]
    return _entry_of(change)


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
        _call_also(change, number, dict.fromkeys(others, book.spoken(language)))


def keep_apart(collection: Collection, numbers: Iterable[int], by: str) -> Apart:
    """Remember that labels are not to be merged with one another.

    Raises
    ------
    MissingError
        One of them is none, or was merged.
    InputError
        There are fewer than two.
    """
    wanted = sorted(set(numbers))
    if len(wanted) < 2:
        raise InputError("give two labels or more that are to be kept apart")
    with entry(collection.engine, by, "apart") as change:
        change.told = f"kept apart: {', '.join(map(repr, _names(change, wanted)))}"
        new = _add_apart(change, list(combinations(wanted, 2)))
    return Apart(len(new), _entry_of(change))


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _names(change: Change, numbers: Sequence[int]) -> list[str]:
    """Names of labels, none of which may be missing or merged."""
    there = {row["id"]: row["name"] for row in rows_of(change.connection, labels, numbers) if not row["merged_into"]}
    return [there[number] if number in there else book.label(change.connection, number)["name"] for number in numbers]


def _call_also(change: Change, number: int, others: Mapping[str, str]) -> None:
    taken = book.add_synonyms(change, number, others)
    if taken:
        name = book.label(change.connection, number)["name"]
        raise InputError(f"{taken[0]!r} is a label of its own, or another name of one; merge it into {name!r}")


def _entry_of(change: Change) -> int | None:
    """Of a change that was written down; None where it changed nothing."""
    return change.id if change.n_changes else None


def _add_apart(change: Change, pairs: Sequence[tuple[int, int]]) -> list[int]:
    c = kept_apart.c
    query = select(c.label_a, c.label_b).where(c.label_a.in_({a for a, _ in pairs}))
    there = {(row[0], row[1]) for row in change.connection.execute(query)}
    return change.add(kept_apart, [{"label_a": a, "label_b": b} for a, b in pairs if (a, b) not in there])
