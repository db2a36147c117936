"""What is written of a tag, and what a line of a file says of an item."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from wsabie.sources.build import BadRow

LONGEST = 500
"""Letters of a person's or a model's name, at most."""
ORIGINS = ("person", "import", "model")
STATES = ("accepted", "rejected")
SUGGESTED = "suggested"
Frame: TypeAlias = tuple[int, int] | None
"""Width and height of a picture, where they are known."""


class Tag(NamedTuple):
    """A label of an item, with all that is known of it; its fields but the first two are the columns of our files.

    Attributes
    ----------
    item : int
        Its number in the catalogue.
    frame : (int, int) or None
        Width and height of the picture.
    path, root : str
        The item within its root; the root as the catalogue has it.
    hash : str or None
    label, language, wordnet : str
    parents : tuple of str
        Labels above it, the broadest first.
    synonyms : tuple of (name, language)
    region : str
        "" = the whole.
    state : str
        "accepted", "rejected" or "suggested".
    origin, by, at : str
        Who decided it, and when. Of a suggestion: "model", nobody, and when the model looked at the item (before that
        was written down: when it was made).
    model, model_made : str or None
        The model that suggested it: its folder, and when it was made.
    score, probability : float or None
    """

    item: int
    frame: Frame
    path: str
    root: str
    hash: str | None
    label: str
    language: str
    wordnet: str
    parents: tuple[str, ...]
    synonyms: tuple[tuple[str, str], ...]
    region: str
    state: str
    origin: str
    by: str
    at: str
    model: str | None
    model_made: str | None
    score: float | None
    probability: float | None


COLUMNS = Tag._fields[2:]
"""The columns of our files."""
OURS = {"path", "label", "state", "origin", "by", "at"}
"""Columns by which they are known."""


class Told(NamedTuple):
    """How a tag was decided, as a file of ours tells it; `at` in microseconds since 1970."""

    origin: str
    by: str
    at: int
    model: str
    model_made: str
    score: float | None
    probability: float | None


class Said(NamedTuple):
    """What a line says.

    Attributes
    ----------
    line : int
        Of the file; of JSON the number of the element.
    path : str
        The item: a path, a name of a file, or an address.
    labels : tuple of str
    root, hash, region : str
    state : str or None
        None: the file does not say.
    told : Told or None
    language : str
    parents : tuple of str
    synonyms : tuple of (name, language)
    wordnet : str
    """

    line: int
    path: str
    labels: tuple[str, ...]
    root: str = ""
    hash: str = ""
    region: str = ""
    state: str | None = None
    told: Told | None = None
    language: str = ""
    parents: tuple[str, ...] = ()
    synonyms: tuple[tuple[str, str], ...] = ()
    wordnet: str = ""


Line: TypeAlias = Said | tuple[int, BadRow]
"""A line of a file, or why it cannot be used."""


def by_item(tags: Iterable[Tag]) -> Iterator[list[Tag]]:
    """Tags item by item; they come in that order."""
    return (list(group) for _, group in groupby(tags, lambda tag: tag.item))


def text_of(cell: Any, column: str, longest: int = 4096) -> str:
    """A cell that is a text, or empty.

    Raises
    ------
    BadRow
        Something else, half of a letter, a NUL, or too long.
    """
    if cell is None:
        return ""
    if not isinstance(cell, str) or len(cell) > longest or "\0" in cell:
        raise BadRow(f"{column} that is no text of up to {longest:,} letters", ascii(cell)[:100])
    try:
        cell.encode()
    except UnicodeEncodeError as error:
        raise BadRow(f"{column} that is not valid text", ascii(cell)[:100]) from error
    return cell


def number_of(cell: Any, column: str) -> float | None:
    """A cell that is a number, or empty.

    Raises
    ------
    BadRow
        Something else, or not finite.
    """
    if cell is None or cell == "":
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRow(f"{column} that is no number", ascii(cell)[:100]) from error
    if not isfinite(number):
        raise BadRow(f"{column} that is no number", ascii(cell)[:100])
    return number


_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(text: str) -> int:
    """Microseconds since 1970 of a time as the catalogue writes it.

    Raises
    ------
    BadRow

    Examples
    --------
    >>> written(moment("2026-01-02T03:04:05.000006Z"))
    '2026-01-02T03:04:05.000006Z'
    """
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise ValueError("no zone")
        return (found - _START) // _MICROSECOND
    except (ValueError, OverflowError) as error:
        raise BadRow("time that is none of ours", ascii(text)[:100]) from error


def written(at: int) -> str:
    """A time as the catalogue writes it."""
    return (_START + at * _MICROSECOND).isoformat(timespec="microseconds").replace("+00:00", "Z")
