"""Shards cut from sorted runs: a shard holds the rows of all runs between two keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Int32, Int64
from wsabie.io.dimension_checks import check_feature_count
from wsabie.io.parsers.text_files import format_path
from wsabie.io.shards.shard_folder import find_shard, write_shard
from wsabie.io.shards.shard_statistics import ShardStatistics
from wsabie.storage.column_files import (
    ColumnFileCache,
    ColumnTable,
    ListColumn,
    compute_offsets,
    concatenate_columns,
    decode_text_column,
    map_columns,
    take_lists,
)
from wsabie.workflows.shards.sorted_runs import SortedRuns, open_run_cache
from wsabie.workflows.shards.value_types import (
    choose_unsigned_type,
    find_index_width,
    list_common_types,
    read_values,
    replace_values,
)

_KEYS_AT_ONCE = 1 << 19


def find_shard_bounds(runs: SortedRuns, n_shards: int) -> Int32:
    """Return the first row of each shard in each run, (n_runs, n_shards + 1)."""
    cuts = np.array([(number << 64) // n_shards for number in range(1, n_shards)], np.uint64)
    bounds = np.zeros((len(runs.notes), n_shards + 1), np.int32)
    for number, row in enumerate(bounds):
        keys = runs.open_run(number).numbers["key"]
        row[1:-1], row[-1] = np.searchsorted(keys, cuts), len(keys)
    return bounds


def find_repeated_rows(runs: SortedRuns, bounds: Int32) -> list[Int32]:
    """Return ascending positions in each run of rows with a repeated id, and reject these rows."""
    first = runs.open_run(0)
    if "row" not in first.numbers or "id" in first.numbers:  # ids are those of `Rows`, or numbers of rows
        return [np.zeros(0, np.int32) for _ in runs.notes]
    step = max(1, _KEYS_AT_ONCE // runs.options.rows)
    spans = [bounds[:, lo : lo + step + 1][:, [0, -1]] for lo in range(0, bounds.shape[1] - 1, step)]
    run, position = (
        np.concatenate(parts) for parts in zip(*(_find_repeats(runs, span) for span in spans), strict=True)
    )
    order = np.argsort(run, kind="stable")
    repeated = np.split(position[order], np.searchsorted(run[order], np.arange(1, len(runs.notes))))
    _reject_repeated(runs, repeated)
    return repeated


def _reject_repeated(runs: SortedRuns, repeated: list[Int32]) -> None:
    """Reject repeated rows in the order of the source; each run continues the run before."""
    for number, positions in enumerate(repeated):
        if not len(positions):
            continue
        columns = runs.open_run(number)
        rows = columns.numbers["row"][positions]
        order = np.argsort(rows)
        names = decode_text_column(take_lists(columns.lists["id"], positions[order].astype(np.int64)))
        for row, name in zip(rows[order].tolist(), names, strict=True):
            runs.rejects.add(runs.stream.where(row), "duplicate id", name)


def _find_repeats(runs: SortedRuns, span: Int32) -> tuple[Int32, Int32]:
    """Return run and position of repeated rows between two positions of each run, (n_runs, 2)."""
    ends = span.tolist()
    run = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(span)[:, 0])
    position = np.concatenate([np.arange(lo, hi, dtype=np.int32) for lo, hi in ends])
    keys = np.concatenate([runs.open_run(i).numbers["key"][lo:hi].copy() for i, (lo, hi) in enumerate(ends)])
    order = np.argsort(keys, kind="stable")  # of one key in the order of the source
    repeats = np.flatnonzero(keys[order][1:] == keys[order][:-1]) + 1
    near = order[np.union1d(repeats - 1, repeats)]
    ids: dict[int, str] = {}
    for number in np.unique(run[near]).tolist():
        rows_of_run = near[run[near] == number]
        ids |= zip(
            rows_of_run.tolist(),
            decode_text_column(take_lists(runs.open_run(number).lists["id"], position[rows_of_run])),
            strict=True,
        )
    pairs = zip(order[repeats - 1].tolist(), order[repeats].tolist(), strict=True)
    repeated = [second for first, second in pairs if ids[first] == ids[second]]  # two ids may have one key
    return run[repeated], position[repeated]


class SourceTypes(NamedTuple):
    """Types and names that only the whole source determines."""

    width: int
    names: list[str]
    label_ids: Int32  # final label id by the order of first appearance
    values: Any
    dense: bool

    @classmethod
    def from_runs(cls, runs: SortedRuns, dropped: list[Int32]) -> "SourceTypes":
        info, index = runs.stream.about, runs.stream.index
        width, lost_ids = _measure_width(runs, dropped)
        if info.order == "number":
            numbers = index.so_far
            order = sorted(range(len(numbers)), key=lambda i: int(numbers[i]))
            final = np.empty(len(order), np.int32)
            final[order] = np.arange(len(order))
            names = [numbers[i] for i in order]
        else:
            names, final = index.finish()
            if info.order == "text":  # otherwise the source lists its labels
                is_used = np.ones(len(names), bool)
                is_used[final[lost_ids]] = False
                names = [name for name, used in zip(names, is_used, strict=True) if used]
                final = (np.cumsum(is_used, dtype=np.int32) - 1)[final]
        values = np.dtype(list_common_types([note["types"] for note in runs.notes], runs.stream.path)[0])
        check_feature_count(runs.stream.path, info.n_features or width, runs.total("nonzeros"))
        return cls(info.n_features or width, names, final, values, "features" in runs.open_run(0).numbers)


def _measure_width(runs: SortedRuns, dropped: list[Int32]) -> tuple[int, Int64]:
    """Return the width without the dropped rows, and the labels that only these rows have."""
    widths = [note["width"] for note in runs.notes]
    used, dropped_labels = np.zeros((2, len(runs.stream.index.so_far)), bool)
    for number, positions in enumerate(dropped) if any(map(len, dropped)) else ():
        run = runs.open_run(number)
        rows = ColumnTable(lists={name: run.lists[name] for name in ("x", "y") if name in run.lists})
        dropped_labels[rows.take(positions.astype(np.int64)).lists["y"].parts["labels"]] = True
        if len(positions):
            rows = rows.take(np.delete(np.arange(len(run)), positions))
            widths[number] = find_index_width(rows) if "x" in rows.lists else widths[number]
        used[rows.lists["y"].parts["labels"]] = True
    return max(widths), np.flatnonzero(dropped_labels & ~used)


@dataclass
class ShardAssembler:
    """Plan of the shards; travels to workers."""

    out: Path
    work: Path
    bounds: Int32
    dropped: list[Int32]  # dropped rows of each run
    types: SourceTypes

    @property
    def n_shards(self) -> int:
        return int(self.bounds.shape[1]) - 1

    @cached_property
    def open_run(self) -> ColumnFileCache:
        return open_run_cache(self.work)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "open_run"}  # open files do not travel

    def write(self, number: int) -> dict[str, Any]:
        """Return the entry of a shard, written if it is missing."""
        entry = find_shard(self.out, number, self.n_shards)
        return entry or write_shard(self.out, number, self.n_shards, _cut_shard(self, number))


def _cut_shard(plan: ShardAssembler, number: int) -> ColumnTable:
    """Return the rows of a shard, in their order."""
    types, ends = plan.types, plan.bounds[:, number : number + 2].tolist()
    # copies, so that no run stays open for the sake of one piece
    rows = concatenate_columns(
        [concatenate_columns([plan.open_run(i).part(first, end)]) for i, (first, end) in enumerate(ends)]
    )
    order = np.argsort(rows.numbers["key"], kind="stable")
    starts = compute_offsets([end - first for first, end in ends]).tolist()
    dropped = [
        positions[slice(*np.searchsorted(positions, span))] - span[0] + start
        for positions, span, start in zip(plan.dropped, ends, starts[:-1], strict=True)
    ]
    rows = rows.take(order[~np.isin(order, np.concatenate(dropped))])
    y, labels = rows.lists["y"], types.label_ids[rows.lists["y"].parts["labels"]]
    lists = {**rows.lists, "y": _sort_labels(ListColumn(y.starts, {**y.parts, "labels": labels}), len(types.names))}
    numbers = {name: array for name, array in rows.numbers.items() if name not in ("key", "row")}
    if not types.dense:
        x = lists["x"]
        lists["x"] = ListColumn(
            x.starts, {**x.parts, "indices": x.parts["indices"].astype(choose_unsigned_type(types.width))}
        )
    lists = {
        name: ListColumn(column.starts.astype(_choose_offset_type(column)), column.parts)
        for name, column in lists.items()
    }
    return replace_values(ColumnTable(numbers, lists), read_values(rows).astype(types.values))


def _choose_offset_type(column: ListColumn) -> npt.DTypeLike:
    return np.uint32 if column.starts[-1] < 1 << 32 else np.uint64


def _sort_labels(labels: ListColumn, n_labels: int) -> ListColumn:
    """Sort each row's labels, and drop repeated ones."""
    numbers = labels.parts["labels"]
    rows = np.repeat(np.arange(len(labels.starts) - 1), np.diff(labels.starts))
    order = np.lexsort((numbers, rows))
    rows, numbers = rows[order], numbers[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (numbers[1:] != numbers[:-1])
    parts: dict[str, Any] = {"labels": numbers[first].astype(choose_unsigned_type(n_labels))}
    if "signs" in labels.parts:
        parts["signs"] = labels.parts["signs"][order][first]
    return ListColumn(compute_offsets(np.bincount(rows[first], minlength=len(labels.starts) - 1)), parts)


def collect_shard_facts(
    out: Path, runs: SortedRuns, types: SourceTypes, files: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Mapping[str, Any]]]:
    """Return the facts, the names and the statistics of finished shards."""
    info, statistics = runs.stream.about, ShardStatistics(types.width, len(types.names), types.dense)
    for entry in files:
        statistics.add(map_columns(out / entry["file"])[0])
    facts = statistics.facts() | {
        "counts": info.counts,
        "augment": info.augment,
        "dictionary": info.dictionary,
        "open_width": info.n_features is None and not types.dense,
        "source": format_path(runs.stream.path.name),
        "seed": runs.options.seed,
        "values": types.values.name,
        "indices": None if types.dense else np.dtype(choose_unsigned_type(types.width)).name,
    }
    names = {"label_names": types.names, "feature_names": info.feature_names}
    return facts, names, statistics.arrays()
