"""Updates of a saved model, step by step; the folder always holds a complete model."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, WsabieError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.io.fingerprints import MAX_ROW_HASHES, compute_fingerprint, compute_row_hashes
from wsabie.io.records import FeatureTable
from wsabie.models.annotators import Annotator
from wsabie.models.joint_embedding.estimator import Wsabie

STEP = 2000
"""Rows that are learned before the model is saved."""
EPOCHS = 10
HOLDOUT_STEP = 10
"""One row in this many is held out of a step to refit probabilities, if the model has some."""
MIN_HOLDOUT = 5
"""Fewest rows to refit probabilities; with fewer, or without a known label among them, they stay."""
WARM_UP_ROWS = 64
"""Rows that a copy learns first, so that compilation does not count as a step."""


def require_updatable(annotator: Annotator, folder: Path) -> Wsabie:
    """Return the model of a folder if it can be updated; raise InputError otherwise."""
    model = annotator.model
    if not isinstance(model, Wsabie) or model.kind != "wsabie":
        remedy = "train it again, or train one with `kind='wsabie'`"
        raise InputError(f"{folder} is of kind {model.kind}, which cannot go on; {remedy}")
    return model


def update_model(
    annotator: Annotator,
    rows: FeatureTable,
    folder: Path,
    *,
    step: int = STEP,
    epochs: int = EPOCHS,
    progress: Progress = SILENT,
) -> list[JsonObject]:
    """Learn rows in steps and save the model after each; an interrupted run continues.

    Parameters
    ----------
    annotator : Annotator
        Annotator with a `Wsabie`.
    rows : FeatureTable
        In the model's features, with labels of their own (`Annotator.rows`).
    folder : Path
        The model's folder.
    step, epochs : int
        Rows of a step, and passes over each.
    progress : Progress

    Returns
    -------
    list of dict
        For each step "rows", "new_labels", "seconds" of training, and the figures of
        `wsabie.models.joint_embedding.drift.BatchReport` if the model has a buffer.

    Raises
    ------
    InputError
        The model is of another kind, no row has a label, or all rows were learned before.
    """
    model = require_updatable(annotator, folder)
    require((rows.Y > 0).nnz > 0, "no row has a label; give at least one (row, label) pair")
    fingerprint = compute_fingerprint(rows)
    updates: list[JsonObject] = [dict(entry) for entry in annotator.facts.get("updates", ())]
    update = next((entry for entry in updates if entry["fingerprint"] == fingerprint), None)
    if update is None:
        update = {"fingerprint": fingerprint, "rows": 0, "calibrated": model.calibration_ is not None}
        updates.append(update)
    require(update["rows"] < len(rows), f"the model has learned all {len(rows):,} rows of this data; give others")
    with progress.stage("compiling (once)", None, ""), suppress(WsabieError):
        _learn(copy(model), rows.take(np.arange(min(WARM_UP_ROWS, len(rows)))), 1, calibrated=False)
    step_facts = []
    with progress.stage("learning", len(rows), "rows") as stage:
        stage.advance(update["rows"])
        for lo in range(update["rows"], len(rows), step):
            part = rows.take(np.arange(lo, min(lo + step, len(rows))))
            step_facts.append(_learn(model, part, epochs, calibrated=update["calibrated"]))
            update["rows"] = lo + len(part)
            annotator = _save_step(annotator, part, folder, updates)
            mean_average_precision = step_facts[-1].get("map")
            stage.advance(len(part), **({} if mean_average_precision is None else {"MAP": mean_average_precision}))
    return step_facts


def _save_step(annotator: Annotator, part: FeatureTable, folder: Path, updates: list[JsonObject]) -> Annotator:
    """Save the updated model, and return its annotator."""
    labels, facts, hashes = annotator.model.vocabulary_, annotator.facts, annotator.row_hashes
    n_labels, n_rows = len(labels) - len(labels.retired_ids()), facts.get("rows", 0) + len(part)
    hashes = None if hashes is None else np.unique(np.append(hashes, compute_row_hashes(part)))[:MAX_ROW_HASHES]
    facts = {**facts, "updates": updates, "labels": n_labels, "rows": n_rows}
    annotator = replace(annotator, facts=facts, row_hashes=hashes)
    annotator.save(folder)
    return annotator


def _select_label_ids(model: Wsabie, rows: FeatureTable) -> Int64:
    """Return the ids of labels that a row has, and of known labels that a row denies."""
    right, wrong = (np.asarray((sign * rows.Y > 0).sum(axis=0)).ravel() > 0 for sign in (1, -1))
    is_known = np.array([name in model.vocabulary_ for name in rows.label_names], bool)
    return np.flatnonzero(right | (wrong & is_known))


def _learn(model: Wsabie, part: FeatureTable, epochs: int, *, calibrated: bool) -> JsonObject:
    """Learn one step; labels of held-out rows alone are not added."""
    is_holdout = np.arange(len(part)) % HOLDOUT_STEP == HOLDOUT_STEP - 1
    is_holdout &= calibrated and int(is_holdout.sum()) >= MIN_HOLDOUT
    training, calibration_rows = part.take(np.flatnonzero(~is_holdout)), part.take(np.flatnonzero(is_holdout))
    training = training.with_labels(_select_label_ids(model, training))
    n_labels, n_before, probabilities = len(model.vocabulary_), len(model.history_), model.calibration_
    figures = {}
    if training.Y.nnz:
        model.partial_fit(training.X, training.Y, label_names=training.label_names, epochs=epochs)
        figures = {} if model.replay is None else model.batch_reports_[-1].as_dict()
    known_names = [name if name in model.vocabulary_ else None for name in part.label_names]
    positives = (row.indices[row.data > 0] for row in calibration_rows.Y)
    labels = [[known_names[y] for y in label_ids if known_names[y] is not None] for label_ids in positives]
    if any(labels):
        model.calibrate(calibration_rows.X, labels)
    elif probabilities is not None:
        model.calibration_ = probabilities.extend_labels(len(model.vocabulary_))
    seconds = sum(stats.seconds for stats in model.history_[n_before:])
    n_new_labels = len(model.vocabulary_) - n_labels
    return {**figures, "rows": len(part), "new_labels": n_new_labels, "seconds": round(seconds, 3)}
