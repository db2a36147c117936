"""Routes of the map: which projections there are, points and colours as bytes, labels in the plane.

Points are little-endian: a uint32 n, then n uint32, the steps from one item's number to the next, then n pairs of
uint16, x and y within the box (0 and 65,535 are its sides). Colours: n, n steps, n bytes. Steps are mostly 1, so that
they cost next to nothing once they are compressed.
"""

import gzip
import hashlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from wsabie.base.arrays import Float32, Int64
from wsabie.catalogue import map_labels, maps
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.few import Few
from wsabie.faces.serve.context import API, Open, Reader, The, within
from wsabie.faces.serve.kept_copies import keeps, takes_gzip
from wsabie.faces.serve.problems import Problem

router = APIRouter(prefix=f"{API}/map", tags=["map"])

How = Annotated[Literal["pca", "umap"], Query(description="Principal components, or UMAP where a job has made it.")]
Version = Annotated[
    str | None, Query(max_length=100, description="Of the map that is meant; 409 where it is another by now.")
]
_BYTES: Any = {200: {"content": {"application/octet-stream": {}}}}
_SIDE = 65_535
_KEPT = 2  # as many as maps are
_packed, _small = Few[bytes](_KEPT), Few[bytes](_KEPT)


class Box(BaseModel):
    """The square that holds all points: its lowest x and y, and how long its sides are."""

    x: float
    y: float
    side: float


class ProjectionSeen(BaseModel):
    """A projection, and how it stands."""

    method: Literal["pca", "umap"]
    state: Literal["ready", "stale", "none", "not installed"] = Field(description="stale: items came since.")
    placed: int = Field(description="Items that came since and were put beside those that they are near to.")
    made: str | None


class MapSeen(BaseModel):
    """A map."""

    schema_: Annotated[Literal[1], Field(serialization_alias="schema")] = 1
    model: int
    method: Literal["pca", "umap"]
    version: str = Field(description="Changes when a point does.")
    points: int
    box: Box
    share: float | None = Field(description="Of the variance that the plane holds; null: there is no such figure.")
    projections: list[ProjectionSeen]


class LabelSeen(BaseModel):
    """A label in the plane."""

    id: int
    label: str
    x: float
    y: float
    accepted: int


class LabelsOnMap(BaseModel):
    """Labels in the plane, those with most items first."""

    version: str
    labels: list[LabelSeen]


@router.get("")
def about(at: Open, _: Reader, method: How = "pca") -> MapSeen:
    """How the map of the model in use stands; start UMAP by a job of the kind `map`."""
    drawn = maps.whole(at, method)
    return MapSeen(
        model=drawn.model,
        method=drawn.method,
        version=drawn.version,
        points=len(drawn.items),
        box=box_of(drawn.places),
        share=drawn.share,
        projections=[ProjectionSeen(**one._asdict()) for one in maps.projections(at)],
    )


@router.get("/points", response_class=Response, responses=_BYTES)
def points(at: Open, request: Request, _: Reader, method: How = "pca", version: Version = None) -> Any:
    """Numbers of items and where they lie: n, n steps of numbers, n pairs within the box."""
    drawn = _meant(at, method, version)

    def plain() -> bytes:
        return _packed.get(drawn.version, lambda: packed_points(drawn))

    return _answer(
        request, drawn.version, plain, lambda: _small.get(drawn.version, lambda: gzip.compress(plain(), 1, mtime=0))
    )


@router.get("/labels")
def labels(
    at: Open,
    the: The,
    _: Reader,
    method: How = "pca",
    k: Annotated[int, Query(ge=1)] = 500,
    version: Version = None,
) -> LabelsOnMap:
    """Labels in the plane, each in the middle of the items that it fits best."""
    drawn = _meant(at, method, version)
    found = map_labels.labels_at(at, drawn, within(k, the))
    seen = [LabelSeen(id=one.id, label=one.name, x=one.x, y=one.y, accepted=one.accepted) for one in found]
    return LabelsOnMap(version=drawn.version, labels=seen)


@router.get("/label", response_class=Response, responses=_BYTES)
def colour(at: Open, request: Request, _: Reader, label: Annotated[str, Query(min_length=1, max_length=500)]) -> Any:
    """What is known of items and a label: 1 rejected, 2 accepted, 3 to 255 suggested, the surer the higher."""
    found = map_labels.coloured(at, label)
    content = packed(found.items, found.codes)
    version = hashlib.sha256(content).hexdigest()[:16]
    return _answer(request, version, lambda: content, lambda: gzip.compress(content, 1, mtime=0))


def box_of(places: Float32) -> Box:
    """The smallest square around points, a unit square around none.

    Examples
    --------
    >>> box_of(np.array([[0, 0], [4, 2]], np.float32))
    Box(x=0.0, y=-1.0, side=4.0)
    """
    if not len(places):
        return Box(x=0, y=0, side=1)
    low, high = places.min(axis=0).astype(float), places.max(axis=0).astype(float)
    side = float((high - low).max()) or 1.0
    x, y = (low + high - side) / 2
    return Box(x=x, y=y, side=side)


def packed(numbers: Int64, values: Any) -> bytes:
    """Numbers, ascending, as steps, and their values behind them.

    Examples
    --------
    >>> packed(np.array([5, 7]), np.array([1, 2], np.uint8)).hex(" ", 4)
    '0200 00000500 00000200 00000102'
    """
    steps = np.diff(numbers, prepend=0).astype("<u4")
    return np.array([len(numbers)], "<u4").tobytes() + steps.tobytes() + np.ascontiguousarray(values).tobytes()


def packed_points(drawn: maps.Map) -> bytes:
    """The points of a map as they are sent."""
    box = box_of(drawn.places)
    within_box = (drawn.places - np.array([box.x, box.y])) * (_SIDE / box.side)
    return packed(drawn.items, np.clip(np.rint(within_box), 0, _SIDE).astype("<u2"))


def _meant(at: Collection, method: str, version: str | None) -> maps.Map:
    """The map as it is now, refused where somebody asks about another."""
    drawn = maps.whole(at, method)
    if version not in (None, drawn.version):
        raise Problem(409, "the map has changed; ask for it again")
    return drawn


def _answer(request: Request, version: str, plain: Callable[[], bytes], small: Callable[[], bytes]) -> Response:
    """Bytes that browsers keep and ask about again; made only when they are sent, compressed where that is taken."""
    tag = f'"{version}"'
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "accept-encoding"}
    if keeps(request, tag):
        return Response(status_code=304, headers=headers)
    if not takes_gzip(request):
        return Response(plain(), media_type="application/octet-stream", headers=headers)
    return Response(small(), media_type="application/octet-stream", headers=headers | {"content-encoding": "gzip"})
