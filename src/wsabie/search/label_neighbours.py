"""Nearest labels of a label: translations, synonyms and relatives (Weston et al. 2010, Table 4)."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError
from wsabie.embedding.joint_space import SimilarityName
from wsabie.search.exact_index import find_top_k


def find_label_neighbours(
    table: Any, labels: Any, k: int = 10, *, similarity: SimilarityName = "cosine"
) -> tuple[Int64, Float32]:
    """Return the k labels nearest to each of some labels, without the label itself.

    Parameters
    ----------
    table : (n_labels, dim) float32
    labels : (n,) int
    k : int
    similarity : {"cosine", "dot", "euclidean"}

    Returns
    -------
    ids : (n, k) int64
        Nearest first, equal ones by id; -1 where the table has fewer than k others.
    similarities : (n, k) float32

    Raises
    ------
    InputError
        When a label does not exist.

    Examples
    --------
    >>> table = np.array([[1, 0], [0, 1], [2, 0.1]], np.float32)
    >>> find_label_neighbours(table, [0], k=2)[0]
    array([[2, 1]])
    """
    from scipy.sparse import csr_matrix

    table, labels = np.asarray(table, np.float32), np.atleast_1d(np.asarray(labels, np.int64))
    outside = labels[(labels < 0) | (labels >= len(table))]
    if len(outside):
        raise InputError(f"label {outside[0]} does not exist; labels are numbered 0 to {len(table) - 1}")
    itself = csr_matrix(
        (np.ones(len(labels), np.int8), (np.arange(len(labels)), labels)), shape=(len(labels), len(table))
    )
    return find_top_k(table[labels], table, k, similarity=similarity, exclude=itself)
