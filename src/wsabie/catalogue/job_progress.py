"""Progress of a job that everybody can read in the catalogue."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from wsabie.base.errors import WsabieError
from wsabie.base.progress import Stage
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.curves import Curve, Point
from wsabie.catalogue.jobs import change
from wsabie.catalogue.tables import jobs

_TELL_EVERY = 0.5  # seconds between two lines of progress


class JobProgress:
    """Writes what a job does into its row, now and then."""

    def __init__(self, collection: Collection, number: int) -> None:
        self._collection, self._number, self._last = collection, number, 0.0
        self._curve = Curve()

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        stage = _Stage(self, {"stage": name, "done": 0, "total": total, "unit": unit, "figures": {}})
        self.tell(stage.told, always=True)
        yield stage
        self.tell(stage.told, always=True)

    def watch(self, point: Point) -> None:
        """Figures of an epoch, which are told with what comes next."""
        self._curve.add(point)

    def tell(self, told: dict[str, Any], *, always: bool = False) -> None:
        if always or time.monotonic() - self._last > _TELL_EVERY:
            self._last = time.monotonic()
            told = told | {"curve": self._curve.points}
            with suppress(WsabieError):  # work goes on, though nobody can be told
                change(self._collection, jobs.c.id == self._number, progress=told)


class _Stage:
    def __init__(self, whole: JobProgress, told: dict[str, Any]) -> None:
        self._whole, self.told = whole, told

    def advance(self, n: int = 1, **figures: float) -> None:
        self.told["done"] += n
        self.told["figures"].update(figures)
        self._whole.tell(self.told)
