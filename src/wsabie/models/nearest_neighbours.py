"""Exact and approximate nearest neighbours, which vote for their labels.

Neighbours by scikit-learn 1.9.1 come in any order where cosines are equal, and take 2.4 to 3.9 times as long (500
among 10,000 rows, dense and sparse, one thread).
"""

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix, vstack

from wsabie.core.arrays import Array, Float32, Float64, Int64, Matrix, count_rows
from wsabie.core.errors import UnsuitableModelError, require
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.base import feature_matrix, row_scaling
from wsabie.models.base.hyperparameters import is_finite_number, is_whole
from wsabie.models.base.score_ranker import ScaledRanker
from wsabie.storage.schema_validation import Count, PositiveCount, check_array, read_config

POWERS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Exponents that `power="auto"` tries."""
SAMPLE_SIZE = 1000
"""Most training rows that choose the exponent."""
PAPER_LEAF = 20_000
"""Training rows in a leaf of the paper's tree."""
SMALL_LEAF = 100
"""Fewest training rows in a leaf if the depth is "auto"."""


class NeighbourVotes(ScaledRanker):
    """Base of models whose k neighbours vote for their labels, each with its cosine.

    A subclass implements `_store_rows`, `_find_nearest` and `_restore_tensors`.

    Attributes
    ----------
    scaling_ : RowScaling
    targets_ : csr_matrix (n_train, n_labels), float32
        1 for a label of the row.
    """

    k: int
    targets_: Matrix
    train_: Matrix

    def _learn(self, inputs: feature_matrix.FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        self.targets_ = (targets > 0).astype(np.float32)
        self._store_rows(feature_matrix.convert_to_matrix(row_scaling.scale_to_unit(inputs), self.n_features_in_))

    def neighbours(  # type: ignore[override]  # rows have neighbours here, and labels no vectors
        self, X: Matrix, k: int | None = None
    ) -> tuple[Int64, Float32]:
        """Return the training rows nearest to each row, as far as this model finds them.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int or None
            None: the `k` of the model.

        Returns
        -------
        rows : (n, k) int64
            Row numbers in training, nearest first; -1 where there are fewer than k.
        cosines : (n, k) float32, -inf where `rows` is -1

        Raises
        ------
        InputError
            As `scores`.
        """
        return self._find_nearest(self._check_rows(X), self.k if k is None else k)

    @abstractmethod
    def _store_rows(self, train: Matrix) -> None:
        """Store the training rows, which have unit length."""

    @abstractmethod
    def _find_nearest(self, inputs: feature_matrix.FeatureMatrix, k: int) -> tuple[Int64, Float32]:
        """Return the neighbours of checked rows; see `neighbours`."""

    def _compute_scores(self, inputs: feature_matrix.FeatureMatrix) -> Float32:
        rows, cosines = self._find_nearest(inputs, min(self.k, self.targets_.shape[0]))
        return self._sum_votes(rows, self._weigh(np.maximum(cosines, 0)))  # 0 where there is no neighbour

    def _weigh(self, cosines: Float32) -> Float32:
        """Return the votes of neighbours with these cosines."""
        return cosines

    def _sum_votes(self, rows: Int64, votes: Float32) -> Float32:
        """Return the votes for each label, (n, n_labels), of the neighbours of n rows."""
        bounds = np.arange(len(rows) + 1) * rows.shape[1]
        cells = (votes.ravel(), np.maximum(rows, 0).ravel(), bounds)
        return np.asarray((csr_matrix(cells, shape=(len(rows), self.targets_.shape[0])) @ self.targets_).toarray())

    def _dump_config(self) -> JsonObject:
        return {**super()._dump_config(), "train_rows": self.targets_.shape[0]}

    def _dump_tensors(self) -> dict[str, Array]:
        train = feature_matrix.dump_matrix("train", self.train_)
        return {**super()._dump_tensors(), **train, **feature_matrix.dump_matrix("targets", self.targets_)}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        n_train = read_config(PositiveCount, config["train_rows"], "train_rows")
        self.targets_ = feature_matrix.restore_matrix("targets", tensors, (n_train, len(self.vocabulary_)))


def find_nearest_rows(rows: feature_matrix.FeatureMatrix, train: Matrix, n_train: int, k: int) -> tuple[Int64, Float32]:
    """Return the k nearest training rows of each row, in bounded memory.

    Parameters
    ----------
    rows : Csr or (n, n_features) float32
        At unit length.
    train : sparse or dense
        `n_train` training rows from `index_by_feature`.
    n_train, k : int

    Returns
    -------
    numbers : (n, k) int64
        Nearest first, equal cosines by number; -1 where there are fewer than k.
    cosines : (n, k) float32, -inf where there is none
    """
    from wsabie.kernels.ranking.topk import TopKHeap, allocate_heap, scan_topk, sort_topk

    n = count_rows(rows)
    heap = allocate_heap(n, k)
    for lo, hi in feature_matrix.iterate_row_ranges(n, n_train):
        cosines = feature_matrix.multiply_rows(feature_matrix.slice_rows(rows, lo, hi), train, n_train)
        scan_topk(cosines, 0, TopKHeap(heap.scores[lo:hi], heap.labels[lo:hi]), 0, hi - lo)
    sort_topk(heap, 0, n)
    return heap.labels, heap.scores


@dataclass(eq=False, repr=False)
class NearestNeighbours(NeighbourVotes):
    """Exact nearest neighbours: the k most similar training rows vote with a power of their cosine.

    A label's score is the sum of the votes of the neighbours that have it (negative cosines do not vote). Training
    rows with equal cosines keep their order. A block of rows is compared with all training rows in one product, which
    takes memory for (rows of the block) x (training rows) scores.

    Parameters
    ----------
    k : int, default 10
        Neighbours that vote; all training rows if there are fewer.
    scaling : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows before the cosine is computed, see `Wsabie`; dense rows get no constant feature.
    power : float or "auto", default 1.0
        Exponent of the cosines: with a high one the nearest rows outvote the others. "auto" is 1, 2, 4, 8 or 16, by the
        nDCG@10 of up to 1,000 training rows, each ranked by the others.

    Attributes
    ----------
    power_ : float
    scaling_ : RowScaling
    train_ : csr_matrix (n_features, n_train) or ndarray (n_train, n_features), float32
        The training rows at unit length.
    targets_ : csr_matrix (n_train, n_labels), float32
        1 for a label of the row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> model = NearestNeighbours(k=2, scaling=None).fit(X, [["red"], ["red", "warm"], ["blue"]])
    >>> [(name, round(score, 2)) for name, score in model.annotate([[1.0, 0.0]], k=2)[0]]
    [('red', 1.99), ('warm', 0.99)]
    """

    kind = "nearest"

    k: int = 10
    _: KW_ONLY
    scaling: row_scaling.Scaling = "tfidf"
    power: float | Literal["auto"] = 1.0

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        is_usable = self.power == "auto" or (is_finite_number(self.power) and float(self.power) > 0)
        require(is_usable, f'power is {self.power!r}; choose "auto" or a number above 0')

    def _learn(self, inputs: feature_matrix.FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        super()._learn(inputs, targets, progress)
        self.power_ = self._choose_power(inputs) if self.power == "auto" else float(self.power)

    def _choose_power(self, inputs: feature_matrix.FeatureMatrix) -> float:
        """Return the power that ranks the labels of training rows best by the other rows."""
        n, n_labels = self.targets_.shape
        sample = np.unique(np.linspace(0, n - 1, SAMPLE_SIZE).astype(np.int64))
        rows = row_scaling.scale_to_unit(feature_matrix.take_rows(inputs, sample))
        neighbours, cosines = find_nearest_rows(rows, self.train_, n, min(self.k + 1, n))
        cosines = np.where(neighbours == sample[:, None], 0, np.maximum(cosines, 0))

        def compute_ndcg(power: float) -> float:
            ranges = feature_matrix.iterate_row_ranges(len(sample), n_labels)
            blocks = ((lo, self._sum_votes(neighbours[lo:hi], cosines[lo:hi] ** power)) for lo, hi in ranges)
            return evaluate_scores(blocks, self.targets_[sample], ks=(10,)).means["ndcg@10"]

        return max(POWERS, key=compute_ndcg)

    def _weigh(self, cosines: Float32) -> Float32:
        return np.asarray(cosines**self.power_)

    def _dump_config(self) -> JsonObject:
        return {**super()._dump_config(), "vote_power": self.power_}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        self.power_ = read_config(float, config["vote_power"], "vote_power")
        self.train_ = feature_matrix.restore_table("train", tensors, (self.targets_.shape[0], self.n_features_in_))

    def _store_rows(self, train: Matrix) -> None:
        self.train_ = feature_matrix.index_by_feature(train)

    def _find_nearest(self, inputs: feature_matrix.FeatureMatrix, k: int) -> tuple[Int64, Float32]:
        rows = row_scaling.scale_to_unit(self.scaling_(inputs))
        return find_nearest_rows(rows, self.train_, self.targets_.shape[0], k)


def choose_tree_depth(n: int) -> int:
    """Return the levels for n training rows: leaves of about 20,000 rows, or n / 8 if that is less.

    Leaves have at least 100 rows.

    Examples
    --------
    >>> [choose_tree_depth(n) for n in (150, 450, 4500, 200_000, 839_310, 2_518_604)]
    [0, 2, 3, 3, 5, 7]
    """
    depth = max(3, round(math.log2(n / PAPER_LEAF)))
    return min(depth, max(0, int(math.log2(n / SMALL_LEAF))))


@dataclass(eq=False, repr=False)
class ApproximateNeighbours(NeighbourVotes):
    """Approximate nearest neighbours: the k most similar training rows in a leaf vote for their labels.

    The votes are those of `NearestNeighbours`, bit for bit with `depth=0`. Leaf sizes differ by at most 1. Besides the
    training rows the tree takes 2^depth directions of `n_features` float32, and for sparse rows an index of the
    features in each leaf of the same size.

    Parameters
    ----------
    depth : int or "auto", default "auto"
        Levels of the tree; see `choose_tree_depth`. At most log2 of the training rows.
    k : int, default 10
        Neighbours that vote; all rows of the leaf if there are fewer.
    scaling : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows before the cosine is computed, see `Wsabie`.
    seed : int, default 0
        Seed of the directions.

    Attributes
    ----------
    depth_ : int
    directions_ : (2^depth_ - 1, n_features) float32
        Gaussian; the children of node i are 2i + 1 (left) and 2i + 2.
    thresholds_ : (2^depth_ - 1,) float64
        A row goes right when its projection is greater.
    order_ : (n_train,) int64
        Training rows, leaf after leaf, ascending in each.
    train_ : csr_matrix (2^depth_ * n_features, largest leaf) or ndarray (n_train, n_features), float32
        The training rows at unit length, leaf after leaf; sparse ones as lists of rows by feature.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> model = ApproximateNeighbours(depth=1, k=2, scaling=None).fit(X, [["red"], ["red"], ["blue"], ["blue"]])
    >>> model.annotate([[1.0, 0.0]], k=1)[0][0][0]
    'red'
    """

    kind = "approximate-nearest"
    _own_limits = ("depth",)

    depth: int | Literal["auto"] = "auto"
    k: int = 10
    _: KW_ONLY
    scaling: row_scaling.Scaling = "tfidf"
    seed: int = 0

    def _dump_config(self) -> JsonObject:
        return {**super()._dump_config(), "tree_depth": self.depth_}

    def _dump_tensors(self) -> dict[str, Array]:
        tree = {"directions": self.directions_, "thresholds": self.thresholds_, "order": self.order_}
        return {**super()._dump_tensors(), **tree}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        n, width = self.targets_.shape[0], self.n_features_in_
        self.depth_ = read_config(Count, config["tree_depth"], "tree_depth")
        if 1 << min(self.depth_, 60) > n:
            raise ValueError(f"tree_depth is {self.depth_}, and there are {n:,} rows")
        nodes = 2**self.depth_ - 1
        self.directions_ = check_array(tensors, "directions", "float32", (nodes, width))
        self.thresholds_ = check_array(tensors, "thresholds", "float64", (nodes,))
        self.order_ = check_array(tensors, "order", "int64", (n,))
        if not np.array_equal(np.sort(self.order_), np.arange(n)):
            raise ValueError("order does not hold every training row once")
        stacked = (width << self.depth_, int(np.diff(_compute_bounds(n, self.depth_)).max()))
        self.train_ = feature_matrix.restore_matrix("train", tensors, (n, width) if "train" in tensors else stacked)

    def leaves(self, X: Matrix) -> Int64:
        """Return the leaf of each row, in which its neighbours are searched.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        (n,) int64
            0 to 2^depth_ - 1.

        Raises
        ------
        InputError
            As `scores`.
        """
        rows = row_scaling.scale_to_unit(self.scaling_(self._check_rows(X)))
        return self._find_leaves(feature_matrix.convert_to_matrix(rows, self.n_features_in_))

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        is_usable = self.depth == "auto" or (is_whole(self.depth) and int(self.depth) >= 0)
        require(is_usable, f'depth is {self.depth!r}; choose "auto" or a whole number from 0')

    def _store_rows(self, train: Matrix) -> None:
        n, d = train.shape
        self.depth_ = choose_tree_depth(n) if self.depth == "auto" else int(self.depth)
        if self.depth_ >= n.bit_length():
            fact = f"a tree of {self.depth_} levels has more leaves than the {n} training rows"
            raise UnsuitableModelError(f"{fact}; choose a depth of at most {n.bit_length() - 1}")
        nodes = 2**self.depth_ - 1
        self.directions_ = np.random.default_rng(self.seed).standard_normal((nodes, d), np.float32)
        self.thresholds_ = np.zeros(nodes)
        self.order_ = np.argsort(self._grow_tree(train), kind="stable")
        self.train_ = self._sort_by_leaf(train)

    def _grow_tree(self, train: Matrix) -> Int64:
        """Set the thresholds level by level; return the leaf of every training row."""
        branches, bounds = np.zeros(train.shape[0], np.int64), _compute_bounds(train.shape[0], 0)
        for level in range(self.depth_):
            first = 2**level - 1
            projected = self._project(train, first + branches)
            order = np.lexsort((projected, branches))
            middle = (bounds[:-1] + bounds[1:]) // 2
            self.thresholds_[first : 2 * first + 1] = projected[order[np.stack([middle - 1, middle])]].mean(0)
            bounds = _compute_bounds(train.shape[0], level + 1)
            branches[order] = np.repeat(np.arange(2 ** (level + 1)), np.diff(bounds))
        return branches

    def _find_leaves(self, rows: Matrix) -> Int64:
        branches = np.zeros(rows.shape[0], np.int64)
        for level in range(self.depth_):
            nodes = 2**level - 1 + branches
            branches = 2 * branches + (self._project(rows, nodes) > self.thresholds_[nodes])
        return branches

    def _project(self, rows: Matrix, nodes: Int64) -> Float64:
        """Return the inner product of each row with the direction of its node, from its non-zeros."""
        out = np.zeros(rows.shape[0])
        n_values = rows.data.size if hasattr(rows, "tocsr") else rows.size
        for lo, hi in feature_matrix.iterate_row_ranges(rows.shape[0], 4 * (1 + n_values // max(rows.shape[0], 1))):
            if not hasattr(rows, "tocsr"):
                out[lo:hi] = np.einsum("ij,ij->i", rows[lo:hi], self.directions_[nodes[lo:hi]])
                continue
            indptr = rows.indptr[lo : hi + 1]  # slices of a scipy matrix would take longer than the work
            span = slice(indptr[0], indptr[-1])
            directions = self.directions_[np.repeat(nodes[lo:hi], np.diff(indptr)), rows.indices[span]]
            out[lo:hi] = row_scaling.sum_rows(rows.data[span] * directions, indptr - indptr[0])
        return out

    def _sort_by_leaf(self, train: Matrix) -> Matrix:
        bounds = _compute_bounds(train.shape[0], self.depth_)
        if not hasattr(train, "tocsr"):
            return train[self.order_]
        largest = int(np.diff(bounds).max())
        leaves = [feature_matrix.index_by_feature(train[self.order_[lo:hi]]) for lo, hi in pairwise(bounds)]
        for leaf in leaves:
            leaf.resize(leaf.shape[0], largest)
        return csr_matrix(vstack(leaves, format="csr"))

    def _slice_leaf(self, leaf: int, lo: int, hi: int) -> Matrix:
        """Return the training rows of a leaf, sharing memory."""
        if not hasattr(self.train_, "tocsr"):
            return self.train_[lo:hi]
        d = self.n_features_in_
        indptr = self.train_.indptr[leaf * d : (leaf + 1) * d + 1]
        start, end = indptr[0], indptr[-1]
        parts = (self.train_.data[start:end], self.train_.indices[start:end], indptr - start)
        return csr_matrix(parts, shape=(d, hi - lo))

    def _find_nearest(self, inputs: feature_matrix.FeatureMatrix, k: int) -> tuple[Int64, Float32]:
        rows = row_scaling.scale_to_unit(self.scaling_(inputs))
        leaves = self._find_leaves(feature_matrix.convert_to_matrix(rows, self.n_features_in_))
        bounds = _compute_bounds(len(self.order_), self.depth_)
        ids, cosines = np.empty((len(leaves), k), np.int64), np.empty((len(leaves), k), np.float32)
        for leaf in np.unique(leaves):
            lo, hi = int(bounds[leaf]), int(bounds[leaf + 1])
            row_ids = np.flatnonzero(leaves == leaf)
            leaf_rows = feature_matrix.take_rows(rows, row_ids)
            numbers, cosines[row_ids] = find_nearest_rows(leaf_rows, self._slice_leaf(leaf, lo, hi), hi - lo, k)
            ids[row_ids] = np.where(numbers < 0, -1, self.order_[lo + np.maximum(numbers, 0)])
        return ids, cosines


def _compute_bounds(n: int, depth: int) -> Int64:
    """Return the bounds of the nodes after n rows are halved `depth` times, (2^depth + 1,)."""
    bounds = np.array([0, n])
    for _ in range(depth):
        bounds = np.sort(np.concatenate([bounds, (bounds[:-1] + bounds[1:]) // 2]))
    return bounds
