"""Workers that cannot begin, fail or die: with Ray's answers made up, and on a real cluster."""

import logging
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shard_files import in_shards, toy_rows
from wsabie.core.errors import InputError
from wsabie.distributed import averaging_trainer as module
from wsabie.distributed.averaging_rounds import NoWorkersError, WorkerLoss
from wsabie.distributed.averaging_trainer import AveragingWorker, RayFleet, WorkerPlan, make_averaging_trainer
from wsabie.models.joint_embedding.estimator import Wsabie

ray = pytest.importorskip("ray", reason="ray is needed for training on many machines (extra wsabie[ray])")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


class MadeActor:
    """Answers, or raises, what it was given, in this order; what it is asked is ready at once."""

    def __init__(self, node, *answers):
        self.node, self.answers, self.killed = node, deque(answers), False
        self.prepare = self.handle_request = SimpleNamespace(remote=lambda *_, **__: (self, self.answers.popleft()))


class MadeRay:
    """Nodes, and for each the answers of the actors that are started there, one after the other."""

    def __init__(self, **nodes):
        self.of_nodes = {node: deque(actors) for node, actors in nodes.items()}
        self.started = []

    def nodes(self):
        return [{"NodeID": node, "Alive": True, "Resources": {"CPU": 1.0}} for node in self.of_nodes]

    def start(self, node, cores, *sent):
        self.started.append(node)
        return MadeActor(node, *self.of_nodes[node].popleft())

    def get(self, ref):
        if isinstance(ref[1], Exception):
            raise ref[1]
        return ref[1]

    def kill(self, actor):
        actor.killed = True


@pytest.fixture
def crew(monkeypatch):
    """crew(a=[[answers of an actor], ...], ...) -> the Crew, and the Ray behind it; every look is a new one."""

    def make_crew(max_workers=None, **nodes):
        fake = MadeRay(**nodes)
        monkeypatch.setattr(ray, "nodes", fake.nodes)
        monkeypatch.setattr(ray, "put", lambda value: value)
        monkeypatch.setattr(ray, "wait", lambda refs, num_returns, timeout: (refs, []))
        monkeypatch.setattr(ray, "get", fake.get)
        monkeypatch.setattr(ray, "kill", fake.kill)
        monkeypatch.setattr(RayFleet, "_start_worker", lambda self, *arguments: fake.start(*arguments))
        monkeypatch.setattr(module, "_NODE_POLL_SECONDS", 0.0)
        nothing: Any = None
        return RayFleet(nothing, nothing, nothing, WorkerPlan(max_workers, on_single_node=False)), fake

    return make_crew


def wrong(cause: Exception) -> Exception:
    """The error that `ray.get` raises where a worker raised this."""
    text = f"Traceback\n{type(cause).__name__}: {cause}"
    return ray.exceptions.RayTaskError("prepare", text, cause).as_instanceof_cause()


def died(message: str = "worker process has died") -> Exception:
    return ray.exceptions.RayActorError(error_msg=message)


MISSING = InputError("cannot read rows/manifest.json; mount it")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MISSING, "cannot read rows"), (MemoryError(), "MemoryError"), (OSError("no room"), "no room")],
)
def test_a_node_that_cannot_begin_is_left_alone_while_others_train(crew, caplog, error, reason):
    fleet, fake = crew(a=[[None]], b=[[wrong(error)]])
    assert list(fleet.poll_new_workers()) == ["a/0"]
    assert "node b is left alone: " in caplog.text
    assert reason in caplog.text
    assert [list(fleet.poll_new_workers()) for _ in range(3)] == [[], [], []]
    assert fake.started == ["a", "b"]
    assert fleet.explain_absence() == WorkerLoss(fleet._last_loss, is_permanent=False)
    assert reason in fleet._last_loss


def test_a_node_that_cannot_begin_ends_nothing_while_others_begin(crew):
    """The first one that is looked at, while the second begins."""
    fleet, _ = crew(a=[[wrong(MISSING)]], b=[[None]])
    assert list(fleet.poll_new_workers()) == ["b/0"]


def test_another_node_is_tried_where_so_many_are_wanted(crew):
    fleet, fake = crew(1, a=[[wrong(MISSING)]], b=[[None]])
    assert [*fleet.poll_new_workers(), *fleet.poll_new_workers()] == ["b/0"]
    assert fake.started == ["a", "b"]


def test_where_no_node_can_begin_the_last_one_says_why(crew, caplog):
    fleet, _ = crew(a=[[wrong(MISSING)]], b=[[wrong(MISSING)]])
    with pytest.raises(InputError, match=r"^on node b: cannot read rows/manifest.json; mount it$"):
        list(fleet.poll_new_workers())
    assert "node a is left alone" in caplog.text
    fleet, _ = crew(a=[[wrong(MemoryError())]])
    with pytest.raises(MemoryError):
        list(fleet.poll_new_workers())


def ask_workers(fleet, *workers):
    """Answers of the workers to the next part."""
    for worker in workers:
        fleet.train(worker, 0, 0, None)
    return sorted(answer[:2] for answer in fleet.poll_messages(0.0))


def test_what_fails_in_the_midst_of_training_fails_on_its_node(crew, caplog):
    fleet, fake = crew(a=[[None, ("report", None), wrong(OSError("no room"))]], b=[[None, wrong(MemoryError())]])
    assert list(fleet.poll_new_workers()) == ["a/0", "b/0"]
    b = fleet._members["b/0"].actor
    assert ask_workers(fleet, "a/0", "b/0") == [("a/0", "report"), ("b/0", "loss")]
    assert b.killed
    assert "node b is left alone: MemoryError" in caplog.text
    assert list(fleet.poll_new_workers()) == []
    with pytest.raises(OSError, match="no room"):  # there is no other
        ask_workers(fleet, "a/0")
    assert fake.started == ["a", "b"]


def test_what_is_wrong_with_the_input_ends_a_training_with_its_sentence(crew):
    """It would be met on every node."""
    fleet, _ = crew(a=[[None, wrong(InputError("rows-1 is damaged; make it again"))]], b=[[None]])
    assert list(fleet.poll_new_workers()) == ["a/0", "b/0"]
    with pytest.raises(InputError, match=r"^on node a: rows-1 is damaged; make it again$"):
        ask_workers(fleet, "a/0")


@pytest.mark.parametrize("of_parts", [False, True])
def test_where_workers_died_three_times_no_more_is_tried(crew, caplog, of_parts):
    """Workers die when they begin, or in their first part."""
    answers = [None, died()] if of_parts else [died()]
    fleet, fake = crew(a=[answers] * 4)
    for times in range(1, 4):
        assert fleet.explain_absence().is_permanent is False
        for name in fleet.poll_new_workers():
            assert ask_workers(fleet, name) == [(name, "loss")]
        assert len(fake.started) == times
        assert ("left alone" in caplog.text) == (times == 3)
    assert list(fleet.poll_new_workers()) == []
    assert fake.started == ["a"] * 3
    assert fleet.explain_absence() == WorkerLoss(
        "its process was killed, perhaps for want of memory", is_permanent=True
    )


def test_who_has_trained_a_part_begins_to_count_anew(crew):
    fleet, fake = crew(a=[[died()], [died()], [None, ("report", None), died()], [died()], [died()], []])
    for _ in range(5):
        for name in fleet.poll_new_workers():
            assert ask_workers(fleet, name) == [(name, "report")]
            assert ask_workers(fleet, name) == [(name, "loss")]
    assert list(fleet.poll_new_workers()) == []
    assert len(fake.started) == 5


def test_a_node_that_went_may_come_again(crew):
    """No worker can train on b; a was lost with its node, and another one may take its place."""
    fleet, fake = crew(a=[[None, died("The actor died because its node has died.")]], b=[[wrong(MISSING)]])
    assert list(fleet.poll_new_workers()) == ["a/0"]
    del fake.of_nodes["a"]
    assert ask_workers(fleet, "a/0") == [("a/0", "loss")]
    assert fleet.explain_absence() == WorkerLoss("its node is gone", is_permanent=False)


class Broken(AveragingWorker):
    """Fails on one node, by prepare or by train; on others these wait for it to fail."""

    node: str
    fails: str
    error: Exception
    failed: Path

    def _fail(self, step: str) -> None:
        if step == self.fails and ray.get_runtime_context().get_node_id() == self.node:
            self.failed.touch()
            raise self.error
        until = time.monotonic() + 60
        while step == self.fails and not self.failed.exists() and time.monotonic() < until:
            time.sleep(0.02)

    def prepare(self) -> None:
        self._fail("prepare")
        super().prepare()

    def train(self, epoch: int, number: int, next_part: int | None = None) -> Any:
        self._fail("train")
        return super().train(epoch, number, next_part)


@pytest.mark.parametrize(("fails", "error"), [("prepare", MISSING), ("train", MemoryError())])
def test_a_training_goes_on_without_a_node_that_cannot(cluster, nodes, tmp_path, monkeypatch, caplog, fails, error):
    rows, bad = in_shards(toy_rows(), tmp_path / "shards"), next(iter(cluster.worker_nodes)).node_id
    for name, value in {"node": bad, "fails": fails, "error": error, "failed": tmp_path / "failed"}.items():
        monkeypatch.setattr(Broken, name, value, raising=False)
    monkeypatch.setattr(module, "AveragingWorker", Broken)
    cluster.wait_for_nodes()  # a lost one of another test may not have been noticed
    rounds: list[Any] = []
    with caplog.at_level(logging.WARNING, "wsabie"):
        model = Wsabie(dim=8, epochs=6, threads=1).fit(
            rows, trainer=make_averaging_trainer(cluster.address, on_round=rounds.append)
        )
    assert {record.pairs for record in model.history_} == {rows.compute_label_statistics().pairs}
    assert {record.workers for record in rounds} == {1}
    assert f"node {bad[:8]} is left alone: " in caplog.text


class Dying(AveragingWorker):
    """End the process as the kernel does when memory is short."""

    def prepare(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_training_whose_workers_die_everywhere_says_so_at_once(cluster, nodes, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "AveragingWorker", Dying)
    cluster.wait_for_nodes()
    message = (
        r"none of the nodes can train \(the last worker was lost: its process was killed, perhaps .* memory\); start"
    )
    with pytest.raises(NoWorkersError, match=message):
        Wsabie(dim=8, threads=1).fit(
            in_shards(toy_rows(), tmp_path / "s"), trainer=make_averaging_trainer(cluster.address)
        )


def test_what_ray_tells_of_an_actor_becomes_a_few_words():
    message = "The actor died because of an error raised in its creation task\nFileNotFoundError: no such file"
    assert module.explain_worker_loss(died(message)) == "FileNotFoundError: no such file"
    assert module.explain_worker_loss(ray.exceptions.OutOfMemoryError("much")) == "its node has too little memory"
    assert module.explain_worker_loss(ray.exceptions.ActorUnavailableError("RPC", None)) == "it cannot be reached"
