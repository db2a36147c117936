"""Cursors: where a page of items ended, as text that callers hand back and need not understand."""

import base64
import binascii
import json
import math
from typing import NamedTuple

from wsabie.base.errors import InputError

_LONGEST = 20_000  # characters: a path has up to 4,096, which may be escaped


class Cursor(NamedTuple):
    """The last item of a page.

    Attributes
    ----------
    sort : str
        What the page was sorted by, with a minus where it was from the highest down.
    value : str, int, float or None
        Of the item; None: it has none, and comes after those that have.
    id : int
    """

    sort: str
    value: str | int | float | None
    id: int


def written(cursor: Cursor) -> str:
    """A cursor as text.

    Examples
    --------
    >>> read(written(Cursor("path", "a/b.jpg", 7)), "path")
    Cursor(sort='path', value='a/b.jpg', id=7)
    """
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode().rstrip("=")


def read(text: str, sort: str) -> Cursor:
    """The cursor in a text that came from outside.

    Raises
    ------
    InputError
        It is none, or of a page that was sorted by something else.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = Cursor(*json.loads(content))
        if not (isinstance(found.sort, str) and _is_value(found) and _is_number(found.id)):
            raise ValueError
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        raise InputError("this is no cursor of a page; leave it out to begin with the first page") from error
    if found.sort != sort:
        raise InputError(f"this cursor is of a page sorted by {found.sort[:20]!r}, not {sort!r}; begin with the first")
    return found


def _is_value(cursor: Cursor) -> bool:
    """Whether the value is of the kind that items are sorted by so."""
    value, sort = cursor.value, cursor.sort.lstrip("-")
    if sort in ("path", "taken") and isinstance(value, str):
        value.encode()  # half of a surrogate pair is no text: UnicodeEncodeError is a ValueError
        return "\0" not in value
    if sort == "added":
        return _is_number(value)
    if sort in ("best", "doubt", "probability") and value is not None:
        return isinstance(value, float) and math.isfinite(value)
    return value is None and sort != "path"


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
