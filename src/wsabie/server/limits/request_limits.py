"""Limits of requests: sizes of bodies and the rate of requests.

Plain ASGI layers, so that a request is refused before any of it is read.
"""

import time
from dataclasses import dataclass

from cachetools import LRUCache
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wsabie.server.limits.slots import get_caller_address
from wsabie.server.problems import Problem

SAFE = ("GET", "HEAD", "OPTIONS")
_MAX_CLIENTS = 10_000
_MAX_LARGE_BODIES, _SMALL_BODY = 8, 1 << 20  # bodies of the largest size at once; smaller bodies than this come besides
_MAX_VALUES, _MAX_LISTS = 5_000_000, 100_000


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of the service.

    Attributes
    ----------
    body : int
        Largest body of a request, in bytes.
    pixels : int
        Largest picture in a request.
    k : int
        Most results of a request.
    max_concurrent : int
        Requests in work at once; more are refused with 503. As many uploads and as many long answers may run besides.
    rate : float
        Requests a second of one client on average, with up to `burst` at once. 0: no limit.
    burst : int
    seconds : float
        Longest time for one request.
    connections : int or None
        Open connections of each process; None: as many as its file handles allow, and at most 1,000.
    share : float
        Share of connections and of concurrent requests for one caller.
    min_rate : float
        Lowest rate of a body or an answer, in bytes a second.
    """

    body: int = 32 << 20
    pixels: int = 64_000_000
    k: int = 1000
    max_concurrent: int = 64
    rate: float = 0.0
    burst: int = 100
    seconds: float = 60.0
    connections: int | None = None
    share: float = 0.5
    min_rate: float = 8192.0


class BodyLimit:
    """Middleware that refuses bodies that are too long, with or without a length in their headers.

    It also refuses bodies that grow when they are read: compressed ones, and JSON of very many small values, which take
    thirty times as much memory.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app, self.max_bytes = app, max_bytes
        self.n_bytes = 0  # bytes of all bodies in memory, whole or in part

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        meter = _BodyMeter(Headers(scope=scope), self.max_bytes)
        if meter.problem is not None:
            await meter.problem.send(send)
            return
        is_answered = False

        async def receive_counted() -> Message:
            if meter.problem is not None:
                return {"type": "http.disconnect"}
            message = await receive()
            if is_answered:
                return message
            problem = meter.add(message.get("body", b""))
            self.n_bytes += len(message.get("body", b""))
            if problem is None and meter.n_bytes > _SMALL_BODY and self.n_bytes > _MAX_LARGE_BODIES * self.max_bytes:
                problem = meter.problem = Problem(503, "too much is sent at once; try again", {"retry-after": "5"})
            if problem is None:
                return message
            await problem.send(send)
            return {"type": "http.disconnect"}

        async def send_unless_refused(message: Message) -> None:
            nonlocal is_answered
            if meter.problem is None:
                is_answered = True
                await send(message)

        try:
            await self.app(scope, receive_counted, send_unless_refused)
        except Exception:
            if meter.problem is None:  # nobody reads the error of a request that broke off
                raise
        finally:
            self.n_bytes -= meter.n_bytes


class _BodyMeter:
    """Counts of a body so far, and the problem if it exceeds a limit."""

    def __init__(self, headers: Headers, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = self.values = self.lists = 0
        self.is_form = headers.get("content-type", "").startswith("multipart/")
        self.problem: Problem | None = None
        content_length = headers.get("content-length", "0")
        if headers.get("content-encoding", "identity") != "identity":
            self.problem = Problem(415, "the request is compressed; send it as it is")
        elif not content_length.isdecimal() or len(content_length) > 15 or int(content_length) > max_bytes:
            self.problem = self._too_large()

    def add(self, body: bytes) -> Problem | None:
        """Count a piece; return the problem, if any."""
        self.n_bytes += len(body)
        if not self.is_form:
            self.values += body.count(b",")
            self.lists += body.count(b"[") + body.count(b"{")
        if self.n_bytes > self.max_bytes:
            self.problem = self._too_large()
        elif self.values > _MAX_VALUES or self.lists > _MAX_LISTS:
            limits = f"more than {_MAX_VALUES:,} values or {_MAX_LISTS:,} lists"
            self.problem = Problem(413, f"the request holds {limits}; send less at once")
        return self.problem

    def _too_large(self) -> Problem:
        return Problem(413, f"the request is larger than {self.max_bytes:,} bytes; send less at once")


class RateLimit:
    """Middleware that limits the rate of each client address by a token bucket, with bursts."""

    def __init__(self, app: ASGIApp, rate: float, burst: int) -> None:
        self.app, self.rate, self.burst = app, rate, burst
        self.buckets: LRUCache[str, tuple[float, float]] = LRUCache(_MAX_CLIENTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait = self._wait(get_caller_address(scope.get("client"))) if self.rate else 0.0
        if wait:
            detail = f"more than {self.rate:g} requests a second; wait {wait:.1f} seconds"
            await Problem(429, detail, {"retry-after": str(max(1, round(wait)))}).send(send)
        else:
            await self.app(scope, receive, send)

    def _wait(self, client: str) -> float:
        """Return the seconds until this client may ask again; 0: now, and this request is counted."""
        now = time.monotonic()
        tokens, updated = self.buckets.get(client, (float(self.burst), now))
        tokens = min(float(self.burst), tokens + (now - updated) * self.rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self.rate
        self.buckets[client] = (tokens if wait else tokens - 1, now)
        return wait
