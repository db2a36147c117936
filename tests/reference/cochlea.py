"""Slow twin of the cochlea and its stabilised image: NumPy, float64, channel by channel."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float64
from wsabie.kernels.features.auditory_images import GAIN_SAMPLES, FilterCascade


def filter_samples(samples: Any, cascade: FilterCascade) -> Float64:
    """Return the output of every stage of the cascade, (n_channels, n), from silence on."""
    out, x = [], np.asarray(samples, np.float64)
    for a, b, h, g in zip(cascade.real, cascade.imaginary, cascade.zero, cascade.gain, strict=True):
        state, y = 0j, np.empty_like(x)
        for t, value in enumerate(x):
            state = complex(a, b) * state + value
            y[t] = g * (value + h * state.imag)
        out.append(y)
        x = y
    return np.array(out)


def compute_cochlea_output(samples: Any, cascade: FilterCascade) -> Float64:
    """The same, rectified and held to one level."""
    loud = np.maximum(filter_samples(samples, cascade), 0)
    level, out = np.zeros(len(loud)), np.empty_like(loud)
    for t in range(loud.shape[1]):
        if t % GAIN_SAMPLES == 0:
            gain = 1 / np.sqrt((cascade.floor + level) * (cascade.floor + level.mean()))
        out[:, t] = loud[:, t] * gain
        level += cascade.smooth * (loud[:, t] - level)
    return out


def compute_stabilised_image(channels: Any, n_lags: int, decay: float, forget: Any, least: int) -> Float64:
    """The image, (n_channels, n_lags) with lag 0 first, after all that was heard but its last sample."""
    n_channels, n = channels.shape
    padded = np.hstack([np.zeros((n_channels, n_lags)), channels])
    image = np.zeros((n_channels, n_lags))
    for c in range(n_channels):
        threshold, last = 0.0, -2  # one silent sample was heard before
        for t in range(n - 1):
            threshold *= decay
            ahead, peak, behind = padded[c, n_lags + t - 1 : n_lags + t + 2]
            if peak > threshold and t - last >= least and peak > ahead and peak >= behind:
                memory = forget[min(t - last, len(forget) - 1)]
                past = padded[c, t + 1 : n_lags + t + 1][::-1]
                image[c] = memory * image[c] + (1 - memory) * past
                threshold, last = peak, t
    return image
