"""What each kind of job does, and what its result says.

A job has a process of its own, which imports what it needs: a scan, which needs no model, begins sooner.
"""

from collections.abc import Callable
from typing import Any

from wsabie.base.executor import Processes
from wsabie.base.machine import available_cores
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.job_progress import JobProgress
from wsabie.catalogue.jobs import Job


def _scan(collection: Collection, one: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.catalogue import scanning

    executor = Processes(available_cores())
    found = scanning.scan(collection, by=one.by, executor=executor, progress=progress, **one.options)
    return scanning.as_json(found)


def _train(collection: Collection, one: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.catalogue import learning

    executor = Processes(available_cores())
    given = one.options | {"executor": executor, "progress": progress, "watch": progress.watch}
    learnt = learning.train(collection, by=one.by, **given)
    facts = {name: value for name, value in learnt.facts.items() if name != "curve"}  # the model has it
    return learnt._asdict() | {"facts": facts, "looked": learnt.looked and learnt.looked._asdict()}


def _apply(collection: Collection, one: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.catalogue import suggesting

    executor = Processes(available_cores())
    done = suggesting.apply(collection, by=one.by, executor=executor, progress=progress, **one.options)
    told = {name: part and part._asdict() for name, part in done._asdict().items() if name != "model"}
    return {"model": done.model} | told


def _tidy(collection: Collection, one: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.catalogue import proposing

    found = proposing.look(collection, progress=progress, **one.options)
    return {"labels": found.labels, "proposals": found.found, "not_asked": found.not_asked}


def _compare(collection: Collection, one: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.catalogue import comparing

    executor = Processes(available_cores())
    found = comparing.compare(collection, one.options.get("models", []), executor=executor, progress=progress)
    return comparing.as_json(found)


def _map(collection: Collection, _: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.catalogue import maps

    return maps.project(collection, progress=progress)._asdict()


def _index(collection: Collection, _: Job, progress: JobProgress) -> dict[str, Any]:
    from wsabie.catalogue import item_index

    return {made.similarity: made.facts for made in item_index.index_items(collection, progress=progress)}


WORK: dict[str, Callable[[Collection, Job, JobProgress], dict[str, Any]]] = {
    "scan": _scan,
    "train": _train,
    "apply": _apply,
    "tidy": _tidy,
    "compare": _compare,
    "map": _map,
    "index": _index,
}
"""What is done for each kind of job, and what it leaves as its result."""
