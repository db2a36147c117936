"""Write imported tags into the database in one transaction."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlalchemy import Connection, insert, select

from wsabie.collection.annotations.decisions import Decision, DecisionCounts, State, write_decisions
from wsabie.collection.db.journal import JournalWriter, Row, begin_entry, format_current_time, read_rows
from wsabie.collection.db.tables import items, labels, models, roots
from wsabie.collection.folder.collection import WEB, Collection
from wsabie.collection.interchange.formats.tag_record import format_time
from wsabie.collection.labels import label_store
from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError
from wsabie.core.progress import Progress
from wsabie.io.parsers.text_files import format_path
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.collection.interchange.tag_import import TagBuffer

CONFLICT = "tag at odds with a later line"

_CHUNK = 400
_BLOCK = 10_000


class ImportCounts(NamedTuple):
    """Counts of an import; see `tag_import.ImportResult`."""

    items: int
    added: int
    changed: int
    kept: int
    labels: int
    addresses: int
    entry: int | None


def write_import(
    collection: Collection, buffer: "TagBuffer", *, by: str, rejects: Rejects, progress: Progress
) -> ImportCounts:
    """Write the tags of a file; the last of conflicting lines counts, the others are rejected."""
    name = format_path(buffer.path.name)
    with (
        progress.stage("writing", len(buffer.items), "tags") as stage,
        begin_entry(collection.engine, by, "import") as change,
    ):
        addresses, n_addresses = _find_addresses(change.connection, list(buffer.addresses))
        numbers, n_labels = _find_labels(change, buffer, rejects)
        rows = _Rows(buffer, addresses, numbers, _find_deciders(change, buffer))
        counts = DecisionCounts()
        for block in rows.blocks():
            rows.reject_conflicts(block, rejects)
            block_counts = write_decisions(change, rows.decisions(block), origin="import", by=name)
            counts = DecisionCounts(*(a + b for a, b in zip(counts, block_counts, strict=True)))
            stage.advance(len(block))
        change.told = f"{counts.added + counts.changed:,} tags of {name}"
        entry = change.id if change.n_changes else None
    return ImportCounts(
        len(np.unique(rows.items)), counts.added, counts.changed, counts.kept, n_labels, n_addresses, entry
    )


class _Rows:
    """Imported tags with database ids; sorted by item, and within a tag by line."""

    def __init__(self, buffer: "TagBuffer", addresses: Int64, labels: Int64, deciders: list[Row]) -> None:
        items = np.array(buffer.items, np.int64)
        new = items < 0
        items[new] = addresses[-1 - items[new]]
        self.items, self.labels = items, labels[np.array(buffer.labels, np.int64)]
        self.regions, self.states = np.array(buffer.regions), np.array(buffer.states)
        self._order = np.lexsort((self.regions, self.labels, self.items))
        self._buffer, self._deciders, self._places = buffer, deciders, list(buffer.places)

    def blocks(self) -> Iterator[Int64]:
        """Yield row numbers; all tags of an item are in one block."""
        start, items = 0, self.items[self._order]
        while start < len(items):
            end = int(np.searchsorted(items, items[min(start + _BLOCK, len(items)) - 1], "right"))
            yield self._order[start:end]
            start = end

    def reject_conflicts(self, block: Int64, rejects: Rejects) -> None:
        """Reject rows that contradict a later row of the same tag."""
        keys = np.stack([self.items[block], self.labels[block], self.regions[block]])
        is_same_tag = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
        for i in block[:-1][is_same_tag & (self.states[block[1:]] != self.states[block[:-1]])]:
            rejects.add(f"{format_path(self._buffer.path)}:{self._buffer.lines[i]}", CONFLICT)

    def decisions(self, block: Int64) -> Iterator[Decision]:
        """Yield the decisions of a block."""
        for i in block.tolist():
            state: State = "accepted" if self.states[i] else "rejected"
            place = self._places[self.regions[i]]
            yield Decision(int(self.items[i]), int(self.labels[i]), state, place, self._provenance(i))

    def _provenance(self, i: int) -> Row | None:
        tags = self._buffer
        if tags.decider_ids[i] < 0:
            return None
        score, probability = (None if isnan(x) else x for x in (tags.scores[i], tags.probabilities[i]))
        decider = self._deciders[tags.decider_ids[i]]
        return decider | {"at": format_time(tags.at[i]), "score": score, "probability": probability}


def _find_addresses(connection: Connection, addresses: list[str]) -> tuple[Int64, int]:
    """Return the item ids of addresses and the number of new items; no undo removes items."""
    if not addresses:
        return np.empty(0, np.int64), 0
    web_root = connection.execute(select(roots.c.id).where(roots.c.path == WEB)).scalar()
    if web_root is None:
        web_root = connection.execute(insert(roots).values(path=WEB)).inserted_primary_key[0]  # type: ignore[index]  # it has one
    item_ids = _read_item_ids(connection, web_root, addresses)
    new = [address for address in addresses if address not in item_ids]
    added = format_current_time()
    for lo in range(0, len(new), _BLOCK):
        part = [
            {"root_id": web_root, "path": path, "folder": path.rpartition("/")[0], "state": "present", "added": added}
            for path in new[lo : lo + _BLOCK]
        ]
        connection.execute(insert(items), part)
    item_ids |= _read_item_ids(connection, web_root, new)
    return np.array([item_ids[address] for address in addresses], np.int64), len(new)


def _read_item_ids(connection: Connection, root: int, paths: list[str]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for lo in range(0, len(paths), _CHUNK):
        query = select(items.c.path, items.c.id).where(items.c.root_id == root)
        for path, number in connection.execute(query.where(items.c.path.in_(paths[lo : lo + _CHUNK]))):
            ids[path] = number
    return ids


def _find_labels(change: JournalWriter, buffer: "TagBuffer", rejects: Rejects) -> tuple[Int64, int]:
    """Return the label ids in the order of the file and the number of new labels; add their metadata."""
    metadata_by_name = buffer.about
    languages = {name: metadata.language for name, metadata in metadata_by_name.items()}
    names = list(buffer.names)
    parent_names = [name for metadata in metadata_by_name.values() for name in metadata.parents]
    all_names = list(dict.fromkeys([*names, *parent_names]))
    existing = label_store.find_labels(change.connection, all_names)
    by_language = defaultdict(list)
    for name in all_names:
        by_language[languages.get(name, "")].append(name)
    numbers: dict[str, int] = {}
    for language, group in by_language.items():
        numbers |= label_store.ensure_labels(change, group, language)
    concepts = {
        numbers[name]: {"wordnet": metadata.wordnet}
        for name, metadata in metadata_by_name.items()
        if metadata.wordnet and name not in existing
    }
    change.set(labels, concepts)
    parents = {name: metadata.parents for name, metadata in metadata_by_name.items() if metadata.parents}
    _set_parents(change, numbers, parents, rejects)
    for name, metadata in metadata_by_name.items():
        synonyms = dict(metadata.synonyms)
        for synonym in label_store.add_synonyms(change, numbers[name], synonyms) if synonyms else ():
            rejects.add(name, "synonym that another label has", synonym)
    return np.array([numbers[name] for name in names], np.int64), len(set(numbers.values()) - set(existing.values()))


def _set_parents(
    change: JournalWriter, numbers: dict[str, int], parents: dict[str, tuple[str, ...]], rejects: Rejects
) -> None:
    """Set the parents of labels that have none."""
    pairs: dict[int, int] = {}
    for name, path in parents.items():
        pairs |= {numbers[child]: numbers[parent] for parent, child in pairwise((*path, name))}
    orphans = {row["id"] for row in read_rows(change.connection, labels, pairs) if row["parent_id"] is None}
    for child, parent in pairs.items():
        if child not in orphans or child == parent:
            continue
        try:
            label_store.set_parent(change, child, parent)
        except InputError as error:
            rejects.add(str(child), "label that would be above itself", str(error))


def _find_deciders(change: JournalWriter, buffer: "TagBuffer") -> list[Row]:
    """Return the deciders of the tags as columns of annotations."""
    numbers = {
        (model, made_at): _find_model(change, model, made_at) for _, _, model, made_at in buffer.deciders if model
    }
    return [
        {"origin": origin, "by": by, "model_id": numbers.get((model, made_at))}
        for origin, by, model, made_at in buffer.deciders
    ]


def _find_model(change: JournalWriter, folder: str, made_at: str) -> int:
    """Return the id of a model; a missing one is added as removed."""
    c, dated_name = models.c, f"{folder} of {made_at}"
    rows = change.connection.execute(select(c.id, c.folder, c.made).where(c.folder.in_([folder, dated_name]))).all()
    for number, _, row_made_at in rows:
        if row_made_at == made_at:
            return int(number)
    row = {
        "folder": dated_name if any(name == folder for _, name, _ in rows) else folder,
        "made": made_at,
        "how": "full",
        "learnt_to": 0,
        "in_use": False,
        "facts": {},
        "figures": {},
        "removed": True,
    }
    return change.add(models, [row])[0]
