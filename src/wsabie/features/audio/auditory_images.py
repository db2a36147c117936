"""Stabilised auditory images: the output of a model of the cochlea, channel by lag, frame by frame.

Bengio et al. 2012, part II, describe music by them and by mel-frequency cepstral coefficients (`mfcc`). The method is
that of Lyon, Rehn, Bengio, Walters and Chechik: "Sound retrieval and ranking using sparse auditory representations",
2010.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Float64
from wsabie.kernels.features import auditory_images as kernels

ROWS, COLUMNS = 16, 32
"""Rows and columns to which a box is shrunk."""
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


class AuditoryImageConfig(NamedTuple):
    """Parameters of auditory images.

    Attributes
    ----------
    rate : int
        Samples a second.
    hop : float
        Seconds from one image to the next.
    lags : float
        Reach of an image back from a strobe, in seconds.
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


def compute_channel_frequencies(config: AuditoryImageConfig) -> Float64:
    """Return the pole frequencies in Hz, the highest first.

    Examples
    --------
    >>> frequencies = compute_channel_frequencies(AuditoryImageConfig(16_000))
    >>> len(frequencies), round(float(frequencies[0]))
    (59, 6800)
    """
    frequencies, hertz = [], _HIGHEST * config.rate / 2
    while hertz >= _LOWEST:
        frequencies.append(hertz)
        hertz -= config.step * 24.7 * (4.37 * hertz / 1000 + 1)
    return np.array(frequencies)


@lru_cache(maxsize=16)
def design_filter_cascade(config: AuditoryImageConfig) -> kernels.FilterCascade:
    """Return the filters of a cochlea with these parameters."""
    theta = 2 * np.pi * compute_channel_frequencies(config) / config.rate
    radius = 1 - _DAMPING * np.sin(theta)
    real, imaginary = radius * np.cos(theta), radius * np.sin(theta)
    zero = (_ZERO_RATIO**2 - 1) * np.sin(theta)
    gain = (1 - 2 * real + radius**2) / (1 - 2 * real + zero * imaginary + radius**2)
    smooth = np.float32(1 - math.exp(-1 / (_LEVEL_SECONDS * config.rate)))
    real, imaginary, zero, gain = np.array([real, imaginary, zero, gain], np.float32)
    return kernels.FilterCascade(real, imaginary, zero, gain, smooth, np.float32(_FLOOR))


def compute_auditory_images(samples: Float32, config: AuditoryImageConfig) -> Iterator[Float32]:
    """Yield the image after every hop, (n_channels, n_lags): lag 0 first, channels from high to low.

    Copy the array to keep it; the next step overwrites it.

    Parameters
    ----------
    samples : (n,) float32
        From -1 to 1; the last hop is padded with silence.
    config : AuditoryImageConfig
    """
    filters, hop, n_lags, rate = design_filter_cascade(config), config.hop_samples, config.n_lags, config.rate
    n_channels = len(filters.real)
    cochlea, strobes = kernels.CochleaState.silent(n_channels), kernels.ImageState.silent(n_channels, n_lags)
    decay = np.float32(np.exp(-1 / (_THRESHOLD_SECONDS * rate)))
    forget = np.exp(-np.arange(rate) / (_MEMORY_SECONDS * rate)).astype(np.float32)
    least = round(_LEAST_SECONDS * rate)
    history = np.zeros((n_channels, n_lags + hop + 1), np.float32)
    for start in range(0, len(samples), hop):
        history[:, : n_lags + 1] = history[:, hop:].copy()
        piece = np.ascontiguousarray(samples[start : start + hop], np.float32)
        kernels.run_cochlea(np.pad(piece, (0, hop - len(piece))), filters, cochlea, history)
        kernels.integrate_strobes(history, hop, decay, forget, least, strobes)
        yield strobes.image[:, ::-1]


class ImageBox(NamedTuple):
    """Part of an image: channels `top` to `top + height`, lags 0 to `width`."""

    top: int
    height: int
    width: int


@lru_cache(maxsize=16)
def list_boxes(n_channels: int, n_lags: int) -> tuple[ImageBox, ...]:
    """Return boxes of all sizes that overlap by half, each twice as high or wide as the next smaller one.

    All begin at lag 0; they differ in their reach back and in their channels.

    Examples
    --------
    >>> boxes = list_boxes(59, 512)
    >>> len(boxes), boxes[0], boxes[-1]
    (50, ImageBox(top=0, height=16, width=32), ImageBox(top=27, height=32, width=512))
    """
    boxes = []
    height = ROWS
    while height <= n_channels:
        tops = sorted({*range(0, n_channels - height + 1, height // 2), n_channels - height})
        width = COLUMNS
        while width <= n_lags:
            boxes += [ImageBox(top, height, width) for top in tops]
            width *= 2
        height *= 2
    return tuple(boxes)


def extract_box_features(stack: Float32) -> Float32:
    """Return the means of columns and rows of every box of every image, shrunk to `ROWS` x `COLUMNS`.

    Parameters
    ----------
    stack : (n, n_channels, n_lags) float32

    Returns
    -------
    ndarray, (n, n_boxes, BOX_FEATURES), float32

    Examples
    --------
    >>> flat = extract_box_features(np.ones((1, 59, 512), np.float32))
    >>> flat.shape, float(flat.min()), float(flat.max())
    ((1, 50, 48), 1.0, 1.0)
    """
    n, n_channels, n_lags = stack.shape
    boxes = list_boxes(n_channels, n_lags)
    out = np.empty((n, len(boxes), BOX_FEATURES), np.float32)
    shrunk = {
        width: stack[:, :, :width].reshape(n, n_channels, COLUMNS, -1).mean(axis=3)
        for width in {box.width for box in boxes}
    }
    for b, box in enumerate(boxes):
        part = shrunk[box.width][:, box.top : box.top + box.height]
        out[:, b, :COLUMNS] = part.mean(axis=1)
        out[:, b, COLUMNS:] = part.mean(axis=2).reshape(n, ROWS, -1).mean(axis=2)
    return out
