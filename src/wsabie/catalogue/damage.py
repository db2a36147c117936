"""Damage in a catalogue: pages, references between tables, and values of a kind that no row can have.

SQLite keeps whatever it finds in a row. So a changed byte may leave a whole file with a text where a number stands, or
a document that is no JSON; this finds such rows and names them. PostgreSQL checks its own.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from sqlalchemy import JSON, Boolean, CheckConstraint, Column, Engine, Float, Integer, Table, text

from wsabie.base.errors import InputError
from wsabie.catalogue import tables
from wsabie.catalogue.database import reading
from wsabie.catalogue.database_errors import explain_database_errors
from wsabie.catalogue.journal import KEPT
from wsabie.catalogue.sqlite_file import connect_file, guard_reading
from wsabie.storage.schema import check_schema

MOST = 20
"""Faults of a kind that are listed."""

Number: TypeAlias = int | float
_Figures = TypedDict("_Figures", {"MAP": Number, "p@1": Number, "p@5": Number})


@dataclass(frozen=True)
class _Gap:
    mean: Number
    low: Number
    high: Number


_Gaps = TypedDict("_Gaps", {"MAP": _Gap, "p@1": _Gap, "p@5": _Gap})


@dataclass(frozen=True)
class _RootOptions:
    medium: str = ""
    tags: str = ""
    metadata: str = ""
    tables: int = 0


@dataclass(frozen=True)
class _Epoch:
    epoch: int
    loss: Number
    MAP: Number


@dataclass(frozen=True)
class _ModelFacts:
    items: int = 0
    labels: int = 0
    accepted: int = 0
    rejected: int = 0
    regions_left_out: int = 0
    held_to: Number = 0
    decisions_of_full: int = 0
    changed_since_full: int = 0
    best_epoch: int | None = None
    describe: str = ""
    kept_back: str = ""
    seconds: Number = 0
    curve: list[_Epoch] = field(default_factory=list)


@dataclass(frozen=True)
class _ModelFigures:
    items: int = 0
    labels: int = 0
    now: _Figures | None = None
    before: _Figures | None = None
    difference: _Gaps | None = None


_DOCUMENTS: dict[tuple[str, str], Any] = {
    ("roots", "options"): _RootOptions,
    ("models", "facts"): _ModelFacts,
    ("models", "figures"): _ModelFigures,
}
"""Schemas of documents in rows; of all others only that they are objects is known."""


def find_damage(engine: Engine) -> list[str]:
    """Return what is wrong with a catalogue in SQLite, the first `MOST` faults of each kind; empty where nothing is.

    Raises
    ------
    InputError
        So much is damaged that it cannot be looked through.
    """
    if engine.dialect.name != "sqlite":
        return []
    with reading(engine) as connection:
        rows = connection.execute(text(f"PRAGMA integrity_check({MOST})"))
        faults = [" ".join(str(row[0]).split()) for row in rows if row[0] != "ok"]
        broken = connection.execute(text("PRAGMA foreign_key_check")).all()
    faults += [f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}" for row in broken[:MOST]]
    path = Path(str(engine.url.database))
    with explain_database_errors(engine), closing(connect_file(path, "ro")) as file, guard_reading(file):
        file.text_factory = bytes
        for table in tables.metadata.tables.values():
            faults += islice(_faults_of(file, table), MOST)
            faults += islice(_forbidden(file, table), MOST)
        faults += islice(_circles(file), MOST)
    return faults


def _faults_of(file: sqlite3.Connection, table: Table) -> Iterator[str]:
    """Look at every value of a table."""
    columns = list(table.columns)
    names = ", ".join(f'"{column.name}"' for column in columns)
    for row in file.execute(f'SELECT {names} FROM "{table.name}"'):  # noqa: S608 - names of our own tables
        for column, value in zip(columns, row, strict=True):
            if value is None and column.nullable:
                continue
            if fault := _fault_of(column, value):
                keys = ", ".join(str(key) for one, key in zip(columns, row, strict=True) if one.primary_key)
                yield f"row {keys} of {table.name}: {column.name} {fault}"
        if table is tables.changes and (fault := _fault_of_change(dict(zip(table.columns.keys(), row, strict=True)))):
            yield f"row {row[0]} of changes: {fault}"


def _forbidden(file: sqlite3.Connection, table: Table) -> Iterator[str]:
    """Rows that a constraint of a table forbids; `integrity_check` passes them by in a file that is only read."""
    for constraint in sorted(table.constraints, key=lambda one: str(one.name)):
        if isinstance(constraint, CheckConstraint):
            rule = str(constraint.sqltext)
            for (row,) in file.execute(f'SELECT rowid FROM "{table.name}" WHERE NOT ({rule})'):  # noqa: S608 - our own
                yield f"row {row} of {table.name}: it is not true that {rule}"


def _fault_of(column: "Column[Any]", value: Any) -> str:
    """Return what is wrong with a value as SQLite keeps it, text as bytes; empty where nothing is."""
    if isinstance(column.type, Integer | Boolean):
        return "" if type(value) is int else "is no whole number"
    if isinstance(column.type, Float):
        return "" if type(value) in (int, float) else "is no number"
    if not isinstance(value, bytes):
        return "is no text"
    try:
        words = value.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return _fault_of_document(column, words) if isinstance(column.type, JSON) else ""


def _fault_of_document(column: "Column[Any]", words: str) -> str:
    try:
        document = json.loads(words)
    except (ValueError, RecursionError) as error:
        return f"is no JSON ({error})"
    try:
        check_schema(_DOCUMENTS.get((column.table.name, column.name), dict[str, Any]), document, "it", "")
    except InputError as error:
        return str(error).removeprefix("it ").removesuffix("; ")
    return ""


def _fault_of_change(change: dict[str, Any]) -> str:
    """Rows before and after a change are rows of the table that it names."""
    try:
        table = KEPT[change["table"].decode()]
        rows = [json.loads(row) for side in ("before", "after") if (row := change[side]) is not None]
    except (KeyError, ValueError, AttributeError, TypeError, RecursionError):
        return "it names no table that changes"
    for row in rows:
        if not isinstance(row, dict) or row.get("id") != change["row"]:
            return "it holds another row than it names"
        for name, value in row.items():
            column = table.columns.get(name)
            if column is None or not _is_of(column, value):
                return f"{name} of the row that it holds is not of {table.name}"
    return ""


def _is_of(column: "Column[Any]", value: Any) -> bool:
    """Return whether a value of a JSON document can stand in a column."""
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, Boolean):
        return isinstance(value, bool | int)
    kinds = ((Integer, int), (Float, int | float), (JSON, dict))
    return isinstance(value, next((kind for of, kind in kinds if isinstance(column.type, of)), str))


def _circles(file: sqlite3.Connection) -> Iterator[str]:
    """Labels that lie below, or went into, themselves."""
    for name in ("parent_id", "merged_into"):
        above = dict(file.execute(f"SELECT id, {name} FROM labels WHERE {name} IS NOT NULL"))  # noqa: S608 - our own
        yield from (f"row {label} of labels: {name} leads back to it" for label in labels_in_circles(above))


def labels_in_circles(above: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield the labels that lie above themselves; `above` maps labels to those above them, and each is followed once.

    Examples
    --------
    >>> list(labels_in_circles({1: 2, 2: 3, 3: 2, 4: 5}))
    [2, 3]
    """
    starts: dict[Any, Any] = {}  # the label from which each was come to first
    for start in above:
        label = start
        while label in above and label not in starts:
            starts[label] = start
            label = above[label]
        if label in above and starts[label] == start:  # a circle that was not seen before
            first = label
            yield first
            while (label := above[label]) != first:
                yield label
