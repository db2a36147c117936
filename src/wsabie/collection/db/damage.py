"""Search for damage in a collection: broken pages, references between tables, and invalid values.

SQLite does not check the types of stored values. So a changed byte may leave an intact file with a text in place of a
number, or a document that is not JSON. This module finds such rows. PostgreSQL checks its own.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypedDict, TypeVar

from sqlalchemy import JSON, Boolean, CheckConstraint, Column, Engine, Float, Integer, Table, text

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.errors import explain_database_errors
from wsabie.collection.db.journal import JOURNALED_TABLES
from wsabie.collection.db.sqlite_file import connect_file, guard_reading
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.storage.schema_validation import check_schema

MAX_FAULTS = 20
"""Largest number of listed faults of one kind."""

T = TypeVar("T")
Number: TypeAlias = int | float
_Figures = TypedDict("_Figures", {"MAP": Number, "p@1": Number, "p@5": Number})


class _Gap(TypedDict):
    mean: Number
    low: Number
    high: Number


_Gaps = TypedDict("_Gaps", {"MAP": _Gap, "p@1": _Gap, "p@5": _Gap})


class _RootOptions(TypedDict, total=False):
    modality: str
    tags: str
    metadata: str
    tables: int


class _Epoch(TypedDict):
    epoch: int
    loss: Number
    MAP: Number


class _ModelFacts(TypedDict, total=False):
    items: int
    labels: int
    accepted: int
    rejected: int
    skipped_regions: int
    repeats: int
    holdout_bound: Number
    decisions_of_full: int
    changed_since_full: int
    best_epoch: int | None
    features: str
    rejection_reason: str
    seconds: Number
    curve: list[_Epoch]


class _ModelFigures(TypedDict, total=False):
    items: int
    labels: int
    metrics: _Figures | None
    previous_metrics: _Figures | None
    difference: _Gaps | None


_DOCUMENTS: dict[str, type] = {
    "roots.options": _RootOptions,
    "models.facts": _ModelFacts,
    "models.figures": _ModelFigures,
}
"""Schemas of JSON columns; all other documents are objects of any content."""


def find_damage(engine: Engine) -> list[str]:
    """Return the faults of a SQLite database, at most `MAX_FAULTS` of each kind; empty if it is sound.

    Raises
    ------
    InputError
        The damage prevents a search.
    """
    if engine.dialect.name != "sqlite":
        return []
    with begin_read(engine) as connection:
        rows = connection.execute(text(f"PRAGMA integrity_check({MAX_FAULTS})"))
        faults = [" ".join(str(row[0]).split()) for row in rows if row[0] != "ok"]
        broken = connection.execute(text("PRAGMA foreign_key_check")).all()
    faults += [f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}" for row in broken[:MAX_FAULTS]]
    path = Path(str(engine.url.database))
    with explain_database_errors(engine), closing(connect_file(path, "ro")) as file, guard_reading(file):
        file.text_factory = bytes
        for table in tables.metadata.tables.values():
            faults += islice(_find_table_faults(file, table), MAX_FAULTS)
            faults += islice(_find_constraint_violations(file, table), MAX_FAULTS)
        faults += islice(_find_cycles(file), MAX_FAULTS)
    return faults


def _find_table_faults(file: sqlite3.Connection, table: Table) -> Iterator[str]:
    """Yield the invalid values of a table."""
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    for values in file.execute(f'SELECT {names} FROM "{table.name}"'):  # noqa: S608 - names of our own tables
        row = dict(zip(table.columns.keys(), values, strict=True))
        keys = ", ".join(str(row[column.name]) for column in table.primary_key)
        for column in table.columns:
            if fault := _find_value_fault(column, row[column.name]):
                yield f"row {keys} of {table.name}: {column.name} {fault}"
        if table is tables.changes and (fault := _find_change_fault(row)):
            yield f"row {keys} of changes: {fault}"


def _find_constraint_violations(file: sqlite3.Connection, table: Table) -> Iterator[str]:
    """Yield rows that violate a constraint; `integrity_check` skips them in read-only files."""
    for constraint in sorted(table.constraints, key=lambda candidate: str(candidate.name)):
        if isinstance(constraint, CheckConstraint):
            rule = str(constraint.sqltext)
            for (row,) in file.execute(f'SELECT rowid FROM "{table.name}" WHERE NOT ({rule})'):  # noqa: S608 - our own
                yield f"row {row} of {table.name}: it is not true that {rule}"


def _find_value_fault(column: Column[object], value: object) -> str:
    """Return the fault of a value as SQLite stores it, text as bytes; empty if it is valid."""
    if value is None and column.nullable:
        return ""
    if isinstance(column.type, Integer | Boolean):
        return "" if type(value) is int else "is not a whole number"
    if isinstance(column.type, Float):
        return "" if type(value) in (int, float) else "is not a number"
    if not isinstance(value, bytes):
        return "is not text"
    try:
        words = value.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return _find_document_fault(column, words) if isinstance(column.type, JSON) else ""


def _find_document_fault(column: Column[object], words: str) -> str:
    try:
        document = json.loads(words)
    except (ValueError, RecursionError) as error:
        return f"is not JSON ({error})"
    try:
        check_schema(_DOCUMENTS.get(str(column), dict), document, "it", "")
    except InputError as error:
        return str(error).removeprefix("it ").removesuffix("; ")
    return ""


def _find_change_fault(change: JsonObject) -> str:
    """Return the fault of a journaled change, whose rows must belong to the table that it names."""
    try:
        table = JOURNALED_TABLES[change["table"].decode()]
        rows = [json.loads(row) for side in ("old_row", "new_row") if (row := change[side]) is not None]
    except (KeyError, ValueError, AttributeError, TypeError, RecursionError):
        return "it names no table that changes"
    for row in rows:
        if not isinstance(row, dict) or row.get("id") != change["row"]:
            return "it holds another row than it names"
        for name, value in row.items():
            column = table.columns.get(name)
            if column is None or not _can_store(column, value):
                return f"{name} of the row that it holds is not of {table.name}"
    return ""


def _can_store(column: Column[object], value: object) -> bool:
    """Return True if a value of a JSON document fits a column."""
    if value is None:
        return bool(column.nullable)
    types = ((Integer | Boolean, int), (Float, int | float), (JSON, dict), (object, str))
    return isinstance(value, next(json_type for sql_type, json_type in types if isinstance(column.type, sql_type)))


def _find_cycles(file: sqlite3.Connection) -> Iterator[str]:
    """Yield the labels that lie below themselves or were merged into themselves."""
    for name in ("parent_id", "merged_into"):
        parents = dict(file.execute(f"SELECT id, {name} FROM labels WHERE {name} IS NOT NULL"))  # noqa: S608 - our own
        yield from (f"row {label} of labels: {name} leads back to it" for label in find_label_cycles(parents))


def find_label_cycles(parents: Mapping[T, T]) -> Iterator[T]:
    """Yield the labels that are their own ancestors; `parents` maps a label to the label above it.

    Examples
    --------
    >>> list(find_label_cycles({1: 2, 2: 3, 3: 2, 4: 5}))
    [2, 3]
    """
    starts: dict[T, T] = {}  # label from which each label was first reached
    for start in parents:
        label = start
        while label in parents and label not in starts:
            starts[label] = start
            label = parents[label]
        if label in parents and starts[label] == start:  # a new cycle
            first = label
            yield first
            while (label := parents[label]) != first:
                yield label
