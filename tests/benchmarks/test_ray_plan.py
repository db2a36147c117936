"""The arithmetic of the simulated cluster, by hand; and the cases that were measured."""

import pytest

from benchmarks.ray_plan import BILLION, MEASURED, Machine, Task, count_touched_rows, simulate, simulate_case

FREE = Machine(rate=1000.0, network=1e30, copy=0.0, add=0.0, join=0.0, answer=0.0, spread=0.0)
SMALL = Task(pairs=64_000, features=100, labels=100, width=16, part=1000)


def test_nodes_that_cost_nothing_are_as_many_times_as_fast():
    assert simulate(SMALL, FREE, 1, 4)["seconds"] == pytest.approx(64)
    for n in (2, 4, 8):
        assert simulate(SMALL, FREE, n, 4)["times"] == pytest.approx(n)


def test_a_round_costs_what_it_copies_sends_and_joins():
    """Every row of two tables moves, 2 * 100 rows of 64 bytes; 64 parts are 8 rounds of 2 * 4."""
    table, bytes_per_step = 2 * 100 * 64, 2 * 100 * (16 + 8)
    assert SMALL.step_bytes(4000) == bytes_per_step
    machine = Machine(
        rate=1000.0,
        network=bytes_per_step,
        copy=1 / table,
        add=1 / bytes_per_step,
        join=1 / table,
        answer=0.0,
        spread=0.0,
    )
    # a round: 4 s of training, 1 of comparing, 2 in which both nodes' steps come in, 2 of adding and 1 of joining, then
    # log2(3) of sending and 1 of taking, which the last one need not wait for
    figures = simulate(SMALL, machine, 2, 4)
    assert figures["rounds"] == 8
    assert figures["bytes"] == 2 * bytes_per_step
    assert figures["seconds"] == pytest.approx(8 * (4 + 1 + 2 + 3) + 7 * (1.585 + 1), abs=0.1)


def test_a_slow_node_costs_less_than_its_share():
    """With one of 8 nodes 4 times as slow, 7.25 of 8 is the best, and 2 if all waited for it."""
    figures = simulate(SMALL, FREE, 8, 8, slow=1, slowness=4.0)
    assert 4 < figures["times"] < 7.25


def test_validation_and_the_start_are_not_shared():
    machine = Machine(
        rate=1000.0, network=1e30, copy=0.0, add=0.0, join=0.0, answer=0.0, spread=0.0, start=5, between=3
    )
    assert simulate(SMALL, machine, 2, 4, epochs=2)["seconds"] == pytest.approx(5 + 2 * (32 + 3))


def test_few_pairs_touch_few_labels_and_all_features():
    """A part of the billion: 3.6 million hits on 10,000 features, and 29,491 on a million labels."""
    size = BILLION.step_bytes(1 << 14)
    labels = count_touched_rows(1_000_000, 2 * 0.9 * (1 << 14))
    assert labels == pytest.approx(29_060, abs=10)
    assert size == pytest.approx((10_000 + labels) * 120)


@pytest.mark.parametrize("case", MEASURED)
def test_measured_cases_come_out(case):
    assert simulate_case(case)["seconds"] == pytest.approx(MEASURED[case]["seconds"], rel=0.2)
