"""Tables with named columns: CSV and JSON lines, row by row, plain or gzip."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.cells import cells_of_line
from wsabie.sources.text import bounded_lines, head, numbered_lines, open_bytes, reading, shown
from wsabie.storage.rejects import Rejects

LONGEST_LINE = 1 << 22


def table_rows(path: Path, rejects: Rejects) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, cells by column) of each row of JSON lines (`.jsonl`) or, of any other name, CSV.

    The columns of CSV are separated by commas, or else by semicolons or tabs.

    Raises
    ------
    InputError
        Malformed as a whole, a column named twice, or a line of more than 4 MiB.
    """
    is_json = path.name.lower().removesuffix(".gz").endswith(".jsonl")
    return _json_rows(path, rejects) if is_json else _csv_rows(path, rejects)


def line_rows(path: Path, needed: Iterable[str], rejects: Rejects) -> Iterator[tuple[str, dict[str, str]]]:
    """The same of a table with a record on every line, cells quoted and separated by tabs; a bad line spoils no other.

    Raises
    ------
    InputError
        A column of `needed` is missing, or as `table_rows`.
    """
    header: list[str] = []
    for number, line in numbered_lines(path, LONGEST_LINE):
        where = f"{shown(path)}:{number}"
        try:
            cells = cells_of_line(line, "\t") if line.strip() else []
            if cells and header and len(cells) != len(header):
                raise BadRow("wrong number of cells", f"{len(cells)} of {len(header)}")
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)
            continue
        if header and cells:
            yield where, dict(zip(header, cells, strict=True))
        elif cells:
            header = cells
            _check_header(header, needed, where)


def listed_names(columns: Iterable[str]) -> str:
    """The first names of columns, for a sentence."""
    names = sorted(ascii(name)[:40] for name in columns)
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _check_header(header: list[str], needed: Iterable[str], where: str) -> None:
    if len(set(header)) < len(header):
        raise InputError(f"{where} names a column twice; rename one")
    if missing := [name for name in needed if name not in header]:
        raise InputError(f"{where} has no column {missing[0]!r} (it has {listed_names(header)}); fetch the table again")


def _csv_rows(path: Path, rejects: Rejects) -> Iterator[tuple[str, dict[str, Any]]]:
    with reading(path), open_bytes(path) as stream:
        # escapes stand for bad bytes until the line that holds them is known: text is decoded by the block
        text = io.TextIOWrapper(cast(IO[bytes], stream), "utf-8", errors="surrogateescape", newline="")
        records = _records(path, csv.reader(_valid_lines(text, path), delimiter=_delimiter(path), strict=True))
        number, header = next(records, (1, []))
        _check_header(header, (), f"{shown(path)}:{number}")
        for number, cells in records:
            where = f"{shown(path)}:{number}"
            if len(cells) == len(header):
                yield where, dict(zip(header, cells, strict=True))
            else:
                rejects.add(where, "wrong number of cells", f"{len(cells)} of {len(header)}")


def _valid_lines(text: IO[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(bounded_lines(text, path, LONGEST_LINE), start=1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{shown(path)}:{number} is not UTF-8 text; convert the file, for instance with iconv"
            ) from error
        yield line


def _records(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of each record that is not blank; a quoted cell may hold ends of lines."""
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{shown(path)}:{number} begins a row of malformed CSV ({error}); close every quote in it, and double "
                "one that stands inside a quoted text"
            ) from error
        if cells is None:
            return
        if cells:
            yield number, cells


def _delimiter(path: Path) -> str:
    first = head(path).lstrip().partition(b"\n")[0]
    return next((d for d in ",;\t" if d.encode() in first), ",")


def _json_rows(path: Path, rejects: Rejects) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in numbered_lines(path, LONGEST_LINE):
        if not line.strip():
            continue
        where = f"{shown(path)}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            rejects.add(where, "malformed JSON", str(error)[:100])
            continue
        if isinstance(row, dict):
            yield where, row
        else:
            rejects.add(where, "line that is no JSON object")
