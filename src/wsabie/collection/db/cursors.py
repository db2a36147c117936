"""Cursors: the end of a page of items as opaque text, which callers send back for the next page."""

import base64
import binascii
import json
import math
from typing import NamedTuple

from wsabie.core.errors import InputError

_MAX_LENGTH = 20_000  # characters: a path has up to 4,096, which may be escaped


class Cursor(NamedTuple):
    """The last item of a page.

    Attributes
    ----------
    sort : str
        Sort key of the page, with a minus if descending.
    value : str, int, float or None
        Sort value of the item; None: it has none, and comes after items with a value.
    id : int
    """

    sort: str
    value: str | int | float | None
    id: int


def encode_cursor(cursor: Cursor) -> str:
    """Return a cursor as text.

    Examples
    --------
    >>> decode_cursor(encode_cursor(Cursor("path", "a/b.jpg", 7)), "path")
    Cursor(sort='path', value='a/b.jpg', id=7)
    """
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode().rstrip("=")


def decode_cursor(text: str, sort: str) -> Cursor:
    """Parse the text of a cursor that a caller sent.

    Raises
    ------
    InputError
        The text is no cursor, or the cursor of another sort key.
    """
    try:
        if len(text) > _MAX_LENGTH:
            raise ValueError
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        cursor = Cursor(*json.loads(content))
        if not (isinstance(cursor.sort, str) and _is_value(cursor) and _is_number(cursor.id)):
            raise ValueError
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise InputError("this is no cursor of a page; leave it out to begin with the first page") from error
    if cursor.sort != sort:
        raise InputError(f"this cursor is of a page sorted by {cursor.sort[:20]!r}, not {sort!r}; begin with the first")
    return cursor


def _is_value(cursor: Cursor) -> bool:
    """Return whether the value has the type of the sort key."""
    value, sort = cursor.value, cursor.sort.lstrip("-")
    if sort in ("path", "taken_at") and isinstance(value, str):
        value.encode()  # half of a surrogate pair is no text: UnicodeEncodeError is a ValueError
        return "\0" not in value
    if sort == "added_at":
        return _is_number(value)
    if sort in ("best_probability", "uncertainty", "probability") and value is not None:
        return isinstance(value, float) and math.isfinite(value)
    return value is None and sort != "path"


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
