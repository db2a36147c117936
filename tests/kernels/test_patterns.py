"""The loops ask a pattern for everything: one of another shape than the pair runs in both, and gives what it should."""

from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings

from passes import assert_same, fast_block, fast_sequential, slow
from strategies import Problem, problems
from wsabie.kernels import blocks, patterns, sequential
from wsabie.kernels.towers import backprop, encode, scatter

PLAIN = (
    (sequential, "run_visits"),
    (blocks, "run_blocks"),
    (blocks, "propose_slots"),
    (blocks, "apply_labels"),
    (blocks, "part_of"),
)


class Things(NamedTuple):
    """The pair under other names."""

    things: Any


def fold_things(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    encode(pattern.things, i, q, width)
    return q


def recall_things(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    return q


def spread_things(pattern: Any, i: int, slot: int, g: Any, *rest: Any) -> None:
    backprop(pattern.things, i, g, *rest)


def spread_block_of_things(pattern: Any, rows: Any, slot: int, *rest: Any) -> None:
    scatter(pattern.things, rows, *rest)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems())
def test_a_pattern_without_a_tower_runs_in_both_loops(monkeypatch: pytest.MonkeyPatch, problem: Problem) -> None:
    """The entries as plain Python, because nothing on disk would tell these functions from older ones."""
    with monkeypatch.context() as patch:
        patch.setattr(patterns, "Pair", Things)
        patch.setitem(patterns._FOLD, Things, fold_things)
        patch.setitem(patterns._RECALL, Things, recall_things)
        patch.setitem(patterns._SPREAD, Things, spread_things)
        patch.setitem(patterns._SPREAD_BLOCK, Things, spread_block_of_things)
        for module, name in PLAIN:
            kernel = getattr(module, name)
            patch.setattr(module, name, getattr(kernel, "py_func", kernel))
        found = fast_sequential(problem), fast_block(problem)
    assert_same(found[0], slow(problem, block=False))
    assert_same(found[1], slow(problem, block=True))
