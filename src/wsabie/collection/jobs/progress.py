"""Progress of a job, written to its row in the catalogue."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from wsabie.collection.db.tables import jobs
from wsabie.collection.folder.collection import Collection
from wsabie.collection.jobs.queue import update_jobs
from wsabie.collection.learning.learning_curve import LearningCurve, Point
from wsabie.core.errors import WsabieError
from wsabie.core.progress import Stage

_WRITE_INTERVAL = 0.5  # seconds between two writes


class JobProgress:
    """Writer of a job's progress to its row, at most every half second."""

    def __init__(self, collection: Collection, number: int) -> None:
        self._collection, self._number, self._last = collection, number, 0.0
        self._curve = LearningCurve()

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        stage = _Stage(self, {"stage": name, "done": 0, "total": total, "unit": unit, "figures": {}})
        self.write(stage.state, force=True)
        yield stage
        self.write(stage.state, force=True)

    def watch(self, point: Point) -> None:
        """Record the figures of an epoch, which the next write includes."""
        self._curve.add(point)

    def write(self, state: dict[str, Any], *, force: bool = False) -> None:
        if force or time.monotonic() - self._last > _WRITE_INTERVAL:
            self._last = time.monotonic()
            state = state | {"curve": self._curve.points}
            with suppress(WsabieError):  # the job goes on without its progress
                update_jobs(self._collection, jobs.c.id == self._number, progress=state)


class _Stage:
    def __init__(self, progress: JobProgress, state: dict[str, Any]) -> None:
        self._progress, self.state = progress, state

    def advance(self, n: int = 1, **figures: float) -> None:
        self.state["done"] += n
        self.state["figures"].update(figures)
        self._progress.write(self.state)
