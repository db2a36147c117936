"""Learning curve of a training: at most a few hundred points, however long it runs."""

from collections.abc import Callable

MOST = 200
"""Maximum number of stored points."""

Point = dict[str, float]
EpochCallback = Callable[[Point], None]
"""Receiver of the figures of every epoch: "epoch" (from 1), "loss", and "MAP" on the held-out items."""


class LearningCurve:
    """Figures of epochs; long curves are thinned to every second, fourth ... epoch and the last.

    Examples
    --------
    >>> curve = LearningCurve()
    >>> for epoch in range(1, 1001):
    ...     curve.add({"epoch": epoch, "MAP": epoch / 1000})
    >>> len(curve.points) <= MOST, curve.points[0]["epoch"], curve.points[-1]["epoch"]
    (True, 1, 1000)
    """

    def __init__(self) -> None:
        self._stored: list[Point] = []
        self._last: Point | None = None
        self._stride, self._n = 1, 0

    def add(self, point: Point) -> None:
        """Add an epoch."""
        self._last = point
        if self._n % self._stride == 0:
            self._stored.append(point)
        self._n += 1
        if len(self._stored) == MOST:
            self._stored = self._stored[::2]
            self._stride *= 2

    @property
    def points(self) -> list[Point]:
        """Stored points in the order of the epochs."""
        last = [] if self._last is None or self._stored[-1] is self._last else [self._last]
        return self._stored + last
