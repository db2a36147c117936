"""HTTP/1.1 as strict as proxies need it, on connections of an `open_connections` table."""

import asyncio
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer, blank_line_regex
from uvicorn.protocols.http.h11_impl import H11Protocol

from wsabie.server.auth.client_address import get_caller_address
from wsabie.server.connections.open_connections import ConnectionTable
from wsabie.server.problems import MEDIA_TYPE, build_problem

_MAX_HEAD, _MAX_LINES = 64 << 10, 100
_NO_REQUEST = "this is no request of HTTP/1.1, or its head is larger than 64 kB or 100 lines; send it anew"
_REASONS = {400: b"Bad Request", 503: b"Service Unavailable"}


class StrictHttpProtocol(H11Protocol):
    """Protocol of one connection of the service.

    Attributes
    ----------
    pool : ConnectionTable
        All connections of this process; it closes idle and slow ones.
    caller : str
        Address that counts for shares.
    """

    pool: ConnectionTable

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = StrictConnection()
        self.caller = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection into the pool, or refuse it."""
        super().connection_made(transport)
        self.caller = get_caller_address(self.client)
        if not self.pool.add(self):
            transport.write(self._answer(503, "too many connections at once; try again in a moment"))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Handle what the client sends."""
        super().data_received(data)
        self._note_work()

    def resume_writing(self) -> None:
        """Go on writing, now that the client has read most of its answer."""
        super().resume_writing()
        self.pool.progress(self)

    def on_response_complete(self) -> None:
        """End a request; the next one may have arrived already."""
        self.pool.mark_idle(self)
        super().on_response_complete()
        self._note_work()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, and close the connection."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the unfinished request gets no other answer
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(self._answer(400, _NO_REQUEST))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the pool."""
        super().connection_lost(exc)
        self.pool.remove(self)

    def _note_work(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.pool.mark_busy(self)

    def _answer(self, status: int, detail: str) -> bytes:
        """Return the bytes of an answer that needs no application."""
        document = build_problem(status, detail)
        headers = [
            ("content-type", MEDIA_TYPE),
            ("content-length", str(len(document))),
            ("x-content-type-options", "nosniff"),
            ("connection", "close"),
        ]
        response = h11.Response(status_code=status, headers=headers, reason=_REASONS[status])
        events = (response, h11.Data(data=document), h11.EndOfMessage())
        return b"".join(self.conn.send(event) or b"" for event in events)


class StrictConnection(h11.Connection):
    """Server side of a connection that refuses ambiguous requests."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, _MAX_HEAD)
        self._receive_buffer = _StrictBuffer()

    def next_event(self) -> Any:
        """Return the next event; see `h11.Connection.next_event`."""
        event = super().next_event()
        if isinstance(event, h11.Request) and not _is_plain(event):
            raise h11.RemoteProtocolError("a request that can be understood in two ways")
        return event


class _StrictBuffer(ReceiveBuffer):
    """Receive buffer whose heads and trailers end as HTTP says, for everybody in between too."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        data = self._data
        if not data.startswith(b"\r\n"):  # no lines at all, as after most bodies in chunks
            blank = blank_line_regex.search(data, self._multiple_lines_search)
            if data.startswith(b"\n") or (blank and not _has_plain_lines(data[: blank.end()])):
                raise h11.RemoteProtocolError("a line that ends or begins in a way of its own")
        return super().maybe_extract_lines()


def _has_plain_lines(head: bytearray) -> bool:
    """Return True if the lines of a head are few, end with CR LF, and none continues another."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n", _MAX_LINES)
    return len(head) <= _MAX_HEAD and not any(b"\n" in line or line.startswith((b" ", b"\t")) for line in lines)


def _is_plain(request: h11.Request) -> bool:
    names = [name for name, _ in request.headers]
    chunked = b"transfer-encoding" in names
    target = request.target.startswith(b"/") or (request.target == b"*" and request.method == b"OPTIONS")
    return (
        target
        and request.http_version in ((b"1.1",) if chunked else (b"1.0", b"1.1"))
        and not (chunked and b"content-length" in names)
    )
