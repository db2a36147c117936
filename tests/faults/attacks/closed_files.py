"""Files and folders that a user may not read or write, for every command.

`find_failures(folder)` tries all of them, each in a child of this process that is no longer root.
"""

import os
import shutil
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults.attacks.bad_names import LINES, Attempt, Failure, Workbench, call, is_right

USER = 12345
"""Nobody's number, which has no rights of its own."""
KINDS = ("closed", "closed inside", "read-only", "closed place", "read-only place", "no current folder")
"""Inputs, what is in their folders, the place of results, and the current folder."""


def find_failures(folder: Path, commands: Sequence[str] = tuple(LINES)) -> tuple[int, list[Failure]]:
    """Carry out every command with every kind of closed file.

    Returns
    -------
    int, list of Failure
        Attempts that were made, and those that were not answered by a result or one sentence.
    """
    bench, failures, number = Workbench(folder), [], 0
    folder.chmod(0o755)
    try:
        for command in commands:
            for kind in KINDS:
                number += 1
                code, text = _carry_out(bench, command, kind, folder / f"closed{number}")
                if not is_right(code, text):
                    failures.append(Failure(Attempt(command, "", kind, LINES[command].split(), 0), code, text))
    finally:
        bench.close()
    return number, failures


def _carry_out(bench: Workbench, command: str, kind: str, place: Path) -> tuple[int, str]:
    """The answer to a command with copies of all that it reads."""
    places, inputs = {**bench.places, "new": str(place / "new"), "folder": str(place / "folder")}, []
    for name in ("new", "folder", "here"):
        (place / name).mkdir(parents=True)
    for name, good in {**bench.places, "copy": bench.places["model"]}.items():
        if f"{{{name}}}" in LINES[command] and name != "port":
            inputs.append(place / f"{name}{Path(good).suffix}")
            places[name] = str(inputs[-1])
            if Path(good).exists():
                (shutil.copytree if Path(good).is_dir() else shutil.copy)(good, inputs[-1])
    for path in (place, *place.rglob("*")):
        os.chown(path, USER, USER, follow_symlinks=False)
    for path, mode in _modes(kind, place, [path for path in inputs if path.exists()]):
        path.chmod(mode)
    words = [*command.split(), *(word.format_map(places) for word in LINES[command].split())]
    answer = _call_as_nobody(words, place / "here", place.with_suffix(".log"), kind == "no current folder")
    shutil.rmtree(place)
    return answer


def _modes(kind: str, place: Path, inputs: Sequence[Path]) -> Iterator[tuple[Path, int]]:
    if kind == "closed":
        yield from ((path, 0) for path in inputs)
    inner = [path for root in inputs if root.is_dir() for path in root.rglob("*")]
    if kind == "closed inside":
        yield from ((path, 0) for path in inner if path.is_file())
    if kind == "read-only":
        yield from ((path, 0o555 if path.is_dir() else 0o444) for path in (*inner, *inputs))
    if kind.endswith("place"):
        yield from ((place / name, 0 if kind == "closed place" else 0o555) for name in ("new", "folder"))


def _call_as_nobody(words: Sequence[str], work_folder: Path, log: Path, without_folder: bool) -> tuple[int, str]:
    log.touch()
    os.chown(log, USER, USER)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.chdir(work_folder)
            os.environ.update(HOME=str(work_folder), USER="nobody")
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            if without_folder:
                work_folder.rmdir()
            code, _ = call(words, log)
        except BaseException:
            log.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, log.read_text(encoding="utf-8", errors="replace")
