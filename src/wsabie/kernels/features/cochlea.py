"""A cochlea: a cascade of asymmetric resonators with gain control.

Lyon 2011, "Cascades of two-pole-two-zero asymmetric resonators are good models of peripheral auditory function".
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32
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
