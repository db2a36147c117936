"""Write the results of a scan to the catalogue, one transaction a block."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update

from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db.database import begin_write
from wsabie.collection.db.journal import JournalWriter, begin_entry, format_current_time
from wsabie.collection.db.tables import annotations, changes, items, journal
from wsabie.collection.labels import label_store
from wsabie.collection.labels.label_paths import set_parents_by_path
from wsabie.collection.scan.move_detection import FileRecord, ItemRecord
from wsabie.core.errors import InputError

ScanKind = Literal["new", "moved", "changed", "same", "tags"]
UnlistedTagState = Literal["kept", "withdrawn", "held"]
"""Fate of tags that a file supplied and no longer lists; "held" tags stay, and are counted."""

_BATCH_SIZE = 500


class ScanRecord(NamedTuple):
    """An inspected file with its classification, ready to be written.

    Attributes
    ----------
    kind : {"new", "moved", "changed", "same", "tags"}
        "same": an item with unchanged content; "tags": an item that only gets labels.
    file : FileRecord
    item : ItemRecord or None
        The item that the file is; None for a new item.
    labels : tuple of str
    tag_origin : str
        Source of the labels.
    unlisted_tags : {"kept", "withdrawn", "held"}
        Fate of earlier tags that the file no longer lists.
    """

    kind: ScanKind
    file: FileRecord
    item: ItemRecord | None = None
    labels: tuple[str, ...] = ()
    tag_origin: str = ""
    unlisted_tags: UnlistedTagState = "kept"


class BlockCounts(NamedTuple):
    """Outcome of writing a block.

    Attributes
    ----------
    counts : Counter of str
        Files of each kind, and "tagged", "withdrawn", "held" and "found".
    line : int or None
        Journal entry of the block.
    refused : list of (str, str)
        Files with label paths that contradict the catalogue, and the reason.
    """

    counts: Counter[str]
    line: int | None
    refused: list[tuple[str, str]]


def read_known_items(connection: Connection, roots: Sequence[int]) -> list[ItemRecord]:
    """Return all items of some roots."""
    c = items.c
    query = select(c.id, c.root_id, c.path, c.hash, c.size, c.modified, c.state, c.sidecar).where(c.root_id.in_(roots))
    return [ItemRecord(*row) for row in connection.execute(query)]


def write_block(engine: Engine, by: str, block: Sequence[ScanRecord]) -> BlockCounts:
    """Write a block; leave out entries that another process has overtaken."""
    with begin_entry(engine, by, "scan", "a scan that was not finished") as change:
        valid = _select_valid(change.connection, block)
        _move_items(change.connection, [entry for entry in valid if entry.kind == "moved"])
        for entry in valid:
            if entry.kind != "moved" and entry.item is not None:
                _update_item(change.connection, entry.item, _make_content_columns(entry))
        numbers = _add_items(change.connection, [entry.file for entry in valid if entry.item is None])
        refused = _set_parents(change, valid)
        tagged = _add_tags(change, valid, numbers)
        unlisted_counts = _withdraw_tags(change, valid)
        line = change.id if change.n_changes else None
    counts = Counter[str](entry.kind for entry in valid) + unlisted_counts
    counts["found"] = sum(
        entry.kind == "same" and entry.item is not None and entry.item.state == "missing" for entry in valid
    )
    counts["tagged"] = tagged
    return BlockCounts(counts, line, refused)


def write_missing(engine: Engine, missing: Sequence[ItemRecord]) -> int:
    """Mark items whose files are gone as missing; return how many were not marked yet."""
    with begin_write(engine) as connection:
        paths = _read_paths(connection, [item.id for item in missing])
        numbers = [item.id for item in missing if paths.get(item.id) == (item.root, item.path)]
        not_yet_missing = items.c.id.in_(numbers) & (items.c.state != "missing")
        return connection.execute(update(items).where(not_yet_missing).values(state="missing")).rowcount


def write_journal_line(engine: Engine, by: str, summary: str, lines: Sequence[int]) -> None:
    """Replace the journal entries of the blocks by one, as far as nobody else wrote between them."""
    with begin_entry(engine, by, "scan", summary, always=True) as change:
        if not lines:
            return
        connection, last = change.connection, 0
        c = journal.c
        foreign_entries = select(func.max(c.id)).where(c.id > lines[0], c.id < change.id, c.id.not_in(lines))
        last = connection.execute(foreign_entries).scalar() or 0
        replaceable = [line for line in lines if line > last]
        connection.execute(update(changes).where(changes.c.entry_id.in_(replaceable)).values(entry_id=change.id))
        connection.execute(delete(journal).where(c.id.in_(replaceable)))


def _select_valid(connection: Connection, block: Sequence[ScanRecord]) -> list[ScanRecord]:
    """Return the entries that still hold: their items did not move, and their target paths become free."""
    paths = _read_paths(connection, [entry.item.id for entry in block if entry.item is not None])
    occupants = _read_item_ids(connection, block)
    valid = [
        entry for entry in block if entry.item is None or paths.get(entry.item.id) == (entry.item.root, entry.item.path)
    ]
    while True:
        departing = {entry.item.id for entry in valid if entry.kind == "moved" and entry.item is not None}
        remaining = []
        for entry in valid:
            occupant = occupants.get((entry.file.root, entry.file.path))
            if occupant is None or (entry.item is not None and occupant == entry.item.id) or occupant in departing:
                remaining.append(entry)
        if len(remaining) == len(valid):
            return remaining
        valid = remaining  # an entry whose target path stays occupied waits for the next scan


def _read_paths(connection: Connection, numbers: Sequence[int]) -> dict[int, tuple[int, str]]:
    c = items.c
    paths: dict[int, tuple[int, str]] = {}
    for lo in range(0, len(numbers), _BATCH_SIZE):
        query = select(c.id, c.root_id, c.path).where(c.id.in_(numbers[lo : lo + _BATCH_SIZE]))
        paths |= {row[0]: (row[1], row[2]) for row in connection.execute(query)}
    return paths


def _read_item_ids(connection: Connection, block: Sequence[ScanRecord]) -> dict[tuple[int, str], int]:
    """Return the items at the target paths of a block."""
    c = items.c
    item_ids: dict[tuple[int, str], int] = {}
    for root in {entry.file.root for entry in block}:
        paths = [entry.file.path for entry in block if entry.file.root == root]
        for lo in range(0, len(paths), _BATCH_SIZE):
            query = select(c.path, c.id).where(c.root_id == root, c.path.in_(paths[lo : lo + _BATCH_SIZE]))
            item_ids |= {(root, row[0]): row[1] for row in connection.execute(query)}
    return item_ids


def _move_items(connection: Connection, moves: Sequence[ScanRecord]) -> None:
    """Move items to their new paths; all leave before any arrives, since they may swap paths."""
    pairs = [(entry.item, entry) for entry in moves if entry.item is not None]
    if len(pairs) > 1:
        leave = update(items).where(items.c.id == bindparam("number")).values(path=bindparam("aside"))
        connection.execute(
            leave, [{"number": item.id, "aside": f"/{item.id}"} for item, _ in pairs]
        )  # no real path looks like this
    for item, entry in pairs:
        _update_item(
            connection, item, _make_content_columns(entry) | _make_path_columns(entry.file), always=len(pairs) > 1
        )


def _update_item(connection: Connection, item: ItemRecord, values: dict[str, Any], *, always: bool = False) -> None:
    current = {"root_id": item.root, **item._asdict()}
    if always or any(current.get(name, ...) != value for name, value in values.items()):
        connection.execute(update(items).where(items.c.id == item.id).values(values))


def _make_content_columns(entry: ScanRecord) -> dict[str, Any]:
    """Return the columns that depend on the content of a file."""
    inspection = entry.file.inspection
    stamp = entry.file.sidecar
    if stamp is not None and inspection.tag_error:  # unreadable tags are read again by the next scan
        stamp = stamp[: stamp.index(":") + 1]
    sidecar = {"sidecar": stamp}
    if entry.kind == "tags":
        return sidecar
    state = "unreadable" if inspection.reason else "present"
    if inspection.hash is None or inspection.stat is None:  # the next scan inspects it again
        return {"modified": None, "state": state}
    values: dict[str, Any] = {
        "size": inspection.stat.size,
        "modified": inspection.stat.modified,
        "state": state,
    } | sidecar
    if entry.kind == "same":
        return values
    picture = {"width": inspection.width, "height": inspection.height, "taken": inspection.capture_time}
    return values | {"hash": inspection.hash} | picture


def _make_path_columns(file: FileRecord) -> dict[str, Any]:
    parent = PurePosixPath(file.path).parent.as_posix()
    return {"root_id": file.root, "path": file.path, "folder": "" if parent == "." else parent}


def _add_items(connection: Connection, files: Sequence[FileRecord]) -> dict[tuple[int, str], int]:
    """Add new items; return their ids by root and path."""
    time = format_current_time()
    rows = [
        {"hash": None, "size": None, "width": None, "height": None, "taken": None, "added": time, "sidecar": None}
        | _make_content_columns(ScanRecord("new", file))
        | _make_path_columns(file)
        for file in files
    ]
    if rows:
        connection.execute(insert(items), rows)
    return _read_item_ids(connection, [ScanRecord("new", file) for file in files])


def _add_tags(change: JournalWriter, entries: Iterable[ScanRecord], numbers: Mapping[tuple[int, str], int]) -> int:
    """Accept the labels that files list; return how many are new. Earlier decisions stay."""
    tagged = 0
    labelled = [entry for entry in entries if entry.labels]
    accepted = _read_accepted(change.connection, [entry.item.id for entry in labelled if entry.item is not None])
    for origin in sorted({entry.tag_origin for entry in labelled}):
        origin_entries = [entry for entry in labelled if entry.tag_origin == origin]
        labels = label_store.ensure_labels(change, [label for entry in origin_entries for label in entry.labels])
        decisions = [
            Decision(
                entry.item.id if entry.item else numbers[entry.file.root, entry.file.path], labels[label], "accepted"
            )
            for entry in origin_entries
            for label in entry.labels
            if entry.item is None or (entry.item.id, labels[label]) not in accepted
        ]
        outcome = write_decisions(change, decisions, origin="import", by=origin)
        tagged += outcome.added + outcome.changed
    return tagged


def _withdraw_tags(change: JournalWriter, entries: Iterable[ScanRecord]) -> Counter[str]:
    """Withdraw tags that a rescanned file no longer lists; return the counts of withdrawn and held tags."""
    rescanned = {entry.item.id: entry for entry in entries if entry.item is not None and entry.unlisted_tags != "kept"}
    embedded_names = {
        item: split_label_names(entry.file.inspection.embedded_labels)[0] for item, entry in rescanned.items()
    }
    names = {name for item, entry in rescanned.items() for name in (*entry.labels, *embedded_names[item])}
    label_ids = label_store.find_labels(change.connection, names)
    listed_pairs = {(item, label_ids.get(name)) for item, entry in rescanned.items() for name in entry.labels}
    embedded_pairs = {(item, label_ids.get(name)) for item, item_names in embedded_names.items() for name in item_names}
    a, item_ids, withdrawn, counts = annotations.c, list(rescanned), list[int](), Counter[str]()
    for lo in range(0, len(item_ids), _BATCH_SIZE):
        is_from_file = (a.origin == "import") & (a.state == "accepted") & (a.region == "")
        query = select(a.id, a.item_id, a.label_id, a.by).where(
            is_from_file, a.item_id.in_(item_ids[lo : lo + _BATCH_SIZE])
        )
        for annotation_id, item, label, by in change.connection.execute(query):
            if by == rescanned[item].tag_origin and (item, label) not in listed_pairs:
                outcome = "held" if (item, label) in embedded_pairs else rescanned[item].unlisted_tags
                counts[outcome] += 1
                withdrawn += [annotation_id] * (outcome == "withdrawn")
    change.remove(annotations, withdrawn)
    return counts


def _set_parents(change: JournalWriter, entries: Iterable[ScanRecord]) -> list[tuple[str, str]]:
    """Put labels below the broader labels of their paths in files; return refusals as (file, reason)."""
    tag_paths = [(entry.file.path, path) for entry in entries if entry.labels for path in entry.file.inspection.paths]
    if not tag_paths:
        return []
    normalised_paths = {
        path: tuple(valid_names) for _, path in tag_paths if len(valid_names := split_label_names(path)[0]) == len(path)
    }
    refused = set_parents_by_path(change, normalised_paths.values())
    reasons = [
        (file, refused.get(normalised_paths[path], "") if path in normalised_paths else "a name cannot be a label")
        for file, path in tag_paths
    ]
    return [(file, reason) for file, reason in reasons if reason]


def _read_accepted(connection: Connection, numbers: Sequence[int]) -> set[tuple[int, int]]:
    """Return the (item, label) pairs that are accepted already; exported tags come back from files."""
    a, pairs = annotations.c, set[tuple[int, int]]()
    for lo in range(0, len(numbers), _BATCH_SIZE):
        is_accepted = a.item_id.in_(numbers[lo : lo + _BATCH_SIZE]) & (a.state == "accepted")
        pairs.update((row[0], row[1]) for row in connection.execute(select(a.item_id, a.label_id).where(is_accepted)))
    return pairs


def split_label_names(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split names into valid label names, normalised, and invalid ones."""
    valid: list[str] = []
    invalid: list[str] = []
    for name in names:
        try:
            valid.append(label_store.normalise_name(name))
        except InputError:
            invalid.append(name)
    return valid, invalid
