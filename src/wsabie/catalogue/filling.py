"""What WordNet or another knows of labels, written down with them: synset, language, parent, names in other words."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, select

from wsabie.base.errors import InputError
from wsabie.catalogue import book, tables
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.journal import Row, entry
from wsabie.labels.hierarchy import spelling
from wsabie.labels.knowledge import UP, Knowledge
from wsabie.labels.matching import match_labels

_ID = 20  # characters that the table has for an id
_LANGUAGE = 35


class Filled(NamedTuple):
    """How many labels got what, and of how many nothing is known."""

    labels: int
    meanings: int
    languages: int
    parents: int
    synonyms: int
    unknown: int


class Planned(NamedTuple):
    """What a label would get; "" and () where nothing."""

    label: str
    wordnet: str
    language: str
    parent: str
    synonyms: tuple[str, ...]


class _Plan(NamedTuple):
    """Columns by number of label, and rows of other names."""

    columns: dict[int, Row]
    synonyms: list[Row]


def planned(collection: Collection, knowledge: Knowledge, *, table: Mapping[str, str] | None = None) -> list[Planned]:
    """What `fill` would write down, by name of label.

    Raises
    ------
    InputError
        The table has an id that is not known.
    """
    names, meant = _meant(collection, knowledge, table)
    with reading(collection.engine) as connection:
        plan = _plan(connection, knowledge, names, meant)
    others: dict[int, list[str]] = {}
    for row in plan.synonyms:
        others.setdefault(row["label_id"], []).append(row["name"])
    made = [
        Planned(
            names[number],
            new.get("wordnet", ""),
            new.get("language", ""),
            names[new["parent_id"]] if "parent_id" in new else "",
            tuple(others.get(number, ())),
        )
        for number, new in plan.columns.items()
        if new or number in others
    ]
    return sorted(made)


def fill(collection: Collection, knowledge: Knowledge, by: str, *, table: Mapping[str, str] | None = None) -> Filled:
    """Write down what is known of labels; nothing that somebody wrote down is changed.

    A label gets the synset that it means, the language of its name where that is one, the nearest more general label
    of the collection as its parent, and those other names of the synset that usually mean it and are no labels.

    Parameters
    ----------
    collection : Collection
    knowledge : Knowledge
    by : str
    table : mapping of str to str, or None
        What labels mean, by hand: label to id; an empty id means nothing that is known.

    Raises
    ------
    InputError
        The table has an id that is not known.
    """
    names, meant = _meant(collection, knowledge, table)
    with entry(collection.engine, by, "fill") as change:
        told, new_names = _plan(change.connection, knowledge, names, meant)
        counts = {
            column: sum(column in new for new in told.values()) for column in ("wordnet", "language", "parent_id")
        }
        change.set(tables.labels, told)
        change.add(tables.synonyms, new_names)
        change.told = f"filled in {len(meant):,} labels: {counts['parent_id']:,} parents, {len(new_names):,} synonyms"
    known = counts["wordnet"], counts["language"], counts["parent_id"], len(new_names)
    return Filled(len(names), *known, len(names) - len(meant))


def _meant(
    collection: Collection, knowledge: Knowledge, table: Mapping[str, str] | None
) -> tuple[dict[int, str], dict[int, str]]:
    """Names of labels by number, and what those mean that are known."""
    with reading(collection.engine) as connection:
        names = book.names(connection)
    matched = match_labels(knowledge, list(names.values()), table)
    return names, {
        number: concept for number, concept in zip(names, matched.concepts, strict=True) if concept is not None
    }


def _plan(connection: Connection, knowledge: Knowledge, names: Mapping[int, str], meant: Mapping[int, str]) -> _Plan:
    general, others = _parents(knowledge, meant), _other_names(knowledge, meant)
    rows = {row["id"]: row for row in _rows(connection)}
    told: dict[int, Row] = {}
    above = {number: row["parent_id"] for number, row in rows.items()}
    for number, concept in meant.items():
        if number not in rows or rows[number]["name"] != names[number]:
            continue  # merged or renamed meanwhile
        told[number] = new = _known_of(knowledge, rows[number], concept)
        parent = next((p for p in general.get(number, ()) if p in rows and not _is_above(above, number, p)), None)
        if rows[number]["parent_id"] is None and parent is not None:
            new["parent_id"] = above[number] = parent
    taken = book.find(connection, others)
    new_names = [
        {"name": name, "label_id": number, "language": language}
        for name, (number, language) in others.items()
        if name not in taken and number in told
    ]
    return _Plan(told, new_names)


def _known_of(knowledge: Knowledge, row: Row, concept: str) -> Row:
    """Columns of a label that are empty and can be filled."""
    new: Row = {}
    if not row["wordnet"] and len(concept) <= _ID:
        new["wordnet"] = concept
    about = knowledge.concept(concept)
    spelled = spelling(row["name"])
    spoken = {tongue for name, tongue in zip(about.names, about.languages, strict=True) if spelling(name) == spelled}
    if not row["language"] and len(spoken) == 1 and 0 < len(tongue := spoken.pop()) <= _LANGUAGE:
        new["language"] = tongue
    return new


def _parents(knowledge: Knowledge, meant: Mapping[int, str]) -> dict[int, list[int]]:
    """Labels that are more general, nearest first."""
    of: dict[str, int] = {}
    for number, concept in meant.items():
        of.setdefault(concept, number)
    found = {}
    for number, concept in meant.items():
        above = [of[other] for other in knowledge.reach([concept], UP) if other != concept and other in of]
        found[number] = above[:5]
    return found


def _other_names(knowledge: Knowledge, meant: Mapping[int, str]) -> dict[str, tuple[int, str]]:
    """Other names of what labels mean, with the label and their language; of two labels of one meaning, the first's."""
    found: dict[str, tuple[int, str]] = {}
    for number, concept in meant.items():
        about = knowledge.concept(concept)
        for name, language in zip(about.names, about.languages, strict=True):
            try:
                spelled = book.spelt(name)
            except InputError:
                continue
            if knowledge.senses(name)[:1] == [concept] and len(language) <= _LANGUAGE:
                found.setdefault(spelled, (number, language))
    return found


def _rows(connection: Connection) -> Iterable[Row]:
    query = select(tables.labels).where(tables.labels.c.merged_into.is_(None))
    return [dict(row._mapping) for row in connection.execute(query)]


def _is_above(above: Mapping[int, int | None], number: int, parent: int) -> bool:
    """Whether a label would be above itself."""
    step: int | None = parent
    seen = set[int]()
    while step is not None and step not in seen:
        if step == number:
            return True
        seen.add(step)
        step = above.get(step)
    return False
