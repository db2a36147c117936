"""Turns of relations: every pass is run to its end, interleaved or one after another."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from wsabie.training.relation_turns import run_interleaved, run_sequentially


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
