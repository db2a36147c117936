"""What was changed, by whom, and how it was before: an entry that keeps changes can be undone, and so can its undoing.

A change is the row before and the row after. To undo an entry is to put back the rows before it, which is an entry too.
Scans are told as well, but what they found is a fact of the file system and is not undone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from wsabie.base.errors import InputError
from wsabie.catalogue import tables
from wsabie.catalogue.database import once, reading, writing

Row = dict[str, Any]

LOCAL = "local"
"""Who decides in the pages of a service without tokens: whoever sits at this machine."""

KEPT = {
    table.name: table
    for table in (tables.labels, tables.synonyms, tables.kept_apart, tables.annotations, tables.models, tables.choices)
}
"""Tables whose rows are changed through the journal. Later ones refer to earlier ones."""

_LAST = select(
    select(func.max(tables.journal.c.id)).scalar_subquery(), select(func.max(tables.changes.c.id)).scalar_subquery()
)
_AT_ONCE = 500  # numbers in a query, at most
_IN_MEMORY = 20_000  # changes of an entry, about


class Entry(NamedTuple):
    """A line of the journal.

    Attributes
    ----------
    id : int
    at : str
        UTC, ISO 8601.
    by : str
    action, told : str
    undoes, undone_by : int or None
    changes : int
        Rows that it changed; 0 = nothing that could be undone.
    """

    id: int
    at: str
    by: str
    action: str
    told: str
    undoes: int | None
    undone_by: int | None
    changes: int


class Change:
    """An entry while it is written.

    Attributes
    ----------
    connection : Connection
        Of the transaction that all of it is in.
    by : str
    told : str
        What people read; may be set until the end.
    id : int
    """

    def __init__(self, connection: Connection, entry: int, by: str, told: str) -> None:
        self.connection, self.id, self.by, self.told = connection, entry, by, told
        self._changes: list[Row] = []
        self._written = 0

    def add(self, table: Table, rows: Sequence[Row]) -> list[int]:
        """Add rows; their numbers, in order."""
        if not rows:
            return []
        first = self._unused(table)
        whole = [
            {column.name: None for column in table.columns if column.nullable} | row | {"id": first + i}
            for i, row in enumerate(rows)
        ]
        self._put(table, whole)
        return list(range(first, first + len(rows)))

    def set(self, table: Table, values: Mapping[int, Row]) -> int:
        """Change columns of rows, by their numbers; how many differ from what they were."""
        before = {row["id"]: row for row in rows_of(self.connection, table, values)}
        after = {number: before[number] | new for number, new in values.items() if number in before}
        changed = [number for number, row in after.items() if row != before[number]]
        self._swap(table, [(before[number], after[number]) for number in changed])
        return len(changed)

    def remove(self, table: Table, numbers: Iterable[int]) -> int:
        """Remove rows; how many there were."""
        gone = rows_of(self.connection, table, numbers)
        self._take(table, gone)
        return len(gone)

    def revert(self, changes: Sequence[Row]) -> None:
        """Put back what other entries changed, last change first."""
        kinds = groupby(reversed(changes), lambda c: (c["table"], c["before"] is None, c["after"] is None))
        for (name, added, removed), group in kinds:
            table, rows = KEPT[name], [(change["after"], change["before"]) for change in group]
            if added:
                gone = [after for after, _ in rows]
                self._take(table, _unused(self.connection, gone) if table is tables.labels else gone)
            elif removed:
                self._put(table, [before for _, before in rows])
            else:
                self._swap(table, rows)

    def close(self) -> int:
        """Write down the changes; how many there are."""
        self._write_down()
        return self.n_changes

    @property
    def n_changes(self) -> int:
        """Rows that were changed so far."""
        return self._written + len(self._changes)

    def _unused(self, table: Table) -> int:
        """A number that no row has or had: nobody else writes meanwhile."""
        kept = select(func.max(tables.changes.c.row)).where(tables.changes.c.table == table.name)
        present = select(func.max(table.c.id))
        return 1 + max(self.connection.execute(query).scalar() or 0 for query in (kept, present))

    def _put(self, table: Table, rows: Sequence[Row]) -> None:
        for part in _parts(rows, 10_000):
            self.connection.execute(insert(table), part)
        self._note(table, [(None, row) for row in rows])

    def _take(self, table: Table, rows: Sequence[Row]) -> None:
        for part in _parts([row["id"] for row in rows], _AT_ONCE):
            if table is tables.labels:  # what models think of it is no decision, and would hold it fast
                s = tables.suggestions.c
                known = select(tables.models.c.id)
                self.connection.execute(delete(tables.suggestions).where(s.model_id.in_(known), s.label_id.in_(part)))
            self.connection.execute(delete(table).where(table.c.id.in_(part)))
        self._note(table, [(row, None) for row in rows])

    def _swap(self, table: Table, pairs: Sequence[tuple[Row, Row]]) -> None:
        if pairs:
            columns: dict[str, Any] = {name: bindparam(f"new_{name}") for name in pairs[0][1] if name != "id"}
            changed = [{f"new_{name}": value for name, value in after.items()} for _, after in pairs]
            self.connection.execute(update(table).where(table.c.id == bindparam("new_id")).values(columns), changed)
        self._note(table, pairs)

    def _note(self, table: Table, pairs: Iterable[tuple[Row | None, Row | None]]) -> None:
        self._changes += [
            {
                "entry_id": self.id,
                "table": table.name,
                "row": (after or before or {})["id"],
                "before": before,
                "after": after,
            }
            for before, after in pairs
        ]
        if len(self._changes) >= _IN_MEMORY:
            self._write_down()

    def _write_down(self) -> None:
        for part in _parts(self._changes, 10_000):
            self.connection.execute(insert(tables.changes), part)
        self._written += len(self._changes)
        self._changes = []


@contextmanager
def entry(engine: Engine, by: str, action: str, told: str = "", *, always: bool = False) -> Iterator[Change]:
    """One transaction, one line of the journal; where nothing was changed there is no line, unless `always`."""
    with writing(engine) as connection, _line(connection, by, action, told, always) as change:
        yield change


def history(engine: Engine, limit: int = 50, before: int | None = None) -> list[Entry]:
    """Entries, last first."""
    c = tables.journal.c
    count = select(func.count()).where(tables.changes.c.entry_id == c.id).scalar_subquery()
    query = select(c.id, c.at, c.by, c.action, c.told, c.undoes, c.undone_by, count).order_by(c.id.desc()).limit(limit)
    with reading(engine) as connection:
        return [Entry(*row) for row in connection.execute(query if before is None else query.where(c.id < before))]


def undo(engine: Engine, number: int | None = None, *, by: str, alias: str | None = None) -> Entry:
    """Put back what an entry changed; None: the last of this person, under either name, that can be.

    A label that it made and others have used since stays.

    Returns
    -------
    Entry
        The undone one.

    Raises
    ------
    InputError
        There is none, it is undone already, or later entries changed the same: these come first.
    """
    with writing(engine) as connection:
        undone = _undoable(connection, number, (by, alias or by))
        _refuse_built_upon(connection, undone)
        c = tables.changes.c
        query = select(c.table, c.before, c.after).where(c.entry_id == undone.id).order_by(c.id)
        changes = [dict(row._mapping) for row in connection.execute(query)]
        with _line(connection, by, "undo", f"undone: {undone.told or undone.action}") as change:
            _put_back(change, changes, undone)
        journal = tables.journal
        connection.execute(update(journal).where(journal.c.id == change.id).values(undoes=undone.id))
        connection.execute(update(journal).where(journal.c.id == undone.id).values(undone_by=change.id))
        if undone.undoes is not None:  # what it had undone holds again
            connection.execute(update(journal).where(journal.c.id == undone.undoes).values(undone_by=None))
    return undone


def rows_of(connection: Connection, table: Table, numbers: Iterable[int]) -> list[Row]:
    """Rows by their numbers, as far as they exist."""
    found: list[Row] = []
    for part in _parts(list(numbers), _AT_ONCE):
        found += [dict(row._mapping) for row in connection.execute(select(table).where(table.c.id.in_(part)))]
    return found


def last_entry(connection: Connection) -> int:
    """Number of the last entry, 0 before the first: what was read at the same number is the same."""
    return last(connection)[0]


def last(connection: Connection) -> tuple[int, int | None]:
    """Numbers of the last entry (0 before the first) and of the last change: both only grow."""
    return once(connection, _last)


def _last(connection: Connection) -> tuple[int, int | None]:
    entry, change = connection.execute(_LAST).one()
    return entry or 0, change


def now() -> str:
    """The time as it is written down.

    Examples
    --------
    >>> len(now()), now()[10], now()[-1]
    (27, 'T', 'Z')
    """
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@contextmanager
def _line(connection: Connection, by: str, action: str, told: str, always: bool = False) -> Iterator[Change]:
    journal = tables.journal
    line = {"at": now(), "by": by, "action": action, "told": told}
    number = connection.execute(insert(journal).values(line)).inserted_primary_key
    change = Change(connection, number[0], by, told)  # type: ignore[index]  # it has one
    yield change
    if change.close() or always:
        connection.execute(update(journal).where(journal.c.id == change.id).values(told=change.told))
    else:
        connection.execute(delete(journal).where(journal.c.id == change.id))


def _undoable(connection: Connection, number: int | None, who: tuple[str, str]) -> Entry:
    c = tables.journal.c
    count = select(func.count()).where(tables.changes.c.entry_id == c.id).scalar_subquery()
    query = select(c.id, c.at, c.by, c.action, c.told, c.undoes, c.undone_by, count).order_by(c.id.desc()).limit(1)
    last = query.where(c.undone_by.is_(None), c.undoes.is_(None), count > 0)
    row = connection.execute(last.where(c.by.in_(who)) if number is None else query.where(c.id == number)).first()
    if row is None:
        if number is None and (other := connection.execute(last).first()) is not None:
            raise InputError(
                f"there is nothing of yours to undo; the last that can be undone is entry {other.id}, of {other.by}: "
                "give its number"
            )
        what = "there is nothing of yours to undo" if number is None else f"the journal has no entry {number}"
        raise InputError(f"{what}; `wsabie collection history` lists what was done", served=what)
    found = Entry(*row)
    if found.undone_by is not None:
        raise InputError(
            f"entry {found.id} is undone already, by entry {found.undone_by}; undo that one to have it back"
        )
    if not found.changes:
        raise InputError(f"entry {found.id} ({found.told or found.action}) changed nothing that could be undone")
    return found


def _put_back(change: Change, changes: Sequence[Row], undone: Entry) -> None:
    refused = f"entry {undone.id} cannot be undone: what it removed was made anew since, or what that needs is gone"
    refused += "; undo what came later first (`wsabie collection history`)"
    try:
        change.revert(changes)
    except IntegrityError as error:
        raise InputError(refused) from error
    names = [row["name"] for one in changes if (row := one["before"]) and one["table"] in ("labels", "synonyms")]
    label, other = tables.labels.c, tables.synonyms.c
    for part in _parts(names, _AT_ONCE):  # a name is that of a label, or another name of one
        query = select(label.id).where(label.name == other.name, label.name.in_(part), label.merged_into.is_(None))
        if change.connection.execute(query.limit(1)).first() is not None:
            raise InputError(refused)


def _refuse_built_upon(connection: Connection, undone: Entry) -> None:
    """Rows that were changed again since must be put back first, or what came later would be lost."""
    ours, later = tables.changes.alias("ours"), tables.changes.alias("later")
    same = (later.c.table == ours.c.table) & (later.c.row == ours.c.row) & (later.c.entry_id > ours.c.entry_id)
    query = select(func.max(later.c.entry_id)).select_from(ours.join(later, same)).where(ours.c.entry_id == undone.id)
    last = connection.execute(query).scalar()
    if last is not None and not _came_back(connection, undone.id):
        raise InputError(f"entry {last} changed the same after entry {undone.id}; undo {last} first")


def _came_back(connection: Connection, number: int) -> bool:
    """Whether every row that an entry changed is as it left it: what came later was undone."""
    c = tables.changes.c
    last: dict[tuple[str, int], Row | None] = {}
    for row in connection.execute(select(c.table, c.row, c.after).where(c.entry_id == number).order_by(c.id)):
        last[row[0], row[1]] = row[2]
    for name, table in KEPT.items():
        wanted = {number: after for (where, number), after in last.items() if where == name}
        found = {row["id"]: row for row in rows_of(connection, table, wanted)}
        if any(found.get(number) != after for number, after in wanted.items()):
            return False
    return True


def _unused(connection: Connection, rows: Sequence[Row]) -> list[Row]:
    """Those of these labels that nothing refers to: one that others have used since stays."""
    used: set[int] = set()
    a, s, c, k = (table.c for table in (tables.annotations, tables.synonyms, tables.labels, tables.kept_apart))
    for part in _parts([row["id"] for row in rows], _AT_ONCE):
        for column in (a.label_id, s.label_id, c.parent_id, c.merged_into, k.label_a, k.label_b):
            used.update(connection.execute(select(column).where(column.in_(part))).scalars())
    return [row for row in rows if row["id"] not in used]


def _parts(rows: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (rows[lo : lo + size] for lo in range(0, len(rows), size))
