"""Cells of a table: labels, ids and other words, whatever type the file gives them."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow

LABEL_COLUMNS = ("labels", "label", "tags", "tag", "keywords", "text")
"""Columns that hold labels, the best known first; only the first that is there counts."""
SINGLE = ("label", "tag")  # their text is one label, never a list
SEPARATORS = ";|,"


class LabelCells:
    """Reads the cells of one label column and refuses a column that mixes texts and numbers.

    Numbers become their decimal digits, or the name at that place of `class_names`.
    """

    def __init__(self, column: str, class_names: Sequence[str] | None = None) -> None:
        self.column = column
        self.class_names = class_names
        self._first: tuple[str, str, object] | None = None  # kind, where, value

    def read(self, cell: object, where: str) -> tuple[str, ...]:
        """The labels in a cell: a text, a number, a list of either, or nothing.

        Raises
        ------
        InputError
            Another type of label than the rows before.
        BadRow
            A number without a class name.
        """
        if cell is None:
            return ()
        values = list(cell) if isinstance(cell, list | tuple) else [cell]
        return tuple(self._name(value, where) for value in values if value is not None)

    def _name(self, value: object, where: str) -> str:
        kind = _kind(value)
        if kind is None:
            raise InputError(
                f"{where}: column {self.column!r} holds {_shown(value)}, which is no label; "
                "labels are texts or whole numbers, or lists of them"
            )
        self._first = self._first or (kind, where, value)
        if kind != self._first[0]:
            raise InputError(
                f"{where}: column {self.column!r} holds the {kind} {_shown(value)} but the {self._first[0]} "
                f"{_shown(self._first[2])} at {self._first[1]}; write all labels as texts"
            )
        return str(value) if kind == "text" or self.class_names is None else self._class_name(value)

    def _class_name(self, value: object) -> str:
        names = self.class_names or ()
        number = int(str(value))
        if not 0 <= number < len(names):
            raise BadRow("label number out of range", f"{number} of {len(names)} class names")
        return names[number]


def _kind(value: object) -> str | None:
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(value: object) -> str:
    return ascii(value)[:60]


def label_cells(cells: Iterable[object], column: str, separators: str = SEPARATORS) -> list[object]:
    """Cells of a column in which texts that hold several labels became lists; everything else stays."""
    held = list(cells)
    texts = [i for i, cell in enumerate(held) if isinstance(cell, str)]
    split = split_cells([str(held[i]) for i in texts], column, separators)
    for i, labels in zip(texts, split, strict=True):
        held[i] = labels
    return held


def split_cells(cells: Sequence[str], column: str, separators: str = SEPARATORS) -> list[list[str]]:
    """Texts of a column that has one cell a row, each split into labels.

    The separator is the first of `;`, `|` and `,` (or of `separators`) that occurs anywhere in the column, so that
    "Washington, D.C." stays whole in a column that uses semicolons. A column named for one label is never split.

    Examples
    --------
    >>> split_cells(["dog;wolf, grey", "cat"], "labels")
    [['dog', 'wolf, grey'], ['cat']]
    >>> split_cells(["a,b"], "label")
    [['a,b']]
    """
    separator = separator_of(cells, column, separators)
    return [cell.split(separator) if separator else [cell] for cell in cells]


def separator_of(cells: Iterable[str], column: str, separators: str = SEPARATORS) -> str | None:
    """What separates the labels of a column's texts: see `split_cells`; None when nothing does."""
    if column in SINGLE:
        return None
    found: set[str] = set()
    for cell in cells:
        found.update(s for s in separators if s in cell)
    return next((s for s in separators if s in found), None)


def word(cell: object) -> str | None:
    """An id, group, split or time as text; None when the cell is empty.

    Raises
    ------
    BadRow
        Not a single value, or not valid text.
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, list | tuple | dict | bytes):
        raise BadRow("cell that is not a single value", _shown(cell))
    text = str(cell)
    if re.search("[\ud800-\udfff]", text):
        raise BadRow("text that is not valid", _shown(text))
    return text


def cells_of_line(line: bytes, delimiter: str) -> list[str]:
    """The cells of one line of CSV.

    Raises
    ------
    BadRow
        Not UTF-8, or malformed.

    Examples
    --------
    >>> cells_of_line(b'7;"a;b"', ";")
    ['7', 'a;b']
    """
    try:
        return next(csv.reader(io.StringIO(line.decode("utf-8")), delimiter=delimiter, strict=True), [])
    except UnicodeDecodeError as error:
        raise BadRow("text that is not UTF-8", repr(line[:60])) from error
    except csv.Error as error:
        raise BadRow("malformed CSV", str(error)) from error
