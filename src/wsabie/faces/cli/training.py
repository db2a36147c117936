"""`wsabie train`."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.progress import Progress
from wsabie.faces.cli.common import executor, opened, settle, tell_unknown
from wsabie.faces.cli.splitting import split_rows
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.sources.records import Rows, Source, label_counts
from wsabie.storage.atomic import explained, refuse_unwritable
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers
from wsabie.training.stats import EpochStats

_KEPT = r"terms|features\.parquet|features\.parquet\.parts|checkpoint"
"""What training keeps beside the model until it is saved."""


@dataclass(frozen=True)
class Asked:
    """What the command line asks for.

    Attributes
    ----------
    estimator : Wsabie
        Not yet fitted.
    pictures : dict
        n_terms, size and augment: how pictures are described.
    """

    data: Path
    model: Path
    valid: Path | None
    hold_out: float
    min_rows: int
    estimator: Any
    pictures: dict[str, Any]
    resume: bool
    log: Path | None
    rejects: Path | None
    strict: bool
    json: bool

    @property
    def work(self) -> Path:
        """Where unfinished work is kept."""
        return self.model.with_name(self.model.name + ".training")


def train_command(asked: Asked) -> None:
    """Open, describe, hold out, train, save."""
    from wsabie.models.annotator import Annotator
    from wsabie.sources.fingerprint import fingerprint

    _refuse_early(asked)
    rejects, progress = Rejects(strict=asked.strict), TerminalProgress()
    source = opened(asked.data, rejects)
    valid = None if asked.valid is None else opened(asked.valid, rejects)
    _refuse_mixed(source, valid, asked.valid)
    on_epoch = _logging_to(asked.log)
    rows, terms = _rows(source, asked, progress, rejects)
    train, validation = _sides(rows, valid, terms, asked, progress, rejects)
    estimator = asked.estimator.fit(
        train.X,
        train.Y,
        label_names=train.label_names,
        validation=None if validation is None else (validation.X, validation.Y),
        checkpoint=asked.work / "checkpoint",
        resume=asked.resume,
        fingerprint=fingerprint(rows),
        progress=progress,
        on_epoch=on_epoch,
    )
    facts = {
        "source": str(asked.data),
        "fingerprint": fingerprint(rows),
        "rows": len(train),
        "validation_rows": 0 if validation is None else len(validation),
        "labels": len(train.label_names),
        "labels_dropped": len(rows.label_names) - len(train.label_names),
        "skipped": len(rejects),
    }
    Annotator(estimator, terms, rows.feature_names, facts, rows.dictionary).save(asked.model)
    shutil.rmtree(asked.work, ignore_errors=True)
    settle(rejects, asked.rejects)
    _tell(asked, facts, estimator.history_)


def _refuse_early(asked: Asked) -> None:
    """Everything that can be known to fail at the end fails before work begins."""
    from wsabie.models.parameters import check_parameters
    from wsabie.storage.folder import is_model_folder, refuse_foreign

    check_parameters(asked.estimator.get_params())
    refuse_foreign(asked.model)
    refuse_strangers(asked.work, _KEPT)
    refuse_unwritable(asked.rejects, asked.log, folder=asked.model)
    if is_model_folder(asked.model):
        note(f"{asked.model} holds a model; it is replaced when training is done")


def _refuse_mixed(source: Source, valid: Source | None, path: Path | None) -> None:
    if isinstance(source, Rows) and valid is not None and not isinstance(valid, Rows):
        raise InputError(f"the training data are rows of features and {path} holds pictures; give the same kind")


def _tell(asked: Asked, facts: dict[str, Any], history: list[EpochStats]) -> None:
    from wsabie.storage.folder import folder_bytes

    figures = [stats.validation for stats in history if stats.validation is not None]
    best = max(figures, default=None)
    n_bytes = folder_bytes(asked.model)
    if asked.json:
        summary = {"schema": 1, "model": str(asked.model), "bytes": n_bytes, "epochs": len(history)}
        show_json({**summary, "validation_map": best, **facts, "history": [stats.as_dict() for stats in history]})
        return
    kept = plural(len(history), "epoch")
    if best is not None:
        kept = f"epoch {figures.index(best) + 1} of {len(history)}, validation MAP {best:.3f}"
    dropped = facts["labels_dropped"]
    few = f" ({dropped:,} with fewer than {asked.min_rows} rows left out)" if dropped else ""
    labels, rows = plural(facts["labels"], "label"), plural(facts["rows"], "row")
    out.print(f"{asked.model}: {labels}{few} from {rows}, {kept}, {n_bytes / 1e6:.1f} MB", markup=False)
    note(f"next: wsabie annotate {asked.model} NEW_DATA")


def _logging_to(log: Path | None) -> Callable[[EpochStats], None] | None:
    """Writes one JSON object per epoch, flushed, so that a run can be watched and a stopped one keeps its lines."""
    if log is None:
        return None

    def write(stats: EpochStats) -> None:
        with explained(log), log.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(stats.as_dict()) + "\n")

    return write


def _rows(source: Source, asked: Asked, progress: Progress, rejects: Rejects) -> tuple[Rows, Any]:
    """The rows of a source; pictures are described first, resumably, in the folder of unfinished work."""
    if isinstance(source, Rows):
        return source, None
    from wsabie.features.extract import extract
    from wsabie.features.visual_terms import VisualTerms
    from wsabie.sources.open import open_source
    from wsabie.storage.folder import is_model_folder

    if not asked.resume:
        shutil.rmtree(asked.work, ignore_errors=True)
    run, folder = executor(asked.estimator.threads), asked.work / "terms"
    pictures = dict(asked.pictures)
    augment = pictures.pop("augment")
    wanted = VisualTerms(**pictures, seed=asked.estimator.seed)
    if is_model_folder(folder):
        terms = VisualTerms.load(folder)
        terms.refuse_other(wanted, folder, "go on with the same options, or leave --resume out to begin anew")
    else:
        terms = wanted.fit(source, executor=run, progress=progress, rejects=None)
        terms.save(folder)
    table = asked.work / "features.parquet"
    extract(source, terms, table, executor=run, progress=progress, rejects=rejects, augment=augment)
    rows = open_source(table)
    if not isinstance(rows, Rows):
        raise TypeError("features are rows")
    return rows, terms


def _sides(
    rows: Rows, valid: Source | None, terms: Any, asked: Asked, progress: Progress, rejects: Rejects
) -> tuple[Rows, Rows | None]:
    """Training and validation rows, with the labels that have enough training rows."""
    train, held_out = _held_out(rows, valid, terms, asked, progress, rejects)
    counts = label_counts(train)
    keep = np.flatnonzero(counts >= asked.min_rows) if asked.min_rows > 1 else np.arange(len(counts))
    if not len(keep):
        raise InputError(f"no label has {asked.min_rows} training rows; lower --min-rows, or give more rows")
    return train.with_labels(keep), None if held_out is None else held_out.with_labels(keep)


def _held_out(
    rows: Rows, valid: Source | None, terms: Any, asked: Asked, progress: Progress, rejects: Rejects
) -> tuple[Rows, Rows | None]:
    """Training and validation rows: given, or whole groups set aside."""
    from wsabie.sources.align import align

    if valid is not None:
        if isinstance(valid, Rows):
            judged = valid
        else:
            run = executor(asked.estimator.threads)
            judged = terms.transform(valid, executor=run, progress=progress, rejects=rejects)
        aligned = align(judged, rows.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary)
        tell_unknown(aligned, asked.valid)
        return rows, aligned.rows
    share = asked.hold_out
    if share == 0:
        return rows, None
    if len(rows) < 2 / share:
        raise InputError(f"{len(rows)} rows are too few to set {share:.0%} aside; give more rows, or --hold-out 0")
    sides = split_rows(rows, "auto", share, 0, asked.estimator.seed)
    return rows.take(sides.train), rows.take(sides.valid)
