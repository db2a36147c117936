"""Similarity S in [0, 1] between labels, computed row by row.

Weston, Bengio and Usunier (2010, section 4): S[i, j] = 1 when the labels i and j are equivalent; the default is 1 for
i = j and for siblings, labels that share a parent in an is-a list. A parent with 5,000 children makes 25 million pairs.
Siblings are therefore stored as parents and children, and S is unfolded one row at a time.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from wsabie.core.arrays import Bool, Float32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.validation import convert_to_csr, gather_entries

LabelNumbers: TypeAlias = Sequence[int] | Int64
LabelMatch = Literal["true", "sibling", "other"]


class LabelSimilarity(Protocol):
    """S between the labels of a model."""

    n_labels: int

    def max_similarity(self, labels: LabelNumbers) -> Float32:
        """Return the maximum over some labels y of S[y, j], for every label j, (n_labels,)."""
        ...


class SiblingSimilarity:
    """S[i, j] = 1 if i = j or both have a parent in common, else 0.

    Parameters
    ----------
    parents : csr_matrix (n_labels, n_parents)
        The non-zeros of a row are the parents of the label.

    Examples
    --------
    >>> toad_frog_oak = SiblingSimilarity(np.array([[1, 0], [1, 0], [0, 1]]))
    >>> toad_frog_oak.max_similarity([0])
    array([1., 1., 0.], dtype=float32)
    """

    def __init__(self, parents: Matrix) -> None:
        parents = convert_to_csr(parents, "parents")
        self._has_parent = np.asarray(np.diff(parents.indptr) > 0)
        has_siblings = np.bincount(parents.indices, minlength=parents.shape[1]) > 1  # an only child has none
        parents = parents[:, has_siblings]
        self.n_labels = int(parents.shape[0])
        self._parents, self._children = parents, parents.T.tocsr()

    def max_similarity(self, labels: LabelNumbers) -> Float32:
        """Return 1 for these labels and their siblings, 0 for others, (n_labels,)."""
        similarity = np.zeros(self.n_labels, np.float32)
        similarity[gather_entries(self._children, np.unique(gather_entries(self._parents, labels)))] = 1
        similarity[labels] = 1
        return similarity

    def is_known(self) -> Bool:
        """Return which labels are in the is-a list, (n_labels,)."""
        return self._has_parent

    def siblings(self) -> Int64:
        """Count the siblings of each label, (n_labels,); their median is in Weston et al. 2010, Table 1."""
        counts, counts_by_parents = np.zeros(self.n_labels, np.int64), {b"": 0}
        for label in range(self.n_labels):
            parents = gather_entries(self._parents, [label]).tobytes()
            if parents not in counts_by_parents:
                counts_by_parents[parents] = int(self.max_similarity([label]).sum()) - 1
            counts[label] = counts_by_parents[parents]
        return counts


class SparseSimilarity:
    """Any S, as its non-zero entries; S[y, j] is how well j can replace y.

    Parameters
    ----------
    S : csr_matrix (n_labels, n_labels)
        Values in [0, 1], the diagonal included.

    Raises
    ------
    InputError
        S is not square, or a value lies outside [0, 1].

    Examples
    --------
    >>> SparseSimilarity(np.array([[1.0, 0.5], [0.0, 1.0]])).max_similarity([0])
    array([1. , 0.5], dtype=float32)
    """

    def __init__(self, S: Matrix) -> None:
        S = convert_to_csr(S, "S").astype(np.float32, copy=True)
        if S.shape[0] != S.shape[1]:
            raise InputError(f"S has the shape {S.shape} but it holds a value for every pair of labels; make it square")
        S.sum_duplicates()
        invalid = S.data[~((S.data >= 0) & (S.data <= 1))]
        if len(invalid):
            raise InputError(f"S holds {invalid[0]:g} but a similarity lies between 0 and 1; scale it")
        self.n_labels = int(S.shape[0])
        self._S = S

    def max_similarity(self, labels: LabelNumbers) -> Float32:
        """Return the maximum over the labels y of S[y, j], (n_labels,)."""
        similarity = np.zeros(self.n_labels, np.float32)
        for label in labels:
            span = slice(self._S.indptr[label], self._S.indptr[label + 1])
            columns = self._S.indices[span]
            similarity[columns] = np.maximum(similarity[columns], self._S.data[span])
        return similarity


def as_label_similarity(S: Any, n_labels: int) -> LabelSimilarity:
    """Convert S to a `LabelSimilarity`: a matrix becomes a `SparseSimilarity`, other objects stay.

    Raises
    ------
    InputError
        See `SparseSimilarity`; or S is for another number of labels.
    """
    similarity: LabelSimilarity = S if hasattr(S, "max_similarity") and hasattr(S, "n_labels") else SparseSimilarity(S)
    if similarity.n_labels != n_labels:
        raise InputError(
            f"S is about {similarity.n_labels:,} labels but there are {n_labels:,}; make it for these labels"
        )
    return similarity


def classify_labels(labels: LabelNumbers, true_labels: LabelNumbers, similarity: LabelSimilarity) -> list[LabelMatch]:
    """Classify labels as true, sibling of a true one, or other (Weston et al. 2010, Table 9).

    Examples
    --------
    >>> classify_labels([0, 1, 2], [1], SiblingSimilarity(np.array([[1], [1], [0]])))
    ['sibling', 'true', 'other']
    """
    scores, true_set = similarity.max_similarity(true_labels), set(map(int, true_labels))
    return ["true" if int(y) in true_set else "sibling" if scores[y] > 0 else "other" for y in labels]
