"""Parsing of sparse text by the kernel, into growing arrays: one pass, one block of text at a time."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wsabie.core.arrays import UInt8
from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress
from wsabie.io.parsers.array_builders import GrowingArray, compute_row_offsets
from wsabie.io.parsers.text_files import format_path, get_file_size, iterate_line_blocks
from wsabie.kernels.text import sparse_text_parser
from wsabie.kernels.text.sparse_text_parser import LineBatch, RowLimits, allocate_batch, parse_lines
from wsabie.storage.rejects import Rejects

log = logging.getLogger("wsabie")
_REASONS = {
    sparse_text_parser.BAD_LABEL: "malformed label",
    sparse_text_parser.BAD_FEATURE: "malformed feature",
    sparse_text_parser.NOT_FINITE: "value that is not finite",
    sparse_text_parser.NEGATIVE: "negative count",
    sparse_text_parser.REPEATED: "feature given twice",
}
_NEWLINE = 10


@dataclass
class SvmlightArrays:
    """Rows so far, as flat arrays; `lines` holds the line number of each row, `n_lines` counts all lines."""

    lines: GrowingArray = field(default_factory=lambda: GrowingArray(np.int64))
    label_counts: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    feature_counts: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    labels: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    indices: GrowingArray = field(default_factory=lambda: GrowingArray(np.int32))
    values: GrowingArray = field(default_factory=lambda: GrowingArray(np.float32))
    n_lines: int = 0


def collect_svmlight_rows(
    path: Path,
    limits: RowLimits,
    *,
    headed: bool,
    rejects: Rejects,
    progress: Progress = SILENT,
    block_bytes: int = 1 << 24,
) -> SvmlightArrays:
    """Parse a whole file; rows that cannot be used go to `rejects`.

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
    reader = _LineReader(path, limits, rejects)
    start, n_bytes = time.perf_counter(), 0
    with progress.stage(f"reading {path.name}", get_file_size(path), "bytes") as stage:
        for block in iterate_line_blocks(path, block_bytes):
            reader.parse(block, skip_first=headed and n_bytes == 0)
            n_bytes += len(block)
            stage.advance(len(block), mb_per_s=n_bytes / 1e6 / (time.perf_counter() - start))
    seconds = time.perf_counter() - start
    log.debug(
        "read %s: %.1f MB of text in %.2f s, %.0f MB/s",
        format_path(path),
        n_bytes / 1e6,
        seconds,
        n_bytes / 1e6 / seconds,
    )
    return reader.arrays


def iterate_svmlight_parts(
    path: Path, limits: RowLimits, *, headed: bool, rejects: Rejects, skip: int = 0
) -> Iterator[SvmlightArrays]:
    """Yield the same rows part by part, without the first `skip` lines.

    Line numbers are those of the whole file. A part without rows still reports the position in the file.
    """
    reader = _LineReader(path, limits, rejects)
    for block in iterate_line_blocks(path):
        start = 0
        if reader.arrays.n_lines < skip:
            ends = np.flatnonzero(block == _NEWLINE)
            n_passed = min(skip - reader.arrays.n_lines, len(ends))
            reader.arrays.n_lines, start = reader.arrays.n_lines + n_passed, int(ends[n_passed - 1]) + 1
        reader.parse(block[start:], skip_first=headed and reader.arrays.n_lines == 0)
        yield reader.arrays
        reader.arrays = SvmlightArrays(n_lines=reader.arrays.n_lines)


class _LineReader:
    def __init__(self, path: Path, limits: RowLimits, rejects: Rejects) -> None:
        self.path, self.limits, self.rejects = path, limits, rejects
        self.arrays = SvmlightArrays()
        self.batch = allocate_batch(rows=1 << 15, labels=1 << 18, features=1 << 20)

    def parse(self, block: UInt8, *, skip_first: bool) -> None:
        start = 0
        if skip_first:
            start = int(np.argmax(block == _NEWLINE)) + 1
            self.arrays.n_lines = 1
        while start < len(block):
            end = int(parse_lines(block, start, self.limits, self.batch))
            if end == start:
                self.batch = _doubled(self.batch)
                continue
            self._reject_bad_lines(block)
            _resolve_doubts(block, self.batch)
            _append_rows(self.batch, self.arrays)
            start = end

    def _reject_bad_lines(self, block: UInt8) -> None:
        for line, reason, position in self.batch.bad[: self.batch.used[sparse_text_parser.BAD]].tolist():
            where = f"{format_path(self.path)}:{self.arrays.n_lines + line + 1}"
            token = _get_token(block, position)
            if reason == sparse_text_parser.LABEL_RANGE:
                raise _make_range_error(where, "label", token.partition(",")[0], self.limits.n_labels)
            if reason == sparse_text_parser.FEATURE_RANGE:
                raise _make_range_error(where, "feature", token.partition(":")[0], self.limits.n_features)
            self.rejects.add(
                where,
                _REASONS[reason],
                _find_repeated_feature(block, position) if reason == sparse_text_parser.REPEATED else token,
            )


def _make_range_error(where: str, kind: str, number: str, promised: int) -> InputError:
    return InputError(
        f"{where} has {kind} {number} but {promised:,} {kind}s are promised, numbered from 0; "
        "correct what promises them or the row"
    )


def _doubled(batch: LineBatch) -> LineBatch:
    """Return a larger batch, for a line that does not fit."""
    rows, labels, features = len(batch.row_lines), len(batch.labels), len(batch.indices)
    return allocate_batch(rows, 2 * labels, 2 * features, doubts=2 * len(batch.doubts))


def _get_token(block: UInt8, start: int) -> str:
    words = block[start : start + 60].tobytes().partition(b"\n")[0].split(maxsplit=1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""


def _find_repeated_feature(block: UInt8, end: int) -> str:
    """Return the first pair of the line that ends at `end` whose feature came before in it."""
    size = 1 << 12
    while size < end and not (block[end - size : end] == _NEWLINE).any():
        size *= 4
    numbers: set[int] = set()
    for word in block[max(0, end - size) : end].tobytes().rpartition(b"\n")[2].split():
        number, mark, _ = word.partition(b":")
        if mark and int(number) in numbers:
            return word.decode()
        if mark:
            numbers.add(int(number))
    return ""


def _resolve_doubts(block: UInt8, batch: LineBatch) -> None:
    """Parse with Python the values that are too near a rounding boundary for the kernel."""
    starts = compute_row_offsets(batch.feature_counts[: batch.used[sparse_text_parser.ROWS]])
    for row, number, start in batch.doubts[: batch.used[sparse_text_parser.DOUBTS]].tolist():
        end = start
        while int(block[end]) not in b" \t\r\n#":
            end += 1
        value = float(block[start:end].tobytes().partition(b":")[2])
        entry = starts[row] + np.searchsorted(batch.indices[starts[row] : starts[row + 1]], number)
        batch.values[entry] = np.float32(value)


def _append_rows(batch: LineBatch, arrays: SvmlightArrays) -> None:
    lines, rows, labels, features = (int(n) for n in batch.used[:4])
    arrays.lines.extend(batch.row_lines[:rows] + (arrays.n_lines + 1))
    arrays.label_counts.extend(batch.label_counts[:rows])
    arrays.feature_counts.extend(batch.feature_counts[:rows])
    arrays.labels.extend(batch.labels[:labels])
    arrays.indices.extend(batch.indices[:features])
    arrays.values.extend(batch.values[:features])
    arrays.n_lines += lines
