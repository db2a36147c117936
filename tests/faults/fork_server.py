"""Runs commands of `wsabie` in forked children, which share one import of the program.

`python -m tests.faults.fork_server` reads requests, a line of JSON each, and answers each with a line of JSON. A child
counts what it writes (opening for writing, renaming, removing, flushing, committing), and kills itself before event
number `kill_at` where that is asked for: the same moment every time.
"""

import ctypes
import gc
import importlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PRELOAD = (
    "wsabie",
    "wsabie.cli.main",
    "wsabie.workflows.model_training",
    "wsabie.workflows.batch_inference",
    "wsabie.collection.scan.scanner",
    "wsabie.collection.learning.training",
    "wsabie.collection.interchange.tag_export",
    "wsabie.collection.interchange.tag_import",
    "wsabie.models.base.trained_model",
    "wsabie.features.images.image_decoder",
    "pyarrow.parquet",
    "pyarrow.json",
    "sqlalchemy.dialects.sqlite",
    "alembic.command",
)
_OUTPUT = 1 << 24  # bytes of output that are looked at
_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")


@dataclass
class Request:
    """Task of a child process.

    Attributes
    ----------
    words : list of str
        Arguments of `wsabie`, or of the function `call`.
    folder : str
        Its working directory, where its output is written too.
    call : str
        `module:function` to call with `words` in place of a command of `wsabie`.
    kill_at : int
        Number of the event before which it is killed; 0: it lives.
    tear : bool
        Cut a draft that is being flushed in half when it is killed, as if it had been written less far.
    memory : int
        Limit on its address space, in bytes.
    seconds : float
        Limit on its time.
    uid : int
        User who runs it, and who may read everything: the interpreter may lie in a home folder. 0: the same user.
    env : dict
        Variables that it has beside those of the server; None: it lacks this one.
    """

    words: list[str]
    folder: str
    call: str = ""
    kill_at: int = 0
    tear: bool = False
    memory: int = 6 << 30
    seconds: float = 300.0
    uid: int = 0
    env: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """Result of a child: exit code (negative: the signal), output, peak memory in bytes, number of events."""

    code: int
    out: str
    err: str
    memory: int
    seconds: float
    events: int
    timed_out: bool

    @property
    def traceback(self) -> bool:
        """It ended by a fault of the program: a traceback, or a signal that nobody sent."""
        return "Traceback (most recent call last)" in self.err or (self.code < 0 and self.code != -signal.SIGKILL)


class ForkServer:
    """A process that forks children for requests, one after the other."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.faults.fork_server"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, request: Request) -> Result:
        """Run one child to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(request)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the fork server has ended"
        return Result(**json.loads(line))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class _EventCounter:
    """Counts events, and kills this process before a chosen one."""

    def __init__(self, request: Request) -> None:
        self.request, self.count, self.lock = request, 0, threading.RLock()
        fsync, pid = os.fsync, os.getpid()

        def flush(handle: int) -> None:
            if os.getpid() == pid:
                self.add(_name_of(handle))
            fsync(handle)

        os.fsync = flush
        sys.addaudithook(lambda event, arguments: self.see(event, arguments) if os.getpid() == pid else None)
        from sqlalchemy import Engine, event

        event.listen(Engine, "commit", lambda _: self.add())
        event.listen(Engine, "before_cursor_execute", lambda *arguments: self.add() if _changes(arguments[2]) else None)

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EVENTS or (event == "open" and _writes(arguments)):
            self.add()

    def add(self, flushed: Path | None = None) -> None:
        with self.lock:
            self.count += 1
            if self.count != self.request.kill_at:
                return
            if self.request.tear and flushed is not None and _is_draft(flushed):
                handle = os.open(flushed, os.O_WRONLY)
                os.ftruncate(handle, os.fstat(handle).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)


def _writes(arguments: tuple[Any, ...]) -> bool:
    path, flags = arguments[0], arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR)) and "/dev/" not in str(path)


def _changes(statement: str) -> bool:
    return statement.lstrip()[:6].upper() in ("INSERT", "UPDATE", "DELETE", "CREATE")


def _name_of(handle: int) -> Path | None:
    try:
        return Path(f"/proc/self/fd/{handle}").readlink()
    except OSError:
        return None


def _is_draft(path: Path) -> bool:
    """Return True if a file lies in a draft; a hard link to an older picture does not count."""
    return path.is_file() and path.stat().st_nlink == 1 and any(_DRAFT.fullmatch(part) for part in path.parts)


def _begin(request: Request, outputs: list[int]) -> _EventCounter:
    """Become the child that the request describes."""
    sys.dont_write_bytecode = True  # or the first of all children would count more events than the next
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, handle in enumerate(outputs[:2], 1):
        os.dup2(handle, number)
    os.chdir(request.folder)
    for name, value in request.env.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    resource.setrlimit(resource.RLIMIT_AS, (request.memory, request.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if request.uid:
        _become(request.uid)
    return _EventCounter(request)


def _become(uid: int) -> None:
    """Become another user, who keeps the one right to read what others may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    header, reading = (ctypes.c_uint32 * 2)(0x20080522, 0), 1 << 2  # CAP_DAC_READ_SEARCH
    if libc.capset(header, (ctypes.c_uint32 * 6)(reading, reading, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")


def _work(request: Request) -> int:
    """Run the command or the function; the exit code."""
    sys.argv = ["wsabie", *request.words]
    try:
        if request.call:
            module, _, name = request.call.partition(":")
            getattr(importlib.import_module(module), name)(*request.words)
            return 0
        from wsabie.cli.main import run

        run()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _wait(pid: int, request: Request, outputs: list[int]) -> dict[str, Any]:
    """Return the result of a child; one whose time is up is killed with all that it began."""
    start, watch = time.monotonic(), os.pidfd_open(pid)
    timed_out = not select.select([watch], [], [], request.seconds)[0]
    os.close(watch)
    if timed_out:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    out, err, events = (os.pread(handle, _OUTPUT, 0).decode(errors="replace") for handle in outputs)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": out,
        "err": err,
        "memory": usage.ru_maxrss * 1024,
        "seconds": time.monotonic() - start,
        "events": int(events or 0),
        "timed_out": timed_out,
    }


def _serve() -> tuple[Request, list[int]] | None:
    """Fork for each request until there are no more; a child returns its own, with where its output goes."""
    for line in sys.stdin:
        request = Request(**json.loads(line))
        outputs = [os.memfd_create(name) for name in ("out", "err", "events")]
        pid = os.fork()
        if pid == 0:
            return request, outputs
        sys.stdout.write(json.dumps(_wait(pid, request, outputs)) + "\n")
        sys.stdout.flush()
        for handle in outputs:
            os.close(handle)
    return None


def main() -> None:
    """Import the program once, then serve requests."""
    importlib.import_module("wsabie.core.gc_tuning").reduce_collections()  # as `wsabie` does
    for name in PRELOAD:
        importlib.import_module(name)
    gc.freeze()
    child = _serve()
    if child is not None:
        request, outputs = child
        counter = _begin(request, outputs)
        code = _work(request)
        count = counter.count
        sys.stdout.flush()
        os.write(outputs[2], str(count).encode())
        sys.exit(code)


if __name__ == "__main__":
    main()
