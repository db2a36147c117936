"""Headers of a client: copies that it keeps, parts that it wants, and whether it takes gzip."""

import re
from itertools import pairwise

from starlette.requests import Request
from starlette.responses import FileResponse

from wsabie.faces.serve.problems import Problem

_TAG = re.compile(r'"[^"\s]*"')  # what may stand between quotes, commas too; W/ before it is left out

_PART = re.compile(r"(\d{0,18})-(\d{0,18})")
_PARTS = 16


def keeps(request: Request, tag: str) -> bool:
    """Whether the client has the content of this tag (with its quotes), so that 304 will do.

    Tags are compared weakly, as RFC 9110 (13.1.2) says: in a list, with or without `W/`; `*` stands for any.

    Examples
    --------
    >>> def asked(value):
    ...     return Request({"type": "http", "headers": [(b"if-none-match", value)]})
    >>> [keeps(asked(value), '"abc"') for value in (b'"x", W/"abc"', b"*", b'"abcd"', b"abc")]
    [True, True, False, False]
    """
    known = ", ".join(request.headers.getlist("if-none-match"))
    return known.strip() == "*" or tag in _TAG.findall(known)


def takes_gzip(request: Request) -> bool:
    """Whether an answer may be compressed; `gzip;q=0` says that it may not.

    Examples
    --------
    >>> def asked(value):
    ...     return Request({"type": "http", "headers": [(b"accept-encoding", value)]})
    >>> [takes_gzip(asked(value)) for value in (b"br, gzip", b"gzip;q=0.5", b"gzip; q=0, br", b"identity")]
    [True, True, False, False]
    """
    for one in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = one.replace(" ", "").partition(";")
        if name == "gzip":
            return weight.removeprefix("q=").strip("0.") != "" or not weight
    return False


def check_range(request: Request, response: FileResponse) -> None:
    """Refuse parts of a file that cannot be sent.

    `Range` is taken out, so that the whole file is sent, where its unit is unknown (RFC 9110, 14.2) or `If-Range`
    names another version of the file (13.1.5).

    Raises
    ------
    Problem
        It is no range (400), lies behind the end, overlaps another, or is one of too many (416).
    """
    unit, _, text = ", ".join(request.headers.getlist("range")).partition("=")
    size, tag = int(response.headers["content-length"]), response.headers["etag"]
    is_same = request.headers.get("if-range", tag) in (tag, response.headers["last-modified"])
    if not is_same or unit.strip().lower() != "bytes":
        request.scope["headers"] = [one for one in request.scope["headers"] if one[0] != b"range"]
        return
    parts = [part.strip() for part in text.split(",", _PARTS)]
    pairs = [match.groups() for part in parts[:_PARTS] if (match := _PART.fullmatch(part)) and part != "-"]
    if len(pairs) < min(len(parts), _PARTS) or any(a and b and int(a) > int(b) for a, b in pairs):
        raise Problem(400, "this is no range of bytes; give one such as bytes=0-99")
    spans = sorted((int(a), int(b or size) + 1) if a else (size - int(b), size) for a, b in pairs)
    if (
        len(parts) > _PARTS
        or any(start >= size for start, _ in spans)
        or any(end > start for (_, end), (start, _) in pairwise(spans))
    ):
        said = f"there are {size:,} bytes, and at most {_PARTS} parts of them that do not overlap are sent"
        raise Problem(416, said, {"content-range": f"bytes */{size}"})
