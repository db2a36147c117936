"""How long work tells about itself: a protocol that the faces implement and everything else only calls."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Stage(Protocol):
    """One running stage: `advance` by items done, with figures worth showing beside the bar."""

    def advance(self, n: int = 1, **figures: float) -> None: ...


class Progress(Protocol):
    """Opens a stage; `total` in `unit`s (None when unknown)."""

    def stage(self, name: str, total: int | None, unit: str) -> AbstractContextManager[Stage]: ...


class _Silent:
    def advance(self, n: int = 1, **figures: float) -> None:
        return None


class SilentProgress:
    """The default: says nothing.

    Examples
    --------
    >>> with SilentProgress().stage("reading", 3, "pictures") as stage:
    ...     stage.advance(3)
    """

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        yield _Silent()


SILENT = SilentProgress()
