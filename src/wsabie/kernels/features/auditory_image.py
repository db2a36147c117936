"""Stabilised auditory images: the output of a cochlea, integrated from strobes (Patterson and Lyon).

Lyon, Rehn, Bengio, Walters and Chechik 2010, "Sound retrieval and ranking using sparse auditory representations".
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.kernels.compiler import jit_entry
from wsabie.kernels.features.cochlea import FLUSH_LIMIT


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
