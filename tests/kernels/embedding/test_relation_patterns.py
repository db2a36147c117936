"""The loops ask a pattern for everything: one of another shape than the pair runs in both, and gives what it should."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from passes import assert_same, fast_block, fast_sequential, slow
from strategies import label_rows, make_problem, make_step_config, random_space, sparse_rows
from wsabie.kernels.embedding import relation_patterns
from wsabie.kernels.embedding.towers import backprop_block, backprop_entity, encode_block, encode_entity


class RenamedTowerPattern(NamedTuple):
    """The tower pattern under other names."""

    items: Any


def encode_items(pattern: Any, i: int, q: Any, width: Any) -> Any:
    encode_entity(pattern.items, i, q, width)
    return q


def encode_item_block(pattern: Any, rows: Any, *arguments: Any) -> None:
    encode_block(pattern.items, rows, *arguments)


def load_items(pattern: Any, i: int, q: Any, width: Any) -> Any:
    return q


def backprop_items(pattern: Any, i: int, g: Any, *arguments: Any) -> None:
    backprop_entity(pattern.items, i, g, *arguments)


def backprop_item_block(pattern: Any, rows: Any, *arguments: Any) -> None:
    backprop_block(pattern.items, rows, *arguments)


def compare() -> None:
    """Compare both loops on `RenamedTowerPattern` with the twin, which knows `TowerPattern` alone."""
    pair = relation_patterns.TowerPattern
    relation_patterns.encode_query.register(RenamedTowerPattern)(encode_items)
    relation_patterns.encode_query_block.register(RenamedTowerPattern)(encode_item_block)
    relation_patterns.load_query.register(RenamedTowerPattern)(load_items)
    relation_patterns.backprop_query.register(RenamedTowerPattern)(backprop_items)
    relation_patterns.backprop_query_block.register(RenamedTowerPattern)(backprop_item_block)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = sparse_rows(8, 9, 0.4, rng), label_rows(8, 12, 0.1, 0.1, rng)
        problem = make_problem(random_space(9, 12, "dot", rng), X, Y, make_step_config(12, max_norm_rows=0.9))
        relation_patterns.TowerPattern = RenamedTowerPattern  # type: ignore[assignment,misc]
        outcomes = fast_sequential(problem), fast_block(problem)
        relation_patterns.TowerPattern = pair  # type: ignore[misc]
        assert_same(outcomes[0], slow(problem, block=False))
        assert_same(outcomes[1], slow(problem, block=True))
        assert not np.array_equal(outcomes[0].features, problem.space.features)


def test_a_pattern_without_a_tower_runs_in_both_loops() -> None:
    """Run as plain Python: the cache on disk could not tell these functions from older ones."""
    tests = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", "from kernels.embedding.test_relation_patterns import compare; compare()"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
