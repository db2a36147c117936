"""Runs that fit and judge models on one split: tables of models or parameters, nested label sets, curves."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wsabie.models import defaults
from wsabie.sources.records import Rows, groups_of, label_counts
from wsabie.studies import comparison
from wsabie.studies.compare import KS, compare
from wsabie.studies.entrants import NAMES, Entrant, entrants
from wsabie.studies.reproduce.budget import same_budget, shape_of, within_time
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.record import Cell, Entry, Findings, Found, Record, Setting
from wsabie.studies.task import Task, make_task

UNAVAILABLE = "not available in this version"
_RESAMPLES = 200
_FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def compared(record: Record, setting: Setting, *, untuned: bool = False) -> Findings:
    """Every entry of the record fitted on the same rows and judged on the same rows; `untuned`: by one setting."""
    taking_part, missing = available(record, setting)
    if untuned:
        taking_part = [replace(entrant, options=entrant.options[:1]) for entrant in taking_part]
    if not taking_part:
        return Findings([], missing)
    found = compare_on(setting.given, taking_part, setting, ks=_lengths(record))
    missing |= {skipped.name: skipped.reason for skipped in found.skipped}
    groups = groups_of(found.task.test, found.entries[0].evaluation.rows) if found.entries else None
    notes = [density(found.task.facts.train_rows, found.task.facts.labels), *_choices(found)]
    return Findings([_found(entry) for entry in found.entries], missing, notes=notes, groups=groups)


def _lengths(record: Record) -> tuple[int, ...]:
    """The usual lengths of a list, and those of the record's columns."""
    own = [int(column.rpartition("@")[2]) for column in record.shown if "@" in column]
    return tuple(sorted({*KS, *own}))


def _choices(found: comparison.Comparison) -> list[str]:
    """What was chosen on the validation rows."""
    told = [
        f"{entry.name} {', '.join(f'{name} = {value:.3g}' for name, value in entry.chosen.items())}"
        for entry in found.entries
        if entry.tried
    ]
    rate = " (rate: times the default learning rate)" if any("rate =" in words for words in told) else ""
    return [f"Chosen by {found.tuned_on} of the validation rows: {'; '.join(told)}{rate}."] if told else []


def available(record: Record, setting: Setting) -> tuple[list[Entrant], dict[str, str]]:
    """The entrants of the record's entries, named as the paper's rows, and those that this version lacks."""
    made: list[Entrant] = []
    missing: dict[str, str] = {}
    for entry in record.entries:
        if entry.entrant in NAMES:
            entrant = within_time(_entrant(entry, setting), setting.given.train)
            made.append(same_budget(entrant, setting.given) if record.tuned else entrant)
        else:
            missing[entry.row] = f"{entry.entrant} is {UNAVAILABLE}"
    return made, missing


def _entrant(entry: Entry, setting: Setting) -> Entrant:
    """The entrant with the entry's parameters fixed, which are then not tuned, and with its options."""
    (known,) = entrants([entry.entrant], seed=setting.seed, threads=setting.threads, parameters=setting.parameters)
    fixed = {name: value(setting) if callable(value) else value for name, value in entry.parameters.items()}
    title = known.title
    if fixed:
        title += f" ({', '.join(f'{name} = {value}' for name, value in fixed.items())})"
    options = known.options if not fixed else _without(known.options, fixed)
    options = tuple({**option, **other} for option in options for other in entry.options)
    return replace(known, name=entry.row, title=title, build=partial(known.build, **fixed), options=options)


def thrice(setting: Setting) -> int:
    """Three times the epochs that a model would have."""
    return 3 * int(setting.parameters.get("epochs") or defaults.epochs(shape_of(setting.given)))


def _without(options: Sequence[dict[str, Any]], fixed: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Options without the parameters that are fixed, each once."""
    kept = [{name: value for name, value in option.items() if name not in fixed} for option in options]
    return tuple(option for i, option in enumerate(kept) if option not in kept[:i])


def compare_on(
    data: Data, taking_part: Sequence[Entrant], setting: Setting, *, ks: Sequence[int] = KS
) -> comparison.Comparison:
    """All entrants on the split of the data, with precision at these lengths."""
    return compare(
        data.train,
        data.valid,
        data.test,
        taking_part,
        min_rows=data.min_rows,
        ks=ks,
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


def task_of(data: Data) -> Task:
    """The split of the data, without the labels that are too rare."""
    return make_task(
        data.train,
        data.valid,
        data.test,
        min_rows=data.min_rows,
        allow_overlap=data.published_split,
        similar=data.similar,
    )


def density(rows: int, labels: int) -> str:
    """How many rows a label has, in words."""
    return f"{rows:,} training rows for {labels:,} labels, {rows / labels:.1f} each."


def nested_labels(record: Record, setting: Setting) -> Findings:
    """The same models on ever more of the labels: a sixteenth of them, an eighth ... all, each set within the next.

    Rows are those that keep a label; the labels of a set are the first of one shuffled order.
    """
    data = setting.given
    taking_part, missing = available(record, setting)
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
