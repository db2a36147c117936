"""Check of the site that a request comes from.

A plain ASGI layer, so that a request is refused before any of it is read.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from wsabie.server.problems import Problem

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NON_PAGES = ("/metrics", "/openapi.json")


class SameOriginCheck:
    """Middleware that refuses requests that other web sites make a browser send.

    A page elsewhere can send requests to a service on this machine: by a form, as a picture, or by giving its own name
    this machine's address. So the requested host must be ours, and requests must come from our own pages or from no
    page at all; a link elsewhere may open a page of ours.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope)
        await (self.app(scope, receive, send) if problem is None else problem.send(send))

    def _problem(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.hosts and _parse_host(host) not in self.hosts:
            return Problem(403, "this name is not one of the service; use its own, or start it with --allowed-host")
        foreign = any(origin.lower().partition("://")[2] != host.lower() for origin in headers.getlist("origin"))
        sites = set(headers.getlist("sec-fetch-site")) - {"same-origin", "none"}
        if foreign or (sites and not _is_page_request(scope, headers)):
            return Problem(403, "another web site may not ask or change anything here; use the service's own pages")
        return None


def _is_page_request(scope: Scope, headers: Headers) -> bool:
    """Return True if the browser follows a link and shows a page of ours in place of the other site."""
    mode, destination = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest", "document")
    inner = scope["path"].startswith("/api/") or scope["path"] in _NON_PAGES
    return scope.get("method") in ("GET", "HEAD") and (mode, destination) == ("navigate", "document") and not inner


def _parse_host(host: str) -> str:
    """Return the name in a Host header, without its port.

    Examples
    --------
    >>> _parse_host("localhost:8000"), _parse_host("[::1]:80"), _parse_host("a@b")
    ('localhost', '::1', '')
    """
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.username is not None else (parts.hostname or "")
    except ValueError:
        return ""
