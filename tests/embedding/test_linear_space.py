"""Weights per label: what is due after an epoch, and what is taken back."""

import numpy as np
import pytest

from wsabie.embedding.linear_space import LinearSpace


@pytest.fixture
def space() -> LinearSpace:
    """Three labels of lengths 1, 2 and 4 after the scales; the carried squares have drifted."""
    linear_space = LinearSpace(np.float32([[1, 0], [0, 1], [0, 2]]), np.float32([0.5, 0, -0.5]))
    linear_space.scale[:], linear_space.norm2[:] = [1, 2, 2], [7, 7, 7]
    return linear_space


def test_settling_multiplies_scales_in_and_takes_lengths_anew(space: LinearSpace) -> None:
    space.finish_epoch(None, 9.0)
    assert space.weights.tolist() == [[1, 0], [0, 2], [0, 4]]
    assert space.scale.tolist() == [1, 1, 1]
    assert space.norm2.tolist() == [1, 4, 16]


def test_settling_holds_every_label_to_the_limit(space: LinearSpace) -> None:
    space.finish_epoch(None, 1.5)
    assert space.weights.tolist() == [[1, 0], [0, 1.5], [0, 1.5]]
    assert space.norm2.tolist() == [1, 2.25, 2.25]


def test_a_copy_on_disk_shares_no_memory_and_assign_takes_all_of_it_back(space: LinearSpace) -> None:
    copied = space.copy()
    arrays = {name: getattr(space, name).copy() for name in ("weights", "bias", "scale", "norm2")}
    for name in arrays:
        getattr(space, name)[:] = 9
    space.assign(copied)
    for name, array in arrays.items():
        assert np.array_equal(getattr(space, name), array), name
