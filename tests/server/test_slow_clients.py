"""Clients that connect and say nothing, send or read slowly: others are answered, and the service can be stopped."""

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

import httpx2 as httpx
import pytest
from tests.server.conftest import start_service
from tests.server.test_processes import BODY

from wsabie.core.errors import InputError
from wsabie.server import connections as module
from wsabie.server.connections import ConnectionTable, choose_connection_limit
from wsabie.server.limits import slots
from wsabie.server.limits.request_limits import RequestStages, ServiceLimits
from wsabie.server.limits.slots import WINDOW, Transfer, TransferPool

HANDLES = 256
JSON = {"content-type": "application/json"}
SLOW = (
    b"POST /api/v1/annotate/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
)
SLOW += b"Content-Length: 100000\r\n\r\n{"


@contextmanager
def connect(service: httpx.Client, n: int, content: bytes) -> Iterator[list[socket.socket]]:
    """So many connections, on each of which only this is sent."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for connection in sockets:
            connection.settimeout(0)
            connection.connect_ex((service.base_url.host, service.base_url.port))
        for connection in sockets:
            with suppress(OSError):  # it is not accepted yet, or closed again
                connection.send(content)
        yield sockets


def test_slow_clients_block_nobody(served_model: Path) -> None:
    """Neither an answer nor the end of the service, which has few handles of files."""
    with start_service(served_model, "--max-concurrent", "8", "--timeout", "5", handles=HANDLES) as (service, process):
        assert service.post("/api/v1/annotate/rows", content=BODY, headers=JSON).status_code == 200
        for first_bytes in (b"", b"GET / HTTP/1.1\r\nHost: local"):
            with (
                connect(service, HANDLES + 50, first_bytes),
                httpx.Client(base_url=service.base_url, timeout=30) as client,
            ):
                assert client.get("/api/v1/info").status_code == 200
                handles = sum(1 for _ in Path(f"/proc/{process.pid}/fd").iterdir())
                assert handles < HANDLES - 50  # for the database, models and pictures
        with connect(service, 8, SLOW) as slow:
            time.sleep(1.5)  # until it can be seen that they are slow
            with httpx.Client(base_url=service.base_url, timeout=30) as client:
                assert client.get("/api/v1/info").status_code == 200  # takes no place of theirs
                assert client.post("/api/v1/annotate/rows", content=BODY, headers=JSON).status_code == 200
            first = select(slow, [], [], 30)[0][0]  # made room
            assert first.recv(1 << 16).startswith(b"HTTP/1.1 408 ")
            with connect(service, 8, SLOW), connect(service, HANDLES, b""):
                process.send_signal(signal.SIGTERM)
                assert process.wait(25) == -signal.SIGTERM
        assert process.stderr is not None
        assert len(process.stderr.read()) < 2000


ENDLESS = """
import sys, time
from wsabie.server import launcher
from wsabie.server.limits.request_limits import RequestStages

async def hold(*_):
    print("works", flush=True)
    time.sleep(1000)

RequestStages.__call__ = hold
launcher._GRACE_SECONDS = launcher._KILL_DELAY = 1
options = launcher.ServiceOptions(sys.argv[1], port=0)
listener = launcher.open_socket(options)
print(listener.getsockname()[1], flush=True)
launcher.run_service(options, listener, lambda: None)
"""


def test_endless_request_does_not_block_shutdown(served_model: Path) -> None:
    words = [sys.executable, "-c", ENDLESS, str(served_model)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            with socket.create_connection(("127.0.0.1", int(process.stdout.readline())), 30) as to:
                to.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert process.stdout.readline() == "works\n"
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == -signal.SIGALRM
        finally:
            process.kill()


@dataclass(eq=False)
class Fake:
    """A connection of which `waiting` bytes are not read."""

    caller: str = ""
    waiting: int = 0
    is_open: bool = True
    transport: Any = field(init=False)

    def __post_init__(self) -> None:
        self.transport = self

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def get_extra_info(self, _: str) -> "Fake":
        return self

    def fileno(self) -> int:
        raise OSError("a system that does not say how much it holds")

    def abort(self) -> None:
        self.is_open = False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the event loop, to be set."""
    now = [0.0]

    class Loop:
        def time(self) -> float:
            return now[0]

        def call_later(self, *_: object) -> None:
            pass

    monkeypatch.setattr(asyncio, "get_running_loop", Loop)
    return now


def test_client_that_stops_reading_is_disconnected(clock: list[float]) -> None:
    pool = ConnectionTable(10, 1.0, 1000, 1000)
    steps = {0.0: Fake(waiting=50_000), 500.0: Fake(waiting=50_000), 2000.0: Fake(waiting=50_000), 1e6: Fake()}
    for connection in steps.values():
        assert pool.add(connection)
    for _ in range(15):
        pool.sweep()
        clock[0] += 1
        for step, connection in steps.items():
            connection.waiting = max(0, connection.waiting - int(step))
    assert [connection.is_open for connection in steps.values()] == [False, False, True, True]
    assert pool.slots.n_taken == 2


def test_connections_are_shared_and_the_longest_idle_is_closed(clock: list[float]) -> None:
    pool = ConnectionTable(4, 0.5, 10, 1000)
    eve, adam = [Fake("eve") for _ in range(3)], [Fake("adam") for _ in range(2)]
    for connection in (*eve[:2], *adam):
        clock[0] += 1
        assert pool.add(connection)
    pool.mark_busy(eve[0])
    assert pool.add(eve[2])  # in place of her own
    assert [connection.is_open for connection in (*eve, *adam)] == [True, False, True, True, True]
    pool.mark_busy(eve[2])
    assert not pool.add(Fake("eve"))  # both of hers are at work
    assert pool.add(Fake("noah"))
    assert not adam[0].is_open
    clock[0] += 20
    pool.sweep()
    assert set(pool.open) == {eve[0], eve[2]}


def test_client_that_still_reads_is_not_idle(clock: list[float]) -> None:
    pool = ConnectionTable(2, 1.0, 5, 1000)
    reader, idle = Fake(waiting=100_000), Fake()
    assert pool.add(reader)
    clock[0] += 1
    assert pool.add(idle)
    assert pool.add(Fake())  # in place of the other, which was idle for a shorter time
    assert [reader.is_open, idle.is_open] == [True, False]
    for reader.waiting in range(100_000, -1, -5000):
        clock[0] += 1
        pool.sweep()
    clock[0] += 4
    pool.sweep()
    assert reader.is_open
    clock[0] += 2
    pool.sweep()
    assert not reader.is_open


class Limit:
    """Return True if a transfer was ended."""

    is_over = False

    def expired(self) -> bool:
        return self.is_over

    def reschedule(self, _: float) -> None:
        self.is_over = True


def test_slowest_transfer_of_a_caller_is_ended(clock: list[float]) -> None:
    places = TransferPool(4, 0.5, 1000)
    limits = [Limit() for _ in range(5)]

    def begin(caller: str, number: int) -> Transfer | None:
        return places.begin(caller, limits[number])  # type: ignore[arg-type]

    first, second, third = begin("eve", 0), begin("eve", 1), begin("adam", 2)
    assert first is not None
    assert second is not None
    assert third is not None
    for transfer, size in ((first, 900), (second, 3000), (third, 0)):
        transfer.begin_wait(0)
        transfer.end_wait(2, size, 1000)
    assert begin("eve", 3)  # adam's is slower, and not hers
    assert [limit.is_over for limit in limits] == [True, False, False, False, False]
    second.begin_wait(2)
    second.end_wait(2 + WINDOW, 20_000, 1000)
    assert begin("eve", 4) is None  # fast enough, both


@pytest.mark.parametrize("lasting", ["end", "answer"])
def test_expired_transfer_frees_no_slot_and_takes_none(monkeypatch: pytest.MonkeyPatch, lasting: str) -> None:
    """Neither while it ends, nor while its client does not read the answer."""
    monkeypatch.setattr(slots, "_MIN_WAIT", 0.0)
    statuses: list[int] = []

    async def app(_: Any, receive: Any, send: Any) -> None:
        try:
            await receive()
        except asyncio.CancelledError:
            if lasting == "end":
                await asyncio.sleep(0.1)
            raise
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
            await asyncio.sleep(0.1 if message["status"] == 408 else 0)

    async def body() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def ask() -> None:
        limits = ServiceLimits(max_concurrent=1, seconds=0.1, share=1.0, min_rate=1000)
        stages = RequestStages(app, limits, lambda _: "")
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-length", b"2")]}
        slow = asyncio.create_task(stages(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]
        await asyncio.sleep(0.15)
        await stages(scope, body, send)
        await slow

    asyncio.run(ask())
    assert statuses == ([503, 408] if lasting == "end" else [408, 200])


def test_too_few_file_handles_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_count_open_files", lambda: 64)  # and not what earlier tests have left open
    for handles in (1024, 20_000):
        monkeypatch.setattr(module.resource, "getrlimit", lambda _, n=handles: (n, n))
        assert 500 < choose_connection_limit(64) <= 1000
        assert choose_connection_limit(64, 100) == 100
    monkeypatch.setattr(module.resource, "getrlimit", lambda _: (64, 64))
    with pytest.raises(InputError, match="run first: ulimit -n"):
        choose_connection_limit(64)
