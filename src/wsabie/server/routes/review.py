"""Routes of the review: annotations, decisions, accepting suggestions, undo and the journal."""

from typing import Annotated

from fastapi import Depends, Query

from wsabie.collection.annotations import annotation_pages, decisions
from wsabie.collection.db import journal
from wsabie.collection.db.cursors import MAX_PAGE_SIZE
from wsabie.collection.learning import suggestions
from wsabie.core.json_conversion import JsonObject
from wsabie.server import schemas
from wsabie.server.routing import OpenCollection, Writer, limit_results, make_router

router = make_router("review")

TextFilter = Annotated[str | None, Query(max_length=500)]


@router.get("/annotations")
def list_annotations(
    collection: OpenCollection,
    k: Annotated[int, limit_results(100)],
    criteria: Annotated[annotation_pages.AnnotationFilter, Depends()],
    cursor: Annotated[str | None, Query(max_length=5000)] = None,
) -> annotation_pages.AnnotationPage:
    """List annotations, newest first, a page at a time."""
    return annotation_pages.read_annotation_page(collection, criteria, cursor=cursor, limit=min(k, MAX_PAGE_SIZE))


@router.post("/decisions", response_model=schemas.DecisionResult)
def decide_items(
    request: schemas.DecisionsRequest, collection: OpenCollection, caller: Writer
) -> decisions.DecisionResult:
    """Decide which labels fit items, as one entry of the journal; new labels are created."""
    return decisions.review_items(collection, request.decisions, by=caller.name)


@router.get("/suggestions/count")
def count_suggestions(
    collection: OpenCollection,
    min_probability: Annotated[float, Query(gt=0, le=1, allow_inf_nan=False)],
    label: TextFilter = None,
) -> schemas.SuggestionCount:
    """Count the waiting suggestions from a probability on."""
    return schemas.SuggestionCount(count=suggestions.count_suggestions_above(collection, min_probability, label))


@router.post("/suggestions/accept", response_model=schemas.DecisionResult)
def accept_suggestions(
    request: schemas.AcceptRequest, collection: OpenCollection, caller: Writer
) -> decisions.DecisionResult:
    """Accept all suggestions from a probability on, as one entry of the journal."""
    return suggestions.accept_suggestions(collection, request.min_probability, request.label, by=caller.name)


@router.get("/journal", response_model=schemas.JournalPage)
def list_journal_entries(
    collection: OpenCollection,
    k: Annotated[int, limit_results(50)],
    before_id: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> JsonObject:
    """List entries of the journal, newest first."""
    return {"entries": journal.read_history(collection.engine, k, before_id)}


@router.post("/undo", response_model=schemas.UndoResult)
def undo_entry(request: schemas.UndoRequest, collection: OpenCollection, caller: Writer) -> JsonObject:
    """Undo an entry of the journal; without one, your own last entry."""
    return {"entry": journal.undo_entry(collection.engine, request.entry, by=caller.name)}
