"""Slow, plain NumPy twin of `label_pairs`: the written specification, with arrays of all pairs."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float32, Int64


def compute_all_edges(W: Any, weight: float) -> Float32:
    """Edges of all pairs, (n_labels, n_labels), added up from the first dimension to the last.

    Kernels may add a product to the sum before it is rounded, so that theirs differ in the last digit.

    Examples
    --------
    >>> compute_all_edges([[1, 2], [3, -1]], 0.5)
    array([[2.5, 0.5], [0.5, 5. ]], dtype=float32)
    """
    W = np.asarray(W, np.float32)
    scaled, edges = np.float32(weight) * W, np.zeros((len(W), len(W)), np.float32)
    for d in range(W.shape[1]):
        edges += np.outer(W[:, d], scaled[:, d])
    return edges


def score_pairs(a: Any, b: Any, edges: Float32, extra: Any = 0.0) -> Float32:
    """Scores of all pairs of one query; `extra` is added last, and is -inf for what is not a candidate.

    Examples
    --------
    >>> score_pairs([0, 1], [0, 10], np.zeros((2, 2), np.float32))
    array([[ 0., 10.], [ 1., 11.]], dtype=float32)
    """
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    scores: Float32 = ((a[:, None] + b[None, :]) + edges) + np.asarray(extra, np.float32)
    return scores


def select_top_pairs(scores: Float32, k: int) -> tuple[Int64, Int64, Float32]:
    """The k best: higher score first, then lower object, then lower part; -1 and -inf where there are no more.

    Examples
    --------
    >>> select_top_pairs(np.array([[1, 3], [3, -np.inf]], np.float32), 4)
    (array([ 0,  1,  0, -1]), array([ 1,  0,  0, -1]), array([  3.,   3.,   1., -inf], dtype=float32))
    """
    objects, parts, best = np.full(k, -1), np.full(k, -1), np.full(k, -np.inf, np.float32)
    flat = scores.ravel()
    order = np.argsort(-flat, kind="stable")
    order = order[flat[order] > -np.inf][:k]
    objects[: len(order)], parts[: len(order)] = np.divmod(order, len(scores))
    best[: len(order)] = flat[order]
    return objects, parts, best


def count_pairs(scores: Float32, i: int, j: int) -> tuple[int, int]:
    """Return how many pairs score more than (i, j), and how many others the same.

    Examples
    --------
    >>> count_pairs(np.array([[1, 3], [3, -np.inf]], np.float32), 0, 1)
    (0, 1)
    """
    return int((scores > scores[i, j]).sum()), int((scores == scores[i, j]).sum()) - 1
