"""Which labels mean alike: S in [0, 1] between labels, without ever holding all of it where siblings are many.

Weston, Bengio and Usunier (2010, section 4): S[i, j] = 1 when the labels i and j are equivalent; the default is 1 for
i = j and for siblings, labels that share a parent in an is-a list. A parent with 5,000 children makes 25 million pairs,
so siblings are kept as parents and children, and S is unfolded one row at a time.
"""

from typing import Any, Literal, Protocol

import numpy as np

from wsabie.base.arrays import Bool, Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.sparse import to_csr

Mark = Literal["true", "sibling", "other"]


class Similar(Protocol):
    """S between the labels of a model."""

    @property
    def n_labels(self) -> int: ...

    def to(self, labels: Any) -> Float32:
        """max over some labels y of S[y, j], for every label j, (n_labels,)."""
        ...


class SharedParents:
    """S[i, j] = 1 if i = j or both have a parent in common, else 0.

    Parameters
    ----------
    parents : csr_matrix (n_labels, n_parents)
        The non-zeros of a row are the parents of the label.

    Examples
    --------
    >>> toad_frog_oak = SharedParents(np.array([[1, 0], [1, 0], [0, 1]]))
    >>> toad_frog_oak.to([0])
    array([1., 1., 0.], dtype=float32)
    """

    def __init__(self, parents: Matrix) -> None:
        parents = to_csr(parents, "parents")
        self._known = np.asarray(np.diff(parents.indptr) > 0)
        parents = parents[
            :, np.bincount(parents.indices, minlength=parents.shape[1]) > 1
        ]  # an only child has no sibling
        children = parents.T.tocsr()
        self.n_labels = int(parents.shape[0])
        self._parents: tuple[Any, Any] = (parents.indptr, parents.indices)
        self._children: tuple[Any, Any] = (children.indptr, children.indices)

    def to(self, labels: Any) -> Float32:
        """1 for these labels and their siblings, (n_labels,)."""
        alike = np.zeros(self.n_labels, np.float32)
        for parent in np.unique(_listed(self._parents, labels)):
            alike[_one(self._children, parent)] = 1
        alike[labels] = 1
        return alike

    def known(self) -> Bool:
        """Whether the is-a list knows a label at all, (n_labels,)."""
        return self._known

    def siblings(self) -> Int64:
        """How many siblings each label has, itself not counted, (n_labels,); [W] Table 1 gives their median."""
        counts, known = np.zeros(self.n_labels, np.int64), {b"": 0}
        for label in range(self.n_labels):
            parents = _one(self._parents, label).tobytes()
            if parents not in known:
                known[parents] = int(self.to([label]).sum()) - 1
            counts[label] = known[parents]
        return counts


class SparseSimilarity:
    """Any S, as its non-zero entries; S[y, j] says how well j answers for y.

    Parameters
    ----------
    S : csr_matrix (n_labels, n_labels)
        Values in [0, 1]; what stands on the diagonal is up to the maker.

    Raises
    ------
    InputError
        S is not square, or a value lies outside [0, 1].

    Examples
    --------
    >>> SparseSimilarity(np.array([[1.0, 0.5], [0.0, 1.0]])).to([0])
    array([1. , 0.5], dtype=float32)
    """

    def __init__(self, S: Matrix) -> None:
        S = to_csr(S, "S").astype(np.float32, copy=True)
        if S.shape[0] != S.shape[1]:
            raise InputError(f"S has the shape {S.shape} but it holds a value for every pair of labels; make it square")
        S.sum_duplicates()
        wrong = S.data[~((S.data >= 0) & (S.data <= 1))]
        if len(wrong):
            raise InputError(f"S holds {wrong[0]:g} but a similarity lies between 0 and 1; scale it")
        self.n_labels = int(S.shape[0])
        self._S = S

    def to(self, labels: Any) -> Float32:
        """max over the labels y of S[y, j], (n_labels,)."""
        alike = np.zeros(self.n_labels, np.float32)
        for label in labels:
            at = slice(self._S.indptr[label], self._S.indptr[label + 1])
            where = self._S.indices[at]
            alike[where] = np.maximum(alike[where], self._S.data[at])
        return alike


def as_similar(S: Any, n_labels: int) -> Similar:
    """S as the metrics take it: something with `to` as it is, a matrix as a `SparseSimilarity`.

    Raises
    ------
    InputError
        As `SparseSimilarity`, or it is about another number of labels.
    """
    found: Similar = S if hasattr(S, "to") and hasattr(S, "n_labels") else SparseSimilarity(S)
    if found.n_labels != n_labels:
        raise InputError(f"S is about {found.n_labels:,} labels but there are {n_labels:,}; make it for these labels")
    return found


def marks(labels: Any, true: Any, similar: Similar) -> list[Mark]:
    """What each label is to a thing with some true labels: one of them, a sibling of one, or another ([W] Table 9).

    Examples
    --------
    >>> marks([0, 1, 2], [1], SharedParents(np.array([[1], [1], [0]])))
    ['sibling', 'true', 'other']
    """
    alike, right = similar.to(true), set(map(int, true))
    return ["true" if int(y) in right else "sibling" if alike[y] > 0 else "other" for y in labels]


def _one(lists: tuple[Any, Any], row: int) -> Any:
    return lists[1][lists[0][row] : lists[0][row + 1]]


def _listed(lists: tuple[Any, Any], rows: Any) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *(_one(lists, int(row)) for row in rows)])
