"""Request headers: cached copies (ETag), byte ranges and gzip."""

import re
from itertools import pairwise

from starlette.requests import Request
from starlette.responses import FileResponse

from wsabie.server.problems import Problem

_TAG = re.compile(r'"[^"\s]*"')  # the quoted part of a tag, which may hold commas, without W/

_PART = re.compile(r"(\d{0,18})-(\d{0,18})")
_PARTS = 16


def has_current_copy(request: Request, tag: str) -> bool:
    """Return True if the client has the content of this tag (with its quotes), so that 304 suffices.

    Tags are compared weakly, as RFC 9110 (13.1.2) says: in a list, with or without `W/`; `*` stands for any.

    Examples
    --------
    >>> def make_request(value):
    ...     return Request({"type": "http", "headers": [(b"if-none-match", value)]})
    >>> [has_current_copy(make_request(value), '"abc"') for value in (b'"x", W/"abc"', b"*", b'"abcd"', b"abc")]
    [True, True, False, False]
    """
    tags = ", ".join(request.headers.getlist("if-none-match"))
    return tags.strip() == "*" or tag in _TAG.findall(tags)


def can_gzip(request: Request) -> bool:
    """Return True if the client takes gzip; `gzip;q=0` forbids it.

    Examples
    --------
    >>> def make_request(value):
    ...     return Request({"type": "http", "headers": [(b"accept-encoding", value)]})
    >>> [can_gzip(make_request(value)) for value in (b"br, gzip", b"gzip;q=0.5", b"gzip; q=0, br", b"identity")]
    [True, True, False, False]
    """
    for encoding in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = encoding.replace(" ", "").partition(";")
        if name == "gzip":
            return weight.removeprefix("q=").strip("0.") != "" or not weight
    return False


def check_range(request: Request, response: FileResponse) -> None:
    """Refuse parts of a file that cannot be sent.

    The whole file is sent (`Range` is removed) if the unit is unknown (RFC 9110, 14.2) or `If-Range` names another
    version of the file (13.1.5).

    Raises
    ------
    Problem
        The range is malformed (400), lies behind the end, overlaps another, or there are too many (416).
    """
    unit, _, ranges = ", ".join(request.headers.getlist("range")).partition("=")
    size, tag = int(response.headers["content-length"]), response.headers["etag"]
    is_same = request.headers.get("if-range", tag) in (tag, response.headers["last-modified"])
    if not is_same or unit.strip().lower() != "bytes":
        request.scope["headers"] = [header for header in request.scope["headers"] if header[0] != b"range"]
        return
    parts = [part.strip() for part in ranges.split(",", _PARTS)]
    pairs = [match.groups() for part in parts[:_PARTS] if (match := _PART.fullmatch(part)) and part != "-"]
    if len(pairs) < min(len(parts), _PARTS) or any(first and last and int(first) > int(last) for first, last in pairs):
        raise Problem(400, "this is not a range of bytes; give one such as bytes=0-99")
    spans = sorted((int(first), int(last or size) + 1) if first else (size - int(last), size) for first, last in pairs)
    is_behind = any(start >= size for start, _ in spans)
    has_overlap = any(end > start for (_, end), (start, _) in pairwise(spans))
    if len(parts) > _PARTS or is_behind or has_overlap:
        detail = f"there are {size:,} bytes, and at most {_PARTS} parts of them that do not overlap are sent"
        raise Problem(416, detail, {"content-range": f"bytes */{size}"})
