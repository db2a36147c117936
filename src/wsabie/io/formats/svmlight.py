"""Sparse text: the XC form (header `n d L`) and plain svmlight / libsvm.

A row is `l1,l2 j:v j:v ...` (or `1.0, 2.0 j:v`); a row without labels begins with a blank or with its first
feature. With a header, labels and features are numbered from 0 and must keep to what it promises. Without one, feature
numbers are taken as written (column 0 stays empty in files that count from 1, so that train and test
always agree), and the labels are the integers that occur. Names come from a file `labels.txt` or `Yf.txt`
beside the data, one a line in UTF-8, the first for label 0; otherwise a label is named by its integer. The
id of a row is its line number. `write_svmlight_rows` writes the XC form.

scikit-learn's reader takes five times as long and refuses a file for one bad row (`docs/decisions/text-readers.md`).
"""

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix, issparse

from wsabie.core.arrays import Int32, UInt8
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.io.parsers import text_files
from wsabie.io.parsers.array_builders import LabelIndex, check_label_count
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import RowStream, StreamInfo, StreamPart
from wsabie.kernels.text import sparse_text_parser
from wsabie.kernels.text.sparse_text_parser import LARGEST, LineBatch, RowLimits, allocate_batch, parse_lines
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.column_files import ColumnTable, ListColumn, compute_offsets
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
_NAME_FILES = ("labels.txt", "Yf.txt")
HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})[ \t]+(\d{1,18})\s*")


def _make_range_error(where: str, kind: str, number: str, promised: int) -> InputError:
    problem = f"{where} has {kind} {number} but {promised:,} {kind}s are promised, numbered from 0"
    return InputError(f"{problem}; correct the row, or the number in the header, the list of names or the model")


def _double_batch(batch: LineBatch) -> LineBatch:
    """Return a larger batch, for a line that does not fit."""
    rows, labels, features = len(batch.row_lines), len(batch.labels), len(batch.indices)
    return allocate_batch(rows, 2 * labels, 2 * features, ambiguous=2 * len(batch.ambiguous))


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


def _round_ambiguous(block: UInt8, batch: LineBatch) -> None:
    """Parse with Python the values that are too near a rounding boundary for the kernel."""
    starts = compute_offsets(batch.feature_counts[: batch.used[sparse_text_parser.ROWS]])
    for row, number, start in batch.ambiguous[: batch.used[sparse_text_parser.AMBIGUOUS]].tolist():
        end = start
        while int(block[end]) not in b" \t\r\n#":
            end += 1
        value = float(block[start:end].tobytes().partition(b":")[2])
        entry = starts[row] + np.searchsorted(batch.indices[starts[row] : starts[row + 1]], number)
        batch.values[entry] = np.float32(value)


@dataclass
class SvmlightHeader:
    """First line of an XC file: numbers of rows, features and labels."""

    rows: int
    features: int
    labels: int


def _read_header(path: Path) -> SvmlightHeader | None:
    line = next((line for _, line in text_files.iterate_numbered_lines(path)), b"")
    match = HEADER.fullmatch(line)
    if match is None:
        return None
    header = SvmlightHeader(*(int(n) for n in match.groups()))
    if header.features > LARGEST or header.labels > LARGEST:
        problem = f"{path}:1 promises {header.features:,} features and {header.labels:,} labels"
        raise InputError(f"{problem}; at most {LARGEST:,} of each can be held")
    return header


def _count_blank_tail(path: Path) -> int:
    blank = 0
    for _, line in text_files.iterate_numbered_lines(path):
        blank = blank + 1 if not line.strip() else 0
    return blank


def _read_names(file: Path) -> list[str]:
    """Read names of labels, one a line; a repeated name gets its number."""
    names: dict[str, None] = {}
    for number, line in text_files.iterate_numbered_lines(file):
        name = normalise_label_name(text_files.decode_text(line, file, number))
        if not name or name in names:
            name = f"{name} ({number - 1})".strip()
        names[name] = None
    return list(names)


class SvmlightStream(RowStream):
    """Rows of an XC or svmlight file, plain or gzip, in one pass.

    Parameters
    ----------
    path : Path
    rejects : Rejects
        Where skipped rows are listed.
    labelled : bool
        Labels without names get numbers.
    counts : bool
        The values are declared counts: rows with a negative one are skipped.
    progress : Progress
        Told the bytes read and the rate in MB/s.

    Raises
    ------
    InputError
        Missing, empty, a header (or a file of label names) that promises something else than is found, or far more
        features or labels than the rows have.
    """

    def __init__(
        self, path: Path, rejects: Rejects, *, labelled: bool = True, counts: bool = False, progress: Progress = SILENT
    ) -> None:
        self.path, self.rejects, self._progress = path, rejects, progress
        self._header, files = _read_header(path), (path.with_name(name) for name in _NAME_FILES)
        names_file = next((file for file in files if file.is_file() and file != path), None)
        header, names = self._header, None if names_file is None else _read_names(names_file)
        if header and names is not None and len(names) != header.labels:
            raise InputError(
                f"{names_file} holds {len(names):,} label names but the header of {path} promises {header.labels:,} "
                "labels; correct one of them, or move the file of names away"
            )
        if header:
            self._limits = RowLimits(header.features, header.labels, True, counts)
        else:
            self._limits = RowLimits(LARGEST + 1, -1 if names is None else len(names), False, counts)
        if header and names is None and labelled:
            check_label_count(path, header.labels, text_files.get_file_size(path))
            names = [str(i) for i in range(header.labels)]
        self._names = names if names is not None or labelled else []
        order: Literal["source", "number"] = "number" if self._names is None else "source"
        self.info = StreamInfo(counts, header.features if header else None, order=order)

    @cached_property
    def index(self) -> LabelIndex:  # type: ignore[override]
        return LabelIndex(self._names, int if self._names is None else None)

    def finish_labels(self) -> tuple[list[str], Int32]:
        """Return `RowStream.finish_labels`, without an index of names that are fixed: there may be a million."""
        return (
            self.index.finish() if self._names is None else (self._names, np.arange(len(self._names), dtype=np.int32))
        )

    @property
    def files(self) -> list[Path]:
        candidates = (self.path.with_name(name) for name in _NAME_FILES)
        return [self.path, *(file for file in candidates if file.is_file())]

    def iterate_parts(self, skip: int = 0) -> Iterator[StreamPart]:
        n_lines, n_bytes, start = 0, 0, time.perf_counter()
        batch, first_line = allocate_batch(rows=1 << 15, labels=1 << 18, features=1 << 20), 1 if self._header else 0
        with self._progress.stage(f"reading {self.path.name}", text_files.get_file_size(self.path), "bytes") as stage:
            for block in text_files.iterate_line_blocks(self.path):
                position = 0
                if n_lines < max(skip, first_line):
                    ends = np.flatnonzero(block == _NEWLINE)
                    n_passed = min(max(skip, first_line) - n_lines, len(ends))
                    n_lines, position = n_lines + n_passed, int(ends[n_passed - 1]) + 1
                while position < len(block):
                    end = int(parse_lines(block, position, self._limits, batch))
                    if end == position:
                        batch = _double_batch(batch)
                        continue
                    self._reject_bad_lines(block, batch, n_lines)
                    _round_ambiguous(block, batch)
                    columns = self._build_columns(batch, n_lines)
                    n_lines, position = n_lines + int(batch.used[sparse_text_parser.LINES]), end
                    if len(columns):
                        yield StreamPart(columns, n_lines)
                n_bytes += len(block)
                rate = n_bytes / 1e6 / (time.perf_counter() - start)
                stage.advance(len(block), mb_per_s=rate)
        self._check_line_count(n_lines)
        if n_bytes:
            log.debug("read %s: %.1f MB of text at %.0f MB/s", text_files.format_path(self.path), n_bytes / 1e6, rate)

    def _reject_bad_lines(self, block: UInt8, batch: LineBatch, n_lines: int) -> None:
        for line, reason, position in batch.bad[: batch.used[sparse_text_parser.BAD]].tolist():
            where, token = f"{self.path}:{n_lines + line + 1}", _get_token(block, position)
            if reason == sparse_text_parser.LABEL_RANGE:
                raise _make_range_error(where, "label", token.partition(",")[0], self._limits.n_labels)
            if reason == sparse_text_parser.FEATURE_RANGE:
                raise _make_range_error(where, "feature", token.partition(":")[0], self._limits.n_features)
            number = token.partition("," if reason == sparse_text_parser.BAD_LABEL else ":")[0]
            if number.isdecimal() and int(number[:20]) > LARGEST:
                kind = _REASONS[reason].rpartition(" ")[2]
                self.rejects.add(where, f"{kind} number above {LARGEST:,}", token)
                continue
            repeated = reason == sparse_text_parser.REPEATED
            self.rejects.add(where, _REASONS[reason], _find_repeated_feature(block, position) if repeated else token)

    def _build_columns(self, batch: LineBatch, n_lines: int) -> ColumnTable:
        _, rows, n_labels, n_features = (int(n) for n in batch.used[:4])
        lines = batch.row_lines[:rows] + (n_lines + 1)
        indices, values = batch.indices[:n_features].copy(), batch.values[:n_features].copy()
        x = ListColumn(compute_offsets(batch.feature_counts[:rows]), {"indices": indices, "values": values})
        labels = self._number_labels(batch.labels[:n_labels].copy())
        y = ListColumn(compute_offsets(batch.label_counts[:rows]), {"labels": labels})
        columns = ColumnTable({"id": lines.astype(np.uint64)}, {"x": x, "y": y})
        if self._header is None:
            return columns
        return columns.part(0, int(np.searchsorted(lines, self._header.rows + 1, side="right")))

    def _number_labels(self, labels: Int32) -> Int32:
        """Number labels in the order in which they came up, unless names fix their numbers."""
        if self._names is not None:
            return labels
        values, inverse = np.unique(labels, return_inverse=True)
        numbers = np.array([self.index.assign_id(str(label)) for label in values.tolist()], np.int32)
        return numbers[inverse]

    def _check_line_count(self, n_lines: int) -> None:
        """Refuse a file with other lines than its header promises; rows of a blank tail do not count."""
        if self._header is None:
            return
        n_rows, promised = n_lines - 1, self._header.rows
        if n_rows > promised:
            n_rows -= min(_count_blank_tail(self.path), n_rows - promised)
        if n_rows != promised:
            problem = f"{self.path} holds {n_rows:,} rows but its header promises {promised:,}"
            raise InputError(f"{problem}; correct the first number of the header, or fetch the file again")


def write_svmlight_rows(rows: FeatureTable, path: str | Path) -> None:
    """Write rows as text of the Extreme Classification repository; `SvmlightStream` gives back X and Y.

    The file appears whole or not at all. Label names go to `labels.txt` beside it, unless they are the numbers 0, 1, 2
    ... The form cannot hold ids, groups, times, feature names and explicit negatives.

    Parameters
    ----------
    rows : FeatureTable
    path : str or Path
        Usually ends with .txt.

    Raises
    ------
    InputError
        A value is not finite, `labels.txt` holds other names, the folder cannot be written, or the disk is full.
    """
    from sklearn.datasets import dump_svmlight_file

    path = Path(path)
    if not np.isfinite(rows.X.data if issparse(rows.X) else rows.X).all():
        raise InputError(f"a value of the rows for {path} is not finite; correct or leave out its row")
    _write_sidecar_names(rows.label_names, path)
    with replace_file(path) as draft, draft.open("wb") as file:
        file.write(f"{len(rows)} {rows.X.shape[1]} {len(rows.label_names)}\n".encode())
        dump_svmlight_file(rows.X, csr_matrix(rows.Y > 0), file, multilabel=True)


def _write_sidecar_names(label_names: list[str], path: Path) -> None:
    """Write the names that `SvmlightStream` seeks beside `path`; refuse to change a file of other names."""
    names_file = next((file for name in _NAME_FILES if (file := path.with_name(name)).exists()), None)
    if names_file is None:
        if label_names != [str(number) for number in range(len(label_names))]:
            with replace_file(path.with_name(_NAME_FILES[0])) as draft:
                draft.write_text("".join(f"{name}\n" for name in label_names), encoding="utf-8")
    elif names_file == path or _read_names(names_file) != label_names:
        raise InputError(f"{names_file} holds other label names than the rows for {path}; choose another folder")
