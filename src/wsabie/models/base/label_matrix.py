"""Conversion of labels in any form to a signed label matrix and a vocabulary."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Array, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.validation import build_incidence, convert_to_csr
from wsabie.io.alignment import merge_columns
from wsabie.vocabulary.label_names import Vocabulary, normalise_label_name

Labels: TypeAlias = Matrix | Sequence[str | int] | Sequence[Sequence[str | int]]
"""Labels of rows in any form that `build_signed_label_matrix` takes."""
MAX_LABELS = 10_000_000
"""Limit on label numbers: a larger one is a mistake, such as an identifier, and every number below needs a name."""


def build_signed_label_matrix(Y: Labels, n_rows: int, vocabulary: Vocabulary, *, has_names: bool) -> Matrix:
    """Return a CSR matrix (n, n_labels) int8 of 1 (true) and -1 (explicit negative).

    Parameters
    ----------
    Y : (n,) integers or names, (n, n_labels) sparse or dense matrix of {-1, 0, 1}, or a list of lists of names
        The named columns of a data frame of {-1, 0, 1} are labels.
    vocabulary : Vocabulary
        Labels that it lacks are added (in the order of their first appearance; integers by number).
    has_names : bool
        The user named the labels; label numbers are then column numbers inside the vocabulary. Otherwise labels are
        only numbers, unless there are none yet, and words are refused.

    Raises
    ------
    InputError
        Other lengths, mixed types, words among numbers, values other than -1, 0, 1.
    """
    names, Y = _get_column_names(Y), _open_labels(Y)
    if names and (not has_names or any(name in vocabulary for name in names)):
        return _build_from_frame(Y, names, n_rows, vocabulary, has_names)
    if not isinstance(Y, list) and Y.ndim == 2:
        return _follow_merges(_build_from_matrix(Y, n_rows, vocabulary, has_names), vocabulary)
    require(len(Y) == n_rows, f"X has {n_rows} rows and Y has {len(Y)}; give one entry of Y per row")
    if _are_label_lists(Y):
        # the order of a set, and so the numbers of labels, would differ from process to process
        rows = [sorted(row, key=str) if isinstance(row, (set, frozenset)) else list(row) for row in Y]
        return _build_from_names(rows, vocabulary, has_names)
    values = _convert_to_array(Y)
    require(values.ndim == 1, f"Y has {values.ndim} dimensions; give one label, or one list of labels, per row")
    if values.dtype.kind not in "biuf" and not all(isinstance(v, (int, np.integer)) for v in values):
        return _build_from_names([[v] for v in values.tolist()], vocabulary, has_names)
    return _follow_merges(_build_from_numbers(values, vocabulary, has_names), vocabulary)


def _follow_merges(Y: Matrix, vocabulary: Vocabulary) -> Matrix:
    """Move columns of merged labels to their successors; removed labels are dropped."""
    return Y if not len(vocabulary.retired_ids()) else merge_columns(Y, vocabulary.current_ids(), len(vocabulary))


def align_columns(vocabulary: Vocabulary, Y: Any, names: Sequence[str]) -> Matrix:
    """Reorder the named columns of a matrix as in a vocabulary, which gets the names that it lacks.

    Raises
    ------
    InputError
        Y is not a matrix of -1, 0 and 1, or the numbers of columns and names differ.

    Examples
    --------
    >>> words = Vocabulary(["dog", "cat"])
    >>> align_columns(words, [[1, -1]], ["horse", "dog"]).toarray(), list(words)
    (array([[-1,  0,  1]], dtype=int8), ['dog', 'cat', 'horse'])
    """
    if not hasattr(Y, "tocsr"):
        try:
            Y = np.asarray(Y)
        except ValueError:  # lists of different lengths
            Y = np.zeros(0)
    if Y.ndim != 2 or Y.dtype.kind not in "biuf":
        raise InputError("label_names are of columns, but Y is not a matrix of 1, 0 and -1; leave label_names out")
    Y = _convert_to_signed(Y)
    require(Y.shape[1] == len(names), f"Y has {Y.shape[1]} columns and {len(names)} names; give a name for each")
    vocabulary.add(name for name in names if name not in vocabulary)
    return merge_columns(Y, vocabulary.ids(names), len(vocabulary))


def _open_labels(Y: Any) -> Any:
    """Return the labels as a sparse matrix, an array or a list."""
    require(Y is not None, "fit requires y to be passed, but the target y is None; give labels for every row")
    if hasattr(Y, "tocsr"):
        return convert_to_csr(Y, "Y")
    if hasattr(Y, "__array__"):
        Y = np.asarray(Y)
    if isinstance(Y, str) or not hasattr(Y, "__iter__") or getattr(Y, "ndim", 1) == 0:
        raise InputError(f"Y is {Y!r}; give a label, or a list of labels, per row of X")
    return Y if isinstance(Y, np.ndarray) else list(Y)


def _get_column_names(Y: Any) -> list[str]:
    """Return the names of the columns of a data frame of numbers; none of anything else."""
    names = getattr(Y, "column_names", getattr(Y, "columns", ()))
    is_frame = hasattr(Y, "__array__") and all(isinstance(name, str) for name in names)
    return list(names) if is_frame and len(names) and np.asarray(Y).dtype.kind in "biuf" else []


def _build_from_frame(Y: Array, names: Sequence[str], n_rows: int, vocabulary: Vocabulary, has_names: bool) -> Matrix:
    """Return the signed matrix of a data frame, whose columns may stand in any order."""
    require(len(Y) == n_rows, f"X has {n_rows} rows and Y has {len(Y)}; give one row of Y per row of X")
    if not has_names and len(vocabulary):
        _refuse_words([name for name in names if name not in vocabulary], len(vocabulary))
    return _follow_merges(align_columns(vocabulary, Y, names), vocabulary)


def _convert_to_array(Y: Labels) -> Array:
    """Return one label per row as an array; NumPy alone would turn numbers among names into names."""
    if isinstance(Y, list):
        is_name = [isinstance(v, str) for v in Y]
        if any(is_name) and not all(is_name):
            i = is_name.index(not is_name[0])
            fact = f"Y mixes names and numbers: row 0 holds {Y[0]!r} and row {i} holds {Y[i]!r}"
            raise InputError(f"{fact}; give names only, or numbers only")
        if is_name and is_name[0]:
            return np.asarray(Y, object)  # an array of texts takes the longest one's memory for each
    return np.asarray(Y)


def _are_label_lists(Y: Labels) -> bool:
    nested = [isinstance(row, (list, tuple, set, frozenset)) or getattr(row, "ndim", 0) == 1 for row in Y]
    if any(nested) and not all(nested):
        raise InputError("Y mixes lists of labels and single labels; give a list of labels for every row")
    return bool(nested) and nested[0]


def _build_from_names(rows: Sequence[Sequence[str]], vocabulary: Vocabulary, has_names: bool) -> Matrix:
    for i, row in enumerate(rows):
        non_names = [v for v in row if not isinstance(v, str)]
        if non_names:
            fact = f"row {i} of Y holds {non_names[0]!r} ({type(non_names[0]).__name__}) where a name is expected"
            raise InputError(f"{fact}; give names only, or numbers as one per row or as a matrix of 1, 0 and -1")
    normalised = {name: normalise_label_name(name) for row in rows for name in row}  # each spelling is normalised once
    new_names = [name for name in dict.fromkeys(normalised.values()) if name not in vocabulary]
    if not has_names and len(vocabulary):
        _refuse_words(new_names, len(vocabulary))
    vocabulary.add(new_names)
    numbers = dict(zip(normalised, vocabulary.ids(normalised.values()).tolist(), strict=True))
    row_ids = np.repeat(np.arange(len(rows)), np.array([len(row) for row in rows], np.int64))
    label_ids = np.array([numbers[name] for row in rows for name in row], np.int64)
    return build_incidence(row_ids, label_ids, (len(rows), len(vocabulary)), bool).astype(np.int8)  # without repeats


def _refuse_words(new_names: Sequence[str], n: int) -> None:
    """Refuse words among numbered labels: a word would take a number that another label means too."""
    word = next((name for i, name in enumerate(new_names) if name != str(n + i)), None)
    if word is not None:
        fact = f"Y holds the label name {word!r}, but the model's labels are the numbers 0 to {n - 1}"
        raise InputError(f"{fact}; give numbers, or train a new model with names")


def _build_from_numbers(values: Array, vocabulary: Vocabulary, has_names: bool) -> Matrix:
    numbers = np.asarray(values)
    if numbers.dtype.kind == "f":
        if not np.isfinite(numbers).all():
            raise InputError("Input Y contains NaN or infinity; give every row a label, or leave the row out")
        if np.any(numbers != np.floor(numbers)):
            raise InputError("Unknown label type: Y holds fractions; labels are names or whole numbers")
    if len(numbers) and numbers.max() > 2**53:
        raise InputError(f"Y holds the label number {numbers.max():g}; number the labels from 0, or give them as names")
    numbers = numbers.astype(np.int64)
    if len(numbers) and numbers.min() < 0:
        raise InputError(f"Y holds the label number {numbers.min()}; label numbers begin with 0")
    _extend_vocabulary(vocabulary, int(numbers.max(initial=-1)) + 1, has_names)
    entries = np.ones(len(numbers), np.int8)
    return csr_matrix((entries, numbers, np.arange(len(numbers) + 1)), shape=(len(numbers), len(vocabulary)))


def _build_from_matrix(Y: Labels, n_rows: int, vocabulary: Vocabulary, has_names: bool) -> Matrix:
    Y = _convert_to_signed(Y)
    require(Y.shape[0] == n_rows, f"X has {n_rows} rows and Y has {Y.shape[0]}; give one row of Y per row of X")
    _extend_vocabulary(vocabulary, Y.shape[1], has_names)
    Y = csr_matrix((Y.data.astype(np.int8), Y.indices, Y.indptr), shape=(n_rows, len(vocabulary)), copy=True)
    Y.eliminate_zeros()
    return Y


def _convert_to_signed(Y: Labels) -> Matrix:
    """Return a matrix of 1, 0 and -1 in canonical format."""
    if isinstance(Y, np.ndarray) and Y.dtype.kind not in "biuf":
        raise InputError("Y is a table of names; give a list of names per row, or a matrix of 1, 0 and -1")
    Y = convert_to_csr(Y, "Y")
    if not Y.has_canonical_format:
        Y = Y.copy()  # leave the caller's matrix as it is
        Y.sum_duplicates()
    if len(Y.data) and not np.isin(Y.data, (-1, 0, 1)).all():
        value = Y.data[~np.isin(Y.data, (-1, 0, 1))][0]
        fact = f"Y holds the value {value}"
        raise InputError(f"{fact}; use 1 for a true label, -1 for an explicit negative, 0 for unknown")
    return Y


def _extend_vocabulary(vocabulary: Vocabulary, n: int, has_names: bool) -> None:
    if n <= len(vocabulary):
        return
    if has_names:
        fact = f"Y holds label number {n - 1}, but there are {len(vocabulary)} label names"
        raise InputError(f"{fact}; give a name for each label")
    if n > MAX_LABELS:
        fact = f"Y holds label number {n - 1}, but there can be at most {MAX_LABELS:,} labels"
        raise InputError(f"{fact}; number the labels from 0 without gaps, or give them as names")
    vocabulary.add(str(i) for i in range(len(vocabulary), n))
