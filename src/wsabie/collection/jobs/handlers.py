"""Handlers that run each kind of job, report its progress and return its result.

Each job runs in its own process and imports only what it needs, so that a scan starts without the models.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from wsabie.collection.db.tables import jobs
from wsabie.collection.folder.collection import Collection
from wsabie.collection.jobs.queue import Job, update_jobs
from wsabie.collection.learning.model_fitting import LearningCurve, Point
from wsabie.core.errors import WsabieError
from wsabie.core.executors import ProcessExecutor
from wsabie.core.machine import count_available_cores
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


def _scan(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.scan import scanner

    executor = ProcessExecutor(count_available_cores())
    result = scanner.scan_collection(collection, by=job.by, executor=executor, progress=progress, **job.options)
    return scanner.serialize_scan(result)


def _train(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.learning import training

    executor = ProcessExecutor(count_available_cores())
    options = job.options | {"executor": executor, "progress": progress, "watch": progress.watch}
    result = training.train_model(collection, by=job.by, **options)
    facts = {name: value for name, value in result.facts.items() if name != "curve"}  # the model keeps it
    return result._asdict() | {"facts": facts, "inference": result.inference and result.inference._asdict()}


def _apply(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.learning import suggestions

    executor = ProcessExecutor(count_available_cores())
    result = suggestions.apply_model(collection, by=job.by, executor=executor, progress=progress, **job.options)
    fields = {name: part and part._asdict() for name, part in result._asdict().items() if name != "model"}
    return {"model": result.model} | fields


def _tidy(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.merge_proposals import proposal_store

    proposals = proposal_store.refresh_proposals(collection, progress=progress, **job.options)
    return {"labels": proposals.labels, "proposals": proposals.total, "unused_sources": proposals.unused_sources}


def _compare(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.learning import evaluation

    executor = ProcessExecutor(count_available_cores())
    comparison = evaluation.compare_models(
        collection, job.options.get("models", []), executor=executor, progress=progress
    )
    return evaluation.serialize_comparison(comparison)


def _map(collection: Collection, _: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.maps import item_map

    return item_map.compute_projection(collection, progress=progress)._asdict()


def _index(collection: Collection, _: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.registry import item_index

    return {index.similarity: index.facts for index in item_index.index_items(collection, progress=progress)}


WORK: dict[str, Callable[[Collection, Job, JobProgress], dict[str, Any]]] = {
    "scan": _scan,
    "train": _train,
    "apply": _apply,
    "tidy": _tidy,
    "compare": _compare,
    "map": _map,
    "index": _index,
}
"""Handler of each kind of job, which returns the result."""
