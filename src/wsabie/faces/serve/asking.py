"""Questions to a model: plain functions behind the routes."""

from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.faces.serve.answers import Label, Ranked, Row
from wsabie.faces.serve.served import Version
from wsabie.models.annotator import Annotator
from wsabie.models.sure import Least, rank_sure
from wsabie.sources.records import Item, Things
from wsabie.sources.regions import Content, Cutout, parse_region


def matrix_of(rows: list[Row], n_features: int) -> Any:
    """Rows for a model: all dense, or all by their columns.

    Raises
    ------
    InputError
        Neither or both forms, of different lengths, or columns that the model does not have.
    """
    return _sparse(rows, n_features) if rows[0].dense is None else _dense(rows, n_features)


def rank(
    version: Version, X: Any, k: int, candidates: list[str] | None = None, min_precision: float | None = None
) -> list[Ranked]:
    """The k best labels of every row, with probabilities where the model has them.

    With `min_precision` only those of the first 100 that are right that often as far as held-out items tell; where
    there is none, no tag fits.

    Raises
    ------
    InputError
        It is no share, or the model was not judged by held-out items.
    UnknownLabelError
        A candidate is no label of the model.
    """
    model: Any = version.annotator.model
    among = {} if candidates is None else {"candidates": version.own_names(candidates)}
    asked = min(k + version.spare, len(among.get("candidates", version.names)))
    if min_precision is None:
        numbers, scores = model.rank(X, asked, **among)
        told: Any = _probabilities(model, scores, numbers)
    else:
        numbers, scores, told = rank_sure(model, X, asked, _least(version, min_precision), **among)
    ranked = []
    for ids, row, p in zip(numbers.tolist(), scores.tolist(), told, strict=True):
        labels: dict[str, Label] = {}
        for j, (y, s) in enumerate(zip(ids, row, strict=True)):
            name = version.names[y] if y >= 0 else None
            if name is not None and name not in labels:
                labels[name] = Label(label=name, score=float(s), probability=None if p is None else float(p[j]))
        ranked.append(
            Ranked(labels=list(labels.values())[:k], no_tag_fits=None if min_precision is None else not labels)
        )
    return ranked


def row_of(annotator: Annotator, content: Content, things: Things = "pictures") -> Any:
    """The row of one picture, region or text.

    Raises
    ------
    InputError
        The model does not take such things, or it cannot be read.
    """
    if annotator.terms is None or annotator.terms.things != things:
        takes = "rows of features" if annotator.terms is None else annotator.terms.things
        raise InputError(f"this model takes {takes} and no {things}; `/api/v1/info` tells what it was trained on")
    return annotator.rows_of_all([Item(f"one of the {things}", content, ())], things)


def region_of(content: bytes, region: str | None) -> Content:
    """A picture, or a region of it as `wsabie annotate --region` takes it."""
    return content if region is None else Cutout(content, parse_region(region))


def _least(version: Version, min_precision: float) -> Least:
    """From which probability on a column of the model is right that often."""
    if version.opened is None:
        raise InputError(
            "min_precision wants a model that was judged by the held-out items of a collection; serve the collection "
            "itself, or leave min_precision out"
        )
    return version.opened.threshold(min_precision).by_column(version.opened.labels)


def _probabilities(model: Any, scores: Any, numbers: Any) -> list[Any]:
    fitted = getattr(model, "calibration_", None)
    if fitted is None:
        return [None] * len(scores)
    return list(fitted.predict_proba(scores, numbers))


def _dense(rows: list[Row], n_features: int) -> Any:
    if any(row.dense is None or row.columns is not None or row.values is not None for row in rows):
        raise InputError("rows are of two forms; give all of them dense, or all by their columns and values")
    for i, row in enumerate(rows):
        if len(row.dense or ()) != n_features:
            raise InputError(f"row {i} has {len(row.dense or ())} features and the model takes {n_features:,}")
    return np.array([row.dense for row in rows], np.float32)


def _sparse(rows: list[Row], n_features: int) -> Any:
    from scipy.sparse import csr_matrix

    columns: list[int] = []
    values: list[float] = []
    starts = [0]
    for i, row in enumerate(rows):
        if row.dense is None and row.columns is not None and len(row.columns) == len(row.values or ()):
            columns, values = columns + row.columns, values + (row.values or [])
        else:
            raise InputError(
                f'row {i} is no row of {n_features:,} features; give {{"columns": [...], "values": [...]}}'
            )
        starts.append(len(columns))
    if columns and max(columns) >= n_features:
        raise InputError(f"there is a column {max(columns)} and the model has {n_features:,}, numbered from 0")
    X = csr_matrix((np.array(values, np.float32), columns, starts), shape=(len(rows), n_features))
    X.sum_duplicates()
    return X
