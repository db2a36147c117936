"""Stages of a request, each with its own slots and time limit: upload, work and answer."""

import asyncio
from collections.abc import Callable
from typing import Literal

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wsabie.server.limits.request_limits import SAFE, ServiceLimits
from wsabie.server.limits.slots import SlotPool
from wsabie.server.limits.transfers import WINDOW, Transfer, TransferPool
from wsabie.server.problems import Problem

_BUSY_DETAIL = "too many requests at once; try again in a moment"

Stage = Literal["upload", "work", "answer", "stream", "end"]


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
        self.work, self.streams = (SlotPool(limits.max_concurrent, limits.share) for _ in range(2))
        self.uploads, self.answers = (
            TransferPool(limits.max_concurrent, limits.share, limits.min_rate) for _ in range(2)
        )

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
