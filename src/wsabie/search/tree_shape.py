"""Shape of a label tree: labels that are confused or lie near to each other share nodes."""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.core.sparse_matrices import convert_to_csr

_CONFUSED = 16  # eigenvectors at most
_ITERATIONS = 60
_ROUNDS = 20
_MANY = 5000  # labels that are grouped by a part of them at a time
_FEW = 8  # labels with a confusion, per group, below which points tell more


class TreeShape(NamedTuple):
    """Tree over labels, nodes level by level; the children and the labels of a node are contiguous."""

    order: Int64  # (n_labels,), the labels as they stand in the tree
    starts: Int64  # (n_nodes,), places in `order` of a node's labels
    stops: Int64
    parents: Int64  # (n_nodes,), -1 for the root
    first: Int64  # (n_nodes,), first child; -1: none
    counts: Int64  # (n_nodes,), children

    def paths(self) -> Int64:
        """Return the nodes below the root that hold each label, (n_labels, depth), from the top; then -1."""
        zeros = np.zeros(len(self.order), np.int64)
        levels: list[Int64] = []
        node = np.flatnonzero(self.parents == 0)
        while len(node):
            level = np.full(len(self.order), -1, np.int64)
            for number in node:
                level[self.order[self.starts[number] : self.stops[number]]] = number
            levels.append(level)
            node = np.flatnonzero(np.isin(self.parents, node))
        return np.stack(levels, axis=1) if levels else zeros[:, None][:, :0]


def is_tree_shape(shape: TreeShape, n_labels: int) -> bool:
    """Return True if the arrays of a file are a finite tree over `n_labels` labels."""
    order, starts, stops, parents, first, counts = shape
    n_nodes = len(starts)
    if not n_nodes or not np.array_equal(np.sort(order), np.arange(n_labels)):
        return False
    inner = counts > 0
    is_later = first[inner] > np.flatnonzero(inner)
    is_inside = (starts >= 0) & (starts <= stops) & (stops <= n_labels)
    is_complete = first[inner] + counts[inner] <= n_nodes
    return bool(
        (counts >= 0).all() and is_later.all() and is_complete.all() and is_inside.all() and (parents < n_nodes).all()
    )


def grow_tree(points: Float32, branching: int, leaf: int, confusion: Matrix | None, seed: int) -> TreeShape:
    """Split the labels into at most `branching` groups, recursively, down to at most `leaf` labels.

    With `confusion`, (n_labels, n_labels) sparse counts of the flat model's answers j where i was right, groups come
    from the spectral clustering of A = (C + C') / 2 (Bengio, Weston and Grangier 2010, algorithm 2); a label that was
    never confused goes to the group whose mean point is nearest. Without it, and where few labels of a node were
    confused, groups are k-means of the points.
    """
    affinity = None if confusion is None else _compute_affinity(confusion)
    order = np.arange(len(points))
    starts, stops, parents, first, counts = [0], [len(points)], [-1], list[int](), list[int]()
    node = 0
    while node < len(starts):
        lo, hi = starts[node], stops[node]
        if hi - lo <= leaf:
            first.append(-1)
            counts.append(0)
        else:
            labels, n_groups = order[lo:hi], min(branching, 2 * -(-(hi - lo) // leaf))  # leaves that are half full
            groups = _split_labels(
                points[labels], n_groups, None if affinity is None else affinity[labels][:, labels], seed + node
            )
            order[lo:hi] = labels[np.argsort(groups, kind="stable")]
            sizes = np.bincount(groups)
            ends = lo + np.cumsum(sizes)
            first.append(len(starts))
            counts.append(len(sizes))
            starts += (ends - sizes).tolist()
            stops += ends.tolist()
            parents += [node] * len(sizes)
        node += 1
    return TreeShape(order, *(np.array(column, np.int64) for column in (starts, stops, parents, first, counts)))


def _compute_affinity(confusion: Matrix) -> Matrix:
    from scipy.sparse import coo_matrix

    counts = convert_to_csr(confusion, "the confusion matrix").astype(np.float64).tocoo()
    is_error = (counts.row != counts.col) & (counts.data > 0)
    counts = coo_matrix((counts.data[is_error], (counts.row[is_error], counts.col[is_error])), counts.shape).tocsr()
    return (counts + counts.T) / 2


def _split_labels(points: Float32, branching: int, affinity: Matrix | None, seed: int) -> Int64:
    """Return a group for each label, numbered without gaps; two groups or more."""
    branching = min(branching, len(points))
    confused = np.empty(0, np.int64) if affinity is None else np.flatnonzero(np.diff(affinity.indptr))
    if affinity is not None and len(confused) >= _FEW * branching:
        groups = np.full(len(points), -1)
        groups[confused] = _cluster_rows(
            _compute_spectral_rows(affinity[confused][:, confused], branching, seed), branching, seed
        )
        remaining = np.flatnonzero(groups < 0)
        if len(remaining):
            means = np.stack([points[groups == group].mean(axis=0) for group in range(groups.max() + 1)])
            groups[remaining] = _find_nearest(points[remaining], means)
    else:
        groups = _cluster_rows(points, branching, seed)
    numbers: Int64 = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    if numbers.max() == 0:  # all alike
        numbers = np.arange(len(points)) * branching // len(points)
    return numbers


def _compute_spectral_rows(affinity: Matrix, groups: int, seed: int) -> Float32:
    """Return rows of the first eigenvectors of D^-1/2 A D^-1/2 at unit length (Ng, Jordan and Weiss 2001).

    Orthogonal iteration takes twice as many vectors: labels fall into pieces that are never confused with each other,
    so that the first eigenvalue comes several times, and methods of one vector at a time miss some of its vectors.
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


def _cluster_rows(rows: Float32, groups: int, seed: int) -> Int64:
    """Cluster rows by k-means, very many in mini-batches."""
    if len(rows) > _MANY:
        from sklearn.cluster import MiniBatchKMeans

        model = MiniBatchKMeans(groups, batch_size=4096, n_init=1, max_iter=20, random_state=seed).fit(rows)
        labels: Int64 = model.labels_.astype(np.int64)
        return np.unique(labels, return_inverse=True)[1]
    centres = _choose_centres(rows, groups, np.random.default_rng(seed))
    place = np.full(len(rows), -1)
    for _ in range(_ROUNDS):
        last_place, place = place, np.unique(_find_nearest(rows, centres), return_inverse=True)[1]
        if (last_place == place).all():
            break
        order = np.argsort(place, kind="stable")
        sizes = np.bincount(place)
        sums = np.add.reduceat(rows[order], np.cumsum(sizes) - sizes)
        centres = (sums / sizes[:, None]).astype(np.float32)
    return place


def _choose_centres(rows: Float32, groups: int, rng: np.random.Generator) -> Float32:
    """Choose first centres by greedy k-means++ (Arthur and Vassilvitskii 2007)."""
    centres = rows[rng.integers(len(rows), size=1)]
    near = np.square(rows - centres).sum(axis=1)
    while len(centres) < groups and near.any():
        trials = rows[rng.choice(len(rows), 4, p=near / near.sum(dtype=np.float64))]
        nearer = np.minimum(near, np.square(rows[None] - trials[:, None]).sum(axis=2))
        best = int(nearer.sum(axis=1).argmin())
        centres, near = np.vstack([centres, trials[best]]), nearer[best]
    return centres


def _find_nearest(points: Float32, centres: Float32) -> Int64:
    nearest: Int64 = (2 * points @ centres.T - np.einsum("ij,ij->i", centres, centres)).argmax(axis=1)
    return nearest
