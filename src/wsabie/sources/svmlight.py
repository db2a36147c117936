"""Sparse text: the XC form (header `n d L`) and plain svmlight / libsvm.

A row is `l1,l2 j:v j:v ...`; a row without labels begins with a blank or with its first feature. With a
header, labels and features are numbered from 0 and must keep to what it promises. Without one, feature
numbers are taken as written (column 0 stays empty in files that count from 1, so that train and test
always agree), and the labels are the integers that occur. Names come from a file `labels.txt` or `Yf.txt`
beside the data, one a line in UTF-8, the first for label 0; otherwise a label is named by its integer. The
id of a row is its line number.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Int32
from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.kernels.parse import LARGEST, Limits
from wsabie.labels.names import normalise
from wsabie.sources.build import LabelIndex, label_matrix, require_rows, row_starts, sparse_features
from wsabie.sources.records import Rows
from wsabie.sources.streamed import About, Part, RowStream
from wsabie.sources.svmlight_stream import Collected, collect, collected_parts
from wsabie.sources.text import bytes_on_disk, numbered_lines, shown
from wsabie.sources.widths import check_columns, check_labels
from wsabie.storage.columns import Columns, Lists
from wsabie.storage.rejects import Rejects

_SIDECARS = ("labels.txt", "Yf.txt")
HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})[ \t]+(\d{1,18})\s*")


@dataclass
class Header:
    """What the first line of an XC file promises."""

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
) -> Rows:
    """Read an XC or svmlight file, plain or gzip, in one pass.

    Parameters
    ----------
    path : Path
    counts : bool
        The values are declared counts: rows with a negative one are skipped.
    n_features : int or None
        Width of X for a file without header, when it is known (test data of a model); X is wider when the
        file needs it. Where it is not known, the width is held to the limits of `widths.check_columns`.
    rejects : Rejects or None
        Where skipped rows are listed.
    progress : Progress
        Told the bytes read and the rate in MB/s.
    block_bytes : int
        Memory for text at a time; besides it only the result is held.

    Returns
    -------
    Rows

    Raises
    ------
    InputError
        Missing, empty, a header (or a file of label names) that promises something else than is found, or far more
        features or labels than the rows have.
    """
    rejects = Rejects() if rejects is None else rejects
    header, names = promised(path)
    if header and names is None:
        check_labels(path, header.labels, bytes_on_disk(path))
    limits = limits_of(header, names, counts)
    got = collect(path, limits, headed=header is not None, rejects=rejects, progress=progress, block_bytes=block_bytes)
    check_lines(path, header, got.n_lines)
    lines = got.lines.view()
    kept = len(lines) if header is None else int(np.searchsorted(lines, header.rows + 1, side="right"))
    require_rows(kept, path, rejects)
    rows = _finish(got, kept, header, names, counts, n_features or 0)
    if n_features is None:
        check_columns(path, rows.X.shape[1], rows.X.nnz)
    return rows


def promised(path: Path) -> tuple[Header | None, list[str] | None]:
    """What a file promises in its first line, and the names of labels in the file beside it.

    Raises
    ------
    InputError
        The two do not agree.
    """
    header = _read_header(path)
    sidecar = _sidecar(path)
    names = None if sidecar is None else _sidecar_names(sidecar)
    if header and names is not None and len(names) != header.labels:
        raise InputError(
            f"{shown(sidecar or path)} holds {len(names):,} label names but the header of {shown(path)} "
            f"promises {header.labels:,} labels; correct one of them, or move the file of names away"
        )
    return header, names


def _read_header(path: Path) -> Header | None:
    line = next((line for _, line in numbered_lines(path)), b"")
    match = HEADER.fullmatch(line)
    if match is None:
        return None
    header = Header(*(int(n) for n in match.groups()))
    if header.features > LARGEST or header.labels > LARGEST:
        raise InputError(
            f"{shown(path)}:1 promises {header.features:,} features and {header.labels:,} labels; "
            f"at most {LARGEST:,} of each can be held"
        )
    return header


def limits_of(header: Header | None, names: list[str] | None, counts: bool) -> Limits:
    """What the rows of a file may hold."""
    if header:
        return Limits(header.features, header.labels, True, counts)
    return Limits(LARGEST + 1, -1 if names is None else len(names), False, counts)


def check_lines(path: Path, header: Header | None, n_lines: int) -> None:
    """Refuse a file that has other lines than its header promises (less a blank tail, whose rows do not count)."""
    if header is None:
        return
    found = n_lines - 1
    if found > header.rows:
        found -= min(_blank_tail(path), found - header.rows)
    if found != header.rows:
        raise InputError(
            f"{shown(path)} holds {found:,} rows but its header promises {header.rows:,}; "
            "correct the first number of the header, or fetch the file again"
        )


def _blank_tail(path: Path) -> int:
    blank = 0
    for _, line in numbered_lines(path):
        blank = blank + 1 if not line.strip() else 0
    return blank


def _finish(
    got: Collected, kept: int, header: Header | None, names: list[str] | None, counts: bool, n_features: int
) -> Rows:
    lines = got.lines.finish()[:kept]
    indices, values = got.indices.finish(), got.values.finish()
    width = header.features if header else max(int(indices.max(initial=-1)) + 1, n_features)
    X = sparse_features(row_starts(got.feature_counts.finish()[:kept]), indices, values, width)
    label_names, labels = _name_labels(got.labels.finish(), header, names)
    Y = label_matrix(got.label_counts.finish()[:kept], labels, len(label_names))
    return Rows(X, Y, label_names, [str(n) for n in lines.tolist()], counts=counts, open_width=header is None)


def _name_labels(labels: Int32, header: Header | None, names: list[str] | None) -> tuple[list[str], Int32]:
    """(names by number, labels by those numbers)."""
    if names is not None:
        return names, labels
    if header:
        return [str(i) for i in range(header.labels)], labels
    written, numbered = np.unique(labels, return_inverse=True)
    return [str(i) for i in written.tolist()], numbered.astype(np.int32)


def _sidecar(path: Path) -> Path | None:
    beside = (path.with_name(name) for name in _SIDECARS)
    return next((file for file in beside if file.is_file() and file != path), None)


def _sidecar_names(file: Path) -> list[str]:
    """Names of labels, one a line; a name that an earlier line has is told apart by its number."""
    names: dict[str, None] = {}
    for number, line in numbered_lines(file):
        try:
            name = normalise(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(
                f"{shown(file)}:{number} is not UTF-8 text, and label names have to be; convert the file, "
                "for instance with iconv, or move it away"
            ) from error
        if not name or name in names:
            name = f"{name} ({number - 1})".strip()
        names[name] = None
    return list(names)


class SvmlightStream(RowStream):
    """XC or svmlight text, a part after the other; labels without names are not numbered unless `labelled`."""

    def __init__(self, path: Path, rejects: Rejects, *, labelled: bool = True) -> None:
        self.path, self.rejects = path, rejects
        self._header, names = promised(path)
        if self._header and names is None and labelled:
            check_labels(path, self._header.labels, bytes_on_disk(path))
            names = [str(i) for i in range(self._header.labels)]
        self._limits = limits_of(self._header, names, False)
        self._named = names is not None or not labelled
        self.index = LabelIndex(names)
        width = self._header.features if self._header else None
        self.about = About(n_features=width, order="given" if self._named else "number")

    @property
    def files(self) -> list[Path]:
        beside = (self.path.with_name(name) for name in _SIDECARS)
        return [self.path, *(file for file in beside if file.is_file())]

    def parts(self, skip: int = 0) -> Iterator[Part]:
        lines = skip
        headed = self._header is not None
        for got in collected_parts(self.path, self._limits, headed=headed, rejects=self.rejects, skip=skip):
            lines = got.n_lines
            if len(got.lines):
                yield Part(self._columns(got), lines)
        check_lines(self.path, self._header, lines)

    def _columns(self, got: Collected) -> Columns:
        last = self._header.rows + 1 if self._header else got.n_lines
        kept = int(np.searchsorted(got.lines.view(), last, side="right"))
        features = Lists(
            row_starts(got.feature_counts.view()), {"indices": got.indices.view(), "values": got.values.view()}
        )
        labels = Lists(row_starts(got.label_counts.view()), {"labels": self._numbered(got.labels.view())})
        return Columns({"id": got.lines.view().astype(np.uint64)}, {"x": features, "y": labels}).part(0, kept)

    def _numbered(self, labels: Int32) -> Int32:
        """By the order in which they came up, where no list of names says what they are."""
        if self._named:
            return labels
        written, place = np.unique(labels, return_inverse=True)
        numbers = np.array([self.index.number(str(label)) for label in written.tolist()], np.int32)
        return numbers[place]
