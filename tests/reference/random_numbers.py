"""The random numbers of the kernels, slow: the stream of a pair is a function of (seed, epoch, pair) alone."""

from typing import Any

MASK_64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix_bits(z: int) -> int:
    """SplitMix64's output function (Steele, Lea and Flood 2014)."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK_64
    return z ^ (z >> 31)


def start_stream(seed: int, epoch: int, example: int) -> int:
    """First counter of an example's stream."""
    return mix_bits((mix_bits((seed + _GOLDEN * (epoch + 1)) & MASK_64) + _GOLDEN * example) & MASK_64)


def advance_counter(counter: int) -> int:
    """The next counter."""
    return (counter + _GOLDEN) & MASK_64


def draw_below(counter: int, n: int) -> int:
    """A number in 0..n-1: the high 32 bits, read as a fraction, times n."""
    return ((mix_bits(counter) >> 32) * n) >> 32


def draw_from_alias(alias: Any, counter: int) -> int:
    """A number with the chances of an alias table: a place by the high 32 bits, kept or handed on by the low ones."""
    bits = mix_bits(counter)
    place = ((bits >> 32) * len(alias.thresholds)) >> 32
    return place if (bits & 0xFFFFFFFF) < int(alias.thresholds[place]) else int(alias.aliases[place])


def draw_unit(counter: int) -> float:
    """A number in [0, 1) with 24 bits."""
    return (mix_bits(counter) >> 40) / 2**24
