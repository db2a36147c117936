"""Builders of arrays from parsed rows, shared by all readers, and checks of promised sizes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from wsabie.core import arrays
from wsabie.core.arrays import Array, Int32, Int64, Matrix, allocate_array
from wsabie.core.errors import InputError
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.storage.column_files import compute_offsets
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.label_names import normalise_label_name

Line = TypeVar("Line")
Row = TypeVar("Row")
PER_VALUE = 10
"""Features for each value that is not 0, and labels for each label of a row, that are always accepted."""


def decode_row(line: bytes) -> str:
    """Return a line as text; RowError where it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError("text that is not UTF-8", repr(line[:60])) from error


def parse_number(text: str, reason: str) -> float:
    """Return a text as a number; RowError with this reason where it is none."""
    try:
        return float(text)
    except ValueError as error:
        raise RowError(reason, text) from error


def iterate_parsed(
    path: Path, lines: Iterable[tuple[int, Line]], parse: Callable[[Line], Row], rejects: Rejects
) -> Iterator[tuple[int, Row]]:
    """Yield (line number, parsed line) of the lines of a file; those with a RowError are listed."""
    for number, line in lines:
        with rejects.catch(path, number):
            yield number, parse(line)


class GrowingArray:
    """One-dimensional array that grows: a small one in memory, a large one from file to file."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._array: Array = np.empty(0, dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def view(self) -> Array:
        """Return the collected values; valid until the next `extend` or `finish`."""
        return self._array[: self._size]

    def extend(self, part: Array) -> None:
        """Append a copy of `part`."""
        end = self._size + len(part)
        if end > len(self._array):
            self._reserve(max(end, len(self._array) * 3 // 2))
        self._array[self._size : end] = part
        self._size = end

    def finish(self) -> Array:
        """Return the array, cut to size; it must not grow afterwards."""
        if self._array.flags.owndata:
            self._array.resize(self._size, refcheck=False)
        return self.view()

    def _reserve(self, n: int) -> None:
        if n * self._array.itemsize < arrays.MIN_MAPPED_BYTES:
            self._array.resize(n, refcheck=False)
            return
        larger = allocate_array(n, self._array.dtype)
        larger[: self._size] = self.view()
        self._array = larger


class LabelIndex:
    """Index of label names, whose ids are assigned while rows are read.

    Parameters
    ----------
    fixed_names : sequence of str or None
        Names whose ids the source fixes (they may go unused); others are appended after them.
        None: at the end names get ids in the order of their code points, whatever the order of the rows.
    key : callable or None
        Sort key of names instead.
    """

    def __init__(self, fixed_names: Sequence[str] | None = None, key: Callable[[str], int] | None = None) -> None:
        self._fixed, self._key = fixed_names is not None, key
        self._ids: dict[str, int] = {}
        self._raw: dict[str, int] = {}  # normalising a name once, not once a pair
        for name in fixed_names or ():
            self.assign_id(name)

    def assign_id(self, raw: str) -> int:
        """Return the id of a name, provisional until `finish`.

        Raises
        ------
        RowError
            The name is empty or not valid text.
        """
        label_id = self._raw.get(raw)
        if label_id is not None:
            return label_id
        try:
            name = normalise_label_name(raw)
        except InputError as error:
            raise RowError("label that is not valid text", ascii(raw)) from error
        if not name:
            raise RowError("empty label name")
        return self._raw.setdefault(raw, self._ids.setdefault(name, len(self._ids)))

    @property
    def provisional_names(self) -> list[str]:
        """Return the names by their provisional ids."""
        return list(self._ids)

    def assign_ids(self, raw: Iterable[str]) -> list[int]:
        """Return sorted, unique provisional ids of the labels of one row; blank names are left out."""
        return sorted({self.assign_id(name) for name in raw if name and not name.isspace()})

    def finish(self) -> tuple[list[str], Int32]:
        """Return (names by final id, final id of each provisional one)."""
        names = list(self._ids)
        if self._fixed:
            return names, np.arange(len(names), dtype=np.int32)
        keys = names if self._key is None else list(map(self._key, names))
        order = sorted(range(len(names)), key=keys.__getitem__)
        final_ids = np.empty(len(names), np.int32)
        final_ids[order] = np.arange(len(names), dtype=np.int32)
        return [names[i] for i in order], final_ids


def build_label_matrix(
    counts: Array, labels: Int32, n_labels: int, signs: npt.NDArray[np.int8] | None = None
) -> Matrix:
    """Return Y, csr_matrix (n, n_labels) int8, from the labels of rows and the numbers of these.

    Without signs, of 1 and -1, it holds ones, and a label that a row names twice counts once.
    """
    from scipy.sparse import csr_matrix

    values = np.ones(len(labels), np.int8) if signs is None else signs
    Y = csr_matrix((values, labels, compute_offsets(counts)), (len(counts), n_labels))
    Y.sum_duplicates()
    if signs is None:
        Y.data[:] = 1
    return Y


def build_feature_matrix(indptr: Int64, indices: Int32, values: npt.NDArray[np.float32], n_features: int) -> Matrix:
    """Return X, csr_matrix (n, n_features) float32, from indices that increase strictly in each row."""
    from scipy.sparse import csr_matrix

    X = csr_matrix((values, indices, indptr), (len(indptr) - 1, n_features), copy=False)
    X.has_canonical_format = True
    return X


def require_rows(n: int, path: Path, rejects: Rejects, unit: str = "rows") -> None:
    """Refuse a source without usable rows.

    Raises
    ------
    InputError
        `n` is 0; the sentence says why rows were skipped, when some were.
    """
    if n:
        return
    if len(rejects):
        where, reason, detail = rejects.listed[0]
        cause = f"{reason}{f' ({detail})' if detail else ''}"
        raise InputError(f"no {unit} are left of {path}: the first was skipped at {where} for {cause}")
    raise InputError(f"{path} holds no {unit}; give a file or folder that has some")


def check_feature_count(path: Path, n_features: int, n_values: int) -> None:
    """Refuse a width that would cost far more memory than the values of a source.

    Raises
    ------
    InputError
        More features than `columns`, or than `empty_columns` beyond 10 for each value.

    Examples
    --------
    >>> check_feature_count(Path("a.txt"), 1 << 24, 2_000_000)
    >>> check_feature_count(Path("a.txt"), 2_000_000, 1)
    Traceback (most recent call last):
    wsabie.core.errors.InputError: a.txt has 2,000,000 features for at most 1 values, 1,999,990 beyond 10 for each, and
    at most 1,048,576 are allowed; if the file is right, set WSABIE_LIMITS="empty_columns=1999990"
    """
    _check(path, n_features, n_values, "columns", "features", "values")


def check_label_count(path: Path, n_labels: int, n_pairs: int) -> None:
    """Refuse a number of labels without names that would cost far more memory than the labels of the rows.

    Raises
    ------
    InputError
        More labels than `labels`, or than `empty_labels` beyond 10 for each label of a row.
    """
    _check(path, n_labels, n_pairs, "labels", "labels", "labels of rows")


def _check(path: Path, n: int, content: int, limit: str, unit: str, content_unit: str) -> None:
    limits = read_limits()
    if (empty := n - PER_VALUE * content) > getattr(limits, f"empty_{limit}"):
        excess = (
            f"{path} has {n:,} {unit} for at most {content:,} {content_unit}, {empty:,} beyond {PER_VALUE} for each"
        )
        raise make_limit_error(f"empty_{limit}", excess, empty)
    if n > getattr(limits, limit):
        raise make_limit_error(limit, f"{path} has {n:,} {unit}", n)
