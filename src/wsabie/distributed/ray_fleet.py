"""Fleet of workers on the nodes of a Ray cluster: their placement, requests and losses."""

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from wsabie.core.errors import InputError, WsabieError
from wsabie.distributed.averaging_rounds import WorkerLoss, WorkerMessage
from wsabie.distributed.averaging_worker import AveragingWorker
from wsabie.distributed.ray_cluster import explain_worker_loss
from wsabie.distributed.table_deltas import TableDeltas
from wsabie.embedding.protocols import TrainableTables
from wsabie.training.settings import TrainingSettings
from wsabie.training.trainer import NumberedBlocks

log = logging.getLogger("wsabie")
_LOOK_SECONDS = 1.0  # seconds between two listings of the nodes


@dataclass(frozen=True)
class WorkerPlan:
    """Number and placement of workers.

    Attributes
    ----------
    most : int or None
        Workers at most.
    on_single_node : bool
        All share one node.
    """

    most: int | None
    on_single_node: bool

    def places(self, nodes: list[dict[str, Any]]) -> dict[str, tuple[str, float]]:
        """Return the node and the cores of each worker, by the worker's name.

        Examples
        --------
        >>> nodes = [{"NodeID": "a", "Alive": True, "Resources": {"CPU": 8.0}}, {"NodeID": "b", "Alive": False}]
        >>> WorkerPlan(2, on_single_node=True).places(nodes)
        {'a/0': ('a', 4.0), 'a/1': ('a', 4.0)}
        >>> WorkerPlan(None, on_single_node=False).places(nodes)
        {'a/0': ('a', 8.0)}
        """
        cores = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in nodes if node["Alive"]}
        if not self.on_single_node:
            return {f"{node}/0": (node, n) for node, n in cores.items() if n >= 1}
        share = self.most or 1
        return {f"{node}/{i}": (node, n // share) for node, n in cores.items() for i in range(share)}


@dataclass
class _Order:
    """Request to a worker: take the news, train the part and give the steps, in this order."""

    news: Any = None
    part: tuple[int, int, int | None] | None = None
    gives: bool = False


@dataclass
class _Member:
    """A worker on a node, its unanswered requests, and the next request."""

    actor: Any
    pending: deque[Any] = field(default_factory=deque)
    order: _Order = field(default_factory=_Order)

    def send(self) -> None:
        """Send the next request unless it is empty."""
        order, self.order = self.order, _Order()
        if order != _Order():
            self.pending.append(self.actor.work.remote(order.news, order.part, order.gives))


class RayFleet:
    """Fleet of Ray actors: one on each node with enough cores, including nodes that join later.

    A message costs about as much as the sums of a round. One message therefore brings a worker new tables, a part and
    the request for its steps, where possible.
    """

    def __init__(
        self, settings: TrainingSettings, space: TrainableTables, blocks: NumberedBlocks, shares: WorkerPlan
    ) -> None:
        import ray

        self._ray, self._settings, self._plan = ray, settings, shares
        self._space, self._blocks = space, blocks
        self._members: dict[str, _Member] = {}
        self._starting: dict[Any, tuple[str, Any]] = {}
        self._deaths: dict[str, int] = {}
        self._last_loss = ""  # reason of the last loss
        self._next_look = 0.0
        self._start_workers()  # workers start while the coordinator prepares

    def newcomers(self) -> Iterable[str]:
        """Yield workers that have become ready, and start workers at free places."""
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_SECONDS
            self._start_workers()
        started, _ = (
            self._ray.wait(list(self._starting), num_returns=len(self._starting), timeout=0)
            if self._starting
            else ([], [])
        )
        for ref in started:
            name, actor = self._starting.pop(ref)
            self._members[name] = _Member(actor)
            if self._fetch_answer(name, ref, begins=True) is _LOST:
                self.dismiss(name)
            else:
                yield name

    def _start_workers(self) -> None:
        used_names = {*self._members, *(name for name, _ in self._starting.values())}
        places = self._plan.places(self._ray.nodes())
        limit = self._plan.most or len(places)
        free_names = [name for name in places if name not in used_names and self._deaths.get(name, 0) < _MAX_DEATHS]
        free_names = free_names[: max(0, limit - len(used_names))]
        if not free_names:
            return
        # Put again: a new node would look for the copy of a lost one, and retry only after ten seconds.
        references = self._ray.put(self._space), self._ray.put(self._blocks)
        for name in free_names:
            actor = self._start_worker(*places[name], *references)
            self._starting[actor.begin.remote()] = name, actor

    def _start_worker(self, node: str, cores: float, *sent: Any) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        placement = NodeAffinitySchedulingStrategy(node, soft=False)
        settings = replace(self._settings, threads=int(cores))
        actor_class = self._ray.remote(AveragingWorker).options(
            num_cpus=cores, max_restarts=0, scheduling_strategy=placement
        )
        return actor_class.remote(settings, *sent)

    def train(self, worker: str, epoch: int, part: int, coming: int | None) -> None:
        """See `Fleet`."""
        member = self._members[worker]
        if member.order.part is not None:
            member.send()
        member.order.part = epoch, part, coming

    def give(self, worker: str) -> None:
        """See `Fleet`."""
        self._members[worker].order.gives = True

    def take(self, workers: Iterable[str], news: TableDeltas) -> None:
        """See `Fleet`; news for several workers travel to a node once."""
        members = [self._members[worker] for worker in workers]
        reference = self._ray.put(news) if members else None
        for member in members:
            member.send()
            member.order.news = reference

    def answers(self, seconds: float) -> Iterator[WorkerMessage]:
        """See `Fleet`; only the oldest request of each worker is awaited, so that answers come in order."""
        for member in self._members.values():
            member.send()
        name_by_reference = {member.pending[0]: name for name, member in self._members.items() if member.pending}
        references = [*name_by_reference, *self._starting]
        if not references:
            time.sleep(seconds)
            return
        self._ray.wait(references, num_returns=1, timeout=seconds)
        for ref in self._list_finished(list(name_by_reference)):
            name = name_by_reference[ref]
            self._members[name].pending.popleft()
            yield from self._read_answer(name, self._fetch_answer(name, ref))

    def _read_answer(self, name: str, value: Any) -> Iterator[WorkerMessage]:
        if value is _LOST:
            self.dismiss(name)
            yield WorkerMessage(name, "lost")
            return
        self._deaths.pop(name, None)
        report, moved = value
        if report is not None:
            yield WorkerMessage(name, "trained", report)
        if moved is not None:
            yield WorkerMessage(name, "gave", moved)

    def _list_finished(self, refs: list[Any]) -> list[Any]:
        finished: list[Any] = self._ray.wait(refs, num_returns=len(refs), timeout=0)[0] if refs else []
        return finished

    def _fetch_answer(self, name: str, ref: Any, *, begins: bool = False) -> Any:
        """Return the answer of a worker, or _LOST.

        Raises
        ------
        InputError
            The input is wrong. While other workers train, only if the error arose in training.
        RayTaskError
            Another error at the only node.
        """
        from ray.exceptions import RayError, RayTaskError

        try:
            return self._ray.get(ref)
        except RayTaskError as error:
            is_input_error = isinstance(error.cause, WsabieError)
            message = str(error.cause) if is_input_error else explain_worker_loss(error)
            if (begins or not is_input_error) and self._abandon_node(name, message):
                return _LOST
            if is_input_error:
                raise InputError(f"on node {_node(name)}: {message}") from error
            raise
        except RayError as error:
            self._deaths[name], self._last_loss = self._deaths.get(name, 0) + 1, explain_worker_loss(error)
            if self._deaths[name] == _MAX_DEATHS:
                log.warning(
                    "node %s is left alone, its workers died %d times: %s", _node(name), _MAX_DEATHS, self._last_loss
                )
            return _LOST

    def _abandon_node(self, name: str, why: str) -> bool:
        """Abandon a node with errors; return whether other workers train or start."""
        self.dismiss(name)
        self._deaths[name], self._last_loss = _MAX_DEATHS, why
        self._start_workers()
        if not self._members and not self._starting:
            return False
        log.warning("node %s is left alone: %s", _node(name), why)
        return True

    def absence(self) -> WorkerLoss:
        """See `Fleet`; the absence is permanent if workers died on every node that is there or was."""
        workers = {*self._plan.places(self._ray.nodes()), *self._deaths}
        return WorkerLoss(
            self._last_loss, bool(workers) and all(self._deaths.get(name, 0) >= _MAX_DEATHS for name in workers)
        )

    def dismiss(self, worker: str) -> None:
        """See `Fleet`."""
        member = self._members.pop(worker, None)
        if member is not None:
            with suppress(Exception):
                self._ray.kill(member.actor)

    def end(self) -> None:
        """End all workers."""
        for name in list(self._members):
            self.dismiss(name)
        for _, actor in self._starting.values():
            with suppress(Exception):
                self._ray.kill(actor)


def _node(worker: str) -> str:
    return worker.partition("/")[0][:8]


_LOST: Any = object()
_MAX_DEATHS = 3
"""Deaths of workers on a node, without a trained part between them, after which the node is abandoned."""
