"""How high the lowest concept above two labels stands: the error of a wrong label by an is-a list.

The ImageNet challenges of 2010 and 2011 measured it so, and then withdrew it: of a wrong label the error is the height
of the lowest common ancestor, which is the longest way down from it to a leaf; of the right label it is 0. Here the
hierarchy is made of the labels and all that is above them. Concepts that are above each other (lists mined from text
have such circles) stand at one height. Labels with nothing above both are apart as if one concept
were above all.
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float64, Int64, Matrix
from wsabie.base.sparse import to_csr


class Heights:
    """What is above labels, and how high.

    Parameters
    ----------
    concepts : csr_matrix (n_labels, n_concepts)
        Non-zeros are the concepts that a label may mean.
    pairs : csr_matrix (n_concepts, n_concepts)
        Non-zeros are is-a pairs: (child, parent).

    Attributes
    ----------
    height : (n_groups,) int64
        Of concepts, those that are above each other taken as one.
    top : int
        The height above all.

    Examples
    --------
    >>> toad_frog_oak = np.eye(4)[:3]
    >>> amphibian = np.zeros((4, 4))
    >>> amphibian[:2, 3] = 1
    >>> Heights(toad_frog_oak, amphibian).between([0])
    array([0., 1., 2.])
    """

    def __init__(self, concepts: Matrix, pairs: Matrix) -> None:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        concepts, pairs = to_csr(concepts, "concepts").astype(bool), to_csr(pairs, "pairs").astype(bool)
        self.n_labels = int(concepts.shape[0])
        n, group = connected_components(pairs, connection="strong")
        ends = pairs.tocoo()
        low, high = group[ends.row], group[ends.col]
        one = low != high
        up = csr_matrix((np.ones(int(one.sum()), bool), (low[one], high[one])), shape=(n, n))
        meant = concepts.tocoo()
        own = csr_matrix((np.ones(meant.nnz, bool), (meant.row, group[meant.col])), shape=(self.n_labels, n))
        above, new = own, own
        while new.nnz:
            new = (new @ up).astype(bool)
            new = (new > above).tocsr()
            above = above + new
        self._above = above.tocsr()
        self._under = self._above.T.tocsr()
        inside = np.asarray(above.sum(axis=0)).ravel() > 0
        self.height = _heights(low[one], high[one], inside)
        self.top = int(self.height[inside].max(initial=0)) + 1

    def between(self, labels: Any) -> Float64:
        """The height of the lowest concept above one of some labels and each label, (n_labels,); 0 for themselves."""
        found = np.full(self.n_labels, self.top, float)
        above = np.unique(self._above[np.asarray(labels, np.int64)].indices)
        for concept in above[np.argsort(-self.height[above], kind="stable")]:  # lower ones write over higher ones
            at = slice(self._under.indptr[concept], self._under.indptr[concept + 1])
            found[self._under.indices[at]] = self.height[concept]
        found[labels] = 0
        return found


def _heights(low: Int64, high: Int64, inside: Any) -> Int64:
    """The longest way down from each group to one without a group below, among those inside."""
    kept = inside[low] & inside[high]
    low, high = low[kept], high[kept]
    height = np.zeros(len(inside), np.int64)
    while True:  # groups have no circles: every round settles one more level
        raised = height.copy()
        np.maximum.at(raised, high, height[low] + 1)
        if np.array_equal(raised, height):
            return height
        height = raised
