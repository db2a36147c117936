"""HTTP/1.1 as strictly as proxies take it, on connections that cannot keep the service waiting (`connections`)."""

import asyncio
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

from wsabie.faces.serve.callers import address_of
from wsabie.faces.serve.connections import Connections
from wsabie.faces.serve.problems import MEDIA_TYPE, body

_HEAD, _LINES = 64 << 10, 100
_NO_REQUEST = "this is no request of HTTP/1.1, or its head is larger than 64 kB or 100 lines; send it anew"
_REASONS = {400: b"Bad Request", 503: b"Service Unavailable"}


class Hurried(H11Protocol):
    """A connection of the service: one of `pool`, which knows how long it may be idle."""

    pool: Connections

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _Strict(h11.SERVER, _HEAD)
        self.caller = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there."""
        super().connection_made(transport)
        self.caller = address_of(self.client)
        if not self.pool.add(self):
            transport.write(self._answer(503, "too many connections at once; try again in a moment"))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """It sends something."""
        super().data_received(data)
        self._note_work()

    def resume_writing(self) -> None:
        """It has read most of what waited for it."""
        super().resume_writing()
        self.pool.progress(self)

    def on_response_complete(self) -> None:
        """It has its answer, and the next request may be there already."""
        self.pool.rest(self)
        super().on_response_complete()
        self._note_work()

    def send_400_response(self, msg: str) -> None:
        """What was sent is no request."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # nothing else is answered to what was begun
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(self._answer(400, _NO_REQUEST))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self.pool.remove(self)

    def _note_work(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.pool.wake(self)

    def _answer(self, status: int, detail: str) -> bytes:
        """The whole answer to something that no application is asked about."""
        document = body(status, detail)
        headers = [
            ("content-type", MEDIA_TYPE),
            ("content-length", str(len(document))),
            ("x-content-type-options", "nosniff"),
            ("connection", "close"),
        ]
        response = h11.Response(status_code=status, headers=headers, reason=_REASONS[status])
        events = (response, h11.Data(data=document), h11.EndOfMessage())
        return b"".join(self.conn.send(event) or b"" for event in events)


class _Lines(ReceiveBuffer):
    """Lines of heads that end as HTTP says, so that nobody in between sees another end of a request."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        data = self._data
        if data[:1] == b"\n" or b"\n\n" in data or (b"\n\r\n" in data and not _has_plain_lines(data)):
            raise h11.RemoteProtocolError("a line that ends or begins in a way of its own")
        return super().maybe_extract_lines()


def _has_plain_lines(data: bytearray) -> bool:
    """Return whether the lines of a head are few, each ends with CR LF, and none goes on with the one before."""
    head = data.partition(b"\r\n\r\n")[0]
    lines = head.split(b"\r\n", _LINES)
    return len(head) <= _HEAD and not any(b"\n" in line or line.startswith((b" ", b"\t")) for line in lines)


class _Strict(h11.Connection):
    """Refuses what two programs could understand in two ways, so that no request hides in another."""

    def __init__(self, role: type[h11.SERVER], most: int) -> None:
        super().__init__(role, most)
        self._receive_buffer = _Lines()

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request) and not _is_plain(event):
            raise h11.RemoteProtocolError("a request that can be understood in two ways")
        return event


def _is_plain(request: h11.Request) -> bool:
    names = [name for name, _ in request.headers]
    chunked = b"transfer-encoding" in names
    target = request.target.startswith(b"/") or (request.target == b"*" and request.method == b"OPTIONS")
    return (
        target
        and request.http_version in ((b"1.1",) if chunked else (b"1.0", b"1.1"))
        and not (chunked and b"content-length" in names)
    )
