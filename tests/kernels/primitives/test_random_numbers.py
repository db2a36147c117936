"""Counter-based random numbers: known values, the twin, uniformity, and streams that do not look like each other."""

from typing import Any

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import random_numbers as random_numbers_reference

from wsabie.kernels.primitives import random_numbers

words = st.integers(0, 2**64 - 1)
GOLDEN = 0x9E3779B97F4A7C15


def test_mix_gives_the_published_numbers_of_splitmix64() -> None:
    """The first outputs of the generator that starts with 0."""
    outputs = [int(random_numbers.mix_bits(np.uint64(GOLDEN * n % 2**64))) for n in (1, 2, 3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@given(words, st.integers(1, 2**31 - 1))
def test_equals_the_twin(counter: int, n: int) -> None:
    assert int(random_numbers.mix_bits(np.uint64(counter))) == random_numbers_reference.mix_bits(counter)
    assert int(random_numbers.advance_counter(np.uint64(counter))) == random_numbers_reference.advance_counter(counter)
    assert random_numbers.draw_below(np.uint64(counter), n) == random_numbers_reference.draw_below(counter, n) < n


@given(st.integers(0, 2**63 - 1), st.integers(0, 1000), st.integers(0, 2**40))
def test_stream_equals_the_twin(seed: int, epoch: int, example: int) -> None:
    assert int(random_numbers.start_stream(seed, epoch, example)) == random_numbers_reference.start_stream(
        seed, epoch, example
    )


@numba.njit
def draw(seed: int, epoch: int, example: int, n: int, size: int) -> Any:
    """`size` draws below n from one stream."""
    counter, out = random_numbers.start_stream(seed, epoch, example), np.empty(size, np.int64)
    for t in range(size):
        out[t] = random_numbers.draw_below(counter, n)
        counter = random_numbers.advance_counter(counter)
    return out


def chi_square(draws: np.ndarray, n: int) -> float:
    """In standard deviations above what uniform draws have on average."""
    expected = len(draws) / n
    statistic = ((np.bincount(draws, minlength=n) - expected) ** 2).sum() / expected
    return float((statistic - (n - 1)) / np.sqrt(2 * (n - 1)))


def test_below_is_uniform_along_a_stream() -> None:
    draws = draw(7, 0, 0, 37, 100_000)
    assert abs(chi_square(draws, 37)) < 4
    assert abs(chi_square(draws[1:] * 37 + draws[:-1], 37 * 37)) < 4


def test_first_draws_of_neighbouring_examples_and_epochs_are_uniform_and_independent() -> None:
    draws = np.array([[draw(7, e, x, 10, 1)[0] for x in range(4000)] for e in range(5)])
    assert abs(chi_square(draws.ravel(), 10)) < 4
    assert abs(chi_square((draws[:, 1:] * 10 + draws[:, :-1]).ravel(), 100)) < 4
    assert abs(chi_square((draws[1:] * 10 + draws[:-1]).ravel(), 100)) < 4


def test_seeds_epochs_and_examples_give_other_streams() -> None:
    streams = {int(random_numbers.start_stream(s, e, x)) for s in range(10) for e in range(10) for x in range(10)}
    assert len(streams) == 1000
