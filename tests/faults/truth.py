"""Checks that must hold of a collection, whatever happened to those who wrote to it."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from wsabie.collection.db import tables
from wsabie.collection.db.damage import find_damage
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import JOURNALED_TABLES
from wsabie.collection.folder.collection import Collection

_DRAFT = re.compile(r"\..*\.tmp")


def assert_sound(collection: Collection) -> None:
    """The database is whole, and the journal leads to what the tables hold."""
    assert find_damage(collection.engine) == []
    journal_rows = replayed(collection)
    with begin_read(collection.engine) as connection:
        for name, table in JOURNALED_TABLES.items():
            table_rows = {row.id: dict(row._mapping) for row in connection.execute(select(table))}
            if name == "models":  # of these, the journal tells which is in use
                in_use = [row_id for row_id, row in journal_rows[name].items() if row["in_use"]]
                assert in_use == [row_id for row_id, row in table_rows.items() if row["in_use"]]
            elif name == "tag_sources":  # the first of a folder is not a change
                assert journal_rows[name] == {row_id: table_rows[row_id] for row_id in journal_rows[name]}
            else:
                assert journal_rows[name] == table_rows, name
        lines = Counter(connection.execute(select(tables.journal.c.id)).scalars())
        assert set(connection.execute(select(tables.changes.c.entry_id).distinct()).scalars()) <= set(lines)


def replayed(collection: Collection) -> dict[str, dict[int, Any]]:
    """Rows of tables as the journal alone says."""
    rows: dict[str, dict[int, Any]] = {name: {} for name in JOURNALED_TABLES}
    c = tables.changes.c
    with begin_read(collection.engine) as connection:
        query = select(c.table, c.row, c.old_row, c.new_row).order_by(c.id)
        for table, row_id, old_row, new_row in connection.execute(query):
            if table == "tag_sources":
                rows[table].setdefault(row_id, old_row)
            if table != "models":  # their figures are not told
                assert rows[table].get(row_id) == old_row, (table, row_id)
            if new_row is None:
                del rows[table][row_id]
            else:
                rows[table][row_id] = new_row
    return rows


def assert_no_drafts(collection: Collection) -> None:
    """Nothing is left of what was being written; there are the models that the catalogue knows."""
    assert [path for path in collection.folder.rglob(".*") if _DRAFT.fullmatch(path.name)] == []
    with begin_read(collection.engine) as connection:
        folders = set(connection.execute(select(tables.models.c.folder).where(~tables.models.c.is_removed)).scalars())
    assert {path.name for path in collection.models.iterdir()} == folders


def states(collection: Collection, labels: Iterable[str]) -> dict[tuple[int, str], str]:
    """States of some labels, by item and label."""
    a, label = tables.annotations.c, tables.labels.c
    query = select(a.item_id, label.name, a.state).join_from(tables.annotations, tables.labels, a.label_id == label.id)
    with begin_read(collection.engine) as connection:
        rows = connection.execute(query.where(label.name.in_(list(labels)), a.region == "")).all()
    assert len({row[:2] for row in rows}) == len(rows)
    return {(row[0], row[1]): row[2] for row in rows}


def lines_of(collection: Collection, by: str) -> Counter[str]:
    """The lines of the journal of one person."""
    c = tables.journal.c
    with begin_read(collection.engine) as connection:
        return Counter(connection.execute(select(c.summary).where(c.by == by)).scalars())


def count(collection: Collection, table: Any, *where: Any) -> int:
    """Count the rows of a table."""
    with begin_read(collection.engine) as connection:
        return connection.execute(select(func.count()).select_from(table).where(*where)).scalar() or 0


def leftovers(folder: Path) -> list[str]:
    """Processes that still name a folder."""
    command_lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_text(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if f"{folder} " in words and "wsabie" in words:
            command_lines.append(words)
    return command_lines
