"""Routes of the map: projections, positions of labels, and positions and colours of items as bytes.

All numbers are little-endian. Positions: a uint32 n, then n uint32 (the difference from each item id to the next),
then n pairs of uint16, x and y within the box (0 and 65,535 are its sides). Colours: n, n differences, n bytes.
Differences are mostly 1, so that they compress to almost nothing.
"""

import gzip
import hashlib
from collections.abc import Callable
from typing import Annotated

import numpy as np
from fastapi import Query, Request, Response

from wsabie.collection.db.cache import FileCache
from wsabie.collection.folder.collection import Collection
from wsabie.collection.maps import item_map
from wsabie.core.arrays import Array, Float32, Int64
from wsabie.core.json_conversion import JsonObject
from wsabie.server import collection_schemas as schemas
from wsabie.server.problems import Problem
from wsabie.server.request_headers import can_gzip, has_current_copy
from wsabie.server.routing import API, OpenCollection, limit_results, make_router

router = make_router("map", f"{API}/map")

MapMethod = Annotated[item_map.Method, Query(description="Principal components, or UMAP where a job has made it.")]
MapVersion = Annotated[str | None, Query(max_length=100, description="Version of the map; 409 if the map has changed.")]
_BYTES_RESPONSE: dict[int | str, JsonObject] = {200: {"content": {"application/octet-stream": {}}}}
_GRID_SIDE = 65_535
_CACHE_SIZE = 2  # maps of a collection: PCA and UMAP
_position_cache = FileCache[bytes](2 * _CACHE_SIZE)  # plain and compressed


@router.get("", response_model=schemas.MapStatus)
def get_map(collection: OpenCollection, method: MapMethod = "pca") -> JsonObject:
    """Return the state of the map of the model in use; a job of kind `map` computes UMAP."""
    projection = item_map.build_map(collection, method)
    return projection._asdict() | {
        "model": projection.loaded_model.id,
        "points": len(projection.items),
        "box": compute_box(projection.coordinates),
        "projections": item_map.list_projections(collection),
    }


@router.get("/points", response_class=Response, responses=_BYTES_RESPONSE)
def get_item_positions(
    collection: OpenCollection, request: Request, method: MapMethod = "pca", version: MapVersion = None
) -> Response:
    """Return item ids and positions as bytes: n, n differences of ids, n pairs within the box."""
    projection = _build_requested_map(collection, method, version)

    def pack(compress: bool) -> bytes:
        make = (lambda: _compress(pack(False))) if compress else (lambda: pack_positions(projection))
        return _position_cache.get((projection.version, compress), make)

    return _answer_bytes(request, projection.version, pack)


@router.get("/labels", response_model=schemas.LabelPositions)
def list_label_positions(
    collection: OpenCollection,
    k: Annotated[int, limit_results(500)],
    method: MapMethod = "pca",
    version: MapVersion = None,
) -> JsonObject:
    """List labels in the plane, each in the middle of the items that it fits best."""
    projection = _build_requested_map(collection, method, version)
    return {"version": projection.version, "labels": item_map.place_labels(collection, projection, k)}


@router.get("/label", response_class=Response, responses=_BYTES_RESPONSE)
def get_item_colours(
    collection: OpenCollection, request: Request, label: Annotated[str, Query(min_length=1, max_length=500)]
) -> Response:
    """Return colours of items for a label: 1 rejected, 2 accepted, 3 to 255 by suggested probability."""
    content = pack_values(*item_map.colour_items(collection, label))
    version = hashlib.sha256(content).hexdigest()[:16]
    return _answer_bytes(request, version, lambda compress: _compress(content) if compress else content)


def compute_box(coordinates: Float32) -> schemas.Box:
    """Return the smallest square around the points, or a unit square if there are none.

    Examples
    --------
    >>> compute_box(np.array([[0, 0], [4, 2]], np.float32))
    Box(x=0.0, y=-1.0, side=4.0)
    """
    if not len(coordinates):
        return schemas.Box(x=0, y=0, side=1)
    low, high = coordinates.min(axis=0).astype(float), coordinates.max(axis=0).astype(float)
    side = float((high - low).max()) or 1.0
    x, y = (low + high - side) / 2
    return schemas.Box(x=x, y=y, side=side)


def pack_values(ids: Int64, values: Array) -> bytes:
    """Pack ascending ids, as differences, and then their values.

    Examples
    --------
    >>> pack_values(np.array([5, 7]), np.array([1, 2], np.uint8)).hex(" ", 4)
    '0200 00000500 00000200 00000102'
    """
    steps = np.diff(ids, prepend=0).astype("<u4")
    return np.array([len(ids)], "<u4").tobytes() + steps.tobytes() + np.ascontiguousarray(values).tobytes()


def pack_positions(projection: item_map.Map) -> bytes:
    """Pack the positions of a map."""
    box = compute_box(projection.coordinates)
    within_box = (projection.coordinates - np.array([box.x, box.y])) * (_GRID_SIDE / box.side)
    return pack_values(projection.items, np.clip(np.rint(within_box), 0, _GRID_SIDE).astype("<u2"))


def _build_requested_map(collection: Collection, method: item_map.Method, version: str | None) -> item_map.Map:
    """Build the current map; refuse a request for another version."""
    projection = item_map.build_map(collection, method)
    if version not in (None, projection.version):
        raise Problem(409, "the map has changed; load it again")
    return projection


def _compress(content: bytes) -> bytes:
    return gzip.compress(content, 1, mtime=0)


def _answer_bytes(request: Request, version: str, pack: Callable[[bool], bytes]) -> Response:
    """Answer with cacheable bytes, built only if needed, and compressed if the client takes gzip."""
    tag = f'"{version}"'
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "accept-encoding"}
    if has_current_copy(request, tag):
        return Response(status_code=304, headers=headers)
    headers |= {"content-encoding": "gzip"} if can_gzip(request) else {}
    return Response(pack(can_gzip(request)), media_type="application/octet-stream", headers=headers)
