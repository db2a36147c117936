"""Routes of a model: information, annotation, explanation, labels and their neighbours."""

import io
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Response, UploadFile

from wsabie.core.json_conversion import to_json_value
from wsabie.features.images.image_decoder import open_image_stream, read_header
from wsabie.models.explanations.score_contributions import explain_picture
from wsabie.server.dependencies import (
    API,
    ReaderDependency,
    ServiceContext,
    ServiceContextDependency,
    check_result_count,
)
from wsabie.server.inference import build_matrix, cut_region, extract_row, rank_labels
from wsabie.server.problems import Problem
from wsabie.server.routes.request_validation import StrictRoute
from wsabie.server.schemas.model_schemas import (
    MIN_PRECISION_HELP,
    AnnotateRequest,
    AnnotateResponse,
    LabelNames,
    ModelInfo,
    Neighbour,
    Neighbours,
)

router = APIRouter(prefix=API, tags=["model"], route_class=StrictRoute)
names = APIRouter(prefix=API, tags=["model"])
"""Routes of the labels of a model; a collection has its own label routes."""

ResultLimit = Annotated[int, Query(ge=1, description="Answers, at most.")]
MinPrecision = Annotated[float | None, Query(gt=0, le=1, description=MIN_PRECISION_HELP)]
Region = Annotated[
    str | None, Query(max_length=2000, description="X,Y,W,H in pixels, or in per cent (10%,20%,30%,40%).")
]


@router.get("/info")
def get_model_info(context: ServiceContextDependency, _: ReaderDependency) -> ModelInfo:
    """Return the facts of the served model."""
    version = context.model.get_version()
    annotator = version.annotator
    facts = to_json_value({**annotator.model.facts(), **annotator.description(), **annotator.facts})
    return ModelInfo(model=version.id, kind=annotator.model.kind, facts=facts, trouble=context.model.trouble)


@router.post("/annotate/rows")
def annotate_rows(request: AnnotateRequest, context: ServiceContextDependency, _: ReaderDependency) -> AnnotateResponse:
    """Rank labels for rows of features."""
    version = context.model.get_version()
    X = build_matrix(request.rows, version.annotator.model.n_features_in_)
    results = rank_labels(version, X, check_result_count(request.k, context), request.candidates, request.min_precision)
    return AnnotateResponse(model=version.id, results=results)


@router.post("/annotate/picture")
def annotate_picture(
    file: UploadFile,
    context: ServiceContextDependency,
    _: ReaderDependency,
    k: ResultLimit = 10,
    region: Region = None,
    min_precision: MinPrecision = None,
) -> AnnotateResponse:
    """Rank labels for a picture that is sent, or for a region of it."""
    version = context.model.get_version()
    content = read_picture(file, context)
    X = extract_row(version.annotator, cut_region(content, region))
    return AnnotateResponse(
        model=version.id, results=rank_labels(version, X, check_result_count(k, context), None, min_precision)
    )


@router.post("/annotate/text")
def annotate_text(
    text: Annotated[str, Form(max_length=1_000_000)],
    context: ServiceContextDependency,
    _: ReaderDependency,
    k: ResultLimit = 10,
    min_precision: MinPrecision = None,
) -> AnnotateResponse:
    """Rank labels for a text."""
    version = context.model.get_version()
    X = extract_row(version.annotator, text.encode("utf-8", "replace"), "documents")
    return AnnotateResponse(
        model=version.id, results=rank_labels(version, X, check_result_count(k, context), None, min_precision)
    )


@router.post("/explain/picture", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def explain_label(
    file: UploadFile,
    context: ServiceContextDependency,
    _: ReaderDependency,
    label: Annotated[str | None, Query(max_length=500)] = None,
) -> Any:
    """Show the region of a label, or of the best one: the picture with a heat map over it, as PNG."""
    explanation = explain_picture(context.model.get_version().annotator, read_picture(file, context), label)
    out = io.BytesIO()
    explanation.picture.save(out, "PNG")
    return Response(out.getvalue(), media_type="image/png")


@names.get("/labels")
def list_label_names(
    context: ServiceContextDependency,
    _: ReaderDependency,
    start: Annotated[str, Query(max_length=500, description="What they begin with.")] = "",
    k: ResultLimit = 50,
) -> LabelNames:
    """List labels that begin with `start`, ignoring case."""
    labels, prefix = context.model.get_version().names, start.casefold()
    matches = [name for name in labels if name and name.casefold().startswith(prefix)]
    return LabelNames(total=len(matches), labels=sorted(matches)[: check_result_count(k, context)])


@names.get("/labels/{label:path}/neighbours")
def list_neighbours(
    label: str, context: ServiceContextDependency, _: ReaderDependency, k: ResultLimit = 10
) -> Neighbours:
    """Find the labels nearest to a label: synonyms, translations, near misses."""
    neighbours = context.model.get_version().annotator.model.neighbours(label, check_result_count(k, context))
    return Neighbours(label=label, neighbours=[Neighbour(label=name, cosine=cosine) for name, cosine in neighbours])


def read_picture(file: UploadFile, context: ServiceContext) -> bytes:
    """Read an uploaded picture, and check its size."""
    content = file.file.read(context.limits.body + 1)
    if len(content) > context.limits.body:
        raise Problem(413, f"the picture is larger than {context.limits.body:,} bytes; send a smaller one")
    with open_image_stream(content) as stream:
        read_header(stream, max_pixels=context.limits.pixels)
    return content
