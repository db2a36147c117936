"""Label embedding trees (Bengio, Weston and Grangier, NIPS 2010).

A node holds a set of labels and has a point. A row goes down from the root to the children whose points have the
highest inner product with its own point. Training moves the points of nodes: of two siblings the one that holds a label
of the row should score higher, by a margin (relaxation 2 of the paper). Rows and labels keep the points of the flat
model, which score the labels exactly at the bottom.
"""

import warnings
from typing import NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wsabie.core.arrays import Array, Bool, Float32, Int64, Matrix
from wsabie.core.errors import require
from wsabie.core.validation import build_incidence, check_positive_integer, convert_to_csr
from wsabie.search import index_tuning, label_index
from wsabie.search.exact_index import ExactIndex
from wsabie.search.search_arrays import prepare_float32_rows
from wsabie.storage.model_folder import ModelState

_ROUNDS = 20
_MIN_MINIBATCH_LABELS = 5000  # labels that are grouped by a part of them at a time
_BATCH = 512
_BEAMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_MAX_TRAINING_ROWS = 15_000  # or labels in their stead, that train the nodes of a tree
_MIN_TRAINING_ROWS = 1000  # below which labels train the nodes in their stead


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
        levels: list[Int64] = []
        node = np.flatnonzero(self.parents == 0)
        while len(node):
            level = np.full(len(self.order), -1, np.int64)
            for number in node:
                level[self.order[self.starts[number] : self.stops[number]]] = number
            levels.append(level)
            node = np.flatnonzero(np.isin(self.parents, node))
        return np.stack(levels, axis=1) if levels else np.zeros((len(self.order), 0), np.int64)


def is_tree_shape(shape: TreeShape, n_labels: int) -> bool:
    """Return True if the arrays of a file are a finite tree over `n_labels` labels."""
    order, starts, stops, parents, first, counts = shape
    n_nodes = len(starts)
    are_columns = all(column.dtype == np.int64 and column.shape == (n_nodes,) for column in shape[1:])
    if not n_nodes or not are_columns or not np.array_equal(np.sort(order), np.arange(n_labels)):
        return False
    inner = counts > 0
    is_later = first[inner] > np.flatnonzero(inner)
    is_inside = (starts >= 0) & (starts <= stops) & (stops <= n_labels)
    is_complete = first[inner] + counts[inner] <= n_nodes
    return bool(
        (counts >= 0).all() and is_later.all() and is_complete.all() and is_inside.all() and (parents < n_nodes).all()
    )


def grow_tree(points: Float32, branching: int, leaf: int, seed: int) -> TreeShape:
    """Split the labels into at most `branching` groups, recursively, down to at most `leaf` labels.

    Groups come from k-means of the points.
    """
    with threadpool_limits(1):  # the same bits with any number of threads
        return _grow_tree(points, branching, leaf, seed)


def _grow_tree(points: Float32, branching: int, leaf: int, seed: int) -> TreeShape:
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
            groups = _split_labels(points[labels], n_groups, seed + node)
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


def _split_labels(points: Float32, branching: int, seed: int) -> Int64:
    """Cluster labels by k-means (very many in mini-batches); return gapless group numbers, two or more."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    clustering = MiniBatchKMeans if len(points) > _MIN_MINIBATCH_LABELS else KMeans
    model = clustering(min(branching, len(points)), n_init=1, max_iter=_ROUNDS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than groups
        groups: Int64 = np.unique(model.fit_predict(points), return_inverse=True)[1]
    return groups if groups.max() else np.arange(len(points)) * branching // len(points)  # all alike


class LabelTree(label_index.LabelSearchIndex):
    """Index that finds labels by going down a tree.

    Parameters
    ----------
    exact : ExactIndex
        The labels of the flat model.
    shape : TreeShape
    beam : int
        Nodes of a level whose children are scored; 1 is the prediction of the paper.
    points : (n_nodes, dim + 1) float32 or None
        Points of the nodes, the bias last; None: the means of their labels.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    >>> tree = LabelTree.grow(ExactIndex(table), branching=8, leaf=20, beam=1000)
    >>> tree.top_k(table[:2], 3)[0].tolist() == ExactIndex(table).top_k(table[:2], 3)[0].tolist()
    True
    """

    folder_kind = "label tree"
    noun = "label tree"
    kind = "tree"

    def __init__(self, exact: ExactIndex, shape: TreeShape, beam: int = 16, *, points: Float32 | None = None) -> None:
        super().__init__(exact, beam)
        self.shape = shape
        self.points = _compute_node_means(exact, shape) if points is None else points
        self.n_bytes = int(self.points.nbytes + sum(array.nbytes for array in shape))

    @classmethod
    def build(
        cls,
        exact: ExactIndex,
        *,
        recall: float = label_index.DEFAULT_RECALL,
        queries: Array | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Self:
        """Build a tree by k-means, train it on exact results, and choose the least sufficient beam.

        Parameters
        ----------
        exact : ExactIndex
        recall : float
            Share of the exact top 10 that the index should find.
        queries : (n, dim) float32 or None
            Points of rows: at most 400 choose the beam and measure what it brings, up to 15,000 others train the
            nodes. None: labels of the table; they also train where there are fewer than 1,000 others.
        seed : int
        threads : int or None

        Raises
        ------
        InputError
            There are too few labels or queries.
        """
        n = len(exact.table)
        label_index.require_enough_vectors(n)
        rng = np.random.default_rng(seed)
        test_queries, description = index_tuning.sample_queries(exact, queries, rng, recall)
        training_points = _choose_training_points(exact, queries, test_queries, rng)
        answers = exact.top_k(training_points, index_tuning.MEASURED_AT, threads=threads)[0]
        rows = np.repeat(np.arange(len(training_points)), index_tuning.MEASURED_AT)
        tree = cls.grow(exact, seed=seed)
        tree.train(training_points, build_incidence(rows, answers.ravel(), (len(training_points), n)), seed=seed)
        tree.queries = description
        beams = [beam for beam in _BEAMS if beam < len(tree.shape.starts)]
        index_tuning.tune_effort(
            tree, rng.permutation(test_queries), recall, [{"effort": beam} for beam in beams], beams, threads
        )
        return tree

    @classmethod
    def grow(cls, exact: ExactIndex, *, branching: int = 32, leaf: int = 64, beam: int = 16, seed: int = 0) -> Self:
        """Return an untrained tree whose nodes lie at the mean of their labels.

        Parameters
        ----------
        exact : ExactIndex
        branching : int
            Children of a node, at most.
        leaf : int
            Labels of a node that is not split.

        Raises
        ------
        InputError
            A number is too small.
        """
        branching, leaf = check_positive_integer(branching, "branching"), check_positive_integer(leaf, "leaf")
        require(branching > 1, "a node has two children at least; give a branching of 2 or more")
        points, _ = _compute_linear_form(exact, np.arange(len(exact.table)))
        return cls(exact, grow_tree(points, branching, leaf, seed), beam)

    def train(
        self, points: Array, Y: Matrix, *, epochs: int = 5, margin: float = 0.5, rate: float = 0.1, seed: int = 0
    ) -> list[float]:
        """Train the nodes on rows with labels; return the share of wrong steps down by epoch.

        Parameters
        ----------
        points : (n, dim) float32
            Points of rows, as the flat model encodes them.
        Y : sparse matrix (n, n_labels)
            Values above 0 are labels: the rows' own, or those that the flat model ranks first.
        epochs : int
        margin : float
            In standard deviations of the scores at the root's children.
        rate : float
            Learning rate of AdaGrad, in root mean square lengths of a node's point.
        seed : int
        """
        X = np.hstack([prepare_float32_rows(points, "the points"), np.ones((len(points), 1), np.float32)])
        paths, rng = self.shape.paths(), np.random.default_rng(seed)
        Y = convert_to_csr(Y, "Y") > 0
        rows, labels = Y.nonzero()
        require(len(rows) > 0, "no row has a label; give rows with labels")
        n_nodes, is_node = len(self.shape.starts), paths >= 0
        membership = build_incidence(is_node.nonzero()[0], paths[is_node], (len(paths), n_nodes))
        right = (Y.astype(np.float32) @ membership).tocoo()
        keys = np.sort(right.row.astype(np.int64) * n_nodes + right.col)  # of a row and a node with one of its labels
        top = X[rng.permutation(len(X))[:1000]] @ self.points[self.shape.parents == 0].T
        margin, rate = margin * float(top.std()), rate * float(np.sqrt(np.mean(self.points**2) * self.points.shape[1]))
        squares, error_rates = np.full((n_nodes, 1), 1e-8, np.float32), []
        for _ in range(epochs):
            order, errors, steps = rng.permutation(len(rows)), 0, 0
            for lo in range(0, len(order), _BATCH):
                batch = order[lo : lo + _BATCH]
                for level in range(paths.shape[1]):
                    targets = paths[labels[batch], level]
                    step_rows, targets = rows[batch][targets >= 0], targets[targets >= 0]
                    counts = self._train_level(X, step_rows, targets, keys, margin, rate, squares)
                    errors, steps = errors + counts[0], steps + counts[1]
            error_rates.append(errors / max(steps, 1))
        return error_rates

    def _is_exact_quicker(self, request: label_index.SearchRequest) -> bool:
        return request.n_candidates < label_index.NARROW * len(self.exact.table)

    def _search(self, request: label_index.SearchRequest) -> tuple[Int64, Float32]:
        n, k, hidden, candidate_ids = len(self.exact.table), request.k, request.hidden, request.candidate_ids
        is_candidate = np.full(n, candidate_ids is None)
        is_candidate[self.exact.removed if candidate_ids is None else candidate_ids] = candidate_ids is not None
        ids, scores = np.full((len(request.queries), k), -1), np.full((len(request.queries), k), -np.inf, np.float32)
        for i, query in enumerate(request.queries):
            hidden_ids = hidden.labels[hidden.indptr[i] : hidden.indptr[i + 1]]
            labels = self._collect_labels(query, k, is_candidate, hidden_ids)
            if len(labels) >= k:
                ids[i : i + 1], scores[i : i + 1] = self.exact.rescore(query[None], labels[None], k)
        return ids, scores

    def to_state(self) -> ModelState:
        """Return the state to save: the nodes and the fingerprint of their table."""
        return ModelState(self.folder_kind, self.to_config(), {"points": self.points, **self.shape._asdict()})

    @classmethod
    def _restore(cls, state: ModelState, exact: ExactIndex) -> Self:
        tensors, (n, dim) = state.tensors, exact.table.shape
        shape, points = TreeShape(*(tensors[name] for name in TreeShape._fields)), tensors["points"]
        if not is_tree_shape(shape, n):
            raise ValueError(f"its nodes do not fit {n:,} labels")
        if points.dtype != np.float32 or points.shape != (len(shape.starts), dim + 1):
            raise ValueError(f"its nodes are not points of {dim} dimensions")
        tree = cls(exact, shape, points=points)
        tree.restore_config(state.config)
        return tree

    def _collect_labels(self, query: Float32, k: int, is_candidate: Bool, hidden_ids: Array) -> Int64:
        """Return at least k candidates, with a wider beam where there are fewer."""
        beam = check_positive_integer(self.effort, "beam")
        while True:
            labels = self._descend(query, beam)
            labels = labels[is_candidate[labels]]
            if len(hidden_ids):
                labels = labels[~np.isin(labels, hidden_ids)]
            if len(labels) >= k or beam >= len(self.shape.starts):
                return labels
            beam *= 2

    def _descend(self, query: Float32, beam: int) -> Int64:
        """Return the labels of the leaves that a query reaches."""
        # training never compares children of different nodes, so a path is ranked by how far its nodes fall
        # behind their best siblings
        shape = self.shape
        nodes, gaps = np.zeros(1, np.int64), np.zeros(1, np.float32)
        leaf_parts, gap_parts = list[Int64](), list[Float32]()
        while len(nodes):
            ends = shape.counts[nodes] == 0
            leaf_parts.append(nodes[ends])
            gap_parts.append(gaps[ends])
            nodes, gaps = nodes[~ends], gaps[~ends]
            if not len(nodes):
                break
            counts = shape.counts[nodes]
            starts = np.cumsum(counts) - counts
            children = np.arange(counts.sum()) + np.repeat(shape.first[nodes] - starts, counts)
            scores = self.points[children, :-1] @ query + self.points[children, -1]
            scores += np.repeat(gaps - np.maximum.reduceat(scores, starts), counts)
            if len(children) > beam:
                best = np.argpartition(-scores, beam - 1)[:beam]
                children, scores = children[best], scores[best]
            nodes, gaps = children, scores
        order = np.argsort(-np.concatenate(gap_parts), kind="stable")[:beam]
        leaves = np.concatenate(leaf_parts)[order]
        return np.concatenate([shape.order[shape.starts[leaf] : shape.stops[leaf]] for leaf in leaves])

    def _train_level(
        self, X: Float32, row_ids: Int64, targets: Int64, keys: Int64, margin: float, rate: float, squares: Float32
    ) -> tuple[int, int]:
        """Train one level on a batch: push down the best-scoring sibling that holds no label of the row."""
        from scipy.sparse import csr_matrix

        if not len(targets):
            return 0, 0
        X = X[row_ids]
        parents = self.shape.parents[targets]
        children = self.shape.first[parents][:, None] + np.arange(self.shape.counts[parents].max())
        exists = children < (self.shape.first[parents] + self.shape.counts[parents])[:, None]
        children = np.where(exists, children, targets[:, None])
        scores = np.einsum("bd,bkd->bk", X, self.points[children], optimize=True)
        reached = np.einsum("bd,bd->b", X, self.points[targets])
        pair_keys = row_ids[:, None] * len(self.shape.starts) + children
        scores[keys[np.minimum(np.searchsorted(keys, pair_keys), len(keys) - 1)] == pair_keys] = -np.inf
        worst = scores.argmax(axis=1)
        rows = np.arange(len(targets))
        violated = scores[rows, worst] + margin > reached
        errors = int((scores[rows, worst] > reached).sum())
        if violated.any():
            rows, n = rows[violated], int(violated.sum())
            nodes = np.concatenate([targets[violated], children[rows, worst[violated]]])
            signs = np.repeat(np.array([1, -1], np.float32), n)
            nodes, places = np.unique(nodes, return_inverse=True)
            sums = csr_matrix((signs, (places, np.tile(np.arange(n), 2))), (len(nodes), n)) @ X[rows]
            squares[nodes, 0] += np.einsum("ij,ij->i", sums, sums)
            self.points[nodes] += rate * sums / np.sqrt(squares[nodes])
        return errors, len(targets)


def _choose_training_points(
    exact: ExactIndex, queries: Array | None, test_queries: Float32, rng: np.random.Generator
) -> Float32:
    """Return training rows, or labels where there are too few, without the test queries."""
    rows = exact.table if queries is None else prepare_float32_rows(queries, "the queries")
    by_labels = len(rows) < _MIN_TRAINING_ROWS + len(test_queries) or queries is None
    rows = exact.table if by_labels else rows
    sample = np.sort(rng.permutation(len(rows))[: _MAX_TRAINING_ROWS + len(test_queries)])
    points: Float32 = rows[sample].astype(np.float32)
    if by_labels and exact.centre is not None:
        points = points + exact.centre
    unseen = points[~np.isin(_rows_as_bytes(points), _rows_as_bytes(test_queries))]
    return unseen[:_MAX_TRAINING_ROWS] if len(unseen) else points


def _rows_as_bytes(rows: Float32) -> Array:
    return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * 4))).ravel()


def _compute_linear_form(exact: ExactIndex, labels: Int64) -> tuple[Float32, Float32]:
    """Return w and b of each label, so that w . q + b orders labels as their scores do."""
    rows = exact.table[labels].astype(np.float32)
    bias = np.zeros(len(rows), np.float32) if exact.bias is None else exact.bias[labels]
    if exact.similarity == "cosine":
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-30))
    elif exact.similarity == "euclidean":
        rows = rows if exact.centre is None else rows + exact.centre
        return 2 * rows, bias - np.einsum("ij,ij->i", rows, rows)
    return rows, bias


def _compute_node_means(exact: ExactIndex, shape: TreeShape) -> Float32:
    """Return the mean of each node's labels, (n_nodes, dim + 1), the bias last."""
    rows, bias = _compute_linear_form(exact, shape.order)
    sums = np.zeros((len(rows) + 1, rows.shape[1] + 1))
    np.cumsum(np.column_stack([rows, bias]), axis=0, dtype=np.float64, out=sums[1:])
    sizes = (shape.stops - shape.starts)[:, None]
    return np.ascontiguousarray((sums[shape.stops] - sums[shape.starts]) / sizes, np.float32)
