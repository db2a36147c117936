"""Counter-based random numbers; the stream of an example depends on (seed, epoch, example) alone."""

import numpy as np

from wsabie.kernels.compiler import jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@jit
def mix_bits(z):
    """Mix the bits of a 64-bit counter by the output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = np.uint64(z)
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@jit
def start_stream(seed, epoch, example):
    """Return the first counter of the stream of one example in one epoch."""
    return mix_bits(
        mix_bits(np.uint64(seed) + _GOLDEN * (np.uint64(epoch) + np.uint64(1))) + _GOLDEN * np.uint64(example)
    )


@jit
def advance_counter(counter, n=1):
    """Return the n-th counter of a stream after this one."""
    return counter + _GOLDEN * np.uint64(n)


@jit
def draw_below(counter, n):
    """Draw a number in 0..n-1 from the high 32 bits, by multiply and shift (bias below n / 2**32)."""
    return np.int64(((mix_bits(counter) >> _S32) * np.uint64(n)) >> _S32)
