"""Routes of a collection as a whole: how it stands, its labels, its models, its jobs."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from wsabie.base.errors import WsabieError
from wsabie.catalogue import completing, item_index, jobs, planning, shelf, standing, vocabulary
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.facets import facets
from wsabie.catalogue.points import opened_model
from wsabie.catalogue.probability import PRECISIONS
from wsabie.faces.serve import collection_answers as told
from wsabie.faces.serve.context import API, Open, Reader, The, Writer, role_of, within
from wsabie.faces.serve.parameters import StrictRoute

router = APIRouter(prefix=API, tags=["collection"], route_class=StrictRoute)

Id = Annotated[int, Path(ge=1, lt=2**63)]
_EVERY = 0.5  # seconds between two looks at a job
_STREAMED = 5.0  # seconds of a stream: browsers ask again, and a service that is to stop need not wait for longer


@router.get("/collection")
def whole(at: Open, the: The, who: Reader) -> told.CollectionSeen:
    """How it stands: items, labels, decisions, suggestions that wait, the model in use."""
    found = standing.standing(at)
    count = {state: sum(one.annotations for one in found.annotations if one.state == state) for state in _STATES}
    model = next((one for one in shelf.on_shelf(at) if one.in_use), None)
    return told.CollectionSeen(
        folder=str(at.folder),
        role=role_of(who, the),
        items=found.items,
        labels=found.labels,
        accepted=count["accepted"],
        rejected=count["rejected"],
        suggestions=found.suggestions,
        model=None if model is None else _model(model).model_dump(),
        thresholds=[] if model is None else _thresholds(at),
        index=None if model is None else _index(at, model, found.items["present"]),
    )


@router.get("/facets")
def counts(at: Open, _: Reader) -> told.FacetsSeen:
    """Folders and labels with how many items they have."""
    found = facets(at)
    return told.FacetsSeen(
        folders=[told.FolderCount(**one._asdict()) for one in found.folders],
        labels=[told.LabelCount(**one._asdict()) for one in found.labels],
    )


@router.get("/labels")
def complete(
    at: Open,
    the: The,
    _: Reader,
    start: Annotated[str, Query(max_length=500)] = "",
    k: Annotated[int, Query(ge=1)] = 20,
) -> told.Completions:
    """Labels of which a name begins so, in any language."""
    found = completing.complete(at, start, within(k, the))
    return told.Completions(labels=[told.Completion(**one._asdict()) for one in found])


@router.get("/vocabulary")
def labels(
    at: Open,
    the: The,
    _: Reader,
    containing: Annotated[str, Query(max_length=500)] = "",
    order: Literal["items", "name", "right"] = "items",
    k: Annotated[int, Query(ge=1)] = 100,
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    below: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> told.LabelsSeen:
    """Labels with their figures; `below`: those right below one, or (0) the topmost of those that have some below."""
    found = vocabulary.listed(at, containing=containing, order=order, k=within(k, the), after=after, below=below)
    return told.LabelsSeen(total=found.found, labels=[told.LabelWhole(**one._asdict()) for one in found.labels])


@router.get("/models")
def models(at: Open, _: Reader) -> told.ModelsSeen:
    """Models that can be used, last first; the way back to the one before, and how the next one would be made."""
    return _models(at)


@router.get("/models/{model}")
def model(model: Id, at: Open, _: Reader) -> told.ModelWhole:
    """A model and how its training went."""
    one = shelf.shelved(at, model)
    return told.ModelWhole(**_model(one).model_dump(), curve=one.facts.get("curve", []))


@router.post("/models/{model}/use")
def use(model: Id, at: Open, who: Writer) -> told.ModelsSeen:
    """Put a model into use; requests that run end with the one before."""
    shelf.use(at, model, by=who.name)
    return _models(at)


@router.get("/jobs")
def all_jobs(at: Open, _: Reader) -> told.JobsSeen:
    """Jobs, last first."""
    found = (_job(one) for one in jobs.listed(at))
    return told.JobsSeen(jobs=[_without_curve(one) if one.state in jobs.FINAL else one for one in found])


@router.post("/jobs")
def ask(asked: told.JobAsked, at: Open, who: Writer) -> told.JobSeen:
    """Ask for a scan, a training, a look at new items, or a comparison; it runs when those before have ended."""
    return _job(jobs.ask(at, asked.kind, asked.options, by=who.name))


@router.get("/jobs/{job}")
def one_job(job: Id, at: Open, _: Reader) -> told.JobSeen:
    """A job as it is now."""
    return _job(jobs.job(at, job))


@router.post("/jobs/{job}/stop")
def stop(job: Id, at: Open, _: Writer) -> told.JobSeen:
    """End a job; what it has written down stays."""
    return _job(jobs.stop(at, job))


@router.get(
    "/jobs/{job}/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}}
)
async def events(job: Id, at: Open, request: Request, _: Reader) -> Any:
    """The job whenever it changes, as server-sent events, until it has ended."""
    first = await run_in_threadpool(jobs.job, at, job)

    async def told_on() -> AsyncIterator[str]:
        now, last, until = first, "", time.monotonic() + _STREAMED
        yield f"retry: {int(1000 * _EVERY)}\n\n"
        while time.monotonic() < until and not await request.is_disconnected():
            line = json.dumps(_job(now).model_dump(), ensure_ascii=False)
            if line != last:
                last = line
                yield f"event: job\ndata: {line}\n\n"
            if now.state in jobs.FINAL:
                return
            await asyncio.sleep(_EVERY)
            try:
                now = await run_in_threadpool(jobs.job, at, job)
            except WsabieError:  # it has begun to answer, and can only end: browsers ask again, and are told why
                return

    return StreamingResponse(told_on(), media_type="text/event-stream", headers={"cache-control": "no-store"})


_STATES = ("accepted", "rejected")


def _thresholds(at: Collection) -> list[told.Threshold]:
    """Of the model in use; none where it cannot be opened, of which the routes that need it tell."""
    try:
        opened = opened_model(at)
        return [told.Threshold(precision=p, probability=opened.threshold(p).common) for p in PRECISIONS]
    except WsabieError:
        return []


def _index(at: Collection, model: shelf.Shelved, n_items: int) -> told.IndexSeen:
    return told.IndexSeen(**item_index.index_standing(at.models / model.folder, n_items)._asdict())


def _job(one: jobs.Job) -> told.JobSeen:
    return told.JobSeen(**one._asdict())


def _without_curve(one: told.JobSeen) -> told.JobSeen:
    """Of a training that has ended the model tells how it went."""
    return one.model_copy(update={"progress": {k: v for k, v in one.progress.items() if k != "curve"}})


def _models(at: Collection) -> told.ModelsSeen:
    back = shelf.way_back(at)
    return told.ModelsSeen(
        models=[_model(one) for one in shelf.on_shelf(at)],
        removed=shelf.removed(at),
        back=back and told.WayBack(**back._asdict()),
        outlook=told.Outlook(**planning.outlook(at)._asdict()),
    )


def _model(one: shelf.Shelved) -> told.ModelSeen:
    facts = {name: value for name, value in one.facts.items() if name != "curve"}
    given = one._asdict() | {"id": one.number, "facts": facts}
    return told.ModelSeen(**given)
