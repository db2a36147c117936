"""What a client says of itself in headers: copies that it keeps, and whether it takes gzip."""

import re

from starlette.requests import Request

_TAG = re.compile(r'"[^"\s]*"')  # what may stand between quotes, commas too; W/ before it is left out


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
