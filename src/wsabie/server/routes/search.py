"""Routes of search: by words, by an uploaded picture, or by a region of it."""

from typing import Annotated

from fastapi import APIRouter, Query, UploadFile

from wsabie.collection.db.database import begin_snapshot
from wsabie.collection.registry.item_embeddings import find_nearest_items
from wsabie.collection.search import text_search
from wsabie.server.dependencies import (
    API,
    OpenCollection,
    ReaderDependency,
    ServiceContextDependency,
    check_result_count,
)
from wsabie.server.inference import cut_region, extract_row, rank_labels
from wsabie.server.routes.model import Region, read_picture
from wsabie.server.schemas import collection_schemas as schemas
from wsabie.server.serializers import serialize_hit_groups, serialize_hits

router = APIRouter(prefix=API, tags=["search"])

ResultLimit = Annotated[int, Query(ge=1, description="Items, at most.")]


@router.get("/search")
def search_by_words(
    collection: OpenCollection,
    context: ServiceContextDependency,
    _: ReaderDependency,
    text: Annotated[str, Query(max_length=1000)],
    k: ResultLimit = 24,
) -> schemas.SearchResult:
    """Find items by labels in any language; `-label` excludes one, and related labels come last."""
    with begin_snapshot(collection.engine):
        result = text_search.search_items(collection, text, check_result_count(k, context), context.label_knowledge)
        item_groups = serialize_hit_groups(collection, [group.hits for group in result.groups])
    groups = [
        schemas.ResultGroup(labels=group.labels, why=group.why, score=group.score, items=items)
        for group, items in zip(result.groups, item_groups, strict=True)
        if items
    ]
    meaning = result.meaning
    return schemas.SearchResult(
        wanted=list(meaning.wanted.values()),
        unwanted=list(meaning.unwanted.values()),
        said=meaning.said,
        groups=groups,
    )


@router.post("/search/picture")
def search_by_picture(
    file: UploadFile,
    collection: OpenCollection,
    context: ServiceContextDependency,
    _: ReaderDependency,
    k: ResultLimit = 24,
    region: Region = None,
) -> schemas.PictureSearchResult:
    """Find items similar to an uploaded picture, or to a region of it, and its labels."""
    version = context.model.get_version()
    row = extract_row(version.annotator, cut_region(read_picture(file, context), region))
    labels = rank_labels(version, row, min(10, check_result_count(k, context)))[0].labels
    point = version.annotator.model.transform(row)[0]
    neighbours = find_nearest_items(
        collection, point, k, model=version.loaded_model.number if version.loaded_model else None
    )
    return schemas.PictureSearchResult(
        items=serialize_hits(collection, [(neighbour.item, None, neighbour.score) for neighbour in neighbours]),
        labels=labels,
    )
