"""Long work that somebody asked for: what can be asked, and the rows that say how it goes.

What each kind does is in `job_kinds.py`, how its process is run in `job_process.py`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, insert, select, update

from wsabie.base.errors import InputError, MissingError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.journal import now
from wsabie.catalogue.tables import jobs

FINAL = ("done", "failed", "stopped")
OPTIONS: dict[str, dict[str, type]] = {
    "scan": {"rehash": bool},
    "train": {"full": bool, "epochs": int, "even_if_worse": bool},
    "apply": {"again": bool, "accept_above": float, "min_precision": float},
    "tidy": {"least": float},
    "compare": {"models": list},
    "map": {},
    "index": {},
}
"""What can be asked of each kind of job."""

MOST_WAITING = 20


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
    change(collection, (jobs.c.id == number) & jobs.c.state.not_in(FINAL), state="stopped", ended=now())
    return job(collection, number)


def claimed(collection: Collection) -> Job | None:
    """The first job that waits, which runs from now on."""
    with writing(collection.engine) as connection:
        first = select(jobs.c.id).where(jobs.c.state == "waiting").order_by(jobs.c.id).limit(1)
        number = connection.execute(first).scalar()
        if number is not None:
            connection.execute(update(jobs).where(jobs.c.id == number).values(state="running", started=now()))
    return None if number is None else job(collection, number)


def change(collection: Collection, which: ColumnElement[bool], **values: Any) -> None:
    """Write down what is known of some jobs from now on."""
    with writing(collection.engine) as connection:
        connection.execute(update(jobs).where(which).values(values))
