"""Pages of rows, continued by a cursor: the end of a page as opaque text, sent back for the next one."""

import base64
from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from wsabie.core.errors import InputError, require
from wsabie.storage.schema_validation import Count

MAX_PAGE_SIZE = 1_000
"""Maximum number of rows on a page."""

_MAX_LENGTH = 20_000  # characters: a path has up to 4,096, which may be escaped
SortValue: TypeAlias = str | int | float | None
_Text = Annotated[str, msgspec.Meta(pattern="^[^\\x00]*$")]
_PROBABILITIES = dict.fromkeys(("best_probability", "uncertainty", "probability"), float | None)
_SORT_TYPES = {"path": _Text, "taken_at": _Text | None, "added_at": Count, "decided": None, **_PROBABILITIES}
"""Types of the values of each sort key."""


class Cursor(NamedTuple):
    """The last row of a page.

    Attributes
    ----------
    sort : str
        Sort key of the page, with a minus if descending.
    value : str, int, float or None
        Sort value of the row; None: it has none, and comes after rows with a value.
    id : int
    """

    sort: str
    value: SortValue
    id: Count


def read_position(cursor: str | None, sort: str, limit: int, noun: str) -> Cursor | None:
    """Return the position after which a page of at most `limit` rows begins; None is the beginning.

    Raises
    ------
    InputError
        The limit is out of range, or the text is not a cursor, or the cursor of another sort key.
    """
    require(1 <= limit <= MAX_PAGE_SIZE, f"a page has 1 to {MAX_PAGE_SIZE:,} {noun}, not {limit}; choose another limit")
    if cursor is None:
        return None
    try:
        if len(cursor) > _MAX_LENGTH:
            raise ValueError
        content = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = msgspec.json.decode(content, type=Cursor)
        msgspec.convert(position.value, _SORT_TYPES[position.sort.lstrip("-")])
    except (ValueError, KeyError, RecursionError, msgspec.DecodeError) as error:
        raise InputError("this is not a cursor of a page; leave it out to begin with the first page") from error
    if position.sort != sort:
        sort_key = position.sort[:20]
        raise InputError(f"this cursor is of a page sorted by {sort_key!r}, not {sort!r}; begin with the first")
    return position


def make_next_cursor(rows: Sequence[tuple[int, SortValue]], sort: str, limit: int) -> str | None:
    """Return the cursor of the page after the first `limit` rows (id, value); None if there are no others.

    Examples
    --------
    >>> cursor = make_next_cursor([(7, "a/b.jpg"), (9, "c.jpg")], "path", 1)
    >>> read_position(cursor, "path", 1, "items")
    Cursor(sort='path', value='a/b.jpg', id=7)
    """
    if len(rows) <= limit:
        return None
    row_id, value = rows[limit - 1]
    return base64.urlsafe_b64encode(msgspec.json.encode(Cursor(sort, value, row_id))).decode().rstrip("=")
