"""Labels with a sketch in bytes beside each point, which tells most draws apart from a violator.

In search of a violator nearly every label that is drawn scores too little, and a draw costs what reading its point
does: 448 bytes at 100 dimensions, from memory where a table is large. A sketch takes a byte a coordinate. With scale
s = max |w_k| / 127 and bytes c next to w / s no coordinate is off by more than s / 2, so

    q w <= s (q c + |q|_1 / 2)

and a label whose upper end does not exceed the threshold is no violator. The others are looked at as ever: the same
labels are found as without sketches, to the bit. A label that moves is sketched anew. (Of threads that move the same
one without a lock, in Hogwild, one may leave the sketch of an older point until the label moves again: meanwhile a
violator may be overlooked.)
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import entry, jit
from wsabie.kernels.registers import ask_for_bytes, inner, largest, load, load_bytes, store_bytes, times

_LEVELS = np.float32(127)
_SMALLEST = np.float32(1e-30)  # of a scale: its inverse is finite
_HALF = np.float32(0.502)  # by how much the sums of q c and of the score are off in float32, together, is in the .002


class Sketched(NamedTuple):
    """Points under the inner product, and their sketches."""

    points: Any  # similarity.Dot
    codes: Any  # (n_labels, padded dim) int8
    scales: Any  # (n_labels,) float32


@jit
def sketch(labels, y, width):
    """Sketch a label as it now stands."""
    point = load(labels.points.table[y], width)
    scale = max(largest(point) / _LEVELS, _SMALLEST)
    store_bytes(labels.codes[y], times(point, np.float32(1) / scale))
    labels.scales[y] = scale


def doubt_of_sketches(labels, q, width):
    """What sketches leave open about the scores of a query, as a multiple of a label's scale."""
    total = np.float32(0)
    for k in range(LANES * len(width)):
        total += abs(q[k])
    return _HALF * total


def short_by_sketch(labels, q, y, doubt, bound, width):
    """Whether the sketch of label y says that its score is no higher than `bound`."""
    most = inner(load(q, width), load_bytes(labels.codes[y], width)) + doubt
    return most * labels.scales[y] + labels.points.bias[y] <= bound


def ask_for_sketch(labels, y, width):
    """Have a sketch on its way into the cache."""
    ask_for_bytes(labels.codes[y], width)


@entry
def sketch_labels(labels, lo, hi, width):
    """Sketch the labels lo..hi-1.

    Parameters
    ----------
    labels : Sketched
        Codes and scales are filled in place.
    lo, hi : int
    width : tuple of None
        As long as there are registers in a point.
    """
    for y in range(lo, hi):
        sketch(labels, y, width)
