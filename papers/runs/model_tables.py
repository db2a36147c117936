"""Models fitted and evaluated on one split: tables of models or parameters, nested label sets, curves."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from papers.datasets import PaperData
from papers.record import Cell, FindingRow, PaperRecord, RecordEntry, RunFindings, RunSettings
from papers.tuning_budget import equalise_budget, limit_training_time, measure_data_shape
from wsabie.io.records import FeatureTable, count_labels, get_groups
from wsabie.models.base.parameter_defaults import default_epochs
from wsabie.models.estimator_specs import list_parameters
from wsabie.workflows.compare.comparison import KS, compare_models
from wsabie.workflows.compare.comparison_table import Comparison, ModelEntry
from wsabie.workflows.compare.comparison_task import ComparisonTask, build_comparison_task
from wsabie.workflows.compare.entrants import ENSEMBLES, NAMES, Entrant, build_entrants

UNAVAILABLE = "not available in this version"
_RESAMPLES = 200
_FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def compare_entries(record: PaperRecord, setting: RunSettings, *, untuned: bool = False) -> RunFindings:
    """Fit and evaluate every entry of the record on the same rows; `untuned`: with one setting each."""
    entrants, missing = list_available_entrants(record, setting)
    if untuned:
        entrants = [replace(entrant, options=entrant.options[:1]) for entrant in entrants]
    if not entrants:
        return RunFindings([], missing)
    results = compare_on_data(setting.required_data, entrants, setting, ks=_list_lengths(record))
    missing |= {skipped.name: skipped.reason for skipped in results.skipped}
    groups = get_groups(results.task.test, results.entries[0].evaluation.rows) if results.entries else None
    notes = [format_label_density(results.task.facts.train_rows, results.task.facts.labels), *_format_choices(results)]
    return RunFindings([_make_finding(entry) for entry in results.entries], missing, notes=notes, groups=groups)


def _list_lengths(record: PaperRecord) -> tuple[int, ...]:
    """Return the usual list lengths, and those of the record's columns."""
    record_lengths = [int(column.rpartition("@")[2]) for column in record.table_columns if "@" in column]
    return tuple(sorted({*KS, *record_lengths}))


def _format_choices(results: Comparison) -> list[str]:
    """Describe the settings that the validation rows chose."""
    choices = [
        f"{entry.name} {', '.join(f'{name} = {value:.3g}' for name, value in entry.option.items())}"
        for entry in results.entries
        if entry.option_figures
    ]
    rate = " (rate: times the default learning rate)" if any("rate =" in words for words in choices) else ""
    return [f"Chosen by {results.tuned_on} of the validation rows: {'; '.join(choices)}{rate}."] if choices else []


def list_available_entrants(record: PaperRecord, setting: RunSettings) -> tuple[list[Entrant], dict[str, str]]:
    """Return the available entrants, named as the paper's rows, and the unavailable rows."""
    entrants: list[Entrant] = []
    missing: dict[str, str] = {}
    for entry in record.entries:
        if entry.entrant in NAMES:
            entrant = limit_training_time(_build_entrant(entry, setting), setting.required_data.train)
            entrants.append(equalise_budget(entrant, setting.required_data) if record.tuned else entrant)
        else:
            missing[entry.row] = f"{entry.entrant} is {UNAVAILABLE}"
    return entrants, missing


def _build_entrant(entry: RecordEntry, setting: RunSettings) -> Entrant:
    """Build the entrant with the entry's fixed parameters, which are not tuned, and with its options."""
    (entrant,) = build_entrants(
        [entry.entrant], seed=setting.seed, threads=setting.threads, parameters=setting.parameters
    )
    fixed = {name: value(setting) if callable(value) else value for name, value in entry.parameters.items()}
    title = entrant.title
    if fixed:
        title += f" ({', '.join(f'{name} = {value}' for name, value in fixed.items())})"
    if entry.entrant in ENSEMBLES or "init" in list_parameters(entry.entrant):
        fixed = {"init": "random", **fixed}  # as the papers begin
    options = entrant.options if not fixed else _drop_fixed(entrant.options, fixed)
    options = tuple({**option, **entry_option} for option in options for entry_option in entry.options)
    return replace(entrant, name=entry.row, title=title, build=partial(entrant.build, **fixed), options=options)


def triple_epochs(setting: RunSettings) -> int:
    """Return three times the default epochs of a model."""
    return 3 * int(setting.parameters.get("epochs") or default_epochs(measure_data_shape(setting.required_data)))


def _drop_fixed(options: Sequence[dict[str, Any]], fixed: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the distinct options without fixed parameters."""
    remaining = [{name: value for name, value in option.items() if name not in fixed} for option in options]
    return tuple(option for i, option in enumerate(remaining) if option not in remaining[:i])


def compare_on_data(
    data: PaperData, entrants: Sequence[Entrant], setting: RunSettings, *, ks: Sequence[int] = KS
) -> Comparison:
    """Compare all entrants on the split of the data, with precision at these lengths."""
    return compare_models(
        build_task(data), entrants, ks=ks, resamples=_RESAMPLES, seed=setting.seed, progress=setting.progress
    )


def _make_finding(entry: ModelEntry) -> FindingRow:
    figures: dict[str, Cell] = dict(entry.evaluation.means)
    figures |= {
        "train s": entry.fit_seconds,
        "train h": entry.fit_seconds / 3600,
        "s/image": entry.predict_ms / 1000,
        "MB": entry.n_bytes / 1e6,
    }
    return FindingRow(entry.name, entry.title, figures, dict(entry.evaluation.per_row))


def build_task(data: PaperData) -> ComparisonTask:
    """Build the task of the data, without rare labels."""
    return build_comparison_task(
        data.train,
        data.valid,
        data.test,
        min_rows=data.min_rows,
        allow_overlap=data.published_split,
        similar=data.similar,
    )


def format_label_density(rows: int, labels: int) -> str:
    """Describe the number of rows per label."""
    return f"{rows:,} training rows for {labels:,} labels, {rows / labels:.1f} each."


def compare_nested_label_sets(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compare models on growing label sets: a sixteenth of the labels, an eighth ... all.

    Rows are those that keep a label; the labels of a set are the first of one shuffled order.
    """
    data = setting.required_data
    entrants, missing = list_available_entrants(record, setting)
    frequent_labels = np.flatnonzero(count_labels(data.train) >= data.min_rows)
    order = np.random.default_rng(setting.seed).permutation(frequent_labels)
    rows: list[FindingRow] = []
    notes = []
    for share in _FRACTIONS:
        n = max(2, round(len(order) * share))
        train, valid, test = (_select_labels(rows, order[:n]) for rows in (data.train, data.valid, data.test))
        part = replace(data, train=train, valid=valid, test=test)
        if not (len(part.train) and len(part.valid) and len(part.test)):
            notes.append(f"{n:,} labels leave a side without rows.")
            continue
        results = compare_on_data(part, entrants, setting)
        for entry in results.entries:
            row = _make_finding(entry)
            rows.append(replace(row, row=f"{entry.name}, {n} labels", figures={**row.figures, "labels": n}))
        facts = results.task.facts
        notes.append(f"{n:,} labels: {facts.train_rows:,} training and {facts.test_rows:,} test rows.")
    return RunFindings(rows, missing, notes=notes)


def _select_labels(rows: FeatureTable, labels: Any) -> FeatureTable:
    """Return rows with some of the labels, without rows that lose all."""
    part = rows.with_labels(labels)
    return part.take(np.flatnonzero((part.Y > 0).getnnz(axis=1)))
