"""Journal of all changes: who changed which rows, and the rows before, so that entries can be undone.

A change is a row before and after. Undoing an entry restores the rows before it, and is an entry itself. Scans have
entries too, but their findings are facts of the file system and cannot be undone.

SQLAlchemy-Continuum takes 40 times as long and knows no action to undo (`docs/decisions/jobs-and-undo.md`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, starmap
from typing import TypeAlias

from sqlalchemy import Connection, Engine, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write, execute_in, fetch_rows, group_pairs, iterate_chunks, select_in
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject

Row: TypeAlias = JsonObject
"""Row of a table by column."""

LOCAL = "local"
"""Author of decisions in a service without tokens: the person at this machine."""

_JOURNALED_NAMES = ("labels", "synonyms", "merge_exclusions", "annotations", "models", "tag_sources")
JOURNALED_TABLES = {name: tables.metadata.tables[name] for name in _JOURNALED_NAMES}
"""Tables that change only through the journal; later ones refer to earlier ones."""

_LAST = select(*(select(func.max(table.c.id)).scalar_subquery() for table in (tables.journal, tables.changes)))
_N_CHANGES = select(func.count()).where(tables.changes.c.entry_id == tables.journal.c.id).scalar_subquery()
_ENTRIES = select(tables.journal, _N_CHANGES).order_by(tables.journal.c.id.desc())
_TIME = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?)?)?)?Z?")
_FLUSH_SIZE = 20_000  # approximate number of changes before a flush


@dataclass(frozen=True)
class JournalEntry:
    """Entry of the journal.

    Attributes
    ----------
    id : int
    at : str
        UTC, ISO 8601.
    by : str
    action, summary : str
    undoes, undone_by : int or None
    changes : int
        Number of changed rows; 0: nothing to undo.
    """

    id: int
    at: str
    by: str
    action: str
    summary: str
    undoes: int | None
    undone_by: int | None
    changes: int


class JournalWriter:
    """Open journal entry that records the changes made through it.

    Attributes
    ----------
    connection : Connection
        Connection of the transaction around the entry.
    by : str
    summary : str
        Summary for people; may be set until the entry is closed.
    id : int
    """

    def __init__(self, connection: Connection, entry: int, by: str, summary: str) -> None:
        self.connection, self.id, self.by, self.summary = connection, entry, by, summary
        self._changes: list[Row] = []
        self._written = 0

    def add(self, table: Table, rows: Sequence[Row]) -> list[int]:
        """Add rows; return their ids in order."""
        if not rows:
            return []
        first = next_id(self.connection, table)
        nulls: Row = {column.name: None for column in table.columns if column.nullable}
        self._insert(table, [nulls | row | {"id": first + i} for i, row in enumerate(rows)])
        return list(range(first, first + len(rows)))

    def update(self, table: Table, values: Mapping[int, Row]) -> None:
        """Change columns of rows by id."""
        old_rows = {row["id"]: row for row in read_rows(self.connection, table, values)}
        new_rows = {row_id: old_rows[row_id] | edits for row_id, edits in values.items() if row_id in old_rows}
        self._update(table, [(old_rows[row_id], row) for row_id, row in new_rows.items() if row != old_rows[row_id]])

    def remove(self, table: Table, row_ids: Iterable[int]) -> None:
        """Remove the rows with these ids, as far as they exist."""
        self._delete(table, read_rows(self.connection, table, row_ids))

    def revert(self, changes: Sequence[Row]) -> None:
        """Revert the changes of other entries, last change first."""
        groups = groupby(reversed(changes), lambda c: (c["table"], c["old_row"] is None, c["new_row"] is None))
        for (name, added, removed), group in groups:
            table, rows = JOURNALED_TABLES[name], [(change["new_row"], change["old_row"]) for change in group]
            if added:
                added_rows = [new_row for new_row, _ in rows]
                if table is tables.labels:
                    added_rows = _select_unused_labels(self.connection, added_rows)
                self._delete(table, added_rows)
            elif removed:
                self._insert(table, [old_row for _, old_row in rows])
            else:
                self._update(table, rows)

    @property
    def n_changes(self) -> int:
        """Number of rows changed so far."""
        return self._written + len(self._changes)

    @property
    def entry(self) -> int | None:
        """Id of the entry; None if nothing has changed so far."""
        return self.id if self.n_changes else None

    def _insert(self, table: Table, rows: Sequence[Row]) -> None:
        for part in iterate_chunks(rows, 10_000):
            self.connection.execute(insert(table), part)
        self._record(table, [(None, row) for row in rows])

    def _delete(self, table: Table, rows: Sequence[Row]) -> None:
        row_ids = [row["id"] for row in rows]
        if table is tables.labels:  # suggestions are not decisions, and would block the deletion
            s, model_ids = tables.suggestions.c, select(tables.models.c.id)  # the first column of the index
            of_models = delete(tables.suggestions).where(s.model_id.in_(model_ids))
            execute_in(self.connection, of_models, s.label_id, row_ids)
        execute_in(self.connection, delete(table), table.c.id, row_ids)
        self._record(table, [(row, None) for row in rows])

    def _update(self, table: Table, pairs: Sequence[tuple[Row, Row]]) -> None:
        if pairs:
            columns: JsonObject = {name: bindparam(f"new_{name}") for name in pairs[0][1] if name != "id"}
            values = [{f"new_{name}": value for name, value in new_row.items()} for _, new_row in pairs]
            self.connection.execute(update(table).where(table.c.id == bindparam("new_id")).values(columns), values)
        self._record(table, pairs)

    def _record(self, table: Table, pairs: Iterable[tuple[Row | None, Row | None]]) -> None:
        for old_row, new_row in pairs:
            place = {"entry_id": self.id, "table": table.name, "row": (new_row or old_row or {})["id"]}
            self._changes.append(place | {"old_row": old_row, "new_row": new_row})
        if len(self._changes) >= _FLUSH_SIZE:
            self.flush()

    def flush(self) -> None:
        """Write the changes that are still in memory."""
        for part in iterate_chunks(self._changes, 10_000):
            self.connection.execute(insert(tables.changes), part)
        self._written += len(self._changes)
        self._changes = []


def next_id(connection: Connection, table: Table) -> int:
    """Return an id that no row of a table has or had; no other process writes meanwhile."""
    journaled = select(func.max(tables.changes.c.row)).where(tables.changes.c.table == table.name)
    present = select(func.max(table.c.id))
    return 1 + max(connection.scalar(query) or 0 for query in (journaled, present))


@contextmanager
def begin_entry(
    engine: Engine, by: str, action: str, summary: str = "", *, always: bool = False
) -> Iterator[JournalWriter]:
    """Open a transaction with one journal entry; without changes no entry is left, unless `always`."""
    with begin_write(engine) as connection:
        journal = tables.journal
        line = {"at": format_current_time(), "by": by, "action": action, "summary": summary}
        primary_key = connection.execute(insert(journal).values(line)).inserted_primary_key
        change = JournalWriter(connection, primary_key[0], by, summary)  # type: ignore[index]  # it has one
        yield change
        change.flush()
        if change.n_changes or always:
            connection.execute(update(journal).where(journal.c.id == change.id).values(summary=change.summary))
        else:
            connection.execute(delete(journal).where(journal.c.id == change.id))


def read_history(engine: Engine, limit: int = 50, before_id: int | None = None) -> list[JournalEntry]:
    """Return the entries of the journal, last first."""
    query = _ENTRIES if before_id is None else _ENTRIES.where(tables.journal.c.id < before_id)
    return list(starmap(JournalEntry, fetch_rows(engine, query.limit(limit))))


def undo_entry(engine: Engine, entry_id: int | None = None, *, by: str, alias: str | None = None) -> JournalEntry:
    """Undo an entry; None: the last undoable one of this person, under either name.

    A label that the entry added stays if it has been used since.

    Returns
    -------
    JournalEntry
        The undone entry.

    Raises
    ------
    InputError
        There is no such entry, it is undone already, or later entries changed the same rows.
    """
    with begin_entry(engine, by, "undo") as change:
        connection = change.connection
        undone = _find_undoable(change, entry_id, (by, alias or by))
        _refuse_if_changed_since(connection, undone)
        change.summary = f"undone: {undone.summary or undone.action}"
        c = tables.changes.c
        query = select(c.table, c.old_row, c.new_row).where(c.entry_id == undone.id).order_by(c.id)
        changes = [dict(row._mapping) for row in connection.execute(query)]
        _revert_changes(change, changes, undone)
        journal = tables.journal
        connection.execute(update(journal).where(journal.c.id == change.id).values(undoes=undone.id))
        connection.execute(update(journal).where(journal.c.id == undone.id).values(undone_by=change.id))
        if undone.undoes is not None:  # the entry that it had undone is in force again
            connection.execute(update(journal).where(journal.c.id == undone.undoes).values(undone_by=None))
    return undone


def read_rows(connection: Connection, table: Table, row_ids: Iterable[int]) -> list[Row]:
    """Return the rows with these ids, as far as they exist."""
    return [dict(row._mapping) for row in select_in(connection, select(table), table.c.id, row_ids)]


def read_last_entry(connection: Connection) -> int:
    """Return the id of the last entry, 0 before the first; the same id means an unchanged database."""
    return read_last_ids(connection)[0]


def read_last_ids(connection: Connection) -> tuple[int, int | None]:
    """Return the ids of the last entry (0 before the first) and of the last change; both only grow."""
    cache = connection.get_execution_options().get("cache", {})
    if _LAST not in cache:
        entry, change = connection.execute(_LAST).one()
        cache[_LAST] = entry or 0, change
    entry, change = cache[_LAST]
    return entry, change


def format_current_time() -> str:
    """Return the current time in UTC, ISO 8601 with microseconds.

    Examples
    --------
    >>> len(format_current_time()), format_current_time()[10], format_current_time()[-1]
    (27, 'T', 'Z')
    """
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def check_time(text: str, suffix: str = "") -> str:
    """Return the beginning of a time that a filter names, without the sign of UTC.

    Raises
    ------
    InputError
        It is not a day or time; `suffix` stands behind the examples.
    """
    if not _TIME.fullmatch(text):
        raise InputError(f"{text[:40]!r} is not a time; write it such as 2026-05 or 2026-05-01T12:00{suffix}")
    return text.removesuffix("Z")


def _find_undoable(change: JournalWriter, entry_id: int | None, names: tuple[str, str]) -> JournalEntry:
    c, connection = tables.journal.c, change.connection
    query = _ENTRIES.where(c.id != change.id).limit(1)
    last = query.where(c.undone_by.is_(None), c.undoes.is_(None), _N_CHANGES > 0)
    row = connection.execute(last.where(c.by.in_(names)) if entry_id is None else query.where(c.id == entry_id)).first()
    if row is None:
        if entry_id is None and (foreign_entry := connection.execute(last).first()) is not None:
            remedy = f"the last that can be undone is entry {foreign_entry.id}, of {foreign_entry.by}: give its id"
            raise InputError(f"there is nothing of yours to undo; {remedy}")
        message = "there is nothing of yours to undo" if entry_id is None else f"the journal has no entry {entry_id}"
        raise InputError(f"{message}; `collection.history()` lists what was done")
    entry = JournalEntry(*row)
    if entry.undone_by is not None:
        fact = f"entry {entry.id} is undone already, by entry {entry.undone_by}"
        raise InputError(f"{fact}; undo that entry first")
    if not entry.changes:
        raise InputError(f"entry {entry.id} ({entry.summary or entry.action}) changed nothing that could be undone")
    return entry


def _revert_changes(change: JournalWriter, changes: Sequence[Row], undone: JournalEntry) -> None:
    message = f"entry {undone.id} cannot be undone: what it removed was made again since, or what that needs is gone"
    message += "; undo what came later first"
    try:
        change.revert(changes)
    except IntegrityError as error:
        raise InputError(message) from error
    names = [row["name"] for edit in changes if (row := edit["old_row"]) and edit["table"] in ("labels", "synonyms")]
    label, synonym = tables.labels.c, tables.synonyms.c
    query = select(label.id).where(label.name == synonym.name, label.merged_into.is_(None))
    require(not any(select_in(change.connection, query, label.name, names)), message)


def _refuse_if_changed_since(connection: Connection, undone: JournalEntry) -> None:
    """Refuse to undo an entry whose rows later entries changed again."""
    edits, later = tables.changes.alias("ours"), tables.changes.alias("later")
    is_same_row = (later.c.table == edits.c.table) & (later.c.row == edits.c.row)
    pairs = edits.join(later, is_same_row & (later.c.entry_id > edits.c.entry_id))
    query = select(func.max(later.c.entry_id)).select_from(pairs).where(edits.c.entry_id == undone.id)
    last = connection.scalar(query)
    if last is not None and not _is_restored(connection, undone.id):
        raise InputError(f"entry {last} changed the same after entry {undone.id}; undo {last} first")


def _is_restored(connection: Connection, entry_id: int) -> bool:
    """Return True if every row that an entry changed is as the entry left it."""
    c = tables.changes.c
    query = select(c.table, c.row, c.new_row).where(c.entry_id == entry_id).order_by(c.id)
    groups = group_pairs((name, (row_id, new_row)) for name, row_id, new_row in connection.execute(query))
    for name, changed_rows in groups.items():
        final_rows = dict(changed_rows)  # the last change of each row
        rows_by_id = {row["id"]: row for row in read_rows(connection, JOURNALED_TABLES[name], final_rows)}
        if any(rows_by_id.get(row_id) != new_row for row_id, new_row in final_rows.items()):
            return False
    return True


def _select_unused_labels(connection: Connection, rows: Sequence[Row]) -> list[Row]:
    """Return the labels among these rows that no other row refers to."""
    keys = [key for table in JOURNALED_TABLES.values() for key in table.foreign_keys if key.references(tables.labels)]
    label_ids = [row["id"] for row in rows]
    used = {row[0] for key in keys for row in select_in(connection, select(key.parent), key.parent, label_ids)}
    return [row for row in rows if row["id"] not in used]
