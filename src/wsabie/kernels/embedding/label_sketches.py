"""Labels with a byte sketch of each point, which rules out most draws as violators.

In search of a violator nearly every label that is drawn scores too little, and a draw costs what reading its point
does: 448 bytes at 100 dimensions, from memory where a table is large. A sketch takes a byte a coordinate. With scale
s = max |w_k| / 127 and bytes c next to w / s no coordinate is off by more than s / 2, so

    q w <= s (q c + |q|_1 / 2)

and a label whose upper end does not exceed the threshold is not a violator. The others are scored as usual: the result
is the same as without sketches, to the bit. A label that moves gets a new sketch. (With Hogwild, threads that move the
same label without a lock may leave the sketch of an older point until the label moves again. Meanwhile a violator may
be missed.)
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import LANES, Float32, Int8
from wsabie.kernels.compiler import jit, jit_entry
from wsabie.kernels.simd.vector_registers import (
    dot_points,
    find_max_magnitude,
    load_bytes,
    load_point,
    prefetch_bytes,
    scale_point,
    store_bytes,
)

_LEVELS = np.float32(127)
_SMALLEST = np.float32(1e-30)  # of a scale: its inverse is finite
_HALF = np.float32(0.502)  # by how much the sums of q c and of the score are off in float32, together, is in the .002


class SketchedLabels(NamedTuple):
    """Points under the inner product, with their sketches."""

    table: Float32  # (n_labels, padded dim)
    bias: Float32  # (n_labels,)
    codes: Int8  # (n_labels, padded dim)
    scales: Float32  # (n_labels,)


@jit
def sketch_label(labels, y, width):
    """Renew the sketch of a label."""
    point = load_point(labels.table[y], width)
    scale = max(find_max_magnitude(point) / _LEVELS, _SMALLEST)
    store_bytes(labels.codes[y], scale_point(point, np.float32(1) / scale))
    labels.scales[y] = scale


def bound_sketch_error(labels, q, width):
    """Return the error bound of a query's sketched scores, as a multiple of a label's scale."""
    total = np.float32(0)
    for k in range(LANES * len(width)):
        total += abs(q[k])
    return _HALF * total


def is_bounded_by_sketch(labels, q, y, error_bound, bound, width):
    """Return True if the sketch of label y bounds its score by `bound`."""
    most = dot_points(load_point(q, width), load_bytes(labels.codes[y], width)) + error_bound
    return most * labels.scales[y] + labels.bias[y] <= bound


def prefetch_sketch(labels, y, width):
    """Prefetch a sketch into the cache."""
    prefetch_bytes(labels.codes[y], width)


@jit_entry
def sketch_labels(labels, lo, hi, width):
    """Sketch the labels lo..hi-1.

    Parameters
    ----------
    labels : SketchedLabels
        Codes and scales are filled in place.
    lo, hi : int
    width : tuple of None
        As long as there are registers in a point.
    """
    for y in range(lo, hi):
        sketch_label(labels, y, width)
