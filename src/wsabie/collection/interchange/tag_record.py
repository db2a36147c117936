"""Records of tags: all facts of a tag, and the content of a line of a file."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from wsabie.storage.rejects import RowError

ExportFormat = Literal["csv", "jsonl", "coco", "imagefolder", "xmp"]
PlacementMode = Literal["copy", "hardlink", "symlink"]
StateFilter = Literal["accepted", "rejected", "suggested", "all"]
ENDINGS: dict[str, ExportFormat] = {".csv": "csv", ".jsonl": "jsonl", ".json": "coco"}
"""Format of a file by its suffix."""
Frame: TypeAlias = tuple[int, int] | None
"""Width and height of a picture, or None if unknown."""
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Tag(NamedTuple):
    """Label of an item with all its facts; all fields but the first two are columns of our files.

    Attributes
    ----------
    item : int
        Item id.
    frame : (int, int) or None
        Width and height of the picture.
    path, root : str
        Path of the item within its root; the root as the database has it.
    hash : str or None
    label, language, wordnet : str
    parents : tuple of str
        Ancestors of the label, broadest first.
    synonyms : tuple of (name, language)
    region : str
        "" is the whole item.
    state : str
        "accepted", "rejected" or "suggested".
    origin, by, at : str
        Author and time of the decision. For a suggestion: "model", an empty name, and the time of the inference (for
        older rows the time at which the model was made).
    model, model_made : str or None
        Folder and time of the model that suggested the label.
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


class TagProvenance(NamedTuple):
    """Origin of a decision as our files record it; `at` in microseconds since 1970."""

    origin: str
    by: str
    at: int
    model: str
    model_made: str
    score: float | None
    probability: float | None


class TagLine(NamedTuple):
    """Content of a line.

    Attributes
    ----------
    line : int
        Number of the line; in JSON, of the element.
    path : str
        Path, file name or address of the item.
    labels : tuple of str
    root, hash, region : str
    state : str or None
        None if the file names none.
    provenance : TagProvenance or None
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
    provenance: TagProvenance | None = None
    language: str = ""
    parents: tuple[str, ...] = ()
    synonyms: tuple[tuple[str, str], ...] = ()
    wordnet: str = ""


def group_by_item(tags: Iterable[Tag]) -> Iterator[list[Tag]]:
    """Yield the tags of each item; they must arrive grouped by item."""
    return (list(group) for _, group in groupby(tags, lambda tag: tag.item))


def parse_text(cell: object, column: str, longest: int = 4096) -> str:
    """Return a cell that is a text or empty.

    Raises
    ------
    RowError
        The cell is not text or not valid Unicode, holds a NUL or is too long.
    """
    if cell is None:
        return ""
    if not isinstance(cell, str) or len(cell) > longest or "\0" in cell:
        raise RowError(f"{column} that is not text of up to {longest:,} letters", ascii(cell)[:100])
    try:
        cell.encode()
    except UnicodeEncodeError as error:
        raise RowError(f"{column} that is not valid text", ascii(cell)[:100]) from error
    return cell


def parse_time(text: str) -> int:
    """Return the microseconds since 1970 of a time in the database's format.

    Raises
    ------
    RowError

    Examples
    --------
    >>> format_time(parse_time("2026-01-02T03:04:05.000006Z"))
    '2026-01-02T03:04:05.000006Z'
    """
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError("no zone")
        return (time - _START) // _MICROSECOND
    except (ValueError, OverflowError) as error:
        raise RowError("unknown form of time", ascii(text)[:100]) from error


def format_time(microseconds: int) -> str:
    """Return a time in the database's format."""
    return (_START + microseconds * _MICROSECOND).isoformat(timespec="microseconds").replace("+00:00", "Z")
