"""Approximate k nearest neighbours by one balanced tree of random projections.

The model is that of Weston et al. 2010, section 6.3. Each node projects its training rows on a random direction and
splits them at the median. After p levels a row is in a leaf of about n / 2^p training rows. Its neighbours are searched
exactly within the leaf: O((p + n / 2^p) d~) instead of O(n d~), where d~ is the number of non-zeros of a row.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from wsabie.core.arrays import Float32, Float64, Int64, Matrix
from wsabie.core.errors import UnsuitableModelError
from wsabie.core.validation import require
from wsabie.models.base.feature_matrix import Inputs, dump_matrix, iterate_row_ranges, restore_matrix
from wsabie.models.base.row_scaling import Rows, RowScaling, sum_rows
from wsabie.models.neighbours.neighbour_votes import (
    NeighbourVotes,
    find_nearest_rows,
    index_by_feature,
    list_matrix_arrays,
)
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import Count, PositiveCount, check_array, read_config

PAPER_LEAF = 20_000
"""Training rows in a leaf of the paper's tree."""

SMALL_LEAF = 100
"""Fewest training rows in a leaf if the depth is "auto"."""


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


@dataclass(frozen=True)
class ProjectionTreeConfig:
    """The part of a folder's config with the size of the tree."""

    train_rows: PositiveCount
    tree_depth: Count


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
    rows : {"tfidf", "auto", None}, default "tfidf"
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
    >>> model = ApproximateNeighbours(depth=1, k=2, rows=None).fit(X, [["red"], ["red"], ["blue"], ["blue"]])
    >>> model.annotate([[1.0, 0.0]], k=1)[0][0][0]
    'red'
    """

    kind = "approximate-nearest"

    def __init__(
        self, depth: int | Literal["auto"] = "auto", k: int = 10, *, rows: Rows = "tfidf", seed: int = 0
    ) -> None:
        self.depth = depth
        self.k = k
        self.rows = rows
        self.seed = seed

    def to_parts(self) -> ModelState:
        """Return the model as JSON-able config and named arrays."""
        config = {**self._dump_config(), "scaling": self.scaling_.method, "tree_depth": self.depth_}
        config["train_rows"] = self.targets_.shape[0]
        tree = {"directions": self.directions_, "thresholds": self.thresholds_, "order": self.order_}
        matrices = dump_matrix("train", self.train_) | dump_matrix("targets", self.targets_)
        return ModelState(self.kind, config, tree | matrices | self.scaling_.tensors())

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Restore the model from its parts; training rows and directions stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restore(config)
        fields, width = read_config(ProjectionTreeConfig, config), model.n_features_in_
        n, model.depth_ = fields.train_rows, fields.tree_depth
        model.scaling_ = RowScaling.restored(config["scaling"], t, width)
        if 1 << min(model.depth_, 60) > n:
            raise ValueError(f"tree_depth is {model.depth_}, and there are {n:,} rows")
        nodes = 2**model.depth_ - 1
        model.directions_ = check_array(t, "directions", "float32", (nodes, width))
        model.thresholds_ = check_array(t, "thresholds", "float64", (nodes,))
        model.order_ = check_array(t, "order", "int64", (n,))
        if not np.array_equal(np.sort(model.order_), np.arange(n)):
            raise ValueError("order does not hold every training row once")
        stacked = (width << model.depth_, int(np.diff(_compute_bounds(n, model.depth_)).max()))
        model.train_ = restore_matrix("train", t, (n, width) if "train" in t else stacked)
        model.targets_ = restore_matrix("targets", t, (n, len(model.vocabulary_)))
        return model

    def leaves(self, X: Any) -> Int64:
        """Return the leaf of each row, 0 to 2^depth_ - 1, in which its neighbours are searched, (n,)."""
        return self._leaves(self._unit(self._checked(X)))

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        is_integer = isinstance(self.depth, (int, np.integer)) and not isinstance(self.depth, bool)
        require(
            self.depth == "auto" or (is_integer and self.depth >= 0),
            f'depth is {self.depth!r}; choose "auto" or a whole number from 0',
        )
        require(
            isinstance(self.seed, (int, np.integer)) and self.seed >= 0,
            f"seed is {self.seed!r}; choose a whole number from 0",
        )

    def _keep(self, train: Matrix) -> None:
        n, d = train.shape
        self.depth_ = choose_tree_depth(n) if self.depth == "auto" else int(self.depth)
        if self.depth_ >= n.bit_length():
            raise UnsuitableModelError(
                f"a tree of {self.depth_} levels has more leaves than the {n} training rows; "
                f"choose a depth of at most {n.bit_length() - 1}"
            )
        nodes = 2**self.depth_ - 1
        self.directions_ = np.random.default_rng(self.seed).standard_normal((nodes, d), np.float32)
        self.thresholds_ = np.zeros(nodes)
        leaves = self._grow(train)
        self.order_ = np.argsort(leaves, kind="stable")
        self.train_ = self._arrange(train)

    def _grow(self, train: Matrix) -> Int64:
        """Set the thresholds level by level; return the leaf of every training row."""
        place, bounds = np.zeros(train.shape[0], np.int64), _compute_bounds(train.shape[0], 0)
        for level in range(self.depth_):
            first = 2**level - 1
            projected = self._project(train, first + place)
            order = np.lexsort((projected, place))
            middle = (bounds[:-1] + bounds[1:]) // 2
            self.thresholds_[first : 2 * first + 1] = projected[order[np.stack([middle - 1, middle])]].mean(0)
            bounds = _compute_bounds(train.shape[0], level + 1)
            place[order] = np.repeat(np.arange(2 ** (level + 1)), np.diff(bounds))
        return place

    def _leaves(self, rows: Matrix) -> Int64:
        place = np.zeros(rows.shape[0], np.int64)
        for level in range(self.depth_):
            node = 2**level - 1 + place
            place = 2 * place + (self._project(rows, node) > self.thresholds_[node])
        return place

    def _project(self, rows: Matrix, nodes: Int64) -> Float64:
        """Return the inner product of each row with the direction of its node, from its non-zeros."""
        out = np.zeros(rows.shape[0])
        for lo, hi in iterate_row_ranges(
            rows.shape[0], 4 * (1 + list_matrix_arrays(rows)[0].size // max(rows.shape[0], 1))
        ):
            if not hasattr(rows, "tocsr"):
                out[lo:hi] = np.einsum("ij,ij->i", rows[lo:hi], self.directions_[nodes[lo:hi]])
                continue
            indptr = rows.indptr[lo : hi + 1]  # slices of a scipy matrix would take longer than the work
            span = slice(indptr[0], indptr[-1])
            directions = self.directions_[np.repeat(nodes[lo:hi], np.diff(indptr)), rows.indices[span]]
            out[lo:hi] = sum_rows(rows.data[span] * directions, indptr - indptr[0])
        return out

    def _arrange(self, train: Matrix) -> Matrix:
        from scipy.sparse import csr_matrix, vstack

        bounds = _compute_bounds(train.shape[0], self.depth_)
        if not hasattr(train, "tocsr"):
            return train[self.order_]
        largest = int(np.diff(bounds).max())
        leaves = [index_by_feature(train[self.order_[lo:hi]]) for lo, hi in pairwise(bounds)]
        for leaf in leaves:
            leaf.resize(leaf.shape[0], largest)
        return csr_matrix(vstack(leaves, format="csr"))

    def _leaf(self, leaf: int, lo: int, hi: int) -> Matrix:
        """Return the training rows of a leaf, sharing memory."""
        from scipy.sparse import csr_matrix

        if not hasattr(self.train_, "tocsr"):
            return self.train_[lo:hi]
        d = self.n_features_in_
        indptr = self.train_.indptr[leaf * d : (leaf + 1) * d + 1]
        start, end = indptr[0], indptr[-1]
        parts = (self.train_.data[start:end], self.train_.indices[start:end], indptr - start)
        return csr_matrix(parts, shape=(d, hi - lo))

    def _arrays(self) -> list[Any]:
        return [self.directions_, self.thresholds_, self.order_, *list_matrix_arrays(self.train_)]

    def _nearest(self, inputs: Inputs, k: int) -> tuple[Int64, Float32]:
        rows = self._unit(inputs)
        leaves, bounds = self._leaves(rows), _compute_bounds(len(self.order_), self.depth_)
        ids, cosines = np.empty((rows.shape[0], k), np.int64), np.empty((rows.shape[0], k), np.float32)
        for leaf in np.unique(leaves):
            lo, hi = int(bounds[leaf]), int(bounds[leaf + 1])
            row_ids = np.flatnonzero(leaves == leaf)
            numbers, cosines[row_ids] = find_nearest_rows(rows[row_ids], self._leaf(leaf, lo, hi), hi - lo, k)
            ids[row_ids] = np.where(numbers < 0, -1, self.order_[lo + np.maximum(numbers, 0)])
        return ids, cosines


def _compute_bounds(n: int, depth: int) -> Int64:
    """Return the bounds of the nodes after n rows are halved `depth` times, (2^depth + 1,).

    Examples
    --------
    >>> _compute_bounds(7, 2).tolist()
    [0, 1, 3, 5, 7]
    """
    bounds = np.array([0, n])
    for _ in range(depth):
        bounds = np.sort(np.concatenate([bounds, (bounds[:-1] + bounds[1:]) // 2]))
    return bounds
