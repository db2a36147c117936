"""Functions with an implementation per type: the right one runs, compiled or not, and an unknown type is refused."""

from typing import Any, NamedTuple

import numba
import pytest
from numba.core.errors import TypingError

from wsabie.kernels.dispatch import dispatch


class Square(NamedTuple):
    side: float


class Circle(NamedTuple):
    radius: float


class Blob(NamedTuple):
    size: float


@dispatch("shape")
def measure_area(factor: Any, shape: Any) -> Any:
    """Return factor times the area."""


@measure_area.register(Square)
def _measure_square(factor, shape):
    return factor * shape.side * shape.side


@measure_area.register(Circle)
def _measure_circle(factor, shape):
    return factor * 3 * shape.radius * shape.radius


@dispatch("shape", has_default=True)
def count_corners(shape: Any) -> Any:
    """Return the number of corners."""
    return 0


@count_corners.register(Square)
def _count_square_corners(shape):
    return 4


@numba.njit
def compiled_area(factor, shape):
    return measure_area(factor, shape)


@numba.njit
def compiled_corners(shape):
    return count_corners(shape)


@pytest.mark.parametrize("area", [measure_area, compiled_area])
def test_the_type_of_the_argument_decides(area):
    assert (area(2.0, Square(3.0)), area(2.0, Circle(2.0))) == (18.0, 24.0)


@pytest.mark.parametrize("corners", [count_corners, compiled_corners])
def test_the_body_serves_types_without_an_implementation(corners):
    assert (corners(Square(1.0)), corners(Circle(1.0)), corners(Blob(1.0))) == (4, 0, 0)


@pytest.mark.parametrize("area", [measure_area, compiled_area])
def test_a_type_without_an_implementation_is_refused(area):
    with pytest.raises(TypingError, match="measure_area has no implementation for Blob"):
        area(2.0, Blob(1.0))
