"""Routes of items: pages of them, one, its pictures, and others like it."""

import io
import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack
from io import FileIO
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from wsabie.catalogue import items
from wsabie.catalogue.facets import one
from wsabie.catalogue.files import found_file, held_file, item_at, opened_file, path_of
from wsabie.catalogue.points import similar
from wsabie.catalogue.thumbnails import thumbnail
from wsabie.faces.serve import collection_answers as told
from wsabie.faces.serve.answers import Annotations
from wsabie.faces.serve.asking import rank, row_of
from wsabie.faces.serve.context import API, Open, Reader, The, within
from wsabie.faces.serve.kept_copies import check_range, keeps
from wsabie.faces.serve.model_routes import Region, Sure, Top
from wsabie.faces.serve.problems import Problem
from wsabie.faces.serve.seen import found, item_seen, item_whole
from wsabie.features.decode import media_type
from wsabie.models.explain import explain_picture
from wsabie.sources.regions import Cutout, parse_region

router = APIRouter(prefix=API, tags=["items"])

Id = Annotated[int, Path(ge=1, lt=2**63)]
Share = Annotated[float | None, Query(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str | None, Query(max_length=1000)]
Content = Annotated[str | None, Query(max_length=100, description="Begin of the item's hash, which changes with it.")]
_SHOWN = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/avif")
"""What browsers show, and as which they are told not to guess."""
_YEAR_10000 = 253_402_300_800
_SANDBOX = {"content-security-policy": "default-src 'none'; sandbox"}

_log = logging.getLogger("wsabie.serve")


class OpenFile(FileResponse):
    """A file of a stranger, from where it was opened; whatever it is, a browser runs nothing of it."""

    def __init__(
        self, stream: FileIO, media_type: str, filename: str | None = None, headers: Mapping[str, str] = _SANDBOX
    ) -> None:
        self.stream, told = stream, os.fstat(stream.fileno())
        if not 0 <= told.st_mtime < _YEAR_10000:  # a time that no header can say
            told = os.stat_result((*told[:8], 0, 0))
        super().__init__(path_of(stream), headers=headers, media_type=media_type, filename=filename, stat_result=told)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        n_bytes, is_begun = 0, False

        async def send_whole(message: Message) -> None:
            nonlocal n_bytes, is_begun
            if message["type"] == "http.response.start":
                n_bytes = int(dict(message["headers"])[b"content-length"])
            elif scope["method"] != "HEAD":
                n_bytes -= len(message["body"])
                if n_bytes < 0 or (n_bytes and not message.get("more_body", False)):
                    raise OSError("its size changed")
                is_begun = True
            await send(message)

        with self.stream:
            try:
                await super().__call__(scope, receive, send_whole)
            except (OSError, RuntimeError) as error:
                _log.warning("a file changed while it was sent, and the connection is closed: %s", error)
                if not is_begun:  # the head waits for the first part (`stages`)
                    await Problem(404, "the file changed or went away while it was read; ask again").send(send)


@router.get("/items")
def listed(
    the: The,
    at: Open,
    _: Reader,
    label: Text = None,
    label_state: Literal["accepted", "rejected", "suggested"] = "accepted",
    min_probability: Share = None,
    max_probability: Share = None,
    unlabelled: bool = False,
    state: Literal["present", "missing", "unreadable"] = "present",
    folder: Text = None,
    root: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
    taken_from: Text = None,
    taken_to: Text = None,
    words: Text = None,
    numbers: Annotated[str | None, Query(max_length=20_000, pattern=r"^\d{1,19}(,\d{1,19})*$")] = None,
    no_tag_fits: Sure = None,
    sort: Literal["path", "taken", "added", "best", "doubt", "probability"] = "path",
    descending: bool = False,
    cursor: Annotated[str | None, Query(max_length=5000)] = None,
    k: Annotated[int, Query(ge=1)] = 100,
) -> told.Items:
    """Items that pass a filter, a page at a time."""
    chances = min_probability, max_probability
    only = None if numbers is None else tuple(map(int, numbers.split(",")))
    times = taken_from, taken_to
    wanted = items.Filter(
        state, label, label_state, *chances, unlabelled, folder, root, *times, words, only, no_tag_fits
    )
    limit = min(within(k, the), items.LARGEST)
    page = items.page(at, wanted, sort=sort, descending=descending, cursor=cursor, limit=limit)
    return told.Items(items=[item_seen(item) for item in page.items], next=page.next_cursor, total=page.total)


@router.get("/items/{item}")
def whole(item: Id, at: Open, _: Reader) -> told.ItemWhole:
    """An item with its annotations and suggestions."""
    return item_whole(one(at, item))


@router.get("/items/{item}/thumbnail", response_class=FileResponse, responses={200: {"content": {"image/webp": {}}}})
def small(
    item: Id, at: Open, request: Request, _: Reader, size: Literal["256", "1024"] = "256", v: Content = None
) -> Any:
    """A small picture of it, as WebP. It never changes: with the content of an item its address does."""
    path = thumbnail(at, item, int(size))
    tag = f'"{path.stem}"'  # names the content
    headers = {"cache-control": "private, max-age=31536000, immutable", "etag": tag}
    if keeps(request, tag):
        return Response(status_code=304, headers=headers)
    try:
        stream = FileIO(path)
    except FileNotFoundError as error:
        raise Problem(404, "the small picture was removed before it was sent; ask again") from error
    with ExitStack() as held:
        response = OpenFile(held.enter_context(stream), "image/webp", headers=headers)
        check_range(request, response)
        held.pop_all()  # the answer closes it
    return response


@router.get("/items/{item}/file", response_class=FileResponse)
def original(item: Id, at: Open, the: The, request: Request, _: Reader) -> Any:
    """The file itself; what no browser shows safely is to be saved."""
    there = found_file(at, item)
    with ExitStack() as held:
        stream = held.enter_context(opened_file(there))
        kind = media_type(path_of(stream), max_pixels=the.limits.pixels)
        shown = kind in _SHOWN
        response = OpenFile(stream, kind if shown else "application/octet-stream", None if shown else there.path.name)
        check_range(request, response)
        held.pop_all()  # the answer closes it
    return response


@router.get("/items/{item}/heat", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def heat(item: Id, at: Open, the: The, _: Reader, label: Annotated[str, Query(max_length=500)]) -> Any:
    """Where a label is seen: the picture with a heat map over it, as PNG."""
    with held_file(at, item) as path:
        explained = explain_picture(the.model.current().annotator, path, label)
    out = io.BytesIO()
    explained.picture.save(out, "PNG")
    return Response(out.getvalue(), media_type="image/png", headers={"cache-control": "private, max-age=300"})


@router.get("/items/{item}/annotate")
def annotate(
    item: Id, at: Open, the: The, _: Reader, region: Region = None, k: Top = 10, min_precision: Sure = None
) -> Annotations:
    """Labels of it, or of a region of it, as the model in use ranks them now."""
    version = the.model.current()
    things = "pictures" if region is not None or version.annotator.terms is None else version.annotator.terms.things
    with held_file(at, item) as file:
        X = row_of(version.annotator, file if region is None else Cutout(file, parse_region(region)), things)
    return Annotations(model=version.id, results=rank(version, X, within(k, the), None, min_precision))


@router.get("/annotate/path")
def annotate_path(
    path: Annotated[str, Query(max_length=5000, description="Within the collection, with /.")],
    at: Open,
    the: The,
    who: Reader,
    region: Region = None,
    k: Top = 10,
    min_precision: Sure = None,
) -> Annotations:
    """Labels of an item by its path."""
    return annotate(item_at(at, path), at, the, who, region, k, min_precision)


@router.get("/items/{item}/similar")
def alike(item: Id, at: Open, the: The, _: Reader, k: Annotated[int, Query(ge=1)] = 24) -> told.Found:
    """Items that the model in use finds like it."""
    one(at, item)
    near = similar(at, item, within(k, the))
    return told.Found(items=found(at, [(one.item, None, one.score) for one in near]))
