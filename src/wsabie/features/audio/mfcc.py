"""Mel-frequency cepstral coefficients of sounds: 39 numbers every 10 ms.

13 coefficients (Davis and Mermelstein 1980) with their first and second derivatives (Furui 1986). librosa computes the
same, but would bring seven packages along (`docs/decisions/words-and-sound.md`).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Float64

DELTA_REACH = 4
"""Frames to each side that a derivative covers."""
_SILENT_POWER = 1e-10  # power below which a band counts as silent: -100 dB
_FRAMES_AT_ONCE = 4096


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
