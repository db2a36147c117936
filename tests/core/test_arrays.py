"""Long arrays in files without a name."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from relation_world import features, make, same, world
from wsabie.core import arrays
from wsabie.io.parsers.array_builders import GrowingArray
from wsabie.io.records import FeatureTable


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MIN_MAPPED_BYTES", 1)


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_only_a_large_array_lies_in_a_file_that_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    small, large = (arrays.allocate_array((2, 3), np.float32), arrays.allocate_array((1 << 20, 4), np.float32))
    assert not is_mapped(small)
    assert is_mapped(large)
    assert (large.shape, large.dtype, type(large)) == ((1 << 20, 4), np.float32, np.ndarray)
    large[:] = 7
    assert large.sum() == 7 * large.size
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("nothing_is_small")
def test_a_full_disk_leaves_an_array_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    array = arrays.allocate_array(5, np.int64)
    array[:] = 1
    assert not is_mapped(array)


@pytest.mark.usefixtures("nothing_is_small")
def test_a_copy_shares_no_memory() -> None:
    array = np.arange(6.0).reshape(2, 3)
    copied = arrays.copy_array(array)
    copied[0, 0] = 9
    assert array[0, 0] == 0
    assert is_mapped(copied)
    np.testing.assert_array_equal(copied[1], array[1])


@pytest.mark.parametrize("large", [1, 40, 1 << 20])
def test_what_grows_holds_the_same_wherever_it_lies(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MIN_MAPPED_BYTES", large)
    grows, rng = GrowingArray(np.int32), np.random.default_rng(0)
    parts = [rng.integers(0, 99, size=n).astype(np.int32) for n in (3, 0, 1, 40, 2)]
    for part in parts:
        grows.extend(part)
    np.testing.assert_array_equal(grows.view(), np.concatenate(parts))
    np.testing.assert_array_equal(grows.finish(), np.concatenate(parts))


def test_rows_that_are_taken_are_the_same_wherever_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    X = features()
    Y, ids = csr_matrix((X.shape[0], 0), dtype=np.int8), [f"t{i}" for i in range(X.shape[0])]
    rows, indices = FeatureTable(X, Y, [], ids), np.array([5, 2, 2, 0])
    usual = rows.take(indices)
    monkeypatch.setattr(arrays, "MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr("wsabie.io.records._ROWS_AT_ONCE", 3)
    mapped_rows = rows.take(indices)
    assert is_mapped(mapped_rows.X.data)
    assert (mapped_rows.X != usual.X).nnz == 0
    assert mapped_rows.ids == usual.ids


def test_a_space_has_the_same_bits_wherever_its_data_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = make().fit(world())
    monkeypatch.setattr(arrays, "MIN_MAPPED_BYTES", 1)
    monkeypatch.setattr("wsabie.models.entity_space.fitted_entities._ENCODED_AT_ONCE", 5)
    mapped_space = make().fit(world())
    assert is_mapped(mapped_space.kinds_["track"].points)
    assert same(usual, mapped_space)
