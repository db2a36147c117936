"""Vectors as bytes with a scale each, and how much that leaves out (`kernels.screening`)."""

from collections.abc import Callable

import numpy as np

from wsabie.base.arrays import Float32, Float64
from wsabie.base.mapped import parts
from wsabie.kernels.byte_products import LABELS
from wsabie.kernels.screening import ByteCodes, ByteQueries

_ROWS = 1 << 14
_STEPS = 127
_MIDDLE = 128  # what stands for 0 among codes without a sign
_SMALLEST = float(np.finfo(np.float32).tiny)
_UP = 1 + 1e-6  # more than float32 rounds down


def codes_of(rows: Callable[[slice], Float32], offsets: Float32, dim: int) -> ByteCodes:
    """Codes of rows(part), (len, dim) float32, for labels with these offsets."""
    n = len(offsets)
    n_blocks, n_words = -(-n // LABELS), -(-dim // 4)
    words = np.empty((n_blocks, n_words, LABELS), np.uint32)
    scales, largest = np.zeros((n_blocks, LABELS), np.float32), np.zeros((n_blocks, 2), np.float32)
    for part in parts(n, _ROWS):
        some = rows(part)
        blocks = slice(part.start // LABELS, -(-part.stop // LABELS))
        signed, scale, left = _as_bytes(some)
        filled = np.full(((blocks.stop - blocks.start) * LABELS, 4 * n_words), _MIDDLE, np.uint8)
        filled[: len(some), :dim] = signed + _MIDDLE
        by_label = filled.reshape(-1, LABELS, n_words, 4).view("<u4")[..., 0]
        words[blocks] = by_label.transpose(0, 2, 1)
        scales[blocks].reshape(-1)[: len(some)] = scale
        sizes = np.zeros((len(filled), 2))
        sizes[: len(some), 0] = left / scale
        sizes[: len(some), 1] = np.sqrt(np.einsum("ij,ij->i", signed, signed, dtype=np.float64))
        largest[blocks] = _up(sizes.reshape(-1, LABELS, 2).max(axis=1))
    return ByteCodes(words.reshape(-1), scales.reshape(-1), padded(offsets, n_blocks), largest)


def padded(offsets: Float32, n_blocks: int) -> Float32:
    """Offsets of whole blocks, -inf for what is no label."""
    whole = np.full(n_blocks * LABELS, -np.inf, np.float32)
    whole[: len(offsets)] = offsets
    return whole


def queries_of(points: Float32, slack: Float64) -> ByteQueries:
    """Queries in bytes; scores are to be off by no more than `slack` for other reasons."""
    n, dim = points.shape
    signed, scale, left = _as_bytes(points)
    filled = np.zeros((n, dim + -dim % 4), np.int8)
    filled[:, :dim] = signed
    starts = -_MIDDLE * signed.sum(axis=1, dtype=np.int32)
    lengths = np.sqrt(np.einsum("ij,ij->i", points, points, dtype=np.float64))
    return ByteQueries(filled.view("<u4"), starts, scale, _up(lengths), _up(left), _up(slack))


def _as_bytes(rows: Float32) -> tuple[Float32, Float32, Float64]:
    """Whole numbers -127 to 127 (n, dim), scales (n,), and the lengths (n,) of what they leave out."""
    scale = np.maximum(np.abs(rows).max(axis=1, initial=0) / np.float32(_STEPS), np.float32(_SMALLEST))
    signed: Float32 = np.clip(np.rint(rows / scale[:, None]), -_STEPS, _STEPS)
    left = rows - signed * scale[:, None].astype(np.float64)
    return signed, scale, np.sqrt(np.einsum("ij,ij->i", left, left))


def _up(values: Float64) -> Float32:
    raised: Float32 = (values * _UP + _SMALLEST).astype(np.float32)
    return raised
