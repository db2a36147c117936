"""`metadata.csv` and `metadata.jsonl` of an image folder, in the form of Hugging Face's ImageFolder.

Each row has a `file_name`, relative to the folder, and a column of labels: the first of `labels`, `label`,
`tags`, `tag`, `keywords` and `text` that is there. In JSON lines a cell is a text or a list; in CSV, and
where JSON gives one text, several labels are separated by `;`, `|` or `,` (see `cells.split_cells`;
`label` and `tag` are one label, never split). `group`, `split` and `time` are used when they are there. The
columns of CSV are separated by commas, or by semicolons as spreadsheets of many countries write them.

A picture may have several rows, as exports of tags do (one row for each label): their labels are joined. Its
`group`, `split` and `time` need to be said in one of them only; a row that says another is rejected.
"""

from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.input_files import is_regular
from wsabie.sources.build import BadRow
from wsabie.sources.cells import LABEL_COLUMNS, LabelCells, label_cells, word
from wsabie.sources.tables import listed_names, table_rows
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects

NAMES = ("metadata.csv", "metadata.jsonl")
FILE_COLUMN = "file_name"
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
    found = [folder / name for name in NAMES if is_regular(folder / name)]
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
    rows = list(table_rows(path, rejects))
    if not rows and len(rejects) == before:
        raise InputError(f"{shown(path)} has no rows; write one for each file, or remove the file")
    columns = {name for _, row in rows for name in row}
    if rows and image_column not in columns:
        raise InputError(
            f"{shown(path)} has no column {image_column!r} (it has {listed_names(columns)}); name the files in one"
        )
    column = _label_column(path, columns, label_column) if rows else ""
    cells = LabelCells(column)
    entries = []
    split = label_cells((row.get(column) for _, row in rows), column)
    for (where, row), labels in zip(rows, split, strict=True):
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
            f"{shown(path)} has no column {' or '.join(map(repr, choices))} (it has {listed_names(columns)}); "
            "put the labels in one of these"
        )
    return found


def _entry(where: str, row: dict[str, Any], image_column: str, labels: tuple[str, ...]) -> Entry:
    file_name = word(row.get(image_column))
    if file_name is None:
        raise BadRow("row without a file name")
    return Entry(where, file_name, labels, word(row.get("group")), word(row.get("time")), word(row.get("split")))
