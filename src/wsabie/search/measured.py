"""What an index is measured on and by, and how a table is known again."""

import hashlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.mapped import parts
from wsabie.base.validation import require
from wsabie.search.exact import ExactIndex
from wsabie.search.ready import float32_rows

MEASURED_AT = 10
"""The k of the recall that is measured."""
TIMED = 40
"""Queries whose times are taken."""
_QUERIES, _ROUND = 400, 20  # rounds: the threads of BLAS go on for a while on others' time
_ROWS = 1 << 14


class Reached(NamedTuple):
    """What one effort brings."""

    effort: int
    recall: float
    milliseconds: float  # median of a single query


def sample_of(exact: ExactIndex, queries: Any, rng: np.random.Generator) -> tuple[Float32, str]:
    """At most 400 of the queries, or of the labels where they are None, and in words how many of what.

    Raises
    ------
    InputError
        There are fewer than two.
    """
    asked = exact.table if queries is None else float32_rows(queries, "the queries")
    require(len(asked) > 1, "an index is measured on two queries or more; give more rows")
    asked = asked[np.sort(rng.permutation(len(asked))[:_QUERIES])].astype(np.float32)
    if queries is None and exact.centre is not None:
        asked = asked + exact.centre
    return asked, f"{len(asked):,} {'labels' if queries is None else 'rows'}"


def fingerprint(exact: ExactIndex) -> str:
    """What tells one table of labels, with its biases and its similarity, from others."""
    hashed = hashlib.sha256(f"{exact.similarity} {exact.table.shape} {exact.table.dtype}".encode())
    for part in parts(len(exact.table), _ROWS):
        hashed.update(np.ascontiguousarray(exact.table[part]).data)
    if exact.bias is not None:
        hashed.update(exact.bias.data)
    return hashed.hexdigest()


def by_turns(mine: Callable[[Any], Any], theirs: Callable[[Any], Any], queries: list[Any]) -> tuple[float, float]:
    """Median milliseconds of two searches of single queries."""
    times: tuple[list[float], list[float]] = ([], [])
    for lo in range(0, len(queries), _ROUND):
        for work, found in zip((mine, theirs), times, strict=True):
            for query in queries[lo : lo + _ROUND]:
                start = time.perf_counter()
                work(query)
                found.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[0])), float(np.median(times[1]))
