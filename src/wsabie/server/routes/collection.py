"""Routes of a collection as a whole: its status, models and jobs."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from fastapi import Request
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from wsabie.collection import overview
from wsabie.collection.folder.collection import Collection
from wsabie.collection.jobs import queue
from wsabie.collection.learning import retrain_plan
from wsabie.collection.registry import item_index, model_registry
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.collection.registry.thresholds import PRECISIONS
from wsabie.core.errors import WsabieError
from wsabie.core.json_conversion import JsonObject
from wsabie.features.encoders.encoder_list import ENCODERS
from wsabie.features.encoders.encoder_store import is_encoder_installed
from wsabie.server import collection_schemas as schemas
from wsabie.server.problems import name_pages
from wsabie.server.routing import Context, OpenCollection, PathId, Reader, Writer, get_role, make_router

router = make_router("collection")

_STATES = ("accepted", "rejected")
_POLL_INTERVAL = 0.5  # seconds between two checks of a job
_EVENT_STREAM: dict[int | str, JsonObject] = {200: {"content": {"text/event-stream": {}}}}
_job_adapter = TypeAdapter(queue.Job)
_STREAM_SECONDS = 5.0  # seconds of a stream; browsers reconnect, and a stopping service need not wait longer


@router.get("/collection", response_model=schemas.CollectionStatus)
def get_status(collection: OpenCollection, context: Context, caller: Reader) -> JsonObject:
    """Return the status: items, labels, decisions, waiting suggestions and the model in use."""
    summary = overview.read_status(collection)
    model = next((model for model in model_registry.list_models(collection) if model.in_use), None)
    return summary._asdict() | {
        **{state: sum(n.annotations for n in summary.annotations if n.state == state) for state in _STATES},
        "folder": str(collection.folder),
        "role": get_role(caller, context),
        "model": model,
        "thresholds": [] if model is None else _read_thresholds(collection),
        "index": model and item_index.read_index_status(collection.models / model.folder, summary.items["present"]),
    }


@router.get("/facets")
def get_facets(collection: OpenCollection) -> overview.Facets:
    """Return folders and labels with their numbers of items."""
    return overview.read_facets(collection)


@router.get("/models", response_model=schemas.ModelList)
def list_models(collection: OpenCollection) -> JsonObject:
    """List usable models, newest first, the rollback, a forecast of the next training and encoders."""
    return {
        "models": model_registry.list_models(collection),
        "removed": model_registry.list_removed_models(collection),
        "rollback": model_registry.find_rollback(collection),
        "forecast": retrain_plan.forecast_training(collection),
        "encoders": [encoder.name for encoder in ENCODERS if is_encoder_installed(encoder)],
    }


@router.get("/models/{model}", response_model=schemas.ModelDetails)
def get_model(model: PathId, collection: OpenCollection) -> model_registry.ModelRecord:
    """Return a model and its training curve."""
    return model_registry.read_model(collection, model)


@router.post("/models/{model}/use", response_model=schemas.ModelList)
def use_model(model: PathId, collection: OpenCollection, caller: Writer) -> JsonObject:
    """Put a model into use; running requests end with the previous one."""
    model_registry.use_model(collection, model, by=caller.name)
    return list_models(collection)


def _name_pages(job: queue.Job) -> queue.Job:
    """Name pages in what a job tells people."""
    result = job.result
    if isinstance(result, dict) and "notes" in result:
        result = {**result, "notes": list(map(name_pages, result["notes"]))}
    return replace(job, error=job.error and name_pages(job.error), result=result)


@router.get("/jobs", response_model=schemas.JobList)
def list_jobs(collection: OpenCollection) -> JsonObject:
    """List jobs, newest first; the model of a training that has ended has its curve."""
    jobs = queue.list_jobs(collection)
    for job in jobs:
        if job.state in queue.FINAL:
            job.progress.pop("curve", None)
    return {"jobs": list(map(_name_pages, jobs))}


@router.post("/jobs")
def create_job(request: schemas.JobRequest, collection: OpenCollection, caller: Writer) -> queue.Job:
    """Queue a job, such as a scan or a training; it runs when earlier jobs have ended."""
    return _name_pages(queue.enqueue_job(collection, request.kind, request.options, by=caller.name))


@router.get("/jobs/{job}")
def get_job(job: PathId, collection: OpenCollection) -> queue.Job:
    """Return the current state of a job."""
    return _name_pages(queue.read_job(collection, job))


@router.post("/jobs/{job}/stop")
def stop_job(job: PathId, collection: OpenCollection, _: Writer) -> queue.Job:
    """Stop a job; what it has saved stays."""
    return _name_pages(queue.stop_job(collection, job))


@router.get("/jobs/{job}/events", response_class=StreamingResponse, responses=_EVENT_STREAM)
async def stream_job_events(job: PathId, collection: OpenCollection, request: Request) -> Response:
    """Send the job whenever it changes, as server-sent events, until it has ended."""
    first = await run_in_threadpool(queue.read_job, collection, job)

    async def send_events() -> AsyncIterator[str]:
        current, last, deadline = first, "", time.monotonic() + _STREAM_SECONDS
        yield f"retry: {int(1000 * _POLL_INTERVAL)}\n\n"
        while time.monotonic() < deadline and not await request.is_disconnected():
            line = _job_adapter.dump_json(_name_pages(current)).decode()
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


def _read_thresholds(collection: Collection) -> list[overview.PrecisionThreshold]:
    """Return the thresholds of the model in use, or none if it cannot be opened."""
    try:
        model = load_model_in_use(collection)
        return [overview.PrecisionThreshold(p, model.find_threshold(p).common) for p in PRECISIONS]
    except WsabieError:
        return []
