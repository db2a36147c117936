"""Histograms of textons, typical filter responses (Leung and Malik 1999), over a spatial pyramid.

The bank holds the derivatives of a Gaussian of first and second order at several scales. They steer: a filter of any
direction, and the Laplacian, is a sum of them, so that their responses say what edges, bars and spots of each scale lie
at a pixel, and in which direction. Brightness itself is left out. Separable filters on a coarser grid are two products
of matrices: F_y I F_x^T.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from wsabie.core.arrays import Array, Float32, UInt8
from wsabie.core.errors import require
from wsabie.features.base.codebook import Codebook, learn_codebook
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext
from wsabie.features.base.word_extractor import BlockExtractor
from wsabie.features.images.image_extractor import ImageView, ScaledImageExtractor
from wsabie.features.images.spatial_pyramid import check_levels, compute_spatial_histograms, count_cells, select_nonzero
from wsabie.io.records import ItemSource
from wsabie.storage.schema_validation import check_array

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
