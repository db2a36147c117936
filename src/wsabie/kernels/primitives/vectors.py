"""Short dense vectors of a width known at compile time, in memory.

Tables are padded with zeros to a multiple of 16 floats; `width` is a tuple of `dim_padded // 16` Nones, whose length is
part of its type, so that every vector is a known number of registers (`wsabie.kernels.simd.vector_registers`).
"""

import math
from typing import TypeAlias

import numpy as np

from wsabie.kernels.compiler import jit
from wsabie.kernels.simd.vector_registers import add_scaled, dot_points, load_point, make_zero, scale_point, store_point

Width: TypeAlias = tuple[None, ...]
"""Registers of a point: so many Nones."""


@jit
def dot(a, b, width):
    """Return sum_k a_k b_k."""
    return dot_points(load_point(a, width), load_point(b, width))


@jit
def set_to_zero(a, width):
    """Set a to 0."""
    store_point(a, make_zero(width))


@jit
def multiply(a, factor, width):
    """Multiply a by a factor."""
    store_point(a, scale_point(load_point(a, width), factor))


@jit
def add(a, scale, b, width):
    """Add scale * b to a."""
    store_point(a, add_scaled(load_point(a, width), scale, load_point(b, width)))


@jit
def clip_point_norm(point, max_norm):
    """Return the point, scaled to norm `max_norm` where it is longer (infinity leaves it free)."""
    square = dot_points(point, point)
    if square > max_norm * max_norm:
        return scale_point(point, max_norm / np.float32(math.sqrt(square)))
    return point


@jit
def clip_vector_norm(a, max_norm, width):
    """Scale a down to norm `max_norm` where it is longer."""
    store_point(a, clip_point_norm(load_point(a, width), max_norm))


@jit
def step_point(point, decay, scale, direction):
    """Return decay * point + scale * direction."""
    if decay != 1:
        point = scale_point(point, decay)
    return add_scaled(point, scale, direction)


@jit
def step_vector(a, decay, scale, direction, max_norm, width):
    """Set a to decay * a + scale * direction, a point, and clip its norm."""
    store_point(a, clip_point_norm(step_point(load_point(a, width), decay, scale, direction), max_norm))
