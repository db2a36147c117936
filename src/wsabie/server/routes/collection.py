"""Routes of a collection as a whole: its status, labels, models and jobs."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from wsabie.collection.folder.collection import Collection
from wsabie.collection.jobs import queue
from wsabie.collection.labels import label_list
from wsabie.collection.learning import retrain_policy
from wsabie.collection.overview import label_completion, status
from wsabie.collection.overview.facets import read_facets
from wsabie.collection.registry import item_index, model_registry
from wsabie.collection.registry.item_embeddings import load_model_in_use
from wsabie.collection.registry.thresholds import PRECISIONS
from wsabie.core.errors import WsabieError
from wsabie.server.dependencies import (
    API,
    OpenCollection,
    ReaderDependency,
    ServiceContextDependency,
    WriterDependency,
    check_result_count,
    get_role,
)
from wsabie.server.routes.request_validation import StrictRoute
from wsabie.server.schemas import collection_schemas as schemas

router = APIRouter(prefix=API, tags=["collection"], route_class=StrictRoute)

Id = Annotated[int, Path(ge=1, lt=2**63)]
_POLL_INTERVAL = 0.5  # seconds between two checks of a job
_STREAM_SECONDS = 5.0  # seconds of a stream; browsers reconnect, and a stopping service need not wait longer


@router.get("/collection")
def get_status(
    collection: OpenCollection, context: ServiceContextDependency, caller: ReaderDependency
) -> schemas.CollectionStatus:
    """Return the status: items, labels, decisions, waiting suggestions and the model in use."""
    summary = status.read_status(collection)
    totals = {
        state: sum(count.annotations for count in summary.annotations if count.state == state) for state in _STATES
    }
    model = next((record for record in model_registry.list_models(collection) if record.in_use), None)
    return schemas.CollectionStatus(
        folder=str(collection.folder),
        role=get_role(caller, context),
        items=summary.items,
        labels=summary.labels,
        accepted=totals["accepted"],
        rejected=totals["rejected"],
        suggestions=summary.suggestions,
        model=None if model is None else _convert_model(model).model_dump(),
        thresholds=[] if model is None else _read_thresholds(collection),
        index=None if model is None else _read_index_status(collection, model, summary.items["present"]),
    )


@router.get("/facets")
def get_facets(collection: OpenCollection, _: ReaderDependency) -> schemas.Facets:
    """Return folders and labels with their numbers of items."""
    facets = read_facets(collection)
    return schemas.Facets(
        folders=[schemas.FolderCount(**folder._asdict()) for folder in facets.folders],
        labels=[schemas.LabelCount(**label._asdict()) for label in facets.labels],
    )


@router.get("/labels")
def complete_labels(
    collection: OpenCollection,
    context: ServiceContextDependency,
    _: ReaderDependency,
    start: Annotated[str, Query(max_length=500)] = "",
    k: Annotated[int, Query(ge=1)] = 20,
) -> schemas.Completions:
    """List labels with a name, in any language, that begins with `start`."""
    matches = label_completion.complete_label(collection, start, check_result_count(k, context))
    return schemas.Completions(labels=[schemas.Completion(**match._asdict()) for match in matches])


@router.get("/vocabulary")
def list_labels(
    collection: OpenCollection,
    context: ServiceContextDependency,
    _: ReaderDependency,
    containing: Annotated[str, Query(max_length=500)] = "",
    order: Literal["items", "name", "right"] = "items",
    k: Annotated[int, Query(ge=1)] = 100,
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    below: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> schemas.LabelPage:
    """List labels with their counts; `below`: children of one label, or (0) roots with children."""
    page = label_list.list_labels(
        collection, containing=containing, order=order, k=check_result_count(k, context), after=after, below=below
    )
    return schemas.LabelPage(
        total=page.found, labels=[schemas.LabelSummary(**label._asdict()) for label in page.labels]
    )


@router.get("/models")
def list_models(collection: OpenCollection, _: ReaderDependency) -> schemas.ModelList:
    """List usable models, newest first, with the rollback and a forecast of the next training."""
    return _read_models(collection)


@router.get("/models/{model}")
def get_model(model: Id, collection: OpenCollection, _: ReaderDependency) -> schemas.ModelDetails:
    """Return a model and its training curve."""
    record = model_registry.read_model(collection, model)
    return schemas.ModelDetails(**_convert_model(record).model_dump(), curve=record.facts.get("curve", []))


@router.post("/models/{model}/use")
def use_model(model: Id, collection: OpenCollection, caller: WriterDependency) -> schemas.ModelList:
    """Put a model into use; running requests end with the previous one."""
    model_registry.use_model(collection, model, by=caller.name)
    return _read_models(collection)


@router.get("/jobs")
def list_jobs(collection: OpenCollection, _: ReaderDependency) -> schemas.JobList:
    """List jobs, newest first."""
    jobs = (_convert_job(job) for job in queue.list_jobs(collection))
    return schemas.JobList(jobs=[_without_curve(job) if job.state in queue.FINAL else job for job in jobs])


@router.post("/jobs")
def create_job(request: schemas.JobRequest, collection: OpenCollection, caller: WriterDependency) -> schemas.JobStatus:
    """Queue a job, such as a scan or a training; it runs when earlier jobs have ended."""
    return _convert_job(queue.enqueue_job(collection, request.kind, request.options, by=caller.name))


@router.get("/jobs/{job}")
def get_job(job: Id, collection: OpenCollection, _: ReaderDependency) -> schemas.JobStatus:
    """Return the current state of a job."""
    return _convert_job(queue.read_job(collection, job))


@router.post("/jobs/{job}/stop")
def stop_job(job: Id, collection: OpenCollection, _: WriterDependency) -> schemas.JobStatus:
    """Stop a job; what it has saved stays."""
    return _convert_job(queue.stop_job(collection, job))


@router.get(
    "/jobs/{job}/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}}
)
async def stream_job_events(job: Id, collection: OpenCollection, request: Request, _: ReaderDependency) -> Any:
    """Send the job whenever it changes, as server-sent events, until it has ended."""
    first = await run_in_threadpool(queue.read_job, collection, job)

    async def send_events() -> AsyncIterator[str]:
        current, last, deadline = first, "", time.monotonic() + _STREAM_SECONDS
        yield f"retry: {int(1000 * _POLL_INTERVAL)}\n\n"
        while time.monotonic() < deadline and not await request.is_disconnected():
            line = json.dumps(_convert_job(current).model_dump(), ensure_ascii=False)
            if line != last:
                last = line
                yield f"event: job\ndata: {line}\n\n"
            if current.state in queue.FINAL:
                return
            await asyncio.sleep(_POLL_INTERVAL)
            try:
                current = await run_in_threadpool(queue.read_job, collection, job)
            except WsabieError:  # the stream can only end; browsers ask again and get the error
                return

    return StreamingResponse(send_events(), media_type="text/event-stream", headers={"cache-control": "no-store"})


_STATES = ("accepted", "rejected")


def _read_thresholds(collection: Collection) -> list[schemas.Threshold]:
    """Return the thresholds of the model in use, or none if it cannot be opened."""
    try:
        opened = load_model_in_use(collection)
        return [schemas.Threshold(precision=p, probability=opened.threshold(p).common) for p in PRECISIONS]
    except WsabieError:
        return []


def _read_index_status(collection: Collection, model: model_registry.ModelRecord, n_items: int) -> schemas.IndexStatus:
    return schemas.IndexStatus(**item_index.read_index_status(collection.models / model.folder, n_items)._asdict())


def _convert_job(job: queue.Job) -> schemas.JobStatus:
    return schemas.JobStatus(**job._asdict())


def _without_curve(job: schemas.JobStatus) -> schemas.JobStatus:
    """Drop the curve from the progress of an ended job, since its model has it."""
    return job.model_copy(update={"progress": {key: value for key, value in job.progress.items() if key != "curve"}})


def _read_models(collection: Collection) -> schemas.ModelList:
    rollback = model_registry.find_rollback(collection)
    return schemas.ModelList(
        models=[_convert_model(record) for record in model_registry.list_models(collection)],
        removed=model_registry.list_removed_models(collection),
        back=rollback and schemas.Rollback(**rollback._asdict()),
        outlook=schemas.RetrainForecast(**retrain_policy.forecast_training(collection)._asdict()),
    )


def _convert_model(record: model_registry.ModelRecord) -> schemas.ModelSummary:
    facts = {name: value for name, value in record.facts.items() if name != "curve"}
    fields = record._asdict() | {"id": record.number, "facts": facts}
    return schemas.ModelSummary(**fields)
