"""How far labels are from each other in an is-a list: the correct sets of hierarchical precision.

Frome and others ("DeViSE", 2013, appendix A.3): the correct set of a true label for k is the label itself, then all
labels one hop away, two hops, and so on, until it has k labels or more. A hop is an is-a pair in either direction, and
may pass through a concept that is no label. Rings are whole, so that a set may have more than k labels; it has fewer
where nothing more can be reached, for which the paper's loop has no end.
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Bool, Int32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.sparse import to_csr

FAR = np.iinfo(np.int32).max
"""Hops to what was not reached."""


class Hops:
    """Hops between labels.

    Parameters
    ----------
    concepts : csr_matrix (n_labels, n_concepts)
        Non-zeros are the concepts that a label may mean; a label without one is near to nothing but itself.
    pairs : csr_matrix (n_concepts, n_concepts)
        Non-zeros are is-a pairs, in any direction.

    Examples
    --------
    >>> toad_frog_oak = np.eye(4)[:3]
    >>> amphibian = np.zeros((4, 4))
    >>> amphibian[:2, 3] = 1
    >>> Hops(toad_frog_oak, amphibian).around([0], 2).tolist()
    [0, 2, 2147483647]
    """

    def __init__(self, concepts: Matrix, pairs: Matrix) -> None:
        concepts, pairs = to_csr(concepts, "concepts").astype(np.int8), to_csr(pairs, "pairs").astype(bool)
        self.n_labels, self._n_concepts = concepts.shape
        if pairs.shape != (self._n_concepts, self._n_concepts):
            raise InputError(f"pairs is {pairs.shape}, and there are {self._n_concepts:,} concepts; give a square one")
        self._concepts = _lists(concepts)
        self._labels = _lists(concepts.T.tocsr())
        self._next = _lists((pairs + pairs.T).tocsr())

    def known(self) -> Bool:
        """Whether the is-a list knows a label at all, (n_labels,)."""
        return np.asarray(np.diff(self._concepts[0]) > 0)

    def around(self, labels: Any, enough: int, candidate: Bool | None = None, *, upto: int = FAR) -> Int32:
        """Hops from the nearest of some labels, ring after ring until enough candidates are reached.

        Parameters
        ----------
        labels : list of int
            They are 0 hops away.
        enough : int
        candidate : (n_labels,) bool or None
            What counts; None: every label.
        upto : int
            Rings at most.

        Returns
        -------
        hops : (n_labels,) int32
            `FAR` where no ring came to, or for what is no candidate.
        """
        start = np.unique(np.asarray(labels, np.int64))
        candidate = np.ones(self.n_labels, bool) if candidate is None else candidate
        hops = np.full(self.n_labels, FAR, np.int32)
        hops[start[candidate[start]]] = 0
        ring, found = 0, int(candidate[start].sum())
        front, seen = np.unique(_of(self._concepts, start)), np.zeros(self._n_concepts, bool)
        while len(front):
            seen[front] = True
            reached = np.unique(_of(self._labels, front))
            reached = reached[(hops[reached] == FAR) & candidate[reached]]
            hops[reached] = ring
            found += len(reached)
            if found >= enough or ring >= upto:
                break
            front = np.unique(_of(self._next, front))
            front, ring = front[~seen[front]], ring + 1
        return hops


def radius(hops: Int32, k: int) -> int:
    """The smallest number of hops that k labels lie within; below `FAR` where there are fewer.

    Examples
    --------
    >>> hops = np.array([0, 2, FAR, 1, 2], np.int32)
    >>> [radius(hops, k) for k in (1, 2, 3, 9)]
    [0, 1, 2, 2]
    """
    near = np.sort(hops[hops < FAR])
    return int(near[min(k, len(near)) - 1]) if len(near) else 0


def _lists(matrix: Matrix) -> tuple[Any, Any]:
    return matrix.indptr.astype(np.int64), matrix.indices


def _of(lists: tuple[Any, Any], rows: Int64) -> Int64:
    """All entries of some rows."""
    starts, counts = lists[0][rows], lists[0][rows + 1] - lists[0][rows]
    before = np.repeat(starts - np.cumsum(counts) + counts, counts)
    return np.asarray(lists[1][before + np.arange(len(before))], np.int64)
