"""Callers that are idle or slow: others are answered, the log stays small, and the service ends when it is told to."""

import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx2 as httpx
from tests.faults import states
from tests.faults.attacks.attack import MEMORY_BAR, Case, Fault, Outcome
from tests.faults.lab import Lab
from tests.faults.service import Service

NAME = "slow-callers"
EXCLUSIVE = True
HANDLES = 1024
ANSWERED, ENDED = 25.0, 90.0
"""Seconds within which others are answered, and the service has ended; much more than it should take."""
MOST_LOG = 1 << 20


class NarrowService(Service):
    """A service that may open 1,024 files."""

    def _started(self) -> subprocess.Popen[bytes]:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (HANDLES, limits[1]))
        try:
            return super()._started()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Callers:
    """Connections to a service, each of which is sent a beginning, and then a byte a second."""

    def __init__(self, port: int, n: int, beginning: bytes, more: bytes = b"") -> None:
        self.sockets, self.more, self.stop = list[socket.socket](), more, threading.Event()
        for _ in range(n):
            with suppress(OSError):
                connection = socket.create_connection(("127.0.0.1", port), timeout=5)
                connection.sendall(beginning)
                self.sockets.append(connection)
        self.thread = threading.Thread(target=self._go_on, daemon=True)
        self.thread.start()

    def _go_on(self) -> None:
        while not self.stop.wait(1):
            for connection in self.sockets if self.more else ():
                with suppress(OSError):
                    connection.send(self.more)

    def close(self) -> None:
        """Hang up."""
        self.stop.set()
        self.thread.join()
        for connection in self.sockets:
            connection.close()


_HEAD = b"Host: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 3000000\r\n\r\n"
_FORM = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
KINDS: dict[str, tuple[int, bytes, bytes]] = {
    "idle": (1100, b"", b""),
    "idle after a request": (1100, b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),
    "slow uploads": (64, b"POST /api/v1/search/picture HTTP/1.1\r\n" + _HEAD + _FORM, b"\xff"),
    "slow annotations": (64, b"POST /api/v1/annotate/picture HTTP/1.1\r\n" + _HEAD + _FORM, b"\xff"),
    "slow heads": (200, b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"x"),
    "deaf readers": (64, b"GET /api/v1/items?k=100 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40, b""),
}


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return each kind of caller; with `short` the idle ones."""
    del seed  # there is nothing to draw
    kinds = ["idle"] if short else list(KINDS)
    return [Case(kind, _try_of(kind, 1.0 if short else 15.0)) for kind in kinds]


def _try_of(kind: str, seconds: float) -> Callable[[Lab], Outcome]:
    return lambda lab: call_slowly(lab, kind, seconds)


def call_slowly(lab: Lab, kind: str, seconds: float) -> Outcome:
    """Let callers be idle or slow, ask beside them, and tell the service to end."""
    faults = []
    n, beginning, more = KINDS[kind]
    with lab.copy(states.collection) as folder, _many_handles():
        service = NarrowService(folder / "photos", folder / "log", workers=1)
        try:
            callers = Callers(service.port, n, beginning, more)
            try:
                until = time.monotonic() + seconds
                while not faults:
                    faults += _ask(service, kind)
                    if time.monotonic() > until:
                        break
                    time.sleep(1)
                memory = service.peak_memory()
                faults += _end(service, kind)
            finally:
                callers.close()
        finally:
            service.kill_all()
        size, text = (folder / "log").stat().st_size, (folder / "log").read_text(errors="replace")[:100_000]
        if size > MOST_LOG:
            faults.append(Fault("unusable", f"{kind}: a log of {size / 1e6:.0f} MB in {seconds:.0f} s"))
        if "Traceback" in text:
            faults.append(Fault("traceback", f"{kind}: {text.strip().splitlines()[-1][:200]}"))
        if memory > MEMORY_BAR:
            faults.append(Fault("memory", f"{kind}: the service took {memory / 1e9:.1f} GB"))
        return Outcome(tuple(faults), memory)


def _ask(service: Service, kind: str) -> list[Fault]:
    """Check the answer to another caller, who comes back after a 503 as its Retry-After says."""
    until = time.monotonic() + ANSWERED
    for place in ("health", "items?k=5"):
        answer = None
        while answer is None or (answer.status_code == 503 and time.monotonic() < until):
            try:
                answer = httpx.get(f"{service.address}/api/v1/{place}", timeout=ANSWERED)
            except httpx.TransportError as error:
                name = type(error).__name__
                return [Fault("unusable", f"{kind}: GET {place} was not answered in {ANSWERED:.0f} s ({name})")]
            time.sleep(float(answer.headers.get("retry-after", 0)))
        if answer.status_code != 200:
            return [Fault("unusable", f"{kind}: GET {place} was answered with {answer.status_code}")]
    return []


def _end(service: Service, kind: str) -> list[Fault]:
    service.process.send_signal(signal.SIGTERM)
    try:
        service.process.wait(ENDED)
    except subprocess.TimeoutExpired:
        return [Fault("unusable", f"{kind}: the service did not end in {ENDED:.0f} s after SIGTERM")]
    return []


@contextmanager
def _many_handles() -> Iterator[None]:
    """Allow this process as many open files as it may have."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
