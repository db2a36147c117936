"""Scaling of rows: formulas, the choice of "auto", and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from strategies import seeds
from wsabie.base.errors import InputError
from wsabie.base.validation import check_features
from wsabie.models import scaling
from wsabie.models.scaling import RowScaling, row_sums

COUNTS = np.array([[3, 0, 1], [0, 0, 0], [1, 0, 0]], np.float32)


def test_tfidf_by_hand() -> None:
    """log(1 + count) * (log((1 + n) / (1 + df)) + 1), at unit length; an empty row stays empty."""
    rows = check_features(sp.csr_matrix(COUNTS))
    scale = RowScaling.learned(rows, 3, "tfidf")
    idf = [math.log(4 / 3) + 1, math.log(4 / 1) + 1, math.log(4 / 2) + 1]
    assert scale.method == "tfidf"
    assert scale.weight == pytest.approx(idf)
    a, b = math.log(4) * idf[0], math.log(2) * idf[2]
    out = scale(rows)
    assert out.data == pytest.approx([a / math.hypot(a, b), b / math.hypot(a, b), 1])  # type: ignore[union-attr]
    assert np.array_equal(out.indptr, [0, 2, 2, 3])  # type: ignore[union-attr]


def test_log_by_hand() -> None:
    """log(1 + count) at unit length."""
    rows = check_features(sp.csr_matrix(COUNTS))
    out = RowScaling.learned(rows, 3, "auto")(rows)
    length = math.hypot(math.log(4), math.log(2))
    assert out.data == pytest.approx([math.log(4) / length, math.log(2) / length, 1])  # type: ignore[union-attr]


@given(seeds)
def test_sparse_rows_have_unit_length_whatever_the_pieces(seed: int) -> None:
    X = abs(sp.random(50, 30, 0.2, format="csr", dtype=np.float32, random_state=np.random.default_rng(seed)))
    rows = check_features(X)
    scale = RowScaling.learned(rows, 30, "auto")
    whole = scale(rows)
    lengths = np.sqrt(row_sums(whole.data**2, whole.indptr))  # type: ignore[union-attr]
    assert lengths[np.diff(X.indptr) > 0] == pytest.approx(1, abs=1e-5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaling, "_ROWS_AT_ONCE", 7)
        assert np.array_equal(scale(rows).data, whole.data)  # type: ignore[union-attr]


@given(seeds)
def test_dense_columns_are_standardised_and_rows_have_a_length_of_about_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((300, 7)) * 10.0 ** rng.integers(-3, 4, 7) + rng.normal(size=7)).astype(np.float32)
    scale = RowScaling.learned(X, 7, "auto")
    assert scale.method == "standard"
    out = scale(X) * math.sqrt(7)  # type: ignore[operator]
    assert out.mean(0) == pytest.approx(0, abs=1e-4)
    assert out.std(0) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6, -3.3])
def test_constant_columns_vanish_and_stay_tame_on_new_rows(value: float) -> None:
    X = np.full((1000, 2), value, np.float32)
    X[:, 1] = np.random.default_rng(0).normal(size=1000)
    scale = RowScaling.learned(X, 2, "auto")
    assert not scale(X)[:, 0].any()  # type: ignore[call-overload,index]
    new = scale(X[:1] + np.float32(0.5))
    assert abs(new[0, 0]) <= 1  # type: ignore[call-overload,index]


def test_rows_are_left_as_given_when_asked_for_or_when_signed() -> None:
    dense, sparse = COUNTS, check_features(sp.csr_matrix(COUNTS))
    signed = check_features(sp.csr_matrix(-COUNTS))
    for rows, choice in ((dense, None), (sparse, None), (signed, "auto")):
        scale = RowScaling.learned(rows, 3, choice)  # type: ignore[arg-type]
        assert scale.method == "none"
        assert scale(rows) is rows


@pytest.mark.parametrize("X", [COUNTS, sp.csr_matrix(COUNTS)])
def test_the_callers_rows_are_not_changed(X: Any) -> None:
    before = (X.toarray() if sp.issparse(X) else X).copy()
    rows = check_features(X)
    RowScaling.learned(rows, 3, "auto")(rows)
    assert np.array_equal(X.toarray() if sp.issparse(X) else X, before)


def test_the_other_form_of_rows_is_refused_with_the_way_out() -> None:
    sparse = RowScaling.learned(check_features(sp.csr_matrix(COUNTS)), 3, "auto")
    dense = RowScaling.learned(COUNTS, 3, "auto")
    with pytest.raises(InputError, match="trained on sparse rows; give a sparse matrix"):
        sparse(COUNTS)
    with pytest.raises(InputError, match="trained on dense rows; give a dense array"):
        dense(check_features(sp.csr_matrix(COUNTS)))


def test_negative_counts_are_named() -> None:
    scale = RowScaling.learned(check_features(sp.csr_matrix(COUNTS)), 3, "auto")
    bad = COUNTS.copy()
    bad[2, 1] = -4
    with pytest.raises(InputError, match=r"row 2 has the negative value -4 where counts are expected .*rows=None"):
        scale(check_features(sp.csr_matrix(bad)))


def test_unknown_choice() -> None:
    with pytest.raises(InputError, match=r"rows is 'l2'; choose .*None"):
        RowScaling.learned(COUNTS, 3, "l2")  # type: ignore[arg-type]
