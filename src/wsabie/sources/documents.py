"""Documents in JSON lines, tables of text, or Parquet: what has a column `text`, read anew on every pass.

A row is a document: `text` is what it says, the labels stand in the first of `labels`, `label`, `tags`, `tag` and
`keywords` that is there, in the forms that `metadata` and `parquet_pictures` have them; `id`, `group`, `split` and
`time` are used when they are there. Without an id the number of the line is one, in Parquet that of the row. A document
may have no labels. Nothing is held between passes but the numbers of documents whose ids came before.

Tables are CSV (commas, or semicolons; quoted cells) or have tabs between the cells, which are then taken as they are.
"""

import logging
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.limits import current_limits
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.cells import LABEL_COLUMNS, LabelCells, first_separator, separators_in, word
from wsabie.sources.folders import clean_labels
from wsabie.sources.parquet_file import LabelColumn, Table
from wsabie.sources.records import Item, Things
from wsabie.sources.tables import csv_records, json_cells, listed_names, named_cells
from wsabie.sources.text import head, lines_up_to, shown
from wsabie.sources.unpacked import check_table_columns
from wsabie.storage.rejects import Rejects

log = logging.getLogger("wsabie")
LONGEST = 1 << 24
"""Bytes of a document, in UTF-8."""
TEXT_COLUMN = "text"

_LABELS = tuple(name for name in LABEL_COLUMNS if name != TEXT_COLUMN)
_LONGEST_LINE = 4 * LONGEST  # JSON writes a letter of two bytes as six
_BATCH = 256
_MOST_COLUMNS = 100  # that are looked at for a sentence
_COLUMN = re.compile(r"\w[\w .-]*")
_TOO_LONG = f"document of more than {LONGEST >> 20} MiB"

Verdict: TypeAlias = Item | BadRow | None
"""What a place in a file holds: a document, what is wrong with it, or one that is not wanted."""


@dataclass(frozen=True)
class Documents:
    """A source of documents that is read anew on every pass; built by `documents_of`.

    Attributes
    ----------
    path : Path
    read : callable
        Yields (where, verdict), the same on every call.
    n : int
        Documents.
    repeated : frozenset of int
        Documents, by their numbers, whose ids came before: they are left out.
    """

    path: Path
    read: Callable[[], Iterator[tuple[str, Verdict]]] = field(repr=False)
    n: int
    repeated: frozenset[int] = field(repr=False)
    things: Things = "documents"

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Item]:
        items = (item for _, item in self.read() if isinstance(item, Item))
        return (item for number, item in enumerate(items) if number not in self.repeated)


def documents_of(path: Path, read: Callable[[], Iterator[tuple[str, Verdict]]], rejects: Rejects) -> Documents:
    """Go through documents once, to count them and to list what cannot be used; 8 bytes a document are held meanwhile.

    Raises
    ------
    InputError
        None is left.
    """
    numbers = array("q")
    for where, item in read():
        if isinstance(item, Item):
            numbers.append(hash(item.id))
        elif item is not None:
            rejects.add(where, item.reason, item.detail)
    repeated = _repeated(numbers)
    found = ((where, item) for where, item in read() if isinstance(item, Item)) if repeated else iter(())
    for number, (where, item) in enumerate(found):
        if number in repeated:
            rejects.add(where, "duplicate id", item.id)
    n = len(numbers) - len(repeated)
    require_rows(n, path, rejects, "documents")
    return Documents(path, read, n, repeated)


def _repeated(numbers: "array[int]") -> frozenset[int]:
    """Places of numbers that came before."""
    values = np.frombuffer(numbers, np.int64)
    order = np.argsort(values, kind="stable")
    same = values[order[1:]] == values[order[:-1]]
    return frozenset(order[1:][same].tolist())


class Row(NamedTuple):
    """A row of a table: its place and number, and its cells by column or what is wrong with it."""

    where: str
    number: int
    cells: dict[str, Any] | BadRow


class _LabelReader(Protocol):
    name: str

    def read(self, cell: Any, where: str) -> tuple[str, ...]: ...


class _Labels:
    """The labels of a table without a schema."""

    def __init__(self, name: str, separator: str | None) -> None:
        self.name = name
        self._separator = separator
        self._cells = LabelCells(name)

    def read(self, cell: Any, where: str) -> tuple[str, ...]:
        split = self._separator and isinstance(cell, str)
        return self._cells.read(cell.split(self._separator) if split else cell, where)


def read_text_table(
    path: Path,
    rows: Callable[[Path], Iterator[Row]],
    *,
    labels_from: str = "auto",
    label_column: str | None = None,
    split: str | None = None,
    rejects: Rejects | None = None,
) -> Documents:
    """Documents of a text file; `rows` is `json_rows` or `table_rows`.

    Parameters
    ----------
    path : Path
    rows : callable
        Gives the rows of the file.
    labels_from : str
        "none": without labels; anything else takes the column, where there is one.
    label_column : str or None
        A column with another name than usual.
    split : str or None
        Keep only rows with this `split`.
    rejects : Rejects or None
        Lists rows without text, too long, not UTF-8 or otherwise broken, and duplicate ids.

    Raises
    ------
    InputError
        Missing, no document, no such column, or labels of mixed types.
    """
    labels = None if labels_from == "none" else _label_column(path, rows, label_column)

    def read() -> Iterator[tuple[str, Verdict]]:
        return ((row.where, _verdict(row, labels, split)) for row in rows(path))

    return documents_of(path, read, Rejects() if rejects is None else rejects)


def read_parquet_documents(
    table: Table,
    *,
    labels_from: str = "auto",
    label_column: str | None = None,
    split: str | None = None,
    rejects: Rejects | None = None,
) -> Documents:
    """Documents of Parquet with a column `text`; parameters and errors as those of `read_text_table`."""
    name = label_column or table.first_of(_LABELS)
    labels = None if labels_from == "none" or name is None else LabelColumn(table, name)
    if labels_from != "none" and name is None:
        _tell_unlabelled(table.path, table.schema.names)

    def read() -> Iterator[tuple[str, Verdict]]:
        return ((row.where, _verdict(row, labels, split)) for row in _parquet_rows(table, labels))

    return documents_of(table.path, read, Rejects() if rejects is None else rejects)


def holds_texts(table: Table) -> bool:
    """Whether the column `text` is there and holds texts."""
    from pyarrow import types

    kind = table.schema.field(TEXT_COLUMN).type if table.has(TEXT_COLUMN) else None
    return kind is not None and (types.is_string(kind) or types.is_large_string(kind))


def text_columns(line: bytes) -> list[str] | None:
    """The columns that a first line names, if `text` is one of them; None otherwise.

    Examples
    --------
    >>> text_columns(b"id\\ttext"), text_columns(b'label;"text"'), text_columns(b"a text, long")
    (['id', 'text'], ['label', 'text'], None)
    """
    names = _header(line)
    return names if names is not None and TEXT_COLUMN in names else None


def other_columns(lines: Sequence[bytes]) -> list[str] | None:
    """The columns of a table or of JSON lines, by their first lines; None: it is neither.

    Examples
    --------
    >>> other_columns([b"id,topic,body", b"1,sea,waves"]), other_columns([b'{"body": "waves"}'])
    (['id', 'topic', 'body'], ['body'])
    >>> other_columns([b"a text, long", b"and another, longer"])
    """
    cells = json_cells(lines[0])
    if not isinstance(cells, BadRow):
        return list(cells) or None
    names = _header(lines[0]) or []
    lone = len(names) < 2 or any(name[0].isdigit() for name in names)
    return None if lone or not any(_separator(lines[0]) in line for line in lines[1:]) else names


def _separator(line: bytes) -> bytes:
    return next((s for s in (b"\t", b",", b";") if s in line), b",")


def _header(line: bytes) -> list[str] | None:
    """The names of columns in a first line; None: these are none."""
    line = line.strip(b"\r\n")
    names = [cell.strip(b'"').decode("utf-8", "replace") for cell in line.split(_separator(line))]
    # a sentence has blanks behind its commas
    return names if all(map(_COLUMN.fullmatch, names)) and len(set(names)) == len(names) else None


def json_rows(path: Path) -> Iterator[Row]:
    """The rows of JSON lines."""
    depth = current_limits().depth
    for number, line in lines_up_to(path, _LONGEST_LINE):
        if line is None or line.strip():
            cells = BadRow(_TOO_LONG) if line is None else json_cells(line, depth)
            yield Row(f"{shown(path)}:{number}", number, cells)


def table_rows(path: Path) -> Iterator[Row]:
    """The rows of a table under its header.

    Raises
    ------
    InputError
        A column is named twice; CSV that is malformed, or has a line of more than 64 MiB.
    """
    by_tabs = b"\t" in head(path).lstrip().partition(b"\n")[0]
    # escapes stand for bad bytes until the cell that holds them is looked at
    records = _tab_records(path) if by_tabs else csv_records(path, _LONGEST_LINE, _LONGEST_LINE, escaped=True)
    number, header = next(records, (1, []))
    if isinstance(header, BadRow) or len(set(header)) < len(header):
        raise InputError(f"{shown(path)}:{number} is no header of different columns; name each column once")
    check_table_columns(f"{shown(path)}:{number}", len(header))
    for number, cells in records:
        named = cells if isinstance(cells, BadRow) else named_cells(header, cells)
        yield Row(f"{shown(path)}:{number}", number, named)


def _tab_records(path: Path) -> Iterator[tuple[int, list[str] | BadRow]]:
    for number, line in lines_up_to(path, _LONGEST_LINE):
        if line is None:
            yield number, BadRow(_TOO_LONG)
        elif line.strip():
            yield number, line.decode("utf-8", "surrogateescape").split("\t")


def _parquet_rows(table: Table, labels: _LabelReader | None) -> Iterator[Row]:
    names = [TEXT_COLUMN, "id", "group", "time", "split", *([labels.name] if labels else [])]
    names = [name for name in names if table.has(name)]
    number = 0
    for batch in table.batches(names, _BATCH):
        for row, cells in enumerate(zip(*(batch.column(name) for name in names), strict=True)):
            number += 1
            yield Row(batch.where(row), number, dict(zip(names, cells, strict=True)))


def _label_column(path: Path, rows: Callable[[Path], Iterator[Row]], wanted: str | None) -> _Labels | None:
    """The column of labels and what separates them, which only the whole file tells; None without such a column."""
    choices = (wanted,) if wanted else _LABELS
    found: dict[str, set[str]] = {}
    others: dict[str, None] = {}
    for row in rows(path):
        if isinstance(row.cells, BadRow):
            continue
        if not found and len(others) < _MOST_COLUMNS:
            others |= dict.fromkeys(row.cells)
        for name in choices:
            if name in row.cells:
                cell = row.cells[name]
                found.setdefault(name, set()).update(separators_in(cell) if isinstance(cell, str) else ())
    column = next((name for name in choices if name in found), None)
    if column is None and wanted:
        raise InputError(f"{shown(path)} has no column {wanted!r} (it has {listed_names(others)}); name the column of "
                         "labels")  # fmt: skip
    if column is None:
        _tell_unlabelled(path, others)
        return None
    return _Labels(column, first_separator(found[column], column))


def _tell_unlabelled(path: Path, columns: Iterable[str]) -> None:
    """Documents may have no labels; whoever called their column otherwise is to hear of it."""
    log.info(
        "%s has no column of labels, which would be called %s (it has %s)",
        shown(path), f"{', '.join(_LABELS[:-1])} or {_LABELS[-1]}", listed_names(columns),
    )  # fmt: skip


def _verdict(row: Row, labels: _LabelReader | None, split: str | None) -> Verdict:
    cells = row.cells
    if isinstance(cells, BadRow):
        return cells
    try:
        if split is not None and word(cells.get("split")) != split:
            return None
        content = encoded(cells.get(TEXT_COLUMN))
        names = () if labels is None else clean_labels(labels.read(cells.get(labels.name), row.where))
        ident = word(cells.get("id")) or str(row.number)
        return Item(ident, content, names, word(cells.get("group")), word(cells.get("time")))
    except BadRow as bad:
        return bad


def encoded(text: object) -> bytes:
    """A document's text as UTF-8.

    Raises
    ------
    BadRow
        It is no text, blank, too long, or cannot be written as UTF-8.
    """
    if not isinstance(text, str) or not text or text.isspace():
        raise BadRow("document without text")
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise BadRow("not UTF-8", str(error)) from error
    if len(content) > LONGEST:
        raise BadRow(_TOO_LONG, f"{len(content):,} bytes")
    return content
