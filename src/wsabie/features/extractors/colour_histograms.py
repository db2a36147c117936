"""Histograms of colours over a spatial pyramid.

Part of the "Ensemble" features of the WSABIE papers; Mesnil et al. 2014, section 6.1, name them after Makadia, Pavlovic
and Kumar (2008).
"""

from dataclasses import dataclass

import numpy as np

from wsabie.core.arrays import Int64, UInt8
from wsabie.core.errors import require
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.images.image_extractor import ImageView, ScaledImageExtractor
from wsabie.features.images.spatial_pyramid import check_levels, compute_spatial_histograms, count_cells, select_nonzero


def assign_colour_bins(pixels: UInt8, bins: int) -> Int64:
    """Return the colour bin of each pixel, (h, w): each channel in `bins` equal parts, red first.

    Examples
    --------
    >>> assign_colour_bins(np.array([[[0, 0, 0], [255, 127, 128]]], np.uint8), 2).tolist()
    [[0, 5]]
    """
    part = pixels.astype(np.int64) * bins >> 8
    number: Int64 = (part[..., 0] * bins + part[..., 1]) * bins + part[..., 2]
    return number


@dataclass(eq=False, repr=False)
class ColourHistograms(ScaledImageExtractor):
    """Pictures as histograms of their colours in every cell of a spatial pyramid, at several scales.

    Parameters
    ----------
    bins : int
        Parts of each channel of RGB; the histogram of a cell has bins ** 3 colours.
    levels : tuple of int
        Cells along a side, one number for each level of the pyramid.
    scales : int
        The picture is also scaled to a half, a quarter ... of its size, where small details blend in.
    size, crop, max_pixels, seed
        As in `VisualWords`.

    Examples
    --------
    >>> ColourHistograms().n_features_
    9072
    """

    name = "colour"
    kind = "colour_histograms"
    bins: int = 6
    levels: tuple[int, ...] = (1, 2, 4)
    scales: int = 2

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self.scales * count_cells(self.levels) * int(self.bins) ** 3

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        check_levels(self.levels)
        require(2 <= self.bins <= 32, f"bins is {self.bins}; cut each channel into 2 to 32 parts")
        require(1 <= self.scales <= 6, f"scales is {self.scales}; look at a picture at 1 to 6 scales")
        super().check()

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the row of a view."""
        bins = [
            assign_colour_bins(view.scale_to(max(1, self.size >> scale)), self.bins) for scale in range(self.scales)
        ]
        histograms = [compute_spatial_histograms(numbers, self.bins**3, self.levels) for numbers in bins]
        return select_nonzero(np.concatenate(histograms))
