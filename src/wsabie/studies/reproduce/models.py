"""Runs that fit and judge models on one split: tables of models or parameters, nested label sets, curves."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wsabie.sources.records import Rows, groups_of, label_counts
from wsabie.studies import comparison
from wsabie.studies.compare import compare
from wsabie.studies.entrants import NAMES, Entrant, entrants
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.record import Cell, Entry, Findings, Found, Record, Setting

UNAVAILABLE = "not available in this version"
_RESAMPLES = 200
_FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def compared(record: Record, setting: Setting) -> Findings:
    """Every entry of the record fitted on the same rows and judged on the same rows."""
    data = setting.given
    taking_part, missing = available(record.entries, setting)
    if not taking_part:
        return Findings([], missing)
    found = compare_on(data, taking_part, setting)
    missing |= {skipped.name: skipped.reason for skipped in found.skipped}
    rows = [_found(entry) for entry in found.entries]
    groups = None
    if found.entries:
        groups = groups_of(found.task.test, found.entries[0].evaluation.rows)
    return Findings(rows, missing, notes=[density(found.task.facts.train_rows, found.task.facts.labels)], groups=groups)


def available(entries: Sequence[Entry], setting: Setting) -> tuple[list[Entrant], dict[str, str]]:
    """The entrants of the entries, named as the paper's rows, and those that this version lacks."""
    made: list[Entrant] = []
    missing: dict[str, str] = {}
    for entry in entries:
        if entry.entrant in NAMES:
            made.append(_entrant(entry, setting))
        else:
            missing[entry.row] = f"{entry.entrant} is {UNAVAILABLE}"
    return made, missing


def _entrant(entry: Entry, setting: Setting) -> Entrant:
    """The entrant with the entry's parameters fixed, which are then not tuned."""
    (known,) = entrants([entry.entrant], seed=setting.seed, threads=setting.threads, parameters=setting.parameters)
    fixed = dict(entry.parameters)
    title = known.title
    if fixed:
        title += f" ({', '.join(f'{name} = {value}' for name, value in fixed.items())})"
    options = known.options if not fixed else _without(known.options, fixed)
    return replace(known, name=entry.row, title=title, build=partial(known.build, **fixed), options=options)


def _without(options: Sequence[dict[str, Any]], fixed: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Options without the parameters that are fixed, each once."""
    kept = [{name: value for name, value in option.items() if name not in fixed} for option in options]
    return tuple(option for i, option in enumerate(kept) if option not in kept[:i])


def compare_on(data: Data, taking_part: Sequence[Entrant], setting: Setting) -> comparison.Comparison:
    """All entrants on the split of the data."""
    return compare(
        data.train,
        data.valid,
        data.test,
        taking_part,
        min_rows=data.min_rows,
        resamples=_RESAMPLES,
        seed=setting.seed,
        allow_overlap=data.published_split,
        similar=data.similar,
        progress=setting.progress,
    )


def _found(entry: comparison.Entry) -> Found:
    figures: dict[str, Cell] = dict(entry.evaluation.means)
    figures |= {
        "train s": entry.fit_seconds,
        "train h": entry.fit_seconds / 3600,
        "s/image": entry.predict_ms / 1000,
        "MB": entry.n_bytes / 1e6,
    }
    return Found(entry.name, entry.title, figures, dict(entry.evaluation.per_row))


def density(rows: int, labels: int) -> str:
    """How many rows a label has, in words."""
    return f"{rows:,} training rows for {labels:,} labels, {rows / labels:.1f} each."


def nested_labels(record: Record, setting: Setting) -> Findings:
    """The same models on ever more of the labels: a sixteenth of them, an eighth ... all, each set within the next.

    Rows are those that keep a label; the labels of a set are the first of one shuffled order.
    """
    data, taking_part = setting.given, None
    taking_part, missing = available(record.entries, setting)
    known = np.flatnonzero(label_counts(data.train) >= data.min_rows)
    order = np.random.default_rng(setting.seed).permutation(known)
    rows: list[Found] = []
    notes = []
    for share in _FRACTIONS:
        n = max(2, round(len(order) * share))
        train, valid, test = (_labelled(rows, order[:n]) for rows in (data.train, data.valid, data.test))
        part = replace(data, train=train, valid=valid, test=test)
        if not (len(part.train) and len(part.valid) and len(part.test)):
            notes.append(f"{n:,} labels leave a side without rows.")
            continue
        found = compare_on(part, taking_part, setting)
        for entry in found.entries:
            row = _found(entry)
            rows.append(replace(row, row=f"{entry.name}, {n} labels", figures={**row.figures, "labels": n}))
        facts = found.task.facts
        notes.append(f"{n:,} labels: {facts.train_rows:,} training and {facts.test_rows:,} test rows.")
    return Findings(rows, missing, notes=notes)


def _labelled(rows: Rows, labels: Any) -> Rows:
    """Rows with some of the labels, without those that lose all."""
    part = rows.with_labels(labels)
    return part.take(np.flatnonzero((part.Y > 0).getnnz(axis=1)))


def training_curves(record: Record, setting: Setting) -> Findings:
    """The validation figure against the time spent in training, epoch by epoch, and the draws of an update."""
    data = setting.given
    taking_part, missing = available(record.entries, setting)
    found = compare_on(data, taking_part, setting)
    rows = []
    for entry in found.entries:
        spent = 0.0
        for stats in getattr(entry.model, "history_", []):
            spent += stats.seconds
            figures: dict[str, Cell] = {"epoch": stats.epoch + 1, "seconds": spent, **stats.validation_metrics}
            figures["draws per update"] = stats.mean_draws / max(stats.violation_rate, 1e-12)
            rows.append(Found(f"{entry.name}, epoch {stats.epoch + 1}", entry.title, figures))
    return Findings(rows, missing, notes=[density(found.task.facts.train_rows, found.task.facts.labels)])
