"""The stages of a request, each with places and a time of its own: its body comes, it is worked on, its answer goes."""

import asyncio
from collections.abc import Callable
from typing import Literal

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wsabie.faces.serve.limits import SAFE
from wsabie.faces.serve.places import WINDOW, Places, Transfer, Transfers
from wsabie.faces.serve.problems import Problem

_BUSY = "too many requests at once; try again in a moment"

Stage = Literal["upload", "work", "answer", "stream", "end"]


class Stages:
    """Refuses requests beyond so many at a time, and ends those that take too long.

    A request is counted as work from the end of its body to the begin of its answer. Bodies that come, long answers
    that go and streams of events have as many places each, so that slow clients keep no work waiting.

    Parameters
    ----------
    app : ASGIApp
    most : int
        Requests in one stage.
    seconds : float
        For the work.
    share : float
        Of the places, for one caller.
    rate : float
        Bytes a second of a body, at least.
    caller_of : callable
        Names the caller of a request; "": cannot be told from others.
    """

    def __init__(
        self, app: ASGIApp, most: int, seconds: float, share: float, rate: float, caller_of: Callable[[Scope], str]
    ) -> None:
        self.app, self.seconds, self.rate, self.caller_of = app, seconds, rate, caller_of
        self.window = min(WINDOW, seconds)
        self.work, self.streams = Places(most, share), Places(most, share)
        self.uploads, self.answers = Transfers(most, share, rate), Transfers(most, share, rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].endswith("/health"):
            await self.app(scope, receive, send)
        else:
            await _Request(self, scope, receive, send).run()


class _Request:
    """One request on its way through the stages."""

    def __init__(self, stages: Stages, scope: Scope, receive: Receive, send: Send) -> None:
        self.stages, self.scope, self._receive, self._send = stages, scope, receive, send
        self.caller = stages.caller_of(scope)
        self.stage: Stage = "end"
        self.transfer: Transfer | None = None
        self.head: Message | None = None  # of the answer, held back until it is known whether it is a long one
        self.is_begun = self.is_refused = False
        self.clock = asyncio.get_running_loop().time
        self.limit: asyncio.Timeout

    async def run(self) -> None:
        """Let the application answer, or say why not."""
        try:
            async with asyncio.timeout(self.stages.seconds) as self.limit:
                if self._begin():
                    await self.stages.app(self.scope, self.receive, self.send)
                else:
                    await self._refuse(503, _BUSY)
        except TimeoutError:
            if not self.limit.expired():
                raise
            if not self.is_begun:  # else the connection is closed, since the answer is no whole one
                await self._end_late()
        except asyncio.CancelledError:  # the service ends, and this took longer than it waits
            if self.is_begun:
                raise
            self._leave()
            await Problem(503, "the service is being stopped; ask again", {"retry-after": "5"}).send(self._send)
        except Exception:
            if self.head is not None and not self.is_begun:
                await self._refuse(500, "an error in the service; its log says more")
                raise
            if not self.is_refused:  # what the application says of a request that broke off, nobody hears
                raise
        finally:
            self._leave()

    async def receive(self) -> Message:
        """Give the application what the client sends, which has to come fast enough."""
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
            self._leave()
            if not self._enter_work():
                await self._refuse(503, _BUSY)
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        """Send what the application answers; a long answer takes a place among those."""
        if self.is_refused:
            return
        if message["type"] == "http.response.start":
            self.head = message
            return
        if self.head is not None:
            if self.stage != "stream":
                self._leave()
                if message.get("more_body", False) and not self._enter_answer():
                    await self._refuse(503, _BUSY)
                    return
            self.is_begun = True
            await self._send(self.head)
            self.head = None
        if self.transfer is None:
            await self._send(message)
            return
        self.transfer.begin_wait(self.clock())
        await self._send(message)
        self.transfer.end_wait(self.clock(), len(message.get("body", b"")), self.stages.rate)

    def _begin(self) -> bool:
        """Take the first place; whether there was one."""
        if self.scope["method"] == "GET" and self.scope["path"].endswith("/events"):
            if self.stages.streams.take(self.caller):
                self.stage = "stream"
                self._set_limit(None)
        elif not _has_body(self.scope):
            self._enter_work()
        elif not self.stages.work.is_full(self.caller):  # else its body would come for nothing
            self.transfer = self.stages.uploads.begin(self.caller, self.limit)
            self.stage = "upload" if self.transfer else "end"
        return self.stage != "end"

    def _enter_work(self) -> bool:
        if self.stages.work.take(self.caller):
            self.stage = "work"
        return self.stage == "work"

    def _enter_answer(self) -> bool:
        """Take a place for a long answer. How fast it has to go, the connection knows (`connections`)."""
        self._set_limit(None)
        self.transfer = self.stages.answers.begin(self.caller, self.limit)
        self.stage = "answer" if self.transfer else "end"
        return self.transfer is not None

    def _leave(self) -> None:
        if self.stage == "work":
            self.stages.work.leave(self.caller)
        elif self.stage == "stream":
            self.stages.streams.leave(self.caller)
        elif self.transfer is not None:
            (self.stages.uploads if self.stage == "upload" else self.stages.answers).end(self.transfer)
        self.stage, self.transfer = "end", None

    def _set_limit(self, when: float | None) -> None:
        if not self.limit.expired():
            self.limit.reschedule(when)

    async def _refuse(self, status: int, detail: str) -> None:
        self.is_refused = True
        self._leave()  # its client may not read this soon
        await Problem(status, detail, {"retry-after": "1"} if status == 503 else {}).send(self._send)

    async def _end_late(self) -> None:
        if self.transfer is not None and self.transfer.since:
            await self._refuse(408, f"less than {self.stages.rate:,.0f} bytes a second came; send it again, faster")
        else:
            await self._refuse(504, f"this took longer than {self.stages.seconds:g} seconds; ask for less at once")


def _has_body(scope: Scope) -> bool:
    """Return whether the application may have to wait for a body; that of a GET it does not read."""
    if scope["method"] in SAFE:
        return False
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
