"""Routes of items: pages, details, pictures, annotation, similar items, and search."""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from io import FileIO
from typing import Annotated, Literal

from fastapi import Query, Request, Response, UploadFile
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from wsabie.collection.db.cursors import MAX_PAGE_SIZE
from wsabie.collection.db.database import begin_snapshot
from wsabie.collection.folder.collection import Collection
from wsabie.collection.items import item_files, item_pages, thumbnails
from wsabie.collection.items.filters import ItemFilter
from wsabie.collection.registry.item_index import find_nearest_items, find_similar_items
from wsabie.collection.search import text_search
from wsabie.core.json_conversion import JsonObject
from wsabie.features.images.image_decoder import detect_media_type
from wsabie.server import schemas
from wsabie.server.inference import cut_region, draw_heat_map, extract_row, rank_labels, read_picture
from wsabie.server.problems import Problem
from wsabie.server.request_headers import check_range, has_current_copy
from wsabie.server.routes.model import PNG, RankingParameters, Region
from wsabie.server.routing import Context, OpenCollection, PathId, limit_results, make_router

router = make_router("items")
search_router = make_router("search")
Content = Annotated[str | None, Query(max_length=100, description="Begin of the item's hash, which changes with it.")]
ItemLimit = Annotated[int, limit_results(24)]
Conditions = Annotated[schemas.ItemConditions, Query()]
SearchText = Annotated[str, Query(max_length=1000)]
ItemPath = Annotated[str, Query(max_length=5000, description="Within the collection, with /.")]
ItemHitSequence = Sequence[tuple[int, str | None, float | None]]
"""Items by id, each with the label that it matched and its score."""
_BROWSER_TYPES = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/avif")
"""Media types that browsers show."""
_YEAR_10000 = 253_402_300_800
_SANDBOX = {"content-security-policy": "default-src 'none'; sandbox"}
_log = logging.getLogger("wsabie.serve")


class ItemFileResponse(FileResponse):
    """Response with an open file that is not trusted; a sandbox keeps browsers from running it."""

    def __init__(
        self, stream: FileIO, media_type: str, filename: str | None = None, headers: Mapping[str, str] = _SANDBOX
    ) -> None:
        self.stream, status = stream, os.fstat(stream.fileno())
        if not 0 <= status.st_mtime < _YEAR_10000:  # a time that no header can express
            status = os.stat_result((*status[:8], 0, 0))
        content: JsonObject = {"media_type": media_type, "filename": filename, "stat_result": status}
        super().__init__(item_files.get_stream_path(stream), headers=headers, **content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        n_bytes, has_started = 0, False

        async def send_whole(message: Message) -> None:
            nonlocal n_bytes, has_started
            if message["type"] == "http.response.start":
                n_bytes = int(dict(message["headers"])[b"content-length"])
            elif scope["method"] != "HEAD":
                n_bytes -= len(message["body"])
                if n_bytes < 0 or (n_bytes and not message.get("more_body", False)):
                    raise OSError("its size changed")
                has_started = True
            await send(message)

        with self.stream:
            try:
                await super().__call__(scope, receive, send_whole)
            except (OSError, RuntimeError) as error:
                _log.warning("a file changed while it was sent, and the connection is closed: %s", error)
                if not has_started:  # the head waits for the first part (`RequestStages`)
                    await Problem(404, "the file changed or went away while it was read; ask again").send(send)


@router.get("/items")
def list_items(
    collection: OpenCollection, k: Annotated[int, limit_results(100)], query: Annotated[schemas.ItemQuery, Query()]
) -> item_pages.ItemPage:
    """List items that pass a filter, a page at a time."""
    paging = query.model_dump(include={"sort", "descending", "cursor"})
    return item_pages.read_item_page(collection, make_filter(query), **paging, limit=min(k, MAX_PAGE_SIZE))


def make_filter(conditions: schemas.ItemConditions) -> ItemFilter:
    """Return the filter of a request."""
    ids = None if conditions.ids is None else tuple(map(int, conditions.ids.split(",")))
    names = ItemFilter.__dataclass_fields__.keys() - {"ids"}
    return ItemFilter(**conditions.model_dump(include=names), ids=ids)


@router.get("/items/{item}")
def get_item(item: PathId, collection: OpenCollection) -> item_pages.ItemDetails:
    """Return an item with its annotations and suggestions."""
    return item_pages.read_item_details(collection, item)


@router.get("/items/{item}/thumbnail", response_class=FileResponse, responses={200: {"content": {"image/webp": {}}}})
def get_thumbnail(
    item: PathId, collection: OpenCollection, request: Request, size: Literal["256", "1024"] = "256", v: Content = None
) -> Response:
    """Return a thumbnail as WebP. It never changes, since its address depends on the content of the item."""
    path = thumbnails.make_thumbnail(collection, item, int(size))
    tag = f'"{path.stem}"'  # names the content
    headers = {"cache-control": "private, max-age=31536000, immutable", "etag": tag}
    if has_current_copy(request, tag):
        return Response(status_code=304, headers=headers)
    try:
        stream = FileIO(path)
    except FileNotFoundError as error:
        raise Problem(404, "the small picture was removed before it was sent; ask again") from error
    with ExitStack() as stack:
        response = ItemFileResponse(stack.enter_context(stream), "image/webp", headers=headers)
        check_range(request, response)
        stack.pop_all()  # the response closes it
    return response


@router.get("/items/{item}/file", response_class=FileResponse)
def get_original(item: PathId, collection: OpenCollection, context: Context, request: Request) -> Response:
    """Return the file itself; browsers save types that they cannot show safely."""
    item_file = item_files.find_item_file(collection, item)
    with ExitStack() as stack:
        stream = stack.enter_context(item_files.open_item_file(item_file))
        media_type = detect_media_type(item_files.get_stream_path(stream), max_pixels=context.limits.pixels)
        is_shown = media_type in _BROWSER_TYPES
        form = (media_type, None) if is_shown else ("application/octet-stream", item_file.path.name)
        response = ItemFileResponse(stream, *form)
        check_range(request, response)
        stack.pop_all()  # the response closes it
    return response


@router.get("/items/{item}/heat", response_class=Response, responses=PNG)
def get_heat_map(
    item: PathId, collection: OpenCollection, context: Context, label: Annotated[str, Query(max_length=500)]
) -> Response:
    """Show the region of a label: the picture with a heat map over it, as PNG."""
    with item_files.hold_item_file(collection, item) as path:
        content = draw_heat_map(context.model.get_version().annotator, path, label)
    return Response(content, media_type="image/png", headers={"cache-control": "private, max-age=300"})


@router.get("/items/{item}/annotate")
def annotate_item(
    item: PathId, collection: OpenCollection, context: Context, options: RankingParameters
) -> schemas.AnnotateResponse:
    """Rank labels for an item, or for a region of it, with the model in use."""
    version = context.model.get_version()
    extractor = None if options.region is not None else version.annotator.extractor
    modality = extractor.modality if extractor else "pictures"
    with item_files.hold_item_file(collection, item) as file:
        X = extract_row(version.annotator, cut_region(file, options.region), modality)
    return rank_labels(version, X, options.k, options.min_precision)


@router.get("/annotate/path")
def annotate_item_by_path(
    path: ItemPath, collection: OpenCollection, context: Context, options: RankingParameters
) -> schemas.AnnotateResponse:
    """Rank labels for an item with this path."""
    return annotate_item(item_files.find_item_by_path(collection, path), collection, context, options)


@router.get("/items/{item}/similar")
def find_similar(item: PathId, collection: OpenCollection, k: ItemLimit) -> schemas.ItemHits:
    """Find similar items with the model in use."""
    item_pages.read_item_details(collection, item)
    hits = [(neighbour.item, None, neighbour.score) for neighbour in find_similar_items(collection, item, k)]
    return schemas.ItemHits(items=serialize_hit_groups(collection, [hits])[0])


def serialize_hit_groups(collection: Collection, groups: Sequence[ItemHitSequence]) -> list[list[schemas.ScoredItem]]:
    """Convert groups of search hits with one read of the database; items that are gone are left out."""
    item_ids = sorted({item_id for hits in groups for item_id, _, _ in hits})
    items = {item.id: vars(item) for item in item_pages.read_items_by_id(collection, item_ids)}

    def serialize(hits: ItemHitSequence) -> list[schemas.ScoredItem]:
        return [schemas.ScoredItem(**items[n], label=label, score=score) for n, label, score in hits if n in items]

    return list(map(serialize, groups))


@search_router.get("/search", response_model=schemas.SearchResult)
def search_by_words(
    collection: OpenCollection, context: Context, text: SearchText, k: ItemLimit, conditions: Conditions
) -> JsonObject:
    """Find items by labels or other words, among those that pass a filter; `-word` excludes."""
    with begin_snapshot(collection.engine):
        result = text_search.search_items(collection, text, k, context.label_knowledge, make_filter(conditions))
        item_groups = serialize_hit_groups(collection, [group.hits for group in result.groups])
    groups, query = zip(result.groups, item_groups, strict=True), result.query
    return {
        "labels": list(query.labels.values()),
        "excluded": [*query.excluded.values(), *query.excluded_phrases],
        "notes": query.notes,
        "groups": [group._asdict() | {"items": items} for group, items in groups if items],
    }


@search_router.post("/search/picture", response_model=schemas.PictureSearchResult)
def search_by_picture(
    file: UploadFile, collection: OpenCollection, context: Context, k: ItemLimit, region: Region = None
) -> JsonObject:
    """Find items similar to an uploaded picture, or to a region of it, and its labels."""
    version = context.model.get_version()
    row = extract_row(version.annotator, cut_region(read_picture(file, context.limits), region))
    labels = rank_labels(version, row, min(10, k)).results[0].labels
    point = version.annotator.model.transform(row)[0]
    model = None if version.loaded_model is None else version.loaded_model.id
    hits = [(near.item, None, near.score) for near in find_nearest_items(collection, [point], k, model=model)[0]]
    return {"items": serialize_hit_groups(collection, [hits])[0], "labels": labels}
