"""Padded, aligned tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.embedding import tables


@given(st.integers(0, 40), st.integers(1, 130))
def test_tables_are_padded_with_zeros_and_start_on_a_cache_line(n_rows: int, dim: int) -> None:
    table = tables.allocate_zeros(n_rows, dim)
    assert table.shape == (n_rows, tables.compute_padded_width(dim))
    assert table.dtype == np.float32
    assert table.flags.c_contiguous
    assert not table.any()
    if n_rows:
        assert table.ctypes.data % 64 == 0
    assert dim <= tables.compute_padded_width(dim) < dim + 16
    assert tables.compute_padded_width(dim) % 16 == 0


def test_gaussian_rows_have_the_wanted_deviation_and_zero_padding() -> None:
    table = tables.draw_gaussian(5000, 20, 0.3, np.random.default_rng(1))
    assert not table[:, 20:].any()
    values = table[:, :20].astype(float)
    assert abs(values.mean()) < 4 * 0.3 / np.sqrt(values.size)
    assert abs(values.std() / 0.3 - 1) < 4 / np.sqrt(2 * values.size)


def test_gaussian_does_not_depend_on_the_pieces_it_is_drawn_in() -> None:
    """More than a million numbers come in several pieces."""
    dim, n = 1024, 1500
    table = tables.draw_gaussian(n, dim, 1.0, np.random.default_rng(1))
    single_draw = np.random.default_rng(1).standard_normal((n, dim), dtype=np.float32)
    assert np.array_equal(table, single_draw)


def test_padded_and_grown_keep_old_rows_where_they_were() -> None:
    values = np.random.default_rng(0).random((3, 20)).astype(np.float32)
    table = tables.pad_rows(values)
    more = tables.append_rows(table, 20, tables.pad_rows(values[:2] + 1))
    assert np.array_equal(more[:3], table)
    assert np.array_equal(more[3:, :20], values[:2] + 1)
    assert not more[:, 20:].any()


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 10))
def test_project_rows_cuts_long_rows_only(seed: int, max_norm: float) -> None:
    table = tables.draw_gaussian(9, 20, 0.5, np.random.default_rng(seed))
    table[4] = 0
    original = table.copy()
    tables.clip_row_norms(table, max_norm)
    lengths = np.linalg.norm(original.astype(float), axis=1)
    shrink = np.minimum(1, max_norm / np.maximum(lengths, 1e-30))
    np.testing.assert_allclose(table, original * shrink[:, None], rtol=1e-5)
    short = lengths < max_norm * 0.999
    assert np.array_equal(table[short], original[short])


def test_project_rows_without_a_limit_and_over_many_rows() -> None:
    table = tables.draw_gaussian(20_000, 4, 1.0, np.random.default_rng(0))
    original = table.copy()
    tables.clip_row_norms(table, None)
    assert np.array_equal(table, original)
    tables.clip_row_norms(table, 0.5)
    assert np.linalg.norm(table, axis=1).max() == pytest.approx(0.5, rel=1e-5)
