"""Label embedding trees (Bengio, Weston and Grangier, "Label Embedding Trees for Large Multi-Class Tasks", NIPS 2010).

A node holds a set of labels and has a point; a row goes down from the root to the children whose points have the
highest inner product with its own. Points are trained on the way: of two siblings the one that holds a label of the row
is to score higher, by a margin (their relaxation 2). A row's own point stays that of the flat model, and so do the
labels', which are scored exactly at the bottom.
"""

from functools import partial
from typing import Any, Self

import numpy as np

from wsabie.base.arrays import Bool, Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.sparse import to_csr
from wsabie.base.validation import require, whole_number
from wsabie.search.approximate import NARROW
from wsabie.search.codes import refuse_few
from wsabie.search.exact import ExactIndex
from wsabie.search.label_groups import Shape, fits, grown
from wsabie.search.measured import MEASURED_AT, WANTED, MeasuredIndex, fingerprint, sample_of
from wsabie.search.ready import as_rows, float32_rows, hidden_labels
from wsabie.storage.folder import Parts

KIND = "label tree"
_BATCH = 512
_BEAMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_LEARNT = 15_000
"""Rows that the nodes of a tree are trained on at most, and labels that stand in for them."""
_FEWEST_ROWS = 1000
"""Rows below which labels stand in for them."""


class LabelTree(MeasuredIndex):
    """Labels found by going down a tree.

    Parameters
    ----------
    exact : ExactIndex
        The labels of the flat model.
    shape : Shape
    beam : int
        Nodes of a level that are gone on from; 1 is the paper's prediction.
    points : (n_nodes, dim + 1) float32 or None
        Of the nodes, the bias last; None: the means of their labels.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    >>> tree = LabelTree.grow(ExactIndex(table), branching=8, leaf=20, beam=1000)
    >>> tree.top_k(table[:2], 3)[0].tolist() == ExactIndex(table).top_k(table[:2], 3)[0].tolist()
    True
    """

    kind = "tree"

    def __init__(self, exact: ExactIndex, shape: Shape, beam: int = 16, *, points: Float32 | None = None) -> None:
        super().__init__(exact, beam)
        self.shape = shape
        self.points = _means(exact, shape) if points is None else points
        self.n_bytes = int(self.points.nbytes + sum(array.nbytes for array in shape))

    @property
    def beam(self) -> int:
        """Nodes of a level that are gone on from: the effort of a tree."""
        return self.effort

    @beam.setter
    def beam(self, beam: int) -> None:
        self.effort = beam

    @classmethod
    def build(
        cls,
        exact: ExactIndex,
        *,
        recall: float = WANTED,
        queries: Any = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Self:
        """A tree of k-means, trained on what the exact search answers, with the least beam that reaches `recall`.

        Parameters
        ----------
        exact : ExactIndex
        recall : float
            Share of the exact top 10 that is to be found.
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
        refuse_few(n)
        require(0 < recall <= 1, f"recall is a share of the top {MEASURED_AT} such as 0.95, not {recall}")
        rng = np.random.default_rng(seed)
        asked, told = sample_of(exact, queries, rng)
        learnt = _to_learn_from(exact, queries, asked, rng)
        answers = exact.top_k(learnt, MEASURED_AT, threads=threads)[0]
        rows = np.repeat(np.arange(len(learnt)), MEASURED_AT)
        tree = cls.grow(exact, seed=seed)
        tree.train(learnt, _marked(rows, answers.ravel(), (len(learnt), n)), seed=seed)
        tree.queries = told
        beams = [beam for beam in _BEAMS if beam < len(tree.shape.starts)]
        tree.tune(
            rng.permutation(asked), recall, [partial(setattr, tree, "effort", beam) for beam in beams], beams, threads
        )
        return tree

    @classmethod
    def grow(
        cls,
        exact: ExactIndex,
        *,
        branching: int = 32,
        leaf: int = 64,
        confusion: Matrix | None = None,
        beam: int = 16,
        seed: int = 0,
    ) -> Self:
        """A tree whose nodes are at the mean of their labels; `train` it.

        Parameters
        ----------
        exact : ExactIndex
        branching : int
            Children of a node, at most.
        leaf : int
            Labels of a node that is not split.
        confusion : sparse matrix (n_labels, n_labels) or None
            How often the flat model answered j where i was right, on rows set aside: its spectral clustering makes
            the tree. None: k-means of the labels' points.

        Raises
        ------
        InputError
            A number is too small, or the matrix does not fit.
        """
        branching, leaf = whole_number(branching, "branching"), whole_number(leaf, "leaf")
        require(branching > 1, "a node has two children at least; give a branching of 2 or more")
        n = len(exact.table)
        if confusion is not None and confusion.shape != (n, n):
            raise InputError(f"the confusion matrix has the shape {confusion.shape} for {n} labels; give ({n}, {n})")
        points, _ = _linear(exact, np.arange(n))
        return cls(exact, grown(points, branching, leaf, confusion, seed), beam)

    def train(
        self, points: Any, Y: Matrix, *, epochs: int = 5, margin: float = 0.5, rate: float = 0.1, seed: int = 0
    ) -> list[float]:
        """Train the nodes on rows with labels; returns, by epoch, the share of steps down that went wrong.

        Parameters
        ----------
        points : (n, dim) float32
            Of rows, as the flat model encodes them.
        Y : sparse matrix (n, n_labels)
            Values above 0 are labels: the rows' own, or those that the flat model ranks first.
        epochs : int
        margin : float
            In standard deviations of the scores at the root's children.
        rate : float
            Of AdaGrad, in root mean square lengths of a node's point.
        seed : int
        """
        from scipy.sparse import csr_matrix

        X = np.hstack([float32_rows(points, "the points"), np.ones((len(points), 1), np.float32)])
        paths, rng = self.shape.paths(), np.random.default_rng(seed)
        Y = to_csr(Y, "Y") > 0
        rows, labels = Y.nonzero()
        require(len(rows) > 0, "no row has a label; give rows with labels")
        n_nodes, there = len(self.shape.starts), paths >= 0
        held = csr_matrix((np.ones(there.sum(), np.int32), (there.nonzero()[0], paths[there])), (len(paths), n_nodes))
        right = (csr_matrix(Y, dtype=np.int32) @ held).tocoo()
        keys = np.sort(right.row.astype(np.int64) * n_nodes + right.col)  # which nodes hold a label of which row
        top = X[rng.permutation(len(X))[:1000]] @ self.points[self.shape.parents == 0].T
        margin, rate = margin * float(top.std()), rate * float(np.sqrt(np.mean(self.points**2) * self.points.shape[1]))
        squares, wrong = np.full((n_nodes, 1), 1e-8, np.float32), []
        for _ in range(epochs):
            order, missed, steps = rng.permutation(len(rows)), 0, 0
            for lo in range(0, len(order), _BATCH):
                some = order[lo : lo + _BATCH]
                for level in range(paths.shape[1]):
                    own = paths[labels[some], level]
                    found = self._step(X, rows[some][own >= 0], own[own >= 0], keys, margin, rate, squares)
                    missed, steps = missed + found[0], steps + found[1]
            wrong.append(missed / max(steps, 1))
        return wrong

    def top_k(
        self,
        queries: Any,
        k: int,
        *,
        exclude: Matrix | None = None,
        candidates: Any = None,
        threads: int | None = None,
    ) -> tuple[Int64, Float32]:
        """About the k best labels of each query, with their exact scores, as `ExactIndex.top_k` gives them."""
        k, n = whole_number(k, "k"), len(self.exact.table)
        queries = self.exact.checked(queries)[0]
        chosen, exclude = self.exact.among(candidates), as_rows(exclude)
        if chosen is not None and len(chosen) < NARROW * n:
            return self.exact.top_k(queries, k, exclude=exclude, candidates=chosen, threads=threads)
        hidden = hidden_labels(exclude, len(queries), n, None)
        among = np.full(n, chosen is None)
        among[self.exact.gone if chosen is None else chosen] = chosen is not None
        ids, scores = np.full((len(queries), k), -1, np.int64), np.full((len(queries), k), -np.inf, np.float32)
        for i, query in enumerate(queries):
            out_of = None if hidden is None else hidden.labels[hidden.indptr[i] : hidden.indptr[i + 1]]
            found = self._enough(query, k, among, out_of)
            if len(found) < k:
                out = None if exclude is None else exclude[i : i + 1]
                ids[i : i + 1], scores[i : i + 1] = self.exact.top_k(
                    query[None], k, exclude=out, candidates=chosen, threads=threads
                )
            else:
                ids[i : i + 1], scores[i : i + 1] = self.exact.rescored(query[None], found[None], k)
        return ids, scores

    def to_parts(self) -> Parts:
        """What a folder keeps: the nodes, and of which table they are."""
        return Parts(KIND, self.told(), {"points": self.points, **self.shape._asdict()})

    @classmethod
    def from_parts(cls, parts: Parts, exact: ExactIndex) -> Self | None:
        """The tree of these labels; None when it was made of others.

        Raises
        ------
        ValueError, KeyError, TypeError
            The parts hold something else.
        """
        config, tensors = parts.config, parts.tensors
        if parts.kind != KIND:
            raise ValueError(f"it holds {parts.kind!r} and no label tree")
        if config["table"] != fingerprint(exact):
            return None
        shape = Shape(*(tensors[name] for name in Shape._fields))
        n, dim = exact.table.shape
        n_nodes = len(shape.starts)
        if any(column.dtype != np.int64 or column.shape != (n_nodes,) for column in shape[1:]) or not fits(shape, n):
            raise ValueError(f"its nodes do not fit {n:,} labels")
        points = tensors["points"]
        if points.dtype != np.float32 or points.shape != (n_nodes, dim + 1):
            raise ValueError(f"its nodes are no points of {dim} dimensions")
        tree = cls(exact, shape, points=points)
        tree.tell(config)
        return tree

    def _enough(self, query: Float32, k: int, among: Bool, hidden: Any) -> Int64:
        """Labels that come into question, with a wider beam where there are fewer than k."""
        beam = whole_number(self.beam, "beam")
        while True:
            found = self._bottom(query, beam)
            found = found[among[found]]
            if hidden is not None:
                found = found[~np.isin(found, hidden)]
            if len(found) >= k or beam >= len(self.shape.starts):
                return found
            beam *= 2

    def _bottom(self, query: Float32, beam: int) -> Int64:
        """The labels of the leaves that a query reaches.

        Scores of children of different nodes were never compared in training: what counts is how far the nodes of a
        path fell behind their best siblings.
        """
        shape = self.shape
        nodes, behind = np.zeros(1, np.int64), np.zeros(1, np.float32)
        leaves: list[Int64] = []
        lost: list[Float32] = []
        while len(nodes):
            ends = shape.counts[nodes] == 0
            leaves.append(nodes[ends])
            lost.append(behind[ends])
            nodes, behind = nodes[~ends], behind[~ends]
            if not len(nodes):
                break
            counts = shape.counts[nodes]
            before = np.cumsum(counts) - counts
            children = np.arange(counts.sum()) + np.repeat(shape.first[nodes] - before, counts)
            scores = self.points[children, :-1] @ query + self.points[children, -1]
            scores += np.repeat(behind - np.maximum.reduceat(scores, before), counts)
            if len(children) > beam:
                kept = np.argpartition(-scores, beam - 1)[:beam]
                children, scores = children[kept], scores[kept]
            nodes, behind = children, scores
        reached, late = np.concatenate(leaves), np.concatenate(lost)
        reached = reached[np.argsort(-late, kind="stable")[:beam]]
        return np.concatenate([shape.order[shape.starts[leaf] : shape.stops[leaf]] for leaf in reached])

    def _step(
        self, X: Float32, which: Int64, own: Int64, keys: Int64, margin: float, rate: float, squares: Float32
    ) -> tuple[int, int]:
        """One level of a batch: the worst sibling that holds no label of the row is to fall behind by the margin."""
        from scipy.sparse import csr_matrix

        if not len(own):
            return 0, 0
        X = X[which]
        parents = self.shape.parents[own]
        children = self.shape.first[parents][:, None] + np.arange(self.shape.counts[parents].max())
        there = children < (self.shape.first[parents] + self.shape.counts[parents])[:, None]
        children = np.where(there, children, own[:, None])
        scores = np.einsum("bd,bkd->bk", X, self.points[children], optimize=True)
        reached = np.einsum("bd,bd->b", X, self.points[own])
        asked = which[:, None] * len(self.shape.starts) + children
        scores[keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked] = -np.inf
        worst = scores.argmax(axis=1)
        rows = np.arange(len(own))
        violated = scores[rows, worst] + margin > reached
        missed = int((scores[rows, worst] > reached).sum())
        if violated.any():
            rows, n = rows[violated], int(violated.sum())
            nodes = np.concatenate([own[violated], children[rows, worst[violated]]])
            signs = np.repeat(np.array([1, -1], np.float32), n)
            moved, places = np.unique(nodes, return_inverse=True)
            sums = csr_matrix((signs, (places, np.tile(np.arange(n), 2))), (len(moved), n)) @ X[rows]
            squares[moved, 0] += np.einsum("ij,ij->i", sums, sums)
            self.points[moved] += rate * sums / np.sqrt(squares[moved])
        return missed, len(own)


def _to_learn_from(exact: ExactIndex, queries: Any, asked: Float32, rng: np.random.Generator) -> Float32:
    """Rows, or labels where there are too few, but none that a tree is measured on."""
    rows = exact.table if queries is None else float32_rows(queries, "the queries")
    by_labels = len(rows) < _FEWEST_ROWS + len(asked) or queries is None
    rows = exact.table if by_labels else rows
    points: Float32 = rows[np.sort(rng.permutation(len(rows))[: _LEARNT + len(asked)])].astype(np.float32)
    if by_labels and exact.centre is not None:
        points = points + exact.centre
    others = points[~np.isin(_rows_as_bytes(points), _rows_as_bytes(asked))]
    return others[:_LEARNT] if len(others) else points


def _rows_as_bytes(rows: Float32) -> Any:
    return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * 4))).ravel()


def _marked(rows: Int64, columns: Int64, shape: tuple[int, int]) -> Matrix:
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape)


def _linear(exact: ExactIndex, which: Int64) -> tuple[Float32, Float32]:
    """Labels as w and b of w . q + b that orders them as their scores do."""
    rows = exact.table[which].astype(np.float32)
    bias = np.zeros(len(rows), np.float32) if exact.bias is None else exact.bias[which]
    if exact.similarity == "cosine":
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-30))
    elif exact.similarity == "euclidean":
        rows = rows if exact.centre is None else rows + exact.centre
        return 2 * rows, bias - np.einsum("ij,ij->i", rows, rows)
    return rows, bias


def _means(exact: ExactIndex, shape: Shape) -> Float32:
    """The mean of each node's labels, (n_nodes, dim + 1), the bias last."""
    rows, bias = _linear(exact, shape.order)
    sums = np.zeros((len(rows) + 1, rows.shape[1] + 1))
    np.cumsum(np.column_stack([rows, bias]), axis=0, dtype=np.float64, out=sums[1:])
    sizes = (shape.stops - shape.starts)[:, None]
    return np.ascontiguousarray((sums[shape.stops] - sums[shape.starts]) / sizes, np.float32)
