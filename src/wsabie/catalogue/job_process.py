"""Jobs wait their turn and run in a process of their own, which can be stopped.

One job of a collection runs at a time, whoever started its process. That process holds a lock on a file while it
works, so that a job whose process is gone is known by the lock being free. A job that is stopped or killed loses what
it had not written down; scanning, training and applying leave a whole catalogue behind at every moment.
"""

import os
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, select

from wsabie.base.errors import WsabieError
from wsabie.catalogue.backups import back_up_daily
from wsabie.catalogue.collection import Collection, open_collection
from wsabie.catalogue.collection_file import record_state, state_of
from wsabie.catalogue.database import reading
from wsabie.catalogue.job_kinds import WORK
from wsabie.catalogue.job_progress import JobProgress
from wsabie.catalogue.jobs import Job, change, claimed, job
from wsabie.catalogue.journal import now
from wsabie.catalogue.tables import jobs
from wsabie.storage.atomic import remove_drafts
from wsabie.storage.locks import lock_file

_LOCK = "jobs.lock"
_LOOK_EVERY = 0.5
_BACK_UP_EVERY = 3600.0  # seconds until it is asked whether today's backup is there
_AGAIN = 2.0  # seconds until what failed is tried again
_LONGEST_PAUSE = 60.0
_FAILED = 3
_ENDED = "its process was ended before it was done; ask for it again"


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
        pause = _AGAIN
        while not self._ended.is_set():
            try:
                with open_collection(self.folder) as collection:
                    remove_drafts(collection.place)
                    due = time.monotonic() + _BACK_UP_EVERY
                    while not self._ended.wait(_LOOK_EVERY):
                        if time.monotonic() > due:  # a service may run for months
                            record_state(collection.place, state_of(collection.engine))
                            back_up_daily(collection.engine, collection.place)
                            due = time.monotonic() + _BACK_UP_EVERY
                        if _anything_to_do(collection):
                            self._work()
                        pause = _AGAIN
            except (WsabieError, OSError):
                self._ended.wait(pause)  # a database that is restarted answers again
                pause = min(2 * pause, _LONGEST_PAUSE)  # a damaged one is looked through each time

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
            change(collection, jobs.c.state == "running", state="failed", ended=now(), error=_ENDED)
            one = claimed(collection)
            if one is not None:
                threading.Thread(target=_watch, args=(folder, one.id), daemon=True).start()
                _do(collection, one)


def _do(collection: Collection, one: Job) -> None:
    try:
        ended = {"state": "done", "result": WORK[one.kind](collection, one, JobProgress(collection, one.id))}
    except WsabieError as error:
        ended = {"state": "failed", "error": error.served or str(error)}
    except Exception as error:  # whatever it is, who waits must hear of it
        ended = {"state": "failed", "error": f"an error in the program: {type(error).__name__}: {error}"}
    _end(collection, (jobs.c.id == one.id) & (jobs.c.state == "running"), ended)


def _end(collection: Collection, which: ColumnElement[bool], ended: dict[str, Any]) -> None:
    """Write down how a job ended; a full disk or a database that is away is asked again, for some minutes."""
    waits = [1, 5, 20, 60, 200]
    while True:
        try:
            change(collection, which, ended=now(), **ended)
            return
        except WsabieError:
            if not waits:
                raise
            time.sleep(waits.pop(0))


def _watch(folder: Path, number: int) -> None:
    """End this process, whatever it does, when its job is stopped."""
    with open_collection(folder) as collection:
        while True:
            time.sleep(_LOOK_EVERY)
            with suppress(WsabieError):  # a database that does not answer for a moment is asked again
                if job(collection, number).state == "stopped":
                    os._exit(0)


def _turn(collection: Collection) -> AbstractContextManager[bool]:
    """Whether this process may work: nobody else does as long as it lasts."""
    return lock_file(collection.place / _LOCK)


def _anything_to_do(collection: Collection) -> bool:
    """Whether a job waits, or one is said to run, and no process works."""
    with reading(collection.engine) as connection:
        open_jobs = connection.execute(select(jobs.c.id).where(jobs.c.state.in_(("waiting", "running")))).first()
    if open_jobs is None:
        return False
    with _turn(collection) as free:
        return free


if __name__ == "__main__":
    try:
        work(Path(sys.argv[1]))
    except WsabieError as error:
        sys.stderr.write(f"wsabie: a job cannot be done: {error}\n")
        sys.exit(_FAILED)
