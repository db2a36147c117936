"""Tables with named columns: CSV and JSON lines, row by row, plain or gzip."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from wsabie.base.errors import InputError
from wsabie.base.limits import current_limits
from wsabie.sources.build import BadRow
from wsabie.sources.cells import cells_of_line
from wsabie.sources.json_values import parse_value
from wsabie.sources.text import bounded_lines, head, numbered_lines, open_bytes, reading, shown
from wsabie.sources.unpacked import check_table_columns
from wsabie.storage.rejects import Rejects

LONGEST_LINE = 1 << 22
_LONGEST_CELL = 1 << 17  # of CSV: a quote that is never closed takes all that follows


def table_rows(path: Path, rejects: Rejects, is_json: bool | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, cells by column) of each row of JSON lines (by default of `.jsonl`), or of CSV.

    The columns of CSV are separated by commas, or else by semicolons or tabs.

    Raises
    ------
    InputError
        Malformed as a whole, a column named twice, or a line of more than 4 MiB.
    """
    is_json = named_jsonl(path) if is_json is None else is_json
    for number, cells in _json_cells(path) if is_json else _csv_cells(path):
        where = f"{shown(path)}:{number}"
        if isinstance(cells, BadRow):
            rejects.add(where, cells.reason, cells.detail)
        else:
            yield where, cells


def named_jsonl(path: Path) -> bool:
    """Whether the name says that a file holds JSON lines."""
    return path.name.lower().removesuffix(".gz").endswith(".jsonl")


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
    check_table_columns(where, len(header))
    if len(set(header)) < len(header):
        raise InputError(f"{where} names a column twice; rename one")
    if missing := [name for name in needed if name not in header]:
        raise InputError(f"{where} has no column {missing[0]!r} (it has {listed_names(header)}); fetch the table again")


def _csv_cells(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    records = csv_records(path, LONGEST_LINE)
    number, header = next(records, (1, []))
    _check_header(header, (), f"{shown(path)}:{number}")
    return ((number, named_cells(header, cells)) for number, cells in records)


def named_cells(header: list[str], cells: list[str]) -> dict[str, Any] | BadRow:
    """The cells of a record by column, or what is wrong with it."""
    if len(cells) != len(header):
        return BadRow("wrong number of cells", f"{len(cells)} of {len(header)}")
    return dict(zip(header, cells, strict=True))


def csv_records(
    path: Path, longest: int, longest_cell: int = _LONGEST_CELL, *, escaped: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of each record that is not blank; a quoted cell may hold ends of lines.

    Parameters
    ----------
    path : Path
    longest, longest_cell : int
        Letters of a line and of a cell, at most.
    escaped : bool
        Bytes that are not UTF-8 are kept as escapes, and not refused.

    Raises
    ------
    InputError
        Malformed CSV, a longer line, or text that is not UTF-8.
    """
    with reading(path), open_bytes(path) as stream:
        # escapes stand for bad bytes until the line that holds them is known: text is decoded by the block
        text = io.TextIOWrapper(cast(IO[bytes], stream), "utf-8", errors="surrogateescape", newline="")
        lines = bounded_lines(text, path, longest)
        reader = csv.reader(lines if escaped else _valid(lines, path), delimiter=csv_delimiter(path), strict=True)
        while True:
            number = reader.line_num + 1
            try:
                cells = _next_record(reader, longest_cell)
            except csv.Error as error:
                raise InputError(
                    f"{shown(path)}:{number} begins a row of malformed CSV ({error}); close every quote in it, and "
                    "double one that stands inside a quoted text"
                ) from error
            if cells is None:
                return
            if cells:
                yield number, cells


def _next_record(reader: Any, longest_cell: int) -> list[str] | None:
    """The limit on cells is the whole process's, so that it is put back at once."""
    before = csv.field_size_limit(longest_cell)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(before)


def _valid(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{shown(path)}:{number} is not UTF-8 text; convert the file, for instance with iconv"
            ) from error
        yield line


def csv_delimiter(path: Path) -> str:
    """What separates the columns: the first of comma, semicolon and tab that is in the first line."""
    first = head(path).lstrip().partition(b"\n")[0]
    return next((d for d in ",;\t" if d.encode() in first), ",")


def _json_cells(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    lines, depth = numbered_lines(path, LONGEST_LINE), current_limits().depth
    return ((number, json_cells(line, depth)) for number, line in lines if line.strip())


def json_cells(line: bytes, most_depth: int | None = None) -> dict[str, Any] | BadRow:
    """The cells of a line of JSON by column, or what is wrong with it; `most_depth` as of `parse_value`."""
    try:
        cells = parse_value(line.decode(), most_depth)
    except UnicodeDecodeError:
        return BadRow("not UTF-8")
    except InputError as error:
        return BadRow("JSON that nests too deeply", str(error))
    except (ValueError, RecursionError) as error:
        return BadRow("malformed JSON", str(error)[:100])
    return cells if isinstance(cells, dict) else BadRow("line that is no JSON object")
