"""Short dense vectors of a width known at compile time.

Tables are padded with zeros to a multiple of 16 floats; `width` is a tuple of `dim_padded // 16` Nones, whose length is
part of its type, so that every loop below has a constant length and is unrolled into vector instructions.
"""

import math

import numpy as np

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import jit


@jit
def dot(a, b, width):
    """sum_k a_k b_k."""
    total = a[0] * b[0]
    for k in range(1, LANES * len(width)):
        total += a[k] * b[k]
    return total


@jit
def zero(a, width):
    """a = 0."""
    for k in range(LANES * len(width)):
        a[k] = 0.0


@jit
def multiply(a, factor, width):
    """a *= factor."""
    for k in range(LANES * len(width)):
        a[k] *= factor


@jit
def add(a, scale, b, width):
    """a += scale * b."""
    for k in range(LANES * len(width)):
        a[k] += scale * b[k]


@jit
def add4(a, s0, b0, s1, b1, s2, b2, s3, b3, width):
    """a += s0 * b0 + s1 * b1 + s2 * b2 + s3 * b3: a is loaded and stored once for four rows."""
    for k in range(LANES * len(width)):
        a[k] += s0 * b0[k] + s1 * b1[k] + s2 * b2[k] + s3 * b3[k]


@jit
def norm(a, width):
    """sqrt(sum_k a_k^2)."""
    return np.float32(math.sqrt(dot(a, a, width)))


@jit
def project(a, max_norm, width):
    """Scale a down to norm `max_norm` when it is longer (infinity leaves it free); returns the norm it then has."""
    length = norm(a, width)
    if length <= max_norm:
        return length
    shrink = max_norm / length
    for k in range(LANES * len(width)):
        a[k] *= shrink
    return max_norm


@jit
def add_square(a, scale, b, width):
    """a += scale * b; returns sum_k a_k^2, which is nearly free while the row is in registers."""
    norm2 = np.float32(0)
    for k in range(LANES * len(width)):
        a[k] += scale * b[k]
        norm2 += a[k] * a[k]
    return norm2


@jit
def shorten(a, norm2, max_norm, width):
    """Scale a, whose squared norm is given, down to norm `max_norm` when it is longer."""
    if norm2 > max_norm * max_norm:
        shrink = max_norm / np.float32(math.sqrt(norm2))
        for k in range(LANES * len(width)):
            a[k] *= shrink


@jit
def add_project(a, scale, b, max_norm, width):
    """a += scale * b, then `project`."""
    shorten(a, add_square(a, scale, b, width), max_norm, width)
