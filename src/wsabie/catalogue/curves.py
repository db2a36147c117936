"""How a training went, epoch by epoch: a few hundred points however long it was."""

from collections.abc import Callable

MOST = 200
"""Points that are kept."""

Point = dict[str, float]
Watch = Callable[[Point], None]
"""Told the figures of every epoch: "epoch" (from 1), "loss", and "MAP" on the held-out items."""


class Curve:
    """Figures of epochs as they come; of very many every second, every fourth ... is kept, and always the last.

    Examples
    --------
    >>> curve = Curve()
    >>> for epoch in range(1, 1001):
    ...     curve.add({"epoch": epoch, "MAP": epoch / 1000})
    >>> len(curve.points) <= MOST, curve.points[0]["epoch"], curve.points[-1]["epoch"]
    (True, 1, 1000)
    """

    def __init__(self) -> None:
        self._kept: list[Point] = []
        self._last: Point | None = None
        self._every, self._n = 1, 0

    def add(self, point: Point) -> None:
        """One more epoch."""
        self._last = point
        if self._n % self._every == 0:
            self._kept.append(point)
        self._n += 1
        if len(self._kept) == MOST:
            self._kept = self._kept[::2]
            self._every *= 2

    @property
    def points(self) -> list[Point]:
        """What is kept, in the order of the epochs."""
        last = [] if self._last is None or self._kept[-1] is self._last else [self._last]
        return self._kept + last
