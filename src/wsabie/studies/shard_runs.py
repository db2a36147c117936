"""The rows of a source in runs on the disk, each sorted by the rows' keys: the first half of a sort."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.progress import Progress
from wsabie.sources.streamed import RowStream
from wsabie.storage.atomic import readable, write_text
from wsabie.storage.columns import Columns, KeptOpen, joined, map_columns, write_columns
from wsabie.storage.rejects import Rejects
from wsabie.storage.shards import MOST_OPEN, nonzeros
from wsabie.studies.shard_keys import keyed
from wsabie.studies.shard_values import Narrowed, Values, narrowed, types_shared, values_of, width_of, with_values

ROWS_PER_SHARD = 1 << 16
ROWS_PER_RUN = 1 << 18
NONZEROS_PER_RUN = 1 << 24


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


Rejected = tuple[Counter[str], int]
"""How many rows were rejected, by reasons, and how many of them are listed."""


def noted(note: Mapping[str, Any]) -> Rejects:
    """What was rejected when a note was made."""
    found = Rejects()
    found.counts = Counter({str(reason): int(n) for reason, n in note["counts"].items()})
    found.listed = [(str(where), str(reason), str(detail)) for where, reason, detail in note["rejected"]]
    return found


def take_over(rejects: Rejects, found: Rejects) -> None:
    """Add what was rejected before."""
    if rejects.strict and found:
        rejects.add(*found.listed[0])
    rejects.add_all(found)


@dataclass
class Runs:
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
        return runs_in(self.work)

    def total(self, name: str) -> int:
        """The sum of a number that stands in the notes of all runs."""
        return sum(note[name] for note in self.done)

    def write(self, progress: Progress) -> None:
        """Go on behind the last run that is there."""
        index = self.stream.index
        while (note := self._found(len(self.done))) is not None:
            for name in note["names"]:
                index.number(name)
            take_over(self.rejects, noted(note))
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
        with readable(file):
            if not file.is_file():
                return None
            try:
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


def runs_in(work: Path) -> KeptOpen:
    def mapped(number: int) -> Columns:
        with readable(_run_file(work, number)):
            return map_columns(_run_file(work, number), check=False)[0]  # `_found`, or written just now

    return KeptOpen(mapped, MOST_OPEN)
