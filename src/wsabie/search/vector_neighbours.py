"""Nearest labels of a label (Weston et al. 2010, Table 4) and nearest words of a word."""

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError
from wsabie.core.validation import build_incidence
from wsabie.embedding.joint_space import SimilarityName
from wsabie.search.exact_index import find_top_k
from wsabie.vocabulary.word_vectors import WordVectors


def find_vector_neighbours(
    table: ArrayLike, labels: ArrayLike, k: int = 10, *, similarity: SimilarityName = "cosine"
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
    >>> find_vector_neighbours(table, [0], k=2)[0]
    array([[2, 1]])
    """
    table, labels = np.asarray(table, np.float32), np.atleast_1d(np.asarray(labels, np.int64))
    outside = labels[(labels < 0) | (labels >= len(table))]
    if len(outside):
        raise InputError(f"label {outside[0]} does not exist; labels are numbered 0 to {len(table) - 1}")
    itself = build_incidence(np.arange(len(labels)), labels, (len(labels), len(table)))
    return find_top_k(table[labels], table, k, similarity=similarity, exclude=itself)


def find_nearest_words(vectors: WordVectors, name: str, k: int = 10) -> list[tuple[str, float]]:
    """Return the k words with the highest cosine to a name, best first, without its own words.

    Parameters
    ----------
    vectors : WordVectors
    name : str
        One word or several.
    k : int

    Raises
    ------
    UnknownLabelError
        The name has no vector.

    Examples
    --------
    >>> known = WordVectors(["dog", "cat", "oak"], np.array([[1, 0], [1, 0.5], [-1, 0]], np.float32))
    >>> find_nearest_words(known, "Dog", 1)
    [('cat', 0.89...)]
    """
    query, name_rows = vectors.vector(name)[None], np.array(vectors.find_rows(name))
    hidden = build_incidence(np.zeros(len(name_rows), np.int64), name_rows, (1, len(vectors)))
    ids, scores = find_top_k(query, vectors.table, k, similarity="cosine", exclude=hidden)
    return [(vectors.words[row], score) for row, score in zip(ids[0], scores[0].tolist(), strict=True) if row >= 0]
