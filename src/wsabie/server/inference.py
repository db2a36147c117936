"""Inference with a served model: plain functions behind the routes."""

from pathlib import Path
from typing import Any

import numpy as np
from fastapi import UploadFile
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Matrix
from wsabie.core.errors import InputError
from wsabie.features.images.image_decoder import open_image_stream, read_header
from wsabie.io.records import Item, ModalityName
from wsabie.io.regions import ItemContent, RegionCrop, parse_region
from wsabie.models.annotators import Annotator, ThresholdFunction, compute_probabilities, rank_above
from wsabie.models.explanations import explain_picture
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import ModelVersion
from wsabie.server.problems import Problem
from wsabie.server.schemas import AnnotateResponse, FeatureRow, LabelRanking, LabelScore
from wsabie.workflows.charts.chart_files import encode_picture


def build_matrix(rows: list[FeatureRow], n_features: int) -> Matrix:
    """Build the feature matrix of a request: all rows dense, or all sparse.

    Raises
    ------
    InputError
        Neither or both forms, of different lengths, or columns that the model does not have.
    """
    return _build_sparse(rows, n_features) if rows[0].dense is None else _build_dense(rows, n_features)


def rank_labels(
    version: ModelVersion, X: Matrix, k: int, min_precision: float | None = None, candidates: list[str] | None = None
) -> AnnotateResponse:
    """Return the k best labels of every row, with probabilities if the model is calibrated.

    With `min_precision`, only those of the first 100 labels that reach this precision on the held-out items. A row
    without any such label gets `no_tag_fits`.

    Raises
    ------
    InputError
        `min_precision` is not in (0, 1], or the model was not evaluated on held-out items.
    UnknownLabelError
        A candidate is not a label of the model.
    """
    model: Any = version.annotator.model
    options = {} if candidates is None else {"candidates": version.find_model_labels(candidates)}
    n_ranked = min(k + version.n_redundant, len(options.get("candidates", version.names)))
    if min_precision is None:
        label_ids, scores = model.rank(X, n_ranked, **options)
        probabilities = np.full(scores.shape, None)
        if getattr(model, "calibration_", None) is not None:
            probabilities = compute_probabilities(model, X, label_ids, scores, options.get("candidates"))
    else:
        thresholds = _find_thresholds(version, min_precision)
        label_ids, scores, probabilities = rank_above(model, X, n_ranked, thresholds, **options)
    rankings = []
    for row in zip(label_ids.tolist(), scores.tolist(), probabilities.tolist(), strict=True):
        labels: dict[str, LabelScore] = {}
        for label_id, score, probability in zip(*row, strict=True):
            name = version.names[label_id] if label_id >= 0 else None
            if name is not None and name not in labels:
                labels[name] = LabelScore(label=name, score=score, probability=probability)
        no_tag_fits = None if min_precision is None else not labels
        rankings.append(LabelRanking(labels=list(labels.values())[:k], no_tag_fits=no_tag_fits))
    return AnnotateResponse(model=version.id, results=rankings)


def extract_row(annotator: Annotator, content: ItemContent, modality: ModalityName = "pictures") -> Matrix:
    """Extract the features of one picture, region or text.

    Raises
    ------
    InputError
        The model does not take this modality, or the content cannot be read.
    """
    if annotator.extractor is None or annotator.extractor.modality != modality:
        supported = "rows of features" if annotator.extractor is None else annotator.extractor.modality
        raise InputError(f"this model takes {supported} and no {modality}; `/api/v1/info` says what it was trained on")
    return annotator.rows_of_items([Item(f"one of the {modality}", content, ())], modality)


def read_picture(file: UploadFile, limits: ServiceLimits) -> bytes:
    """Read an uploaded picture, and check its size."""
    content = file.file.read(limits.body + 1)
    if len(content) > limits.body:
        raise Problem(413, f"the picture is larger than {limits.body:,} bytes; send a smaller one")
    with open_image_stream(content) as stream:
        read_header(stream, max_pixels=limits.pixels)
    return content


def cut_region(content: Path | bytes, region: str | None) -> ItemContent:
    """Return a picture, or the region of it that `region` names, as `parse_region` reads it."""
    return content if region is None else RegionCrop(content, parse_region(region))


def draw_heat_map(annotator: Annotator, picture: bytes | Path, label: str | None) -> bytes:
    """Return a picture, as PNG, with a heat map over the region of a label or of the best one."""
    return encode_picture(explain_picture(annotator, picture, label).picture)


def _find_thresholds(version: ModelVersion, min_precision: float) -> ThresholdFunction:
    """Return the lowest probability of each label that reaches `min_precision` on the held-out items."""
    if version.loaded_model is None:
        fact = "min_precision needs a model with an evaluation on the held-out items of a collection"
        raise InputError(f"{fact}; serve the collection itself, or leave min_precision out")
    return version.loaded_model.find_threshold(min_precision).by_column(version.loaded_model.labels)


def _build_dense(rows: list[FeatureRow], n_features: int) -> Matrix:
    if any(row.dense is None or row.columns is not None or row.values is not None for row in rows):
        raise InputError("rows are of two forms; give all of them dense, or all by their columns and values")
    for i, row in enumerate(rows):
        if len(row.dense or ()) != n_features:
            raise InputError(f"row {i} has {len(row.dense or ())} features and the model takes {n_features:,}")
    return np.array([row.dense for row in rows], np.float32)


def _build_sparse(rows: list[FeatureRow], n_features: int) -> Matrix:
    for i, row in enumerate(rows):
        if row.dense is not None or row.columns is None or len(row.columns) != len(row.values or ()):
            message = f'row {i} needs columns and as many values; give {{"columns": [...], "values": [...]}}'
            raise InputError(message)
    columns = [column for row in rows for column in row.columns or ()]
    values = [value for row in rows for value in row.values or ()]
    starts = np.cumsum([0, *(len(row.columns or ()) for row in rows)])
    if columns and max(columns) >= n_features:
        raise InputError(f"there is a column {max(columns)} and the model has {n_features:,}, numbered from 0")
    X = csr_matrix((np.array(values, np.float32), columns, starts), shape=(len(rows), n_features))
    X.sum_duplicates()
    return X
