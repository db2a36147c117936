"""Limits of requests: sizes of bodies, the rate of requests, and from which site they come.

Plain ASGI layers, so that a request is refused before any of it is read.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wsabie.faces.serve.callers import address_of
from wsabie.faces.serve.problems import Problem

SAFE = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_PAGES = ("/metrics", "/openapi.json")
_CLIENTS = 10_000
_HELD, _SMALL = 8, 1 << 20  # bodies of the largest size at once; smaller ones than this besides
_VALUES, _LISTS = 5_000_000, 100_000


@dataclass(frozen=True)
class Limits:
    """How much is taken.

    Attributes
    ----------
    body : int
        Bytes of a request, at most.
    pixels : int
        Of a picture that is sent.
    k : int
        Answers to a question.
    together : int
        Requests that are worked on at once; more are refused with 503. As many bodies may come besides, and as many
        long answers go.
    rate : float
        Requests a second of one client, over time; `burst` of them at once. 0: any number.
    burst : int
    seconds : float
        For one request.
    connections : int or None
        Open ones of each process; None: as many as there are file handles for, and at most 1,000.
    share : float
        Of connections and of requests at once, for one caller.
    slowest : float
        Bytes a second of a body or an answer, at least.
    """

    body: int = 32 << 20
    pixels: int = 64_000_000
    k: int = 1000
    together: int = 64
    rate: float = 0.0
    burst: int = 100
    seconds: float = 60.0
    connections: int | None = None
    share: float = 0.5
    slowest: float = 8192.0


class Body:
    """Refuses bodies that are longer than the limit, also those that do not say so before, and what unfolds.

    That is what is compressed, and JSON of very many small things, which take thirty times as much memory.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most
        self.held = 0  # bytes of all bodies that are here as a whole or in part

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        size = _Size(Headers(scope=scope), self.most)
        if size.problem is not None:
            await size.problem.send(send)
            return
        begun = False

        async def counted() -> Message:
            if size.problem is not None:
                return {"type": "http.disconnect"}
            message = await receive()
            if begun:
                return message
            problem = size.add(message.get("body", b""))
            self.held += len(message.get("body", b""))
            if problem is None and size.read > _SMALL and self.held > _HELD * self.most:
                problem = size.problem = Problem(503, "too much is sent at once; try again", {"retry-after": "5"})
            if problem is None:
                return message
            await problem.send(send)
            return {"type": "http.disconnect"}

        async def unless_refused(message: Message) -> None:
            nonlocal begun
            if size.problem is None:
                begun = True
                await send(message)

        try:
            await self.app(scope, counted, unless_refused)
        except Exception:
            if size.problem is None:  # what the application says of a request that broke off, nobody hears
                raise
        finally:
            self.held -= size.read


class _Size:
    """What has come of a body, and why no more of it is taken."""

    def __init__(self, headers: Headers, most: int) -> None:
        self.most = most
        self.read = self.values = self.lists = 0
        self.is_form = headers.get("content-type", "").startswith("multipart/")
        self.problem: Problem | None = None
        told = headers.get("content-length", "0")
        if headers.get("content-encoding", "identity") != "identity":
            self.problem = Problem(415, "the request is compressed; send it as it is")
        elif not told.isdecimal() or len(told) > 15 or int(told) > most:
            self.problem = self._too_large()

    def add(self, body: bytes) -> Problem | None:
        """Count a piece; what is wrong then."""
        self.read += len(body)
        if not self.is_form:
            self.values += body.count(b",")
            self.lists += body.count(b"[") + body.count(b"{")
        if self.read > self.most:
            self.problem = self._too_large()
        elif self.values > _VALUES or self.lists > _LISTS:
            held = f"more than {_VALUES:,} values or {_LISTS:,} lists"
            self.problem = Problem(413, f"the request holds {held}; send less at once")
        return self.problem

    def _too_large(self) -> Problem:
        return Problem(413, f"the request is larger than {self.most:,} bytes; send less at once")


class Rate:
    """Lets each client ask at a rate, with bursts: a bucket that fills again. Which client it is, its address says."""

    def __init__(self, app: ASGIApp, rate: float, burst: int) -> None:
        self.app, self.rate, self.burst = app, rate, burst
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait = self._wait(address_of(scope.get("client"))) if scope["type"] == "http" and self.rate else 0.0
        if wait:
            headers = {"retry-after": str(max(1, round(wait)))}
            await Problem(429, f"more than {self.rate:g} requests a second; wait {wait:.1f} seconds", headers).send(
                send
            )
            return
        await self.app(scope, receive, send)

    def _wait(self, client: str) -> float:
        """Seconds until this client may ask again; 0 = now, and it is counted."""
        now = time.monotonic()
        left, then = self.buckets.pop(client, (float(self.burst), now))
        left = min(float(self.burst), left + (now - then) * self.rate)
        wait = 0.0 if left >= 1 else (1 - left) / self.rate
        self.buckets[client] = (left if wait else left - 1, now)
        while len(self.buckets) > _CLIENTS:
            self.buckets.popitem(last=False)
        return wait


class OwnSite:
    """Refuses what other web sites make a browser send.

    A page elsewhere can send requests to a service on this machine: by a form, as a picture, or by giving its own name
    this machine's address. So the name that was asked for must be ours, and requests must come from our own pages or
    from no page at all; a link elsewhere may open a page of ours.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope) if scope["type"] in ("http", "websocket") else None
        if problem is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await problem.send(send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _problem(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        asked = headers.get("host", "")
        if self.hosts and _name_of(asked) not in self.hosts:
            return Problem(403, "this name is not one of the service; ask for it by its own, or start it with --name")
        foreign = any(origin.lower().partition("://")[2] != asked.lower() for origin in headers.getlist("origin"))
        sites = set(headers.getlist("sec-fetch-site")) - {"same-origin", "none"}
        if foreign or (sites and not _opens_page(scope, headers)):
            return Problem(403, "another web site may not ask or change anything here; use the service's own pages")
        return None


def _opens_page(scope: Scope, headers: Headers) -> bool:
    """Return whether somebody follows a link to a page, which the browser shows in place of the one with the link."""
    mode, place = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest", "document")
    inner = scope["path"].startswith("/api/") or scope["path"] in _NO_PAGES
    return scope.get("method") in ("GET", "HEAD") and (mode, place) == ("navigate", "document") and not inner


def _name_of(host: str) -> str:
    """The name in a Host header, without its port.

    Examples
    --------
    >>> _name_of("localhost:8000"), _name_of("[::1]:80"), _name_of("a@b")
    ('localhost', '::1', '')
    """
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.username is not None else (parts.hostname or "")
    except ValueError:
        return ""
