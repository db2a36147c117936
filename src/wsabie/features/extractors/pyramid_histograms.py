"""Histograms of pictures over a spatial pyramid: colours, directions of edges, textons.

The pyramid is the whole picture, its quarters, its sixteenths ... (Lazebnik, Schmid and Ponce 2006), without their
weights: every level has the same mass, so that a model may choose.

Colours are part of the "Ensemble" features of the WSABIE papers; Mesnil et al. 2014, section 6.1, name them after
Makadia, Pavlovic and Kumar (2008). Histograms of oriented gradients (HOG) are those of Dalal and Triggs (2005), over
grids for pictures of any size.

Textons are typical filter responses (Leung and Malik 1999). The bank holds the derivatives of a Gaussian of first and
second order at several scales. They steer: a filter of any direction, and the Laplacian, is a sum of them, so that
their responses say what edges, bars and spots of each scale lie at a pixel, and in which direction. Brightness itself
is left out. Separable filters on a coarser grid are two products of matrices: F_y I F_x^T.

scikit-image and OpenCV have neither pyramid, palette nor textons, and `hog` of scikit-image refuses pictures under 24
pixels (`docs/decisions/picture-features.md`).
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from wsabie.core.arrays import Array, Float32, Float64, Int32, Int64, UInt8
from wsabie.core.errors import require
from wsabie.features.base.codebook import Codebook, learn_codebook
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext
from wsabie.features.base.word_extractor import BlockExtractor
from wsabie.features.images.image_extractor import ImageView, ScaledImageExtractor
from wsabie.io.records import ItemSource
from wsabie.storage.schema_validation import check_array

MASS = 1000.0
"""Sum of the histograms of one level; values are thousandths of the picture, a good range for logarithms."""


def count_cells(levels: tuple[int, ...]) -> int:
    """Count the cells of all levels together.

    Examples
    --------
    >>> count_cells((1, 2, 4))
    21
    """
    return sum(level * level for level in levels)


def assign_cells(height: int, width: int, level: int) -> Int64:
    """Return the cell of each pixel in a grid of `level` x `level`, (h, w), row after row.

    Examples
    --------
    >>> assign_cells(2, 4, 2).tolist()
    [[0, 0, 1, 1], [2, 2, 3, 3]]
    """
    rows, columns = np.arange(height) * level // height, np.arange(width) * level // width
    return rows[:, None] * level + columns


def compute_spatial_histograms(bins: Array, n_bins: int, levels: tuple[int, ...]) -> Float32:
    """Count the bins of a picture's pixels in every cell of every level.

    Parameters
    ----------
    bins : (h, w) integers
        The bin of each pixel.
    n_bins : int
    levels : tuple of int
        Cells along a side, one number a level.

    Returns
    -------
    ndarray, (n_cells * n_bins,), float32
        Level by level, cell by cell; each level sums to `MASS`.

    Examples
    --------
    >>> compute_spatial_histograms(np.array([[0, 1], [1, 1]]), 2, (1, 2)).tolist()
    [250.0, 750.0, 250.0, 0.0, 0.0, 250.0, 0.0, 250.0, 0.0, 250.0]
    """
    height, width = bins.shape
    histograms = [
        np.bincount((assign_cells(height, width, level) * n_bins + bins).ravel(), minlength=level * level * n_bins)
        for level in levels
    ]
    return (np.concatenate(histograms) * (MASS / bins.size)).astype(np.float32)


def select_nonzero(histogram: Float32) -> tuple[Int32, Float32]:
    """Return the columns and values of the non-zeros."""
    columns = np.flatnonzero(histogram).astype(np.int32)
    return columns, histogram[columns]


def check_levels(levels: tuple[int, ...]) -> None:
    """Raise InputError unless there are levels that can be counted."""
    are_counts = all(isinstance(level, int | np.integer) and 1 <= level <= 32 for level in levels)
    remedy = "give one number from 1 to 32 for each level of the pyramid, as (1, 2, 4)"
    require(bool(levels) and are_counts, f"levels is {levels}; {remedy}")


def assign_colour_bins(pixels: UInt8, bins: int) -> Int64:
    """Return the colour bin of each pixel, (h, w): each channel in `bins` equal parts, red first.

    Examples
    --------
    >>> assign_colour_bins(np.array([[[0, 0, 0], [255, 127, 128]]], np.uint8), 2).tolist()
    [[0, 5]]
    """
    part = pixels.astype(np.int64) * bins >> 8
    return np.asarray((part[..., 0] * bins + part[..., 1]) * bins + part[..., 2])


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
    return sums.reshape(cells, cells, n_directions) * (cells * cells / strength.size)


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


ORDERS = ((0, 1), (1, 0), (0, 2), (1, 1), (2, 0))
"""Derivatives (down, across) of each scale."""

_REACH = 4  # deviations to each side
_CONTRAST = 0.03  # just noticeable response, from Varma and Zisserman (2005)


def compute_filter_responses(pixels: UInt8, sigmas: tuple[float, ...], stride: int) -> Float32:
    """Compute responses r of all filters on a grid, scaled by log(1 + |r| / .03) / |r| (Weber's law).

    Parameters
    ----------
    pixels : (h, w, 3) uint8
    sigmas : tuple of float
        Deviations of the Gaussians, in pixels.
    stride : int
        Pixels from one grid point to the next, both ways.

    Returns
    -------
    ndarray, (ceil(h / stride), ceil(w / stride), 5 * len(sigmas)), float32
        Scale by scale, in the order of `ORDERS`; a derivative is multiplied by sigma ** order, so that all
        scales have responses of one size.
    """
    grey = pixels.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32) / 255
    height, width = grey.shape
    responses = []
    for sigma in sigmas:
        down = [build_filter_matrix(height, stride, sigma, order) @ grey for order in range(3)]
        across = [build_filter_matrix(width, stride, sigma, order).T for order in range(3)]
        responses += [down[y] @ across[x] for y, x in ORDERS]
    raw = np.stack(responses, axis=-1)
    size = np.linalg.norm(raw, axis=-1, keepdims=True)
    return np.asarray(raw * (np.log1p(size / _CONTRAST) / np.maximum(size, 1e-9)), np.float32)


@lru_cache(maxsize=256)
def build_filter_matrix(n: int, stride: int, sigma: float, order: int) -> Float32:
    """Return the matrix of a smoothed derivative of n pixels at every stride, times sigma ** order.

    Beyond its ends the line continues with its last values.

    Examples
    --------
    >>> build_filter_matrix(5, 2, 1.0, 0).sum(axis=1).round(5).tolist()
    [1.0, 1.0, 1.0]
    """
    reach = int(_REACH * sigma + 0.5)
    x = np.arange(-reach, reach + 1) / sigma
    bell = np.exp(-0.5 * x * x)
    bell /= bell.sum()
    kernel = bell * (np.ones_like(x), x, x * x - 1)[order]
    if order:
        kernel -= kernel.sum() * bell  # what is cut off must not let brightness in
    out = np.zeros((-(-n // stride), n))
    centres = np.arange(0, n, stride)
    columns = np.clip(centres[:, None] + np.arange(-reach, reach + 1), 0, n - 1)
    np.add.at(out, (np.arange(len(centres))[:, None], columns), kernel)
    return out.astype(np.float32)


@dataclass(eq=False, repr=False)
class Textons(BlockExtractor, ScaledImageExtractor):
    """Pictures as histograms of textons in every cell of a spatial pyramid.

    Parameters
    ----------
    n_textons : int
        Centres of k-means.
    levels : tuple of int
        Cells along a side, one number for each level of the pyramid.
    sigmas : tuple of float
        Scales of the filters, in pixels.
    stride : int
        Pixels from one grid point to the next.
    size, crop, max_pixels, seed
        As in `VisualWords`.

    Attributes
    ----------
    textons_ : Codebook
        centres (n_textons, 5 * len(sigmas)).
    """

    name = "textons"
    kind = "textons"
    max_samples: ClassVar[int] = 200_000
    """Responses in the sample of `fit`."""

    n_textons: int = 256
    levels: tuple[int, ...] = (1, 2, 4)
    sigmas: tuple[float, ...] = (1.0, 2.0, 4.0)
    stride: int = 2
    textons_: Codebook = field(init=False)

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self.n_textons * count_cells(self.levels)

    def _learn(self, source: ItemSource, context: WorkContext) -> None:
        _, samples = self._sample_blocks(source, self.max_samples, context)
        self.textons_ = learn_codebook(
            samples, self.n_textons, passes=10, seed=self.seed, executor=context.executor, progress=context.progress
        )

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        check_levels(self.levels)
        is_count = isinstance(self.n_textons, int | np.integer) and 2 <= self.n_textons <= 100_000
        require(is_count, f"n_textons is {self.n_textons}; give a number from 2 to 100,000")
        are_scales = bool(self.sigmas) and all(0.5 <= sigma <= 64 for sigma in self.sigmas)
        require(are_scales, f"sigmas is {self.sigmas}; give scales from 0.5 to 64 pixels, such as (1.0, 2.0, 4.0)")
        require(1 <= self.stride <= 64, f"stride is {self.stride}; give a number of pixels from 1 to 64")
        super().check()

    def prepare(self, augment: int = 0) -> None:
        """Raise InputError before `fit`."""
        super().prepare(augment)
        self._require_learned("textons_", "these textons have not been learned")

    def cut(self, view: ImageView) -> Float32:
        """Return the responses of all filters at all grid points."""
        responses = self._compute_responses(view)
        return responses.reshape(-1, responses.shape[-1])

    def encode(self, view: ImageView) -> EncodedRow:
        """Return the row of a view."""
        responses = self._compute_responses(view)
        bins = self.textons_.assign(responses.reshape(-1, responses.shape[-1])).reshape(responses.shape[:2])
        return select_nonzero(compute_spatial_histograms(bins, len(self.textons_), self.levels))

    def _compute_responses(self, view: ImageView) -> Float32:
        return compute_filter_responses(view.scale_to(self.size), self.sigmas, self.stride)

    def _dump_tensors(self) -> dict[str, Array]:
        self.prepare()
        return {"centres": self.textons_.centres}

    def _restore(self, tensors: dict[str, Array]) -> None:
        self.textons_ = Codebook(check_array(tensors, "centres", "float32", (None, None)))
        if self.textons_.centres.shape != (self.n_textons, len(ORDERS) * len(self.sigmas)):
            raise self._make_version_error()
