"""Sparse matrices at the door: what points outside is refused, whatever its form, and the rest is as scipy reads it."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from tests.faults.changes.matrices import hostile_matrix, random_matrix

from strategies import seeds
from wsabie.core.errors import InputError
from wsabie.core.validation import convert_to_csr, extract_csr_arrays, has_sorted_indices


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
