"""Who trains what: workers made up here, which are slow, are lost, come later or fall silent.

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
from wsabie.training.loops import EpochPass


@pytest.fixture(autouse=True)
def whole_steps(monkeypatch):
    monkeypatch.setattr(table_deltas, "OUTER", 1.0)


class Still(RoundInterval):
    """Never another one."""

    def begin(self):
        pass

    def compute_parts(self, drift, workers, max_parts, rate_share=1.0):
        return self.parts


class Made:
    """A worker: `pace` seconds for a part; lost after `lives` answers; `silent` never answers again after so many."""

    def __init__(self, n, pace=1.0, lives=None, silent=None, comes=0.0):
        self.own, self.before = {"t": np.zeros((n, 1), np.float32)}, {"t": np.zeros((n, 1), np.float32)}
        self.pace, self.lives, self.silent, self.comes = pace, lives, silent, comes
        self.asked, self.free, self.answered, self.trained = deque(), 0.0, 0, []

    def do(self, what, given):
        if what == "train":
            self.own["t"][given[1]] += 1
            self.trained.append(given)
            return "report", given[1]
        if what == "take":
            apply_deltas(self.own, self.before, given[0])
            return "took", None
        return "deltas", compute_deltas(self.own, self.before, back=True)


class MadeFleet:
    """Time goes by when answers are waited for."""

    def __init__(self, **workers):
        self.workers, self.known, self.now, self.dismissed = workers, set(), 0.0, {}  # when
        self.gone, self.most_waited = WorkerLoss(), 0

    def newcomers(self):
        new = [name for name, w in self.workers.items() if name not in self.known and w.comes <= self.now]
        self.known.update(new)
        return new

    def ask(self, name, what, *given):
        worker = self.workers[name]
        worker.free = max(worker.free, self.now) + (worker.pace if what == "train" else 0.01)
        worker.asked.append((worker.free, what, given))
        self.most_waited = max(self.most_waited, sum(one[1] == "train" for one in worker.asked))

    def train(self, worker, epoch, part, coming):
        self.ask(worker, "train", epoch, part)

    def give(self, worker):
        self.ask(worker, "give")

    def take(self, workers, news):
        for worker in workers:
            self.ask(worker, "take", news)

    def answers(self, seconds):
        self.now += seconds
        for name, worker in list(self.workers.items()):
            while worker.asked and worker.asked[0][0] <= self.now:
                if worker.silent is not None and worker.answered >= worker.silent:
                    break
                if worker.lives is not None and worker.answered >= worker.lives:
                    del self.workers[name]
                    yield WorkerMessage(name, "loss")
                    break
                _, what, given = worker.asked.popleft()
                worker.answered += 1
                said, value = worker.do(what, given)
                if said != "took":
                    yield WorkerMessage(name, said, report(value) if said == "report" else value)

    def dismiss(self, worker):
        self.dismissed[worker] = self.now
        del self.workers[worker]

    def absence(self):
        assert not set(self.workers) & self.known
        return self.gone


def report(part):
    return EpochPass(np.zeros(1, np.int64), 0.0, 1, float(part), 0)


def taken(worker):
    """The tables from which a worker goes on when it has done what it was asked."""
    own, before = ({"t": tables["t"].copy()} for tables in (worker.own, worker.before))
    for _, what, given in worker.asked:
        if what == "take":
            apply_deltas(own, before, given[0])
    return before["t"]


def run(fleet, n=24, epochs=2, **options):
    """The rounds; after each of them all who had given have the same tables, bit for bit."""
    table, rounds, counted = {"t": np.zeros((n, 1), np.float32)}, [], []

    def told(one):
        rounds.append(one)
        for name, hand in made.workers.items():
            if hand.n_requested is None:
                np.testing.assert_array_equal(taken(fleet.workers[name]), made._shared_tables["t"])

    made = AveragingRounds(fleet, table, on_round=told, clock=lambda: fleet.now, **options)
    for epoch in range(epochs):
        counted.append([])
        made.epoch(epoch, n, lambda done: counted[-1].append(int(done.rows_read)))
    assert (table["t"] == epochs).all()  # every part moved the tables once in an epoch
    assert [sorted(parts) for parts in counted] == [list(range(n))] * epochs  # and was counted once
    return rounds


def test_two_workers_share_an_epoch_and_end_with_the_same_tables():
    fleet = MadeFleet(a=Made(24), b=Made(24))
    rounds = run(fleet)
    a, b = fleet.workers["a"], fleet.workers["b"]
    assert len(a.trained) == len(b.trained) == 24
    for worker in (a, b):
        for _, what, given in worker.asked:  # the last tables
            worker.do(what, given)
        assert (worker.own["t"] == 2).all()
    assert {one.workers for one in rounds} == {2}


def test_a_slow_worker_trains_fewer_parts():
    fleet = MadeFleet(a=Made(60), b=Made(60, pace=5.0))
    run(fleet, 60, interval=Still(parts=8))
    a, b = (len(fleet.workers[name].trained) for name in "ab")
    assert a + b == 120
    assert a > 2.5 * b > 0


@pytest.mark.parametrize("lives", range(1, 21))
def test_the_parts_of_a_lost_worker_are_trained_by_others(lives):
    fleet = MadeFleet(a=Made(24), b=Made(24, lives=lives), c=Made(24, comes=5.0))
    rounds = run(fleet, interval=Still(parts=3))
    assert rounds[-1].n_lost == 1
    assert rounds[-1].n_joined == 3
    assert fleet.workers["c"].trained


def test_all_may_be_lost_if_others_come():
    fleet = MadeFleet(a=Made(24, lives=7), b=Made(24, lives=9), c=Made(24, comes=100.0))
    assert run(fleet)[-1].n_joined == 3


def test_without_anybody_it_ends_and_says_how_to_go_on():
    with pytest.raises(NoWorkersError, match=r"no node to train on for 50 s; start one, .* --resume"):
        run(MadeFleet(a=Made(24, lives=7)), max_wait=50.0)


def test_it_says_why_the_last_worker_was_lost():
    fleet = MadeFleet(a=Made(24, lives=7))
    fleet.gone = WorkerLoss("its node is gone")
    with pytest.raises(NoWorkersError, match=r"for 50 s \(the last worker was lost: its node is gone\); start one"):
        run(fleet, max_wait=50.0)
    assert fleet.now > 50


def test_it_does_not_wait_where_no_node_can_train():
    fleet = MadeFleet(a=Made(24, lives=7))
    fleet.gone = WorkerLoss("it was killed", lasts=True)
    with pytest.raises(NoWorkersError, match=r"none of the nodes can train \(.* it was killed\); start another one"):
        run(fleet)
    assert fleet.now < 20


def test_a_late_worker_holds_up_nobody_and_its_steps_come_later(monkeypatch):
    fleet = MadeFleet(a=Made(40), b=Made(40, pace=12.0))
    rounds = run(fleet, 40, epochs=1, interval=Still(parts=2))
    assert 1 in {one.workers for one in rounds}  # went on without b
    assert len(fleet.workers["b"].trained) >= 2  # whose steps are in the table


def test_who_is_late_is_waited_for_once():
    """A lost worker is late until its loss is noticed."""
    rounds = run(MadeFleet(a=Made(100), b=Made(100, silent=4)), 100, epochs=1, interval=Still(parts=2))
    alone = [one.seconds for one in rounds if one.workers == 1]
    assert len(alone) > 10
    assert max(alone[1:]) < 5  # four parts


def test_a_silent_worker_is_let_go():
    fleet = MadeFleet(a=Made(24), b=Made(24, silent=4))
    assert run(fleet)[-1].n_lost == 1
    assert list(fleet.dismissed) == ["b"]
    assert fleet.now > module.SILENCE


def test_a_first_part_may_take_longer_than_the_silence(monkeypatch):
    """The first two are let go in its midst, and leave more time to the third."""
    monkeypatch.setattr(module, "SILENCE", 4.0)
    coming = {"a": 0, "b": 5, "c": 15, "d": 90}
    fleet = MadeFleet(**{name: Made(3, pace=10.0, comes=comes) for name, comes in coming.items()})
    run(fleet, 3, epochs=1, max_wait=60.0)
    assert list(fleet.dismissed) == ["a", "b"]


def test_patience_ends_again_when_steps_come(monkeypatch):
    monkeypatch.setattr(module, "SILENCE", 4.0)
    late = Made(200, silent=0, comes=10.0)
    fleet = MadeFleet(a=Made(200, pace=0.1), b=Made(200, silent=0), c=late)
    run(fleet, 200)
    assert 4 < fleet.dismissed["b"] < 6
    assert 14 < fleet.dismissed["c"] < 16


def test_rounds_are_short_at_first_and_grow_as_drift_allows():
    rounds = run(MadeFleet(a=Made(200), b=Made(200)), 200, epochs=3, interval=RoundInterval(target_drift=1e9))
    assert rounds[0].parts == 1
    assert rounds[-1].parts == 200 / (module.LEAST_ROUNDS * 2)
    still = run(MadeFleet(a=Made(200), b=Made(200)), 200, epochs=3, interval=RoundInterval(target_drift=1e-9))
    assert {one.parts for one in still} == {1}


def test_rounds_are_short_again_when_a_worker_comes():
    fleet = MadeFleet(a=Made(400), b=Made(400), c=Made(400, comes=150.0))
    rounds = run(fleet, 400, epochs=3, interval=RoundInterval(target_drift=1e9))
    first = next(i for i, one in enumerate(rounds) if one.n_joined == 3)
    assert rounds[first - 1].parts > 8
    assert rounds[first].parts == 1
    assert rounds[-1].parts > 8


def test_steps_of_one_of_several_say_nothing_of_drift():
    """Those of one alone have none, and would make the interval longer."""
    rounds = run(
        MadeFleet(a=Made(200), b=Made(200, pace=30.0)), 200, interval=RoundInterval(parts=2.0, target_drift=1e9)
    )
    after_one = [(one.parts, then.parts) for one, then in pairwise(rounds) if one.workers == 1]
    assert after_one
    assert all(parts == then for parts, then in after_one)
    assert min(parts for parts, _ in after_one) < 200 / (module.LEAST_ROUNDS * 2)
    alone = run(MadeFleet(a=Made(200)), 200)
    assert alone[-1].parts == 200 / module.LEAST_ROUNDS  # nobody is there to drift from


def test_what_is_left_of_the_rate_is_left_of_the_drift():
    class Noted(RoundInterval):
        def compute_parts(self, drift, workers, max_parts, rate_share=1.0):
            seen.append(rate_share)
            return super().compute_parts(drift, workers, max_parts, rate_share)

    fleet, seen = MadeFleet(a=Made(24), b=Made(24)), []
    made = AveragingRounds(fleet, {"t": np.zeros((24, 1), np.float32)}, interval=Noted(), clock=lambda: fleet.now)
    for epoch, left in enumerate((1.0, 0.25)):
        made.epoch(epoch, 24, rate_share=left)
        assert set(seen) == {left}
        seen.clear()


def test_norm_limits_are_kept_before_tables_are_sent():
    """Row 0 is what was settled; no part moves it."""
    fleet, table, sent = MadeFleet(a=Made(25), b=Made(25)), {"t": np.zeros((25, 1), np.float32)}, []

    def settle():
        table["t"][0] += 1

    def told(one):
        sent.append(float(made._shared_tables["t"][0, 0]))

    made = AveragingRounds(fleet, table, settle, on_round=told, clock=lambda: fleet.now)
    fleet.train = lambda worker, epoch, part, coming: fleet.ask(worker, "train", epoch, part + 1)
    made.epoch(0, 24)
    assert sent == list(range(1, len(sent) + 1))
    assert len(sent) >= module.LEAST_ROUNDS


@pytest.mark.parametrize(("n", "most"), [(40, module.AHEAD), (3, 1)])
def test_a_part_waits_with_a_worker_while_there_are_enough_for_all(n, most):
    fleet = MadeFleet(a=Made(n), b=Made(n))
    run(fleet, n, epochs=1, interval=Still(parts=8))
    assert fleet.most_waited == most


def test_more_workers_drift_less_far():
    two, many = RoundInterval(8.0), RoundInterval(8.0)
    assert two.compute_parts(module.DRIFT, 2, 100) == 8
    assert many.compute_parts(module.DRIFT, 10, 100) == 8 / 2
    assert many.compute_parts(module.DRIFT / 3, 10, 100) == 4
    assert many.compute_parts(module.DRIFT / 3, 10, 100, rate_share=0.5) == 2


def test_more_workers_than_parts():
    run(MadeFleet(**{name: Made(3) for name in "abcdef"}), 3)
