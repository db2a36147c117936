"""The labels of a collection: names, synonyms, parents; which label a name means; merging and deleting."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from wsabie.base.errors import InputError, MissingError, UnknownLabelError
from wsabie.catalogue.journal import Change, Row, rows_of
from wsabie.catalogue.tables import annotations, kept_apart, labels, synonyms
from wsabie.labels.names import closest, normalise

LONGEST = 500
"""Characters of a name, at most."""

_AT_ONCE = 500
_LANGUAGE = re.compile(r"(?=.{1,35}$)[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")  # longer first parts are in no registry
_MEANING = re.compile("[!-~]{1,20}")
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Where a word may break, which way it is written: names that differ in these alone look the same."""
_JOINING = str.maketrans("", "", "\u200c\u200d")


class Merged(NamedTuple):
    """What merging did: annotations that moved, and those that fell together with another."""

    moved: int
    together: int


class Deleted(NamedTuple):
    """What deleting a label did: its name, annotations that went with it, labels that were right below it."""

    name: str
    tags: int
    children: int


def spelt(name: str) -> str:
    """A name as it is kept: what joins letters stays (Persian has U+200C), other marks that nobody sees go.

    Raises
    ------
    InputError
        It is empty, longer than `LONGEST`, or holds characters that no name has.

    Examples
    --------
    >>> spelt("  sea   gull ")
    'sea gull'
    >>> spelt("\\u202bas\\u00adsistent"), len(spelt("\\u0645\\u06cc\\u200c\\u062e"))
    ('assistent', 4)
    """
    name = normalise(_UNSEEN.sub("", name))
    seen = name.translate(_JOINING)
    if not seen or len(name) > LONGEST or not seen.isprintable():
        raise InputError(f"{name[:40]!r} cannot be a label; a name has 1 to {LONGEST} characters that can be seen")
    return name


def spoken(language: str) -> str:
    """A language as it is kept; "" where none is told.

    Raises
    ------
    InputError
        It is no tag of BCP 47.

    Examples
    --------
    >>> spoken(" zh-Hant "), spoken("")
    ('zh-Hant', '')
    """
    language = language.strip()
    if language and not _LANGUAGE.fullmatch(language):
        raise InputError(
            f"{language[:40]!r} is no language; write its code of two or three letters, as BCP 47 has it: de, zh-Hant"
        )
    return language


def meaning(wordnet: str) -> str:
    """The id of a synset, or of what other knowledge calls it, as it is kept; "" where none is told.

    Raises
    ------
    InputError
        It is longer than 20 characters, or has blanks or marks that no id has.
    """
    wordnet = wordnet.strip()
    if wordnet and not _MEANING.fullmatch(wordnet):
        raise InputError(f"{wordnet[:40]!r} is no id of a meaning; give one such as n02084071")
    return wordnet


def find(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Numbers of the labels that names mean, by own name or synonym; of a merged label, the one that it became."""
    wanted = sorted(set(names))
    found: dict[str, int] = {}
    for lo in range(0, len(wanted), _AT_ONCE):
        part = wanted[lo : lo + _AT_ONCE]
        query = select(synonyms.c.name, synonyms.c.label_id).where(synonyms.c.name.in_(part))
        found |= _pairs(connection, query)
        query = select(labels.c.name, labels.c.id).where(labels.c.name.in_(part), labels.c.merged_into.is_(None))
        found |= _pairs(connection, query)
    return found


def found_one(connection: Connection, name: str) -> int:
    """The number of the label that a name means.

    Raises
    ------
    UnknownLabelError
        There is none; the closest are named.
    """
    name = spelt(name)
    number = find(connection, [name]).get(name)
    if number is None:
        known = names(connection).values()
        near = ", ".join(closest(name, known))
        hint = (
            f"the closest: {near}" if near else "nor one like it; check the spelling" if known else "there are none yet"
        )
        raise UnknownLabelError(f"there is no label {name!r} here; {hint}")
    return number


def names(connection: Connection) -> dict[int, str]:
    """All labels that were not merged into another, by number."""
    query = select(labels.c.id, labels.c.name).where(labels.c.merged_into.is_(None)).order_by(labels.c.id)
    return _pairs(connection, query)


def ensure(change: Change, wanted: Iterable[str], language: str = "") -> dict[str, int]:
    """Numbers of labels by name, where those that are new are added.

    Raises
    ------
    InputError
        A name cannot be one.
    """
    wanted = list(dict.fromkeys(spelt(name) for name in wanted))
    found = find(change.connection, wanted)
    new = [name for name in wanted if name not in found]
    rows = [{"name": name, "language": language, "wordnet": ""} for name in new]
    return found | dict(zip(new, change.add(labels, rows), strict=True))


def rename(change: Change, number: int, name: str) -> None:
    """Give a label another name; the old one stays as a synonym.

    Raises
    ------
    InputError
        Another label is called so, or the name cannot be one.
    """
    name, old = spelt(name), label(change.connection, number)
    taken = find(change.connection, [name]).get(name)
    if taken not in (None, number):
        raise InputError(f"another label is called {name!r} already; merge {old['name']!r} into it instead")
    same = change.connection.execute(select(synonyms.c.id).where(synonyms.c.name == name)).scalars().all()
    change.remove(synonyms, same)
    change.set(labels, {number: {"name": name}})
    if name != old["name"]:
        change.add(synonyms, [{"name": old["name"], "label_id": number, "language": old["language"]}])


def add_synonyms(change: Change, number: int, wanted: Mapping[str, str]) -> list[str]:
    """Give a label other names with their languages; the ones that other labels have are left out and returned.

    A name that it has already gets the language, if one is given.
    """
    spelled = {spelt(name): language for name, language in wanted.items()}
    found = find(change.connection, spelled)
    new = [{"name": n, "label_id": number, "language": spelled[n]} for n in spelled if n not in found]
    change.add(synonyms, new)
    there = _pairs(change.connection, select(synonyms.c.name, synonyms.c.id).where(synonyms.c.label_id == number))
    spoken_of = {there[n]: {"language": spelled[n]} for n in spelled if n in found and n in there and spelled[n]}
    change.set(synonyms, spoken_of)
    return [name for name in spelled if found.get(name, number) != number]


def remove_synonyms(change: Change, number: int, unwanted: Iterable[str]) -> None:
    """Take other names from a label.

    Raises
    ------
    InputError
        One of them is none of its other names.
    """
    c, spelled = synonyms.c, {spelt(name) for name in unwanted}
    there = _pairs(change.connection, select(c.name, c.id).where(c.label_id == number))
    if spelled - there.keys():
        name = label(change.connection, number)["name"]
        raise InputError(f"{min(spelled - there.keys())!r} is no other name of {name!r}; look at its names again")
    change.remove(synonyms, [there[name] for name in spelled])


def set_parent(change: Change, number: int, parent: int | None) -> None:
    """Put a label below another, or below none.

    Raises
    ------
    InputError
        The other one is itself below this label.
    """
    if parent is not None and number in (parent, *above(change.connection, parent)):
        raise InputError(f"{label(change.connection, number)['name']!r} would be above itself; choose another parent")
    change.set(labels, {number: {"parent_id": parent}})


def merge(change: Change, number: int, into: int) -> Merged:
    """Let a label go into another: its annotations, synonyms and children move, its name is a synonym from now on.

    Where an item has both, what is decided of the other label stays.

    Raises
    ------
    InputError
        They are the same, or one of them does not exist or was merged before.
    """
    gone, kept = label(change.connection, number), label(change.connection, into)
    if number == into:
        raise InputError(f"{kept['name']!r} cannot be merged into itself; give two labels")
    a, connection = annotations.c, change.connection
    theirs = {(row[0], row[1]) for row in connection.execute(select(a.item_id, a.region).where(a.label_id == into))}
    ours = connection.execute(select(a.id, a.item_id, a.region).where(a.label_id == number)).all()
    together = [row[0] for row in ours if (row[1], row[2]) in theirs]
    moving = {row[0]: {"label_id": into} for row in ours if (row[1], row[2]) not in theirs}
    change.remove(annotations, together)
    change.set(annotations, moving)
    is_below = number in above(connection, into)
    children = connection.execute(select(labels.c.id).where(labels.c.parent_id == number)).scalars()
    change.set(labels, {child: {"parent_id": into} for child in children if child != into})
    if is_below:
        change.set(labels, {into: {"parent_id": gone["parent_id"]}})
    others = connection.execute(select(synonyms.c.id).where(synonyms.c.label_id == number)).scalars()
    change.set(synonyms, {other: {"label_id": into} for other in others})
    change.set(labels, {number: {"merged_into": into, "parent_id": None}})
    change.add(synonyms, [{"name": gone["name"], "label_id": into, "language": gone["language"]}])
    change.told = change.told or f"merged {gone['name']!r} into {kept['name']!r}"
    return Merged(len(moving), len(together))


def delete(change: Change, number: int, *, with_tags: bool = False) -> Deleted:
    """Remove a label with its other names; labels right below it come below the one above it.

    Raises
    ------
    MissingError
        There is none, or it was merged into another.
    InputError
        Items have it, or it was rejected for some, and these tags are not to go too.
    """
    gone, connection = label(change.connection, number), change.connection
    tags = connection.execute(select(annotations.c.id).where(annotations.c.label_id == number)).scalars().all()
    if tags and not with_tags:
        said = f"{gone['name']!r} is accepted or rejected {len(tags):,} times"
        raise InputError(
            f"{said}; to delete these tags too: --with-tags",
            served=f"{said}; delete these tags too (`with_tags`), or merge it into another label",
        )
    change.remove(annotations, tags)
    children = connection.execute(select(labels.c.id).where(labels.c.parent_id == number)).scalars().all()
    change.set(labels, {child: {"parent_id": gone["parent_id"]} for child in children})
    all_of_it = [*reversed(_merged_into(connection, number)), number]  # each after what was merged into it
    others = synonyms.c.label_id == number
    change.remove(synonyms, connection.execute(select(synonyms.c.id).where(others)).scalars().all())
    for part in (all_of_it[lo : lo + _AT_ONCE] for lo in range(0, len(all_of_it), _AT_ONCE)):
        pairs = kept_apart.c.label_a.in_(part) | kept_apart.c.label_b.in_(part)
        change.remove(kept_apart, connection.execute(select(kept_apart.c.id).where(pairs)).scalars().all())
    for one in all_of_it:
        change.remove(labels, [one])
    return Deleted(gone["name"], len(tags), len(children))


def _merged_into(connection: Connection, number: int) -> list[int]:
    """What went into a label, one step after the other: only their names are left."""
    found, last = list[int](), [number]
    while last:
        query = select(labels.c.id).where(labels.c.merged_into.in_(last[:_AT_ONCE]))
        last = [*last[_AT_ONCE:], *(new := connection.execute(query).scalars().all())]
        found += new
        if number in new or len(set(found)) < len(found):
            raise RecursionError("labels were merged in a circle")
    return found


def label(connection: Connection, number: int) -> Row:
    """The row of a label.

    Raises
    ------
    MissingError
        There is none, or it was merged into another.
    """
    rows = rows_of(connection, labels, [number])
    if not rows or rows[0]["merged_into"] is not None:
        raise MissingError(f"there is no label number {number}; it may have been merged into another")
    return rows[0]


def above(connection: Connection, number: int) -> list[int]:
    """The labels above a label, nearest first."""
    found: list[int] = []
    parent = label(connection, number)["parent_id"]
    while parent is not None and parent not in found:
        found.append(parent)
        parent = label(connection, parent)["parent_id"]
    return found


def _pairs(connection: Connection, query: Any) -> dict[Any, Any]:
    return {one: other for one, other in connection.execute(query)}  # noqa: C416 - rows are no tuples to `dict`
