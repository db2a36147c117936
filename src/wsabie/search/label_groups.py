"""The shape of a label tree: labels that are confused, or lie near to each other, go down together."""

from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.base.sparse import to_csr

_CONFUSED = 16  # eigenvectors at most
_ITERATIONS = 60
_ROUNDS = 20
_MANY = 5000  # labels that are grouped by a part of them at a time
_FEW = 8  # labels with a confusion, per group, below which points tell more


class Shape(NamedTuple):
    """A tree over labels: nodes level by level, the root first; children of a node, and its labels, stand in a row."""

    order: Int64  # (n_labels,), the labels as they stand in the tree
    starts: Int64  # (n_nodes,), places in `order` of a node's labels
    stops: Int64
    parents: Int64  # (n_nodes,), -1 for the root
    first: Int64  # (n_nodes,), first child; -1: none
    counts: Int64  # (n_nodes,), children

    def paths(self) -> Int64:
        """The nodes that hold each label below the root, (n_labels, depth), from above; -1 where there are no more."""
        held = np.zeros(len(self.order), np.int64)
        levels: list[Int64] = []
        node = np.flatnonzero(self.parents == 0)
        while len(node):
            level = np.full(len(self.order), -1, np.int64)
            for one in node:
                level[self.order[self.starts[one] : self.stops[one]]] = one
            levels.append(level)
            node = np.flatnonzero(np.isin(self.parents, node))
        return np.stack(levels, axis=1) if levels else held[:, None][:, :0]


def fits(shape: Shape, n_labels: int) -> bool:
    """Whether arrays that come from a file are a tree over so many labels, which every walk leaves in the end."""
    order, starts, stops, parents, first, counts = shape
    n_nodes = len(starts)
    if not n_nodes or not np.array_equal(np.sort(order), np.arange(n_labels)):
        return False
    inner = counts > 0
    below = first[inner] > np.flatnonzero(inner)
    inside = (starts >= 0) & (starts <= stops) & (stops <= n_labels)
    there = first[inner] + counts[inner] <= n_nodes
    return bool((counts >= 0).all() and below.all() and there.all() and inside.all() and (parents < n_nodes).all())


def grown(points: Float32, branching: int, leaf: int, confusion: Any, seed: int) -> Shape:
    """Split the labels into at most `branching` groups, and these again, until a group has at most `leaf` labels.

    With `confusion`, (n_labels, n_labels) sparse counts of the flat model's answers j where i was right, groups come
    from the spectral clustering of A = (C + C') / 2 (Bengio, Weston and Grangier 2010, algorithm 2); a label that was
    never confused goes to the group whose mean point is nearest. Without it, and where few labels of a node were
    confused, groups are k-means of the points.
    """
    affinity = None if confusion is None else _affinity(confusion)
    order = np.arange(len(points))
    starts, stops, parents, first, counts = [0], [len(points)], [-1], list[int](), list[int]()
    node = 0
    while node < len(starts):
        lo, hi = starts[node], stops[node]
        if hi - lo <= leaf:
            first.append(-1)
            counts.append(0)
        else:
            own, most = order[lo:hi], min(branching, 2 * -(-(hi - lo) // leaf))  # leaves that are half full
            groups = _groups(points[own], most, None if affinity is None else affinity[own][:, own], seed + node)
            order[lo:hi] = own[np.argsort(groups, kind="stable")]
            sizes = np.bincount(groups)
            ends = lo + np.cumsum(sizes)
            first.append(len(starts))
            counts.append(len(sizes))
            starts += (ends - sizes).tolist()
            stops += ends.tolist()
            parents += [node] * len(sizes)
        node += 1
    return Shape(order, *(np.array(column, np.int64) for column in (starts, stops, parents, first, counts)))


def _affinity(confusion: Any) -> Any:
    from scipy.sparse import coo_matrix

    counts = to_csr(confusion, "the confusion matrix").astype(np.float64).tocoo()
    others = (counts.row != counts.col) & (counts.data > 0)
    counts = coo_matrix((counts.data[others], (counts.row[others], counts.col[others])), counts.shape).tocsr()
    return (counts + counts.T) / 2


def _groups(points: Float32, branching: int, affinity: Any, seed: int) -> Int64:
    """A group for each label, numbered without gaps; two or more."""
    branching = min(branching, len(points))
    known = np.empty(0, np.int64) if affinity is None else np.flatnonzero(np.diff(affinity.indptr))
    if len(known) >= _FEW * branching:
        groups = np.full(len(points), -1)
        groups[known] = _clustered(_spectral(affinity[known][:, known], branching, seed), branching, seed)
        rest = np.flatnonzero(groups < 0)
        if len(rest):
            means = np.stack([points[groups == group].mean(axis=0) for group in range(groups.max() + 1)])
            groups[rest] = _nearest(points[rest], means)
    else:
        groups = _clustered(points, branching, seed)
    found: Int64 = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    if found.max() == 0:  # all alike
        found = np.arange(len(points)) * branching // len(points)
    return found


def _spectral(affinity: Any, groups: int, seed: int) -> Float32:
    """Rows of the first eigenvectors of D^-1/2 A D^-1/2, at unit length (Ng, Jordan and Weiss 2001).

    By orthogonal iteration with twice as many vectors: labels fall into pieces that are never confused with each other,
    so that the first eigenvalue comes several times, and methods of one vector at a time miss some of these.
    """
    from scipy.sparse import diags

    n, k = affinity.shape[0], min(groups, _CONFUSED)
    root = diags(1 / np.sqrt(np.maximum(np.asarray(affinity.sum(axis=1)).ravel(), 1e-12)))
    pull = root @ affinity @ root
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, min(2 * k, n))))[0]
    for _ in range(_ITERATIONS):  # of (I + M) / 2, whose eigenvalues lie between 0 and 1
        basis = np.linalg.qr((basis + pull @ basis) / 2)[0]
    values, turned = np.linalg.eigh(basis.T @ (pull @ basis))
    vectors = basis @ turned[:, np.argsort(-values)[:k]]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: Float32 = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return rows


def _clustered(rows: Float32, groups: int, seed: int) -> Int64:
    """k-means of rows; of very many by parts of them."""
    if len(rows) > _MANY:
        from sklearn.cluster import MiniBatchKMeans

        model = MiniBatchKMeans(groups, batch_size=4096, n_init=1, max_iter=20, random_state=seed).fit(rows)
        found: Int64 = model.labels_.astype(np.int64)
        return np.unique(found, return_inverse=True)[1]
    centres = _spread(rows, groups, np.random.default_rng(seed))
    place = np.full(len(rows), -1)
    for _ in range(_ROUNDS):
        before, place = place, np.unique(_nearest(rows, centres), return_inverse=True)[1]
        if (before == place).all():
            break
        order = np.argsort(place, kind="stable")
        sizes = np.bincount(place)
        sums = np.add.reduceat(rows[order], np.cumsum(sizes) - sizes)
        centres = (sums / sizes[:, None]).astype(np.float32)
    return place


def _spread(rows: Float32, groups: int, rng: np.random.Generator) -> Float32:
    """First centres by greedy k-means++ (Arthur and Vassilvitskii 2007): of a few far rows the one that helps most."""
    chosen = rows[rng.integers(len(rows), size=1)]
    near = np.square(rows - chosen).sum(axis=1)
    while len(chosen) < groups and near.any():
        some = rows[rng.choice(len(rows), 4, p=near / near.sum(dtype=np.float64))]
        nearer = np.minimum(near, np.square(rows[None] - some[:, None]).sum(axis=2))
        best = int(nearer.sum(axis=1).argmin())
        chosen, near = np.vstack([chosen, some[best]]), nearer[best]
    return chosen


def _nearest(points: Float32, centres: Float32) -> Int64:
    found: Int64 = (2 * points @ centres.T - np.einsum("ij,ij->i", centres, centres)).argmax(axis=1)
    return found
