"""Connections that keep the service waiting are closed, and what is no HTTP is told in the form of other errors.

uvicorn waits for ever for the rest of a request's head, and goes on reading a body that was refused long ago; the time
of a request (`limits.Together`) begins when its head is there and ends with its answer.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from wsabie.faces.serve.problems import MEDIA_TYPE, body


class Hurried(H11Protocol):
    """HTTP/1.1 by h11, with a time for heads of requests and for the rest of bodies that were refused."""

    seconds = 60.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """It sends something."""
        super().data_received(data)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """What was sent is no request."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            told = body(400, "this is no request of HTTP/1.1, or its head is larger than 64 kB; send it anew")
            headers = [
                ("content-type", MEDIA_TYPE),
                ("content-length", str(len(told))),
                ("x-content-type-options", "nosniff"),
                ("connection", "close"),
            ]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=told),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self._forget()

    def _watch(self) -> None:
        theirs, ours = self.conn.their_state, self.conn.our_state
        if theirs is h11.IDLE or (theirs is h11.SEND_BODY and ours is h11.DONE):
            self._late = self._late or self.loop.call_later(self.seconds, self.transport.abort)
        else:
            self._forget()

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
