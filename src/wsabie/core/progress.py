"""Progress protocol: the command line and the service implement it, everything else only calls it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Stage(Protocol):
    """One running stage: `advance` by items done, with figures worth showing beside the bar."""

    def advance(self, n: int = 1, **figures: float) -> None: ...


class Progress(Protocol):
    """Opens a stage; `total` in `unit`s (None when unknown)."""

    def stage(self, name: str, total: int | None, unit: str) -> AbstractContextManager[Stage]: ...


class SilentProgress:
    """Progress that reports nothing; the default.

    Examples
    --------
    >>> with SilentProgress().stage("reading", 3, "pictures") as stage:
    ...     stage.advance(3)
    """

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        yield self

    def advance(self, n: int = 1, **figures: float) -> None:
        return None


SILENT = SilentProgress()
