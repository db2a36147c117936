"""Routes of a model: information, annotation, explanation, labels and their neighbours."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fastapi import Depends, Form, Query, Response, UploadFile

from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.server import schemas
from wsabie.server.inference import build_matrix, cut_region, draw_heat_map, extract_row, rank_labels, read_picture
from wsabie.server.routing import Context, check_result_count, limit_results, make_router

router = make_router("model")
names = make_router("model")
"""Routes of the labels of a model; a collection has its own label routes."""

LabelLimit = Annotated[int, limit_results(10)]
SentText = Annotated[str, Form(max_length=1_000_000)]
MinPrecision = Annotated[float | None, Query(gt=0, le=1, description=schemas.MIN_PRECISION_HELP)]
_REGION_HELP = "X,Y,W,H in pixels, or in per cent (10%,20%,30%,40%)."
Region = Annotated[str | None, Query(max_length=2000, description=_REGION_HELP)]
PNG: dict[int | str, JsonObject] = {200: {"content": {"image/png": {}}}}


@dataclass
class RankingOptions:
    """Parameters of rankings of pictures."""

    k: LabelLimit
    region: Region = None
    min_precision: MinPrecision = None


RankingParameters: TypeAlias = Annotated[RankingOptions, Depends()]


@router.get("/info")
def get_model_info(context: Context) -> schemas.ModelInfo:
    """Return the facts of the served model."""
    version = context.model.get_version()
    annotator = version.annotator
    facts = to_json_value({**annotator.model.facts(), **annotator.extraction_facts(), **annotator.facts})
    return schemas.ModelInfo(model=version.id, kind=annotator.model.kind, facts=facts, trouble=context.model.trouble)


@router.post("/annotate/rows")
def annotate_rows(request: schemas.AnnotateRequest, context: Context) -> schemas.AnnotateResponse:
    """Rank labels for rows of features."""
    version = context.model.get_version()
    X = build_matrix(request.rows, version.annotator.model.n_features_in_)
    return rank_labels(version, X, check_result_count(request.k, context), request.min_precision, request.candidates)


@router.post("/annotate/picture")
def annotate_picture(file: UploadFile, context: Context, options: RankingParameters) -> schemas.AnnotateResponse:
    """Rank labels for a picture that is sent, or for a region of it."""
    version = context.model.get_version()
    X = extract_row(version.annotator, cut_region(read_picture(file, context.limits), options.region))
    return rank_labels(version, X, options.k, options.min_precision)


@router.post("/annotate/text")
def annotate_text(
    text: SentText, context: Context, k: LabelLimit, min_precision: MinPrecision = None
) -> schemas.AnnotateResponse:
    """Rank labels for a text."""
    version = context.model.get_version()
    X = extract_row(version.annotator, text.encode("utf-8", "replace"), "documents")
    return rank_labels(version, X, k, min_precision)


@router.post("/explain/picture", response_class=Response, responses=PNG)
def explain_label(
    file: UploadFile, context: Context, label: Annotated[str | None, Query(max_length=500)] = None
) -> Response:
    """Show the region of a label, or of the best one: the picture with a heat map over it, as PNG."""
    annotator = context.model.get_version().annotator
    return Response(draw_heat_map(annotator, read_picture(file, context.limits), label), media_type="image/png")


@names.get("/labels")
def list_label_names(
    context: Context,
    k: Annotated[int, limit_results(50)],
    prefix: Annotated[str, Query(max_length=500, description="What they begin with.")] = "",
) -> schemas.LabelNames:
    """List labels that begin with `prefix`, ignoring case."""
    labels, beginning = context.model.get_version().names, prefix.casefold()
    matches = [name for name in labels if name and name.casefold().startswith(beginning)]
    return schemas.LabelNames(total=len(matches), labels=sorted(matches)[:k])


@names.get("/labels/{label:path}/neighbours")
def list_neighbours(label: str, context: Context, k: LabelLimit) -> schemas.Neighbours:
    """Find the labels nearest to a label: synonyms, translations, near misses."""
    near_labels = context.model.get_version().annotator.model.neighbours(label, k)
    neighbours = [schemas.Neighbour(label=name, cosine=cosine) for name, cosine in near_labels]
    return schemas.Neighbours(label=label, neighbours=neighbours)
