"""Averaging rounds with simulated workers that are slow, are lost, come later or fall silent.

Training part p adds 1 to row p of the table. A row is moved by one worker in a round, so that its step is kept whole,
and the table says how often each part counted.
"""

from collections import deque
from itertools import pairwise

import numpy as np
import pytest

from wsabie.distributed import averaging_rounds as module
from wsabie.distributed import table_deltas
from wsabie.distributed.averaging_rounds import (
    AveragingRounds,
    NoWorkersError,
    RoundInterval,
    WorkerLoss,
    WorkerMessage,
)
from wsabie.distributed.table_deltas import apply_deltas, compute_deltas
from wsabie.training.loops import EpochTotals


@pytest.fixture(autouse=True)
def whole_steps(monkeypatch):
    monkeypatch.setattr(table_deltas, "OUTER_RATE", 1.0)


class Still(RoundInterval):
    """Never another one."""

    def reset(self):
        pass

    def compute_parts(self, drift, workers, max_parts, rate_share=1.0):
        return self.parts


class FakeWorker:
    """A worker: `pace` seconds for a part; lost after `lives` answers; `silent` never answers again after so many."""

    def __init__(self, n, pace=1.0, lives=None, silent=None, comes=0.0):
        self.tables, self.shared_tables = {"t": np.zeros((n, 1), np.float32)}, {"t": np.zeros((n, 1), np.float32)}
        self.pace, self.lives, self.silent, self.comes = pace, lives, silent, comes
        self.requests, self.free, self.answered, self.trained = deque(), 0.0, 0, []

    def do(self, request, arguments):
        if request == "train":
            self.tables["t"][arguments[1]] += 1
            self.trained.append(arguments)
            return "report", arguments[1]
        if request == "take":
            apply_deltas(self.tables, self.shared_tables, arguments[0])
            return "took", None
        return "deltas", compute_deltas(self.tables, self.shared_tables, subtract_deltas=True)


class FakeFleet:
    """Time goes by when answers are waited for."""

    def __init__(self, **workers):
        self.workers, self.members, self.now, self.dismissed = workers, set(), 0.0, {}  # when
        self.last_loss, self.most_waited = WorkerLoss(), 0

    def poll_new_workers(self):
        new = [name for name, w in self.workers.items() if name not in self.members and w.comes <= self.now]
        self.members.update(new)
        return new

    def ask(self, name, request, *arguments):
        worker = self.workers[name]
        worker.free = max(worker.free, self.now) + (worker.pace if request == "train" else 0.01)
        worker.requests.append((worker.free, request, arguments))
        self.most_waited = max(self.most_waited, sum(entry[1] == "train" for entry in worker.requests))

    def train(self, worker, epoch, part, next_part):
        self.ask(worker, "train", epoch, part)

    def request_deltas(self, worker):
        self.ask(worker, "give")

    def send_tables(self, workers, deltas):
        for worker in workers:
            self.ask(worker, "take", deltas)

    def poll_messages(self, seconds):
        self.now += seconds
        for name, worker in list(self.workers.items()):
            while worker.requests and worker.requests[0][0] <= self.now:
                if worker.silent is not None and worker.answered >= worker.silent:
                    break
                if worker.lives is not None and worker.answered >= worker.lives:
                    del self.workers[name]
                    yield WorkerMessage(name, "loss")
                    break
                _, request, arguments = worker.requests.popleft()
                worker.answered += 1
                reply, value = worker.do(request, arguments)
                if reply != "took":
                    yield WorkerMessage(name, reply, report(value) if reply == "report" else value)

    def dismiss(self, worker):
        self.dismissed[worker] = self.now
        del self.workers[worker]

    def explain_absence(self):
        assert not set(self.workers) & self.members
        return self.last_loss


def report(part):
    return EpochTotals(np.zeros(1, np.int64), 0.0, 1, float(part), 0)


def compute_next_table(worker):
    """The tables from which a worker goes on when it has done what it was asked."""
    local, shared = ({"t": tables["t"].copy()} for tables in (worker.tables, worker.shared_tables))
    for _, request, arguments in worker.requests:
        if request == "take":
            apply_deltas(local, shared, arguments[0])
    return shared["t"]


def run(fleet, n=24, epochs=2, **options):
    """The rounds; after each of them all who had given have the same tables, bit for bit."""
    table, rounds, epoch_parts = {"t": np.zeros((n, 1), np.float32)}, [], []

    def note_round(round_report):
        rounds.append(round_report)
        for name, hand in averaging.workers.items():
            if hand.n_requested is None:
                np.testing.assert_array_equal(compute_next_table(fleet.workers[name]), averaging._shared_tables["t"])

    averaging = AveragingRounds(fleet, table, on_round=note_round, clock=lambda: fleet.now, **options)
    for epoch in range(epochs):
        epoch_parts.append([])
        averaging.run_epoch(epoch, n, lambda progress: epoch_parts[-1].append(int(progress.rows_read)))
    assert (table["t"] == epochs).all()  # every part moved the tables once in an epoch
    assert [sorted(parts) for parts in epoch_parts] == [list(range(n))] * epochs  # and was counted once
    return rounds


def test_two_workers_share_an_epoch_and_end_with_the_same_tables():
    fleet = FakeFleet(a=FakeWorker(24), b=FakeWorker(24))
    rounds = run(fleet)
    a, b = fleet.workers["a"], fleet.workers["b"]
    assert len(a.trained) == len(b.trained) == 24
    for worker in (a, b):
        for _, request, arguments in worker.requests:  # the last tables
            worker.do(request, arguments)
        assert (worker.tables["t"] == 2).all()
    assert {round_report.workers for round_report in rounds} == {2}


def test_a_slow_worker_trains_fewer_parts():
    fleet = FakeFleet(a=FakeWorker(60), b=FakeWorker(60, pace=5.0))
    run(fleet, 60, interval=Still(parts=8))
    a, b = (len(fleet.workers[name].trained) for name in "ab")
    assert a + b == 120
    assert a > 2.5 * b > 0


@pytest.mark.parametrize("lives", range(1, 21))
def test_the_parts_of_a_lost_worker_are_trained_by_others(lives):
    fleet = FakeFleet(a=FakeWorker(24), b=FakeWorker(24, lives=lives), c=FakeWorker(24, comes=5.0))
    rounds = run(fleet, interval=Still(parts=3))
    assert rounds[-1].n_lost == 1
    assert rounds[-1].n_joined == 3
    assert fleet.workers["c"].trained


def test_all_may_be_lost_if_others_come():
    fleet = FakeFleet(a=FakeWorker(24, lives=7), b=FakeWorker(24, lives=9), c=FakeWorker(24, comes=100.0))
    assert run(fleet)[-1].n_joined == 3


def test_missing_workers_error_names_the_resume_command():
    with pytest.raises(NoWorkersError, match=r"no node to train on for 50 s; start one, .* `resume`"):
        run(FakeFleet(a=FakeWorker(24, lives=7)), max_wait=50.0)


def test_missing_workers_error_states_the_last_loss():
    fleet = FakeFleet(a=FakeWorker(24, lives=7))
    fleet.last_loss = WorkerLoss("its node is gone")
    with pytest.raises(NoWorkersError, match=r"for 50 s \(the last worker was lost: its node is gone\); start one"):
        run(fleet, max_wait=50.0)
    assert fleet.now > 50


def test_it_does_not_wait_where_no_node_can_train():
    fleet = FakeFleet(a=FakeWorker(24, lives=7))
    fleet.last_loss = WorkerLoss("it was killed", is_permanent=True)
    with pytest.raises(NoWorkersError, match=r"none of the nodes can train \(.* it was killed\); start another one"):
        run(fleet)
    assert fleet.now < 20


def test_a_late_worker_holds_up_nobody_and_its_steps_come_later(monkeypatch):
    fleet = FakeFleet(a=FakeWorker(40), b=FakeWorker(40, pace=12.0))
    rounds = run(fleet, 40, epochs=1, interval=Still(parts=2))
    assert 1 in {round_report.workers for round_report in rounds}  # went on without b
    assert len(fleet.workers["b"].trained) >= 2  # whose steps are in the table


def test_late_worker_is_waited_for_once():
    """A lost worker is late until its loss is noticed."""
    rounds = run(FakeFleet(a=FakeWorker(100), b=FakeWorker(100, silent=4)), 100, epochs=1, interval=Still(parts=2))
    solo_seconds = [round_report.seconds for round_report in rounds if round_report.workers == 1]
    assert len(solo_seconds) > 10
    assert max(solo_seconds[1:]) < 5  # four parts


def test_a_silent_worker_is_let_go():
    fleet = FakeFleet(a=FakeWorker(24), b=FakeWorker(24, silent=4))
    assert run(fleet)[-1].n_lost == 1
    assert list(fleet.dismissed) == ["b"]
    assert fleet.now > module.WORKER_TIMEOUT


def test_a_first_part_may_take_longer_than_the_silence(monkeypatch):
    """The first two are let go in its midst, and leave more time to the third."""
    monkeypatch.setattr(module, "WORKER_TIMEOUT", 4.0)
    arrivals = {"a": 0, "b": 5, "c": 15, "d": 90}
    fleet = FakeFleet(**{name: FakeWorker(3, pace=10.0, comes=comes) for name, comes in arrivals.items()})
    run(fleet, 3, epochs=1, max_wait=60.0)
    assert list(fleet.dismissed) == ["a", "b"]


def test_patience_ends_again_when_steps_come(monkeypatch):
    monkeypatch.setattr(module, "WORKER_TIMEOUT", 4.0)
    late = FakeWorker(200, silent=0, comes=10.0)
    fleet = FakeFleet(a=FakeWorker(200, pace=0.1), b=FakeWorker(200, silent=0), c=late)
    run(fleet, 200)
    assert 4 < fleet.dismissed["b"] < 6
    assert 14 < fleet.dismissed["c"] < 16


def test_rounds_are_short_at_first_and_grow_as_drift_allows():
    rounds = run(
        FakeFleet(a=FakeWorker(200), b=FakeWorker(200)), 200, epochs=3, interval=RoundInterval(target_drift=1e9)
    )
    assert rounds[0].parts == 1
    assert rounds[-1].parts == 200 / (module.MIN_ROUNDS * 2)
    still = run(
        FakeFleet(a=FakeWorker(200), b=FakeWorker(200)), 200, epochs=3, interval=RoundInterval(target_drift=1e-9)
    )
    assert {round_report.parts for round_report in still} == {1}


def test_rounds_are_short_again_when_a_worker_comes():
    fleet = FakeFleet(a=FakeWorker(400), b=FakeWorker(400), c=FakeWorker(400, comes=150.0))
    rounds = run(fleet, 400, epochs=3, interval=RoundInterval(target_drift=1e9))
    first = next(i for i, round_report in enumerate(rounds) if round_report.n_joined == 3)
    assert rounds[first - 1].parts > 8
    assert rounds[first].parts == 1
    assert rounds[-1].parts > 8


def test_steps_of_one_of_several_say_nothing_of_drift():
    """Steps of a single worker have no drift, and would make the interval longer."""
    rounds = run(
        FakeFleet(a=FakeWorker(200), b=FakeWorker(200, pace=30.0)),
        200,
        interval=RoundInterval(parts=2.0, target_drift=1e9),
    )
    part_pairs = [
        (round_report.parts, next_round.parts)
        for round_report, next_round in pairwise(rounds)
        if round_report.workers == 1
    ]
    assert part_pairs
    assert all(parts == next_round for parts, next_round in part_pairs)
    assert min(parts for parts, _ in part_pairs) < 200 / (module.MIN_ROUNDS * 2)
    solo_rounds = run(FakeFleet(a=FakeWorker(200)), 200)
    assert solo_rounds[-1].parts == 200 / module.MIN_ROUNDS  # nobody is there to drift from


def test_what_is_left_of_the_rate_is_left_of_the_drift():
    class Noted(RoundInterval):
        def compute_parts(self, drift, workers, max_parts, rate_share=1.0):
            rate_shares.append(rate_share)
            return super().compute_parts(drift, workers, max_parts, rate_share)

    fleet, rate_shares = FakeFleet(a=FakeWorker(24), b=FakeWorker(24)), []
    averaging = AveragingRounds(fleet, {"t": np.zeros((24, 1), np.float32)}, interval=Noted(), clock=lambda: fleet.now)
    for epoch, share in enumerate((1.0, 0.25)):
        averaging.run_epoch(epoch, 24, rate_share=share)
        assert set(rate_shares) == {share}
        rate_shares.clear()


def test_norm_limits_are_kept_before_tables_are_sent():
    """Row 0 is what was settled; no part moves it."""
    fleet, table, sent = FakeFleet(a=FakeWorker(25), b=FakeWorker(25)), {"t": np.zeros((25, 1), np.float32)}, []

    def settle():
        table["t"][0] += 1

    def note_round(round_report):
        sent.append(float(averaging._shared_tables["t"][0, 0]))

    averaging = AveragingRounds(fleet, table, settle, on_round=note_round, clock=lambda: fleet.now)
    fleet.train = lambda worker, epoch, part, next_part: fleet.ask(worker, "train", epoch, part + 1)
    averaging.run_epoch(0, 24)
    assert sent == list(range(1, len(sent) + 1))
    assert len(sent) >= module.MIN_ROUNDS


@pytest.mark.parametrize(("n", "most"), [(40, module.QUEUE_LENGTH), (3, 1)])
def test_a_part_waits_with_a_worker_while_there_are_enough_for_all(n, most):
    fleet = FakeFleet(a=FakeWorker(n), b=FakeWorker(n))
    run(fleet, n, epochs=1, interval=Still(parts=8))
    assert fleet.most_waited == most


def test_more_workers_drift_less_far():
    two, many = RoundInterval(8.0), RoundInterval(8.0)
    assert two.compute_parts(module.TARGET_DRIFT, 2, 100) == 8
    assert many.compute_parts(module.TARGET_DRIFT, 10, 100) == 8 / 2
    assert many.compute_parts(module.TARGET_DRIFT / 3, 10, 100) == 4
    assert many.compute_parts(module.TARGET_DRIFT / 3, 10, 100, rate_share=0.5) == 2


def test_more_workers_than_parts():
    rounds = run(FakeFleet(**{name: FakeWorker(3) for name in "abcdef"}), 3)
    assert len(rounds) > 0
