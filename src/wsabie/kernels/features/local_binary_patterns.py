"""Local binary patterns, colour codes, and their histograms over overlapping blocks of a picture.

A picture becomes two planes of one byte a pixel: a colour code looked up from 5 bits a channel, and the code of its
local binary pattern (Ojala, Pietikainen, Maenpaa 2002): bit k is set when the neighbour k is at least `contrast` grey
levels lighter than the pixel. Neighbours are numbered clockwise from the upper left; outside the picture the border is
repeated. A grid of cells is then counted once, every pixel touched once, and a block is the sum of `across` x `across`
neighbouring cells, so that overlapping blocks cost no more than cells.
"""

from typing import NamedTuple

from wsabie.core.arrays import Int64, UInt8
from wsabie.kernels.compiler import jit, jit_entry


class PixelCodes(NamedTuple):
    """Colour and pattern code of each pixel, one byte each."""

    colours: UInt8  # (h, w)
    patterns: UInt8  # (h, w)


class CodeTables(NamedTuple):
    """Tables from colours and patterns to their bins."""

    colours: UInt8  # (32768,), index r >> 3 << 10 | g >> 3 << 5 | b >> 3
    patterns: UInt8  # (256,), index = the eight bits


class CellGrid(NamedTuple):
    """Cell borders of one scale, ascending from 0 to the side of the picture."""

    rows: Int64  # (cell rows + 1,)
    columns: Int64  # (cell columns + 1,)


class HistogramBins(NamedTuple):
    """Sizes of the two histograms and the share of the colours in a block's squared length."""

    n_colours: int
    n_patterns: int
    colour_weight: float


@jit
def _look_up_colours(pixels, table, grey, out):
    """Write colour codes to `out` (h, w), and luma to the inside of `grey` (h + 2, w + 2)."""
    height, width = out.shape
    for i in range(height):
        for j in range(width):
            r, g, b = int(pixels[i, j, 0]), int(pixels[i, j, 1]), int(pixels[i, j, 2])
            out[i, j] = table[r >> 3 << 10 | g >> 3 << 5 | b >> 3]
            grey[i + 1, j + 1] = (77 * r + 150 * g + 29 * b) >> 8


@jit
def _repeat_border(grey):
    height, width = grey.shape
    for j in range(1, width - 1):
        grey[0, j] = grey[1, j]
        grey[height - 1, j] = grey[height - 2, j]
    for i in range(height):
        grey[i, 0] = grey[i, 1]
        grey[i, width - 1] = grey[i, width - 2]


@jit
def _look_up_patterns(grey, contrast, table, out):
    height, width = out.shape
    for i in range(height):
        for j in range(width):
            least = int(grey[i + 1, j + 1]) + contrast
            bits = (
                (grey[i, j] >= least)
                | (grey[i, j + 1] >= least) << 1
                | (grey[i, j + 2] >= least) << 2
                | (grey[i + 1, j + 2] >= least) << 3
                | (grey[i + 2, j + 2] >= least) << 4
                | (grey[i + 2, j + 1] >= least) << 5
                | (grey[i + 2, j] >= least) << 6
                | (grey[i + 1, j] >= least) << 7
            )
            out[i, j] = table[bits]


@jit_entry
def encode_pixels(pixels, tables, contrast, grey, codes):
    """Fill `codes` from `pixels` (h, w, 3) uint8; `grey` (h + 2, w + 2) uint8 is scratch."""
    _look_up_colours(pixels, tables.colours, grey, codes.colours)
    _repeat_border(grey)
    _look_up_patterns(grey, contrast, tables.patterns, codes.patterns)


@jit
def _count_cells(codes, grid, n_colours, cells):
    cells[:] = 0
    for a in range(len(grid.rows) - 1):
        for b in range(len(grid.columns) - 1):
            cell = cells[a, b]
            for i in range(grid.rows[a], grid.rows[a + 1]):
                for j in range(grid.columns[b], grid.columns[b + 1]):
                    cell[codes.colours[i, j]] += 1
                    cell[n_colours + codes.patterns[i, j]] += 1


@jit
def _sum_cells(cells, a, b, high, wide, counts):
    counts[:] = 0
    for i in range(a, a + high):
        for j in range(b, b + wide):
            for k in range(len(counts)):
                counts[k] += cells[i, j, k]


@jit
def _hellinger(counts, bins, out):
    """Take square roots of the shares, so that the dot product of two blocks compares distributions."""
    pixels = 0
    for k in range(bins.n_colours):
        pixels += counts[k]
    for k in range(bins.n_colours):
        out[k] = (bins.colour_weight * counts[k] / pixels) ** 0.5
    for k in range(bins.n_colours, len(counts)):
        out[k] = ((1.0 - bins.colour_weight) * counts[k] / pixels) ** 0.5


@jit_entry
def count_blocks(codes, grid, across, bins, cells, counts, out):
    """Fill `out` (n_blocks, n_colours + n_patterns) float32, block rows first, each of unit length.

    `cells` (cell rows, cell columns, bins) and `counts` (bins,), int32, are scratch. A grid with fewer than
    `across` cells in a direction has one block in that direction.
    """
    _count_cells(codes, grid, bins.n_colours, cells)
    high, wide = min(across, cells.shape[0]), min(across, cells.shape[1])
    block = 0
    for a in range(cells.shape[0] - high + 1):
        for b in range(cells.shape[1] - wide + 1):
            _sum_cells(cells, a, b, high, wide, counts)
            _hellinger(counts, bins, out[block])
            block += 1
