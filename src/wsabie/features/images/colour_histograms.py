"""Colour histograms over a spatial pyramid, at several scales.

Part of the "Ensemble" features of the WSABIE papers; Mesnil et al. 2014, section 6.1, name them after Makadia, Pavlovic
and Kumar (2008).
"""

from dataclasses import dataclass

import numpy as np

from wsabie.core.arrays import Float32, Int32, Int64, UInt8
from wsabie.core.errors import InputError
from wsabie.features.base.extraction_tasks import ImageView
from wsabie.features.images.image_extractor import MAX_PIXELS, ImageFeatureExtractor
from wsabie.features.images.spatial_pyramid import check_levels, compute_spatial_histograms, count_cells


def select_nonzero(histogram: Float32) -> tuple[Int32, Float32]:
    """Return the columns and values of the non-zeros."""
    columns = np.flatnonzero(histogram).astype(np.int32)
    return columns, histogram[columns]


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


@dataclass(frozen=True)
class _ColourEncoder:
    sizes: tuple[int, ...]
    bins: int
    levels: tuple[int, ...]

    def __call__(self, look: ImageView) -> tuple[Int32, Float32]:
        histograms = [
            compute_spatial_histograms(assign_colour_bins(look.at(size), self.bins), self.bins**3, self.levels)
            for size in self.sizes
        ]
        return select_nonzero(np.concatenate(histograms))


class ColourHistograms(ImageFeatureExtractor):
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
    _names = ("bins", "levels", "scales")

    def __init__(
        self,
        bins: int = 6,
        levels: tuple[int, ...] = (1, 2, 4),
        scales: int = 2,
        *,
        size: int = 256,
        crop: float = 1.0,
        max_pixels: int = MAX_PIXELS,
        seed: int = 0,
    ) -> None:
        super().__init__(size=size, crop=crop, max_pixels=max_pixels, seed=seed)
        self.bins = bins
        self.levels = levels
        self.scales = scales

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self.scales * count_cells(self.levels) * int(self.bins) ** 3

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        check_levels(self.levels)
        if not 2 <= self.bins <= 32:
            raise InputError(f"bins is {self.bins}; cut each channel into 2 to 32 parts")
        if not 1 <= self.scales <= 6:
            raise InputError(f"scales is {self.scales}; look at a picture at 1 to 6 scales")
        super().check()

    def encoder(self) -> _ColourEncoder:
        """Return the encoder, which is sent to workers."""
        self.check()
        sizes = tuple(max(1, self.size >> scale) for scale in range(self.scales))
        return _ColourEncoder(sizes, self.bins, self.levels)
