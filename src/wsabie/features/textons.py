"""Texton histograms: typical responses of a bank of filters, counted over a spatial pyramid (Leung and Malik 1999).

The bank holds the derivatives of a Gaussian of first and second order at several scales. They steer: a filter of any
direction, and the Laplacian, is a sum of them, so that their responses say what edges, bars and spots of each scale lie
at a pixel, and in which direction. Brightness itself is left out. Separable filters on a coarser grid are two products
of matrices: F_y I F_x^T.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from wsabie.base.arrays import Float32, Int32, UInt8
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.colour import filled
from wsabie.features.dictionary import Dictionary, learn_dictionary
from wsabie.features.learning import Run, sample_blocks, sample_places
from wsabie.features.pictures import MAX_PIXELS, PictureDescriber
from wsabie.features.pyramid import check_levels, n_cells, spatial_histograms
from wsabie.features.viewer import Look
from wsabie.sources.records import ItemSource
from wsabie.storage.folder import Array
from wsabie.storage.rejects import Rejects
from wsabie.storage.schema import check_array

ORDERS = ((0, 1), (1, 0), (0, 2), (1, 1), (2, 0))
"""Derivatives (down, across) of each scale."""

_REACH = 4  # deviations to each side
_CONTRAST = 0.03  # a response of which the eye begins to take notice; that of Varma and Zisserman (2005)


@dataclass(frozen=True)
class Bank:
    """Filters and where they are laid.

    Attributes
    ----------
    sigmas : tuple of float
        Deviations of the Gaussians, in pixels.
    stride : int
        Pixels between one place and the next, both ways.
    """

    sigmas: tuple[float, ...]
    stride: int

    def responses(self, pixels: UInt8) -> Float32:
        """Of every filter at every place, after Weber's law: r log(1 + |r| / .03) / |r|.

        Parameters
        ----------
        pixels : (h, w, 3) uint8

        Returns
        -------
        ndarray, (ceil(h / stride), ceil(w / stride), 5 * len(sigmas)), float32
            Scale by scale, in the order of `ORDERS`; a derivative is multiplied by sigma ** order, so that all
            scales have responses of one size.
        """
        grey = pixels.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32) / 255
        height, width = grey.shape
        found = []
        for sigma in self.sigmas:
            down = [filter_matrix(height, self.stride, sigma, order) @ grey for order in range(3)]
            across = [filter_matrix(width, self.stride, sigma, order).T for order in range(3)]
            found += [down[y] @ across[x] for y, x in ORDERS]
        raw = np.stack(found, axis=-1)
        size = np.linalg.norm(raw, axis=-1, keepdims=True)
        return np.asarray(raw * (np.log1p(size / _CONTRAST) / np.maximum(size, 1e-9)), np.float32)


@lru_cache(maxsize=256)
def filter_matrix(n: int, stride: int, sigma: float, order: int) -> Float32:
    """Row i times a line of n pixels: the derivative of the smoothed line at pixel i * stride, times sigma ** order.

    Beyond its ends the line goes on as it ends.

    Examples
    --------
    >>> filter_matrix(5, 2, 1.0, 0).sum(axis=1).round(5).tolist()
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


@dataclass(frozen=True)
class _Responses:
    size: int
    bank: Bank

    def __call__(self, look: Look) -> Float32:
        found = self.bank.responses(look.at(self.size))
        return found.reshape(-1, found.shape[-1])


@dataclass(frozen=True)
class _TextonCounts:
    size: int
    bank: Bank
    textons: Dictionary
    levels: tuple[int, ...]

    def __call__(self, look: Look) -> tuple[Int32, Float32]:
        found = self.bank.responses(look.at(self.size))
        bins = self.textons.assign(found.reshape(-1, found.shape[-1])).reshape(found.shape[:2])
        return filled(spatial_histograms(bins, len(self.textons), self.levels))


class Textons(PictureDescriber):
    """Pictures as histograms of textons in every cell of a spatial pyramid.

    Parameters
    ----------
    n_textons : int
        Typical responses that k-means looks for.
    levels : tuple of int
        Cells along a side, one number for each level of the pyramid.
    sigmas : tuple of float
        Scales of the filters, in pixels.
    stride : int
        Pixels between one place that is looked at and the next.
    size, crop, max_pixels, seed
        As in `VisualTerms`.

    Attributes
    ----------
    textons_ : Dictionary
        centres (n_textons, 5 * len(sigmas)).
    """

    name = "textons"
    kind = "textons"
    _names = ("n_textons", "levels", "sigmas", "stride")

    def __init__(
        self,
        n_textons: int = 256,
        levels: tuple[int, ...] = (1, 2, 4),
        sigmas: tuple[float, ...] = (1.0, 2.0, 4.0),
        stride: int = 2,
        *,
        size: int = 256,
        crop: float = 1.0,
        max_pixels: int = MAX_PIXELS,
        seed: int = 0,
    ) -> None:
        super().__init__(size=size, crop=crop, max_pixels=max_pixels, seed=seed)
        self.n_textons = n_textons
        self.levels = levels
        self.sigmas = sigmas
        self.stride = stride

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return self.n_textons * n_cells(self.levels)

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
        max_samples: int = 200_000,
    ) -> Self:
        """Learn the textons from responses at random places of pictures spread evenly over the collection.

        Raises
        ------
        InputError
            A parameter is out of range, no picture can be read, or there are fewer distinct responses than textons.
        """
        self.check()
        self.refuse(source)
        run = Run(executor or Serial(), progress, Rejects() if rejects is None else rejects)
        places = sample_places(source, max_samples)
        found = sample_blocks(self.viewer(), _Responses(self.size, self._bank()), source, places, max_samples, run)
        self.textons_ = learn_dictionary(
            found, self.n_textons, passes=10, seed=self.seed, executor=executor, progress=progress
        )
        return self

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        check_levels(self.levels)
        if not (isinstance(self.n_textons, int | np.integer) and 2 <= self.n_textons <= 100_000):
            raise InputError(f"n_textons is {self.n_textons}; give a number from 2 to 100,000")
        if not self.sigmas or not all(0.5 <= sigma <= 64 for sigma in self.sigmas):
            raise InputError(f"sigmas is {self.sigmas}; give scales from 0.5 to 64 pixels, such as (1.0, 2.0, 4.0)")
        if not 1 <= self.stride <= 64:
            raise InputError(f"stride is {self.stride}; give a number of pixels from 1 to 64")
        super().check()

    def encoder(self) -> _TextonCounts:
        """The part that travels to workers."""
        return _TextonCounts(self.size, self._bank(), self._fitted(), self.levels)

    def _tensors(self) -> dict[str, Array]:
        return {"centres": self._fitted().centres}

    def _restore(self, tensors: dict[str, Any]) -> None:
        self.textons_ = Dictionary(check_array(tensors, "centres", "float32", (None, None)))
        if self.textons_.centres.shape != (self.n_textons, len(ORDERS) * len(self.sigmas)):
            raise self._other_version()

    def _bank(self) -> Bank:
        return Bank(self.sigmas, self.stride)

    def _fitted(self) -> Dictionary:
        found: Dictionary | None = getattr(self, "textons_", None)
        if found is None:
            raise InputError("these textons have not been learned yet; call fit with pictures first")
        return found
