"""Routes of a model: annotate, explain, labels and their neighbours, what it is."""

import io
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Response, UploadFile

from wsabie.base.plain import plain
from wsabie.faces.serve.answers import SURE, AnnotateRows, Annotations, Info, Labels, Near, Neighbours
from wsabie.faces.serve.asking import matrix_of, rank, region_of, row_of
from wsabie.faces.serve.context import API, Context, Reader, The, within
from wsabie.faces.serve.parameters import StrictRoute
from wsabie.faces.serve.problems import Problem
from wsabie.features.decode import header, opened
from wsabie.models.explain import explain_picture

router = APIRouter(prefix=API, tags=["model"], route_class=StrictRoute)
names = APIRouter(prefix=API, tags=["model"])
"""Labels of a model; a collection has its own."""

Top = Annotated[int, Query(ge=1, description="Answers, at most.")]
Sure = Annotated[float | None, Query(gt=0, le=1, description=SURE)]
Region = Annotated[
    str | None, Query(max_length=2000, description="X,Y,W,H in pixels, or in per cent (10%,20%,30%,40%).")
]


@router.get("/info")
def info(the: The, _: Reader) -> Info:
    """What is served."""
    version = the.model.current()
    annotator = version.annotator
    facts = plain({**annotator.model.facts(), **annotator.description(), **annotator.facts})
    return Info(model=version.id, kind=annotator.model.kind, facts=facts, trouble=the.model.trouble)


@router.post("/annotate/rows")
def annotate_rows(asked: AnnotateRows, the: The, _: Reader) -> Annotations:
    """Rank labels for rows of features."""
    version = the.model.current()
    X = matrix_of(asked.rows, version.annotator.model.n_features_in_)
    results = rank(version, X, within(asked.k, the), asked.candidates, asked.min_precision)
    return Annotations(model=version.id, results=results)


@router.post("/annotate/picture")
def annotate_picture(
    file: UploadFile, the: The, _: Reader, k: Top = 10, region: Region = None, min_precision: Sure = None
) -> Annotations:
    """Rank labels for a picture that is sent, or for a region of it."""
    version = the.model.current()
    content = picture_of(file, the)
    X = row_of(version.annotator, region_of(content, region))
    return Annotations(model=version.id, results=rank(version, X, within(k, the), None, min_precision))


@router.post("/annotate/text")
def annotate_text(
    text: Annotated[str, Form(max_length=1_000_000)], the: The, _: Reader, k: Top = 10, min_precision: Sure = None
) -> Annotations:
    """Rank labels for a text."""
    version = the.model.current()
    X = row_of(version.annotator, text.encode("utf-8", "replace"), "documents")
    return Annotations(model=version.id, results=rank(version, X, within(k, the), None, min_precision))


@router.post("/explain/picture", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def explain(file: UploadFile, the: The, _: Reader, label: Annotated[str | None, Query(max_length=500)] = None) -> Any:
    """Where in a picture a label, or the best one, is seen: the picture with a heat map over it, as PNG."""
    explained = explain_picture(the.model.current().annotator, picture_of(file, the), label)
    out = io.BytesIO()
    explained.picture.save(out, "PNG")
    return Response(out.getvalue(), media_type="image/png")


@names.get("/labels")
def labels(
    the: The,
    _: Reader,
    start: Annotated[str, Query(max_length=500, description="What they begin with.")] = "",
    k: Top = 50,
) -> Labels:
    """Labels by what they begin with, upper and lower case alike."""
    known, sought = the.model.current().names, start.casefold()
    found = [name for name in known if name and name.casefold().startswith(sought)]
    return Labels(total=len(found), labels=sorted(found)[: within(k, the)])


@names.get("/labels/{label:path}/neighbours")
def neighbours(label: str, the: The, _: Reader, k: Top = 10) -> Neighbours:
    """The labels nearest to a label: synonyms, translations, near misses."""
    near = the.model.current().annotator.model.neighbours(label, within(k, the))
    return Neighbours(label=label, neighbours=[Near(label=name, cosine=cosine) for name, cosine in near])


def picture_of(file: UploadFile, the: Context) -> bytes:
    """The picture that was sent, looked at for its size only."""
    content = file.file.read(the.limits.body + 1)
    if len(content) > the.limits.body:
        raise Problem(413, f"the picture is larger than {the.limits.body:,} bytes; send a smaller one")
    with opened(content) as stream:
        header(stream, max_pixels=the.limits.pixels)
    return content
