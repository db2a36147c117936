"""Edits of labels by people: add, rename, nest, delete; each is an entry of the journal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wsabie.collection.db.journal import Row, begin_entry
from wsabie.collection.db.tables import labels
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError

_MAX_SUMMARY = 1000


@dataclass(frozen=True)
class DeletionResult:
    """Result of a deletion: names, deleted tags, children that moved up, and the journal entry to undo it."""

    labels: list[str]
    tags: int
    children: int
    entry: int | None


def add_labels(collection: Collection, names: Iterable[str], *, by: str) -> None:
    """Add the labels that are missing, in one journal entry.

    Raises
    ------
    InputError
        A name is invalid.
    """
    with begin_entry(collection.engine, by, "label") as change:
        names_before = label_store.read_label_names(change.connection)
        label_ids = label_store.ensure_labels(change, names)
        change.summary = f"{len(set(label_ids.values()) - names_before.keys()):,} labels added"


def delete_labels(
    collection: Collection, label_ids: Iterable[int], by: str, *, with_tags: bool = False
) -> DeletionResult:
    """Delete labels and their synonyms as one journal entry; their children move up.

    Parameters
    ----------
    collection : Collection
    label_ids : iterable of int
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
        unique_ids = dict.fromkeys(label_ids)
        deletions = [label_store.delete_label(change, label_id, with_tags=with_tags) for label_id in unique_ids]
        names, tags = [name for name, _, _ in deletions], sum(n_tags for _, n_tags, _ in deletions)
        change.summary = f"deleted {quote_names(names)}" + (f" with {tags:,} tags" if tags else "")
    return DeletionResult(names, tags, sum(n_children for _, _, n_children in deletions), change.entry)


def edit_label(
    collection: Collection,
    label: int | str,
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
    label : int or str
        Its id, or its name or a synonym of it.
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
        label_id = label if isinstance(label, int) else label_store.find_label(change.connection, label)
        old = label_store.read_label(change.connection, label_id)["name"]
        if name is not None:
            label_store.rename_label(change, label_id, name)
        label_store.remove_synonyms(change, label_id, remove)
        languages = {synonym: label_store.normalise_language(language) for synonym, language in (add or {}).items()}
        if conflicts := label_store.add_synonyms(change, label_id, languages):
            main = label_store.read_label(change.connection, label_id)["name"]
            raise InputError(f"{conflicts[0]!r} is a label of its own, or another name of one; merge it into {main!r}")
        if parent is not None:
            parent_id = label_store.find_label(change.connection, parent) if parent else None
            label_store.set_parent(change, label_id, parent_id)
        new: Row = {} if language is None else {"language": label_store.normalise_language(language)}
        new |= {} if wordnet is None else {"wordnet": label_store.normalise_concept(wordnet)}
        change.update(labels, {label_id: new})
        edit = {"called": name, "language": language, "meaning": wordnet, "below": parent}
        parts = [f"{field} {repr(value) if value else 'nothing'}" for field, value in edit.items() if value is not None]
        parts += [f"also called {synonym!r}" for synonym in add or ()]
        parts += [f"not called {synonym!r}" for synonym in remove]
        change.summary = f"changed {old!r}: {', '.join(parts)}"[:_MAX_SUMMARY]
    return change.entry


def quote_names(names: Sequence[str]) -> str:
    """Quote up to five names for a message, and count the others."""
    return ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
