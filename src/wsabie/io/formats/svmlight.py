"""Sparse text: the XC form (header `n d L`) and plain svmlight / libsvm.

A row is `l1,l2 j:v j:v ...`; a row without labels begins with a blank or with its first feature. With a
header, labels and features are numbered from 0 and must keep to what it promises. Without one, feature
numbers are taken as written (column 0 stays empty in files that count from 1, so that train and test
always agree), and the labels are the integers that occur. Names come from a file `labels.txt` or `Yf.txt`
beside the data, one a line in UTF-8, the first for label 0; otherwise a label is named by its integer. The
id of a row is its line number.
"""

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Int32, UInt8
from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress
from wsabie.io.parsers.array_builders import (
    GrowingArray,
    LabelIndex,
    build_feature_matrix,
    build_label_matrix,
    check_feature_count,
    check_label_count,
    compute_row_offsets,
    require_rows,
)
from wsabie.io.parsers.text_files import (
    decode_text,
    format_path,
    get_file_size,
    iterate_line_blocks,
    iterate_numbered_lines,
)
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import RowStream, StreamInfo, StreamPart
from wsabie.kernels.text import sparse_text_parser
from wsabie.kernels.text.sparse_text_parser import LARGEST, LineBatch, RowLimits, allocate_batch, parse_lines
from wsabie.storage.column_files import ColumnTable, ListColumn
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name

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


_SIDECARS = ("labels.txt", "Yf.txt")
HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})[ \t]+(\d{1,18})\s*")


@dataclass
class SvmlightHeader:
    """First line of an XC file: numbers of rows, features and labels."""

    rows: int
    features: int
    labels: int


def read_svmlight(
    path: Path,
    *,
    counts: bool = False,
    n_features: int | None = None,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
    block_bytes: int = 1 << 24,
) -> FeatureTable:
    """Read an XC or svmlight file, plain or gzip, in one pass.

    Parameters
    ----------
    path : Path
    counts : bool
        The values are declared counts: rows with a negative one are skipped.
    n_features : int or None
        Width of X for a file without header, when it is known (test data of a model); X is wider when the
        file needs it. Where it is not known, the width is held to the limits of `array_builders.check_feature_count`.
    rejects : Rejects or None
        Where skipped rows are listed.
    progress : Progress
        Told the bytes read and the rate in MB/s.
    block_bytes : int
        Memory for text at a time; besides it only the result is held.

    Returns
    -------
    FeatureTable

    Raises
    ------
    InputError
        Missing, empty, a header (or a file of label names) that promises something else than is found, or far more
        features or labels than the rows have.
    """
    rejects = Rejects() if rejects is None else rejects
    header, names = read_svmlight_header(path)
    if header and names is None:
        check_label_count(path, header.labels, get_file_size(path))
    limits = make_row_limits(header, names, counts)
    arrays = collect_svmlight_rows(
        path, limits, headed=header is not None, rejects=rejects, progress=progress, block_bytes=block_bytes
    )
    check_line_count(path, header, arrays.n_lines)
    lines = arrays.lines.view()
    n_rows = len(lines) if header is None else int(np.searchsorted(lines, header.rows + 1, side="right"))
    require_rows(n_rows, path, rejects)
    rows = _build_table(arrays, n_rows, header, names, counts, n_features or 0)
    if n_features is None:
        check_feature_count(path, rows.X.shape[1], rows.X.nnz)
    return rows


def read_svmlight_header(path: Path) -> tuple[SvmlightHeader | None, list[str] | None]:
    """Return the header of a file, and the names of labels in the file beside it.

    Raises
    ------
    InputError
        The two do not agree.
    """
    header = _read_header(path)
    sidecar = _find_sidecar(path)
    names = None if sidecar is None else _read_sidecar_names(sidecar)
    if header and names is not None and len(names) != header.labels:
        raise InputError(
            f"{format_path(sidecar or path)} holds {len(names):,} label names but the header of {format_path(path)} "
            f"promises {header.labels:,} labels; correct one of them, or move the file of names away"
        )
    return header, names


def _read_header(path: Path) -> SvmlightHeader | None:
    line = next((line for _, line in iterate_numbered_lines(path)), b"")
    match = HEADER.fullmatch(line)
    if match is None:
        return None
    header = SvmlightHeader(*(int(n) for n in match.groups()))
    if header.features > LARGEST or header.labels > LARGEST:
        raise InputError(
            f"{format_path(path)}:1 promises {header.features:,} features and {header.labels:,} labels; "
            f"at most {LARGEST:,} of each can be held"
        )
    return header


def make_row_limits(header: SvmlightHeader | None, names: list[str] | None, counts: bool) -> RowLimits:
    """Return the limits on the rows of a file."""
    if header:
        return RowLimits(header.features, header.labels, True, counts)
    return RowLimits(LARGEST + 1, -1 if names is None else len(names), False, counts)


def check_line_count(path: Path, header: SvmlightHeader | None, n_lines: int) -> None:
    """Refuse a file with other lines than its header promises; rows of a blank tail do not count."""
    if header is None:
        return
    n_rows = n_lines - 1
    if n_rows > header.rows:
        n_rows -= min(_count_blank_tail(path), n_rows - header.rows)
    if n_rows != header.rows:
        raise InputError(
            f"{format_path(path)} holds {n_rows:,} rows but its header promises {header.rows:,}; "
            "correct the first number of the header, or fetch the file again"
        )


def _count_blank_tail(path: Path) -> int:
    blank = 0
    for _, line in iterate_numbered_lines(path):
        blank = blank + 1 if not line.strip() else 0
    return blank


def _build_table(
    arrays: SvmlightArrays,
    n_rows: int,
    header: SvmlightHeader | None,
    names: list[str] | None,
    counts: bool,
    n_features: int,
) -> FeatureTable:
    lines = arrays.lines.finish()[:n_rows]
    indices, values = arrays.indices.finish(), arrays.values.finish()
    width = header.features if header else max(int(indices.max(initial=-1)) + 1, n_features)
    X = build_feature_matrix(compute_row_offsets(arrays.feature_counts.finish()[:n_rows]), indices, values, width)
    label_names, labels = _name_labels(arrays.labels.finish(), header, names)
    Y = build_label_matrix(arrays.label_counts.finish()[:n_rows], labels, len(label_names))
    return FeatureTable(X, Y, label_names, [str(n) for n in lines.tolist()], counts=counts, open_width=header is None)


def _name_labels(labels: Int32, header: SvmlightHeader | None, names: list[str] | None) -> tuple[list[str], Int32]:
    """Return (names by number, labels by those numbers)."""
    if names is not None:
        return names, labels
    if header:
        return [str(i) for i in range(header.labels)], labels
    values, numbers = np.unique(labels, return_inverse=True)
    return [str(i) for i in values.tolist()], numbers.astype(np.int32)


def _find_sidecar(path: Path) -> Path | None:
    candidates = (path.with_name(name) for name in _SIDECARS)
    return next((file for file in candidates if file.is_file() and file != path), None)


def _read_sidecar_names(file: Path) -> list[str]:
    """Read names of labels, one a line; a repeated name gets its number."""
    names: dict[str, None] = {}
    for number, line in iterate_numbered_lines(file):
        name = normalise_label_name(decode_text(line, file, number))
        if not name or name in names:
            name = f"{name} ({number - 1})".strip()
        names[name] = None
    return list(names)


class SvmlightStream(RowStream):
    """XC or svmlight text, part by part; labels without names get numbers only if `labelled`."""

    def __init__(self, path: Path, rejects: Rejects, *, labelled: bool = True) -> None:
        self.path, self.rejects = path, rejects
        self._header, names = read_svmlight_header(path)
        if self._header and names is None and labelled:
            check_label_count(path, self._header.labels, get_file_size(path))
            names = [str(i) for i in range(self._header.labels)]
        self._limits = make_row_limits(self._header, names, False)
        self._has_fixed_labels = names is not None or not labelled
        self.index = LabelIndex(names)
        width = self._header.features if self._header else None
        self.info = StreamInfo(n_features=width, order="given" if self._has_fixed_labels else "number")

    @property
    def files(self) -> list[Path]:
        candidates = (self.path.with_name(name) for name in _SIDECARS)
        return [self.path, *(file for file in candidates if file.is_file())]

    def parts(self, skip: int = 0) -> Iterator[StreamPart]:
        lines = skip
        headed = self._header is not None
        for arrays in iterate_svmlight_parts(self.path, self._limits, headed=headed, rejects=self.rejects, skip=skip):
            lines = arrays.n_lines
            if len(arrays.lines):
                yield StreamPart(self._build_columns(arrays), lines)
        check_line_count(self.path, self._header, lines)

    def _build_columns(self, arrays: SvmlightArrays) -> ColumnTable:
        last_line = self._header.rows + 1 if self._header else arrays.n_lines
        n_rows = int(np.searchsorted(arrays.lines.view(), last_line, side="right"))
        features = ListColumn(
            compute_row_offsets(arrays.feature_counts.view()),
            {"indices": arrays.indices.view(), "values": arrays.values.view()},
        )
        labels = ListColumn(
            compute_row_offsets(arrays.label_counts.view()), {"labels": self._number_labels(arrays.labels.view())}
        )
        return ColumnTable({"id": arrays.lines.view().astype(np.uint64)}, {"x": features, "y": labels}).part(0, n_rows)

    def _number_labels(self, labels: Int32) -> Int32:
        """Number labels in the order in which they came up, unless names fix their numbers."""
        if self._has_fixed_labels:
            return labels
        values, place = np.unique(labels, return_inverse=True)
        numbers = np.array([self.index.number(str(label)) for label in values.tolist()], np.int32)
        return numbers[place]
