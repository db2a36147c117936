"""Queue of jobs: kinds, options, and the rows that hold their state.

`worker` runs them.

Task queues keep a store of their own beside the catalogue, and cannot stop a running job
(`docs/decisions/jobs-and-undo.md`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import insert, select, update

from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.tables import Condition, jobs
from wsabie.collection.folder.collection import Collection
from wsabie.core.errors import InputError, NotFoundError
from wsabie.core.json_conversion import JsonObject

FINAL = ("done", "failed", "stopped")
JOB_OPTIONS: dict[str, dict[str, type]] = {
    "scan": {"rehash": bool},
    "train": {"full": bool, "epochs": int, "even_if_worse": bool},
    "apply": {"again": bool, "accept_above": float, "min_precision": float},
    "tidy": {"min_score": float},
    "compare": {"models": list},
    "map": {},
    "index": {},
}
"""Options of each kind of job."""

MAX_WAITING = 20


class Job(NamedTuple):
    """Long task that a person started.

    Attributes
    ----------
    id : int
    kind : {"scan", "train", "apply", "tidy", "compare", "map", "index"}
    state : {"waiting", "running", "done", "failed", "stopped"}
    by : str
    options : dict
    progress : dict
        "stage", "done", "total", "unit" and "figures" of the current stage; "curve": figures of the epochs so far.
    result : dict or None
    error : str or None
    requested_at, started_at, ended_at : str or None
    """

    id: int
    kind: str
    state: str
    by: str
    options: JsonObject
    progress: JsonObject
    result: JsonObject | None
    error: str | None
    requested_at: str
    started_at: str | None
    ended_at: str | None


def enqueue_job(collection: Collection, kind: str, options: Mapping[str, object], *, by: str) -> Job:
    """Add a job to the queue; if an equal one waits already, return that.

    Raises
    ------
    InputError
        The kind or an option is unknown, or `MAX_WAITING` jobs wait already.
    """
    _check_options(kind, options)
    row = {"kind": kind, "state": "waiting", "by": by, "options": dict(options), "progress": {}}
    with begin_write(collection.engine) as connection:
        query = select(jobs.c.id, jobs.c.kind, jobs.c.options).where(jobs.c.state == "waiting")
        waiting_jobs = connection.execute(query).all()
        number = next((job_id for job_id, *same in waiting_jobs if same == [kind, dict(options)]), None)
        if number is None and len(waiting_jobs) >= MAX_WAITING:
            raise InputError(f"{len(waiting_jobs)} jobs wait already; ask again when some of them are done")
        if number is None:
            requested = insert(jobs).values(row | {"requested_at": format_current_time()})
            number = connection.execute(requested.returning(jobs.c.id)).scalar_one()
    return read_job(collection, number)


def _check_options(kind: str, options: Mapping[str, object]) -> None:
    if kind not in JOB_OPTIONS:
        raise InputError(f"there is no job {kind!r}; choose one of {', '.join(JOB_OPTIONS)}")
    for name, value in options.items():
        option_type = JOB_OPTIONS[kind].get(name)
        if option_type is None:
            raise InputError(f"a {kind} job has no option {name!r}; it has {', '.join(JOB_OPTIONS[kind])}")
        if isinstance(value, bool) != (option_type is bool) or not isinstance(
            value, (int, float) if option_type is float else option_type
        ):
            raise InputError(f"the option {name!r} of a {kind} job is {value!r}; give a {option_type.__name__}")
        if isinstance(value, list) and not all(type(entry) is int for entry in value):
            raise InputError(f"the option {name!r} of a {kind} job is {value!r}; give a list of numbers")


def read_job(collection: Collection, number: int) -> Job:
    """Return a job by its id.

    Raises
    ------
    NotFoundError
        There is no such job.
    """
    with begin_read(collection.engine) as connection:
        row = connection.execute(select(jobs).where(jobs.c.id == number)).first()
    if row is None:
        raise NotFoundError(f"there is no job {number}")
    return Job._make(row)


def list_jobs(collection: Collection, k: int = 50) -> list[Job]:
    """Return the jobs, last first."""
    with begin_read(collection.engine) as connection:
        return [Job._make(row) for row in connection.execute(select(jobs).order_by(jobs.c.id.desc()).limit(k))]


def stop_job(collection: Collection, number: int) -> Job:
    """Stop a waiting or running job; an ended one stays as it is."""
    update_jobs(
        collection, (jobs.c.id == number) & jobs.c.state.not_in(FINAL), state="stopped", ended_at=format_current_time()
    )
    return read_job(collection, number)


def claim_job(collection: Collection) -> Job | None:
    """Mark the first waiting job as running and return it."""
    first = select(jobs.c.id).where(jobs.c.state == "waiting").order_by(jobs.c.id).limit(1).scalar_subquery()
    claim = update(jobs).where(jobs.c.id == first).values(state="running", started_at=format_current_time())
    with begin_write(collection.engine) as connection:
        row = connection.execute(claim.returning(*jobs.c)).first()
    return None if row is None else Job._make(row)


def update_jobs(collection: Collection, condition: Condition, **values: object) -> None:
    """Update columns of the jobs that fulfil a condition."""
    with begin_write(collection.engine) as connection:
        connection.execute(update(jobs).where(condition).values(values))
