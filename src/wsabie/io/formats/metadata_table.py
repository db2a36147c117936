"""`metadata.csv` and `metadata.jsonl` of an image folder, in the form of Hugging Face's ImageFolder.

Each row has a `file_name`, relative to the folder, and a column of labels: the first of `labels`, `label`,
`tags`, `tag`, `keywords` and `text` that is there. In JSON lines a cell is a text or a list; in CSV, and
where JSON gives one text, several labels are separated by `;`, `|` or `,` (see `text_tables.find_separator`;
`label` and `tag` are one label, never split). `group`, `split` and `time` are used when they are there. The
columns of CSV are separated by commas, or by semicolons as spreadsheets of many countries write them.

A picture may have several rows, as exports of tags do (one row for each label): their labels are joined. Its
`group`, `split` and `time` need to be said in one of them only; a row that says another is rejected.
"""

from pathlib import Path
from typing import Any, NamedTuple

from wsabie.core.errors import InputError
from wsabie.core.input_files import is_regular_file
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import format_path
from wsabie.io.parsers.text_tables import (
    LABEL_COLUMNS,
    LabelCellReader,
    find_separator,
    format_column_names,
    iterate_table_rows,
    to_text_cell,
)
from wsabie.storage.rejects import Rejects

NAMES = ("metadata.csv", "metadata.jsonl")
FILE_COLUMN = "file_name"
_SINGLE_FIELDS = ("group", "time", "split")


class MetadataEntry(NamedTuple):
    """Row of the metadata."""

    where: str
    file_name: str
    labels: tuple[str, ...]
    group: str | None
    time: str | None
    split: str | None


def merge_entries(base: MetadataEntry, entry: MetadataEntry) -> MetadataEntry:
    """Fill the empty fields of a row from another row of the same picture; labels aside.

    Raises
    ------
    RowError
        Their values differ.
    """
    merged = {}
    for name in _SINGLE_FIELDS:
        old, new = getattr(base, name), getattr(entry, name)
        if None not in (old, new) and old != new:
            raise RowError("row at odds with another of its file", f"{name} {new} and not {old}")
        merged[name] = new if old is None else old
    return base._replace(**merged)


def find_metadata(folder: Path) -> Path | None:
    """Return the metadata file of a folder, None when there is none.

    Raises
    ------
    InputError
        There are two, and nothing says which one counts.
    """
    files = [folder / name for name in NAMES if is_regular_file(folder / name)]
    if len(files) > 1:
        raise InputError(f"{format_path(folder)} has both {NAMES[0]} and {NAMES[1]}; remove one of them")
    return files[0] if files else None


def read_metadata(
    path: Path, *, image_column: str = FILE_COLUMN, label_column: str | None = None, rejects: Rejects
) -> list[MetadataEntry]:
    """Return all usable rows of a metadata file.

    Parameters
    ----------
    path : Path
    image_column : str
        The column of file names.
    label_column : str or None
        The column of labels; None takes the first of `text_tables.LABEL_COLUMNS` that is there.
    rejects : Rejects
        Where the other rows are listed.

    Raises
    ------
    InputError
        No rows, no such columns, malformed as a whole, a line of more than 4 MiB, or labels of mixed types.
    """
    n_rejects = len(rejects)
    rows = list(iterate_table_rows(path, rejects))
    if not rows and len(rejects) == n_rejects:
        raise InputError(f"{format_path(path)} has no rows; write one for each file, or remove the file")
    columns = {name for _, row in rows for name in row}
    if rows and image_column not in columns:
        raise InputError(
            f"{format_path(path)} has no column {image_column!r} (it has {format_column_names(columns)}); name the "
            "files in one"
        )
    column = _find_label_column(path, columns, label_column) if rows else ""
    cells = LabelCellReader(column, separator=find_separator((row.get(column) for _, row in rows), column))
    entries = []
    for where, row in rows:
        try:
            entries.append(_make_entry(where, row, image_column, cells.read_labels(row.get(column), where)))
        except RowError as error:
            rejects.add(where, error.reason, error.detail)
    return entries


def _find_label_column(path: Path, columns: set[str], label_column: str | None) -> str:
    choices = (label_column,) if label_column else LABEL_COLUMNS
    column = next((name for name in choices if name in columns), None)
    if column is None:
        raise InputError(
            f"{format_path(path)} has no column {' or '.join(map(repr, choices))} (it has "
            f"{format_column_names(columns)}); put the labels in one of these"
        )
    return column


def _make_entry(where: str, row: dict[str, Any], image_column: str, labels: tuple[str, ...]) -> MetadataEntry:
    file_name = to_text_cell(row.get(image_column))
    if file_name is None:
        raise RowError("row without a file name")
    return MetadataEntry(
        where,
        file_name,
        labels,
        to_text_cell(row.get("group")),
        to_text_cell(row.get("time")),
        to_text_cell(row.get("split")),
    )
