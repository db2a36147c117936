"""Routes of the review: decisions, accepting all above a probability, undo and the journal."""

from typing import Annotated

from fastapi import APIRouter, Query

from wsabie.collection.db import journal
from wsabie.collection.learning import suggestion_review
from wsabie.server.dependencies import (
    API,
    OpenCollection,
    ReaderDependency,
    ServiceContextDependency,
    WriterDependency,
    check_result_count,
)
from wsabie.server.routes.request_validation import StrictRoute
from wsabie.server.schemas import collection_schemas as schemas

router = APIRouter(prefix=API, tags=["review"], route_class=StrictRoute)


@router.post("/decisions")
def decide_items(
    request: schemas.DecisionsRequest, collection: OpenCollection, caller: WriterDependency
) -> schemas.DecisionResult:
    """Decide which labels fit items, as one entry of the journal; new labels are created."""
    decisions = [
        suggestion_review.ReviewDecision(decision.item, decision.label, decision.state, decision.region)
        for decision in request.decisions
    ]
    result = suggestion_review.review_items(collection, decisions, by=caller.name)
    counts = result.decided
    return schemas.DecisionResult(
        entry=result.entry, added=counts.added, changed=counts.changed, removed=counts.removed
    )


@router.get("/decisions/above")
def count_suggestions_above(
    collection: OpenCollection,
    _: ReaderDependency,
    probability: Annotated[float, Query(gt=0, le=1, allow_inf_nan=False)],
    label: Annotated[str | None, Query(max_length=500)] = None,
) -> schemas.Count:
    """Count the waiting suggestions from a probability on."""
    return schemas.Count(count=suggestion_review.count_suggestions_above(collection, probability, label))


@router.post("/decisions/above")
def accept_suggestions_above(
    request: schemas.AcceptAboveRequest, collection: OpenCollection, caller: WriterDependency
) -> schemas.DecisionResult:
    """Accept all suggestions from a probability on, as one entry of the journal."""
    result = suggestion_review.accept_suggestions_above(collection, request.probability, request.label, by=caller.name)
    return schemas.DecisionResult(entry=result.entry, added=result.decided.added, changed=result.decided.changed)


@router.get("/journal")
def list_journal_entries(
    collection: OpenCollection,
    context: ServiceContextDependency,
    _: ReaderDependency,
    k: Annotated[int, Query(ge=1)] = 50,
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> schemas.JournalPage:
    """List entries of the journal, newest first."""
    entries = journal.read_history(collection.engine, check_result_count(k, context), before)
    return schemas.JournalPage(entries=[schemas.JournalEntry(**entry._asdict()) for entry in entries])


@router.post("/undo")
def undo_entry(
    request: schemas.UndoRequest, collection: OpenCollection, caller: WriterDependency
) -> schemas.UndoResult:
    """Undo an entry of the journal; without one, your own last entry."""
    return schemas.UndoResult(
        undone=schemas.JournalEntry(**journal.undo_entry(collection.engine, request.entry, by=caller.name)._asdict())
    )
