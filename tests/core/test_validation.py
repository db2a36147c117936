"""Features at the door: types, and the first bad place named."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from strategies import seeds, sparse_rows
from wsabie.core.arrays import Csr
from wsabie.core.errors import InputError, require
from wsabie.core.validation import check_features


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
        (with_cell(np.nan), r"X holds NaN at row 1, column 2 .*; replace or drop such rows"),
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
