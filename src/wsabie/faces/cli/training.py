"""`wsabie train`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.progress import Progress
from wsabie.faces.cli.common import executor, opened, settle, tell_unknown
from wsabie.faces.cli.splitting import split_rows
from wsabie.faces.cli.terminal import TerminalProgress, note, out, show_json
from wsabie.sources.records import Rows, Source
from wsabie.storage.atomic import explained
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers
from wsabie.training.stats import EpochStats

_KEPT = r"terms|features\.parquet|features\.parquet\.parts|checkpoint"
"""What training keeps beside the model until it is saved."""


def train_command(
    data: Path,
    model: Path,
    valid: Path | None,
    hold_out: float,
    parameters: dict[str, Any],
    pictures: dict[str, Any],
    resume: bool,
    log: Path | None,
    strict: bool,
    rejects_file: Path | None,
    as_json: bool,
) -> None:
    """Open, describe, hold out, train, save."""
    from wsabie.models.annotator import Annotator
    from wsabie.models.wsabie import Wsabie
    from wsabie.sources.fingerprint import fingerprint
    from wsabie.storage.folder import folder_bytes, refuse_foreign

    refuse_foreign(model)
    rejects, progress = Rejects(strict=strict), TerminalProgress()
    work = model.with_name(model.name + ".training")
    refuse_strangers(work, _KEPT)
    source = opened(data, rejects)
    rows, terms = _rows(source, work, pictures, parameters, resume, progress, rejects)
    train, validation = _held_out(rows, valid, hold_out, terms, parameters, progress, rejects)
    estimator = Wsabie(**parameters)
    estimator.fit(
        train.X,
        train.Y,
        label_names=rows.label_names,
        validation=None if validation is None else (validation.X, validation.Y),
        checkpoint=work / "checkpoint",
        resume=resume,
        fingerprint=fingerprint(rows),
        progress=progress,
        on_epoch=_logging_to(log),
    )
    facts = {
        "source": str(data),
        "fingerprint": fingerprint(rows),
        "rows": len(train),
        "validation_rows": 0 if validation is None else len(validation),
        "labels": len(rows.label_names),
        "skipped": len(rejects),
    }
    annotator = Annotator(estimator, terms, rows.feature_names, facts, rows.dictionary)
    annotator.save(model)
    shutil.rmtree(work, ignore_errors=True)
    settle(rejects, rejects_file)
    best = max((s.validation for s in estimator.history_ if s.validation is not None), default=None)
    n_bytes = folder_bytes(model)
    summary = {
        "schema": 1,
        "model": str(model),
        "bytes": n_bytes,
        "epochs": len(estimator.history_),
        "validation_map": best,
        **facts,
        "history": [stats.as_dict() for stats in estimator.history_],
    }
    if as_json:
        show_json(summary)
        return
    figure = "" if best is None else f", validation MAP {best:.3f}"
    out.print(
        f"{model}: {len(rows.label_names):,} labels from {len(train):,} rows in {len(estimator.history_)} epochs"
        f"{figure}, {n_bytes / 1e6:.1f} MB"
    )
    note(f"next: wsabie annotate {model} NEW_DATA")


def _logging_to(log: Path | None) -> Callable[[EpochStats], None] | None:
    """Writes one JSON object per epoch, flushed, so that a run can be watched and a stopped one keeps its lines."""
    if log is None:
        return None
    with explained(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()

    def write(stats: EpochStats) -> None:
        with explained(log), log.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(stats.as_dict()) + "\n")

    return write


def _rows(
    source: Source,
    work: Path,
    pictures: dict[str, Any],
    parameters: dict[str, Any],
    resume: bool,
    progress: Progress,
    rejects: Rejects,
) -> tuple[Rows, Any]:
    """The rows of a source; pictures are described first, resumably, in the folder `work`."""
    if isinstance(source, Rows):
        return source, None
    from wsabie.features.extract import extract
    from wsabie.features.visual_terms import VisualTerms
    from wsabie.sources.open import open_source
    from wsabie.storage.folder import is_model_folder

    if not resume:
        shutil.rmtree(work, ignore_errors=True)
    run = executor(parameters["threads"])
    wanted = VisualTerms(n_terms=pictures["n_terms"], size=pictures["size"], seed=parameters["seed"])
    if is_model_folder(work / "terms"):
        terms = VisualTerms.load(work / "terms")
        terms.refuse_other(wanted, work / "terms", "go on with the same options, or leave --resume out to begin anew")
    else:
        terms = wanted
        terms.fit(source, executor=run, progress=progress, rejects=None)
        terms.save(work / "terms")
    table = work / "features.parquet"
    extract(source, terms, table, executor=run, progress=progress, rejects=rejects, augment=pictures["augment"])
    rows = open_source(table)
    if not isinstance(rows, Rows):
        raise TypeError("features are rows")
    return rows, terms


def _held_out(
    rows: Rows,
    valid: Path | None,
    hold_out: float,
    terms: Any,
    parameters: dict[str, Any],
    progress: Progress,
    rejects: Rejects,
) -> tuple[Rows, Rows | None]:
    """Training and validation rows: given, or whole groups set aside."""
    from wsabie.sources.align import align

    if valid is not None:
        source = opened(valid, rejects)
        if not isinstance(source, Rows) and terms is None:
            raise InputError(f"the training data are rows of features and {valid} holds pictures; give the same kind")
        if not isinstance(source, Rows):
            source = terms.transform(
                source, executor=executor(parameters["threads"]), progress=progress, rejects=rejects
            )
        aligned = align(source, rows.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary)
        tell_unknown(aligned, valid)
        return rows, aligned.rows
    if hold_out == 0:
        return rows, None
    if len(rows) < 2 / hold_out:
        raise InputError(f"{len(rows)} rows are too few to set {hold_out:.0%} aside; give more rows, or --hold-out 0")
    sides = split_rows(rows, "auto", hold_out, 0, parameters["seed"])
    return rows.take(sides.train), rows.take(sides.valid)
