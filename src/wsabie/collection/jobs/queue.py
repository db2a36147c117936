"""Queue of jobs, whose rows hold their state, and its runner: one job at a time, in its own process.

Only one job of a collection runs at a time. Its process holds a file lock while it works, so a free lock means that the
process of a running job is gone. A stopped or killed job loses only unwritten work: scanning, training and applying
leave a consistent database at every moment.

Task queues keep a store of their own beside the database, and cannot stop a running job
(`docs/decisions/jobs-and-undo.md`).
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy import insert, select, update
from typing_extensions import TypedDict

from wsabie.collection.db.database import begin_write, fetch_rows
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.tables import Condition, jobs
from wsabie.collection.folder.backups import back_up_daily
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.folder.collection_file import read_state, record_state
from wsabie.collection.learning.evaluation import Comparison, compare_models
from wsabie.collection.learning.model_fitting import LearningCurve, TrainingPoint
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.maps.item_map import compute_projection
from wsabie.collection.merge_proposals.proposals import refresh_proposals
from wsabie.collection.registry.item_index import IndexResult, index_items
from wsabie.collection.scan.scanner import ScanResult, scan_collection
from wsabie.core.errors import InputError, NotFoundError, WsabieError, require
from wsabie.core.execution import ProcessExecutor, Stage
from wsabie.core.json_conversion import JsonObject, convert_records
from wsabie.core.machine import count_available_cores
from wsabie.features.encoders.encoder_list import HUB_ENCODERS
from wsabie.features.extractor_choice import AUTO
from wsabie.features.extractor_names import EXTRACTOR_NAMES
from wsabie.storage.atomic_files import lock_file, remove_drafts

FINAL = ("done", "failed", "stopped")
JOB_OPTIONS: dict[str, dict[str, type]] = {
    "scan": {"rehash": bool},
    "train": {"full": bool, "epochs": int, "even_if_worse": bool, "features": str},
    "apply": {"again": bool, "accept_above": float, "min_precision": float, "free_words": bool},
    "tidy": {"min_score": float},
    "compare": {"models": list},
    "map": {},
    "index": {},
}
"""Options of each kind of job."""

JOB_FEATURES = {AUTO, *EXTRACTOR_NAMES["pictures"], *HUB_ENCODERS} - {"onnx:FILE"}
"""Features that a job may name; the files of networks belong to the command line."""
MAX_WAITING = 20


JobKind = Literal["scan", "train", "apply", "tidy", "compare", "map", "index"]
_WRITE_INTERVAL = 0.5  # seconds between two writes
_LOCK = "jobs.lock"
_POLL_INTERVAL = 0.5
_BACKUP_INTERVAL = 3600.0  # seconds between two checks for today's backup
_RETRY_DELAY = 2.0  # seconds before a retry
_MAX_PAUSE = 60.0
FAILURE_CODE = 3
"""Exit code of a job's process that could not open its collection, or work in it."""
_PROCESS_ENDED = "its process was ended before it was done; start it again"


class JobProgress(TypedDict, total=False):
    """Current stage of a job, and the epochs of a training so far."""

    stage: str
    completed: int
    total: int | None
    unit: str
    figures: JsonObject
    curve: list[TrainingPoint]


@dataclass(frozen=True)
class Job:
    """Long task that a person started.

    Attributes
    ----------
    id : int
    kind : {"scan", "train", "apply", "tidy", "compare", "map", "index"}
    state : {"waiting", "running", "done", "failed", "stopped"}
    by : str
    options : dict
    progress : dict
        Only what the current stage reports.
    result : dict or None
        That of a comparison, a scan or an index has the fields of the class, all of which are required: so no other
        result passes for it, and an old one with fewer fields stays a dictionary.
    error : str or None
    requested_at, started_at, ended_at : str or None
    """

    id: int
    kind: JobKind
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    by: str
    options: JsonObject
    progress: JobProgress
    result: Comparison | ScanResult | IndexResult | JsonObject | None
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
        job_id = next((waiting_id for waiting_id, *same in waiting_jobs if same == [kind, dict(options)]), None)
        if job_id is None and len(waiting_jobs) >= MAX_WAITING:
            raise InputError(f"{len(waiting_jobs)} jobs wait already; ask again when some of them are done")
        if job_id is None:
            requested = insert(jobs).values(row | {"requested_at": format_current_time()})
            job_id = connection.execute(requested.returning(jobs.c.id)).scalar_one()
    return read_job(collection, job_id)


def _check_options(kind: str, options: Mapping[str, object]) -> None:
    require(kind in JOB_OPTIONS, f"there is no job {kind!r}; choose one of {', '.join(JOB_OPTIONS)}")
    for name, value in options.items():
        option_type = JOB_OPTIONS[kind].get(name)
        if option_type is None:
            raise InputError(f"a {kind} job has no option {name!r}; it has {', '.join(JOB_OPTIONS[kind])}")
        types = (int, float) if option_type is float else option_type
        if isinstance(value, bool) != (option_type is bool) or not isinstance(value, types):
            raise InputError(f"the option {name!r} of a {kind} job is {value!r}; give a {option_type.__name__}")
        if isinstance(value, list) and not all(type(entry) is int for entry in value):
            raise InputError(f"the option {name!r} of a {kind} job is {value!r}; give a list of numbers")
        if name == "features" and not set(str(value).split(",")) <= JOB_FEATURES:
            names = ", ".join(sorted(JOB_FEATURES))
            raise InputError(f"a {kind} job has no features {value!r}; choose from {names}")


def read_job(collection: Collection, job_id: int) -> Job:
    """Return a job by its id.

    Raises
    ------
    NotFoundError
        There is no such job.
    """
    for row in fetch_rows(collection.engine, select(jobs).where(jobs.c.id == job_id)):
        return Job(*row)
    raise NotFoundError(f"there is no job {job_id}")


def list_jobs(collection: Collection, k: int = 50) -> list[Job]:
    """Return the jobs, last first."""
    return [Job(*row) for row in fetch_rows(collection.engine, select(jobs).order_by(jobs.c.id.desc()).limit(k))]


def stop_job(collection: Collection, job_id: int) -> Job:
    """Stop a waiting or running job; an ended one stays as it is."""
    is_open = (jobs.c.id == job_id) & jobs.c.state.not_in(FINAL)
    update_jobs(collection, is_open, state="stopped", ended_at=format_current_time())
    return read_job(collection, job_id)


def claim_job(collection: Collection) -> Job | None:
    """Mark the first waiting job as running and return it."""
    first = select(jobs.c.id).where(jobs.c.state == "waiting").order_by(jobs.c.id).limit(1).scalar_subquery()
    claim = update(jobs).where(jobs.c.id == first).values(state="running", started_at=format_current_time())
    with begin_write(collection.engine) as connection:
        row = connection.execute(claim.returning(*jobs.c)).first()
    return None if row is None else Job(*row)


def update_jobs(collection: Collection, condition: Condition, **values: object) -> None:
    """Update columns of the jobs that fulfil a condition."""
    with begin_write(collection.engine) as connection:
        connection.execute(update(jobs).where(condition).values(values))


class ProgressWriter:
    """Writer of a job's progress to its row, at most every half second."""

    def __init__(self, collection: Collection, job_id: int) -> None:
        self._collection, self._job_id, self._last = collection, job_id, 0.0
        self._state: JsonObject = {}
        self._curve = LearningCurve()

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        outer, self._state = self._state, {"stage": name, "completed": 0, "total": total, "unit": unit, "figures": {}}
        self._write(force=True)
        yield self
        self._write(force=True)
        self._state = outer

    def advance(self, n: int = 1, **figures: float) -> None:
        self._state["completed"] += n
        self._state["figures"].update(figures)
        self._write()

    def watch(self, point: TrainingPoint) -> None:
        """Record the figures of an epoch, which the next write includes."""
        self._curve.add(point)

    def _write(self, *, force: bool = False) -> None:
        if force or time.monotonic() - self._last > _WRITE_INTERVAL:
            self._last = time.monotonic()
            state = self._state | {"curve": self._curve.points}
            with suppress(WsabieError):  # the job goes on without its progress
                update_jobs(self._collection, jobs.c.id == self._job_id, progress=state)


def _train(collection: Collection, job: Job, tools: JsonObject) -> object:
    result = train_collection_model(collection, by=job.by, watch=tools["progress"].watch, **tools, **job.options)
    return result._replace(facts={name: value for name, value in result.facts.items() if name != "curve"})  # kept by it


def _tidy(collection: Collection, job: Job, tools: JsonObject) -> object:
    proposals = refresh_proposals(collection, progress=tools["progress"], **job.options)
    return {"labels": proposals.labels, "proposals": proposals.total, "unused_sources": proposals.unused_sources}


WORK: dict[str, Callable[[Collection, Job, JsonObject], object]] = {
    "scan": lambda collection, job, tools: scan_collection(collection, by=job.by, **tools, **job.options),
    "train": _train,
    "apply": lambda collection, job, tools: apply_model(collection, by=job.by, **tools, **job.options),
    "tidy": _tidy,
    "compare": lambda collection, job, tools: compare_models(collection, job.options.get("models", []), **tools),
    "map": lambda collection, _, tools: compute_projection(collection, progress=tools["progress"]),
    "index": lambda collection, _, tools: index_items(collection, progress=tools["progress"]),
}
"""Handler of each kind of job, which gets the "executor" and the "progress" and returns the result."""


class JobRunner:
    """Background thread that starts a process for each waiting job until it is closed.

    Parameters
    ----------
    folder : Path
        Folder of the collection.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Start no more jobs, and end the running one, which can be started again."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        pause = _RETRY_DELAY
        while not self._ended.is_set():
            try:
                with open_collection(self.folder) as collection:
                    remove_drafts(collection.place)
                    due = time.monotonic() + _BACKUP_INTERVAL
                    while not self._ended.wait(_POLL_INTERVAL):
                        if time.monotonic() > due:  # a service may run for months
                            record_state(collection.place, read_state(collection.engine))
                            back_up_daily(collection.engine, collection.place)
                            due = time.monotonic() + _BACKUP_INTERVAL
                        if _has_work(collection):
                            self._run_process()
                        pause = _RETRY_DELAY
            except (WsabieError, OSError):
                self._ended.wait(pause)  # a restarted database answers again
                pause = min(2 * pause, _MAX_PAUSE)  # each retry on a damaged database is a full check

    def _run_process(self) -> None:
        words = [sys.executable, "-m", __package__, str(self.folder)]
        with subprocess.Popen(words, start_new_session=True) as child:  # noqa: S603 - our own
            while child.poll() is None and not self._ended.wait(_POLL_INTERVAL):
                pass
            if child.poll() is None:
                child.terminate()
        if child.returncode == FAILURE_CODE:
            self._ended.wait(_RETRY_DELAY)


def run_next_job(folder: Path) -> None:
    """Run the first waiting job in this process, unless another process runs one."""
    with open_collection(folder) as collection, lock_file(collection.place / _LOCK) as has_turn:
        if has_turn:
            failure = {"state": "failed", "ended_at": format_current_time(), "error": _PROCESS_ENDED}
            update_jobs(collection, jobs.c.state == "running", **failure)
            if (job := claim_job(collection)) is not None:
                threading.Thread(target=_exit_when_stopped, args=(collection, job.id), daemon=True).start()
                _run_job(collection, job)


def _run_job(collection: Collection, job: Job) -> None:
    tools = {"executor": ProcessExecutor(count_available_cores()), "progress": ProgressWriter(collection, job.id)}
    try:
        outcome = {"state": "done", "result": convert_records(WORK[job.kind](collection, job, tools))}
    except WsabieError as error:
        outcome = {"state": "failed", "error": error.web_message or str(error)}
    except Exception as error:  # any failure must reach the person who waits
        outcome = {"state": "failed", "error": f"an error in the program: {type(error).__name__}: {error}"}
    _record_outcome(collection, (jobs.c.id == job.id) & (jobs.c.state == "running"), outcome)


def _record_outcome(collection: Collection, condition: Condition, outcome: JsonObject) -> None:
    """Record the outcome of a job; retry for some minutes while the disk is full or the database away."""
    for delay in (1, 5, 20, 60, 200, None):
        try:
            update_jobs(collection, condition, ended_at=format_current_time(), **outcome)
            return
        except WsabieError:
            if delay is None:
                raise
            time.sleep(delay)


def _exit_when_stopped(collection: Collection, job_id: int) -> None:
    """End this process when its job is stopped."""
    while True:
        time.sleep(_POLL_INTERVAL)
        with suppress(WsabieError):  # retry when the database does not answer for a moment
            if read_job(collection, job_id).state == "stopped":
                os._exit(0)


def _has_work(collection: Collection) -> bool:
    """Return True if a job waits or is marked as running while no process works."""
    if not fetch_rows(collection.engine, select(jobs.c.id).where(jobs.c.state.in_(("waiting", "running"))).limit(1)):
        return False
    with lock_file(collection.place / _LOCK) as has_turn:
        return has_turn
