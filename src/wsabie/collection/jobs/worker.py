"""Worker that runs waiting jobs one by one, each in a process that can be stopped.

Only one job of a collection runs at a time. Its process holds a file lock while it works, so a free lock means that the
process of a running job is gone. A stopped or killed job loses only unwritten work: scanning, training and applying
leave a consistent catalogue at every moment.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import select

from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.tables import Condition, jobs
from wsabie.collection.folder.backups import back_up_daily
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.folder.collection_file import read_state, record_state
from wsabie.collection.jobs.queue import Job, claim_job, read_job, update_jobs
from wsabie.collection.learning.model_fitting import LearningCurve, Point
from wsabie.core.errors import WsabieError
from wsabie.core.executors import ProcessExecutor
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import count_available_cores
from wsabie.core.progress import Stage
from wsabie.core.records import convert_record
from wsabie.storage.atomic_files import lock_file, remove_drafts

_WRITE_INTERVAL = 0.5  # seconds between two writes


class JobProgress:
    """Writer of a job's progress to its row, at most every half second."""

    def __init__(self, collection: Collection, number: int) -> None:
        self._collection, self._number, self._last = collection, number, 0.0
        self._state: JsonObject = {}
        self._curve = LearningCurve()

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        outer, self._state = self._state, {"stage": name, "done": 0, "total": total, "unit": unit, "figures": {}}
        self._write(force=True)
        yield self
        self._write(force=True)
        self._state = outer

    def advance(self, n: int = 1, **figures: float) -> None:
        self._state["done"] += n
        self._state["figures"].update(figures)
        self._write()

    def watch(self, point: Point) -> None:
        """Record the figures of an epoch, which the next write includes."""
        self._curve.add(point)

    def _write(self, *, force: bool = False) -> None:
        if force or time.monotonic() - self._last > _WRITE_INTERVAL:
            self._last = time.monotonic()
            state = self._state | {"curve": self._curve.points}
            with suppress(WsabieError):  # the job goes on without its progress
                update_jobs(self._collection, jobs.c.id == self._number, progress=state)


def _scan(collection: Collection, job: Job, tools: JsonObject) -> JsonObject:
    from wsabie.collection.scan import scanner

    return scanner.serialize_scan(scanner.scan_collection(collection, by=job.by, **tools, **job.options))


def _train(collection: Collection, job: Job, tools: JsonObject) -> JsonObject:
    from wsabie.collection.learning import training

    result = training.train_model(collection, by=job.by, watch=tools["progress"].watch, **tools, **job.options)
    facts = {name: value for name, value in result.facts.items() if name != "curve"}  # the model keeps it
    return convert_record(result._replace(facts=facts))


def _apply(collection: Collection, job: Job, tools: JsonObject) -> JsonObject:
    from wsabie.collection.learning import suggestions

    return convert_record(suggestions.apply_model(collection, by=job.by, **tools, **job.options))


def _tidy(collection: Collection, job: Job, tools: JsonObject) -> JsonObject:
    from wsabie.collection.merge_proposals.proposals import refresh_proposals

    proposals = refresh_proposals(collection, progress=tools["progress"], **job.options)
    return {"labels": proposals.labels, "proposals": proposals.total, "unused_sources": proposals.unused_sources}


def _compare(collection: Collection, job: Job, tools: JsonObject) -> JsonObject:
    from wsabie.collection.learning import evaluation

    return convert_record(evaluation.compare_models(collection, job.options.get("models", []), **tools))


def _map(collection: Collection, _: Job, tools: JsonObject) -> JsonObject:
    from wsabie.collection.maps import item_map

    return vars(item_map.compute_projection(collection, progress=tools["progress"]))


def _index(collection: Collection, _: Job, tools: JsonObject) -> JsonObject:
    from wsabie.collection.registry import item_index

    return item_index.index_items(collection, progress=tools["progress"])


WORK: dict[str, Callable[[Collection, Job, JsonObject], JsonObject]] = {
    "scan": _scan,
    "train": _train,
    "apply": _apply,
    "tidy": _tidy,
    "compare": _compare,
    "map": _map,
    "index": _index,
}
"""Handler of each kind of job, which gets the "executor" and the "progress" and returns the result."""


_LOCK = "jobs.lock"
_POLL_INTERVAL = 0.5
_BACKUP_INTERVAL = 3600.0  # seconds between two checks for today's backup
_RETRY_DELAY = 2.0  # seconds before a retry
_LONGEST_PAUSE = 60.0
_FAILURE_CODE = 3
_PROCESS_ENDED = "its process was ended before it was done; ask for it again"


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
                pause = min(2 * pause, _LONGEST_PAUSE)  # each retry on a damaged database is a full check

    def _run_process(self) -> None:
        words = [sys.executable, "-m", __name__, str(self.folder)]
        with subprocess.Popen(words, start_new_session=True) as child:  # noqa: S603 - our own
            while child.poll() is None and not self._ended.wait(_POLL_INTERVAL):
                pass
            if child.poll() is None:
                child.terminate()
        if child.returncode == _FAILURE_CODE:
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
    tools = {"executor": ProcessExecutor(count_available_cores()), "progress": JobProgress(collection, job.id)}
    try:
        outcome = {"state": "done", "result": WORK[job.kind](collection, job, tools)}
    except WsabieError as error:
        outcome = {"state": "failed", "error": error.served or str(error)}
    except Exception as error:  # any failure must reach the person who waits
        outcome = {"state": "failed", "error": f"an error in the program: {type(error).__name__}: {error}"}
    _record_outcome(collection, (jobs.c.id == job.id) & (jobs.c.state == "running"), outcome)


def _record_outcome(collection: Collection, condition: Condition, outcome: JsonObject) -> None:
    """Record the outcome of a job; retry for some minutes while the disk is full or the database away."""
    delays = [1, 5, 20, 60, 200]
    while True:
        try:
            update_jobs(collection, condition, ended_at=format_current_time(), **outcome)
            return
        except WsabieError:
            if not delays:
                raise
            time.sleep(delays.pop(0))


def _exit_when_stopped(collection: Collection, number: int) -> None:
    """End this process when its job is stopped."""
    while True:
        time.sleep(_POLL_INTERVAL)
        with suppress(WsabieError):  # retry when the database does not answer for a moment
            if read_job(collection, number).state == "stopped":
                os._exit(0)


def _has_work(collection: Collection) -> bool:
    """Return whether a job waits or is marked as running while no process works."""
    with begin_read(collection.engine) as connection:
        open_jobs = connection.execute(select(jobs.c.id).where(jobs.c.state.in_(("waiting", "running")))).first()
    if open_jobs is None:
        return False
    with lock_file(collection.place / _LOCK) as has_turn:
        return has_turn


if __name__ == "__main__":
    try:
        run_next_job(Path(sys.argv[1]))
    except WsabieError as error:
        sys.stderr.write(f"wsabie: a job cannot be done: {error}\n")
        sys.exit(_FAILURE_CODE)
