"""Workers on the nodes of a Ray cluster: which there should be, what they are asked, and how they are lost."""

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from wsabie.base.errors import InputError, WsabieError
from wsabie.distributed.averaging_rounds import Absence, Answer
from wsabie.distributed.averaging_steps import Parts
from wsabie.distributed.averaging_worker import Worker
from wsabie.distributed.cluster import why_lost
from wsabie.space.protocol import Trainable
from wsabie.training.settings import Settings
from wsabie.training.trainer import Dealt

log = logging.getLogger("wsabie")
_LOOK_EVERY = 1.0  # seconds between two looks at which nodes there are


@dataclass(frozen=True)
class Shares:
    """Which workers there should be.

    Attributes
    ----------
    most : int or None
        Workers at most.
    on_one : bool
        All share one node.
    """

    most: int | None
    on_one: bool

    def places(self, found: list[dict[str, Any]]) -> dict[str, tuple[str, float]]:
        """By the names of workers their nodes and the cores that they get.

        Examples
        --------
        >>> found = [{"NodeID": "a", "Alive": True, "Resources": {"CPU": 8.0}}, {"NodeID": "b", "Alive": False}]
        >>> Shares(2, on_one=True).places(found)
        {'a/0': ('a', 4.0), 'a/1': ('a', 4.0)}
        >>> Shares(None, on_one=False).places(found)
        {'a/0': ('a', 8.0)}
        """
        cores = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in found if node["Alive"]}
        if not self.on_one:
            return {f"{node}/0": (node, n) for node, n in cores.items() if n >= 1}
        share = self.most or 1
        return {f"{node}/{i}": (node, n // share) for node, n in cores.items() for i in range(share)}


@dataclass
class _Order:
    """What a worker is to do by one message, in this order."""

    news: Any = None
    part: tuple[int, int, int | None] | None = None
    gives: bool = False


@dataclass
class _Member:
    """A worker on a node, what it was asked and has not answered, and what it is about to be asked."""

    actor: Any
    asked: deque[Any] = field(default_factory=deque)
    order: _Order = field(default_factory=_Order)

    def send(self) -> None:
        """Ask what there is to ask."""
        order, self.order = self.order, _Order()
        if order != _Order():
            self.asked.append(self.actor.work.remote(order.news, order.part, order.gives))


class Crew:
    """The fleet as actors: one on each node that has the cores, and on those that come. Messages cost about as much as
    a round's sums, so that a worker gets new tables, a part and the request for its steps by one, where it can.
    """

    def __init__(self, settings: Settings, space: Trainable, blocks: Dealt, shares: Shares) -> None:
        import ray

        self._ray, self._settings, self._shares = ray, settings, shares
        self._space, self._blocks = space, blocks
        self._members: dict[str, _Member] = {}
        self._starting: dict[Any, tuple[str, Any]] = {}
        self._deaths: dict[str, int] = {}
        self._why = ""  # the last one was lost
        self._look = 0.0
        self._place()  # they start while the coordinator gets ready

    def newcomers(self) -> Iterable[str]:
        """Workers that have become ready; places without one are given one."""
        if time.monotonic() >= self._look:
            self._look = time.monotonic() + _LOOK_EVERY
            self._place()
        ready, _ = (
            self._ray.wait(list(self._starting), num_returns=len(self._starting), timeout=0)
            if self._starting
            else ([], [])
        )
        for ref in ready:
            name, actor = self._starting.pop(ref)
            self._members[name] = _Member(actor)
            if self._value(name, ref, begins=True) is _LOST:
                self.dismiss(name)
            else:
                yield name

    def _place(self) -> None:
        taken = {*self._members, *(name for name, _ in self._starting.values())}
        places = self._shares.places(self._ray.nodes())
        most = self._shares.most or len(places)
        free = [name for name in places if name not in taken and self._deaths.get(name, 0) < _DEATHS]
        free = free[: max(0, most - len(taken))]
        if not free:
            return
        # Put anew: a node that comes would look for what a lost one had there, and try again only after ten seconds.
        sent = self._ray.put(self._space), self._ray.put(self._blocks)
        for name in free:
            actor = self._started(*places[name], *sent)
            self._starting[actor.begin.remote()] = name, actor

    def _started(self, node: str, cores: float, *sent: Any) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node, soft=False)
        settings = replace(self._settings, threads=int(cores))
        made = self._ray.remote(Worker).options(num_cpus=cores, max_restarts=0, scheduling_strategy=there)
        return made.remote(settings, *sent)

    def train(self, worker: str, epoch: int, part: int, coming: int | None) -> None:
        """See `Fleet`."""
        member = self._members[worker]
        if member.order.part is not None:
            member.send()
        member.order.part = epoch, part, coming

    def give(self, worker: str) -> None:
        """See `Fleet`."""
        self._members[worker].order.gives = True

    def take(self, workers: Iterable[str], news: Parts) -> None:
        """See `Fleet`; what is sent to several travels to a node once."""
        members = [self._members[worker] for worker in workers]
        sent = self._ray.put(news) if members else None
        for member in members:
            member.send()
            member.order.news = sent

    def answers(self, seconds: float) -> Iterator[Answer]:
        """See `Fleet`: of every worker the first thing that it was asked, so that answers come in order."""
        for member in self._members.values():
            member.send()
        heads = {member.asked[0]: name for name, member in self._members.items() if member.asked}
        waited = [*heads, *self._starting]
        if not waited:
            time.sleep(seconds)
            return
        self._ray.wait(waited, num_returns=1, timeout=seconds)
        for ref in self._ready(list(heads)):
            name = heads[ref]
            self._members[name].asked.popleft()
            yield from self._answered(name, self._value(name, ref))

    def _answered(self, name: str, value: Any) -> Iterator[Answer]:
        if value is _LOST:
            self.dismiss(name)
            yield Answer(name, "lost")
            return
        self._deaths.pop(name, None)
        report, moved = value
        if report is not None:
            yield Answer(name, "trained", report)
        if moved is not None:
            yield Answer(name, "gave", moved)

    def _ready(self, refs: list[Any]) -> list[Any]:
        ready: list[Any] = self._ray.wait(refs, num_returns=len(refs), timeout=0)[0] if refs else []
        return ready

    def _value(self, name: str, ref: Any, *, begins: bool = False) -> Any:
        """What was answered, or _LOST.

        Raises
        ------
        WsabieError
            What is wrong with the input: while others train only if it was met in training.
        RayTaskError
            What else went wrong at the node, while there is no other.
        """
        from ray.exceptions import RayError, RayTaskError

        try:
            return self._ray.get(ref)
        except RayTaskError as error:
            of_input = isinstance(error.cause, WsabieError)
            told = str(error.cause) if of_input else why_lost(error)
            if (begins or not of_input) and self._does_without(name, told):
                return _LOST
            if of_input:
                raise InputError(f"on node {_node(name)}: {told}") from error
            raise
        except RayError as error:
            self._deaths[name], self._why = self._deaths.get(name, 0) + 1, why_lost(error)
            if self._deaths[name] == _DEATHS:
                log.warning("node %s is left alone, its workers died %d times: %s", _node(name), _DEATHS, self._why)
            return _LOST

    def _does_without(self, name: str, why: str) -> bool:
        """Leave a node alone on which something goes wrong, if there are others that train or begin to."""
        self.dismiss(name)
        self._deaths[name], self._why = _DEATHS, why
        self._place()
        if not self._members and not self._starting:
            return False
        log.warning("node %s is left alone: %s", _node(name), why)
        return True

    def absence(self) -> Absence:
        """See `Fleet`: it lasts where workers died on every node; who went with its node may come again with one."""
        known = {*self._shares.places(self._ray.nodes()), *self._deaths}
        return Absence(self._why, bool(known) and all(self._deaths.get(name, 0) >= _DEATHS for name in known))

    def dismiss(self, worker: str) -> None:
        """See `Fleet`."""
        member = self._members.pop(worker, None)
        if member is not None:
            with suppress(Exception):
                self._ray.kill(member.actor)

    def end(self) -> None:
        """Let all workers go."""
        for name in list(self._members):
            self.dismiss(name)
        for _, actor in self._starting.values():
            with suppress(Exception):
                self._ray.kill(actor)


def _node(worker: str) -> str:
    return worker.partition("/")[0][:8]


_LOST: Any = object()
_DEATHS = 3
"""Times that a worker may die on a node without having trained a part; no more is tried there."""
