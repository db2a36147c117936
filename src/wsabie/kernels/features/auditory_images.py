"""Stabilised auditory images (Patterson and Lyon): the output of a cochlea, integrated from strobes.

The cochlea is a cascade of asymmetric resonators with gain control, by Lyon 2011, "Cascades of two-pole-two-zero
asymmetric resonators are good models of peripheral auditory function". The images are those of Lyon, Rehn, Bengio,
Walters and Chechik 2010, "Sound retrieval and ranking using sparse auditory representations".
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.kernels.compiler import jit, jit_entry

GAIN_SAMPLES = 16
"""Samples for which gains are kept."""

FLUSH_LIMIT = np.float32(1e-20)
"""Limit below which numbers become 0: an echo that dies away would end in slow subnormal numbers."""


class FilterCascade(NamedTuple):
    """Filters from high to low frequencies, with the parameters of the gain control.

    Attributes
    ----------
    real, imaginary : (n_channels,) float32
        r cos(theta) and r sin(theta) of each pair of poles.
    zero : (n_channels,) float32
        h, the share of the second state in the output.
    gain : (n_channels,) float32
        g, so that a constant passes unchanged.
    smooth : float32
        Share of a new sample in the level.
    floor : float32
        Level below which nothing is raised.
    """

    real: Float32
    imaginary: Float32
    zero: Float32
    gain: Float32
    smooth: np.float32
    floor: np.float32


class CochleaState(NamedTuple):
    """State that continues from one piece of a sound to the next.

    Attributes
    ----------
    first, second : (n_channels,) float32
        States of the filters.
    level : (n_channels,) float32
        Smoothed rectified output.
    gain : (n_channels,) float32
        Factor of the rectified output.
    """

    first: Float32
    second: Float32
    level: Float32
    gain: Float32

    @classmethod
    def silent(cls, n_channels: int) -> "CochleaState":
        """Return the state before a sound begins."""
        return cls(*np.zeros((4, n_channels), np.float32))


@jit
def _set_gains(floor, level, gain):
    """Set gains to 1 / sqrt(level of the channel * mean level)."""
    # this halves the differences between channels, in decibels, and removes the level of the whole
    total = np.float32(0)
    for c in range(len(level)):
        total += level[c]
    all_of_them = floor + total / np.float32(len(level))
    for c in range(len(level)):
        gain[c] = np.float32(1) / np.sqrt((floor + level[c]) * all_of_them)


@jit
def _end_echoes(first, second, level):
    for c in range(len(level)):
        if abs(first[c]) + abs(second[c]) < FLUSH_LIMIT:
            first[c] = second[c] = 0
        if level[c] < FLUSH_LIMIT:
            level[c] = 0


@jit_entry
def run_cochlea(samples, cascade, state, out):
    """Run samples through the cochlea.

    Parameters
    ----------
    samples : (n,) float32
    cascade : FilterCascade
    state : CochleaState
    out : (n_channels, n_before + n) float32
        The last n columns are filled.
    """
    offset = out.shape[1] - len(samples)
    n_channels = len(cascade.real)
    keep = np.float32(1) - cascade.smooth
    for t in range(len(samples)):
        if t % GAIN_SAMPLES == 0:
            _end_echoes(state.first, state.second, state.level)
            _set_gains(cascade.floor, state.level, state.gain)
        x = samples[t]
        for c in range(n_channels):
            a, b = cascade.real[c], cascade.imaginary[c]
            first, second = state.first[c], state.second[c]
            state.first[c] = a * first - b * second + x
            state.second[c] = b * first + a * second
            x = cascade.gain[c] * (x + cascade.zero[c] * state.second[c])
            loud = max(x, np.float32(0))
            state.level[c] = keep * state.level[c] + cascade.smooth * loud
            out[c, offset + t] = loud * state.gain[c]


class ImageState(NamedTuple):
    """Image that continues from one piece of a sound to the next.

    Attributes
    ----------
    threshold : (n_channels,) float32
        Level that a strobe exceeds.
    since : (n_channels,) int64
        Samples since the last strobe.
    image : (n_channels, n_lags) float32
        The stabilised image, the largest lag first.
    """

    threshold: Float32
    since: Int64
    image: Float32

    @classmethod
    def silent(cls, n_channels: int, n_lags: int) -> "ImageState":
        """Return the state before a sound begins."""
        image = np.zeros((n_channels, n_lags), np.float32)
        return cls(np.zeros(n_channels, np.float32), np.zeros(n_channels, np.int64), image)


@jit_entry
def integrate_strobes(history, n, decay, forget, least, state):
    """Find strobes among the last n samples, and add the signal before each to the image.

    A strobe is a peak above a threshold that it then sets, and that decays. The image forgets by the time since
    the last strobe, so that it is a mean over the same time whatever the rate of strobes.

    Parameters
    ----------
    history : (n_channels, n_lags + n) float32
    n : int
        The very last sample cannot be a strobe yet; it is tested with the samples that follow it.
    decay : float32
        Share of a threshold that is left after a sample.
    forget : (n_longest,) float32
        Share of the image that is left after so many samples.
    least : int
        Samples between two strobes, at least.
    state : ImageState
    """
    n_channels, n_lags = state.image.shape
    for c in range(n_channels):
        threshold, since, row = state.threshold[c], state.since[c], state.image[c]
        channel = history[c]
        for t in range(history.shape[1] - n - 1, history.shape[1] - 1):
            since += 1
            value = channel[t]
            threshold = decay * threshold if threshold > FLUSH_LIMIT else np.float32(0)
            if value > threshold and since >= least and value > channel[t - 1] and value >= channel[t + 1]:
                share = forget[min(since, len(forget) - 1)]
                start = t + 1 - n_lags
                for lag in range(n_lags):
                    row[lag] = share * row[lag] + (np.float32(1) - share) * channel[start + lag]
                threshold, since = value, 0
        state.threshold[c], state.since[c] = threshold, since
