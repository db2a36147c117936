"""Coordinator of averaging rounds: it assigns parts to workers and joins their tables.

It does not know how messages travel. An epoch consists of parts. Workers take a part whenever they finish one, so that
a slow worker takes fewer. After as many parts as the interval demands, every worker sends its steps and waits for the
joined tables. (Workers that trained on meanwhile were tried: steps in one direction then come in different rounds,
where nothing shows that they do, and the tables move too far.) A part counts as trained once its steps are sent: the
other parts of a lost worker go back to the others. A late worker delays one round at most; its steps join a later one.

Ray Train leaves rounds, and how steps are joined, to the training function (`docs/decisions/ray-tasks.md`).
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from wsabie.core.arrays import Float32
from wsabie.core.errors import WsabieError
from wsabie.distributed.table_deltas import DeltaSum, TableDeltas, Tables, compute_deltas, copy_tables, count_bytes
from wsabie.training.loops import EpochTotals

QUEUE_LENGTH = 2
"""Parts queued at a worker, including the one in training."""
TARGET_DRIFT = 0.35
"""Allowed distance of two workers from their mean, relative to its length; sqrt(n - 1) times less for n workers."""
MIN_ROUNDS = 4
"""Minimum number of rounds of an epoch with enough parts."""
STRAGGLER_WAIT = 0.5
"""Seconds that a round waits for further steps, after waiting as long as the first ones took."""
WORKER_TIMEOUT = 120.0
"""Seconds without an answer after which a worker counts as lost, unless parts take as long.

The limit doubles after each such loss until steps come. Before the first part is trained its duration is unknown, and a
fixed limit could dismiss one worker after the other.
"""


OnReport = Callable[[EpochTotals], None]


class NoWorkersError(WsabieError):
    """No worker is left to train."""


class WorkerMessage(NamedTuple):
    """Message of a worker: the `EpochTotals` of a part, or its steps, or None if it is lost."""

    worker: str
    kind: Literal["report", "deltas", "loss"]
    value: Any = None


class WorkerLoss(NamedTuple):
    """Reason of the last loss, as far as it is known, and whether none of the present nodes can train."""

    reason: str = ""
    is_permanent: bool = False


class Fleet(Protocol):
    """Workers by name. A worker handles its requests in order; only `poll_messages` waits."""

    def poll_new_workers(self) -> Iterable[str]:
        """Return workers that have become ready since the last call."""
        ...

    def train(self, worker: str, epoch: int, part: int, next_part: int | None) -> None: ...

    def request_deltas(self, worker: str) -> None: ...

    def send_tables(self, workers: Iterable[str], deltas: TableDeltas) -> None: ...

    def poll_messages(self, seconds: float) -> Iterable[WorkerMessage]:
        """Yield messages; wait at most `seconds` for the first."""
        ...

    def dismiss(self, worker: str) -> None:
        """Send no more requests to a worker."""
        ...

    def explain_absence(self) -> WorkerLoss:
        """Return why there are no workers."""
        ...


@dataclass
class RoundInterval:
    """Number of parts of a worker between two rounds, adapted to keep the drift near its target.

    Attributes
    ----------
    parts : float
    target_drift : float
        Target for two workers.

    Examples
    --------
    >>> interval = RoundInterval(target_drift=0.02)
    >>> [interval.compute_parts(drift, workers=2, max_parts=8) for drift in (0.001, 0.01, 0.08, 0.02)]
    [1.5, 2.25, 1.125, 1.125]
    """

    parts: float = 1.0
    target_drift: float = TARGET_DRIFT

    def reset(self) -> None:
        """Reset the interval for a new worker."""
        self.parts = 1.0

    def compute_parts(self, drift: float, workers: int, max_parts: float, rate_share: float = 1.0) -> float:
        """Compute the next interval; it grows by half at most, and shrinks to half at most."""
        target = self.target_drift * rate_share / max(workers - 1, 1) ** 0.5
        factor = min(1.5, max(0.5, target / max(drift, 1e-9)))
        self.parts = max(1.0, min(self.parts * factor, max_parts))
        return self.parts


class RoundReport(NamedTuple):
    """Figures of a round.

    Attributes
    ----------
    drift : float
    parts : float
        Parts of a worker by the interval.
    workers : int
        Workers whose steps were joined.
    received, sent : int
        Bytes of steps, and of deltas to each worker.
    seconds, joining : float
        Duration since the last round, and the part of it for joining.
    n_joined, n_lost : int
        Total number of workers, and of lost ones.
    """

    epoch: int
    drift: float
    parts: float
    workers: int
    received: int
    sent: int
    seconds: float
    joining: float
    n_joined: int
    n_lost: int


@dataclass
class _WorkerState:
    """State of a worker."""

    last_answer: float  # time of it, or of the first request after a pause
    version: int  # of the tables that it has taken
    training: list[int] = field(default_factory=list)  # parts, in order
    trained: list[tuple[int, EpochTotals]] = field(default_factory=list)  # parts whose steps it has not given
    n_requested: int | None = None  # `trained` and `training` parts in the requested steps; None without a request
    is_finished: bool = False  # no more parts are assigned in this round
    is_late: bool = False  # it has not given the steps of the round before
    next_part: int | None = None  # that it reads meanwhile

    @property
    def is_idle(self) -> bool:
        return not self.training and self.n_requested is None

    def list_parts(self) -> list[int]:
        """List the parts that must be trained again if the worker is lost."""
        parts = [part for part, _ in self.trained] + self.training
        return parts if self.next_part is None else [*parts, self.next_part]


@dataclass
class AveragingRounds:
    """Epochs over workers that come and go.

    Parameters
    ----------
    fleet : Fleet
    tables : mapping of arrays
        Moved in place.
    apply_limits : callable
        Called after tables were joined, to apply norm limits.
    on_round : callable
        Called with every `RoundReport`.
    max_wait : float
        Seconds to wait for a worker if there is none.
    clock : callable
    """

    fleet: Fleet
    tables: Tables
    apply_limits: Callable[[], None] = lambda: None
    _: KW_ONLY
    interval: RoundInterval = field(default_factory=RoundInterval)
    on_round: Callable[[RoundReport], None] = lambda _: None
    max_wait: float = 300.0
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.workers: dict[str, _WorkerState] = {}
        self._shared_tables: dict[str, Float32] = {}  # tables that workers have
        self._delta_sum = DeltaSum(self.tables)
        self._version, self._n_joined, self._n_lost, self._longest_part = 0, 0, 0, 0.0
        self._empty_since: float | None = None
        self._timeout = WORKER_TIMEOUT

    def run_epoch(
        self, epoch: int, n_parts: int, on_report: OnReport = lambda _: None, rate_share: float = 1.0
    ) -> None:
        """Train every part once.

        Parameters
        ----------
        epoch, n_parts : int
        rate_share : float
            Learning rate relative to the first epoch; the allowed drift shrinks with it, so that the last steps stay.
        on_report : callable
            Called once with the report of each part, when its steps arrive.

        Raises
        ------
        NoWorkersError
            No worker came in time, or none can train on the present nodes.
        """
        self._epoch, self._n_parts, self._on_report, self._rate_share = epoch, n_parts, on_report, rate_share
        self._free_parts, self._n_remaining = deque(range(n_parts)), n_parts
        self._shared_tables = self._shared_tables or {name: table.copy() for name, table in self.tables.items()}
        self._begin_round()
        while self._n_remaining or self._delta_sum.n_workers:
            self._admit_workers()
            self._assign_parts()
            for message in self.fleet.poll_messages(0.2):
                self._handle_message(message)
            self._dismiss_silent()
            if self._is_round_over():
                if self._delta_sum.n_workers:
                    self._join_deltas()
                self._begin_round()

    # ---- workers

    def _admit_workers(self) -> None:
        for name in self.fleet.poll_new_workers():
            self.workers[name] = _WorkerState(self.clock(), self._version)
            self._n_joined += 1
            self.fleet.send_tables([name], copy_tables(self._shared_tables))
            self.interval.reset()
        if self.workers:
            self._empty_since = None
        else:
            self._wait_for_worker()

    def _wait_for_worker(self) -> None:
        self._empty_since = self.clock() if self._empty_since is None else self._empty_since
        reason, is_permanent = self.fleet.explain_absence()
        if is_permanent:
            problem, advice = "none of the nodes can train", "start another one"
        elif self.clock() - self._empty_since > self.max_wait:
            problem, advice = f"there has been no node to train on for {self.max_wait:.0f} s", "start one"
        else:
            return
        last = f" (the last worker was lost: {reason})" if reason else ""
        raise NoWorkersError(f"{problem}{last}; {advice}, and run the same again with `resume`")

    def _dismiss_silent(self) -> None:
        timeout = self._timeout
        limit = self.clock() - max(timeout, 20 * self._longest_part)
        for name, state in list(self.workers.items()):
            if not state.is_idle and state.last_answer < limit:
                self.fleet.dismiss(name)
                self._remove_worker(name)
                self._timeout = timeout * 2

    # ---- parts

    def _begin_round(self) -> None:
        self._received = self._n_assigned = 0
        self._started_at = self.clock()
        self._first_deltas_at: float | None = None
        for state in self.workers.values():
            state.is_late = state.is_finished = state.n_requested is not None

    @property
    def _parts_per_round(self) -> int:
        """Number of parts of a round, equally many for each worker so that none waits."""
        return max(1, round(self.interval.parts) * len(self.workers))

    def _assign_parts(self) -> None:
        """Assign parts to workers with few; once the parts of the round are out, request all steps."""
        max_queued = QUEUE_LENGTH if len(self._free_parts) >= QUEUE_LENGTH * len(self.workers) else 1
        for n_queued in range(max_queued):
            for name, state in self.workers.items():
                if len(state.training) <= n_queued:
                    self._assign_part(name, state)
        if self._n_assigned < self._parts_per_round and self._has_parts():
            return
        for name, state in self.workers.items():
            n_parts = len(state.trained) + len(state.training)
            if n_parts and not state.is_finished:
                state.n_requested = n_parts
                self.fleet.request_deltas(name)
            state.is_finished = True

    def _assign_part(self, name: str, state: _WorkerState) -> None:
        """Assign the next part to a worker, if this round has one."""
        if state.is_finished or self._n_assigned >= self._parts_per_round or not self._has_parts():
            return
        part = self._choose_part(state)
        has_spare_parts = len(self._free_parts) > QUEUE_LENGTH * len(self.workers)
        state.next_part = self._free_parts.popleft() if has_spare_parts else None
        if state.is_idle:
            state.last_answer = self.clock()
        state.training.append(part)
        self._n_assigned += 1
        self.fleet.train(name, self._epoch, part, state.next_part)

    def _has_parts(self) -> bool:
        return bool(self._free_parts) or any(state.next_part is not None for state in self.workers.values())

    def _choose_part(self, state: _WorkerState) -> int:
        """Choose the part that the worker reads already, a free one, or one that another worker reads."""
        if state.next_part is None and self._free_parts:
            return self._free_parts.popleft()
        owner = next(owner for owner in (state, *self.workers.values()) if owner.next_part is not None)
        part, owner.next_part = owner.next_part, None
        return part  # type: ignore[return-value]  # checked by `_has_parts`

    def _handle_message(self, message: WorkerMessage) -> None:
        state, now = self.workers.get(message.worker), self.clock()
        if state is None:
            return
        if message.kind == "loss":
            self._remove_worker(message.worker)
        elif message.kind == "report":
            self._longest_part = max(self._longest_part, now - state.last_answer)
            state.trained.append((state.training.pop(0), message.value))
        else:
            self._add_deltas(state, message.value)
            self._timeout = WORKER_TIMEOUT
            self._first_deltas_at = now if self._first_deltas_at is None else self._first_deltas_at
        state.last_answer = now

    def _remove_worker(self, name: str) -> None:
        """Forget a lost worker; others train its parts."""
        state = self.workers.pop(name)
        self._n_lost += 1
        self._free_parts.extendleft(reversed(state.list_parts()))

    def _add_deltas(self, state: _WorkerState, deltas: TableDeltas) -> None:
        self._delta_sum.add(deltas)
        self._received += count_bytes(deltas)
        for _, report in state.trained[: state.n_requested]:
            self._n_remaining -= 1
            self._on_report(report)
        del state.trained[: state.n_requested]
        state.n_requested = None

    # ---- the round

    def _is_round_over(self) -> bool:
        """Return whether all workers have given their steps, or the others are late or lost."""
        # a worker that was late before is not waited for once others have given: it may be lost, which shows
        # only after seconds
        missing = [state for state in self.workers.values() if not state.is_finished or state.n_requested is not None]
        if not missing:
            return True
        if self._first_deltas_at is None:
            return False
        late = self.clock() > self._first_deltas_at + (self._first_deltas_at - self._started_at) + STRAGGLER_WAIT
        return late or all(state.is_late for state in missing)

    def _join_deltas(self) -> None:
        started, joined = self.clock(), self._delta_sum.n_workers
        drift = self._delta_sum.join(self.tables)
        self.apply_limits()
        deltas = compute_deltas(self.tables, self._shared_tables, subtract_deltas=False)
        self._version += 1
        self._send_tables(deltas)
        now, parts = self.clock(), self.interval.parts
        if joined > 1 or len(self.workers) < 2:
            n = max(len(self.workers), 1)
            self.interval.compute_parts(drift, n, self._n_parts / (MIN_ROUNDS * n), self._rate_share)
        sizes, times = (self._received, count_bytes(deltas)), (now - self._started_at, now - started)
        self.on_round(RoundReport(self._epoch, drift, parts, joined, *sizes, *times, self._n_joined, self._n_lost))

    def _send_tables(self, deltas: TableDeltas) -> None:
        """Send steps to workers with the previous tables and whole tables to others, once they have given."""
        current, late = list[str](), list[str]()
        for name, state in self.workers.items():
            if state.n_requested is None:
                (current if state.version >= self._version - 1 else late).append(name)
                state.version = self._version
        self.fleet.send_tables(current, deltas)
        if late:
            self.fleet.send_tables(late, copy_tables(self._shared_tables))
