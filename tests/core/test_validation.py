"""Malformed features and sparse matrices are refused with the place of the fault."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from tests.faults.changes.matrices import hostile_matrix, random_matrix

from strategies import seeds, sparse_rows
from wsabie.core.arrays import Csr
from wsabie.core.errors import InputError, require
from wsabie.core.validation import check_features, convert_to_csr, extract_csr_arrays, has_sorted_indices


@given(seeds)
def test_sparse_and_dense_rows_keep_their_values(seed: int) -> None:
    X = sparse_rows(5, 8, 0.4, np.random.default_rng(seed))
    rows = check_features(X)
    assert isinstance(rows, Csr)
    assert [a.dtype.name for a in rows] == ["int64", "int32", "float32"]
    assert rows.n_rows == 5
    assert np.array_equal(sp.csr_matrix((rows.data, rows.indices, rows.indptr), X.shape).toarray(), X.toarray())
    dense = check_features(X.toarray())
    assert np.array_equal(dense, X.toarray())


@pytest.mark.parametrize("value", [None, "text", 5, (row for row in np.eye(2)), object()])
def test_other_types_than_arrays_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=f"X is {type(value).__name__}, and neither a sparse matrix nor an array"):
        check_features(value)


@pytest.mark.parametrize("make", [sp.coo_matrix, sp.csc_matrix, sp.lil_matrix, sp.csr_array, sp.csr_matrix])
def test_any_sparse_form(make: Any) -> None:
    rows = check_features(make(np.eye(3)))
    assert rows.indices.tolist() == [0, 1, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [list, np.asarray, lambda x: np.asarray(x, object), lambda x: np.asarray(x, "f8").T.T])
def test_any_dense_form(make: Any) -> None:
    X = check_features(make([[1, 2], [3, 4]]))
    assert X.dtype == np.float32  # type: ignore[union-attr]
    assert X.flags.c_contiguous  # type: ignore[union-attr]
    assert X.tolist() == [[1, 2], [3, 4]]  # type: ignore[union-attr]


def test_disorder_is_put_in_order_without_touching_the_callers_matrix() -> None:
    """Unsorted columns and a cell given twice."""
    X = sp.csr_matrix((np.array([1.0, 2, 3]), np.array([4, 0, 4]), np.array([0, 3])), shape=(1, 5))
    original = (X.data.copy(), X.indices.copy())
    rows = check_features(X)
    assert rows.indices.tolist() == [0, 4]  # type: ignore[union-attr]
    assert rows.data.tolist() == [2, 4]  # type: ignore[union-attr]
    assert np.array_equal(X.data, original[0])
    assert np.array_equal(X.indices, original[1])


def test_arrays_of_the_right_type_are_not_copied() -> None:
    X = np.ones((3, 2), np.float32)
    assert check_features(X) is X or np.shares_memory(check_features(X), X)  # type: ignore[arg-type]
    S = sp.csr_matrix(X)
    assert np.shares_memory(check_features(S).data, S.data)  # type: ignore[union-attr]


def with_cell(value: float) -> np.ndarray:
    X = np.ones((3, 4))
    X[1, 2] = value
    return X


def out_of_range(column: int) -> Any:
    X = sp.csr_matrix(np.ones((1, 3)))
    X.indices[1] = column
    return X


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (with_cell(np.nan), r"X holds NaN at row 1, column 2 .*; replace or drop these rows"),
        (with_cell(-np.inf), r"X holds -inf at row 1, column 2"),
        (with_cell(1e300), r"X holds 1e\+300 at row 1, column 2 .*too large for float32"),
        (sp.csr_matrix(with_cell(np.nan)), r"X holds NaN at row 1, column 2"),
        (sp.csr_matrix(with_cell(1e300)), r"X holds 1e\+300 at row 1, column 2 .*too large for float32"),
        (np.ones(3), r"X has 1 dimension\(s\); .*one row per example"),
        (np.ones((2, 2, 2)), r"X has 3 dimension\(s\)"),
        (np.ones((2, 2), complex), "Complex data not supported: X has dtype complex128; give real numbers"),
        (sp.csr_matrix(np.ones((2, 2), complex)), "Complex data not supported"),
        ([["a", "b"]], "X holds something that is not a number"),
        (np.array([["nan", "1"]]), "X holds NaN at row 0, column 0"),
        ([[1, 2], [3]], "X has rows of different lengths; give every row the same features"),
        (out_of_range(3), "X holds the column number 3, but its 3 columns are numbered from 0"),
        (out_of_range(-1), "X holds the column number -1"),
    ],
)
def test_bad_input_is_named(X: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_features(X)


def test_another_width_than_the_model() -> None:
    for X in (np.ones((2, 3)), sp.csr_matrix(np.ones((2, 3)))):
        with pytest.raises(InputError, match="test X has 3 features, but this model is expecting 4 features"):
            check_features(X, n_features=4, input_name="test X")


def test_require() -> None:
    require(True, "not raised")
    with pytest.raises(InputError, match=r"^the sentence$"):
        require(False, "the sentence")


def with_array(name: str, values: Any) -> Any:
    """A matrix (3, 4) with two entries, one array replaced."""
    matrix = sp.csr_matrix((np.ones(2), np.array([1, 3]), np.array([0, 1, 1, 2])), (3, 4))
    setattr(matrix, name, np.asarray(values))
    return matrix


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("indptr", [1, 1, 1, 2], "its indptr begins with 1"),
        ("indptr", [0, 2, 1, 2], "its indptr falls from 2 to 1 at entry 2"),
        ("indptr", [0, 1, 1, 3], "its indptr ends at 3, but it has 2 indices and 2 values"),
        ("indptr", [0, 1, 2], "its indptr has 3 entries, and 4 are needed"),
        ("indptr", [0, 1, 2, 2**40], "its indptr ends at 1,099,511,627,776"),
        ("indptr", np.array([0, 2**63, 0, 2], np.uint64), "indptr of Y holds 9223372036854775808"),
        ("indptr", [0.0, 1, 1, 2], "indptr of Y has 1 dimension.* float64, and whole numbers are needed"),
        ("indices", [1, 4], "Y holds the column number 4, but its 4 columns are numbered from 0"),
        ("indices", [1, -1], "Y holds the column number -1"),
        ("indices", [1, 2**32 + 1], "Y holds the column number 4294967297"),
        ("indices", [1], "its indptr ends at 2, but it has 1 indices and 2 values"),
        ("data", [1.0], "its indptr ends at 2, but it has 2 indices and 1 values"),
        ("data", [[1.0, 1.0]], "its data has 2 dimensions"),
        ("data", ["a", "b"], "Y holds something that is not a number"),
        ("data", [1j, 1], "Complex data not supported"),
    ],
)
def test_arrays_that_lie_are_named(name: str, values: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        extract_csr_arrays(with_array(name, values), "Y")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize(
    "shape", [None, 3, (3,), (3, 3, 3), (3.5, 3), ("3", "3"), (3, None), (-3, 3), (3, float("inf")), (3, 10**30), {}]
)
def test_shapes_that_lie_are_refused_in_every_form(form: str, shape: Any) -> None:
    matrix = getattr(sp, f"{form}_matrix")(np.eye(3))
    matrix.__dict__["_shape"] = shape
    with pytest.raises(InputError, match=r"^Y (is not a whole sparse matrix|has) [^\n]+$"):
        convert_to_csr(matrix, "Y")


class Convertible:
    """Something that can be asked for a CSR matrix."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def tocsr(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer", [TypeError("t"), IndexError("i"), OverflowError("o"), NotImplementedError(), None, 3]
)
def test_objects_that_give_no_matrix_are_refused(answer: Any) -> None:
    with pytest.raises(InputError, match=r"^Y is .*no(t a whole)? sparse matrix( \([tio]\))?; build the matrix again"):
        convert_to_csr(Convertible(answer), "Y")
    assert convert_to_csr(Convertible(sp.coo_matrix(np.eye(2))), "Y").nnz == 2


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_every_form_reads_as_scipy_reads_it(form: str, kind: str) -> None:
    dense = np.array([[0, 2, 0, 0], [1, 0, 0, 3]], np.float32)
    assert convert_to_csr(getattr(sp, f"{form}_{kind}")(dense), "X").toarray().tolist() == dense.tolist()


@pytest.mark.parametrize("dtype", ["u1", "u4", "u8", "i1", "i2", ">i4", ">i8"])
def test_indices_of_any_whole_type(dtype: str) -> None:
    matrix = with_array("indices", np.array([1, 3], dtype))
    assert convert_to_csr(matrix, "X").toarray().tolist() == with_array("indices", [1, 3]).toarray().tolist()


def is_well_formed(matrix: Any) -> bool:
    """The slow twin for CSR: follow every index by hand."""
    starts, columns = np.asarray(matrix.indptr).tolist(), np.asarray(matrix.indices).tolist()
    try:
        ends = [range(int(lo), int(hi)) for lo, hi in pairwise(starts) if int(lo) <= int(hi)]
        values = [float(value) for value in np.asarray(matrix.data).tolist()]
        cells = [(columns[at], values[at]) for row in ends for at in row]
    except (TypeError, ValueError, IndexError):
        return False
    right_types = all(np.asarray(a).dtype.kind in "iu" for a in (matrix.indptr, matrix.indices))
    as_many = len(ends) == len(starts) - 1 == matrix.shape[0] and starts[0] == 0
    return right_types and as_many and all(0 <= column < matrix.shape[1] for column, _ in cells)


@given(seeds)
def test_what_is_refused_agrees_with_following_every_index_by_hand(seed: int) -> None:
    matrix = hostile_matrix(np.random.default_rng(seed), (12, 6))
    if matrix.format != "csr":
        return
    try:
        arrays = extract_csr_arrays(matrix, "X")
    except InputError:
        assert not is_well_formed(matrix)
    else:
        assert is_well_formed(matrix)
        assert arrays.data.tolist() == [float(v) for v in np.asarray(matrix.data)[: arrays.indptr[-1]]]


@given(seeds)
def test_order_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_matrix(rng, (5, 6))
    if seed % 2:
        rng.shuffle(matrix.indices)
    fresh = sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape)
    assert has_sorted_indices(matrix.indptr, matrix.indices) == bool(fresh.has_canonical_format)
