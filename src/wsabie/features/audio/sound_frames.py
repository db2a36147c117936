"""Frames of sounds: mel-frequency cepstral coefficients, and stabilised auditory images.

Bengio et al. 2012, part II, describe music by both. Mel-frequency cepstral coefficients are 39 numbers every 10 ms: 13
coefficients (Davis and Mermelstein 1980) with their first and second derivatives (Furui 1986). Stabilised auditory
images are the output of the cochlea, channel by lag, frame by frame (Lyon, Rehn, Bengio, Walters, Chechik: "Sound
retrieval and ranking using sparse auditory representations", 2010).

librosa computes the same coefficients, but would bring seven packages along (`docs/decisions/words-and-sound.md`).
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Float64
from wsabie.kernels.features.cochlea import CochleaState, FilterCascade, integrate_strobes, run_cochlea

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
DELTA_REACH = 4
"""Frames to each side that a derivative covers."""
_SILENT_POWER = 1e-10  # power below which a band counts as silent: -100 dB
_FRAMES_AT_ONCE = 4096


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
def design_filter_cascade(config: AuditoryImageConfig) -> FilterCascade:
    """Return the filters of a cochlea with these parameters."""
    theta = 2 * np.pi * compute_channel_frequencies(config) / config.rate
    radius = 1 - _DAMPING * np.sin(theta)
    real, imaginary = radius * np.cos(theta), radius * np.sin(theta)
    zero = (_ZERO_RATIO**2 - 1) * np.sin(theta)
    gain = (1 - 2 * real + radius**2) / (1 - 2 * real + zero * imaginary + radius**2)
    smooth = np.float32(1 - math.exp(-1 / (_LEVEL_SECONDS * config.rate)))
    real, imaginary, zero, gain = np.array([real, imaginary, zero, gain], np.float32)
    return FilterCascade(real, imaginary, zero, gain, smooth, np.float32(_FLOOR))


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
    state = CochleaState.silent(n_channels, n_lags)
    decay = np.float32(np.exp(-1 / (_THRESHOLD_SECONDS * rate)))
    forget = np.exp(-np.arange(rate) / (_MEMORY_SECONDS * rate)).astype(np.float32)
    least = round(_LEAST_SECONDS * rate)
    history = np.zeros((n_channels, n_lags + hop + 1), np.float32)
    for start in range(0, len(samples), hop):
        history[:, : n_lags + 1] = history[:, hop:].copy()
        piece = np.ascontiguousarray(samples[start : start + hop], np.float32)
        run_cochlea(np.pad(piece, (0, hop - len(piece))), filters, state, history)
        integrate_strobes(history, hop, decay, forget, least, state)
        yield state.image[:, ::-1]


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


class MfccConfig(NamedTuple):
    """Parameters of the coefficients.

    Attributes
    ----------
    rate : int
        Samples a second.
    hop, window : float
        Seconds from one frame to the next, and length of a frame.
    n_bands : int
        Mel bands from 0 to half the rate.
    n_coefficients : int
    """

    rate: int
    hop: float = 0.010
    window: float = 0.025
    n_bands: int = 40
    n_coefficients: int = 13

    @property
    def hop_samples(self) -> int:
        """Samples from one frame to the next."""
        return max(1, round(self.hop * self.rate))

    @property
    def window_samples(self) -> int:
        """Samples of a frame."""
        return max(2, round(self.window * self.rate))

    @property
    def n_fft(self) -> int:
        """Length of the transform: the next power of two."""
        return 1 << (self.window_samples - 1).bit_length()


def compute_mfcc(samples: Float32, config: MfccConfig) -> Float32:
    """Compute coefficients of frames centred on multiples of the hop; beyond its ends the sound is silent.

    Hann window, power spectrum, triangular filters of equal area on Slaney's mel scale, decibels, orthonormal cosine
    transform: the conventions of librosa, with the frame filled up by zeros on both sides.

    Parameters
    ----------
    samples : (n,) float32
    config : MfccConfig

    Returns
    -------
    ndarray, (1 + n // hop, n_coefficients), float32

    Examples
    --------
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000).astype(np.float32)
    >>> compute_mfcc(tone, MfccConfig(16_000)).shape
    (101, 13)
    """
    hop, n_fft = config.hop_samples, config.n_fft
    n_frames = 1 + len(samples) // hop
    padded = np.pad(np.asarray(samples, np.float32), n_fft // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft)[::hop][:n_frames]
    window, filters = _build_window(config), build_mel_filters(config)
    cosines = _build_cosines(config.n_coefficients, config.n_bands)
    out = np.empty((n_frames, config.n_coefficients), np.float32)
    for lo in range(0, n_frames, _FRAMES_AT_ONCE):
        spectrum = np.fft.rfft(frames[lo : lo + _FRAMES_AT_ONCE] * window)
        power = spectrum.real**2 + spectrum.imag**2
        decibels = 10 * np.log10(np.maximum(power.astype(np.float32) @ filters, np.float32(_SILENT_POWER)))
        out[lo : lo + _FRAMES_AT_ONCE] = decibels @ cosines
    return out


def append_derivatives(coefficients: Float32) -> Float32:
    """Return coefficients with their first and second derivatives along the frames, side by side.

    Derivatives are those of the line and of the parabola nearest to the frames up to `DELTA_REACH` away; at the ends
    the first and the last such curve go on.

    Parameters
    ----------
    coefficients : (n_frames, n) float32

    Returns
    -------
    ndarray, (n_frames, 3 n), float32

    Examples
    --------
    >>> line = np.arange(20, dtype=np.float32)[:, None] * 0.5
    >>> append_derivatives(line)[10, :2].round(3).tolist()
    [5.0, 0.5]
    """
    from scipy.signal import savgol_filter

    width = 2 * DELTA_REACH + 1
    padded = coefficients
    if len(coefficients) < width:  # a sound shorter than a derivative's reach goes on as it ends
        padded = np.pad(coefficients, ((0, width - len(coefficients)), (0, 0)), mode="edge")
    derivatives = [savgol_filter(padded, width, order, deriv=order, axis=0)[: len(coefficients)] for order in (1, 2)]
    return np.hstack([coefficients, *derivatives]).astype(np.float32)


@lru_cache(maxsize=16)
def build_mel_filters(config: MfccConfig) -> Float32:
    """Return triangular filters of equal area on the power spectrum, (n_fft // 2 + 1, n_bands).

    Slaney's scale: linear up to 1,000 Hz (15 mel), then logarithmic, 27 mel for a factor of 6.4.
    """
    edges = _to_hertz(np.linspace(0, _to_mel(config.rate / 2), config.n_bands + 2))
    bins = np.fft.rfftfreq(config.n_fft, 1 / config.rate)[:, None]
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (bins - low) / (centre - low), (high - bins) / (high - centre)
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low), np.float32)


def _to_mel(hertz: float) -> float:
    return float(hertz * 3 / 200 if hertz < 1000 else 15 + 27 * np.log(hertz / 1000) / np.log(6.4))


def _to_hertz(mel: Float64) -> Float64:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


@lru_cache(maxsize=16)
def _build_window(config: MfccConfig) -> Float32:
    """Return a periodic Hann window in the middle of a transform."""
    length, start = config.window_samples, (config.n_fft - config.window_samples) // 2
    window = np.zeros(config.n_fft, np.float32)
    window[start : start + length] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    return window


@lru_cache(maxsize=16)
def _build_cosines(n_coefficients: int, n_bands: int) -> Float32:
    """Return the orthonormal cosine transform, (n_bands, n_coefficients)."""
    angles = np.pi / n_bands * (np.arange(n_bands) + 0.5)[:, None] * np.arange(n_coefficients)
    scale = np.where(np.arange(n_coefficients) == 0, np.sqrt(1 / n_bands), np.sqrt(2 / n_bands))
    return np.asarray(np.cos(angles) * scale, np.float32)
