"""Turns among several passes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.training.trainer import report_pass_progress, run_interleaved, run_sequentially
from wsabie.training.training_data import RowBlock, build_targets


def turns(visits: int, size: int, number: int, order: list[int]) -> Iterator[int]:
    """Visits in turns of a size; says whose turn it was."""
    while visits:
        order.append(number)
        n_visits = min(size, visits)
        visits -= n_visits
        yield n_visits


lengths = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=5)


@given(lengths)
def test_everything_is_visited_and_nobody_is_more_than_a_turn_ahead(passes: list[tuple[int, int]]) -> None:
    order: list[int] = []
    turn_sizes = list(run_interleaved([(n, turns(n, size, k, order)) for k, (n, size) in enumerate(passes)]))
    assert sum(turn_sizes) == sum(n for n, _ in passes)
    n_done = [0] * len(passes)
    for number, visits in zip(order, turn_sizes, strict=True):
        shares = [d / n for d, (n, _) in zip(n_done, passes, strict=True) if n]
        assert n_done[number] / passes[number][0] == min(shares)
        n_done[number] += visits


@given(lengths)
def test_one_by_one_ends_a_pass_before_the_next_begins(passes: list[tuple[int, int]]) -> None:
    order: list[int] = []
    turn_sizes = list(run_sequentially((n, turns(n, size, k, order)) for k, (n, size) in enumerate(passes)))
    assert order == sorted(order)
    assert sum(turn_sizes) == sum(n for n, _ in passes)


def test_a_pass_that_makes_less_than_it_said_does_not_stop_the_others() -> None:
    assert list(run_interleaved([(10, iter([1])), (4, iter([1, 1, 1, 1]))])) == [1] * 5


def test_progress_is_told_of_pairs() -> None:
    """Three rows with 12, 3 and 1 pairs are 4 visits: 4 pairs each, in the mean."""
    Y = csr_matrix(np.array([[1] * 12, [1] * 3 + [0] * 9, [1] + [0] * 11], np.int8))
    block, steps = RowBlock(np.zeros((3, 1), np.float32), build_targets(Y, None, "mean")), []

    class Bar:
        def advance(self, n: int = 1, **figures: Any) -> None:
            steps.append(n)

    assert list(report_pass_progress(iter([1, 2, 1]), Bar(), block)) == [1, 2, 1]
    assert steps == [4, 8, 4]
