"""Words of all attacks: a case that is tried, and its outcome."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.faults.lab import Lab

MEMORY_BAR = 2_000_000_000
"""Bytes that nothing that reads small or damaged input may pass."""


@dataclass(frozen=True)
class Fault:
    """One thing that did not hold: `kind` is lost, traceback, unusable or memory."""

    kind: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """Result of a case: its faults, the peak memory in bytes, and how many attempts it made."""

    faults: tuple[Fault, ...] = ()
    memory: int = 0
    attempts: int = 1


@dataclass(frozen=True)
class Case:
    """One try of an attack."""

    name: str
    run: "Callable[[Lab], Outcome]"


class Attack(Protocol):
    """A module of cases: the same by the same seed, all of them or, with `short`, a few quick ones."""

    NAME: str
    __doc__: str

    def make_cases(self, seed: int, *, short: bool) -> Sequence[Case]:
        """Return the cases."""


class SkippedError(Exception):
    """Raised by a case that cannot be tried on this machine; the message says why."""
