"""The slow twin of `lbp.py`: the same definitions in plain NumPy, one block at a time, without cells."""

import numpy as np

from wsabie.core.arrays import Float32, UInt8
from wsabie.kernels.features.local_binary_patterns import CellGrid, CodeTables, HistogramBins, PixelCodes

_NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))


def compute_luma(pixels: UInt8) -> UInt8:
    """(77 r + 150 g + 29 b) / 256, rounded down.

    Examples
    --------
    >>> compute_luma(np.array([[[255, 255, 255], [255, 0, 0]]], np.uint8)).tolist()
    [[255, 76]]
    """
    weighted = pixels.astype(np.int64) @ np.array([77, 150, 29])
    out: UInt8 = np.right_shift(weighted, 8).astype(np.uint8)
    return out


def encode_pixels(pixels: UInt8, tables: CodeTables, contrast: int) -> PixelCodes:
    """Colour and pattern codes of `pixels` (h, w, 3)."""
    five = pixels.astype(np.int64) >> 3
    colours = tables.colours[five[..., 0] << 10 | five[..., 1] << 5 | five[..., 2]]
    height, width = pixels.shape[:2]
    grey = compute_luma(pixels).astype(np.int64)
    padded = np.pad(grey, 1, mode="edge")
    bits = np.zeros((height, width), np.int64)
    for k, (down, right) in enumerate(_NEIGHBOURS):
        neighbour = padded[1 + down : 1 + down + height, 1 + right : 1 + right + width]
        bits |= (neighbour >= grey + contrast).astype(np.int64) << k
    return PixelCodes(colours, tables.patterns[bits])


def count_blocks(codes: PixelCodes, grid: CellGrid, across: int, bins: HistogramBins) -> Float32:
    """Descriptors (n_blocks, n_colours + n_patterns) of all blocks, block rows first."""
    high, wide = min(across, len(grid.rows) - 1), min(across, len(grid.columns) - 1)
    blocks = []
    for top, bottom in zip(grid.rows[:-high], grid.rows[high:], strict=True):
        for left_edge, right in zip(grid.columns[:-wide], grid.columns[wide:], strict=True):
            inside = np.s_[top:bottom, left_edge:right]
            colours = np.bincount(codes.colours[inside].ravel(), minlength=bins.n_colours)
            patterns = np.bincount(codes.patterns[inside].ravel(), minlength=bins.n_patterns)
            shares = np.concatenate([bins.colour_weight * colours, (1 - bins.colour_weight) * patterns])
            blocks.append(np.sqrt(shares / colours.sum()))
    return np.array(blocks, np.float32)
