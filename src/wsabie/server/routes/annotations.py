"""Route of annotations, a page at a time."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from wsabie.collection.annotations import annotation_list
from wsabie.server.dependencies import (
    API,
    OpenCollection,
    ReaderDependency,
    ServiceContextDependency,
    check_result_count,
)
from wsabie.server.schemas.collection_schemas import Annotation

router = APIRouter(prefix=API, tags=["review"])

Number = Annotated[int | None, Query(ge=1, lt=2**63)]
Text = Annotated[str | None, Query(max_length=500)]


class ItemAnnotation(Annotation):
    """Annotation with its item."""

    id: int
    item: int
    path: str


class AnnotationPage(BaseModel):
    """Page of annotations."""

    annotations: list[ItemAnnotation]
    next: str | None = Field(description="The cursor of the page after; null: this was the last.")


@router.get("/annotations")
def list_annotations(
    context: ServiceContextDependency,
    collection: OpenCollection,
    _: ReaderDependency,
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
) -> AnnotationPage:
    """List annotations, newest first, a page at a time."""
    filters = annotation_list.AnnotationFilter(item, label, state, origin, by, model, since, until)
    page = annotation_list.read_annotation_page(
        collection, filters, cursor=cursor, limit=min(check_result_count(k, context), annotation_list.LARGEST)
    )
    return AnnotationPage(
        annotations=[ItemAnnotation(**annotation._asdict()) for annotation in page.annotations], next=page.next_cursor
    )
