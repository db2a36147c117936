"""Counts over the cells of a pyramid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.features.extractors.pyramid_histograms import (
    MASS,
    assign_cells,
    check_levels,
    compute_spatial_histograms,
    count_cells,
)


def count_pixels(bins, n_bins, levels):
    histograms = []
    for level in levels:
        cells = np.zeros((level, level, n_bins))
        for y in range(bins.shape[0]):
            for x in range(bins.shape[1]):
                cells[y * level // bins.shape[0], x * level // bins.shape[1], bins[y, x]] += 1
        histograms.append(cells.ravel())
    return np.concatenate(histograms) * MASS / bins.size


@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    levels=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 99),
)
def test_every_pixel_is_counted_once_a_level(height, width, levels, seed):
    bins = np.random.default_rng(seed).integers(0, 4, (height, width))
    histograms = compute_spatial_histograms(bins, 4, levels)
    np.testing.assert_allclose(histograms, count_pixels(bins, 4, levels), rtol=1e-6)
    assert histograms.shape == (4 * count_cells(levels),)
    np.testing.assert_allclose(histograms.sum(), MASS * len(levels), rtol=1e-5)


def test_finer_levels_add_up_to_coarser_ones():
    bins = np.random.default_rng(0).integers(0, 3, (13, 10))
    coarse, parts = compute_spatial_histograms(bins, 3, (1,)), compute_spatial_histograms(bins, 3, (4,))
    np.testing.assert_allclose(parts.reshape(16, 3).sum(axis=0), coarse, rtol=1e-6)


def test_cells_of_a_picture_smaller_than_the_grid_are_filled():
    assert assign_cells(1, 2, 4).tolist() == [[0, 2]]


@pytest.mark.parametrize("levels", [(), (0,), (33,), (1.5,)])
def test_invalid_levels_are_refused(levels):
    with pytest.raises(InputError, match="give one number from 1 to 32"):
        check_levels(levels)
