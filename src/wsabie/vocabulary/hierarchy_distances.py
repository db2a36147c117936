"""Distances of labels by an is-a list: hops, and the height of the lowest common ancestor.

The height is the longest way down from the ancestor to a leaf. The ImageNet challenges of 2010 and 2011 used this error
and later withdrew it. The error of the right label is 0. The hierarchy holds the labels and all their ancestors;
concepts in a circle, which lists mined from text have, share one height. Labels without a common ancestor get the
height of a concept above all.
"""

import numpy as np

from wsabie.core.arrays import Bool, Float64, Int32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.validation import build_incidence, convert_to_csr, gather_entries
from wsabie.vocabulary.label_similarity import LabelNumbers

FAR = np.iinfo(np.int32).max
"""Hops to labels that were not reached."""


class AncestorHeights:
    """Ancestors of labels and their heights.

    Parameters
    ----------
    concepts : csr_matrix (n_labels, n_concepts)
        Non-zeros are the concepts that a label may mean.
    pairs : csr_matrix (n_concepts, n_concepts)
        Non-zeros are is-a pairs: (child, parent).

    Attributes
    ----------
    height : (n_groups,) int64
        Height of each group of concepts; concepts in a circle are one group.
    top : int
        Height above all concepts.

    Examples
    --------
    >>> toad_frog_oak = np.eye(4)[:3]
    >>> amphibian = np.zeros((4, 4))
    >>> amphibian[:2, 3] = 1
    >>> AncestorHeights(toad_frog_oak, amphibian).compute_heights([0])
    array([0., 1., 2.])
    """

    def __init__(self, concepts: Matrix, pairs: Matrix) -> None:
        from scipy.sparse.csgraph import connected_components

        concepts, pairs = convert_to_csr(concepts, "concepts").astype(bool), convert_to_csr(pairs, "pairs").astype(bool)
        self.n_labels = int(concepts.shape[0])
        n_groups, group = connected_components(pairs, connection="strong")
        ends = pairs.tocoo()
        low, high = group[ends.row], group[ends.col]
        links_groups = low != high
        up = build_incidence(low[links_groups], high[links_groups], (n_groups, n_groups), bool)
        label_concepts = concepts.tocoo()
        shape = self.n_labels, n_groups
        label_groups = build_incidence(label_concepts.row, group[label_concepts.col], shape, bool)
        ancestors, newest = label_groups, label_groups
        while newest.nnz:
            newest = ((newest @ up).astype(bool) > ancestors).tocsr()
            ancestors = ancestors + newest
        self._ancestors = ancestors.tocsr()
        self._labels_of_ancestor = self._ancestors.T.tocsr()
        is_ancestor = np.asarray(ancestors.sum(axis=0)).ravel() > 0
        self.height = _compute_heights(low[links_groups], high[links_groups], is_ancestor)
        self.top = int(self.height[is_ancestor].max(initial=0)) + 1

    def compute_heights(self, labels: LabelNumbers) -> Float64:
        """Return heights of the lowest common ancestors with any of `labels`, (n_labels,); 0 for these."""
        heights = np.full(self.n_labels, self.top, float)
        ancestors = np.unique(gather_entries(self._ancestors, labels))
        highest_first = np.argsort(-self.height[ancestors], kind="stable")  # lower heights overwrite higher ones
        for concept in ancestors[highest_first]:
            span = slice(self._labels_of_ancestor.indptr[concept], self._labels_of_ancestor.indptr[concept + 1])
            heights[self._labels_of_ancestor.indices[span]] = self.height[concept]
        heights[labels] = 0
        return heights


def _compute_heights(low: Int64, high: Int64, is_ancestor: Bool) -> Int64:
    """Return the longest way down from each group to a leaf, among the ancestors."""
    is_counted = is_ancestor[low] & is_ancestor[high]
    low, high = low[is_counted], high[is_counted]
    height = np.zeros(len(is_ancestor), np.int64)
    while True:  # groups have no circles: every round completes one more level
        raised = height.copy()
        np.maximum.at(raised, high, height[low] + 1)
        if np.array_equal(raised, height):
            return height
        height = raised


class HopDistances:
    """Hops between labels.

    Parameters
    ----------
    concepts : csr_matrix (n_labels, n_concepts)
        Non-zeros are the concepts that a label may mean; a label without one is near to itself alone.
    pairs : csr_matrix (n_concepts, n_concepts)
        Non-zeros are is-a pairs, in any direction.

    Examples
    --------
    >>> toad_frog_oak = np.eye(4)[:3]
    >>> amphibian = np.zeros((4, 4))
    >>> amphibian[:2, 3] = 1
    >>> HopDistances(toad_frog_oak, amphibian).compute_hops([0], 2).tolist()
    [0, 2, 2147483647]
    """

    def __init__(self, concepts: Matrix, pairs: Matrix) -> None:
        concepts = convert_to_csr(concepts, "concepts").astype(np.int8)
        pairs = convert_to_csr(pairs, "pairs").astype(bool)
        self.n_labels, self._n_concepts = concepts.shape
        if pairs.shape != (self._n_concepts, self._n_concepts):
            raise InputError(f"pairs is {pairs.shape}, and there are {self._n_concepts:,} concepts; give a square one")
        self._concepts, self._labels, self._next = concepts, concepts.T.tocsr(), (pairs + pairs.T).tocsr()

    def is_known(self) -> Bool:
        """Return which labels are in the is-a list, (n_labels,)."""
        return np.asarray(np.diff(self._concepts.indptr) > 0)

    def compute_hops(
        self, labels: LabelNumbers, n_needed: int, candidate: Bool | None = None, *, max_rings: int = FAR
    ) -> Int32:
        """Return the hops from the nearest of some labels, by rings until enough candidates are reached.

        Parameters
        ----------
        labels : list of int
            Labels at 0 hops.
        n_needed : int
        candidate : (n_labels,) bool or None
            Labels that count; None: all.
        max_rings : int
            Maximum number of rings.

        Returns
        -------
        hops : (n_labels,) int32
            `FAR` for labels that no ring reached and for labels that are not candidates.
        """
        sources = np.unique(np.asarray(labels, np.int64))
        candidate = np.ones(self.n_labels, bool) if candidate is None else candidate
        hops = np.full(self.n_labels, FAR, np.int32)
        hops[sources[candidate[sources]]] = 0
        ring, n_reached = 0, int(candidate[sources].sum())
        frontier, visited = np.unique(gather_entries(self._concepts, sources)), np.zeros(self._n_concepts, bool)
        while len(frontier):
            visited[frontier] = True
            reached = np.unique(gather_entries(self._labels, frontier))
            reached = reached[(hops[reached] == FAR) & candidate[reached]]
            hops[reached] = ring
            n_reached += len(reached)
            if n_reached >= n_needed or ring >= max_rings:
                break
            frontier = np.unique(gather_entries(self._next, frontier))
            frontier, ring = frontier[~visited[frontier]], ring + 1
        return hops


def find_radius(hops: Int32, k: int) -> int:
    """Return the smallest number of hops that k labels lie within; below `FAR` even if there are fewer.

    Examples
    --------
    >>> hops = np.array([0, 2, FAR, 1, 2], np.int32)
    >>> [find_radius(hops, k) for k in (1, 2, 3, 9)]
    [0, 1, 2, 2]
    """
    near = np.sort(hops[hops < FAR])
    return int(near[min(k, len(near)) - 1]) if len(near) else 0
