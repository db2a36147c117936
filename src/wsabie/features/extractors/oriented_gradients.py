"""Histograms of oriented gradients (HOG; Dalal and Triggs 2005), over grids for pictures of any size."""

from dataclasses import dataclass

import numpy as np

from wsabie.core.arrays import Float64, UInt8
from wsabie.core.errors import require
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.images.image_extractor import ImageView, ScaledImageExtractor
from wsabie.features.images.spatial_pyramid import assign_cells, check_levels, select_nonzero

_CLIP = 0.2  # of a block's unit length; one strong edge must not hide the others
_SMALL = 1e-2  # gradient below which a block counts as flat; pixels are 0 to 1
_ACROSS = 2  # cells of a block, each way


def compute_gradients(pixels: UInt8, n_directions: int) -> tuple[Float64, Float64]:
    """Return (strength, direction) of the gradient at each pixel, (h, w) each.

    The channel with the strongest gradient counts; differences are central, one-sided at the border. The direction is
    in bins, from 0 to `n_directions`: an edge and its reverse have the same.
    """
    planes = np.pad(pixels.astype(np.float64) / 255, ((1, 1), (1, 1), (0, 0)), mode="edge")
    dy, dx = planes[2:, 1:-1] - planes[:-2, 1:-1], planes[1:-1, 2:] - planes[1:-1, :-2]
    strongest = np.argmax(dx * dx + dy * dy, axis=2)[..., None]
    dy, dx = np.take_along_axis(dy, strongest, 2)[..., 0], np.take_along_axis(dx, strongest, 2)[..., 0]
    return np.hypot(dx, dy), np.arctan2(dy, dx) % np.pi * (n_directions / np.pi)


def compute_cell_histograms(pixels: UInt8, cells: int, n_directions: int) -> Float64:
    """Return the mean gradient in each direction in each cell of a grid, (cells, cells, n_directions).

    A pixel votes for the two directions beside its own, in proportion to how near they are.
    """
    strength, direction = compute_gradients(pixels, n_directions)
    low = np.floor(direction).astype(np.int64)
    share = direction - low
    cell = assign_cells(len(strength), strength.shape[1], cells)
    sums = np.zeros(cells * cells * n_directions)
    for bins, part in ((low, 1 - share), (low + 1, share)):
        votes = (strength * part).ravel()
        sums += np.bincount((cell * n_directions + bins % n_directions).ravel(), votes, len(sums))
    means: Float64 = sums.reshape(cells, cells, n_directions) * (cells * cells / strength.size)
    return means


def normalise_blocks(histograms: Float64) -> Float64:
    """Scale squares of 2 x 2 cells to unit length, cut off at .2 and scale again; return them flat.

    A grid of a single cell is one block.
    """
    cells = len(histograms)
    across = min(_ACROSS, cells)
    n = cells - across + 1
    parts = [histograms[y : y + n, x : x + n] for y in range(across) for x in range(across)]
    blocks = np.concatenate(parts, axis=-1)
    cut = np.minimum(blocks / np.sqrt((blocks * blocks).sum(-1, keepdims=True) + _SMALL**2), _CLIP)
    normalised: Float64 = cut / np.sqrt((cut * cut).sum(-1, keepdims=True) + _SMALL**2)
    return normalised.ravel()


@dataclass(eq=False, repr=False)
class HogFeatures(ScaledImageExtractor):
    """Pictures as histograms of the directions of their edges, block by block.

    Parameters
    ----------
    levels : tuple of int
        Cells along a side of the picture, one number a grid; blocks of 2 x 2 cells overlap.
    n_directions : int
        Bins of half a turn.
    size, crop, max_pixels, seed
        As in `VisualWords`.

    Examples
    --------
    >>> HogFeatures(levels=(8,)).n_features_ == 7 * 7 * 4 * 9
    True
    """

    name = "hog"
    kind = "hog"
    levels: tuple[int, ...] = (4, 8)
    n_directions: int = 9

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        blocks = [(max(1, cells - _ACROSS + 1), min(_ACROSS, cells)) for cells in self.levels]
        return self.n_directions * sum((n * across) ** 2 for n, across in blocks)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        check_levels(self.levels)
        in_range = 2 <= self.n_directions <= 90
        require(in_range, f"n_directions is {self.n_directions}; give a number from 2 to 90")
        super().check()

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the row of a view."""
        pixels = view.scale_to(self.size)
        blocks = [normalise_blocks(compute_cell_histograms(pixels, cells, self.n_directions)) for cells in self.levels]
        return select_nonzero(np.concatenate(blocks).astype(np.float32))
