"""`metadata.csv` and `metadata.jsonl` of an image folder, in the form of Hugging Face's ImageFolder.

Each row has a `file_name`, relative to the folder, and a column of labels: the first of `labels`, `label`,
`tags`, `tag`, `keywords` and `text` that is there. In JSON lines a cell is a text or a list; in CSV, and
where JSON gives one text, several labels are separated by `;`, `|` or `,` (see `cells.split_cells`;
`label` and `tag` are one label, never split). `group`, `split` and `time` are used when they are there. The
columns of CSV are separated by commas, or by semicolons as spreadsheets of many countries write them.

A picture may have several rows, as exports of tags do (one row for each label): their labels are joined. Its
`group`, `split` and `time` need to be said in one of them only; a row that says another is rejected.
"""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.cells import LABEL_COLUMNS, LabelCells, split_cells, word
from wsabie.sources.text import bounded_lines, head, numbered_lines, open_bytes, reading, shown
from wsabie.storage.rejects import Rejects

NAMES = ("metadata.csv", "metadata.jsonl")
FILE_COLUMN = "file_name"
_LONGEST_LINE = 1 << 22
_SAID_ONCE = ("group", "time", "split")


class Entry(NamedTuple):
    """One row of the metadata."""

    where: str
    file_name: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    split: str | None


def agreed(before: Entry, entry: Entry) -> Entry:
    """The row `before` with what it left empty taken from another row of the same picture; labels aside.

    Raises
    ------
    BadRow
        They say different things.
    """
    filled = {}
    for name in _SAID_ONCE:
        old, new = getattr(before, name), getattr(entry, name)
        if None not in (old, new) and old != new:
            raise BadRow("row at odds with another of its file", f"{name} {new} and not {old}")
        filled[name] = new if old is None else old
    return before._replace(**filled)


def find_metadata(folder: Path) -> Path | None:
    """The metadata file of a folder, None when there is none.

    Raises
    ------
    InputError
        There are two, and nothing says which one counts.
    """
    found = [folder / name for name in NAMES if (folder / name).is_file()]
    if len(found) > 1:
        raise InputError(f"{shown(folder)} has both {NAMES[0]} and {NAMES[1]}; remove one of them")
    return found[0] if found else None


def read_metadata(
    path: Path, *, image_column: str = FILE_COLUMN, label_column: str | None = None, rejects: Rejects
) -> list[Entry]:
    """All rows of a metadata file that can be used.

    Parameters
    ----------
    path : Path
    image_column : str
        The column of file names.
    label_column : str or None
        The column of labels; None takes the first of `cells.LABEL_COLUMNS` that is there.
    rejects : Rejects
        Where the other rows are listed.

    Raises
    ------
    InputError
        No rows, no such columns, malformed as a whole, a line of more than 4 MiB, or labels of mixed types.
    """
    before = len(rejects)
    rows = list(_csv_rows(path, rejects) if path.suffix.lower() == ".csv" else _json_rows(path, rejects))
    if not rows and len(rejects) == before:
        raise InputError(f"{shown(path)} has no rows; write one for each file, or remove the file")
    columns = {name for _, row in rows for name in row}
    if rows and image_column not in columns:
        raise InputError(
            f"{shown(path)} has no column {image_column!r} (it has {_listed(columns)}); name the files in one"
        )
    column = _label_column(path, columns, label_column) if rows else ""
    cells = LabelCells(column)
    entries = []
    for (where, row), labels in zip(rows, _label_cells([row.get(column) for _, row in rows], column), strict=True):
        try:
            entries.append(_entry(where, row, image_column, cells.read(labels, where)))
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)
    return entries


def _label_column(path: Path, columns: set[str], wanted: str | None) -> str:
    choices = (wanted,) if wanted else LABEL_COLUMNS
    found = next((name for name in choices if name in columns), None)
    if found is None:
        raise InputError(
            f"{shown(path)} has no column {' or '.join(map(repr, choices))} (it has {_listed(columns)}); "
            "put the labels in one of these"
        )
    return found


def _listed(columns: set[str]) -> str:
    names = sorted(ascii(name)[:40] for name in columns)
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _label_cells(cells: list[Any], column: str) -> list[Any]:
    """Texts that hold several labels become lists; everything else stays."""
    texts = [i for i, cell in enumerate(cells) if isinstance(cell, str)]
    split = split_cells([cells[i] for i in texts], column)
    for i, labels in zip(texts, split, strict=True):
        cells[i] = labels
    return cells


def _entry(where: str, row: dict[str, Any], image_column: str, labels: tuple[str, ...]) -> Entry:
    file_name = word(row.get(image_column))
    if file_name is None:
        raise BadRow("row without a file name")
    return Entry(where, file_name, labels, word(row.get("group")), word(row.get("time")), word(row.get("split")))


def _csv_rows(path: Path, rejects: Rejects) -> Iterator[tuple[str, dict[str, Any]]]:
    with reading(path), open_bytes(path) as stream:
        # escapes stand for bad bytes until the line that holds them is known: text is decoded by the block
        text = io.TextIOWrapper(cast(IO[bytes], stream), "utf-8", errors="surrogateescape", newline="")
        records = csv_records(path, csv.reader(_valid_lines(text, path), delimiter=csv_delimiter(path), strict=True))
        number, header = next(records, (1, []))
        if len(set(header)) < len(header):
            raise InputError(f"{shown(path)}:{number} names a column twice; rename one")
        for number, cells in records:
            where = f"{shown(path)}:{number}"
            if len(cells) == len(header):
                yield where, dict(zip(header, cells, strict=True))
            else:
                rejects.add(where, "wrong number of cells", f"{len(cells)} of {len(header)}")


def _valid_lines(text: IO[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(bounded_lines(text, path, _LONGEST_LINE), start=1):
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{shown(path)}:{number} is not UTF-8 text; convert the file, for instance with iconv"
            ) from error
        yield line


def csv_records(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of each record that is not blank; a quoted cell may hold ends of lines.

    Raises
    ------
    InputError
        Malformed CSV.
    """
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


def csv_delimiter(path: Path) -> str:
    """What separates the columns: commas, or semicolons where the first line has no commas."""
    first = head(path).lstrip().partition(b"\n")[0]
    return ";" if b";" in first and b"," not in first else ","


def _json_rows(path: Path, rejects: Rejects) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in numbered_lines(path, _LONGEST_LINE):
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
