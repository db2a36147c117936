"""Lines of sparse text, through the kernel, into arrays that grow: one pass, one block of text at a time."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wsabie.base.arrays import UInt8
from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.kernels import parse
from wsabie.kernels.parse import Batch, Limits, new_batch, parse_lines
from wsabie.sources.build import Growing, row_starts
from wsabie.sources.text import bytes_on_disk, shown, whole_lines
from wsabie.storage.rejects import Rejects

log = logging.getLogger("wsabie")
_REASONS = {
    parse.BAD_LABEL: "malformed label",
    parse.BAD_FEATURE: "malformed feature",
    parse.NOT_FINITE: "value that is not finite",
    parse.NEGATIVE: "negative count",
    parse.REPEATED: "feature given twice",
}
_NEWLINE = 10


@dataclass
class Collected:
    """Rows so far, as flat arrays; `lines` holds the line number of each row, `n_lines` counts all lines."""

    lines: Growing = field(default_factory=lambda: Growing(np.int64))
    label_counts: Growing = field(default_factory=lambda: Growing(np.int32))
    feature_counts: Growing = field(default_factory=lambda: Growing(np.int32))
    labels: Growing = field(default_factory=lambda: Growing(np.int32))
    indices: Growing = field(default_factory=lambda: Growing(np.int32))
    values: Growing = field(default_factory=lambda: Growing(np.float32))
    n_lines: int = 0


def collect(
    path: Path,
    limits: Limits,
    *,
    headed: bool,
    rejects: Rejects,
    progress: Progress = SILENT,
    block_bytes: int = 1 << 24,
) -> Collected:
    """Parse a whole file; rows that cannot be used are listed in `rejects`.

    Parameters
    ----------
    headed : bool
        The first line is a header and no row.
    block_bytes : int
        Text held at a time.

    Raises
    ------
    InputError
        A label or feature beyond `limits`, or the file cannot be read.
    """
    reader = _Reader(path, limits, rejects)
    began, done = time.perf_counter(), 0
    with progress.stage(f"reading {path.name}", bytes_on_disk(path), "bytes") as stage:
        for block in whole_lines(path, block_bytes):
            reader.parse(block, skip_first=headed and done == 0)
            done += len(block)
            stage.advance(len(block), mb_per_s=done / 1e6 / (time.perf_counter() - began))
    seconds = time.perf_counter() - began
    log.debug(
        "read %s: %.1f MB of text in %.2f s, %.0f MB/s",
        shown(path),
        done / 1e6,
        seconds,
        done / 1e6 / seconds,
    )
    return reader.got


def collected_parts(
    path: Path, limits: Limits, *, headed: bool, rejects: Rejects, skip: int = 0
) -> Iterator[Collected]:
    """The same rows a part after the other, less the first `skip` lines; line numbers are those of the whole file.

    A part without rows says how far the file has been read.
    """
    reader = _Reader(path, limits, rejects)
    for block in whole_lines(path):
        at = 0
        if reader.got.n_lines < skip:
            ends = np.flatnonzero(block == _NEWLINE)
            passed = min(skip - reader.got.n_lines, len(ends))
            reader.got.n_lines, at = reader.got.n_lines + passed, int(ends[passed - 1]) + 1
        reader.parse(block[at:], skip_first=headed and reader.got.n_lines == 0)
        yield reader.got
        reader.got = Collected(n_lines=reader.got.n_lines)


class _Reader:
    def __init__(self, path: Path, limits: Limits, rejects: Rejects) -> None:
        self.path, self.limits, self.rejects = path, limits, rejects
        self.got = Collected()
        self.batch = new_batch(rows=1 << 15, labels=1 << 18, features=1 << 20)

    def parse(self, block: UInt8, *, skip_first: bool) -> None:
        at = 0
        if skip_first:
            at = int(np.argmax(block == _NEWLINE)) + 1
            self.got.n_lines = 1
        while at < len(block):
            end = int(parse_lines(block, at, self.limits, self.batch))
            if end == at:
                self.batch = _doubled(self.batch)
                continue
            self._list_bad(block)
            _settle_doubts(block, self.batch)
            _keep(self.batch, self.got)
            at = end

    def _list_bad(self, block: UInt8) -> None:
        for line, reason, at in self.batch.bad[: self.batch.used[parse.BAD]].tolist():
            where = f"{shown(self.path)}:{self.got.n_lines + line + 1}"
            token = _token(block, at)
            if reason == parse.LABEL_RANGE:
                raise _beyond(where, "label", token.partition(",")[0], self.limits.n_labels)
            if reason == parse.FEATURE_RANGE:
                raise _beyond(where, "feature", token.partition(":")[0], self.limits.n_features)
            self.rejects.add(where, _REASONS[reason], _repeated(block, at) if reason == parse.REPEATED else token)


def _beyond(where: str, kind: str, found: str, promised: int) -> InputError:
    return InputError(
        f"{where} has {kind} {found} but {promised:,} {kind}s are promised, numbered from 0; "
        "correct what promises them or the row"
    )


def _doubled(batch: Batch) -> Batch:
    """A larger batch, for a line that does not fit."""
    rows, labels, features = len(batch.row_lines), len(batch.labels), len(batch.indices)
    return new_batch(rows, 2 * labels, 2 * features, doubts=2 * len(batch.doubts))


def _token(block: UInt8, at: int) -> str:
    words = block[at : at + 60].tobytes().partition(b"\n")[0].split(maxsplit=1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""


def _repeated(block: UInt8, end: int) -> str:
    """The first pair of the line that ends at `end` whose feature came before in it."""
    size = 1 << 12
    while size < end and not (block[end - size : end] == _NEWLINE).any():
        size *= 4
    seen: set[int] = set()
    for word in block[max(0, end - size) : end].tobytes().rpartition(b"\n")[2].split():
        number, mark, _ = word.partition(b":")
        if mark and int(number) in seen:
            return word.decode()
        if mark:
            seen.add(int(number))
    return ""


def _settle_doubts(block: UInt8, batch: Batch) -> None:
    """Values too near a rounding boundary for the kernel, by Python's own parsing."""
    starts = row_starts(batch.feature_counts[: batch.used[parse.ROWS]])
    for row, number, at in batch.doubts[: batch.used[parse.DOUBTS]].tolist():
        end = at
        while int(block[end]) not in b" \t\r\n#":
            end += 1
        value = float(block[at:end].tobytes().partition(b":")[2])
        entry = starts[row] + np.searchsorted(batch.indices[starts[row] : starts[row + 1]], number)
        batch.values[entry] = np.float32(value)


def _keep(batch: Batch, got: Collected) -> None:
    lines, rows, labels, features = (int(n) for n in batch.used[:4])
    got.lines.extend(batch.row_lines[:rows] + (got.n_lines + 1))
    got.label_counts.extend(batch.label_counts[:rows])
    got.feature_counts.extend(batch.feature_counts[:rows])
    got.labels.extend(batch.labels[:labels])
    got.indices.extend(batch.indices[:features])
    got.values.extend(batch.values[:features])
    got.n_lines += lines
