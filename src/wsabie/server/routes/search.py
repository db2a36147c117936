"""Routes of search: by words, by an uploaded picture, or by a region of it."""

from typing import Annotated

from fastapi import Query, UploadFile

from wsabie.collection.db.database import begin_snapshot
from wsabie.collection.registry.item_index import find_nearest_items
from wsabie.collection.search import text_search
from wsabie.core.json_conversion import JsonObject
from wsabie.server import schemas
from wsabie.server.dependencies import Context, OpenCollection, limit_results
from wsabie.server.inference import cut_region, extract_row, rank_labels, read_picture
from wsabie.server.routes.items import serialize_hit_groups
from wsabie.server.routes.model import Region
from wsabie.server.strict_routes import make_router

router = make_router("search")


@router.get("/search", response_model=schemas.SearchResult)
def search_by_words(
    collection: OpenCollection,
    context: Context,
    text: Annotated[str, Query(max_length=1000)],
    k: Annotated[int, limit_results(24)],
) -> JsonObject:
    """Find items by labels in any language; `-label` excludes one, and related labels come last."""
    with begin_snapshot(collection.engine):
        result = text_search.search_items(collection, text, k, context.label_knowledge)
        item_groups = serialize_hit_groups(collection, [group.hits for group in result.groups])
    groups, meaning = zip(result.groups, item_groups, strict=True), result.meaning
    return {
        "labels": list(meaning.labels.values()),
        "excluded": list(meaning.excluded.values()),
        "notes": meaning.notes,
        "groups": [group._asdict() | {"items": items} for group, items in groups if items],
    }


@router.post("/search/picture", response_model=schemas.PictureSearchResult)
def search_by_picture(
    file: UploadFile,
    collection: OpenCollection,
    context: Context,
    k: Annotated[int, limit_results(24)],
    region: Region = None,
) -> JsonObject:
    """Find items similar to an uploaded picture, or to a region of it, and its labels."""
    version = context.model.get_version()
    row = extract_row(version.annotator, cut_region(read_picture(file, context.limits), region))
    labels = rank_labels(version, row, min(10, k)).results[0].labels
    point = version.annotator.model.transform(row)[0]
    model = None if version.loaded_model is None else version.loaded_model.id
    neighbours = find_nearest_items(collection, [point], k, model=model)[0]
    hits = [(near.item, None, near.score) for near in neighbours]
    return {"items": serialize_hit_groups(collection, [hits])[0], "labels": labels}
