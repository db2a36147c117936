"""The route of what was decided: annotations, a page at a time."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from wsabie.catalogue import decided
from wsabie.faces.serve.collection_answers import AnnotationSeen
from wsabie.faces.serve.context import API, Open, Reader, The, within

router = APIRouter(prefix=API, tags=["review"])

Number = Annotated[int | None, Query(ge=1, lt=2**63)]
Text = Annotated[str | None, Query(max_length=500)]


class DecidedOne(AnnotationSeen):
    """An annotation with its item."""

    id: int
    item: int
    path: str


class Decided(BaseModel):
    """A page of them."""

    annotations: list[DecidedOne]
    next: str | None = Field(description="The cursor of the page after; null: this was the last.")


@router.get("/annotations")
def listed(
    the: The,
    at: Open,
    _: Reader,
    item: Number = None,
    label: Text = None,
    state: Literal["accepted", "rejected"] | None = None,
    origin: Literal["person", "import", "model"] | None = None,
    by: Text = None,
    model: Number = None,
    since: Text = None,
    until: Text = None,
    cursor: Annotated[str | None, Query(max_length=5000)] = None,
    k: Annotated[int, Query(ge=1)] = 100,
) -> Decided:
    """What was decided, newest first, a page at a time."""
    sought = decided.Sought(item, label, state, origin, by, model, since, until)
    page = decided.page(at, sought, cursor=cursor, limit=min(within(k, the), decided.LARGEST))
    return Decided(annotations=[DecidedOne(**one._asdict()) for one in page.annotations], next=page.next_cursor)
