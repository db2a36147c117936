"""A catalogue that is empty, gone, cut, older, foreign or read-only: refused with the way back, or right."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.faults import states
from tests.faults.attacks.attack import Case, Fault, Outcome, SkippedError
from tests.faults.fork_server import Result
from tests.faults.lab import Lab, faults_of, refusal_of, require_success

NAME = "collection"
STRANGER = 12345
"""A user to whom nothing belongs."""
READERS = (
    "collection status photos",
    "collection annotations photos --json",
    "collection labels photos --json",
    "collection history photos --json",
    "collection search photos mine --json",
    "collection models photos --json",
    "collection export photos out.csv",
)
WRITERS = (
    "collection tag photos 4 --accept new --by eve",
    "collection scan photos --by eve",
    "collection import photos tags.csv --by eve",
    "collection labels photos rename mine his --by eve",
    "collection undo photos --by eve",
    "collection init photos --by eve",
)
LENGTHS = 12
"""Lengths to which the catalogue is cut in the full version."""


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return each kind of damage, each with all commands; with `short` two commands of some kinds."""
    chance = random.Random(seed)  # noqa: S311
    n = 1 if short else LENGTHS
    cuts = [("cut", 0.0)] + [("cut", (number + chance.random()) / n) for number in range(n)]
    kinds = [("gone", 0.0), ("older", 0.0), ("newer", 0.0), ("foreign", 0.0), ("other", 0.0), ("text", 0.0)]
    kinds += [("without -wal", 0.0), ("read-only file", 0.0), ("read-only folder", 0.0)]
    every = 7 if short else 1
    return [Case("init without login name", init_without_login)] + [
        Case(f"{kind} {at:.3f}", _try_of(kind, at, every))
        for kind, at in ([*cuts, *kinds][::2] if short else [*cuts, *kinds])
    ]


def two_moments(lab: Lab, folder: Path) -> None:
    """A collection, copies of its catalogue of an earlier and a later moment, and another collection."""
    states.collection(lab, folder)
    database = folder / "photos" / ".wsabie" / "catalogue.db"
    tag = ("collection", "tag", "photos", "7", "--by", "eve", "--accept")
    shutil.copy(database, folder / "older.db")
    require_success(lab.run(folder, *tag, "later"))
    place = folder / "photos" / ".wsabie"
    shutil.copytree(place, folder / "place")
    require_success(lab.run(folder, *tag, "latest"))
    shutil.copy(database, folder / "newer.db")
    shutil.rmtree(place)
    (folder / "place").rename(place)
    (folder / "others").mkdir()
    shutil.copy(folder / "photos" / "00.webp", folder / "others")
    require_success(lab.run(folder, "collection", "init", "others", "--by", "eve"))


def _try_of(kind: str, at: float, every: int) -> Callable[[Lab], Outcome]:
    return lambda lab: damage_once(lab, kind, at, every)


def init_without_login(lab: Lab) -> Outcome:
    """Let a user whom the system does not know make a collection of a folder of theirs."""
    if os.getuid():
        raise SkippedError("to be another user wants root")
    nobody = dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME"))
    settings: dict[str, Any] = {"uid": STRANGER, "env": {**nobody, "HOME": "/nonexistent", "LC_ALL": "C"}}
    with lab.copy(states.pictures) as folder:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, STRANGER, STRANGER)
        first = lab.run(folder, "collection", "init", "photos", **settings)
        second = lab.run(folder, "collection", "init", "photos", "--by", "eve", **settings)
        status = lab.run(folder, "collection", "status", "photos", **settings)
        faults = faults_of(first, "init") + faults_of(second, "init --by eve") + faults_of(status, "status")
        if not faults and (status.code or (second.code and first.code)):
            faults = [Fault("unusable", f"the collection cannot be made: {second.err.strip()[-200:]}")]
        return Outcome(tuple(faults), max(first.memory, second.memory, status.memory))


def _texts(lab: Lab) -> dict[str, str]:
    """Return the texts that readers print of the whole catalogue."""

    def read_texts() -> dict[str, str]:
        with lab.copy(two_moments) as folder:
            return {line: _text_of(require_success(lab.run(folder, *line.split())), folder) for line in READERS}

    texts: dict[str, str] = lab.keep("texts of the catalogue", read_texts)
    return texts


def _text_of(result: Result, folder: Path) -> str:
    text = result.out + ((folder / "out.csv").read_text() if (folder / "out.csv").exists() else "")
    (folder / "out.csv").unlink(missing_ok=True)
    return " ".join(text.replace(str(folder), "").split())  # columns of a table are as wide as the folder's name


def damage_once(lab: Lab, kind: str, at: float, every: int) -> Outcome:
    """Damage a catalogue, then let all commands read and write it."""
    texts, faults, memory = _texts(lab), [], 0
    lines = [*READERS[::every], *WRITERS[::every]]
    if kind.startswith("read-only") and os.getuid():
        raise SkippedError("to be another user wants root")
    for line in lines:
        with lab.copy(two_moments) as folder:
            database = folder / "photos" / ".wsabie" / "catalogue.db"
            _damage(lab, folder, database, kind, at)
            content_before = database.read_bytes() if database.exists() else None
            uid = STRANGER if kind.startswith("read-only") else 0
            environment = {"HOME": "/nonexistent", "LOGNAME": "eve"} if uid else {}
            result = lab.run(folder, *line.split(), uid=uid, env=environment)
            memory = max(memory, result.memory)
            more = faults_of(result, line) or _judge(kind, line, result, texts.get(line), folder)
            content_after = database.read_bytes() if database.exists() else None
            if not more and result.code and content_after != content_before:
                more = [Fault("lost", f"{line} was refused, and changed the catalogue")]
            faults += [Fault(fault.kind, f"{kind} {at:.3f}: {fault.message}") for fault in more]
    return Outcome(tuple(faults), memory, len(lines))


def _damage(lab: Lab, folder: Path, database: Path, kind: str, at: float) -> None:
    place = folder / "photos"
    if kind == "cut":
        os.truncate(database, int(at * database.stat().st_size))
    elif kind == "gone":
        database.unlink()
    elif kind in ("older", "newer"):
        shutil.copy(folder / f"{kind}.db", database)
    elif kind == "foreign":
        database.unlink()
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("CREATE TABLE songs (id INTEGER PRIMARY KEY, name TEXT)")
    elif kind == "other":
        shutil.copy(folder / "others" / ".wsabie" / "catalogue.db", database)
    elif kind == "text":
        database.write_text("<html>404</html>" * 100)
    elif kind == "without -wal":
        words = ("collection", "tag", "photos", "9", "--accept", "unfinished", "--by", "eve")
        events = lab.keep("events of tag", lambda: _count_events(lab, words))
        lab.run(folder, *words, kill_at=max(1, events))
        for path in database.parent.glob("catalogue.db-*"):
            path.unlink()
    else:
        os.chmod(folder, 0o777)  # noqa: PTH101, S103 - results go here
        for path in [place, *place.rglob("*")] if kind == "read-only folder" else [database]:
            path.chmod(0o555 if path.is_dir() else 0o444)


def _count_events(lab: Lab, words: tuple[str, ...]) -> int:
    with lab.copy(two_moments) as folder:
        return require_success(lab.run(folder, *words)).events


def _judge(kind: str, line: str, result: Result, text: str | None, folder: Path) -> list[Fault]:
    """Return the faults of an answer to this kind of damage."""
    if result.code:
        refusal = refusal_of(result)
        if not refusal:
            return [
                Fault("unusable", f"{line} ended with exit {result.code} and no sentence: {result.err.strip()[-200:]}")
            ]
        if kind == "newer" or (kind.startswith("read-only") and line in READERS):
            return [Fault("unusable", f"{line} was refused: {refusal[-200:]}")]
        if kind in ("gone", "older") and not any(word in refusal for word in ("restore", "backup", "copy")):
            return [Fault("unusable", f"{line} does not say the way back: {refusal[-200:]}")]
        return []
    if kind in ("gone", "older", "foreign", "other", "text") or (kind == "cut" and _is_empty(line, folder)):
        return [Fault("lost", f"{line} takes it for the catalogue, exit 0")]
    if kind == "read-only folder" and line in WRITERS:
        return [Fault("unusable", f"{line} says that it wrote what it cannot write")]
    if text is not None and kind not in ("newer", "without -wal") and _text_of(result, folder) != text:
        return [Fault("lost", f"{line} says something else than of the whole catalogue")]
    return []


def _is_empty(line: str, folder: Path) -> bool:
    """Return True if a writer left a catalogue without its content."""
    if line in READERS:
        return False
    with closing(sqlite3.connect(folder / "photos" / ".wsabie" / "catalogue.db")) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM journal").fetchone()[0]) < 4
        except sqlite3.Error:
            return True
