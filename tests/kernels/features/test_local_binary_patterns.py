"""The ladder of proof for the kernel of block histograms."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.reference import local_binary_patterns as local_binary_patterns_reference

from uncompiled_runs import run_with_and_without_compiler
from wsabie.features.extractors.visual_words import (
    N_COLOURS,
    N_PATTERNS,
    build_colour_table,
    build_pattern_table,
    compute_cell_borders,
)
from wsabie.kernels.features import local_binary_patterns
from wsabie.kernels.features.local_binary_patterns import CellGrid, CodeTables, HistogramBins, PixelCodes

TABLES = CodeTables(build_colour_table(), build_pattern_table())
RAW = CodeTables(np.zeros(32768, np.uint8), np.arange(256, dtype=np.uint8))  # keeps the eight bits as they are
BINS = HistogramBins(N_COLOURS, N_PATTERNS, 0.6)

sides = st.one_of(st.just(1), st.integers(1, 24))
pictures = st.tuples(sides, sides).flatmap(
    lambda side: hnp.arrays(np.uint8, (*side, 3), elements=st.sampled_from([0, 3, 4, 8, 100, 104, 251, 255]))
)


def encode(pixels, tables=TABLES, contrast=4):
    h, w = pixels.shape[:2]
    codes = PixelCodes(np.empty((h, w), np.uint8), np.empty((h, w), np.uint8))
    local_binary_patterns.encode_pixels(pixels, tables, contrast, np.empty((h + 2, w + 2), np.uint8), codes)
    return codes


def count(codes, grid, across=2, bins=BINS):
    rows, columns = len(grid.rows) - 1, len(grid.columns) - 1
    size = bins.n_colours + bins.n_patterns
    out = np.empty(((rows - min(across, rows) + 1) * (columns - min(across, columns) + 1), size), np.float32)
    local_binary_patterns.count_blocks(
        codes, grid, across, bins, np.empty((rows, columns, size), np.int32), np.empty(size, np.int32), out
    )
    return out


def grey(rows):
    return np.repeat(np.array(rows, np.uint8)[:, :, None], 3, axis=2)


def test_bits_by_hand():
    # Clockwise from the upper left; the pixel in the middle is 50, so that with contrast 10 all from 60 up are lighter.
    pixels = grey([[60, 59, 200], [0, 50, 61], [60, 0, 59]])
    assert encode(pixels, RAW, 10).patterns[1, 1] == 2**0 + 2**2 + 2**3 + 2**6


def test_border_repeats_itself():
    pixels = grey([[10, 90]])
    left_pattern, right = encode(pixels, RAW, 5).patterns[0]
    assert left_pattern == 2**2 + 2**3 + 2**4  # all three to the right
    assert right == 0


def test_luma_and_colours_by_hand():
    pixels = np.array([[[255, 0, 0], [0, 0, 0], [255, 255, 255]]], np.uint8)
    tables = CodeTables(np.arange(32768).astype(np.uint8), RAW.patterns)
    assert encode(pixels, tables).colours[0].tolist() == [(31 << 10) % 256, 0, 32767 % 256]
    assert local_binary_patterns_reference.compute_luma(pixels)[0].tolist() == [77 * 255 // 256, 0, 255]


def test_block_by_hand():
    codes = PixelCodes(np.array([[0, 1, 1, 1]], np.uint8), np.array([[2, 2, 0, 2]], np.uint8))
    bins = HistogramBins(2, 3, 0.25)
    out = count(codes, CellGrid(np.array([0, 1]), np.array([0, 2, 4])), across=1, bins=bins)
    first = [math.sqrt(0.25 / 2), math.sqrt(0.25 / 2), 0, 0, math.sqrt(0.75)]
    second = [0, math.sqrt(0.25), math.sqrt(0.75 / 2), 0, math.sqrt(0.75 / 2)]
    np.testing.assert_allclose(out, [first, second], rtol=1e-6)


@settings(max_examples=80, deadline=None)
@given(pictures, st.integers(0, 255), st.integers(1, 9), st.integers(1, 4), st.floats(0, 1))
def test_equals_its_slow_twin(pixels, contrast, cells, across, weight):
    codes = encode(pixels, contrast=contrast)
    slow = local_binary_patterns_reference.encode_pixels(pixels, TABLES, contrast)
    np.testing.assert_array_equal(codes.colours, slow.colours)
    np.testing.assert_array_equal(codes.patterns, slow.patterns)
    grid, bins = compute_cell_borders(*pixels.shape[:2], cells), HistogramBins(N_COLOURS, N_PATTERNS, weight)
    fast = count(codes, grid, across, bins)
    np.testing.assert_allclose(fast, local_binary_patterns_reference.count_blocks(slow, grid, across, bins), atol=1e-6)
    np.testing.assert_allclose((fast.astype(float) ** 2).sum(axis=1), 1, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(pictures, st.integers(0, 40))
def test_patterns_do_not_see_brightness(pixels, shift):
    dark = pixels // 2
    lighter = (dark + shift).astype(np.uint8)
    np.testing.assert_array_equal(encode(dark, RAW).patterns, encode(lighter, RAW).patterns)


@settings(max_examples=30, deadline=None)
@given(pictures)
def test_a_turned_picture_has_turned_patterns(pixels):
    turned = np.ascontiguousarray(np.rot90(pixels))
    quarter = np.arange(N_PATTERNS)
    quarter[3:] = 3 + (quarter[3:] - 3 + 6) % 12  # two directions of 45 degrees further
    np.testing.assert_array_equal(quarter[np.rot90(encode(pixels).patterns)], encode(turned).patterns)


@pytest.mark.parametrize(("contrast", "pattern"), [(0, 1), (1, 0), (255, 0)])
def test_a_plain_picture_has_one_term(contrast, pattern):
    codes = encode(np.full((9, 7, 3), 130, np.uint8), contrast=contrast)
    assert set(codes.patterns.ravel()) == {pattern}
    blocks = count(codes, compute_cell_borders(9, 7, 3))
    assert (blocks == blocks[0]).all()
    assert np.count_nonzero(blocks[0]) == 2


def test_without_the_compiler_the_results_are_the_same():
    script = """
import json
import numpy as np
from wsabie.features.extractors.visual_words import BlockConfig, extract_block_descriptors
pixels = np.random.default_rng(3).integers(0, 256, (13, 17, 3)).astype(np.uint8)
print(json.dumps(extract_block_descriptors(pixels, BlockConfig(cells=(4, 2))).astype(np.float64).tolist()))
"""
    compiled, interpreted = (np.array(json.loads(text)) for text in run_with_and_without_compiler(script))
    np.testing.assert_allclose(compiled, interpreted, atol=1e-6)
