"""Handlers that run each kind of job and return its result.

Each job runs in its own process and imports only what it needs, so that a scan starts without the models.
"""

from collections.abc import Callable
from typing import Any

from wsabie.collection.folder.collection import Collection
from wsabie.collection.jobs.progress import JobProgress
from wsabie.collection.jobs.queue import Job
from wsabie.core.executors import ProcessExecutor
from wsabie.core.machine import count_available_cores


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
    return result._asdict() | {"facts": facts, "looked": result.looked and result.looked._asdict()}


def _apply(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.learning import suggestions

    executor = ProcessExecutor(count_available_cores())
    result = suggestions.apply_model(collection, by=job.by, executor=executor, progress=progress, **job.options)
    fields = {name: part and part._asdict() for name, part in result._asdict().items() if name != "model"}
    return {"model": result.model} | fields


def _tidy(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.merge_proposals import proposal_store

    proposals = proposal_store.refresh_proposals(collection, progress=progress, **job.options)
    return {"labels": proposals.labels, "proposals": proposals.found, "not_asked": proposals.not_asked}


def _compare(collection: Collection, job: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.collection.learning import model_comparison

    executor = ProcessExecutor(count_available_cores())
    comparison = model_comparison.compare_models(
        collection, job.options.get("models", []), executor=executor, progress=progress
    )
    return model_comparison.serialize_comparison(comparison)


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
