"""The rows of a source in runs on the disk, each sorted by the rows' keys: the first half of a sort."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.arrays import UInt64
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.features.images.augmentation import strip_view_ids
from wsabie.io.row_streams import RowStream, StreamInfo
from wsabie.io.shards.shard_folder import MAX_OPEN_SHARDS, count_values
from wsabie.storage import column_files
from wsabie.storage.atomic_files import explain_read_errors, write_text
from wsabie.storage.column_files import ColumnTable, concatenate_columns, map_columns, write_columns
from wsabie.storage.rejects import Rejects
from wsabie.workflows.shard_value_types import (
    NarrowRows,
    Values,
    find_index_width,
    list_common_types,
    narrow_rows,
    read_values,
    replace_values,
)

ROWS_PER_SHARD = 1 << 16
ROWS_PER_RUN = 1 << 18
NONZEROS_PER_RUN = 1 << 24
Rejected = tuple[Counter[str], int]
"""Number of rejected rows by reason, and number of listed ones."""


def add_sort_keys(columns: ColumnTable, about: StreamInfo, seed: int) -> ColumnTable:
    """Add the key of each row, and 16 bits of the group's key if there are groups."""
    start = _mix(np.array([seed], np.uint64))[0]
    numbers, lists = dict(columns.numbers), dict(columns.lists)
    if "id" in numbers:
        numbers["key"] = _mix(numbers["id"] ^ start)
        ids = list(map(str, numbers["id"].tolist())) if "group" in lists else []
    else:
        ids = column_files.decode_text_column(lists["id"])
        numbers["key"] = _hash_words(ids, f"{seed} row")
    if about.augment and "group" not in lists and "id" in lists:
        lists["group"] = column_files.encode_text_column(strip_view_ids(ids, about.augment))
    if "group" in lists:
        groups_and_ids = zip(column_files.decode_text_column(lists["group"]), ids, strict=True)
        groups = [group or f"row {row_id}" for group, row_id in groups_and_ids]
        numbers["fold"] = (_hash_words(groups, f"{seed} group") >> np.uint64(48)).astype(np.uint16)
    return ColumnTable(numbers, lists)


def _mix(numbers: UInt64) -> UInt64:
    """Map 64 bits one to one without a pattern (splitmix64; Steele, Lea and Flood 2014)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _hash_words(words: list[str], salt: str) -> UInt64:
    salted_hash = hashlib.blake2b(salt.encode(), digest_size=8)
    digests = bytearray()
    for word in words:
        word_hash = salted_hash.copy()
        word_hash.update(word.encode("utf-8", "surrogatepass"))
        digests += word_hash.digest()
    return np.frombuffer(bytes(digests), "<u8").astype(np.uint64)


@dataclass(frozen=True)
class ShardOptions:
    """Options of writing shards.

    Attributes
    ----------
    rows : int
        Approximate rows of a shard; fewer if rows are long.
    values : {"exact", "half"}
        "exact": the smallest type that holds every value exactly: uint8, uint16, float16 or float32. "half": float16
        where a value would need float32, with a relative error of 2^-11 at most.
    seed : int
        Seed of the order.
    """

    rows: int = ROWS_PER_SHARD
    values: Values = "exact"
    seed: int = 0


def read_noted_rejects(note: Mapping[str, Any]) -> Rejects:
    """Return the rejects of a note."""
    rejects = Rejects()
    rejects.counts = Counter({str(reason): int(count) for reason, count in note["counts"].items()})
    rejects.listed = [(str(where), str(reason), str(detail)) for where, reason, detail in note["rejected"]]
    return rejects


def add_rejects(rejects: Rejects, earlier: Rejects) -> None:
    """Add the rejects of an earlier run."""
    if rejects.strict and earlier:
        rejects.add(*earlier.listed[0])
    rejects.add_all(earlier)


@dataclass
class SortedRuns:
    """The rows of a source in runs, each sorted by the rows' keys, and the notes of finished runs."""

    work: Path
    stream: RowStream
    options: ShardOptions
    rejects: Rejects
    notes: list[JsonObject] = field(default_factory=list)
    source_rejects: Rejected = field(init=False)  # of a source that is read as a whole, which reports them on every run
    noted_rejects: Rejected = field(init=False)

    def __post_init__(self) -> None:
        self.source_rejects = self.noted_rejects = self._count_rejects()

    @cached_property
    def open_run(self) -> column_files.ColumnFileCache:
        """Function that maps the rows of a finished run, by its number."""
        return open_run_cache(self.work)

    def total(self, name: str) -> int:
        """Return the sum of a number in the notes of all runs."""
        return sum(note[name] for note in self.notes)

    def write(self, progress: Progress) -> None:
        """Write runs behind the last finished one."""
        index = self.stream.index
        while (note := self._read_note(len(self.notes))) is not None:
            for name in note["names"]:
                index.assign_id(name)
            add_rejects(self.rejects, read_noted_rejects(note))
            self.notes.append(note)
        self.noted_rejects = self._count_rejects()
        if self.notes and self.notes[-1]["last"]:
            return
        position = self.notes[-1]["position"] if self.notes else 0
        with progress.stage(f"reading {self.stream.path.name}", None, "rows") as stage:
            stage.advance(self.total("rows"))
            for run, end, rejected in self._collect_runs(position):
                self._add_run(run, end, rejected)
                stage.advance(len(run.columns))

    def _collect_runs(self, position: int) -> Iterator[tuple[NarrowRows, int, Rejected | None]]:
        """Yield the parts of each run, their end, and the rejects so far; None for the last run."""
        pending: list[NarrowRows] = []
        rejected = self._count_rejects()
        for part in self.stream.iterate_parts(position):
            parts = [*(pending_rows.columns for pending_rows in pending), part.columns]
            n_rows, n_values = (sum(map(count, parts)) for count in (len, count_values))
            if pending and (n_rows > ROWS_PER_RUN or n_values > NONZEROS_PER_RUN):
                yield self._join_parts(pending), position, rejected
                pending = []
            pending.append(narrow_rows(part.columns, self.options.values, self.stream.path))
            position = part.position
            rejected = self._count_rejects()  # without those of the next part, which is read first
        if pending:
            yield self._join_parts(pending), position, None

    def _join_parts(self, parts: list[NarrowRows]) -> NarrowRows:
        types = list_common_types([part.types for part in parts], self.stream.path)
        columns = concatenate_columns([part.columns for part in parts])  # of a wider type if the parts differ
        return NarrowRows(replace_values(columns, read_values(columns).astype(types[0], copy=False)), types)

    def _count_rejects(self) -> Rejected:
        return Counter(self.rejects.counts), len(self.rejects.listed)

    def _list_rejects_between(self, later: Rejected, earlier: Rejected) -> JsonObject:
        """Return the rejects of a note: those between two moments."""
        return {"counts": dict(later[0] - earlier[0]), "rejected": self.rejects.listed[earlier[1] : later[1]]}

    def _add_run(self, run: NarrowRows, position: int, rejected: Rejected | None) -> None:
        columns = run.columns
        names, n_known_names = self.stream.index.provisional_names, sum(len(note["names"]) for note in self.notes)
        earlier_rejects, self.noted_rejects = self.noted_rejects, rejected or self._count_rejects()
        note = {
            "rows": len(columns),
            "nonzeros": count_values(columns),
            "pairs": len(columns.lists["y"].parts["labels"]),
            "width": find_index_width(columns),
            "types": run.types,
            "names": names[n_known_names:],
            "position": position,
            "last": rejected is None,
            **self._list_rejects_between(self.noted_rejects, earlier_rejects),
        }
        columns = add_sort_keys(columns, self.stream.info, self.options.seed)
        order, file = np.argsort(columns.numbers["key"], kind="stable"), _run_file(self.work, len(self.notes))
        # beside the run, which many shards open; written first, so that every run has a note
        write_text(file.with_suffix(".json"), json.dumps(note))
        write_columns(file, columns.take(order), {})
        self.notes.append(note)

    @property
    def rejected(self) -> JsonObject:
        """Rejects, without those that a source that is read as a whole reports on every run."""
        return self._list_rejects_between(self._count_rejects(), self.source_rejects)

    def _read_note(self, number: int) -> JsonObject | None:
        """Return the note of a finished run; both are checked here, and never again when the run is opened."""
        file = _run_file(self.work, number)
        with explain_read_errors(file):
            if not file.is_file():
                return None
            try:
                map_columns(file)
                return JsonObject(json.loads(file.with_suffix(".json").read_text(encoding="utf-8")))
            except (ValueError, FileNotFoundError):
                file.unlink()
                return None


def _run_file(work: Path, number: int) -> Path:
    return work / f"run-{number:05d}.safetensors"


def open_run_cache(work: Path) -> column_files.ColumnFileCache:
    def map_run(number: int) -> ColumnTable:
        with explain_read_errors(_run_file(work, number)):
            return map_columns(_run_file(work, number), check=False)[0]  # checked by `_read_note`, or written just now

    return lru_cache(MAX_OPEN_SHARDS)(map_run)
