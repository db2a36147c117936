"""Long work that somebody asked for: it waits its turn, runs in a process of its own, and can be watched and stopped.

One job of a collection runs at a time, whoever started its process. That process holds a lock on a file while it
works, so that a job whose process is gone is known by the lock being free. A job that is stopped or killed loses what
it had not written down; scanning, training and applying leave a whole catalogue behind at every moment.
"""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, insert, select, update

from wsabie.base.errors import InputError, MissingError, WsabieError
from wsabie.base.executor import Processes
from wsabie.base.machine import available_cores
from wsabie.base.progress import Stage
from wsabie.catalogue import comparing, item_index, learning, maps, proposing, scanning, suggesting
from wsabie.catalogue.collection import Collection, open_collection
from wsabie.catalogue.curves import Curve, Point
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.journal import now
from wsabie.catalogue.tables import jobs
from wsabie.storage.atomic import remove_drafts

FINAL = ("done", "failed", "stopped")
OPTIONS: dict[str, dict[str, type]] = {
    "scan": {"rehash": bool},
    "train": {"full": bool, "epochs": int, "even_if_worse": bool},
    "apply": {"again": bool, "accept_above": float},
    "tidy": {"least": float},
    "compare": {"models": list},
    "map": {},
    "index": {},
}
"""What can be asked of each kind of job."""

MOST_WAITING = 20

_LOCK = "jobs.lock"
_TELL_EVERY = 0.5  # seconds between two lines of progress
_LOOK_EVERY = 0.5
_AGAIN = 2.0  # seconds until what failed is tried again
_FAILED = 3
_ENDED = "its process was ended before it was done; ask for it again"


class Job(NamedTuple):
    """A job.

    Attributes
    ----------
    id : int
    kind : {"scan", "train", "apply", "tidy", "compare", "map", "index"}
    state : {"waiting", "running", "done", "failed", "stopped"}
    by : str
    options : dict
    progress : dict
        "stage", "done", "total", "unit", "figures" of what it does now; "curve" = figures of the epochs so far.
    result : dict or None
    error : str or None
    asked, started, ended : str or None
    """

    id: int
    kind: str
    state: str
    by: str
    options: dict[str, Any]
    progress: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    asked: str
    started: str | None
    ended: str | None


def ask(collection: Collection, kind: str, options: Mapping[str, Any], *, by: str) -> Job:
    """Ask for a job; the same one that waits already is the answer.

    Raises
    ------
    InputError
        There is no such kind of job, it has no such option, or `MOST_WAITING` wait already.
    """
    _refuse(kind, options)
    row = {"kind": kind, "state": "waiting", "by": by, "options": dict(options), "progress": {}, "asked": now()}
    with writing(collection.engine) as connection:
        waiting = select(jobs.c.id, jobs.c.kind, jobs.c.options).where(jobs.c.state == "waiting")
        there = connection.execute(waiting).all()
        number = next((n for n, *same in there if same == [kind, dict(options)]), None)
        if number is None and len(there) >= MOST_WAITING:
            raise InputError(f"{len(there)} jobs wait already; ask again when some of them are done")
        if number is None:
            number = connection.execute(insert(jobs).values(row)).inserted_primary_key[0]  # type: ignore[index]
    return job(collection, number)


def _refuse(kind: str, options: Mapping[str, Any]) -> None:
    if kind not in OPTIONS:
        raise InputError(f"there is no job {kind!r}; choose one of {', '.join(OPTIONS)}")
    for name, value in options.items():
        wanted = OPTIONS[kind].get(name)
        if wanted is None:
            raise InputError(f"a {kind} job has no option {name!r}; it has {', '.join(OPTIONS[kind])}")
        if isinstance(value, bool) != (wanted is bool) or not isinstance(
            value, (int, float) if wanted is float else wanted
        ):
            raise InputError(f"the option {name!r} of a {kind} job is {value!r}; give a {wanted.__name__}")
        if isinstance(value, list) and not all(type(one) is int for one in value):
            raise InputError(f"the option {name!r} of a {kind} job is {value!r}; give a list of numbers")


def job(collection: Collection, number: int) -> Job:
    """A job as it is now.

    Raises
    ------
    MissingError
        There is none.
    """
    with reading(collection.engine) as connection:
        row = connection.execute(select(jobs).where(jobs.c.id == number)).first()
    if row is None:
        raise MissingError(f"there is no job {number}")
    return Job(*row)


def listed(collection: Collection, k: int = 50) -> list[Job]:
    """The jobs, last first."""
    with reading(collection.engine) as connection:
        return [Job(*row) for row in connection.execute(select(jobs).order_by(jobs.c.id.desc()).limit(k))]


def stop(collection: Collection, number: int) -> Job:
    """Stop a job that waits or runs; one that has ended stays as it is."""
    _set(collection, (jobs.c.id == number) & jobs.c.state.not_in(FINAL), state="stopped", ended=now())
    return job(collection, number)


class Runner:
    """Starts a process for the jobs that wait, as long as it is open.

    Parameters
    ----------
    folder : Path
        Of the collection.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Start no more, and end what runs: it is safe at every moment, and can be asked for again."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with open_collection(self.folder) as collection:
                    remove_drafts(collection.place)
                    while not self._ended.wait(_LOOK_EVERY):
                        if _anything_to_do(collection):
                            self._work()
            except (WsabieError, OSError):
                self._ended.wait(_AGAIN)  # a database that is restarted answers again

    def _work(self) -> None:
        words = [sys.executable, "-m", __name__, str(self.folder)]
        with subprocess.Popen(words, start_new_session=True) as child:  # noqa: S603 - our own
            while child.poll() is None and not self._ended.wait(_LOOK_EVERY):
                pass
            if child.poll() is None:
                child.terminate()
        if child.returncode == _FAILED:
            self._ended.wait(_AGAIN)


def work(folder: Path) -> None:
    """Do the first job that waits, in this process, unless another process does one."""
    with open_collection(folder) as collection, _turn(collection) as ours:
        if ours:
            _set(
                collection,
                jobs.c.state == "running",
                state="failed",
                ended=now(),
                error=_ENDED,
            )
            one = _claimed(collection)
            if one is not None:
                threading.Thread(target=_watch, args=(folder, one.id), daemon=True).start()
                _do(collection, one)


def _do(collection: Collection, one: Job) -> None:
    try:
        ended = {"state": "done", "result": _WORK[one.kind](collection, one, _Told(collection, one.id))}
    except WsabieError as error:
        ended = {"state": "failed", "error": str(error)}
    except Exception as error:  # whatever it is, who waits must hear of it
        ended = {"state": "failed", "error": f"an error in the program: {type(error).__name__}: {error}"}
    _end(collection, (jobs.c.id == one.id) & (jobs.c.state == "running"), ended)


def _end(collection: Collection, which: ColumnElement[bool], ended: dict[str, Any]) -> None:
    """Write down how a job ended; a full disk or a database that is away is asked again, for some minutes."""
    waits = [1, 5, 20, 60, 200]
    while True:
        try:
            _set(collection, which, ended=now(), **ended)
            return
        except WsabieError:
            if not waits:
                raise
            time.sleep(waits.pop(0))


def _scan(collection: Collection, one: Job, progress: "_Told") -> dict[str, Any]:
    executor = Processes(available_cores())
    found = scanning.scan(collection, by=one.by, executor=executor, progress=progress, **one.options)
    return found._asdict()


def _train(collection: Collection, one: Job, progress: "_Told") -> dict[str, Any]:
    executor = Processes(available_cores())
    given = one.options | {"executor": executor, "progress": progress, "watch": progress.watch}
    learnt = learning.train(collection, by=one.by, **given)
    facts = {name: value for name, value in learnt.facts.items() if name != "curve"}  # the model has it
    return learnt._asdict() | {"facts": facts, "looked": learnt.looked and learnt.looked._asdict()}


def _apply(collection: Collection, one: Job, progress: "_Told") -> dict[str, Any]:
    executor = Processes(available_cores())
    done = suggesting.apply(collection, by=one.by, executor=executor, progress=progress, **one.options)
    told = {"looked": done.looked._asdict(), "accepted": done.accepted and done.accepted._asdict()}
    return {"model": done.model} | told


def _tidy(collection: Collection, one: Job, progress: "_Told") -> dict[str, Any]:
    found = proposing.look(collection, progress=progress, **one.options)
    return {"labels": found.labels, "proposals": found.found, "not_asked": found.not_asked}


def _compare(collection: Collection, one: Job, progress: "_Told") -> dict[str, Any]:
    executor = Processes(available_cores())
    found = comparing.compare(collection, one.options.get("models", []), executor=executor, progress=progress)
    return comparing.as_json(found)


def _map(collection: Collection, _: Job, progress: "_Told") -> dict[str, Any]:
    return maps.project(collection, progress=progress)._asdict()


def _index(collection: Collection, one: Job, progress: Any) -> dict[str, Any]:
    return {made.similarity: made.facts for made in item_index.index_items(collection, progress=progress)}


_WORK: dict[str, Callable[[Collection, Job, "_Told"], dict[str, Any]]] = {
    "scan": _scan,
    "train": _train,
    "apply": _apply,
    "tidy": _tidy,
    "compare": _compare,
    "map": _map,
    "index": _index,
}


class _Told:
    """Progress that everybody can read in the catalogue."""

    def __init__(self, collection: Collection, number: int) -> None:
        self._collection, self._number, self._last = collection, number, 0.0
        self._curve = Curve()

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        stage = _ToldStage(self, {"stage": name, "done": 0, "total": total, "unit": unit, "figures": {}})
        self.tell(stage.told, always=True)
        yield stage
        self.tell(stage.told, always=True)

    def watch(self, point: Point) -> None:
        """Figures of an epoch, which are told with what comes next."""
        self._curve.add(point)

    def tell(self, told: dict[str, Any], *, always: bool = False) -> None:
        if always or time.monotonic() - self._last > _TELL_EVERY:
            self._last = time.monotonic()
            told = told | {"curve": self._curve.points}
            with suppress(WsabieError):  # work goes on, though nobody can be told
                _set(self._collection, jobs.c.id == self._number, progress=told)


class _ToldStage:
    def __init__(self, whole: _Told, told: dict[str, Any]) -> None:
        self._whole, self.told = whole, told

    def advance(self, n: int = 1, **figures: float) -> None:
        self.told["done"] += n
        self.told["figures"].update(figures)
        self._whole.tell(self.told)


def _watch(folder: Path, number: int) -> None:
    """End this process, whatever it does, when its job is stopped."""
    with open_collection(folder) as collection:
        while True:
            time.sleep(_LOOK_EVERY)
            with suppress(WsabieError):  # a database that does not answer for a moment is asked again
                if job(collection, number).state == "stopped":
                    os._exit(0)


@contextmanager
def _turn(collection: Collection) -> Iterator[bool]:
    """Whether this process may work: nobody else does as long as it lasts."""
    with (collection.place / _LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        yield free


def _anything_to_do(collection: Collection) -> bool:
    """Whether a job waits, or one is said to run, and no process works."""
    with reading(collection.engine) as connection:
        open_jobs = connection.execute(select(jobs.c.id).where(jobs.c.state.in_(("waiting", "running")))).first()
    if open_jobs is None:
        return False
    with _turn(collection) as free:
        return free


def _claimed(collection: Collection) -> Job | None:
    with writing(collection.engine) as connection:
        first = select(jobs.c.id).where(jobs.c.state == "waiting").order_by(jobs.c.id).limit(1)
        number = connection.execute(first).scalar()
        if number is not None:
            connection.execute(update(jobs).where(jobs.c.id == number).values(state="running", started=now()))
    return None if number is None else job(collection, number)


def _set(collection: Collection, which: ColumnElement[bool], **values: Any) -> None:
    with writing(collection.engine) as connection:
        connection.execute(update(jobs).where(which).values(values))


if __name__ == "__main__":
    try:
        work(Path(sys.argv[1]))
    except WsabieError as error:
        sys.stderr.write(f"wsabie: a job cannot be done: {error}\n")
        sys.exit(_FAILED)
