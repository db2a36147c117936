"""Training on many machines: a worker on each node, and tables joined as often as the drift requires.

The loop over epochs, validation, early stopping and checkpoints belong to `wsabie.training.trainer.Trainer`; this
module runs the epochs. Nodes come and go. A lost node costs the steps that it had not given, and others train its
parts. A node that joins the cluster gets the tables and takes part.

Ray Train would start the workers alone, and restart all of them where a node is lost (`docs/decisions/ray-tasks.md`).
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from wsabie.core.errors import InputError, WsabieError, require
from wsabie.core.execution import SILENT, Progress, Stage
from wsabie.core.machine import count_available_cores
from wsabie.distributed.averaging_rounds import AveragingRounds, RoundReport, WorkerLoss, WorkerMessage
from wsabie.distributed.ray_cluster import LOCAL, connect, explain_worker_loss
from wsabie.distributed.table_deltas import TableDeltas, apply_deltas, compute_deltas, warm_up
from wsabie.embedding.protocols import TrainableTables
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import EpochTotals, StepCounters
from wsabie.training.resolved_settings import TrainingSettings
from wsabie.training.trainer import EpochMonitor, EpochRunner, Trainer, count_block_reads
from wsabie.training.training_data import PartitionedData, RowBlock, TrainingData

if TYPE_CHECKING:
    from ray import ObjectRef

log = logging.getLogger("wsabie")
_NODE_POLL_SECONDS = 1.0  # seconds between two listings of the nodes
_ANSWER_KINDS: tuple[Literal["report", "deltas"], ...] = ("report", "deltas")
_LOST: Any = object()
_MAX_DEATHS = 3
"""Deaths of workers on a node, without a trained part between them, after which the node is abandoned."""


class AveragingWorker:
    """Worker that trains parts on its own tables.

    Parameters
    ----------
    settings : TrainingSettings
        `threads` are those of this node.
    space : TrainableTables
        Initial tables; copied.
    data : PartitionedData
    """

    def __init__(self, settings: TrainingSettings, space: TrainableTables, data: PartitionedData) -> None:
        self.settings, self.space, self.data = settings, space, data
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="wsabie-reads")
        self._prefetch: tuple[tuple[int, int], Future[RowBlock]] | None = None

    def prepare(self) -> None:
        """Copy the tables, compile the kernels and create the sampler; this may take a while, or fail."""
        settings, self.space = self.settings, self.space.copy()
        self.base_tables = {name: table.copy() for name, table in self.space.list_arrays().items()}
        self.threads, self.runner = KernelThreads(settings.threads), EpochRunner(settings, self.space, self.data)
        self.runner.prepare(SILENT, None)
        warm_up()

    def train(self, epoch: int, number: int, next_part: int | None = None) -> EpochTotals:
        """Train a part while another thread reads the next one."""
        block = self._read_block(epoch, number)
        if next_part is not None:
            self._prefetch = (epoch, next_part), self._reader.submit(self.data.read_part, epoch, next_part)
        step_counters = StepCounters.allocate(self.threads.n)
        _, visits = self.runner.prepare_visits(block, epoch, number, self.threads, step_counters)
        for _ in visits:
            pass
        return step_counters.sum([count_block_reads(block)])

    def _read_block(self, epoch: int, number: int) -> RowBlock:
        prefetch, self._prefetch = self._prefetch, None
        if prefetch is not None and prefetch[0] == (epoch, number):
            return prefetch[1].result()
        return self.data.read_part(epoch, number)

    def extract_deltas(self) -> TableDeltas:
        """Return the steps since the last `update_tables`, and take them back out of the tables."""
        return compute_deltas(self.space.list_arrays(), self.base_tables, subtract_deltas=True)

    def update_tables(self, deltas: TableDeltas) -> None:
        """Continue from new tables, and keep the steps that are not extracted yet."""
        apply_deltas(self.space.list_arrays(), self.base_tables, deltas)

    def handle_request(
        self, deltas: TableDeltas | None = None, part: tuple[int, int, int | None] | None = None, extract: bool = False
    ) -> tuple[EpochTotals | None, TableDeltas | None]:
        """Update the tables, train a part and extract the steps; results that were not requested are None."""
        if deltas is not None:
            self.update_tables(deltas)
        report = None if part is None else self.train(*part)
        return report, self.extract_deltas() if extract else None


@dataclass(frozen=True)
class WorkerPlan:
    """Number and placement of workers.

    Attributes
    ----------
    max_workers : int or None
    on_single_node : bool
        All share one node.
    """

    max_workers: int | None
    on_single_node: bool

    def place_workers(self, nodes: list[dict[str, Any]]) -> dict[str, tuple[str, float]]:
        """Return the node and the cores of each worker, by the worker's name.

        Examples
        --------
        >>> nodes = [{"NodeID": "a", "Alive": True, "Resources": {"CPU": 8.0}}, {"NodeID": "b", "Alive": False}]
        >>> WorkerPlan(2, on_single_node=True).place_workers(nodes)
        {'a/0': ('a', 4.0), 'a/1': ('a', 4.0)}
        >>> WorkerPlan(None, on_single_node=False).place_workers(nodes)
        {'a/0': ('a', 8.0)}
        """
        cores = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in nodes if node["Alive"]}
        if not self.on_single_node:
            return {f"{node}/0": (node, n) for node, n in cores.items() if n >= 1}
        share = self.max_workers or 1
        return {f"{node}/{i}": (node, n // share) for node, n in cores.items() for i in range(share)}


@dataclass
class _Member:
    """A worker on a node, its unanswered requests, and the arguments of its next request."""

    actor: Any
    pending: deque["ObjectRef"] = field(default_factory=deque)
    request: dict[str, object] = field(default_factory=dict)

    def send(self) -> None:
        """Send the next request unless it is empty."""
        if self.request:
            self.pending.append(self.actor.handle_request.remote(**self.request))
        self.request = {}


class RayFleet:
    """Fleet of Ray actors: one on each node with enough cores, including nodes that join later.

    A message costs about as much as the sums of a round. One message therefore brings a worker new tables, a part and
    the request for its steps, where possible.
    """

    def __init__(
        self, settings: TrainingSettings, space: TrainableTables, blocks: PartitionedData, plan: WorkerPlan
    ) -> None:
        import ray

        self._ray, self._settings, self._plan = ray, settings, plan
        self._space, self._blocks = space, blocks
        self._members: dict[str, _Member] = {}
        self._starting: dict[ObjectRef, tuple[str, Any]] = {}
        self._deaths: dict[str, int] = {}
        self._last_loss = ""  # reason of the last loss
        self._next_poll_at = 0.0
        self._start_workers()  # workers start while the coordinator prepares

    def poll_new_workers(self) -> Iterable[str]:
        """Yield workers that have become ready, and start workers on free nodes."""
        if time.monotonic() >= self._next_poll_at:
            self._next_poll_at = time.monotonic() + _NODE_POLL_SECONDS
            self._start_workers()
        for ref in self._list_finished(list(self._starting)):
            name, actor = self._starting.pop(ref)
            self._members[name] = _Member(actor)
            if self._fetch_answer(name, ref, is_starting=True) is _LOST:
                self.dismiss(name)
            else:
                yield name

    def _start_workers(self) -> None:
        used_names = {*self._members, *(name for name, _ in self._starting.values())}
        placements = self._plan.place_workers(self._ray.nodes())
        free_names = [name for name in placements if name not in used_names and self._deaths.get(name, 0) < _MAX_DEATHS]
        free_names = free_names[: max(0, (self._plan.max_workers or len(placements)) - len(used_names))]
        if free_names:
            # Put again: a new node would look for the copy of a lost one, and retry only after ten seconds.
            references = self._ray.put(self._space), self._ray.put(self._blocks)
        for name in free_names:
            actor = self._start_worker(*placements[name], *references)
            self._starting[actor.prepare.remote()] = name, actor

    def _start_worker(self, node: str, cores: float, *sent: "ObjectRef") -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        placement = NodeAffinitySchedulingStrategy(node, soft=False)
        options = {"num_cpus": cores, "max_restarts": 0, "scheduling_strategy": placement}
        actor_class = self._ray.remote(AveragingWorker).options(**options)
        return actor_class.remote(replace(self._settings, threads=int(cores)), *sent)

    def train(self, worker: str, epoch: int, part: int, next_part: int | None) -> None:
        """See `Fleet`."""
        member = self._members[worker]
        if "part" in member.request:
            member.send()
        member.request["part"] = epoch, part, next_part

    def request_deltas(self, worker: str) -> None:
        """See `Fleet`."""
        self._members[worker].request["extract"] = True

    def send_tables(self, workers: Iterable[str], deltas: TableDeltas) -> None:
        """See `Fleet`; news for several workers travel to a node once."""
        members = [self._members[worker] for worker in workers]
        reference = self._ray.put(deltas) if members else None
        for member in members:
            member.send()
            member.request["deltas"] = reference

    def poll_messages(self, seconds: float) -> Iterator[WorkerMessage]:
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
            answer = self._fetch_answer(name, ref)
            if answer is _LOST:
                self.dismiss(name)
                yield WorkerMessage(name, "loss")
                continue
            self._deaths.pop(name, None)
            for kind, value in zip(_ANSWER_KINDS, answer, strict=True):
                if value is not None:
                    yield WorkerMessage(name, kind, value)

    def _list_finished(self, refs: list["ObjectRef"]) -> list["ObjectRef"]:
        return self._ray.wait(refs, num_returns=len(refs), timeout=0)[0] if refs else []

    def _fetch_answer(self, name: str, ref: "ObjectRef", *, is_starting: bool = False) -> Any:
        """Return the answer of a worker, or _LOST; raise errors of the input, and any error at the only node."""
        # while other workers train, an InputError is raised only if it arose in training
        from ray.exceptions import RayError, RayTaskError

        try:
            return self._ray.get(ref)
        except RayTaskError as error:
            is_input_error = isinstance(error.cause, WsabieError)
            message = str(error.cause) if is_input_error else explain_worker_loss(error)
            if (is_starting or not is_input_error) and self._abandon_node(name, message):
                return _LOST
            if is_input_error:
                raise InputError(f"on node {_abbreviate_node(name)}: {message}") from error
            raise
        except RayError as error:
            self._deaths[name], self._last_loss = self._deaths.get(name, 0) + 1, explain_worker_loss(error)
            if self._deaths[name] == _MAX_DEATHS:
                node = _abbreviate_node(name)
                log.warning("node %s is left alone, its workers died %d times: %s", node, _MAX_DEATHS, self._last_loss)
            return _LOST

    def _abandon_node(self, name: str, reason: str) -> bool:
        """Abandon a node with errors; return whether other workers train or start."""
        self.dismiss(name)
        self._deaths[name], self._last_loss = _MAX_DEATHS, reason
        self._start_workers()
        if not self._members and not self._starting:
            return False
        log.warning("node %s is left alone: %s", _abbreviate_node(name), reason)
        return True

    def explain_absence(self) -> WorkerLoss:
        """See `Fleet`; the absence is permanent if workers died on every node that is there or was."""
        workers = {*self._plan.place_workers(self._ray.nodes()), *self._deaths}
        are_dead = all(self._deaths.get(name, 0) >= _MAX_DEATHS for name in workers)
        return WorkerLoss(self._last_loss, bool(workers) and are_dead)

    def dismiss(self, worker: str) -> None:
        """See `Fleet`."""
        member = self._members.pop(worker, None)
        if member is not None:
            with suppress(Exception):
                self._ray.kill(member.actor)

    def close(self) -> None:
        """End all workers."""
        for name in list(self._members):
            self.dismiss(name)
        for _, actor in self._starting.values():
            with suppress(Exception):
                self._ray.kill(actor)


def _abbreviate_node(worker: str) -> str:
    return worker.partition("/")[0][:8]


def make_averaging_trainer(
    address: str, nodes: int | None = None, on_round: Callable[[RoundReport], None] = lambda _: None
) -> Callable[..., Trainer]:
    """Make a factory of trainers on a Ray cluster, for the parameter `trainer` of `Wsabie.fit`.

    Parameters
    ----------
    address : str
        "host:port" of a running cluster, or "local": a cluster on this machine for the time of the training.
    nodes : int or None
        Maximum number of workers, one on each node. None: all nodes, including those that join later. With "local" the
        workers share this machine's cores, of which each needs one, and None means 1.
    on_round : callable
        Called with the report of every round.

    Raises
    ------
    InputError
        Fewer nodes than 1, or with "local" more nodes than cores.
    """
    require(nodes is None or nodes >= 1, f"{nodes} nodes cannot train; give 1 or more")
    cores = count_available_cores()
    if address == LOCAL and nodes is not None and nodes > cores:  # Ray would wait for cores without a message
        fact = f"`ray='local'` gives each of {nodes} nodes a core of this machine, which has {cores}"
        raise InputError(f"{fact}; give `nodes={cores}` at most")
    return partial(Trainer, make_runner=partial(AveragingRunner, address=address, nodes=nodes, on_round=on_round))


class AveragingRunner(EpochRunner):
    """Runner of epochs on a Ray cluster; further parameters are those of `make_averaging_trainer`.

    Each worker runs the lock-free loop on all cores of its node, so that two runs differ by chance.

    Raises
    ------
    InputError
        The data cannot be assigned to workers, the space has no points, or there is no such cluster.
    NoWorkersError
        All nodes are gone, and none has come for minutes; or workers died on every node (raised by an epoch).
    """

    def __init__(
        self,
        settings: TrainingSettings,
        space: TrainableTables,
        data: TrainingData,
        *,
        address: str,
        nodes: int | None = None,
        on_round: Callable[[RoundReport], None] = lambda _: None,
    ) -> None:
        if not isinstance(data, PartitionedData):
            raise InputError("many machines train on rows in shards; write them: `shards(DATA, out=DIR)`")
        if "norm2" in space.list_arrays():
            raise InputError("labels with a weight per feature are not trained on many machines; leave `ray` out")
        super().__init__(settings, space, data)
        self._parts, self._address, self._nodes = data, address, nodes
        self._fleet = self._build_fleet(replace(settings, deterministic=False), space, data)
        finish_epoch = partial(space.finish_epoch, settings.max_norm, settings.max_norm_weights)
        self._rounds = AveragingRounds(self._fleet, space.list_arrays(), finish_epoch, on_round=on_round)

    def _build_fleet(self, settings: TrainingSettings, space: TrainableTables, data: PartitionedData) -> Any:
        connect(self._address)
        local = self._address == LOCAL
        plan = WorkerPlan(self._nodes or 1 if local else self._nodes, on_single_node=local)
        return RayFleet(settings, space, data, plan)

    def prepare(self, progress: Progress, monitor: EpochMonitor | None) -> None:
        """Compile the kernels that join steps; workers compile those of training."""
        warm_up()

    def run_epoch(self, epoch: int, threads: KernelThreads, stage: Stage) -> EpochTotals:
        """Train on all parts once, on the workers."""
        reports = list[EpochTotals]()

        def add_report(report: EpochTotals) -> None:
            reports.append(report)
            stage.advance(report.pairs)

        self._rounds.run_epoch(epoch, self._parts.count_parts(epoch), add_report, self.settings.get_rate_share(epoch))
        return EpochTotals(*(sum(values) for values in zip(*reports, strict=True)))

    def close(self) -> None:
        """End the workers."""
        self._fleet.close()
