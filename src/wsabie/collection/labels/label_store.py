"""The labels of a collection: name lookup, synonyms, parents and deletion."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from sqlalchemy import Connection, func, select, union_all

from wsabie.collection.db.damage import find_label_cycles
from wsabie.collection.db.database import iterate_chunks, select_in
from wsabie.collection.db.journal import JournalWriter, Row, read_rows
from wsabie.collection.db.tables import Condition, annotations, changes, items, labels, merge_exclusions, synonyms
from wsabie.core.errors import InputError, NotFoundError, UnknownLabelError
from wsabie.vocabulary.label_names import normalise_label_name
from wsabie.vocabulary.name_suggestions import find_closest_names

T = TypeVar("T")
MAX_LENGTH = 500
"""Longest name, in characters."""

# registered first parts have at most three letters
_LANGUAGE = re.compile(r"(?=.{1,35}$)[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_CONCEPT_ID = re.compile("[!-~]{1,20}")
_JOINING = str.maketrans("", "", "\u200c\u200d")


_TAGGED_ITEMS = select(annotations.c.label_id, func.count(annotations.c.item_id.distinct()).label("n"))
ITEMS_BY_LABEL = _TAGGED_ITEMS.where(annotations.c.state == "accepted").group_by(annotations.c.label_id)
"""Query for the number of items that accept each label."""
_QUERIES_AT_ONCE = 100  # one subquery a label: an index gives the newest few, a window function would read all


@dataclass(frozen=True)
class LabelCount:
    """Label with the number of its items."""

    id: int
    name: str
    language: str
    items: int


@dataclass(frozen=True, order=True)
class ExampleItem:
    """Item with the hash of its content."""

    id: int
    hash: str | None


class TaggedLabelError(InputError):
    """Refusal to delete a label that items have; `fault` is the sentence without its remedy."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"{fault}; delete these tags too (`with_tags`), or merge it into another label")
        self.fault = fault


def normalise_name(name: str) -> str:
    """Normalise a label name as `normalise_label_name` does, and refuse what a page cannot show.

    Raises
    ------
    InputError
        The name is empty, longer than `MAX_LENGTH`, or has unprintable characters.

    Examples
    --------
    >>> normalise_name("  sea   gull ")
    'sea gull'
    >>> normalise_name("\\u202bas\\u00adsistent"), len(normalise_name("\\u0645\\u06cc\\u200c\\u062e"))
    ('assistent', 4)
    """
    name = normalise_label_name(name)
    visible = name.translate(_JOINING)
    if not visible or len(name) > MAX_LENGTH or not visible.isprintable():
        raise InputError(f"{name[:40]!r} cannot be a label; a name has 1 to {MAX_LENGTH} characters that can be seen")
    return name


def normalise_language(language: str) -> str:
    """Normalise a language tag; "" means no language.

    Raises
    ------
    InputError
        The language is not a tag of BCP 47.

    Examples
    --------
    >>> normalise_language(" zh-Hant "), normalise_language("")
    ('zh-Hant', '')
    """
    language = language.strip()
    if language and not _LANGUAGE.fullmatch(language):
        fact = f"{language[:40]!r} is not a language code"
        raise InputError(f"{fact}; write two or three letters, as BCP 47 has it: de, zh-Hant")
    return language


def normalise_concept(wordnet: str) -> str:
    """Normalise the id of a synset or another concept; "" means none.

    Raises
    ------
    InputError
        The id has more than 20 characters, or blanks or other invalid characters.
    """
    wordnet = wordnet.strip()
    if wordnet and not _CONCEPT_ID.fullmatch(wordnet):
        raise InputError(f"{wordnet[:40]!r} is not the id of a meaning; give one such as n02084071")
    return wordnet


def find_labels(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Return label ids by name or synonym; a merged label gives its target."""
    names = sorted(set(names))
    of_synonyms = select(synonyms.c.name, synonyms.c.label_id)
    of_labels = select(labels.c.name, labels.c.id).where(labels.c.merged_into.is_(None))
    label_ids = dict(select_in(connection, of_synonyms, synonyms.c.name, names))
    return label_ids | dict(select_in(connection, of_labels, labels.c.name, names))


def find_label(connection: Connection, name: str) -> int:
    """Return the id of the label with this name or synonym.

    Raises
    ------
    UnknownLabelError
        There is no such label; the message names the closest.
    """
    name = normalise_name(name)
    label_id = find_labels(connection, [name]).get(name)
    if label_id is None:
        all_names = read_label_names(connection).values()
        near = ", ".join(find_closest_names(name, all_names))
        missing = "nor one like it; check the spelling" if all_names else "there are none yet"
        raise UnknownLabelError(f"there is no label {name!r} here; {f'the closest: {near}' if near else missing}")
    return label_id


def read_label_names(connection: Connection) -> dict[int, str]:
    """Return the names of all unmerged labels by id."""
    query = select(labels.c.id, labels.c.name).where(labels.c.merged_into.is_(None)).order_by(labels.c.id)
    return dict(connection.execute(query).all())


def find_example_items(
    connection: Connection, label_ids: Iterable[int], k: int, *conditions: Condition
) -> dict[int, list[ExampleItem]]:
    """Return a few items of each label, the newest first."""
    distinct_ids, a, c = list(label_ids), annotations.c, items.c
    query = select(a.label_id, a.item_id, c.hash).join(items, c.id == a.item_id).distinct()  # once with many regions
    query = query.where(a.state == "accepted", c.state == "present", *conditions).order_by(a.item_id.desc()).limit(k)
    examples: dict[int, list[ExampleItem]] = {label_id: [] for label_id in distinct_ids}
    for part in iterate_chunks(distinct_ids, _QUERIES_AT_ONCE):
        queries = (query.where(a.label_id == label_id).subquery() for label_id in part)
        for label_id, *item in connection.execute(union_all(*map(select, queries))):
            examples[label_id].append(ExampleItem(*item))
    return {label_id: sorted(label_items, reverse=True) for label_id, label_items in examples.items()}


def ensure_labels(change: JournalWriter, names: Iterable[str], language: str = "") -> dict[str, int]:
    """Return label ids by name; missing labels are added.

    Raises
    ------
    InputError
        A name is invalid.
    """
    names = list(dict.fromkeys(normalise_name(name) for name in names))
    label_ids = find_labels(change.connection, names)
    new_names = [name for name in names if name not in label_ids]
    rows = [{"name": name, "language": language, "wordnet": ""} for name in new_names]
    return label_ids | dict(zip(new_names, change.add(labels, rows), strict=True))


def rename_label(change: JournalWriter, label_id: int, name: str) -> None:
    """Rename a label; the old name becomes a synonym.

    Raises
    ------
    InputError
        Another label has the name, or the name is invalid.
    """
    name, old = normalise_name(name), read_label(change.connection, label_id)
    owner_id = find_labels(change.connection, [name]).get(name)
    if owner_id not in (None, label_id):
        raise InputError(f"another label is called {name!r} already; merge {old['name']!r} into it instead")
    equal_synonyms = change.connection.scalars(select(synonyms.c.id).where(synonyms.c.name == name)).all()
    change.remove(synonyms, equal_synonyms)
    change.update(labels, {label_id: {"name": name}})
    if name != old["name"]:
        change.add(synonyms, [{"name": old["name"], "label_id": label_id, "language": old["language"]}])


def add_synonyms(change: JournalWriter, label_id: int, languages: Mapping[str, str]) -> list[str]:
    """Add synonyms with their languages to a label; return the names that other labels have.

    A synonym that exists gets the language, if one is given.
    """
    normalised = {normalise_name(name): language for name, language in languages.items()}
    label_ids, existing = find_labels(change.connection, normalised), _read_synonym_ids(change.connection, label_id)
    new = {name: language for name, language in normalised.items() if name not in label_ids}
    change.add(synonyms, [{"name": name, "label_id": label_id, "language": language} for name, language in new.items()])
    edits = {
        existing[name]: {"language": language} for name, language in normalised.items() if language and name in existing
    }
    change.update(synonyms, edits)
    return [name for name in normalised if label_ids.get(name, label_id) != label_id]


def remove_synonyms(change: JournalWriter, label_id: int, unwanted: Iterable[str]) -> None:
    """Remove synonyms of a label.

    Raises
    ------
    InputError
        A name is not a synonym of the label.
    """
    names, synonym_ids = {normalise_name(name) for name in unwanted}, _read_synonym_ids(change.connection, label_id)
    if names - synonym_ids.keys():
        name = read_label(change.connection, label_id)["name"]
        raise InputError(f"{min(names - synonym_ids.keys())!r} is not another name of {name!r}; look at its names")
    change.remove(synonyms, [synonym_ids[name] for name in names])


def _read_synonym_ids(connection: Connection, label_id: int) -> dict[str, int]:
    query = select(synonyms.c.name, synonyms.c.id).where(synonyms.c.label_id == label_id)
    return dict(connection.execute(query).all())


def set_parent(change: JournalWriter, label_id: int, parent: int | None) -> None:
    """Put a label below another, or below none.

    Raises
    ------
    InputError
        The parent is below the label.
    """
    if parent is not None and label_id in (parent, *list_ancestors(change.connection, parent)):
        fact = f"{read_label(change.connection, label_id)['name']!r} would be above itself"
        raise InputError(f"{fact}; choose another parent")
    change.update(labels, {label_id: {"parent_id": parent}})


def read_merge_targets(connection: Connection) -> dict[int, int]:
    """Return the final target of each merged label."""
    query = select(labels.c.id, labels.c.merged_into).where(labels.c.merged_into.is_not(None))
    targets: dict[int, int] = dict(connection.execute(query).all())
    if next(find_label_cycles(targets), None) is not None:
        raise RecursionError("labels were merged in a circle")
    return {label_id: [*iterate_ancestors(targets, label_id)][-1] for label_id in targets}


def delete_label(change: JournalWriter, label_id: int, *, with_tags: bool = False) -> tuple[str, int, int]:
    """Delete a label with its synonyms; its children move up to its parent.

    Return its name and the numbers of deleted annotations and of former children.

    Raises
    ------
    NotFoundError
        The label is missing or was merged.
    TaggedLabelError
        The label has annotations, and `with_tags` is False.
    """
    label, connection = read_label(change.connection, label_id), change.connection
    tags = connection.scalars(select(annotations.c.id).where(annotations.c.label_id == label_id)).all()
    if tags and not with_tags:
        raise TaggedLabelError(f"{label['name']!r} is accepted or rejected {len(tags):,} times")
    change.remove(annotations, tags)
    children = connection.scalars(select(labels.c.id).where(labels.c.parent_id == label_id)).all()
    change.update(labels, {child: {"parent_id": label["parent_id"]} for child in children})
    merged_ids = [merged_id for merged_id, target in read_merge_targets(connection).items() if target == label_id]
    change.update(labels, {merged_id: {"merged_into": None} for merged_id in merged_ids})  # goes, and returns, first
    label_ids = [*merged_ids, label_id]
    is_synonym = synonyms.c.label_id == label_id
    change.remove(synonyms, connection.scalars(select(synonyms.c.id).where(is_synonym)).all())
    for column in (merge_exclusions.c.label_a, merge_exclusions.c.label_b):
        rows = select_in(connection, select(merge_exclusions.c.id), column, label_ids)
        change.remove(merge_exclusions, [row[0] for row in rows])
    change.remove(labels, label_ids)
    return label["name"], len(tags), len(children)


def read_label(connection: Connection, label_id: int) -> Row:
    """Return the row of a label.

    Raises
    ------
    NotFoundError
        The label is missing or was merged.
    """
    rows = read_rows(connection, labels, [label_id])
    if not rows or rows[0]["merged_into"] is not None:
        raise NotFoundError(f"there is no label with id {label_id}; it may have been merged into another")
    return rows[0]


def list_ancestors(connection: Connection, label_id: int) -> list[int]:
    """Return the ancestors of a label, nearest first."""
    read_label(connection, label_id)
    return list(iterate_ancestors(_read_parents(connection, [label_id]), label_id))


def set_parents_by_path(change: JournalWriter, paths: Iterable[Sequence[str]]) -> dict[tuple[str, ...], str]:
    """Give labels without a parent the one that tag paths imply; new labels are added.

    Parameters
    ----------
    change : JournalWriter
    paths : iterable of sequence of str
        Valid label names, from the broadest. Longer paths take precedence.

    Returns
    -------
    dict
        Reasons of refused paths: they contradict the database, or a label would be above itself.
    """
    sorted_paths = sorted({tuple(path) for path in paths}, key=lambda path: (-len(path), path))
    label_ids = ensure_labels(change, [name for path in sorted_paths for name in path])
    parents = _read_parents(change.connection, label_ids.values())
    orphans = [child_id for child_id in set(label_ids.values()) if parents.get(child_id) is None]
    detached = _find_detached_labels(change.connection, orphans)
    new_parents: dict[int, int] = {}
    refusals: dict[tuple[str, ...], str] = {}
    broader_ids = {parent for parent in parents.values() if parent is not None}  # only these have labels below them
    for path in sorted_paths:
        for broader, name in pairwise(path):
            label_id, parent = label_ids[name], label_ids[broader]
            if label_id == parent or (parent in broader_ids and parent in iterate_ancestors(parents, label_id)):
                continue
            if label_id in broader_ids and label_id in iterate_ancestors(parents, parent):
                refusals[path] = f"{name!r} is above {broader!r} here"
            elif parents.get(label_id) is not None or label_id in detached:
                refusals[path] = f"{name!r} is not below {broader!r} here"
            else:
                parents[label_id] = new_parents[label_id] = parent
                broader_ids.add(parent)
    change.update(labels, {label_id: {"parent_id": parent} for label_id, parent in new_parents.items()})
    return refusals


def _read_parents(connection: Connection, label_ids: Iterable[int]) -> dict[int, int | None]:
    """Return the parents of labels and of all their ancestors."""
    parents: dict[int, int | None] = {}
    query, pending = select(labels.c.id, labels.c.parent_id), set(label_ids)
    while pending:
        rows = dict.fromkeys(pending) | dict(select_in(connection, query, labels.c.id, pending))
        parents |= rows
        pending = {parent for parent in rows.values() if parent is not None} - parents.keys()
    return parents


def iterate_ancestors(parents: Mapping[T, T | None], label: T) -> Iterator[T]:
    """Yield the ancestors of a label, nearest first."""
    visited, parent = {label}, parents.get(label)
    while parent is not None and parent not in visited:
        yield parent
        visited.add(parent)
        parent = parents.get(parent)


def _find_detached_labels(connection: Connection, label_ids: Sequence[int]) -> set[int]:
    """Return labels whose parent was removed once: files do not restore it."""
    query = select(changes.c.row, changes.c.old_row).where(changes.c.table == labels.name)
    rows = select_in(connection, query, changes.c.row, label_ids)
    return {label_id for label_id, old_row in rows if old_row and old_row.get("parent_id") is not None}
