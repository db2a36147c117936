"""Shards cut out of sorted runs: a shard is what all runs hold between two keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.base.arrays import Int32, Int64
from wsabie.sources.text import shown
from wsabie.sources.widths import check_columns
from wsabie.storage.columns import Columns, KeptOpen, Lists, joined, map_columns, starts_of, taken, words_of
from wsabie.storage.shard_statistics import Statistics
from wsabie.storage.shards import found_shard, write_shard
from wsabie.studies.shard_runs import Runs, runs_in
from wsabie.studies.shard_values import types_shared, unsigned, values_of, width_of, with_values

_KEYS_AT_ONCE = 1 << 19


def bounds_of(runs: Runs, n_shards: int) -> Int32:
    """Where the rows of each shard begin in each run, (n_runs, n_shards + 1)."""
    cuts = np.array([(number << 64) // n_shards for number in range(1, n_shards)], np.uint64)
    bounds = np.zeros((len(runs.done), n_shards + 1), np.int32)
    for number, row in enumerate(bounds):
        keys = runs.run(number).numbers["key"]
        row[1:-1], row[-1] = np.searchsorted(keys, cuts), len(keys)
    return bounds


def repeated(runs: Runs, bounds: Int32) -> list[Int32]:
    """Places in each run, ascending, of the rows whose id an earlier row of the source has; these rows are told."""
    first = runs.run(0)
    if "row" not in first.numbers or "id" in first.numbers:  # ids are those of `Rows`, or numbers of rows
        return [np.zeros(0, np.int32) for _ in runs.done]
    step = max(1, _KEYS_AT_ONCE // runs.wanted.rows)
    spans = [bounds[:, lo : lo + step + 1][:, [0, -1]] for lo in range(0, bounds.shape[1] - 1, step)]
    run, place = (np.concatenate(some) for some in zip(*(_again(runs, span) for span in spans), strict=True))
    order = np.argsort(run, kind="stable")
    found = np.split(place[order], np.searchsorted(run[order], np.arange(1, len(runs.done))))
    _tell_repeated(runs, found)
    return found


def _tell_repeated(runs: Runs, found: list[Int32]) -> None:
    """In the order of the source, of which each run holds rows that follow those of the run before."""
    for number, places in enumerate(found):
        if not len(places):
            continue
        columns = runs.run(number)
        rows = columns.numbers["row"][places]
        order = np.argsort(rows)
        names = words_of(taken(columns.lists["id"], places[order].astype(np.int64)))
        for row, name in zip(rows[order].tolist(), names, strict=True):
            runs.rejects.add(runs.stream.where(row), "duplicate id", name)


def _again(runs: Runs, span: Int32) -> tuple[Int32, Int32]:
    """Run and place of such rows, among those between two places of each run, (n_runs, 2)."""
    ends = span.tolist()
    run = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(span)[:, 0])
    place = np.concatenate([np.arange(lo, hi, dtype=np.int32) for lo, hi in ends])
    keys = np.concatenate([runs.run(i).numbers["key"][lo:hi].copy() for i, (lo, hi) in enumerate(ends)])
    order = np.argsort(keys, kind="stable")  # of one key in the order of the source
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1]) + 1
    near = order[np.union1d(same - 1, same)]
    told: dict[int, str] = {}
    for number in np.unique(run[near]).tolist():
        its = near[run[near] == number]
        told |= zip(its.tolist(), words_of(taken(runs.run(number).lists["id"], place[its])), strict=True)
    pairs = zip(order[same - 1].tolist(), order[same].tolist(), strict=True)
    again = [at for before, at in pairs if told[before] == told[at]]  # two ids may have one key
    return run[again], place[again]


class Types(NamedTuple):
    """What only the whole source tells."""

    width: int
    names: list[str]
    final: Int32  # number of a label by the one in which its name came up
    values: Any
    dense: bool

    @classmethod
    def of(cls, runs: Runs, gone: list[Int32]) -> "Types":
        about, index = runs.stream.about, runs.stream.index
        width, lost = _needed(runs, gone)
        if about.order == "number":
            written = index.so_far
            order = sorted(range(len(written)), key=lambda i: int(written[i]))
            final = np.empty(len(order), np.int32)
            final[order] = np.arange(len(order))
            names = [written[i] for i in order]
        else:
            names, final = index.finish()
            if about.order == "text":  # else the source says which labels there are
                kept = np.ones(len(names), bool)
                kept[final[lost]] = False
                names = [name for name, one in zip(names, kept, strict=True) if one]
                final = (np.cumsum(kept, dtype=np.int32) - 1)[final]
        values = np.dtype(types_shared([note["types"] for note in runs.done], runs.stream.path)[0])
        check_columns(runs.stream.path, about.n_features or width, runs.total("nonzeros"))
        return cls(about.n_features or width, names, final, values, "features" in runs.run(0).numbers)


def _needed(runs: Runs, gone: list[Int32]) -> tuple[int, Int64]:
    """The width that is needed without the rows that are gone, and the labels that only these have."""
    widths = [note["width"] for note in runs.done]
    left, lost = np.zeros((2, len(runs.stream.index.so_far)), bool)
    for number, places in enumerate(gone) if any(map(len, gone)) else ():
        run = runs.run(number)
        rows = Columns(lists={name: run.lists[name] for name in ("x", "y") if name in run.lists})
        lost[rows.take(places.astype(np.int64)).lists["y"].parts["labels"]] = True
        if len(places):
            rows = rows.take(np.delete(np.arange(len(run)), places))
            widths[number] = width_of(rows) if "x" in rows.lists else widths[number]
        left[rows.lists["y"].parts["labels"]] = True
    return max(widths), np.flatnonzero(lost & ~left)


@dataclass
class Cut:
    """How shards are cut out of the runs; travels to workers."""

    out: Path
    work: Path
    bounds: Int32
    gone: list[Int32]  # rows of each run that are left out
    types: Types

    @property
    def n_shards(self) -> int:
        return int(self.bounds.shape[1]) - 1

    @cached_property
    def run(self) -> KeptOpen:
        return runs_in(self.work)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "run"}  # open files do not travel

    def write(self, number: int) -> dict[str, Any]:
        """The entry of a shard, which is written where it is missing."""
        found = found_shard(self.out, number, self.n_shards)
        return found or write_shard(self.out, number, self.n_shards, _between(self, number))


def _between(cut: Cut, number: int) -> Columns:
    """The rows of a shard, in their order."""
    types, ends = cut.types, cut.bounds[:, number : number + 2].tolist()
    # copies, so that no run stays open for its piece
    rows = joined([joined([cut.run(i).part(first, end)]) for i, (first, end) in enumerate(ends)])
    order = np.argsort(rows.numbers["key"], kind="stable")
    starts = starts_of([end - first for first, end in ends]).tolist()
    gone = [
        places[slice(*np.searchsorted(places, span))] - span[0] + start
        for places, span, start in zip(cut.gone, ends, starts[:-1], strict=True)
    ]
    rows = rows.take(order[~np.isin(order, np.concatenate(gone))])
    y, labels = rows.lists["y"], types.final[rows.lists["y"].parts["labels"]]
    lists = {**rows.lists, "y": _in_order(Lists(y.starts, {**y.parts, "labels": labels}), len(types.names))}
    numbers = {name: array for name, array in rows.numbers.items() if name not in ("key", "row")}
    if not types.dense:
        x = lists["x"]
        lists["x"] = Lists(x.starts, {**x.parts, "indices": x.parts["indices"].astype(unsigned(types.width))})
    lists = {name: Lists(column.starts.astype(_starts(column)), column.parts) for name, column in lists.items()}
    return with_values(Columns(numbers, lists), values_of(rows).astype(types.values))


def _starts(column: Lists) -> npt.DTypeLike:
    return np.uint32 if column.starts[-1] < 1 << 32 else np.uint64


def _in_order(labels: Lists, n_labels: int) -> Lists:
    """Each row's labels ascending, every label once."""
    numbers = labels.parts["labels"]
    rows = np.repeat(np.arange(len(labels.starts) - 1), np.diff(labels.starts))
    order = np.lexsort((numbers, rows))
    rows, numbers = rows[order], numbers[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (numbers[1:] != numbers[:-1])
    parts: dict[str, Any] = {"labels": numbers[first].astype(unsigned(n_labels))}
    if "signs" in labels.parts:
        parts["signs"] = labels.parts["signs"][order][first]
    return Lists(starts_of(np.bincount(rows[first], minlength=len(labels.starts) - 1)), parts)


def facts_of(
    out: Path, runs: Runs, types: Types, files: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Mapping[str, Any]]]:
    """The facts, the names and the statistics of finished shards."""
    about, seen = runs.stream.about, Statistics(types.width, len(types.names), types.dense)
    for entry in files:
        seen.add(map_columns(out / entry["file"])[0])
    facts = seen.facts() | {
        "counts": about.counts,
        "augment": about.augment,
        "dictionary": about.dictionary,
        "open_width": about.n_features is None and not types.dense,
        "source": shown(runs.stream.path.name),
        "seed": runs.wanted.seed,
        "values": types.values.name,
        "indices": None if types.dense else np.dtype(unsigned(types.width)).name,
    }
    names = {"label_names": types.names, "feature_names": about.feature_names}
    return facts, names, seen.arrays()
