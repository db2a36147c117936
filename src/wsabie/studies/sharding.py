"""A collection of rows written as shards in a random order, however large it is.

It is a sort by a random key on the disk. A row's key is a hash of its id, so that the order does not depend on that of
the source, be it sorted by label. Rows are read once, and as many as fit are written as a run, sorted by their keys;
then a shard is what all runs hold between two keys. Runs and shards appear whole or not at all: a conversion that was
stopped goes on behind the last of them, and writes the same bytes.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.base.arrays import Int32, Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.sources.fingerprint import fingerprint
from wsabie.sources.streamed import RowStream, WholeStream
from wsabie.sources.text import reading, shown
from wsabie.storage.atomic import explained, held, readable, remove_drafts, write_text
from wsabie.storage.columns import (
    Columns,
    KeptOpen,
    Lists,
    joined,
    map_columns,
    starts_of,
    taken,
    words_of,
    write_columns,
)
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers
from wsabie.storage.shard_statistics import Statistics
from wsabie.storage.shards import (
    MAKE_AGAIN,
    MANIFEST,
    MOST_OPEN,
    NAMES,
    PARTS,
    REJECTED,
    STATISTICS,
    WORK,
    Shards,
    found_shard,
    nonzeros,
    open_shard_folder,
    write_manifest,
    write_shard,
)
from wsabie.studies.shard_keys import keyed
from wsabie.studies.shard_values import (
    Narrowed,
    Values,
    narrowed,
    types_shared,
    unsigned,
    values_of,
    width_of,
    with_values,
)

ROWS_PER_SHARD = 1 << 16
NONZEROS_PER_SHARD = 1 << 25
ROWS_PER_RUN = 1 << 18
NONZEROS_PER_RUN = 1 << 24
_KEYS_AT_ONCE = 1 << 19
_OURS = rf"rows-\d+-of-\d+\.safetensors|{PARTS}|{STATISTICS}|{NAMES}|{REJECTED}|{MANIFEST}"
_SORTED = 2
"""The way in which runs and shards are written; another one does not go on with them."""


@dataclass(frozen=True)
class Wanted:
    """How shards are written.

    Attributes
    ----------
    rows : int
        Rows of a shard, about; fewer where rows are long.
    values : {"exact", "half"}
        "exact": as the smallest type that holds every value as it is: uint8, uint16, float16 or float32. "half":
        float16 where a value would want float32, with a relative error of 2^-11 at most.
    seed : int
        Of the order.
    """

    rows: int = ROWS_PER_SHARD
    values: Values = "exact"
    seed: int = 0


def write_shards(
    stream: RowStream,
    out: Path,
    wanted: Wanted,
    *,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> Shards:
    """Write the rows of a source as shards; a stopped run goes on where it was.

    Parameters
    ----------
    stream : RowStream
    out : Path
        A folder, which is made; one with the shards of the same source is verified and left as it is.
    wanted : Wanted
    executor : Executor or None
        Where shards are cut out of the runs and written; None: this process.
    rejects : Rejects or None
        The list that the stream was opened with: what a finished or stopped conversion had rejected is added.

    Raises
    ------
    InputError
        The folder is a file, or holds something else or shards that are damaged; nothing is left of the source; or a
        value that float16 cannot hold.
    """
    rejects = Rejects() if rejects is None else rejects
    with readable(out):
        if out.exists() and not out.is_dir():
            raise InputError(f"{out} is a file; give the name of a folder")
    made_of = _made_of(stream, wanted)
    refuse_strangers(out, _OURS)
    with explained(out):
        out.mkdir(parents=True, exist_ok=True)
    with held(out):
        work = out / PARTS
        if (out / MANIFEST).exists():
            shards = _finished(out, made_of, progress)
            _take_over(rejects, _rejected_before(out))
        else:
            _begin(out, work, made_of, stream.path, wanted)
            runs = _Runs(work, stream, wanted, rejects)
            runs.write(progress)
            shards = _carry_out(out, runs, made_of, executor or Serial(), progress)
        shutil.rmtree(work, ignore_errors=True)
    return shards


def _finished(out: Path, made_of: str, progress: Progress) -> Shards:
    """Shards that are there, whole to the last byte, and of the same source."""
    try:
        shards = open_shard_folder(out)
        if shards.made_of != made_of:
            raise InputError(f"{out} holds shards of other data or with other options; name another, or delete it")
        shards.verify(progress)
    except InputError as error:
        raise InputError(str(error).replace(MAKE_AGAIN, _anew(out))) from error
    return shards


def _anew(out: Path) -> str:
    return f"delete {out} and give the command again"


def _made_of(stream: RowStream, wanted: Wanted) -> str:
    """Changes with the source and with how it is written."""
    if isinstance(stream, WholeStream):
        told: list[Any] = [fingerprint(stream.rows)]
    else:
        with reading(stream.path):
            stats = [(file.name, file.stat()) for file in stream.files]
        told = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    content = json.dumps([_SORTED, told, *_options(wanted)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _options(wanted: Wanted) -> tuple[int, str, int]:
    return wanted.rows, wanted.values, wanted.seed


def _begin(out: Path, work: Path, made_of: str, source: Path, wanted: Wanted) -> None:
    """Make the folder of unfinished work; that of other work, and shards without either, are refused.

    Of a source that has changed since, as when a bad row was corrected, it is removed if nothing in it is finished."""
    told = {"made_of": made_of, "source": str(source), "path": str(source.resolve()), "options": list(_options(wanted))}
    begun = _begun(work / WORK)
    if begun.get("made_of") == made_of:
        remove_drafts(out)
        return
    if begun:
        again = all(begun.get(name) == told[name] for name in ("path", "options"))
        if again and is_anything_finished(out):
            raise InputError(
                f"{source} has changed since the unfinished shards in {out} were begun; delete {out} to begin anew"
            )
        if not again:
            raise InputError(
                f"{out} holds unfinished shards of {begun['source']}, of other data or with other options; run that "
                "command again to finish them, name another folder, or delete it"
            )
    with explained(out):
        shutil.rmtree(work, ignore_errors=True)  # of a command that was stopped before it had begun
        remove_drafts(out)
        if lost := sorted(path.name for path in out.iterdir() if path.suffix != ".tmp"):
            raise InputError(
                f"{out} holds {lost[0]}, but no {MANIFEST} that says what it is of; restore that from a copy, name "
                "another folder, or delete it"
            )
        work.mkdir()
    write_text(work / WORK, json.dumps(told, ensure_ascii=False))


def is_anything_finished(out: Path) -> bool:
    """Whether the same command goes on from something: a run, a shard, or what is written beside them."""
    with readable(out):
        if not out.is_dir():
            return False
        beside = any(path.name != PARTS and path.suffix != ".tmp" for path in out.iterdir())
        return beside or any((out / PARTS).glob("run-*.safetensors"))


def _begun(file: Path) -> dict[str, Any]:
    """What the unfinished work is, where there is some."""
    with readable(file):
        if not file.is_file():
            return {}
        try:
            told = json.loads(file.read_text(encoding="utf-8", errors="replace"))
        except ValueError:
            told = None
    return told if isinstance(told, dict) and {"made_of", "source"} <= set(told) else {"source": "what cannot be told"}


# ---- runs

Rejected = tuple[Counter[str], int]
"""How many rows were rejected, by reasons, and how many of them are listed."""


def _noted(note: Mapping[str, Any]) -> Rejects:
    """What was rejected when a note was made."""
    found = Rejects()
    found.counts = Counter({str(reason): int(n) for reason, n in note["counts"].items()})
    found.listed = [(str(where), str(reason), str(detail)) for where, reason, detail in note["rejected"]]
    return found


def _rejected_before(out: Path) -> Rejects:
    """What was rejected when the shards in a folder were made."""
    file = out / REJECTED
    with readable(out):
        try:
            return _noted(json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{file}, the list of what was rejected, is missing or damaged; restore it from a copy, or {_anew(out)}"
            ) from error


def _take_over(rejects: Rejects, found: Rejects) -> None:
    """Add what was rejected before."""
    if rejects.strict and found:
        rejects.add(*found.listed[0])
    rejects.add_all(found)


@dataclass
class _Runs:
    """The rows of a source in runs, each sorted by the rows' keys; of finished ones the notes are kept."""

    work: Path
    stream: RowStream
    wanted: Wanted
    rejects: Rejects
    done: list[dict[str, Any]] = field(default_factory=list)
    before: Rejected = field(init=False)  # of a source that is read whole, which tells them every time

    def __post_init__(self) -> None:
        self.before = self._now()

    @cached_property
    def run(self) -> KeptOpen:
        """run(number): the rows of a finished run, mapped."""
        return _runs_in(self.work)

    def total(self, name: str) -> int:
        """The sum of a number that stands in the notes of all runs."""
        return sum(note[name] for note in self.done)

    def write(self, progress: Progress) -> None:
        """Go on behind the last run that is there."""
        index = self.stream.index
        while (note := self._found(len(self.done))) is not None:
            for name in note["names"]:
                index.number(name)
            _take_over(self.rejects, _noted(note))
            self.done.append(note)
        if self.done and self.done[-1]["last"]:
            return
        position = self.done[-1]["position"] if self.done else 0
        with progress.stage(f"reading {self.stream.path.name}", None, "rows") as stage:
            stage.advance(self.total("rows"))
            for run, end, seen in self._collected(position):
                self._add(run, end, seen)
                stage.advance(len(run.columns))

    def _collected(self, position: int) -> Iterator[tuple[Narrowed, int, Rejected | None]]:
        """As many parts together as make a run, how far they go, and what was rejected so far; None behind the last."""
        held: list[Narrowed] = []
        seen = self._now()
        for part in self.stream.parts(position):
            parts = [*(one.columns for one in held), part.columns]
            n_rows, n_values = (sum(map(count, parts)) for count in (len, nonzeros))
            if held and (n_rows > ROWS_PER_RUN or n_values > NONZEROS_PER_RUN):
                yield self._as_one(held), position, seen
                held = []
            held.append(narrowed(part.columns, self.wanted.values, self.stream.path))
            position, seen = part.position, self._now()  # not those of the next part, which is read first
        if held:
            yield self._as_one(held), position, None

    def _as_one(self, parts: list[Narrowed]) -> Narrowed:
        types = types_shared([part.types for part in parts], self.stream.path)
        columns = joined([part.columns for part in parts])  # of a wider type, where that of the parts is not one
        return Narrowed(with_values(columns, values_of(columns).astype(types[0], copy=False)), types)

    def _now(self) -> Rejected:
        return Counter(self.rejects.counts), len(self.rejects.listed)

    def _rejected_between(self, seen: Rejected, told: Rejected) -> dict[str, Any]:
        """For a note: what had been rejected at one time and not yet at another."""
        return {"counts": dict(seen[0] - told[0]), "rejected": self.rejects.listed[told[1] : seen[1]]}

    def _add(self, run: Narrowed, position: int, seen: Rejected | None) -> None:
        columns = run.columns
        names, before = self.stream.index.so_far, sum(len(note["names"]) for note in self.done)
        counted = sum((Counter(note["counts"]) for note in self.done), self.before[0])
        listed = self.before[1] + sum(len(note["rejected"]) for note in self.done)
        note = {
            "rows": len(columns),
            "nonzeros": nonzeros(columns),
            "pairs": len(columns.lists["y"].parts["labels"]),
            "width": width_of(columns),
            "types": run.types,
            "names": names[before:],
            "position": position,
            "last": seen is None,
            **self._rejected_between(seen or self._now(), (counted, listed)),
        }
        columns = keyed(columns, self.stream.about, self.wanted.seed)
        order, file = np.argsort(columns.numbers["key"], kind="stable"), self._file(len(self.done))
        # beside the run, which is opened for many shards; there before it, so that a run that is there has one
        write_text(file.with_suffix(".json"), json.dumps(note))
        write_columns(file, columns.take(order), {})
        self.done.append(note)

    @property
    def rejected(self) -> dict[str, Any]:
        """What was rejected, but for what a source that is read whole tells every time."""
        return self._rejected_between(self._now(), self.before)

    def _found(self, number: int) -> dict[str, Any] | None:
        """The note of a run that is there; both are looked at here, and by nothing that opens the run later."""
        file = self._file(number)
        try:
            if not file.is_file():
                return None
            map_columns(file)
            note: dict[str, Any] = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
            return note
        except (ValueError, FileNotFoundError):
            file.unlink()
            return None

    def _file(self, number: int) -> Path:
        return _run_file(self.work, number)


def _run_file(work: Path, number: int) -> Path:
    return work / f"run-{number:05d}.safetensors"


def _runs_in(work: Path) -> KeptOpen:
    def mapped(number: int) -> Columns:
        with readable(_run_file(work, number)):
            return map_columns(_run_file(work, number), check=False)[0]  # `_found`, or written just now

    return KeptOpen(mapped, MOST_OPEN)


# ---- shards


def _bounds(runs: _Runs, n_shards: int) -> Int32:
    """Where the rows of each shard begin in each run, (n_runs, n_shards + 1)."""
    cuts = np.array([(number << 64) // n_shards for number in range(1, n_shards)], np.uint64)
    bounds = np.zeros((len(runs.done), n_shards + 1), np.int32)
    for number, row in enumerate(bounds):
        keys = runs.run(number).numbers["key"]
        row[1:-1], row[-1] = np.searchsorted(keys, cuts), len(keys)
    return bounds


def _repeated(runs: _Runs, bounds: Int32) -> list[Int32]:
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


def _tell_repeated(runs: _Runs, found: list[Int32]) -> None:
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


def _again(runs: _Runs, span: Int32) -> tuple[Int32, Int32]:
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


def _carry_out(out: Path, runs: _Runs, made_of: str, executor: Executor, progress: Progress) -> Shards:
    """Write the shards that are missing, then everything beside them."""
    n_rows = runs.total("rows")
    if not n_rows:
        raise InputError(f"no rows are left of {shown(runs.stream.path)}; look at the list that --rejects FILE writes")
    if not runs.total("pairs"):
        raise InputError(f"nothing in {shown(runs.stream.path)} has a label; give rows that have some")
    n_shards = max(1, -(-n_rows // runs.wanted.rows), -(-runs.total("nonzeros") // NONZEROS_PER_SHARD))
    bounds = _bounds(runs, n_shards)
    gone = _repeated(runs, bounds)
    types = _Types.of(runs, gone)
    cut, files = _Cut(out, runs.work, bounds, gone, types), []
    with progress.stage("writing shards", n_rows - sum(map(len, gone)), "rows") as stage:
        for entry in executor.map_with(_Cut.write, cut, range(n_shards)):
            if not (out / entry["file"]).is_file():
                raise InputError(f"{entry['file']} was written on another machine and is not found in {out}; choose a "
                                 "folder that all machines share")  # fmt: skip
            files.append(entry)
            stage.advance(entry["rows"])
    facts, names, statistics = _about(out, runs, types, files)
    write_text(out / REJECTED, json.dumps(runs.rejected))
    return write_manifest(out, facts, files, names, statistics, made_of)


class _Types(NamedTuple):
    """What only the whole source tells."""

    width: int
    names: list[str]
    final: Int32  # number of a label by the one in which its name came up
    values: Any
    dense: bool

    @classmethod
    def of(cls, runs: _Runs, gone: list[Int32]) -> "_Types":
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
        return cls(about.n_features or width, names, final, values, "features" in runs.run(0).numbers)


def _needed(runs: _Runs, gone: list[Int32]) -> tuple[int, Int64]:
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
class _Cut:
    """How shards are cut out of the runs; travels to workers."""

    out: Path
    work: Path
    bounds: Int32
    gone: list[Int32]  # rows of each run that are left out
    types: _Types

    @property
    def n_shards(self) -> int:
        return int(self.bounds.shape[1]) - 1

    @cached_property
    def run(self) -> KeptOpen:
        return _runs_in(self.work)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "run"}  # open files do not travel

    def write(self, number: int) -> dict[str, Any]:
        """The entry of a shard, which is written where it is missing."""
        found = found_shard(self.out, number, self.n_shards)
        return found or write_shard(self.out, number, self.n_shards, _between(self, number))


def _between(cut: _Cut, number: int) -> Columns:
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


def _about(
    out: Path, runs: _Runs, types: _Types, files: list[dict[str, Any]]
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
        "source": runs.stream.path.name,
        "seed": runs.wanted.seed,
        "values": types.values.name,
        "indices": None if types.dense else np.dtype(unsigned(types.width)).name,
    }
    names = {"label_names": types.names, "feature_names": about.feature_names}
    return facts, names, seen.arrays()
