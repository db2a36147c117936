"""A laboratory for attacks: states that are made once and copied for each try, and servers that fork children."""

import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.faults.attacks.attack import MEMORY_BAR, Fault, SkippedError
from tests.faults.fork_server import ForkServer, Request, Result

USAGE = 2
"""Exit code of a command line that is wrong."""
_DRAFT = re.compile(r"\..+\.tmp")
_OUT_OF_MEMORY = re.compile("not enough memory|annot allocate|ailed to allocate|bad_alloc|llocation failed|bfc_arena")
_HEX = re.compile(r"[0-9a-f]{16,}")


class Lab:
    """Keeps prepared states and figures of reference runs in a folder; threads share it, and its servers.

    Parameters
    ----------
    place : path
        An empty folder, on a file system with a few hundred megabytes.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self._lock, self._free = threading.RLock(), list[ForkServer]()
        self._values: dict[str, Any] = {}
        self._numbers = count()

    def run(self, folder: Path, *words: str, **settings: Any) -> Result:
        """Run a command of `wsabie` in a folder; `settings` are fields of `Request`."""
        server = self._free.pop() if self._free else ForkServer()
        try:
            return server.run(Request(list(words), str(folder), **settings))
        finally:
            self._free.append(server)

    def call(self, folder: Path, function: Callable[..., None], *words: str, **settings: Any) -> Result:
        """Run a function of a module in a child, in a folder."""
        return self.run(folder, *words, call=f"{function.__module__}:{function.__name__}", **settings)

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a value that is made once for all cases."""
        with self._lock:
            if name not in self._values:
                self._values[name] = make()
            return self._values[name]

    def base(self, build: Callable[["Lab", Path], None]) -> Path:
        """Return a prepared folder; it is only read."""
        name = build.__name__
        folder = self.place / f"base-{name}"

        def make() -> Path:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(self, folder)
            return folder

        return Path(self.keep(f"base {name}", make))

    @contextmanager
    def copy(self, build: Callable[["Lab", Path], None] | None = None) -> Iterator[Path]:
        """Yield a folder of its own, a copy of a prepared one."""
        folder = self.place / f"try-{next(self._numbers)}"
        if build is None:
            folder.mkdir()
        else:
            shutil.copytree(self.base(build), folder, symlinks=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End the servers."""
        for server in self._free:
            server.close()


@contextmanager
def open_lab() -> Iterator[Lab]:
    """Yield a laboratory in a folder of its own, into which other users look, unlike folders of tests."""
    with tempfile.TemporaryDirectory(prefix="wsabie-faults-") as place:
        Path(place).chmod(0o755)
        laboratory = Lab(Path(place))
        try:
            yield laboratory
        finally:
            laboratory.close()


def require_success(result: Result) -> Result:
    """Return the result of a command that a prepared state is made with, which must not fail."""
    if result.code == USAGE and "No such command" in result.err:
        raise SkippedError(f"a command is not there: {result.err.strip().splitlines()[-1]}")
    assert result.code == 0, result.err[-3000:]
    return result


def faults_of(result: Result, name: str, *, memory: int = MEMORY_BAR) -> list[Fault]:
    """Return tracebacks, signals, too much time and too much memory of one child."""
    faults = []
    if result.timed_out:
        faults.append(Fault("unusable", f"{name} did not end in {result.seconds:.0f} s"))
    elif result.traceback:
        lines = result.err.strip().splitlines()[-1:] if result.code >= 0 else [f"signal {-result.code}"]
        faults.append(Fault("traceback", f"{name}: {' '.join(lines)[:300]}"))
    elif _OUT_OF_MEMORY.search(result.err):
        faults.append(Fault("memory", f"{name} asked for more memory than a child gets: {result.err.strip()[-200:]}"))
    if result.memory > memory:
        faults.append(Fault("memory", f"{name} took {result.memory / 1e9:.1f} GB"))
    return faults


def refusal_of(result: Result) -> str:
    """The sentence of a command that refused, or an empty text."""
    lines = [line for line in result.err.splitlines() if line.startswith("wsabie: ")]
    return lines[-1] if lines and result.code else ""


def hash_files(folder: Path, *, without: tuple[str, ...] = (".wsabie",)) -> dict[str, str]:
    """Hashes of all files by their path, but for those in or at the paths `without`, and drafts."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not set(without) & {*name.parts, str(name)} and not is_draft(name):
            hashes[str(name)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def is_draft(name: Path) -> bool:
    """Return True if a path is a draft or lies in one."""
    return any(_DRAFT.fullmatch(part) for part in name.parts)


def list_drafts(folder: Path) -> list[str]:
    """Paths of drafts."""
    names = [Path(root, name) for root, folders, files in os.walk(folder) for name in (*folders, *files)]
    return [str(path.relative_to(folder)) for path in names if _DRAFT.fullmatch(path.name)]


def count_names(folder: Path) -> Counter[str]:
    """Paths of files with checksums as `#`, outside of catalogues: what a command leaves, by name."""
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return Counter(_HEX.sub("#", str(name)) for name in names if ".wsabie" not in name.parts)
