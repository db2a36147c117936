"""Towers: points and moved rows equal the twin; the norm bound holds."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import towers as towers_reference
from tests.reference import training_loops as training_loops_reference

from strategies import DIM, make_step_config, seeds, sparse_rows
from wsabie.core.validation import check_features
from wsabie.embedding import tables
from wsabie.kernels.embedding.towers import (
    DenseTower,
    FrozenTower,
    LinearTower,
    LookupTower,
    backprop_entity,
    choose_tile_size,
    encode_entity,
    encode_rows,
)

WIDTH = (None, None)
KINDS = [LinearTower, DenseTower, LookupTower, FrozenTower]


@numba.njit
def compiled_backprop(tower: Any, i: int, g: Any, config: Any, width: Any) -> None:
    backprop_entity(tower, i, g, config, width)


def draw(kind: Any, seed: int, limit: float = np.inf) -> tuple[Any, int]:
    """A tower of this kind whose rows are within the limit, and how many entities it has."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 15))
    table = tables.draw_gaussian(d, DIM, 0.3, rng)
    tables.clip_row_norms(table, limit)
    if kind in (LookupTower, FrozenTower):
        return kind(table, rng.integers(0, d, n).astype(np.int32)), n
    X = sparse_rows(n, d, 0.6, rng)
    rows = check_features(X if kind is LinearTower else X.toarray())
    return (LinearTower(table, *rows, 4) if kind is LinearTower else DenseTower(table, rows)), n


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_points_equal_the_twin(kind: Any, seed: int) -> None:
    tower, n = draw(kind, seed)
    out = np.full((n, 32), np.nan, np.float32)
    encode_rows(tower, 0, n, out, WIDTH)
    slow = training_loops_reference.convert_to_float64(tower)
    np.testing.assert_allclose(out, [towers_reference.encode_entity(slow, i) for i in range(n)], rtol=1e-5, atol=1e-6)


def test_hand_worked_point() -> None:
    """2 V_1 - V_3: every other row and value is left out; an empty row is the origin."""
    V = np.zeros((4, 32), np.float32)
    V[1, 0], V[3, :2] = 5, (1, 7)
    rows = (np.int64([0, 2, 2]), np.int32([1, 3]), np.float32([2, -1]))
    tower = LinearTower(V, *rows, 3)
    q = np.ones(32, np.float32)
    encode_entity(tower, 0, q, WIDTH)
    assert q[:3].tolist() == [9, -7, 0]
    encode_entity(tower, 1, q, WIDTH)
    assert not q.any()


@pytest.mark.parametrize(
    ("n_features", "per_row", "rows"), [(10_000, 245, 585), (1_000_000, 100, 80_000), (500, 0, 12_000), (0, 0, 585)]
)
def test_a_tile_fits_the_cache_or_has_some_non_zeros_of_a_row(n_features: int, per_row: int, rows: int) -> None:
    """256 KiB of rows of 112 floats; or of the features as many as hold 8 non-zeros on average."""
    table = np.broadcast_to(np.float32(0), (n_features, 112))
    assert choose_tile_size(table, np.arange(4) * per_row) == rows


def test_only_the_rows_asked_for_are_written() -> None:
    tower, _ = draw(LookupTower, 1)
    tower = tower._replace(ids=np.zeros(5, np.int32))
    out = np.full((5, 32), -1, np.float32)
    encode_rows(tower, 2, 4, out, WIDTH)
    assert (out[[0, 1, 4]] == -1).all()
    assert np.array_equal(out[2], tower.table[0])


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds, limit=st.sampled_from([np.inf, 0.7, 1.0]), keep=st.sampled_from([1.0, 0.9]))
def test_moved_rows_equal_the_twin(kind: Any, seed: int, limit: float, keep: float) -> None:
    tower, n = draw(kind, seed, limit)
    slow, rng = training_loops_reference.convert_to_float64(tower), np.random.default_rng(seed)
    for _ in range(6):
        i, g = int(rng.integers(n)), rng.standard_normal(32).astype(np.float32)
        g[DIM:] = 0
        config = make_step_config(1, learning_rate_rows=0.1, max_norm_rows=limit, decay_rows=keep)
        compiled_backprop(tower, i, g, config, WIDTH)
        towers_reference.backprop_entity(slow, i, g.astype(float), config)
    np.testing.assert_allclose(tower.table, slow.table, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [LinearTower, DenseTower, LookupTower])
@given(seed=seeds)
def test_no_row_is_longer_than_allowed(kind: Any, seed: int) -> None:
    limit = np.float32(0.8)
    tower, n = draw(kind, seed, float(limit))
    rng = np.random.default_rng(seed)
    for _ in range(20):
        g = rng.standard_normal(32).astype(np.float32)
        compiled_backprop(
            tower, int(rng.integers(n)), g, make_step_config(1, learning_rate_rows=0.3, max_norm_rows=limit), WIDTH
        )
        lengths = np.linalg.norm(tower.table, axis=1)
        assert (lengths <= limit * (1 + 1e-5)).all()


def test_frozen_rows_stay_and_equal_ids_share_a_row() -> None:
    frozen, _ = draw(FrozenTower, 2)
    old_table, g = frozen.table.copy(), np.ones(32, np.float32)
    compiled_backprop(frozen, 0, g, make_step_config(1, learning_rate_rows=1.0, max_norm_rows=1.0), WIDTH)
    assert np.array_equal(frozen.table, old_table)
    lookup = LookupTower(np.zeros((2, 32), np.float32), np.int32([1, 1]))
    compiled_backprop(lookup, 0, g, make_step_config(1, learning_rate_rows=1.0), WIDTH)
    compiled_backprop(lookup, 1, g, make_step_config(1, learning_rate_rows=1.0), WIDTH)
    assert (lookup.table[1] == 2).all()
    assert not lookup.table[0].any()
