"""Vectors as bytes with a scale each, and bounds on the error."""

from collections.abc import Callable

import numpy as np

from wsabie.core.arrays import Float32, Float64
from wsabie.core.file_backed_arrays import iterate_slices
from wsabie.kernels.ranking.byte_products import LABELS
from wsabie.kernels.ranking.topk_screening import ByteCodes, ByteQueries

_ROWS = 1 << 14
_STEPS = 127
_MIDDLE = 128  # what stands for 0 among codes without a sign
_SMALLEST = float(np.finfo(np.float32).tiny)
_UP = 1 + 1e-6  # more than float32 rounds down


def encode_byte_rows(rows: Callable[[slice], Float32], offsets: Float32, dim: int) -> ByteCodes:
    """Encode rows(part), (len, dim) float32, of labels with these offsets."""
    n = len(offsets)
    n_blocks, n_words = -(-n // LABELS), -(-dim // 4)
    words = np.empty((n_blocks, n_words, LABELS), np.uint32)
    scales, largest = np.zeros((n_blocks, LABELS), np.float32), np.zeros((n_blocks, 2), np.float32)
    for part in iterate_slices(n, _ROWS):
        vectors = rows(part)
        blocks = slice(part.start // LABELS, -(-part.stop // LABELS))
        signed, scale, residual_norms = _quantise(vectors)
        filled = np.full(((blocks.stop - blocks.start) * LABELS, 4 * n_words), _MIDDLE, np.uint8)
        filled[: len(vectors), :dim] = signed + _MIDDLE
        by_label = filled.reshape(-1, LABELS, n_words, 4).view("<u4")[..., 0]
        words[blocks] = by_label.transpose(0, 2, 1)
        scales[blocks].reshape(-1)[: len(vectors)] = scale
        sizes = np.zeros((len(filled), 2))
        sizes[: len(vectors), 0] = residual_norms / scale
        sizes[: len(vectors), 1] = np.sqrt(np.einsum("ij,ij->i", signed, signed, dtype=np.float64))
        largest[blocks] = _round_up(sizes.reshape(-1, LABELS, 2).max(axis=1))
    return ByteCodes(words.reshape(-1), scales.reshape(-1), pad_offsets(offsets, n_blocks), largest)


def pad_offsets(offsets: Float32, n_blocks: int) -> Float32:
    """Pad offsets to whole blocks with -inf."""
    padded = np.full(n_blocks * LABELS, -np.inf, np.float32)
    padded[: len(offsets)] = offsets
    return padded


def encode_byte_queries(points: Float32, slack: Float64) -> ByteQueries:
    """Encode queries in bytes; `slack` bounds the error of scores for other reasons."""
    n, dim = points.shape
    signed, scale, residual_norms = _quantise(points)
    filled = np.zeros((n, dim + -dim % 4), np.int8)
    filled[:, :dim] = signed
    starts = -_MIDDLE * signed.sum(axis=1, dtype=np.int32)
    lengths = np.sqrt(np.einsum("ij,ij->i", points, points, dtype=np.float64))
    return ByteQueries(
        filled.view("<u4"), starts, scale, _round_up(lengths), _round_up(residual_norms), _round_up(slack)
    )


def _quantise(rows: Float32) -> tuple[Float32, Float32, Float64]:
    """Return integers -127 to 127 (n, dim), scales (n,), and the lengths (n,) of the residuals."""
    scale = np.maximum(np.abs(rows).max(axis=1, initial=0) / np.float32(_STEPS), np.float32(_SMALLEST))
    signed: Float32 = np.clip(np.rint(rows / scale[:, None]), -_STEPS, _STEPS)
    residuals = rows - signed * scale[:, None].astype(np.float64)
    return signed, scale, np.sqrt(np.einsum("ij,ij->i", residuals, residuals))


def _round_up(values: Float64) -> Float32:
    raised: Float32 = (values * _UP + _SMALLEST).astype(np.float32)
    return raised
