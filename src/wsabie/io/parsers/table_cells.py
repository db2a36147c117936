"""Cells of a table as labels, ids and other texts, for every type that a file may use."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from wsabie.core.errors import InputError
from wsabie.io.parsers.array_builders import RowError

LABEL_COLUMNS = ("labels", "label", "tags", "tag", "keywords", "text")
"""Columns that hold labels, the best known first; only the first that is there counts."""
SINGLE = ("label", "tag")  # their text is one label, never a list
SEPARATORS = ";|,"


class LabelCellReader:
    """Reader of the cells of one label column; refuses a column that mixes texts and numbers.

    Numbers become their decimal digits, or the name at that place of `class_names`.
    """

    def __init__(self, column: str, class_names: Sequence[str] | None = None) -> None:
        self.column = column
        self.class_names = class_names
        self._first: tuple[str, str, object] | None = None  # kind, where, value

    def read_labels(self, cell: object, where: str) -> tuple[str, ...]:
        """Return the labels in a cell: a text, a number, a list of either, or nothing.

        Raises
        ------
        InputError
            Another type of label than the rows before.
        RowError
            A number without a class name.
        """
        if cell is None:
            return ()
        values = list(cell) if isinstance(cell, list | tuple) else [cell]
        return tuple(self._name(value, where) for value in values if value is not None)

    def _name(self, value: object, where: str) -> str:
        kind = _detect_kind(value)
        if kind is None:
            raise InputError(
                f"{where}: column {self.column!r} holds {_format_preview(value)}, which is no label; "
                "labels are texts or whole numbers, or lists of them"
            )
        self._first = self._first or (kind, where, value)
        if kind != self._first[0]:
            raise InputError(
                f"{where}: column {self.column!r} holds the {kind} {_format_preview(value)} but the {self._first[0]} "
                f"{_format_preview(self._first[2])} at {self._first[1]}; write all labels as texts"
            )
        return str(value) if kind == "text" or self.class_names is None else self._class_name(value)

    def _class_name(self, value: object) -> str:
        names = self.class_names or ()
        number = int(str(value))
        if not 0 <= number < len(names):
            raise RowError("label number out of range", f"{number} of {len(names)} class names")
        return names[number]


def _detect_kind(value: object) -> str | None:
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int) and not isinstance(value, bool) else None


def _format_preview(value: object) -> str:
    return ascii(value)[:60]


def split_label_column(cells: Iterable[object], column: str, separators: str = SEPARATORS) -> list[object]:
    """Return the cells of a column with texts split into lists of labels; other cells stay."""
    values = list(cells)
    texts = [i for i, cell in enumerate(values) if isinstance(cell, str)]
    split = split_cells([str(values[i]) for i in texts], column, separators)
    for i, labels in zip(texts, split, strict=True):
        values[i] = labels
    return values


def split_cells(cells: Sequence[str], column: str, separators: str = SEPARATORS) -> list[list[str]]:
    """Split each text of a column that has one cell a row into labels.

    The separator is the first of `;`, `|` and `,` (or of `separators`) that occurs anywhere in the column, so
    that "Washington, D.C." stays whole in a column that uses semicolons. A column named for one label is
    never split.

    Examples
    --------
    >>> split_cells(["dog;wolf, grey", "cat"], "labels")
    [['dog', 'wolf, grey'], ['cat']]
    >>> split_cells(["a,b"], "label")
    [['a,b']]
    """
    separator = find_separator(cells, column, separators)
    return [cell.split(separator) if separator else [cell] for cell in cells]


def find_separator(cells: Iterable[str], column: str, separators: str = SEPARATORS) -> str | None:
    """Return the separator of labels in a column's texts, as `split_cells` does; None without one."""
    if column in SINGLE:
        return None
    candidates: set[str] = set()
    for cell in cells:
        candidates |= list_separators(cell, separators)
    return choose_separator(candidates, column, separators)


def list_separators(cell: str, separators: str = SEPARATORS) -> set[str]:
    """Return the separators that occur in a text."""
    return {s for s in separators if s in cell}


def choose_separator(candidates: set[str], column: str, separators: str = SEPARATORS) -> str | None:
    """Return the separator that counts among those that occur in a column."""
    return None if column in SINGLE else next((s for s in separators if s in candidates), None)


def to_text_cell(cell: object) -> str | None:
    """Return an id, group, split or time as text; None when the cell is empty.

    Raises
    ------
    RowError
        Not a single value, or not valid text.
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, list | tuple | dict | bytes):
        raise RowError("cell that is not a single value", _format_preview(cell))
    text = str(cell)
    if re.search("[\ud800-\udfff]", text):
        raise RowError("text that is not valid", _format_preview(text))
    return text


def split_csv_line(line: bytes, delimiter: str) -> list[str]:
    """Return the cells of one line of CSV.

    Raises
    ------
    RowError
        Not UTF-8, or malformed.

    Examples
    --------
    >>> split_csv_line(b'7;"a;b"', ";")
    ['7', 'a;b']
    """
    try:
        return next(csv.reader(io.StringIO(line.decode("utf-8")), delimiter=delimiter, strict=True), [])
    except UnicodeDecodeError as error:
        raise RowError("text that is not UTF-8", repr(line[:60])) from error
    except csv.Error as error:
        raise RowError("malformed CSV", str(error)) from error
