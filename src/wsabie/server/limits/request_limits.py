"""Limits of requests: sizes of bodies, rate, and the slots and time of each stage.

Plain ASGI layers, so that a request is refused before any of it is read; slowapi limits the rate alone
(`docs/decisions/request-limits.md`).
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cachetools import LRUCache
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wsabie.server.limits.slots import WINDOW, SlotPool, Transfer, TransferPool, get_caller_address
from wsabie.server.problems import Problem

SAFE = ("GET", "HEAD", "OPTIONS")
_MAX_CLIENTS = 10_000
_MAX_LARGE_BODIES, _SMALL_BODY = 8, 1 << 20  # bodies of the largest size at once; smaller bodies than this come besides
_MAX_VALUES, _MAX_LISTS = 5_000_000, 100_000
_BUSY_DETAIL = "too many requests at once; try again in a moment"
Stage = Literal["upload", "work", "answer", "stream", "end"]


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


class RequestStages:
    """Middleware that limits concurrent requests, and ends those that take too long.

    A request counts as work from the end of its body to the begin of its answer. Uploads, long answers and streams of
    events have as many slots each, so that slow clients block no work.

    Parameters
    ----------
    app : ASGIApp
    limits : ServiceLimits
    get_caller : callable
        Returns the name of the caller of a request; "" if unknown.
    """

    def __init__(self, app: ASGIApp, limits: ServiceLimits, get_caller: Callable[[Scope], str]) -> None:
        self.app, self.seconds, self.rate, self.get_caller = app, limits.seconds, limits.min_rate, get_caller
        self.window = min(WINDOW, limits.seconds)
        size = limits.max_concurrent, limits.share
        self.work, self.streams = (SlotPool(*size) for _ in range(2))
        self.uploads, self.answers = (TransferPool(*size, limits.min_rate) for _ in range(2))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].endswith("/health"):
            await self.app(scope, receive, send)
        else:
            await _Request(self, scope, receive, send).run()


class _Request:
    """One request on its way through the stages."""

    def __init__(self, stages: RequestStages, scope: Scope, receive: Receive, send: Send) -> None:
        self.stages, self.scope, self._receive, self._send = stages, scope, receive, send
        self.caller = stages.get_caller(scope)
        self.stage: Stage = "end"
        self.transfer: Transfer | None = None
        self.head: Message | None = None  # of the answer, held back until its length is known
        self.has_started = self.is_refused = False
        self.clock = asyncio.get_running_loop().time
        self.limit: asyncio.Timeout

    async def run(self) -> None:
        """Let the application answer, or refuse the request."""
        try:
            async with asyncio.timeout(self.stages.seconds) as self.limit:
                if self._begin():
                    await self.stages.app(self.scope, self.receive, self.send)
                else:
                    await self._refuse(503, _BUSY_DETAIL)
        except TimeoutError:
            if not self.limit.expired():
                raise
            if not self.has_started:  # otherwise the incomplete answer ends with its connection
                await self._end_late()
        except asyncio.CancelledError:  # the service ends, and this took longer than it waits
            if self.has_started:
                raise
            self._release_slot()
            await Problem(503, "the service is being stopped; ask again", {"retry-after": "5"}).send(self._send)
        except Exception:
            if self.head is not None and not self.has_started:
                await self._refuse(500, "an error in the service; its log says more")
                raise
            if not self.is_refused:  # nobody reads the error of a request that broke off
                raise
        finally:
            self._release_slot()

    async def receive(self) -> Message:
        """Receive from the client, which has to send fast enough."""
        transfer = self.transfer
        if self.stage != "upload" or transfer is None:
            return await self._receive()
        if self.is_refused:
            return {"type": "http.disconnect"}
        now = self.clock()
        transfer.begin_wait(now)
        self._set_limit(now + self.stages.window - transfer.waited)
        message = await self._receive()
        now = self.clock()
        transfer.end_wait(now, len(message.get("body", b"")), self.stages.rate)
        self._set_limit(now + self.stages.seconds)
        if not message.get("more_body", False):
            self._release_slot()
            if not self._enter_work():
                await self._refuse(503, _BUSY_DETAIL)
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        """Send an answer of the application; a long one takes a slot of its stage."""
        if self.is_refused:
            return
        if message["type"] == "http.response.start":
            self.head = message
            return
        if self.head is not None:
            if self.stage != "stream":
                self._release_slot()
                if message.get("more_body", False) and not self._enter_answer():
                    await self._refuse(503, _BUSY_DETAIL)
                    return
            self.has_started = True
            await self._send(self.head)
            self.head = None
        if self.transfer is None:
            await self._send(message)
            return
        self.transfer.begin_wait(self.clock())
        await self._send(message)
        self.transfer.end_wait(self.clock(), len(message.get("body", b"")), self.stages.rate)

    def _begin(self) -> bool:
        """Take the first slot; return True if there was one."""
        if self.scope["method"] == "GET" and self.scope["path"].endswith("/events"):
            if self.stages.streams.acquire(self.caller):
                self.stage = "stream"
                self._set_limit(None)
        elif not _has_body(self.scope):
            self._enter_work()
        elif not self.stages.work.is_full(self.caller):  # otherwise the upload would be in vain
            self.transfer = self.stages.uploads.begin(self.caller, self.limit)
            self.stage = "upload" if self.transfer else "end"
        return self.stage != "end"

    def _enter_work(self) -> bool:
        if self.stages.work.acquire(self.caller):
            self.stage = "work"
        return self.stage == "work"

    def _enter_answer(self) -> bool:
        """Take a slot for a long answer; the connection checks its speed (`connections`)."""
        self._set_limit(None)
        self.transfer = self.stages.answers.begin(self.caller, self.limit)
        self.stage = "answer" if self.transfer else "end"
        return self.transfer is not None

    def _release_slot(self) -> None:
        if self.stage == "work":
            self.stages.work.release(self.caller)
        elif self.stage == "stream":
            self.stages.streams.release(self.caller)
        elif self.transfer is not None:
            (self.stages.uploads if self.stage == "upload" else self.stages.answers).end(self.transfer)
        self.stage, self.transfer = "end", None

    def _set_limit(self, when: float | None) -> None:
        if not self.limit.expired():
            self.limit.reschedule(when)

    async def _refuse(self, status: int, detail: str) -> None:
        self.is_refused = True
        self._release_slot()  # its client may not read this soon
        await Problem(status, detail, {"retry-after": "1"} if status == 503 else {}).send(self._send)

    async def _end_late(self) -> None:
        if self.transfer is not None and self.transfer.since:
            await self._refuse(408, f"less than {self.stages.rate:,.0f} bytes a second came; send it again, faster")
        else:
            await self._refuse(504, f"this took longer than {self.stages.seconds:g} seconds; ask for less at once")


def _has_body(scope: Scope) -> bool:
    """Return True if the application may have to wait for a body; it ignores the body of a GET."""
    if scope["method"] in SAFE:
        return False
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
