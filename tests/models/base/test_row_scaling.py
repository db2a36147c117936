"""Scaling of rows: formulas, the choice of "auto", and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from strategies import seeds
from wsabie.core import arrays
from wsabie.core.errors import InputError
from wsabie.core.validation import check_features
from wsabie.models.base import row_scaling
from wsabie.models.base.row_scaling import RowScaling, sum_rows

COUNTS = np.array([[3, 0, 1], [0, 0, 0], [1, 0, 0]], np.float32)


def test_tfidf_equals_its_formula() -> None:
    """log(1 + count) * (log((1 + n) / (1 + df)) + 1), at unit length; an empty row stays empty."""
    rows = check_features(sp.csr_matrix(COUNTS))
    scale = RowScaling.fit(rows, 3, "tfidf")
    idf = [math.log(4 / 3) + 1, math.log(4 / 1) + 1, math.log(4 / 2) + 1]
    assert scale.method == "tfidf"
    assert scale.weight == pytest.approx(idf)
    a, b = math.log(4) * idf[0], math.log(2) * idf[2]
    out = scale(rows)
    assert out.data == pytest.approx([a / math.hypot(a, b), b / math.hypot(a, b), 1])  # type: ignore[union-attr]
    assert np.array_equal(out.indptr, [0, 2, 2, 3])  # type: ignore[union-attr]


@pytest.mark.parametrize("values", [1, 2, 3])
def test_idf_counts_the_same_in_parts(values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = check_features(sp.csr_matrix(COUNTS))
    weights = RowScaling.fit(rows, 3, "tfidf").weight
    monkeypatch.setattr(arrays, "CHUNK_VALUES", values)
    assert np.array_equal(RowScaling.fit(rows, 3, "tfidf").weight, weights)


def test_log_scaling_equals_its_formula() -> None:
    """log(1 + count) at unit length."""
    rows = check_features(sp.csr_matrix(COUNTS))
    out = RowScaling.fit(rows, 3, "auto")(rows)
    length = math.hypot(math.log(4), math.log(2))
    assert out.data == pytest.approx([math.log(4) / length, math.log(2) / length, 1])  # type: ignore[union-attr]


@given(seeds)
def test_sparse_rows_have_unit_length_independently(seed: int) -> None:
    X = abs(sp.random(50, 30, 0.2, format="csr", dtype=np.float32, random_state=np.random.default_rng(seed)))
    rows = check_features(X)
    scale = RowScaling.fit(rows, 30, "auto")
    scaled = scale(rows)
    lengths = np.sqrt(sum_rows(scaled.data**2, scaled.indptr))  # type: ignore[union-attr]
    assert lengths[np.diff(X.indptr) > 0] == pytest.approx(1, abs=1e-5)
    row_by_row = [scale(check_features(X[i])).data for i in range(50)]  # type: ignore[union-attr]
    assert np.array_equal(np.concatenate(row_by_row), scaled.data)  # type: ignore[union-attr]


# ---- dense rows

UNITS = 10.0 ** np.array([-3, 2, 0, 3, -1, -2, 1])


@given(seeds)
def test_columns_of_different_units_are_standardised(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((300, 7)) * UNITS + rng.normal(size=7)).astype(np.float32)
    scale = RowScaling.fit(X, 7, "auto")
    assert scale.method == "standard"
    out = scale(X) * math.sqrt(7)  # type: ignore[operator]
    assert out.mean(0) == pytest.approx(0, abs=1e-3)
    assert out.std(0) == pytest.approx(1, rel=1e-4)


@given(seeds)
def test_columns_of_one_unit_keep_their_proportions(seed: int) -> None:
    """One factor for all, so that the mean square of a row's length is 1."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((300, 5)) * [5, 4, 3, 2, 1] + 7).astype(np.float32)
    scale = RowScaling.fit(X, 5, "auto")
    assert scale.weight == pytest.approx(np.full(5, 1 / np.sqrt(X.var(0, dtype=np.float64).sum())))
    assert scale.shift == pytest.approx(X.mean(0), rel=1e-5)
    assert float(np.square(scale(X)).sum(1).mean()) == pytest.approx(1, rel=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize("largest", [3.0, 30.0])
def test_unit_test_compares_deviations_with_the_median(largest: float) -> None:
    """Deviations 1, 1, s: the root mean square sqrt((2 + s^2) / 3) against the median 1."""
    signs = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.float32)
    weight = RowScaling.fit(signs * np.float32([1, 1, largest]), 3, "auto").weight
    equal_weights = np.full(3, 1 / math.sqrt(2 + largest**2))
    each = 1 / (math.sqrt(3) * np.array([1, 1, largest]))
    assert weight == pytest.approx(equal_weights if math.sqrt((2 + largest**2) / 3) <= row_scaling.ONE_UNIT else each)


def test_homogeneous_scaling_equals_its_formula() -> None:
    """Columns 3, -3 and 4, -4: mean 0, factor 1 / 5; (3/5, 4/5, 1/2) at unit length; the mean row is the constant."""
    X = np.array([[3, 4], [-3, -4], [3, -4], [-3, 4]], np.float32)
    scale = RowScaling.fit(X, 2, "auto", constant=True)
    assert (scale.method, scale.n_added) == ("homogeneous", 1)
    length = math.sqrt(1 + row_scaling.CONSTANT**2)
    want = [0.6 / length, 0.8 / length, row_scaling.CONSTANT / length]
    assert scale(X[:1])[0] == pytest.approx(want)  # type: ignore[index]
    assert scale(np.zeros((1, 2), np.float32))[0].tolist() == [0, 0, 1]  # type: ignore[index]


@given(seeds)
def test_homogeneous_rows_have_unit_length_independently(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((20, 9)) * 10.0 ** rng.integers(-3, 4, 9)).astype(np.float32)
    scale = RowScaling.fit(X, 9, "auto", constant=True)
    out: Any = scale(X)
    assert np.linalg.norm(out, axis=1) == pytest.approx(1, abs=1e-6)
    assert all(np.array_equal(scale(X[[i]])[0], out[i]) for i in range(20))  # type: ignore[index]


@pytest.mark.parametrize("constant", [False, True])
def test_column_units_do_not_matter_after_standardising(constant: bool) -> None:
    X = (np.random.default_rng(0).standard_normal((50, 7)) * UNITS).astype(np.float32)
    in_miles = X * np.float32([1, 1, 64, 1, 1, 1, 1])
    in_metres, in_other_units = (RowScaling.fit(rows, 7, "auto", constant)(rows) for rows in (X, in_miles))
    assert in_metres == pytest.approx(in_other_units, abs=1e-6)


@pytest.mark.parametrize("constant", [False, True])
def test_dense_scalings_are_restored_and_refuse_other_widths(constant: bool) -> None:
    X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    scale = RowScaling.fit(X, 4, "auto", constant)
    again = RowScaling.from_tensors(scale.method, scale.tensors(), 4)
    assert np.array_equal(again(X), scale(X))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="do not agree"):
        RowScaling.from_tensors(scale.method, scale.tensors(), 5)


def test_equal_rows_become_the_constant() -> None:
    X = np.full((3, 2), 7, np.float32)
    assert RowScaling.fit(X, 2, "auto", constant=True)(X).tolist() == [[0, 0, 1]] * 3  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6, -3.3])
def test_constant_columns_vanish_and_stay_bounded_on_new_rows(value: float) -> None:
    X = np.full((1000, 2), value, np.float32)
    X[:, 1] = np.random.default_rng(0).normal(size=1000)
    scale = RowScaling.fit(X, 2, "auto")
    assert not scale(X)[:, 0].any()  # type: ignore[call-overload,index]
    new = scale(X[:1] + np.float32(0.5))
    assert abs(new[0, 0]) <= 1  # type: ignore[call-overload,index]


def test_tiny_columns_count_as_constant() -> None:
    """A probability that is never above 1e-40, beside others: 1 / its deviation is not a float32."""
    X = np.array([[1, 2, 9000, 1e-40], [2, 1, 10, 0], [3, 4, 500, 2e-41], [5, 3, 70, 0]], np.float32)
    fitted = RowScaling.fit(X, 4, "auto", constant=True)
    assert fitted.weight[0] != fitted.weight[2], "of different units"
    assert np.isfinite(fitted(X)).all()  # type: ignore[arg-type]


def test_unscaled_or_signed_rows_stay_unchanged() -> None:
    dense, sparse = COUNTS, check_features(sp.csr_matrix(COUNTS))
    signed = check_features(sp.csr_matrix(-COUNTS))
    for rows, choice in ((dense, None), (sparse, None), (signed, "auto")):
        scale = RowScaling.fit(rows, 3, choice)  # type: ignore[arg-type]
        assert scale.method == "none"
        assert scale(rows) is rows


@pytest.mark.parametrize("X", [COUNTS, sp.csr_matrix(COUNTS)])
def test_input_rows_are_not_changed(X: Any) -> None:
    original = (X.toarray() if sp.issparse(X) else X).copy()
    rows = check_features(X)
    RowScaling.fit(rows, 3, "auto")(rows)
    assert np.array_equal(X.toarray() if sp.issparse(X) else X, original)


def test_other_row_form_is_refused_with_advice() -> None:
    sparse = RowScaling.fit(check_features(sp.csr_matrix(COUNTS)), 3, "auto")
    dense = RowScaling.fit(COUNTS, 3, "auto")
    with pytest.raises(InputError, match="trained on sparse rows; give a sparse matrix"):
        sparse(COUNTS)
    with pytest.raises(InputError, match="trained on dense rows; give a dense array"):
        dense(check_features(sp.csr_matrix(COUNTS)))


def test_negative_counts_are_refused_by_name() -> None:
    scale = RowScaling.fit(check_features(sp.csr_matrix(COUNTS)), 3, "auto")
    bad = COUNTS.copy()
    bad[2, 1] = -4
    with pytest.raises(InputError, match=r"row 2 has the negative value -4 where counts are expected .*scaling=None"):
        scale(check_features(sp.csr_matrix(bad)))


def test_rows_with_negative_counts_are_listed() -> None:
    scale = RowScaling.fit(check_features(sp.csr_matrix(COUNTS)), 3, "auto")
    rows = sp.csr_matrix(np.array([[-1, 2, 0], [0, 0, 0], [1, 0, 2], [0, 3, -1], [-2, 0, -3]], np.float32))
    assert scale.find_refused_rows(rows).tolist() == [0, 3, 4]
    assert not len(scale.find_refused_rows(sp.csr_matrix(COUNTS)))


def test_unknown_scaling_is_refused() -> None:
    with pytest.raises(InputError, match=r"scaling is 'l2'; choose .*None"):
        RowScaling.fit(COUNTS, 3, "l2")  # type: ignore[arg-type]
