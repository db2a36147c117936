"""Edits of labels by people: merge, rename, change parents, exclude merges, delete."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from sqlalchemy import select

from wsabie.collection.db.journal import JournalWriter, Row, begin_entry
from wsabie.collection.db.tables import labels, merge_exclusions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError

_MAX_SUMMARY = 1000


class MergeResult(NamedTuple):
    """Result of a merge: moved annotations, dropped duplicates, and the journal entry."""

    into: str
    labels: list[str]
    moved: int
    duplicates: int
    entry: int | None


class ExclusionResult(NamedTuple):
    """Number of new pairs that are never merged, and the journal entry, if there are any."""

    pairs: int
    entry: int | None


class DeletionResult(NamedTuple):
    """Result of a deletion: deleted tags, former children, and the journal entry."""

    labels: list[str]
    tags: int
    children: int
    entry: int | None


def delete_labels(
    collection: Collection, numbers: Iterable[int], by: str, *, with_tags: bool = False
) -> DeletionResult:
    """Delete labels and their synonyms as one journal entry; their children move up.

    Parameters
    ----------
    collection : Collection
    numbers : iterable of int
    by : str
    with_tags : bool
        Delete their annotations too.

    Raises
    ------
    NotFoundError
        A label is missing or was merged.
    InputError
        A label has annotations, and `with_tags` is False.
    """
    with begin_entry(collection.engine, by, "delete") as change:
        deletions = [label_store.delete_label(change, number, with_tags=with_tags) for number in dict.fromkeys(numbers)]
        names, tags = [name for name, _, _ in deletions], sum(n_tags for _, n_tags, _ in deletions)
        change.summary = f"deleted {_quote_names(names)}" + (f" with {tags:,} tags" if tags else "")
    return DeletionResult(names, tags, sum(n_children for _, _, n_children in deletions), _get_entry_id(change))


def merge_labels(collection: Collection, numbers: Iterable[int], into: int, by: str) -> MergeResult:
    """Merge labels into another, as one journal entry.

    Raises
    ------
    NotFoundError
        A label is missing or was merged.
    InputError
        A label would be merged into itself.
    """
    sources = list(dict.fromkeys(numbers))
    with begin_entry(collection.engine, by, "merge") as change:
        *names, target_name = _read_names(change, [*sources, into])
        merges = [label_store.merge_label(change, number, into) for number in sources]
        change.summary = f"merged {_quote_names(names)} into {target_name!r}"
    moved, duplicates = sum(merge.moved for merge in merges), sum(merge.duplicates for merge in merges)
    return MergeResult(target_name, names, moved, duplicates, _get_entry_id(change))


def edit_label(
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
    """Change several fields of a label as one journal entry.

    Parameters
    ----------
    collection : Collection
    number : int
        Id of the label.
    by : str
    name, language, wordnet, parent : str or None
        New values; None: unchanged, "": none. The old name becomes a synonym.
    add : mapping of str to str, or None
        New synonyms with their languages.
    remove : sequence of str
        Synonyms to remove, perhaps the old name.

    Returns
    -------
    int or None
        Id of the journal entry; None if nothing changed.

    Raises
    ------
    NotFoundError
        There is no such label.
    InputError
        A name, language or id is invalid, another label has the name, or the parent is below the label.
    """
    with begin_entry(collection.engine, by, "label") as change:
        old = label_store.read_label(change.connection, number)["name"]
        if name is not None:
            label_store.rename_label(change, number, name)
        label_store.remove_synonyms(change, number, remove)
        _add_synonyms(change, number, add or {})
        if parent is not None:
            parent_id = label_store.find_label(change.connection, parent) if parent else None
            label_store.set_parent(change, number, parent_id)
        new: Row = {} if language is None else {"language": label_store.normalise_language(language)}
        new |= {} if wordnet is None else {"wordnet": label_store.normalise_concept(wordnet)}
        change.update(labels, {number: new})
        edit = {"called": name, "language": language, "meaning": wordnet, "below": parent}
        parts = [f"{field} {repr(value) if value else 'nothing'}" for field, value in edit.items() if value is not None]
        parts += [f"also called {synonym!r}" for synonym in add or ()]
        parts += [f"not called {synonym!r}" for synonym in remove]
        change.summary = f"changed {old!r}: {', '.join(parts)}"[:_MAX_SUMMARY]
    return _get_entry_id(change)


def rename_label(collection: Collection, name: str, new: str, by: str) -> None:
    """Rename a label; the old name becomes a synonym.

    Raises
    ------
    InputError
        The label is missing, or another label has the new name.
    """
    with begin_entry(collection.engine, by, "rename", f"renamed {name!r} to {new!r}") as change:
        label_store.rename_label(change, label_store.find_label(change.connection, name), new)


def set_label_parent(collection: Collection, name: str, parent: str | None, by: str) -> None:
    """Put a label below another; None: below none.

    Raises
    ------
    InputError
        A label is missing, or the parent is below the label.
    """
    summary = f"{name!r} is below {parent!r}" if parent is not None else f"{name!r} is below nothing"
    with begin_entry(collection.engine, by, "parent", summary) as change:
        parent_id = None if parent is None else label_store.find_label(change.connection, parent)
        label_store.set_parent(change, label_store.find_label(change.connection, name), parent_id)


def add_label_synonyms(collection: Collection, name: str, names: Sequence[str], by: str, language: str = "") -> None:
    """Add synonyms to a label.

    Raises
    ------
    InputError
        The label is missing, or another label has one of the names.
    """
    summary = f"{name!r} is also called {', '.join(map(repr, names))}"
    with begin_entry(collection.engine, by, "synonym", summary) as change:
        number = label_store.find_label(change.connection, name)
        _add_synonyms(change, number, dict.fromkeys(names, language))


def exclude_merge(collection: Collection, numbers: Iterable[int], by: str) -> ExclusionResult:
    """Exclude labels from being merged with one another.

    Raises
    ------
    NotFoundError
        A label is missing or was merged.
    InputError
        There are fewer than two labels.
    """
    label_ids = sorted(set(numbers))
    if len(label_ids) < 2:
        raise InputError("give two labels or more that are to be kept apart")
    with begin_entry(collection.engine, by, "apart") as change:
        change.summary = f"kept apart: {', '.join(map(repr, _read_names(change, label_ids)))}"
        exclusion_ids = _add_exclusions(change, list(combinations(label_ids, 2)))
    return ExclusionResult(len(exclusion_ids), _get_entry_id(change))


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _read_names(change: JournalWriter, numbers: Sequence[int]) -> list[str]:
    """Return the names of labels; refuse missing and merged ones."""
    return [label_store.read_label(change.connection, number)["name"] for number in numbers]


def _add_synonyms(change: JournalWriter, number: int, names: Mapping[str, str]) -> None:
    languages = {name: label_store.normalise_language(language) for name, language in names.items()}
    conflicts = label_store.add_synonyms(change, number, languages)
    if conflicts:
        name = label_store.read_label(change.connection, number)["name"]
        raise InputError(f"{conflicts[0]!r} is a label of its own, or another name of one; merge it into {name!r}")


def _get_entry_id(change: JournalWriter) -> int | None:
    """Return the id of a journal entry; None if it changed nothing."""
    return change.id if change.n_changes else None


def _add_exclusions(change: JournalWriter, pairs: Sequence[tuple[int, int]]) -> list[int]:
    c = merge_exclusions.c
    query = select(c.label_a, c.label_b).where(c.label_a.in_({a for a, _ in pairs}))
    existing = {(row[0], row[1]) for row in change.connection.execute(query)}
    return change.add(merge_exclusions, [{"label_a": a, "label_b": b} for a, b in pairs if (a, b) not in existing])
