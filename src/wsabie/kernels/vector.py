"""Short dense vectors of a width known at compile time, in memory.

Tables are padded with zeros to a multiple of 16 floats; `width` is a tuple of `dim_padded // 16` Nones, whose length is
part of its type, so that every vector is a known number of registers (`wsabie.kernels.registers`).
"""

import math

import numpy as np

from wsabie.kernels._jit import jit
from wsabie.kernels.registers import inner, load, nothing, plus, store, times


@jit
def dot(a, b, width):
    """sum_k a_k b_k."""
    return inner(load(a, width), load(b, width))


@jit
def zero(a, width):
    """a = 0."""
    store(a, nothing(width))


@jit
def multiply(a, factor, width):
    """a *= factor."""
    store(a, times(load(a, width), factor))


@jit
def add(a, scale, b, width):
    """a += scale * b."""
    store(a, plus(load(a, width), scale, load(b, width)))


@jit
def shortened(point, max_norm):
    """The point at norm `max_norm` where it is longer (infinity leaves it free)."""
    square = inner(point, point)
    if square > max_norm * max_norm:
        return times(point, max_norm / np.float32(math.sqrt(square)))
    return point


@jit
def project(a, max_norm, width):
    """Scale a down to norm `max_norm` where it is longer."""
    store(a, shortened(load(a, width), max_norm))


@jit
def moved(point, keep, scale, direction):
    """keep * point + scale * direction."""
    if keep != 1:
        point = times(point, keep)
    return plus(point, scale, direction)


@jit
def move(a, keep, scale, direction, max_norm, width):
    """a = keep * a + scale * direction, a point, then `project`."""
    store(a, shortened(moved(load(a, width), keep, scale, direction), max_norm))
