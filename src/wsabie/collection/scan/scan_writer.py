"""Write the results of a scan to the database, one transaction a block."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update

from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db.database import begin_write, select_in
from wsabie.collection.db.journal import JournalWriter, Row, begin_entry, format_current_time
from wsabie.collection.db.tables import annotations, changes, items, journal, labels, synonyms
from wsabie.collection.labels import label_store
from wsabie.collection.scan.move_detection import FileRecord, ItemRecord
from wsabie.core.errors import InputError


def read_known_items(connection: Connection, roots: Sequence[int]) -> list[ItemRecord]:
    """Return all items of some roots."""
    c = items.c
    query = select(c.id, c.root_id, c.path, c.hash, c.size, c.mtime_ns, c.state, c.sidecar).where(c.root_id.in_(roots))
    return [ItemRecord(*row) for row in connection.execute(query)]


def read_deleted_names(connection: Connection) -> set[str]:
    """Return the names of labels that people deleted, and that no label has now."""
    is_removed = (changes.c.table == "labels") & changes.c.new_row.is_(None)
    deleted = {str(row["name"]) for row in connection.scalars(select(changes.c.old_row).where(is_removed))}
    return deleted - label_store.find_labels(connection, deleted).keys()


def write_block(
    engine: Engine, by: str, block: Sequence[FileRecord]
) -> tuple[Counter[str], int | None, list[tuple[str, str]]]:
    """Write a block; leave out entries that another process has overtaken.

    Returns
    -------
    counts : Counter of str
        Files by change, "reappeared", and the fields of `ScanResult` that count tags.
    line : int or None
        Journal entry of the block.
    refused : list of (str, str)
        Files with label paths that contradict the database, and the reason.
    """
    with begin_entry(engine, by, "scan", "a scan that was not finished") as change:
        valid = _select_valid(change.connection, block)
        _move_items(change.connection, [entry for entry in valid if entry.change == "moved"])
        for entry in valid:
            if entry.change != "moved" and entry.item is not None:
                _update_item(change.connection, entry.item, _make_content_columns(entry))
        ids_by_path = _add_items(change.connection, [entry for entry in valid if entry.item is None])
        refused = _set_parents(change, valid)
        n_added_tags = _add_tags(change, valid, ids_by_path)
        unlisted_counts = _withdraw_tags(change, valid)
    counts = Counter[str](entry.change for entry in valid) + unlisted_counts
    same_items = [entry.item for entry in valid if entry.change == "same" and entry.item is not None]
    n_returned = sum(item.state == "missing" for item in same_items)
    counts.update(reappeared=n_returned, added_tags=n_added_tags)
    return counts, change.entry, refused


def write_missing(engine: Engine, missing: Sequence[ItemRecord]) -> int:
    """Mark items whose files are gone as missing; return how many were not marked yet."""
    with begin_write(engine) as connection:
        paths = _read_paths(connection, [item.id for item in missing])
        item_ids = [item.id for item in missing if paths.get(item.id) == (item.root, item.path)]
        not_yet_missing = items.c.id.in_(item_ids) & (items.c.state != "missing")
        return connection.execute(update(items).where(not_yet_missing).values(state="missing")).rowcount


def withdraw_folder_tags(
    engine: Engine, by: str, root: int, excluded_names: Collection[str], listed_names: Iterable[str]
) -> tuple[int, int | None]:
    """Withdraw the tags that sub-folders gave a root's items, of labels that no sub-folder gives any more.

    Parameters
    ----------
    engine : Engine
    by : str
    root : int
    excluded_names : collection of str
        Names of sub-folders that are not labels, in lower case; a label may have one as its synonym.
    listed_names : iterable of str
        Names of sub-folders that are labels.

    Returns
    -------
    n : int
        Withdrawn tags.
    line : int or None
        Journal entry; None if there is none.
    """
    with begin_entry(engine, by, "scan", "folder names that are not labels") as change:
        connection, a = change.connection, annotations.c
        names = select(labels.c.name, labels.c.id).where(labels.c.merged_into.is_(None))
        rows = connection.execute(names.union_all(select(synonyms.c.name, synonyms.c.label_id)))
        label_ids = {label for name, label in rows if name.casefold() in excluded_names}
        label_ids -= set(label_store.find_labels(connection, listed_names).values())
        is_from_folder = (
            (a.origin == "import") & (a.by == "folder") & (a.state == "accepted") & (items.c.root_id == root)
        )
        query = select(a.id).join(items).where(is_from_folder)
        tags = [row[0] for row in select_in(connection, query, a.label_id, sorted(label_ids))]
        change.remove(annotations, tags)
    return len(tags), change.entry


def write_journal_line(engine: Engine, by: str, summary: str, lines: Sequence[int]) -> None:
    """Replace the journal entries of the blocks by one, as far as nobody else wrote between them."""
    with begin_entry(engine, by, "scan", summary, always=True) as change:
        c = journal.c
        is_foreign = (c.id > min(lines, default=0)) & (c.id < change.id) & c.id.not_in(lines)
        last = change.connection.scalar(select(func.max(c.id)).where(is_foreign)) or 0
        replaceable = [line for line in lines if line > last]
        moved = update(changes).where(changes.c.entry_id.in_(replaceable)).values(entry_id=change.id)
        change.connection.execute(moved)
        change.connection.execute(delete(journal).where(c.id.in_(replaceable)))


def _select_valid(connection: Connection, block: Sequence[FileRecord]) -> list[FileRecord]:
    """Return the entries that still hold: their items did not move, and their target paths become free."""
    paths = _read_paths(connection, [entry.item.id for entry in block if entry.item is not None])
    occupants = _read_item_ids(connection, block)
    valid = [
        entry for entry in block if entry.item is None or paths.get(entry.item.id) == (entry.item.root, entry.item.path)
    ]
    while True:
        departing = {None, *(entry.item.id for entry in valid if entry.change == "moved" and entry.item is not None)}
        remaining = [
            entry
            for entry in valid
            if (occupant := occupants.get((entry.root, entry.path))) in departing
            or (entry.item is not None and occupant == entry.item.id)
        ]
        if len(remaining) == len(valid):
            return remaining
        valid = remaining  # an entry whose target path stays occupied waits for the next scan


def _read_paths(connection: Connection, item_ids: Sequence[int]) -> dict[int, tuple[int, str]]:
    query = select(items.c.id, items.c.root_id, items.c.path)
    return {row[0]: (row[1], row[2]) for row in select_in(connection, query, items.c.id, item_ids)}


def _read_item_ids(connection: Connection, files: Sequence[FileRecord]) -> dict[tuple[int, str], int]:
    """Return the items at the paths of files."""
    item_ids: dict[tuple[int, str], int] = {}
    for root in {file.root for file in files}:
        query = select(items.c.path, items.c.id).where(items.c.root_id == root)
        paths = [file.path for file in files if file.root == root]
        item_ids |= {(root, row[0]): row[1] for row in select_in(connection, query, items.c.path, paths)}
    return item_ids


def _move_items(connection: Connection, moves: Sequence[FileRecord]) -> None:
    """Move items to their new paths in two phases: temporary paths first, so that swaps do not collide."""
    pairs = [(entry.item, entry) for entry in moves if entry.item is not None]
    if len(pairs) > 1:
        statement = update(items).where(items.c.id == bindparam("item_id")).values(path=bindparam("temporary_path"))
        rows = [{"item_id": item.id, "temporary_path": f"/{item.id}"} for item, _ in pairs]  # real paths are relative
        connection.execute(statement, rows)
    for item, entry in pairs:
        columns = _make_content_columns(entry) | _make_path_columns(entry)
        _update_item(connection, item, columns, always=len(pairs) > 1)


def _update_item(connection: Connection, item: ItemRecord, values: Row, *, always: bool = False) -> None:
    current = {"root_id": item.root, **item._asdict()}
    if always or any(current.get(name, ...) != value for name, value in values.items()):
        connection.execute(update(items).where(items.c.id == item.id).values(values))


def _make_content_columns(entry: FileRecord) -> Row:
    """Return the columns that depend on the content of a file."""
    inspection, stamp = entry.inspection, entry.sidecar
    if stamp is not None and inspection.tag_error:  # unreadable tags are read again by the next scan
        stamp = stamp[: stamp.index(":") + 1]
    if entry.change == "tags":
        return {"sidecar": stamp}
    state = "unreadable" if inspection.reason else "present"
    if inspection.hash is None or inspection.stat is None:  # the next scan inspects it again
        return {"mtime_ns": None, "state": state}
    values = {**inspection.stat._asdict(), "state": state, "sidecar": stamp}
    if entry.change == "same":
        return values
    picture = {"width": inspection.width, "height": inspection.height, "taken_at": inspection.capture_time}
    return values | {"hash": inspection.hash} | picture


def _make_path_columns(file: FileRecord) -> Row:
    return {"root_id": file.root, "path": file.path, "folder": file.path.rpartition("/")[0]}


def _add_items(connection: Connection, files: Sequence[FileRecord]) -> dict[tuple[int, str], int]:
    """Add new items; return their ids by root and path."""
    time = format_current_time()
    rows = [
        {"hash": None, "size": None, "width": None, "height": None, "taken_at": None, "added_at": time, "sidecar": None}
        | _make_content_columns(file)
        | _make_path_columns(file)
        for file in files
    ]
    if rows:
        connection.execute(insert(items), rows)
    return _read_item_ids(connection, files)


def _add_tags(change: JournalWriter, entries: Iterable[FileRecord], ids_by_path: Mapping[tuple[int, str], int]) -> int:
    """Accept the labels that files list; return how many are new. Earlier decisions stay."""
    n_added = 0
    labelled = [entry for entry in entries if entry.labels]
    query = select(annotations.c.item_id, annotations.c.label_id).where(annotations.c.state == "accepted")
    known_ids = [entry.item.id for entry in labelled if entry.item is not None]
    accepted = {tuple(row) for row in select_in(change.connection, query, annotations.c.item_id, known_ids)}
    for origin in sorted({entry.tag_origin for entry in labelled}):
        origin_entries = [entry for entry in labelled if entry.tag_origin == origin]
        labels = label_store.ensure_labels(change, [label for entry in origin_entries for label in entry.labels])
        decisions = [
            Decision(entry.item.id if entry.item else ids_by_path[entry.root, entry.path], labels[label], "accepted")
            for entry in origin_entries
            for label in entry.labels
            if entry.item is None or (entry.item.id, labels[label]) not in accepted
        ]
        outcome = write_decisions(change, decisions, origin="import", by=origin)
        n_added += outcome.added + outcome.changed
    return n_added


def _withdraw_tags(change: JournalWriter, entries: Iterable[FileRecord]) -> Counter[str]:
    """Withdraw tags that a rescanned file no longer lists; return the counts of withdrawn and held tags."""
    rescanned = {entry.item.id: entry for entry in entries if entry.item is not None and entry.unlisted_tags != "kept"}
    embedded_names = {item: split_label_names(entry.inspection.embedded_labels)[0] for item, entry in rescanned.items()}
    names = {name for item, entry in rescanned.items() for name in (*entry.labels, *embedded_names[item])}
    label_ids = label_store.find_labels(change.connection, names)
    listed_pairs = {(item, label_ids.get(name)) for item, entry in rescanned.items() for name in entry.labels}
    embedded_pairs = {(item, label_ids.get(name)) for item, item_names in embedded_names.items() for name in item_names}
    a, withdrawn, counts = annotations.c, list[int](), Counter[str]()
    is_from_file = (a.origin == "import") & (a.state == "accepted") & (a.region == "")
    query = select(a.id, a.item_id, a.label_id, a.by).where(is_from_file)
    for annotation_id, item, label, by in select_in(change.connection, query, a.item_id, list(rescanned)):
        if by == rescanned[item].tag_origin and (item, label) not in listed_pairs:
            outcome = "held" if (item, label) in embedded_pairs else rescanned[item].unlisted_tags
            counts[f"{outcome}_tags"] += 1
            withdrawn += [annotation_id] * (outcome == "withdrawn")
    change.remove(annotations, withdrawn)
    return counts


def _set_parents(change: JournalWriter, entries: Iterable[FileRecord]) -> list[tuple[str, str]]:
    """Put labels below the broader labels of their paths in files; return refusals as (file, reason)."""
    tag_paths = [(entry.path, path) for entry in entries if entry.labels for path in entry.inspection.paths]
    if not tag_paths:
        return []
    normalised_paths = {
        path: tuple(valid_names) for _, path in tag_paths if len(valid_names := split_label_names(path)[0]) == len(path)
    }
    refused = label_store.set_parents_by_path(change, normalised_paths.values())
    reasons = [
        (file, refused.get(normalised_paths[path], "") if path in normalised_paths else "a name cannot be a label")
        for file, path in tag_paths
    ]
    return [(file, reason) for file, reason in reasons if reason]


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
