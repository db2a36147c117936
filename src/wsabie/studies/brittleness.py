"""What annotation loses when the nearest neighbour is not found ([W] section 6.4, "Analysis of Nearest Neighbor")."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float64, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require
from wsabie.sources.records import Rows

SHARED = 10
"""True neighbours that a tree's list is compared with."""


class Searched(NamedTuple):
    """Annotation by one neighbour, found in some way.

    Attributes
    ----------
    search : str
        How, in words.
    kind : {"exact", "first", "any", "tree"}
    chance : float or None
        Of finding a neighbour, for "first" and "any".
    leaf : int or None
        Training rows that a row is compared with, for "exact" and "tree".
    p1 : float
        Mean over test rows of the share of the neighbour's labels that are right: p@1, the neighbour's labels being
        tied.
    found : float
        Share of the test rows whose neighbour is the true nearest.
    shared : float or None
        Share of the 10 true nearest that are among the 10 found, for "exact" and "tree".
    ms : float or None
        Milliseconds per test row, rows given together, for "exact" and "tree".
    """

    search: str
    kind: str
    chance: float | None
    leaf: int | None
    p1: float
    found: float
    shared: float | None = None
    ms: float | None = None


def brittleness(
    train: Rows,
    test: Rows,
    *,
    chances: Sequence[float] = (0.5, 0.25, 0.1),
    depths: Sequence[int] = (1, 2, 3, 4, 6, 8),
    neighbours: int = 100,
    scaling: Any = "tfidf",
    seed: int = 0,
    progress: Progress = SILENT,
) -> list[Searched]:
    """How good a search for the nearest neighbour has to be.

    The chances are worked out and not drawn: with a chance c for the first neighbour alone, the first counts c and the
    second 1 - c; with a chance c for any particular one, the j-th counts c (1 - c)^(j - 1), and the last listed what
    remains.

    Parameters
    ----------
    train, test : Rows
        With the same columns. Test rows without a label that `train` knows do not count.
    chances : sequence of float
        Between 0 and 1.
    depths : sequence of int
        Levels of the trees; those that leave fewer than 10 rows in a leaf are passed over.
    neighbours : int
        Neighbours that are listed for each test row, at least 2.
    scaling : {"tfidf", "auto", None}
        Of rows, as in `NearestNeighbours`.
    seed : int
        Of the trees.
    progress : Progress

    Returns
    -------
    list of Searched
        The exact search; each chance for the first neighbour; each for any; each tree.

    Raises
    ------
    InputError
        A chance outside 0 to 1, too few rows, or no test row with a known label.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, Y = np.repeat(np.eye(2), 2, axis=0), csr_matrix(np.repeat(np.eye(2, dtype=int), 2, axis=0))
    >>> train = Rows(X, Y, ["ship", "horse"], list("abcd"))
    >>> [found.p1 for found in brittleness(train, train, chances=(0.5,), neighbours=4, scaling=None)]
    [1.0, 1.0, 0.75]
    """
    require(all(0 <= chance <= 1 for chance in chances), f"the chances are {list(chances)}; choose numbers from 0 to 1")
    n, labelled = len(train), np.flatnonzero((test.Y > 0).getnnz(axis=1))
    require(n >= 2 and neighbours >= 2, f"{n} training rows and {neighbours} neighbours are too few; give 2 or more")
    if not len(labelled):
        raise InputError("no test row has a label that the training rows know; give other test rows")
    few = tuple(depth for depth in depths if n >> depth >= SHARED)
    with progress.stage("searching neighbours", 1 + len(few), "searches") as bar:
        exact = _listed(train, test.X[labelled], "exact", None, min(neighbours, n), scaling, seed)
        bar.advance()
        right = _right(train.Y, test.Y[labelled], exact.ids)
        found = [_searched(exact, exact, right)]
        found += [_by_chance(right, "first", c, np.array([c, 1 - c])) for c in chances]
        found += [_by_chance(right, "any", c, _any(c, right.shape[1])) for c in chances]
        for depth in few:
            tree = _listed(train, test.X[labelled], "tree", depth, SHARED, scaling, seed)
            found.append(_searched(tree, exact, _right(train.Y, test.Y[labelled], tree.ids[:, :1])))
            bar.advance()
    return found


class _Listed(NamedTuple):
    kind: str
    leaf: int
    ids: Int64
    ms: float


def _listed(train: Rows, X: Matrix, kind: str, depth: int | None, k: int, scaling: Any, seed: int) -> _Listed:
    from wsabie.models.approximate import ApproximateNeighbours
    from wsabie.models.nearest import NearestNeighbours

    tree = NearestNeighbours(rows=scaling) if depth is None else ApproximateNeighbours(depth, rows=scaling, seed=seed)
    model = tree.fit(train.X, train.Y, label_names=train.label_names)
    model.neighbours(X[:1], k)  # compiles
    started = time.perf_counter()
    ids, _ = model.neighbours(X, k)
    ms = 1e3 * (time.perf_counter() - started) / X.shape[0]
    return _Listed(kind, len(train) >> (depth or 0), ids, ms)


def _right(labels: Matrix, truth: Matrix, ids: Int64) -> Float64:
    """Share of the labels of each neighbour that are right, (n, k); 0 for one without labels."""
    from scipy.sparse import diags

    known = (labels > 0).astype(np.float64)  # its stored values are all 1
    shares = (diags(1 / np.maximum(known.getnnz(axis=1), 1)) @ known).tocsr()
    right = (truth > 0).astype(np.float64)
    return np.stack([np.asarray(right.multiply(shares[column]).sum(1)).ravel() for column in ids.T], 1)


def _searched(listed: _Listed, exact: _Listed, right: Float64) -> Searched:
    k = min(SHARED, exact.ids.shape[1])
    pairs = zip(exact.ids[:, :k], listed.ids[:, :k], strict=True)
    shared = float(np.mean([np.isin(wanted, found).mean() for wanted, found in pairs]))
    words = "exact" if listed.kind == "exact" else f"tree, leaves of {listed.leaf:,} rows"
    found = float((listed.ids[:, 0] == exact.ids[:, 0]).mean())
    return Searched(words, listed.kind, None, listed.leaf, float(right[:, 0].mean()), found, shared, listed.ms)


def _by_chance(right: Float64, kind: str, chance: float, weights: Float64) -> Searched:
    words = {"first": "the first found {:.0%} of the time, else the second", "any": "any one found {:.0%} of the time"}
    p1 = float((right[:, : len(weights)] @ weights).mean())
    return Searched(words[kind].format(chance), kind, chance, None, p1, float(chance))


def _any(chance: float, k: int) -> Float64:
    """Chance that each of k neighbours is the first that is found; the last takes what remains.

    Examples
    --------
    >>> _any(0.5, 3).tolist()
    [0.5, 0.25, 0.25]
    """
    missed: Float64 = np.power(1.0 - chance, np.arange(k), dtype=np.float64)
    return np.append(chance * missed[:-1], missed[-1])
