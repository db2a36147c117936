"""`wsabie train`."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.progress import Progress
from wsabie.faces.cli.common import (
    executor,
    fingerprint_of,
    listing,
    opened,
    refuse_without_effect,
    tell_unknown,
)
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.sources.records import Rows, Source, label_counts
from wsabie.storage.atomic import DiskFullError, explained
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers
from wsabie.studies.splitting import split_rows
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
        n_terms, size and augment as far as they are given: how pictures are described.
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
    _refuse_early(asked)
    with _resumable(), listing(asked.rejects, strict=asked.strict) as rejects:
        facts, history = _trained(asked, TerminalProgress(), rejects)
    shutil.rmtree(asked.work, ignore_errors=True)
    _tell(asked, facts, history)


def _trained(asked: Asked, progress: Progress, rejects: Rejects) -> tuple[dict[str, Any], list[EpochStats]]:
    """Save the model; what is known of its data, and the figures of its epochs."""
    from wsabie.models.annotator import Annotator

    source, valid = _opened(asked, rejects)
    own = fingerprint_of(source)
    if valid is not None and own is not None and own == fingerprint_of(valid):
        note(f"{asked.valid} is the training data itself, so that the epoch is chosen by what is known by heart")
    rows, terms = _rows(source, asked, progress, rejects)
    train, validation = _sides(rows, valid, terms, asked, progress, rejects)
    described = own if rows is source else fingerprint_of(rows)
    estimator = asked.estimator.fit(
        train.X,
        train.Y,
        label_names=train.label_names,
        validation=None if validation is None else (validation.X, validation.Y),
        checkpoint=asked.work / "checkpoint",
        resume=asked.resume,
        fingerprint=described,
        progress=progress,
        on_epoch=_logging_to(asked.log, asked.resume),
    )
    facts = {
        "source": str(asked.data),
        "fingerprint": described,
        **({} if rows is source else {"source_fingerprint": own}),
        "rows": len(train),
        "validation_rows": 0 if validation is None else len(validation),
        "labels": len(train.label_names),
        "labels_dropped": len(rows.label_names) - len(train.label_names),
        "rows_without_labels": int((np.diff((train.Y > 0).tocsr().indptr) == 0).sum()),
        "skipped": len(rejects),
    }
    Annotator(estimator, terms, rows.feature_names, facts, rows.dictionary).save(asked.model)
    return facts, estimator.history_


@contextmanager
def _resumable() -> Iterator[None]:
    """A full disk loses nothing that is finished, if the next run goes on from it."""
    try:
        yield
    except DiskFullError as error:
        sentence = str(error).replace("the same command again", "the same command again with --resume")
        raise DiskFullError(sentence) from error


def _refuse_early(asked: Asked) -> None:
    """Everything that can be known to fail at the end fails before work begins."""
    from wsabie.models.parameters import check_parameters
    from wsabie.storage.folder import refuse_foreign

    check_parameters(asked.estimator.get_params())
    refuse_foreign(asked.model)
    refuse_strangers(asked.work, _KEPT)
    for path in (asked.data, asked.valid):
        if path is not None and asked.work.resolve() in path.resolve().parents:
            raise InputError(f"{path} lies in {asked.work}, which is emptied at the end; move it or name another model")
    refuse_unwritable(
        ("rejects", asked.rejects),
        ("log", asked.log),
        inputs=(asked.data, asked.valid, asked.model, asked.work),
        folder=asked.model,
    )
    if asked.model.is_dir() and any(asked.model.iterdir()):
        note(f"{asked.model} holds a model; it is replaced when training is done")
    if asked.resume and not (asked.work.is_dir() and any(asked.work.iterdir())):
        note(f"there is no unfinished training at {asked.work}; this one begins at the beginning")


def _opened(asked: Asked, rejects: Rejects) -> tuple[Source, Source | None]:
    """The data and the validation data, of one kind."""
    source = opened(asked.data, rejects)
    refuse_without_effect(source, asked.data, asked.pictures)
    valid = None if asked.valid is None else opened(asked.valid, rejects)
    _refuse_mixed(source, valid, asked.valid)
    return source, valid


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
    bare = facts["rows_without_labels"]
    rows += f" ({bare:,} without a label)" if bare else ""
    out.print(f"{asked.model}: {labels}{few} from {rows}, {kept}, {n_bytes / 1e6:.1f} MB", markup=False)
    note(f"next: wsabie annotate {asked.model} NEW_DATA")


def _logging_to(log: Path | None, resume: bool) -> Callable[[EpochStats], None] | None:
    """Writes one JSON object per epoch, flushed, so that a run can be watched and a stopped one keeps its lines.

    A resumed run makes the epochs after the last checkpoint again: those whose line is there get no second one.
    """
    if log is None:
        return None
    there = _logged(log) if resume else set()

    def write(stats: EpochStats) -> None:
        if (stats.epoch, stats.loss) not in there:
            with explained(log), log.open("a", encoding="utf-8") as lines:
                lines.write(("\n" if _is_cut_off(log) else "") + json.dumps(stats.as_dict()) + "\n")

    return write


def _is_cut_off(log: Path) -> bool:
    """Whether the last line has no end: the disk was full, or the program was killed."""
    with log.open("rb") as lines:
        size = lines.seek(0, SEEK_END)
        lines.seek(max(size - 1, 0))
        return lines.read() not in (b"", b"\n")


def _logged(log: Path) -> set[tuple[Any, Any]]:
    """Epoch and loss of every line; of one that was cut off nothing."""
    found = set()
    with explained(log):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    for line in lines:
        with suppress(ValueError, AttributeError):
            stats = json.loads(line)
            found.add((stats.get("epoch"), stats.get("loss")))
    return found


def _rows(source: Source, asked: Asked, progress: Progress, rejects: Rejects) -> tuple[Rows, Any]:
    """The rows of a source; pictures are described first, resumably, in the folder of unfinished work."""
    if isinstance(source, Rows):
        return source, None
    from wsabie.features.extract import extract, learn
    from wsabie.features.visual_terms import VisualTerms
    from wsabie.sources.open import open_source
    from wsabie.storage.folder import is_model_folder

    if not asked.resume:
        shutil.rmtree(asked.work, ignore_errors=True)
    run, folder = executor(asked.estimator.threads), asked.work / "terms"
    pictures = {"n_terms": "auto", **asked.pictures}
    augment = pictures.pop("augment", 0)
    wanted = VisualTerms(**pictures, seed=asked.estimator.seed)
    if is_model_folder(folder):
        terms = VisualTerms.load(folder)
        terms.refuse_other(wanted, folder, "go on with the same options, or leave --resume out to begin anew")
    else:
        terms = learn(wanted, source, run, progress, rejects)
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
        few = f"{plural(len(rows), 'row')} {'is' if len(rows) == 1 else 'are'} too few"
        raise InputError(f"{few} to set {100 * share:.3g}% aside; give more rows, or --hold-out 0")
    sides = split_rows(rows, "auto", share, 0, asked.estimator.seed)
    return rows.take(sides.train), rows.take(sides.valid)
