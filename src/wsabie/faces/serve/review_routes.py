"""Routes of what people decide: accept, reject, accept all above, undo, the journal."""

from typing import Annotated

from fastapi import APIRouter, Query

from wsabie.catalogue import journal, reviewing
from wsabie.faces.serve import collection_answers as told
from wsabie.faces.serve.context import API, Open, Reader, The, Writer, within
from wsabie.faces.serve.parameters import StrictRoute

router = APIRouter(prefix=API, tags=["review"], route_class=StrictRoute)


@router.post("/decisions")
def decide(asked: told.DecisionsAsked, at: Open, who: Writer) -> told.DecidedSeen:
    """Decide which labels fit items, as one entry of the journal; labels that are new are made."""
    wanted = [reviewing.Wanted(one.item, one.label, one.state, one.region) for one in asked.decisions]
    done = reviewing.review(at, wanted, by=who.name)
    counts = done.decided
    return told.DecidedSeen(entry=done.entry, added=counts.added, changed=counts.changed, removed=counts.removed)


@router.get("/decisions/above")
def count_above(
    at: Open,
    _: Reader,
    probability: Annotated[float, Query(gt=0, le=1, allow_inf_nan=False)],
    label: Annotated[str | None, Query(max_length=500)] = None,
) -> told.Count:
    """How many suggestions wait from a probability on."""
    return told.Count(count=reviewing.count_above(at, probability, label))


@router.post("/decisions/above")
def accept_above(asked: told.AboveAsked, at: Open, who: Writer) -> told.DecidedSeen:
    """Accept them all, as one entry of the journal."""
    done = reviewing.accept_above(at, asked.probability, asked.label, by=who.name)
    return told.DecidedSeen(entry=done.entry, added=done.decided.added, changed=done.decided.changed)


@router.get("/journal")
def lines(
    at: Open,
    the: The,
    _: Reader,
    k: Annotated[int, Query(ge=1)] = 50,
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> told.Journal:
    """What was done, last first."""
    found = journal.history(at.engine, within(k, the), before)
    return told.Journal(entries=[told.EntrySeen(**one._asdict()) for one in found])


@router.post("/undo")
def undo(asked: told.UndoAsked, at: Open, who: Writer) -> told.Undone:
    """Put back what an entry changed; without one, your own last."""
    return told.Undone(undone=told.EntrySeen(**journal.undo(at.engine, asked.entry, by=who.name)._asdict()))
