"""Merges of labels, and pairs that are never merged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from sqlalchemy import select

from wsabie.collection.db.journal import JournalWriter, begin_entry
from wsabie.collection.db.tables import annotations, labels, merge_exclusions, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels.label_edits import quote_names
from wsabie.collection.labels.label_store import list_ancestors, read_label
from wsabie.core.errors import require


class MergeCounts(NamedTuple):
    """Result of a merge: moved annotations and dropped duplicates."""

    moved: int
    duplicates: int


@dataclass(frozen=True)
class MergeResult:
    """Result of a merge: names, moved tags, duplicates that the target had already, and the journal entry."""

    target: str
    labels: list[str]
    moved_tags: int
    duplicates: int
    entry: int | None


@dataclass(frozen=True)
class ExclusionResult:
    """Number of new pairs that are never merged, and the journal entry, to undo it, if there are any."""

    pairs: int
    entry: int | None


def merge_label(change: JournalWriter, label_id: int, target_id: int) -> MergeCounts:
    """Merge a label into another: annotations, synonyms and children move; its name becomes a synonym.

    If an item has both, the annotation of the target stays.

    Raises
    ------
    InputError
        The labels are the same.
    NotFoundError
        A label is missing or was merged.
    """
    source, target = read_label(change.connection, label_id), read_label(change.connection, target_id)
    require(label_id != target_id, f"{target['name']!r} cannot be merged into itself; give two labels")
    a, connection = annotations.c, change.connection
    query = select(a.id, a.item_id, a.region)
    target_keys = {(item, region) for _, item, region in connection.execute(query.where(a.label_id == target_id))}
    source_keys = {tag: tuple(key) for tag, *key in connection.execute(query.where(a.label_id == label_id))}
    duplicate_ids = [tag for tag, key in source_keys.items() if key in target_keys]
    moves = {tag: {"label_id": target_id} for tag, key in source_keys.items() if key not in target_keys}
    change.remove(annotations, duplicate_ids)
    change.update(annotations, moves)
    is_below = label_id in list_ancestors(connection, target_id)
    children = connection.scalars(select(labels.c.id).where(labels.c.parent_id == label_id))
    change.update(labels, {child: {"parent_id": target_id} for child in children if child != target_id})
    if is_below:
        change.update(labels, {target_id: {"parent_id": source["parent_id"]}})
    source_synonyms = connection.scalars(select(synonyms.c.id).where(synonyms.c.label_id == label_id))
    change.update(synonyms, {synonym_id: {"label_id": target_id} for synonym_id in source_synonyms})
    change.update(labels, {label_id: {"merged_into": target_id, "parent_id": None}})
    change.add(synonyms, [{"name": source["name"], "label_id": target_id, "language": source["language"]}])
    change.summary = change.summary or f"merged {source['name']!r} into {target['name']!r}"
    return MergeCounts(len(moves), len(duplicate_ids))


def merge_labels(collection: Collection, label_ids: Iterable[int], target: int, by: str) -> MergeResult:
    """Merge labels into another, as one journal entry.

    Raises
    ------
    NotFoundError
        A label is missing or was merged.
    InputError
        A label would be merged into itself.
    """
    sources = list(dict.fromkeys(label_ids))
    with begin_entry(collection.engine, by, "merge") as change:
        *names, target_name = _read_names(change, [*sources, target])
        merges = [merge_label(change, label_id, target) for label_id in sources]
        change.summary = f"merged {quote_names(names)} into {target_name!r}"
    moved, duplicates = sum(merge.moved for merge in merges), sum(merge.duplicates for merge in merges)
    return MergeResult(target_name, names, moved, duplicates, change.entry)


def exclude_merge(collection: Collection, label_ids: Iterable[int], by: str) -> ExclusionResult:
    """Exclude labels from being merged with one another.

    Raises
    ------
    NotFoundError
        A label is missing or was merged.
    InputError
        There are fewer than two labels.
    """
    distinct_ids = sorted(set(label_ids))
    require(len(distinct_ids) > 1, "give two labels or more that are to be kept apart")
    with begin_entry(collection.engine, by, "apart") as change:
        change.summary = f"kept apart: {', '.join(map(repr, _read_names(change, distinct_ids)))}"
        c = merge_exclusions.c
        query = select(c.label_a, c.label_b).where(c.label_a.in_(distinct_ids))
        existing = {(row[0], row[1]) for row in change.connection.execute(query)}
        pairs = [pair for pair in combinations(distinct_ids, 2) if pair not in existing]
        exclusion_ids = change.add(merge_exclusions, [{"label_a": a, "label_b": b} for a, b in pairs])
    return ExclusionResult(len(exclusion_ids), change.entry)


def _read_names(change: JournalWriter, label_ids: Sequence[int]) -> list[str]:
    """Return the names of labels; refuse missing and merged ones."""
    return [read_label(change.connection, label_id)["name"] for label_id in label_ids]
