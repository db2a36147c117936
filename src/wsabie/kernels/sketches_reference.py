"""Slow, plain NumPy twin of `sketches`, in float64."""

from typing import Any

import numpy as np


def sketch(point: Any) -> tuple[list[int], float]:
    """The bytes of a point, and their scale.

    Examples
    --------
    >>> sketch([1.27, -0.5, 0.004, 0])
    ([127, -50, 0, 0], 0.01)
    >>> sketch([0, 0])
    ([0, 0], 1e-30)
    """
    scale = max(float(np.abs(point).max()) / 127, 1e-30)
    return [round(float(number) / scale) for number in point], scale


def most(q: Any, point: Any) -> float:
    """What the inner product of a query and a point is at most, by the sketch of the point.

    Examples
    --------
    >>> round(most([3, 4], [1.27, 0.01]), 4)  # 3.85, half a scale times sqrt(2) * 5, and a five-hundredth of that
    3.8854
    """
    codes, scale = sketch(point)
    doubt = 0.501 * np.sqrt(len(q)) * float(np.linalg.norm(q))
    return float(np.dot(q, codes) + doubt) * scale
