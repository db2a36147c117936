"""Products of bytes: hand-worked sums, the slow twin, the largest there are, processors without the instruction."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from wsabie.kernels.compiler import FLAGS
from wsabie.kernels.simd.byte_products import LABELS, WIDEST, multiply_block

FOUR, SINGLE = (None, None, None, None), (None,)


@numba.njit(**FLAGS)
def products(words, start, queries, starts, first, many, out):
    multiply_block(words, start, queries, starts, first, many, out)


def draw_words(n_blocks, n_words, n, seed=0):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**32, n_blocks * n_words * LABELS, dtype=np.uint32)
    queries = rng.integers(0, 2**32, (n, n_words), dtype=np.uint32)
    return words, queries, rng.integers(-(2**20), 2**20, n, dtype=np.int32)


def test_two_labels_by_hand():
    words = np.zeros(LABELS, np.uint32)
    words[0] = 1 | 2 << 8 | 3 << 16 | 255 << 24
    words[LABELS - 1] = 7
    queries = np.array([[5, -4, 3, -2]], np.int8).view(np.uint32)
    out = np.full((1, LABELS), 99, np.int32)
    products(words, 0, queries, np.array([1000], np.int32), 0, SINGLE, out)
    assert out[0, 0] == 1000 + 5 - 8 + 9 - 510
    assert out[0, LABELS - 1] == 1000 + 35
    assert (out[0, 1 : LABELS - 1] == 1000).all()


@pytest.mark.parametrize("many", [SINGLE, FOUR])
@pytest.mark.parametrize("n_words", [0, 1, 2, 25, 64])
def test_equals_the_slow_twin(many, n_words):
    words, queries, starts = draw_words(3, n_words, 6)
    for first in (0, 2):
        mine, theirs = np.empty((2, 5, LABELS), np.int32)
        products(words, n_words * LABELS, queries, starts, first, many, mine)
        multiply_block(words, n_words * LABELS, queries, starts, first, many, theirs)
        np.testing.assert_array_equal(mine[: len(many)], theirs[: len(many)])


def test_the_widest_there_are_do_not_overflow():
    n_words = WIDEST // 4
    words = np.full(n_words * LABELS, 2**32 - 1, np.uint32)
    for value in (127, -127):
        queries = np.full((1, WIDEST), value, np.int8).view(np.uint32)
        starts = np.array([-128 * value * WIDEST], np.int32)
        out = np.empty((1, LABELS), np.int32)
        products(words, 0, queries, starts, 0, SINGLE, out)
        assert (out == 127 * value * WIDEST).all()


ELSEWHERE = """
import numpy as np
from wsabie.kernels.ranking import topk
from wsabie.kernels.simd.byte_products import LABELS, has_byte_products
rng = np.random.default_rng(1)
words = rng.integers(0, 2**32, 3 * 5 * LABELS, dtype=np.uint32)
ones = np.ones(3 * LABELS, np.float32)
codes = topk.ByteCodes(words, ones, 0 * ones, np.full((3, 2), 0.5, np.float32))
asked = rng.integers(0, 2**32, (6, 5), dtype=np.uint32)
starts = -128 * asked.view(np.int8).sum(axis=1, dtype=np.int32)
one = np.ones(6, np.float32)
found = topk.allocate_candidates(6, 3, 20)
queries = topk.ByteQueries(asked, starts, one, 100 * one, one, 0 * one)
topk.screen_labels(codes, queries, found, np.empty((4, LABELS), np.int32), 0, 3)
topk.drop_below_bounds(found, found.bounds)
print(has_byte_products())
print(found.labels.tolist(), found.counts.tolist(), found.bounds.tolist())
"""


def test_other_processors_and_plain_python_find_the_same():
    """numba compiles for a processor without the instruction, or not at all."""
    environments = [{}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}, {"NUMBA_DISABLE_JIT": "1"}]
    outputs = [
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.splitlines()
        for environment in environments
    ]
    assert outputs[1][0] == "False"
    assert outputs[0][1] == outputs[1][1] == outputs[2][1]
    assert "-1" in outputs[0][1]
