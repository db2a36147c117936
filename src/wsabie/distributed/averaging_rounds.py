"""Who trains what, and when the tables come together; it knows nothing of how messages travel.

An epoch is dealt into parts, which workers take as they get done: a slow one takes fewer. After so many parts as the
interval says, every worker gives its steps and waits for the joined tables. (To go on meanwhile was tried: steps that
go the same way then come in different rounds, where nothing tells that they do, and the tables run too far.) What is
counted as trained is what was given: the parts of a worker that is lost before that go back to the others. A worker
that is late holds up one round at most; its steps join a later one.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from wsabie.base.arrays import Float32
from wsabie.base.errors import WsabieError
from wsabie.distributed.averaging_steps import Parts, Tables, Together, n_bytes, steps, whole
from wsabie.distributed.averaging_worker import Report

AHEAD = 2
"""Parts that wait with a worker, the one in training among them."""
DRIFT = 0.35
"""How far two workers may be from their mean, relative to its length; n workers sqrt(n - 1) times less far."""
LEAST_ROUNDS = 4
"""Rounds of an epoch at least, where it has the parts."""
LATE = 0.5
"""Seconds that a round waits for further steps, beyond as long as the first ones took."""
SILENCE = 120.0
"""Seconds without an answer after which a worker counts as lost, unless parts take as long.

They double whenever one is lost so, until steps come: while nobody has trained a part, nobody knows how long one takes,
and workers that were let go in its midst would follow one another for ever.
"""


class NoWorkersError(WsabieError):
    """There is nobody left to train."""


class Answer(NamedTuple):
    """What a worker says: the `Report` of a part, or the steps that it gave; nothing when it is lost."""

    worker: str
    what: Literal["trained", "gave", "lost"]
    value: Any = None


class Absence(NamedTuple):
    """Why the last worker was lost, so far as that is known; whether there will be none where there are nodes now."""

    why: str = ""
    lasts: bool = False


class Fleet(Protocol):
    """The workers, by their names. What one is asked it does in order; answers are waited for by `answers` alone."""

    def newcomers(self) -> Iterable[str]:
        """Workers that have become ready since the last time."""
        ...

    def train(self, worker: str, epoch: int, part: int, coming: int | None) -> None: ...

    def give(self, worker: str) -> None: ...

    def take(self, workers: Iterable[str], news: Parts) -> None: ...

    def answers(self, seconds: float) -> Iterable[Answer]:
        """What was answered; waits so long for the first."""
        ...

    def dismiss(self, worker: str) -> None:
        """Ask it nothing any more."""
        ...

    def absence(self) -> Absence:
        """Asked while there is nobody."""
        ...


@dataclass
class Interval:
    """Parts of a worker between two rounds: as many as keep the drift near what is wanted.

    Attributes
    ----------
    parts : float
    wanted : float
        The drift of two workers.

    Examples
    --------
    >>> interval = Interval(wanted=0.02)
    >>> [interval.after(drift, workers=2, most=8) for drift in (0.001, 0.01, 0.08, 0.02)]
    [1.5, 2.25, 1.125, 1.125]
    """

    parts: float = 1.0
    wanted: float = DRIFT

    def begin(self) -> None:
        """Short again: a worker has come."""
        self.parts = 1.0

    def after(self, drift: float, workers: int, most: float, left: float = 1.0) -> float:
        """The next interval, where so much is left of the rate; it grows by half at most, and shrinks to half."""
        wanted = self.wanted * left / max(workers - 1, 1) ** 0.5
        factor = min(1.5, max(0.5, wanted / max(drift, 1e-9)))
        self.parts = max(1.0, min(self.parts * factor, most))
        return self.parts


class Round(NamedTuple):
    """What a round did.

    Attributes
    ----------
    drift : float
    parts : float
        Of a worker, by the interval.
    workers : int
        Whose steps were joined.
    received, sent : int
        Bytes of steps, and of tables to each worker.
    seconds, joining : float
        Since the last round, and of these for joining.
    came, lost : int
        Workers that there have been, and those of them that were lost.
    """

    epoch: int
    drift: float
    parts: float
    workers: int
    received: int
    sent: int
    seconds: float
    joining: float
    came: int
    lost: int


@dataclass
class _Hand:
    """What is known of a worker.

    Attributes
    ----------
    training : list of int
        Parts that it was asked to train, in order.
    trained : list of (int, Report)
        Parts whose steps it has not given.
    asked : int or None
        So many of these, and of those in training, are in the steps that it was asked for.
    done : bool
        It gets nothing more to do in this round.
    late : bool
        It has not given what the round before asked for.
    coming : int or None
        The part that it reads meanwhile.
    heard : float
        When it last answered, or got something to do.
    version : int
        Of the tables that it has taken.
    """

    heard: float
    version: int
    training: list[int] = field(default_factory=list)
    trained: list[tuple[int, Report]] = field(default_factory=list)
    asked: int | None = None
    done: bool = False
    late: bool = False
    coming: int | None = None

    @property
    def idle(self) -> bool:
        return not self.training and self.asked is None

    def parts(self) -> list[int]:
        """All that would have to be trained again without it."""
        mine = [part for part, _ in self.trained] + self.training
        return mine if self.coming is None else [*mine, self.coming]


class Rounds:
    """Epochs over workers that come and go.

    Parameters
    ----------
    fleet : Fleet
    tables : mapping of arrays
        Moved in place.
    settle : callable
        What is due after tables were joined: norm limits.
    told : callable
        Is told every `Round`.
    alone : float
        Seconds to wait for a worker when there is none.
    clock : callable
    """

    def __init__(
        self,
        fleet: Fleet,
        tables: Tables,
        settle: Callable[[], None] = lambda: None,
        *,
        interval: Interval | None = None,
        told: Callable[[Round], None] = lambda _: None,
        alone: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.fleet, self.tables, self.settle = fleet, tables, settle
        self.interval = interval or Interval()
        self.told, self.alone, self.clock = told, alone, clock
        self.hands: dict[str, _Hand] = {}
        self._known: dict[str, Float32] = {}  # the tables that workers have
        self._together = Together(tables)
        self._version, self._came, self._lost, self._longest = 0, 0, 0, 0.0
        self._nobody_since: float | None = None
        self._patience = SILENCE

    def epoch(
        self, epoch: int, n_parts: int, given: Callable[[Report], None] = lambda _: None, left: float = 1.0
    ) -> None:
        """Train every part once.

        Parameters
        ----------
        epoch, n_parts : int
        left : float
            What is left of the rate of the first epoch, and of the drift that is allowed: last steps are to last.
        given : callable
            Is told the report of a part when its steps are there: once for each.

        Raises
        ------
        NoWorkersError
            Nobody came in the time that a worker is waited for, or nobody can train on the nodes that there are.
        """
        self._epoch, self._n_parts, self._given, self._allowed = epoch, n_parts, given, left
        self._pool, self._left = deque(range(n_parts)), n_parts
        self._known = self._known or {name: table.copy() for name, table in self.tables.items()}
        self._begin_round()
        while self._left or self._together.n:
            self._welcome()
            self._hand_out()
            for answer in self.fleet.answers(0.2):
                self._heed(answer)
            self._dismiss_silent()
            if self._is_over():
                if self._together.n:
                    self._join()
                self._begin_round()

    # ---- who is there

    def _welcome(self) -> None:
        for name in self.fleet.newcomers():
            self.hands[name] = _Hand(self.clock(), self._version)
            self._came += 1
            self.fleet.take([name], whole(self._known))
            self.interval.begin()
        if self.hands:
            self._nobody_since = None
        else:
            self._wait_for_somebody()

    def _wait_for_somebody(self) -> None:
        self._nobody_since = self.clock() if self._nobody_since is None else self._nobody_since
        why, lasts = self.fleet.absence()
        if lasts:
            told = "none of the nodes can train", "start another one"
        elif self.clock() - self._nobody_since > self.alone:
            told = f"there has been no node to train on for {self.alone:.0f} s", "start one"
        else:
            return
        last = f" (the last worker was lost: {why})" if why else ""
        raise NoWorkersError(f"{told[0]}{last}; {told[1]}, and run the same command with --resume")

    def _dismiss_silent(self) -> None:
        limit = self.clock() - max(self._patience, 20 * self._longest)
        silent = [name for name, hand in self.hands.items() if not hand.idle and hand.heard < limit]
        for name in silent:
            self.fleet.dismiss(name)
            self._heed(Answer(name, "lost"))
        if silent:
            self._patience *= 2

    # ---- what they do

    def _begin_round(self) -> None:
        self._received = self._handed = 0
        self._began = self.clock()
        self._first_gave: float | None = None
        for hand in self.hands.values():
            hand.late = hand.done = hand.asked is not None

    @property
    def _goal(self) -> int:
        """Parts of a round: as many for each, or some would wait."""
        return max(1, round(self.interval.parts) * len(self.hands))

    def _hand_out(self) -> None:
        """Parts to who has few; when those of the round are out, everybody is asked for its steps."""
        deep = AHEAD if len(self._pool) >= AHEAD * len(self.hands) else 1
        for depth in range(deep):
            for name, hand in self.hands.items():
                if len(hand.training) <= depth:
                    self._hand(name, hand)
        if self._handed < self._goal and self._is_any_left():
            return
        for name, hand in self.hands.items():
            if hand.done:
                continue
            hand.done = True
            if hand.trained or hand.training:
                hand.asked = len(hand.trained) + len(hand.training)
                self.fleet.give(name)

    def _hand(self, name: str, hand: _Hand) -> None:
        """The next part to a worker, if there is one in this round."""
        if hand.done or self._handed >= self._goal or not self._is_any_left():
            return
        part = self._next(hand)
        hand.coming = self._pool.popleft() if len(self._pool) > AHEAD * len(self.hands) else None
        if hand.idle:
            hand.heard = self.clock()
        hand.training.append(part)
        self._handed += 1
        self.fleet.train(name, self._epoch, part, hand.coming)

    def _is_any_left(self) -> bool:
        return bool(self._pool) or any(hand.coming is not None for hand in self.hands.values())

    def _next(self, hand: _Hand) -> int:
        """The part that it reads already, or one that nobody has, or one that another worker reads."""
        if hand.coming is None and self._pool:
            return self._pool.popleft()
        whose = hand if hand.coming is not None else next(h for h in self.hands.values() if h.coming is not None)
        part, whose.coming = whose.coming, None
        return part  # type: ignore[return-value]  # looked for

    def _heed(self, answer: Answer) -> None:
        hand = self.hands.get(answer.worker)
        if hand is None:
            return
        now = self.clock()
        if answer.what == "lost":
            del self.hands[answer.worker]
            self._lost += 1
            self._pool.extendleft(reversed(hand.parts()))
            return
        if answer.what == "trained":
            self._longest = max(self._longest, now - hand.heard)
            hand.trained.append((hand.training.pop(0), answer.value))
        else:
            self._add(hand, answer.value)
            self._patience = SILENCE
            self._first_gave = now if self._first_gave is None else self._first_gave
        hand.heard = now

    def _add(self, hand: _Hand, moved: Parts) -> None:
        self._together.add(moved)
        self._received += n_bytes(moved)
        for _, report in hand.trained[: hand.asked]:
            self._left -= 1
            self._given(report)
        del hand.trained[: hand.asked]
        hand.asked = None

    # ---- the round

    def _is_over(self) -> bool:
        """Whether all have given their steps, or those who have not are late; or whoever was asked is lost.

        Who was late before is not waited for, where others have given: it may be lost, which is noticed after seconds.
        """
        missing = [hand for hand in self.hands.values() if not hand.done or hand.asked is not None]
        if not missing:
            return True
        if self._first_gave is None:
            return False
        late = self.clock() > self._first_gave + (self._first_gave - self._began) + LATE
        return late or all(hand.late for hand in missing)

    def _join(self) -> None:
        started, joined = self.clock(), self._together.n
        drift = self._together.join(self.tables)
        self.settle()
        news = steps(self.tables, self._known, back=False)
        self._version += 1
        self._send(news)
        now, parts = self.clock(), self.interval.parts
        if joined > 1 or len(self.hands) < 2:
            n = max(len(self.hands), 1)
            self.interval.after(drift, n, self._n_parts / (LEAST_ROUNDS * n), self._allowed)
        bytes_sent, times = n_bytes(news), (now - self._began, now - started)
        counts = (*times, self._came, self._lost)
        self.told(Round(self._epoch, drift, parts, joined, self._received, bytes_sent, *counts))

    def _send(self, news: Parts) -> None:
        """Steps to those who have the tables of before, everything to others; not before they gave."""
        free = {name: hand for name, hand in self.hands.items() if hand.asked is None}
        behind = [name for name, hand in free.items() if hand.version < self._version - 1]
        self.fleet.take([name for name in free if name not in behind], news)
        if behind:
            self.fleet.take(behind, whole(self._known))
        for hand in free.values():
            hand.version = self._version
