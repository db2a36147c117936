"""Tables with named columns: CSV and JSON lines, row by row, plain or gzip."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from wsabie.core.errors import InputError
from wsabie.core.input_limits import read_limits
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.gzip_files import check_column_count
from wsabie.io.parsers.json_values import parse_json_value
from wsabie.io.parsers.table_cells import split_csv_line
from wsabie.io.parsers.text_files import (
    explain_reading_errors,
    format_path,
    iterate_bounded_lines,
    iterate_numbered_lines,
    open_decompressed,
    read_head,
)
from wsabie.storage.rejects import Rejects

LONGEST_LINE = 1 << 22
_LONGEST_CELL = 1 << 17  # of CSV: a quote that is never closed takes all that follows


def iterate_table_rows(
    path: Path, rejects: Rejects, is_json: bool | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, cells by column) of each row of JSON lines (by default `.jsonl`) or CSV.

    The columns of CSV are separated by commas, or else by semicolons or tabs.

    Raises
    ------
    InputError
        Malformed as a whole, a column named twice, or a line of more than 4 MiB.
    """
    is_json = is_jsonl_name(path) if is_json is None else is_json
    for number, cells in _iterate_json_cells(path) if is_json else _iterate_csv_cells(path):
        where = f"{format_path(path)}:{number}"
        if isinstance(cells, RowError):
            rejects.add(where, cells.reason, cells.detail)
        else:
            yield where, cells


def is_jsonl_name(path: Path) -> bool:
    """Return whether the name says that a file holds JSON lines."""
    return path.name.lower().removesuffix(".gz").endswith(".jsonl")


def iterate_line_rows(path: Path, needed: Iterable[str], rejects: Rejects) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a table with tabs between quoted cells and one record a line.

    A bad line spoils no other.

    Raises
    ------
    InputError
        A column of `needed` is missing, or as `iterate_table_rows`.
    """
    header: list[str] = []
    for number, line in iterate_numbered_lines(path, LONGEST_LINE):
        where = f"{format_path(path)}:{number}"
        try:
            cells = split_csv_line(line, "\t") if line.strip() else []
            if cells and header and len(cells) != len(header):
                raise RowError("wrong number of cells", f"{len(cells)} of {len(header)}")
        except RowError as error:
            rejects.add(where, error.reason, error.detail)
            continue
        if header and cells:
            yield where, dict(zip(header, cells, strict=True))
        elif cells:
            header = cells
            _check_header(header, needed, where)


def format_column_names(columns: Iterable[str]) -> str:
    """Return the first names of columns, for a sentence."""
    names = sorted(ascii(name)[:40] for name in columns)
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _check_header(header: list[str], needed: Iterable[str], where: str) -> None:
    check_column_count(where, len(header))
    if len(set(header)) < len(header):
        raise InputError(f"{where} names a column twice; rename one")
    if missing := [name for name in needed if name not in header]:
        raise InputError(
            f"{where} has no column {missing[0]!r} (it has {format_column_names(header)}); fetch the table again"
        )


def _iterate_csv_cells(path: Path) -> Iterator[tuple[int, dict[str, Any] | RowError]]:
    records = iterate_csv_records(path, LONGEST_LINE)
    number, header = next(records, (1, []))
    _check_header(header, (), f"{format_path(path)}:{number}")
    return ((number, parse_named_cells(header, cells)) for number, cells in records)


def parse_named_cells(header: list[str], cells: list[str]) -> dict[str, Any] | RowError:
    """Return the cells of a record by column, or its error."""
    if len(cells) != len(header):
        return RowError("wrong number of cells", f"{len(cells)} of {len(header)}")
    return dict(zip(header, cells, strict=True))


def iterate_csv_records(
    path: Path, longest: int, longest_cell: int = _LONGEST_CELL, *, escaped: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, cells) of each record that is not blank.

    A quoted cell may hold ends of lines.

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
    with explain_reading_errors(path), open_decompressed(path) as stream:
        # escapes stand for bad bytes until the line that holds them is known: text is decoded by the block
        text = io.TextIOWrapper(cast(IO[bytes], stream), "utf-8", errors="surrogateescape", newline="")
        lines = iterate_bounded_lines(text, path, longest)
        reader = csv.reader(
            lines if escaped else _refuse_bad_encoding(lines, path), delimiter=detect_csv_delimiter(path), strict=True
        )
        while True:
            number = reader.line_num + 1
            try:
                cells = _read_record(reader, longest_cell)
            except csv.Error as error:
                raise InputError(
                    f"{format_path(path)}:{number} begins a row of malformed CSV ({error}); close every quote in it, "
                    "and "
                    "double one that stands inside a quoted text"
                ) from error
            if cells is None:
                return
            if cells:
                yield number, cells


def _read_record(reader: Any, longest_cell: int) -> list[str] | None:
    """Read a record; the limit on cells is the whole process's, so it is restored at once."""
    old_limit = csv.field_size_limit(longest_cell)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(old_limit)


def _refuse_bad_encoding(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{format_path(path)}:{number} is not UTF-8 text; convert the file, for instance with iconv"
            ) from error
        yield line


def detect_csv_delimiter(path: Path) -> str:
    """Return the first of comma, semicolon and tab in the first line, as the delimiter."""
    first = read_head(path).lstrip().partition(b"\n")[0]
    return next((d for d in ",;\t" if d.encode() in first), ",")


def _iterate_json_cells(path: Path) -> Iterator[tuple[int, dict[str, Any] | RowError]]:
    lines, depth = iterate_numbered_lines(path, LONGEST_LINE), read_limits().depth
    return ((number, parse_json_cells(line, depth)) for number, line in lines if line.strip())


def parse_json_cells(line: bytes, most_depth: int | None = None) -> dict[str, Any] | RowError:
    """Return the cells of a line of JSON by column, or its error; `most_depth` as in `parse_json_value`."""
    try:
        cells = parse_json_value(line.decode(), most_depth)
    except UnicodeDecodeError:
        return RowError("not UTF-8")
    except InputError as error:
        return RowError("JSON that nests too deeply", str(error))
    except (ValueError, RecursionError) as error:
        return RowError("malformed JSON", str(error)[:100])
    return cells if isinstance(cells, dict) else RowError("line that is no JSON object")
