"""Slow, plain NumPy twin of `sketches`, in float64."""

from typing import Any

import numpy as np


def sketch_point(point: Any) -> tuple[list[int], float]:
    """The bytes of a point, and their scale.

    Examples
    --------
    >>> sketch_point([1.27, -0.5, 0.004, 0])
    ([127, -50, 0, 0], 0.01)
    >>> sketch_point([0, 0])
    ([0, 0], 1e-30)
    """
    scale = max(float(np.abs(point).max()) / 127, 1e-30)
    return [round(float(number) / scale) for number in point], scale


def bound_product(q: Any, point: Any) -> float:
    """Return an upper bound of the inner product of a query and a point, by the sketch of the point.

    Examples
    --------
    >>> round(bound_product([3, -4], [1.27, 0.01]), 5)  # 3.77, and .502 times a scale of .01 times 7
    3.80514
    """
    codes, scale = sketch_point(point)
    return float(np.dot(q, codes) + 0.502 * np.abs(q).sum()) * scale
