"""A saved model goes on learning, step by step: the folder holds the model before a step or after it, never between."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError, WsabieError
from wsabie.base.progress import SILENT, Progress
from wsabie.models.annotator import Annotator
from wsabie.models.wsabie import Wsabie
from wsabie.sources.fingerprint import MARKED, fingerprint, marks_of
from wsabie.sources.records import Rows

STEP = 2000
"""Rows that are learnt before the model is saved."""
EPOCHS = 10
HELD = 10
"""Every so many-th row of a step is kept to fit probabilities anew, where the model had some."""
FEWEST_HELD = 5
"""Rows with which probabilities are fitted anew; with fewer, or without a known label among them, they stay."""
REHEARSED = 64
"""Rows that a copy learns first, so that what steps need is compiled, which may take longer than they."""


def require_stream(annotator: Annotator, place: Path) -> Wsabie:
    """The model of a folder, if it can go on learning; InputError."""
    model = annotator.model
    if not isinstance(model, Wsabie) or model.kind != "wsabie":
        raise InputError(f"{place} is of kind {model.kind}, which cannot go on; train it again, or train --kind wsabie")
    return model


def update(
    annotator: Annotator,
    rows: Rows,
    place: Path,
    *,
    step: int = STEP,
    epochs: int = EPOCHS,
    progress: Progress = SILENT,
) -> list[dict[str, Any]]:
    """Learn rows in steps and save the model after each; a run that was stopped goes on with the first step not saved.

    Parameters
    ----------
    annotator : Annotator
        Of a `Wsabie`.
    rows : Rows
        In the model's features, with labels of their own (`Annotator.rows_to_learn`).
    place : Path
        The model's folder.
    step, epochs : int
        Rows of a step, and passes over each.
    progress : Progress

    Returns
    -------
    list of dict
        Of each step "rows", "new_labels", "seconds" of training, and the figures of `wsabie.models.stream.Arrival`
        where the model keeps a buffer.

    Raises
    ------
    InputError
        The model is of another kind, no row has a label, or all rows were learnt before.
    """
    model = require_stream(annotator, place)
    if not (rows.Y > 0).nnz:
        raise InputError("no row has a label; give at least one (row, label) pair")
    known = fingerprint(rows)
    updates: list[dict[str, Any]] = [dict(one) for one in annotator.facts.get("updates", ())]
    own = next((one for one in updates if one["fingerprint"] == known), None)
    if own is None:
        own = {"fingerprint": known, "rows": 0, "calibrated": model.calibration_ is not None}
        updates.append(own)
    if own["rows"] >= len(rows):
        raise InputError(f"the model learnt all {len(rows):,} rows of this data before; give others")
    with progress.stage("compiling (once)", None, ""), suppress(WsabieError):
        _learn(copy(model), rows.take(np.arange(min(REHEARSED, len(rows)))), 1, calibrated=False)
    told = []
    with progress.stage("learning", len(rows), "rows") as stage:
        stage.advance(own["rows"])
        for lo in range(own["rows"], len(rows), step):
            part = rows.take(np.arange(lo, min(lo + step, len(rows))))
            told.append(_learn(model, part, epochs, calibrated=own["calibrated"]))
            own["rows"] = lo + len(part)
            annotator = _saved(annotator, part, place, updates)
            judged = told[-1].get("map")
            stage.advance(len(part), **({} if judged is None else {"MAP": judged}))
    return told


def _saved(annotator: Annotator, part: Rows, place: Path, updates: list[dict[str, Any]]) -> Annotator:
    """The annotator whose model has learnt a step, in its folder."""
    labels, facts, marks = annotator.model.vocabulary_, annotator.facts, annotator.marks
    n_labels, n_rows = len(labels) - len(labels.retired()), facts.get("rows", 0) + len(part)
    marks = None if marks is None else np.unique(np.append(marks, marks_of(part)))[:MARKED]
    annotator = replace(annotator, facts={**facts, "updates": updates, "labels": n_labels, "rows": n_rows}, marks=marks)
    annotator.save(place)
    return annotator


def _teaching(model: Wsabie, rows: Rows) -> Int64:
    """Numbers of the labels that some row has, and of known ones that some row denies."""
    right, wrong = (np.asarray((sign * rows.Y > 0).sum(axis=0)).ravel() > 0 for sign in (1, -1))
    known = np.array([name in model.vocabulary_ for name in rows.label_names], bool)
    return np.flatnonzero(right | (wrong & known))


def _learn(model: Wsabie, part: Rows, epochs: int, *, calibrated: bool) -> dict[str, Any]:
    """One step; the labels that it brings are those of rows that are learnt, and not those of the held ones alone."""
    held = np.arange(len(part)) % HELD == HELD - 1
    held &= calibrated and int(held.sum()) >= FEWEST_HELD
    learnt, kept = part.take(np.flatnonzero(~held)), part.take(np.flatnonzero(held))
    learnt = learnt.with_labels(_teaching(model, learnt))
    n_labels, n_before, probabilities = len(model.vocabulary_), len(model.history_), model.calibration_
    figures = {}
    if learnt.Y.nnz:
        model.partial_fit(learnt.X, learnt.Y, label_names=learnt.label_names, epochs=epochs)
        figures = {} if model.replay is None else model.stream_[-1].as_dict()
    known = [name if name in model.vocabulary_ else None for name in part.label_names]
    labels = [[known[y] for y in row.indices[row.data > 0] if known[y] is not None] for row in kept.Y]
    if any(labels):
        model.calibrate(kept.X, labels)
    elif probabilities is not None:
        model.calibration_ = probabilities.for_labels(len(model.vocabulary_))
    seconds = sum(stats.seconds for stats in model.history_[n_before:])
    new = len(model.vocabulary_) - n_labels
    return {**figures, "rows": len(part), "new_labels": new, "seconds": round(seconds, 3)}
