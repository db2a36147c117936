"""Shards of data of any size, with their rows in a random order.

The order is a sort by a random key on the disk. A row's key is a hash of its id, so that the order does not depend on
that of the source, even if it is sorted by label. Rows are read once. As many as fit are written as a run, sorted by
their keys; a shard then holds the rows of all runs between two keys. Runs and shards appear whole or not at all: an
interrupted conversion continues behind the last of them, and writes the same bytes.
"""

import hashlib
import json
import shutil
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from wsabie.core.arrays import Int32, Int64
from wsabie.core.errors import InputError, require
from wsabie.core.execution import Executor, Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.sampling import RunOptions, WorkContext
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.parsers.array_builders import check_feature_count
from wsabie.io.parsers.text_files import explain_input_errors, format_path
from wsabie.io.row_streams import InMemoryStream, RowStream
from wsabie.io.shards import shard_folder
from wsabie.io.shards.shard_folder import ShardFolder
from wsabie.io.shards.sharded_table import ShardStatistics
from wsabie.storage import atomic_files, column_files
from wsabie.storage.column_files import ColumnTable, ListColumn, compute_offsets, decode_text_column, take_lists
from wsabie.storage.output_checks import refuse_unknown_files
from wsabie.storage.rejects import Rejects
from wsabie.workflows import shard_runs, shard_value_types
from wsabie.workflows.shard_runs import ShardOptions, SortedRuns

_KEYS_AT_ONCE = 1 << 19


NONZEROS_PER_SHARD = 1 << 25
_OTHER_FILES = (
    shard_folder.PARTS, shard_folder.STATISTICS, shard_folder.NAMES, shard_folder.REJECTED, shard_folder.MANIFEST
)  # fmt: skip
_SHARD_FILE = "|".join([r"rows-\d+-of-\d+\.safetensors", *_OTHER_FILES])
_LAYOUT_VERSION = 2
"""Version of the layout of runs and shards; another version does not continue them."""


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
    repeats = [_find_repeats(runs, span) for span in spans]
    run, position = map(np.concatenate, zip(*repeats, strict=True))
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
            runs.rejects.add(runs.stream.format_position(row), "duplicate id", name)


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
        info, index = runs.stream.info, runs.stream.index
        width, lost_ids = _measure_width(runs, dropped)
        names, final = index.finish()
        if info.order == "text":  # otherwise the source lists its labels
            is_used = np.ones(len(names), bool)
            is_used[final[lost_ids]] = False
            names = [name for name, used in zip(names, is_used, strict=True) if used]
            final = (np.cumsum(is_used, dtype=np.int32) - 1)[final]
        values = np.dtype(
            shard_value_types.list_common_types([note["types"] for note in runs.notes], runs.stream.path)[0]
        )
        check_feature_count(runs.stream.path, info.n_features or width, runs.total("nonzeros"))
        return cls(info.n_features or width, names, final, values, "features" in runs.open_run(0).numbers)


def _measure_width(runs: SortedRuns, dropped: list[Int32]) -> tuple[int, Int64]:
    """Return the width without the dropped rows, and the labels that only these rows have."""
    widths = [note["width"] for note in runs.notes]
    used, dropped_labels = np.zeros((2, len(runs.stream.index.provisional_names)), bool)
    for number, positions in enumerate(dropped) if any(map(len, dropped)) else ():
        run = runs.open_run(number)
        rows = ColumnTable(lists={name: run.lists[name] for name in ("x", "y") if name in run.lists})
        dropped_labels[rows.take(positions.astype(np.int64)).lists["y"].parts["labels"]] = True
        if len(positions):
            rows = rows.take(np.delete(np.arange(len(run)), positions))
            widths[number] = shard_value_types.find_index_width(rows) if "x" in rows.lists else widths[number]
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
    def open_run(self) -> column_files.ColumnFileCache:
        return shard_runs.open_run_cache(self.work)

    def __getstate__(self) -> JsonObject:
        return {name: value for name, value in self.__dict__.items() if name != "open_run"}  # open files do not travel

    def write(self, number: int) -> JsonObject:
        """Return the entry of a shard, written if it is missing."""
        entry = shard_folder.find_shard(self.out, number, self.n_shards)
        return entry or shard_folder.write_shard(self.out, number, self.n_shards, _cut_shard(self, number))


def _cut_shard(plan: ShardAssembler, number: int) -> ColumnTable:
    """Return the rows of a shard, in their order."""
    types, ends = plan.types, plan.bounds[:, number : number + 2].tolist()
    # copies, so that no run stays open for the sake of one piece
    parts = (plan.open_run(i).part(first, end) for i, (first, end) in enumerate(ends))
    rows = column_files.concatenate_columns([column_files.concatenate_columns([part]) for part in parts])
    order = np.argsort(rows.numbers["key"], kind="stable")
    starts = compute_offsets([end - first for first, end in ends]).tolist()
    dropped = [
        positions[slice(*np.searchsorted(positions, span))] - span[0] + start
        for positions, span, start in zip(plan.dropped, ends, starts[:-1], strict=True)
    ]
    rows = rows.take(order[~np.isin(order, np.concatenate(dropped))])
    y, labels = rows.lists["y"], types.label_ids[rows.lists["y"].parts["labels"]]
    lists = {**rows.lists, "y": _sort_labels(ListColumn(y.starts, {**y.parts, "labels": labels}), len(types.names))}
    lists = {
        name: column._replace(starts=column.starts.astype(np.uint32 if column.starts[-1] < 1 << 32 else np.uint64))
        for name, column in lists.items()
    }
    numbers = {name: array for name, array in rows.numbers.items() if name not in ("key", "row")}
    columns = shard_value_types.narrow_indices(ColumnTable(numbers, lists), types.width)
    return shard_value_types.replace_values(columns, shard_value_types.read_values(rows).astype(types.values))


def _sort_labels(labels: ListColumn, n_labels: int) -> ListColumn:
    """Sort each row's labels, and drop repeated ones."""
    numbers = labels.parts["labels"]
    rows = np.repeat(np.arange(len(labels.starts) - 1), np.diff(labels.starts))
    order = np.lexsort((numbers, rows))
    rows, numbers = rows[order], numbers[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (numbers[1:] != numbers[:-1])
    parts: JsonObject = {"labels": numbers[first].astype(shard_value_types.choose_unsigned_type(n_labels))}
    if "signs" in labels.parts:
        parts["signs"] = labels.parts["signs"][order][first]
    return ListColumn(compute_offsets(np.bincount(rows[first], minlength=len(labels.starts) - 1)), parts)


def write_shards(stream: RowStream, out: Path, options: ShardOptions, **context: Unpack[RunOptions]) -> ShardFolder:
    """Write the rows of a source as shards; an interrupted run continues.

    Parameters
    ----------
    stream : RowStream
    out : Path
        A folder, created if missing; one with the shards of the same source is verified and left as it is.
    options : ShardOptions
    executor : Executor or None
        Cuts the shards from the runs and writes them; None: this process.
    rejects : Rejects or None
        The list that the stream was opened with; rejects of a finished or interrupted conversion are added.

    Raises
    ------
    InputError
        The folder is a file, or holds other files or damaged shards; nothing is left of the source; or a value that
        float16 cannot hold.
    """
    executor, progress, rejects = WorkContext.from_options(**context)
    with atomic_files.explain_read_errors(out):
        require(not out.exists() or out.is_dir(), f"{out} is a file; give the name of a folder")
    digest = _compute_fingerprint(stream, options)
    refuse_unknown_files(out, _SHARD_FILE)
    with atomic_files.explain_write_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with atomic_files.lock_folder(out):
        work = out / shard_folder.PARTS
        if (out / shard_folder.MANIFEST).exists():
            shards = _open_finished(out, digest, progress)
            shard_runs.add_rejects(rejects, _read_rejects(out))
        else:
            _prepare_work(out, work, digest, stream.path, options)
            runs = SortedRuns(work, stream, options, rejects)
            runs.write(progress)
            if not isinstance(stream, InMemoryStream) and _compute_fingerprint(stream, options) != digest:
                raise InputError(f"{format_path(stream.path)} has changed while it was read; {_explain_restart(out)}")
            shards = _write_missing_shards(out, runs, digest, executor, progress)
        shutil.rmtree(work, ignore_errors=True)
    return shards


def _open_finished(out: Path, digest: str, progress: Progress) -> ShardFolder:
    """Open and verify finished shards; refuse shards of another source."""
    try:
        shards = shard_folder.open_shard_folder(out)
        fact = f"{out} holds shards of other data, of data that has changed or with other options"
        require(shards.origin == digest, f"{fact}; name another, or delete it")
        shards.verify(progress)
    except InputError as error:
        raise InputError(str(error).replace(shard_folder.MAKE_AGAIN, _explain_restart(out))) from error
    return shards


def _explain_restart(out: Path) -> str:
    return f"delete {out} and give the command again"


def _compute_fingerprint(stream: RowStream, options: ShardOptions) -> str:
    """Return a digest of the source and the options."""
    if isinstance(stream, InMemoryStream):
        source_state: list[Any] = [compute_fingerprint(stream.rows)]
    else:
        with explain_input_errors(stream.path):
            stats = [(file.name, file.stat()) for file in stream.files]
        source_state = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    content = json.dumps([_LAYOUT_VERSION, source_state, *astuple(options)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _prepare_work(out: Path, work: Path, digest: str, source: Path, options: ShardOptions) -> None:
    """Create the work folder, and refuse one of other work, or shards without either."""
    # if the source has changed, as when a bad row was corrected, unfinished work is removed unless a part of it
    # is finished
    names = {"source": format_path(source), "path": format_path(source.resolve())}
    work_facts = {"digest": digest, **names, "options": list(astuple(options))}
    unfinished = _read_work_facts(work / shard_folder.WORK)
    if unfinished.get("digest") == digest:
        atomic_files.remove_drafts(out)
        return
    if unfinished:
        is_same_work = all(unfinished.get(name) == work_facts[name] for name in ("path", "options"))
        if is_same_work and has_finished_parts(out):
            fact = f"{source} has changed since the unfinished shards in {out} were begun"
            raise InputError(f"{fact}; delete {out} to start over")
        if not is_same_work:
            fact = f"{out} holds unfinished shards of {unfinished['source']}, of other data or with other options"
            raise InputError(f"{fact}; run that command again to finish them, name another folder, or delete it")
    with atomic_files.explain_write_errors(out):
        shutil.rmtree(work, ignore_errors=True)  # left by a command that stopped too early
        atomic_files.remove_drafts(out)
        if foreign_files := sorted(path.name for path in out.iterdir() if path.suffix != ".tmp"):
            fact = f"{out} holds {foreign_files[0]}, but no {shard_folder.MANIFEST} that says what it is of"
            raise InputError(f"{fact}; restore that from a copy, name another folder, or delete it")
        work.mkdir()
    atomic_files.write_text(work / shard_folder.WORK, json.dumps(work_facts, ensure_ascii=False))


def has_finished_parts(out: Path) -> bool:
    """Return True if the same command would continue from a run, a shard, or a file beside them."""
    with atomic_files.explain_read_errors(out):
        if not out.is_dir():
            return False
        has_files = any(path.name != shard_folder.PARTS and path.suffix != ".tmp" for path in out.iterdir())
        return has_files or any((out / shard_folder.PARTS).glob("run-*.safetensors"))


def _read_work_facts(file: Path) -> JsonObject:
    """Return the facts of unfinished work, empty if there is none."""
    with atomic_files.explain_read_errors(file):
        if not file.is_file():
            return {}
        try:
            facts = json.loads(file.read_text(encoding="utf-8", errors="replace"))
        except ValueError:
            facts = None
    return facts if isinstance(facts, dict) and {"digest", "source"} <= set(facts) else {"source": "an unknown source"}


def _read_rejects(out: Path) -> Rejects:
    """Return the rejects of the finished shards in a folder."""
    file = out / shard_folder.REJECTED
    with atomic_files.explain_read_errors(out):
        try:
            return shard_runs.read_noted_rejects(json.loads(file.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            fact = f"{file}, the list of what was rejected, is missing or damaged"
            raise InputError(f"{fact}; restore it from a copy, or {_explain_restart(out)}") from error


def _write_missing_shards(
    out: Path, runs: SortedRuns, digest: str, executor: Executor, progress: Progress
) -> ShardFolder:
    """Write the missing shards, then the files beside them."""
    n_rows = runs.total("rows")
    remedy = "look at the list that `rejects=FILE` writes"
    require(n_rows > 0, f"no rows are left of {format_path(runs.stream.path)}; {remedy}")
    require(runs.total("pairs") > 0, f"nothing in {format_path(runs.stream.path)} has a label; give rows with labels")
    n_shards = max(1, -(-n_rows // runs.options.rows), -(-runs.total("nonzeros") // NONZEROS_PER_SHARD))
    bounds = find_shard_bounds(runs, n_shards)
    dropped = find_repeated_rows(runs, bounds)
    types = SourceTypes.from_runs(runs, dropped)
    assembler, files = ShardAssembler(out, runs.work, bounds, dropped, types), []
    with progress.stage("writing shards", n_rows - sum(map(len, dropped)), "rows") as stage:
        for entry in executor.map_with(ShardAssembler.write, assembler, range(n_shards)):
            if not (out / entry["file"]).is_file():
                raise InputError(f"{entry['file']} was written on another machine and is not found in {out}; choose a "
                                 "folder that all machines share")  # fmt: skip
            files.append(entry)
            stage.advance(entry["rows"])
    info, statistics = runs.stream.info, ShardStatistics(types.width, len(types.names), types.dense)
    for entry in files:
        statistics.add(column_files.map_columns(out / entry["file"])[0])
    facts = statistics.compute_facts() | {
        "counts": info.counts,
        "augment": info.augment,
        "extractor_fingerprint": info.extractor_fingerprint,
        "open_width": info.n_features is None and not types.dense,
        "source": format_path(runs.stream.path.name),
        "seed": runs.options.seed,
        "values": types.values.name,
        "indices": None if types.dense else np.dtype(shard_value_types.choose_unsigned_type(types.width)).name,
    }
    names = {"label_names": types.names, "feature_names": info.feature_names}
    atomic_files.write_text(out / shard_folder.REJECTED, json.dumps(runs.rejected))
    return shard_folder.write_manifest(out, facts, files, names, statistics.arrays(), digest)
