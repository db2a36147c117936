"""Stabilised auditory images: what a sound looks like behind the cochlea, channel by lag, frame by frame.

Lyon, Rehn, Bengio, Walters, Chechik: "Sound retrieval and ranking using sparse auditory representations" (2010), which
the slides take their second description of music from ([S], part II).
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Float64
from wsabie.kernels.auditory import Cascade, Hearing, hear, integrate

ROWS, COLUMNS = 16, 32
"""A box is brought to so many rows and columns."""
BOX_FEATURES = ROWS + COLUMNS

_DAMPING = 0.15
_ZERO_RATIO = 2.0**0.5  # of the zeros' frequency to the poles'
_HIGHEST = 0.85  # highest pole, as a share of half the rate
_LOWEST = 40.0
_LEVEL_SECONDS = 0.030
_FLOOR = 1e-3
_THRESHOLD_SECONDS = 0.010
_MEMORY_SECONDS = 0.040
_LEAST_SECONDS = 0.002


class SaiPlan(NamedTuple):
    """How images are made.

    Attributes
    ----------
    rate : int
        Samples a second.
    hop : float
        Seconds from one image to the next.
    lags : float
        Seconds that an image reaches back from a strobe.
    step : float
        Equivalent rectangular bandwidths (Glasberg and Moore 1990) from one channel to the next.
    """

    rate: int
    hop: float = 0.020
    lags: float = 0.025
    step: float = 0.5

    @property
    def hop_samples(self) -> int:
        """Samples from one image to the next."""
        return max(2, round(self.hop * self.rate))

    @property
    def n_lags(self) -> int:
        """Columns of an image, lags 0 to n_lags - 1 samples: `COLUMNS` times a power of two."""
        return COLUMNS << max(0, round(math.log2(self.lags * self.rate / COLUMNS)))


def channel_frequencies(plan: SaiPlan) -> Float64:
    """Pole frequencies in Hz, the highest first.

    Examples
    --------
    >>> found = channel_frequencies(SaiPlan(16_000))
    >>> len(found), round(float(found[0]))
    (59, 6800)
    """
    found, hertz = [], _HIGHEST * plan.rate / 2
    while hertz >= _LOWEST:
        found.append(hertz)
        hertz -= plan.step * 24.7 * (4.37 * hertz / 1000 + 1)
    return np.array(found)


@lru_cache(maxsize=16)
def cascade(plan: SaiPlan) -> Cascade:
    """The filters of a plan."""
    theta = 2 * np.pi * channel_frequencies(plan) / plan.rate
    radius = 1 - _DAMPING * np.sin(theta)
    real, imaginary = radius * np.cos(theta), radius * np.sin(theta)
    zero = (_ZERO_RATIO**2 - 1) * np.sin(theta)
    gain = (1 - 2 * real + radius**2) / (1 - 2 * real + zero * imaginary + radius**2)
    smooth = np.float32(1 - math.exp(-1 / (_LEVEL_SECONDS * plan.rate)))
    real, imaginary, zero, gain = np.array([real, imaginary, zero, gain], np.float32)
    return Cascade(real, imaginary, zero, gain, smooth, np.float32(_FLOOR))


def images(samples: Float32, plan: SaiPlan) -> Iterator[Float32]:
    """The image after every hop, (n_channels, n_lags): lag 0 first, channels from high to low.

    The array is the iterator's own; copy it to keep it.

    Parameters
    ----------
    samples : (n,) float32
        From -1 to 1; what is left behind the last whole hop is filled up with silence.
    plan : SaiPlan
    """
    filters, hop, n_lags, rate = cascade(plan), plan.hop_samples, plan.n_lags, plan.rate
    n = len(filters.real)
    state = Hearing.silent(n, n_lags)
    decay = np.float32(np.exp(-1 / (_THRESHOLD_SECONDS * rate)))
    forget = np.exp(-np.arange(rate) / (_MEMORY_SECONDS * rate)).astype(np.float32)
    least = round(_LEAST_SECONDS * rate)
    heard = np.zeros((n, n_lags + hop + 1), np.float32)
    for start in range(0, len(samples), hop):
        heard[:, : n_lags + 1] = heard[:, hop:].copy()
        piece = np.ascontiguousarray(samples[start : start + hop], np.float32)
        hear(np.pad(piece, (0, hop - len(piece))), filters, state, heard)
        integrate(heard, hop, decay, forget, least, state)
        yield state.image[:, ::-1]


class Box(NamedTuple):
    """A part of an image: channels `top` to `top + height`, lags 0 to `width`."""

    top: int
    height: int
    width: int


@lru_cache(maxsize=16)
def boxes(n_channels: int, n_lags: int) -> tuple[Box, ...]:
    """Boxes of all sizes, each twice as high or as wide as the next smaller one, half over each other.

    All begin at lag 0; what is told apart is how far a box reaches back, and which channels it looks at.

    Examples
    --------
    >>> found = boxes(59, 512)
    >>> len(found), found[0], found[-1]
    (50, Box(top=0, height=16, width=32), Box(top=27, height=32, width=512))
    """
    found = []
    height = ROWS
    while height <= n_channels:
        tops = sorted({*range(0, n_channels - height + 1, height // 2), n_channels - height})
        width = COLUMNS
        while width <= n_lags:
            found += [Box(top, height, width) for top in tops]
            width *= 2
        height *= 2
    return tuple(found)


def describe_boxes(stack: Float32) -> Float32:
    """Every box of every image, shrunk to `ROWS` x `COLUMNS` by means, as the means of its columns and of its rows.

    Parameters
    ----------
    stack : (n, n_channels, n_lags) float32

    Returns
    -------
    ndarray, (n, n_boxes, BOX_FEATURES), float32

    Examples
    --------
    >>> flat = describe_boxes(np.ones((1, 59, 512), np.float32))
    >>> flat.shape, float(flat.min()), float(flat.max())
    ((1, 50, 48), 1.0, 1.0)
    """
    n, n_channels, n_lags = stack.shape
    cut = boxes(n_channels, n_lags)
    out = np.empty((n, len(cut), BOX_FEATURES), np.float32)
    shrunk = {
        width: stack[:, :, :width].reshape(n, n_channels, COLUMNS, -1).mean(axis=3)
        for width in {box.width for box in cut}
    }
    for b, box in enumerate(cut):
        part = shrunk[box.width][:, box.top : box.top + box.height]
        out[:, b, :COLUMNS] = part.mean(axis=1)
        out[:, b, COLUMNS:] = part.mean(axis=2).reshape(n, ROWS, -1).mean(axis=2)
    return out
