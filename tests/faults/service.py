"""A real service in its own process group, and the processes that belong to it, found to be killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx2 as httpx

PATIENCE = 120.0
"""Seconds after which what should have happened has not."""


class Service:
    """`wsabie serve FOLDER --workers N` on a port that it keeps when it is started again."""

    def __init__(self, folder: Path, log: Path, *words: str, workers: int = 2, env: dict[str, str] | None = None):
        self.folder, self.log, self.env = folder, log, env
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.words = [sys.executable, "-m", "wsabie", "serve", str(folder), "--port", str(self.port)]
        self.words += ["--workers", str(workers), *words]
        self.address = f"http://127.0.0.1:{self.port}"
        self.process = self._started()
        try:
            self.wait()
        except AssertionError:
            self.kill_all()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            environment = {**os.environ, **(self.env or {})}
            return subprocess.Popen(self.words, stderr=log, stdout=log, start_new_session=True, env=environment)

    def start_again(self) -> None:
        """After a kill: what of it still runs lets go of the port, or this fails."""
        self.process.wait()
        until = time.monotonic() + 3 * PATIENCE  # it is not alone on the machine
        while True:
            self.process = self._started()
            if self._answers(until):
                return
            assert time.monotonic() < until, self.log.read_text()[-2000:]

    def wait(self) -> None:
        """Wait until the service answers."""
        assert self._answers(time.monotonic() + PATIENCE), self.log.read_text()[-2000:]

    def _answers(self, until: float) -> bool:
        while time.monotonic() < until and self.process.poll() is None:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.address}/api/v1/health", timeout=5).status_code == 200:
                    return True
            time.sleep(0.05)
        return False

    def workers(self) -> list[int]:
        """The processes that answer."""
        return [pid for pid, words in _processes() if "spawn_main" in words and _parent(pid) == self.process.pid]

    def jobs(self) -> list[int]:
        """The processes of jobs, whoever started them."""
        words = f"wsabie.collection.jobs\0{self.folder}\0"
        return [pid for pid, command_line in _processes() if words in command_line]

    def peak_memory(self) -> int:
        """Return the peak memory of the process that was started, in bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)

    def end(self) -> None:
        """Ask it to end, which it must."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) in (0, -signal.SIGTERM)

    def kill_all(self) -> None:
        """Whatever is left of it."""
        for pid in [*self.workers(), *self.jobs(), self.process.pid]:
            kill(pid)
        self.process.wait()


def kill(pid: int) -> bool:
    """SIGKILL; whether there was such a process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _processes() -> list[tuple[int, str]]:
    processes = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            processes.append((int(place.name), (place / "cmdline").read_text(errors="replace")))
    return processes


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
