"""Approximate k nearest neighbours by one balanced tree of random projections ([W] section 6.3).

At each node a row is projected on a random direction; the median of the projections of the node's training rows sends
half of them to either side. After p levels a row stands in a leaf of about n / 2^p training rows, and its neighbours
are sought in there alone, exactly: O((p + n / 2^p) d~) in place of O(n d~), d~ being the non-zeros of a row.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64, Matrix
from wsabie.base.errors import UnsuitableError
from wsabie.base.validation import require
from wsabie.models.inputs import Inputs, matrix_from, matrix_tensors, row_ranges
from wsabie.models.neighbours import NeighbourVotes, arrays_of, by_feature, nearest_rows
from wsabie.models.scaling import Rows, RowScaling, row_sums
from wsabie.storage.folder import Parts
from wsabie.storage.schema import Count, PositiveCount, check_array, read_config

PAPER_LEAF = 20_000
"""Training rows in a leaf of the paper's tree."""

SMALL_LEAF = 100
"""With "auto", the fewest training rows in a leaf."""


def auto_depth(n: int) -> int:
    """Levels for n training rows: leaves of about 20,000 rows, as in the paper, or n / 8 where that is less.

    Leaves keep at least 100 rows.

    Examples
    --------
    >>> [auto_depth(n) for n in (150, 450, 4500, 200_000, 839_310, 2_518_604)]
    [0, 2, 3, 3, 5, 7]
    """
    wanted = max(3, round(math.log2(n / PAPER_LEAF)))
    return min(wanted, max(0, int(math.log2(n / SMALL_LEAF))))


@dataclass(frozen=True)
class TreeConfig:
    """The part of a folder's config that says how large the tree is."""

    train_rows: PositiveCount
    tree_depth: Count


class ApproximateNeighbours(NeighbourVotes):
    """The k training rows of highest cosine in one leaf of a balanced tree vote for their labels.

    The votes are those of `NearestNeighbours`, and with `depth=0` everything is the same, bit for bit. Leaf sizes
    differ by at most 1. Besides the training rows the tree takes 2^depth directions of `n_features` float32, and for
    sparse rows an index of the features in each leaf of the same order.

    Parameters
    ----------
    depth : int or "auto", default "auto"
        Levels of the tree; see `auto_depth`. At most log2 of the training rows.
    k : int, default 10
        Neighbours that vote; all rows of the leaf when there are fewer.
    rows : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows before the cosine is taken, as in `Wsabie`.
    seed : int, default 0
        Of the directions.

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

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        config = {**self._described(), "scaling": self.scaling_.method, "tree_depth": self.depth_}
        config["train_rows"] = self.targets_.shape[0]
        tree = {"directions": self.directions_, "thresholds": self.thresholds_, "order": self.order_}
        matrices = matrix_tensors("train", self.train_) | matrix_tensors("targets", self.targets_)
        return Parts(self.kind, config, tree | matrices | self.scaling_.tensors())

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; training rows and directions stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restored(config)
        fields, width = read_config(TreeConfig, config), model.n_features_in_
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
        stacked = (width << model.depth_, int(np.diff(_bounds(n, model.depth_)).max()))
        model.train_ = matrix_from("train", t, (n, width) if "train" in t else stacked)
        model.targets_ = matrix_from("targets", t, (n, len(model.vocabulary_)))
        return model

    def leaves(self, X: Any) -> Int64:
        """The leaf, 0 to 2^depth_ - 1, in which the neighbours of each row are sought, (n,)."""
        return self._leaves(self._unit(self._checked(X)))

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        super().check_parameters()
        whole = isinstance(self.depth, (int, np.integer)) and not isinstance(self.depth, bool)
        require(
            self.depth == "auto" or (whole and self.depth >= 0),
            f'depth is {self.depth!r}; choose "auto" or a whole number from 0',
        )
        require(
            isinstance(self.seed, (int, np.integer)) and self.seed >= 0,
            f"seed is {self.seed!r}; choose a whole number from 0",
        )

    def _keep(self, train: Matrix) -> None:
        n, d = train.shape
        self.depth_ = auto_depth(n) if self.depth == "auto" else int(self.depth)
        if self.depth_ >= n.bit_length():
            raise UnsuitableError(
                f"a tree of {self.depth_} levels has more leaves than the {n} training rows; "
                f"choose a depth of at most {n.bit_length() - 1}"
            )
        nodes = 2**self.depth_ - 1
        self.directions_ = np.random.default_rng(self.seed).standard_normal((nodes, d), np.float32)
        self.thresholds_ = np.zeros(nodes)
        leaves = self._grow(train)
        self.order_ = np.argsort(leaves, kind="stable")
        self.train_ = self._arranged(train)

    def _grow(self, train: Matrix) -> Int64:
        """Set the thresholds, level by level; the leaf of every training row."""
        place, bounds = np.zeros(train.shape[0], np.int64), _bounds(train.shape[0], 0)
        for level in range(self.depth_):
            first = 2**level - 1
            projected = self._projected(train, first + place)
            order = np.lexsort((projected, place))
            middle = (bounds[:-1] + bounds[1:]) // 2
            self.thresholds_[first : 2 * first + 1] = projected[order[np.stack([middle - 1, middle])]].mean(0)
            bounds = _bounds(train.shape[0], level + 1)
            place[order] = np.repeat(np.arange(2 ** (level + 1)), np.diff(bounds))
        return place

    def _leaves(self, rows: Matrix) -> Int64:
        place = np.zeros(rows.shape[0], np.int64)
        for level in range(self.depth_):
            node = 2**level - 1 + place
            place = 2 * place + (self._projected(rows, node) > self.thresholds_[node])
        return place

    def _projected(self, rows: Matrix, nodes: Int64) -> Float64:
        """Inner product of each row with the direction of its node; of a sparse row its non-zeros alone are read."""
        out = np.zeros(rows.shape[0])
        for lo, hi in row_ranges(rows.shape[0], 4 * (1 + arrays_of(rows)[0].size // max(rows.shape[0], 1))):
            if not hasattr(rows, "tocsr"):
                out[lo:hi] = np.einsum("ij,ij->i", rows[lo:hi], self.directions_[nodes[lo:hi]])
                continue
            indptr = rows.indptr[lo : hi + 1]  # slices of a scipy matrix would take longer than the work
            at = slice(indptr[0], indptr[-1])
            directions = self.directions_[np.repeat(nodes[lo:hi], np.diff(indptr)), rows.indices[at]]
            out[lo:hi] = row_sums(rows.data[at] * directions, indptr - indptr[0])
        return out

    def _arranged(self, train: Matrix) -> Matrix:
        from scipy.sparse import csr_matrix, vstack

        bounds = _bounds(train.shape[0], self.depth_)
        if not hasattr(train, "tocsr"):
            return train[self.order_]
        largest = int(np.diff(bounds).max())
        leaves = [by_feature(train[self.order_[lo:hi]]) for lo, hi in pairwise(bounds)]
        for leaf in leaves:
            leaf.resize(leaf.shape[0], largest)
        return csr_matrix(vstack(leaves, format="csr"))

    def _leaf(self, leaf: int, lo: int, hi: int) -> Matrix:
        """The training rows of a leaf, sharing memory."""
        from scipy.sparse import csr_matrix

        if not hasattr(self.train_, "tocsr"):
            return self.train_[lo:hi]
        d = self.n_features_in_
        indptr = self.train_.indptr[leaf * d : (leaf + 1) * d + 1]
        start, end = indptr[0], indptr[-1]
        parts = (self.train_.data[start:end], self.train_.indices[start:end], indptr - start)
        return csr_matrix(parts, shape=(d, hi - lo))

    def _arrays(self) -> list[Any]:
        return [self.directions_, self.thresholds_, self.order_, *arrays_of(self.train_)]

    def _nearest(self, inputs: Inputs, k: int) -> tuple[Int64, Float32]:
        rows = self._unit(inputs)
        leaves, bounds = self._leaves(rows), _bounds(len(self.order_), self.depth_)
        ids, found = np.empty((rows.shape[0], k), np.int64), np.empty((rows.shape[0], k), np.float32)
        for leaf in np.unique(leaves):
            lo, hi = int(bounds[leaf]), int(bounds[leaf + 1])
            here = np.flatnonzero(leaves == leaf)
            numbers, found[here] = nearest_rows(rows[here], self._leaf(leaf, lo, hi), hi - lo, k)
            ids[here] = np.where(numbers < 0, -1, self.order_[lo + np.maximum(numbers, 0)])
        return ids, found


def _bounds(n: int, depth: int) -> Int64:
    """Where the nodes of a level begin when n rows are halved `depth` times, and the end, (2^depth + 1,).

    Examples
    --------
    >>> _bounds(7, 2).tolist()
    [0, 1, 3, 5, 7]
    """
    bounds = np.array([0, n])
    for _ in range(depth):
        bounds = np.sort(np.concatenate([bounds, (bounds[:-1] + bounds[1:]) // 2]))
    return bounds
