"""Blocks lie where they should, for pictures of every shape, and tell textures and colours apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.features.extractors.visual_words import (
    N_BINS,
    N_COLOURS,
    PALETTE,
    BlockConfig,
    build_colour_table,
    compute_cell_borders,
    extract_block_descriptors,
    list_block_boxes,
)

PLAN = BlockConfig()


def test_ordinary_picture_has_about_300_blocks():
    assert 250 <= len(list_block_boxes(192, 256, PLAN)) <= 350


def test_each_palette_colour_has_its_own_bin():
    table = build_colour_table()
    for number, colour in enumerate(PALETTE):
        r, g, b = bytes.fromhex(colour)
        assert table[r >> 3 << 10 | g >> 3 << 5 | b >> 3] == number


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 20), st.integers(1, 4))
def test_blocks_cover_the_picture_and_are_not_empty(height, width, cells, across):
    boxes = list_block_boxes(height, width, BlockConfig(cells=(cells,), across=across))
    left, top, right, bottom = boxes.T
    assert (left < right).all()
    assert (top < bottom).all()
    covered = np.zeros((height, width), bool)
    for box in boxes:
        covered[box[1] : box[3], box[0] : box[2]] = True
    assert covered.all()
    assert (left.min(), top.min(), right.max(), bottom.max()) == (0, 0, width, height)
    assert len(boxes) <= (cells + 1) * (8 * cells + 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 120), st.integers(1, 120))
def test_cells_are_square_within_a_pixel(height, width):
    grid = compute_cell_borders(height, width, 6)
    if max(height, width) <= 8 * min(height, width) and min(height, width) >= 12:
        tall, wide = np.diff(grid.rows), np.diff(grid.columns)
        assert abs(tall.mean() - wide.mean()) <= 0.1 * wide.mean()
        assert np.ptp(tall) <= 1
        assert np.ptp(wide) <= 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 256), (256, 1), (2, 3), (7, 5), (256, 256)])
def test_every_shape_has_a_descriptor_for_each_box(shape):
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3)).astype(np.uint8)
    blocks = extract_block_descriptors(pixels, PLAN)
    assert blocks.shape == (len(list_block_boxes(*shape, PLAN)), N_BINS)
    assert blocks.dtype == np.float32
    np.testing.assert_allclose((blocks**2).sum(axis=1), 1, atol=1e-5)


def test_block_describes_the_pixels_in_its_box():
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.uint8)
    blocks, boxes = extract_block_descriptors(pixels, PLAN), list_block_boxes(60, 80, PLAN)
    pixels[10:20, 30:44] = 255
    changed = (extract_block_descriptors(pixels, PLAN) != blocks).any(axis=1)
    left, top, right, bottom = boxes.T
    touched = (left < 44) & (right > 30) & (top < 20) & (bottom > 10)
    near = (left < 45) & (right > 29) & (top < 21) & (bottom > 9)  # patterns look one pixel around
    assert changed[touched].all()
    assert not changed[~near].any()


def test_read_only_and_strided_pixels_are_accepted():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3)).astype(np.uint8)
    expected = extract_block_descriptors(pixels[::2, ::-1].copy(), PLAN)
    pixels.flags.writeable = False
    np.testing.assert_array_equal(extract_block_descriptors(pixels[::2, ::-1], PLAN), expected)


def test_weight_balances_colour_and_edges():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    only_colour = extract_block_descriptors(pixels, BlockConfig(colour_weight=1.0))
    only_edges = extract_block_descriptors(pixels, BlockConfig(colour_weight=0.0))
    assert not only_colour[:, N_COLOURS:].any()
    assert not only_edges[:, :N_COLOURS].any()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"cells": ()}, "cells"),
        ({"cells": (0,)}, "cells"),
        ({"cells": (65,)}, "cells"),
        ({"across": 0}, "across"),
        ({"contrast": -1}, "contrast"),
        ({"contrast": 256}, "contrast"),
        ({"colour_weight": 1.1}, "colour_weight"),
        ({"colour_weight": float("nan")}, "colour_weight"),
    ],
)
def test_values_out_of_range_are_refused(change, name):
    with pytest.raises(InputError, match=name):
        BlockConfig(**change).validate()
