"""Loss of annotation when the nearest neighbour is missed (Weston et al. 2010, section 6.4)."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float64, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.io.records import FeatureTable

SHARED = 10
"""True neighbours to compare with a tree's list."""


class NeighbourSearchFigures(NamedTuple):
    """Annotation by one neighbour of some search.

    Attributes
    ----------
    search : str
        Name in words.
    kind : {"exact", "first", "any", "tree"}
    chance : float or None
        Of finding a neighbour, for "first" and "any".
    leaf : int or None
        Training rows that a row is compared with, for "exact" and "tree".
    p1 : float
        Mean over test rows of the share of the neighbour's labels that are right: p@1, the neighbour's labels being
        tied.
    share_found : float
        Share of the test rows whose neighbour is the true nearest.
    shared : float or None
        Share of the 10 true nearest that are among the 10 found, for "exact" and "tree".
    ms : float or None
        Milliseconds per test row, in a batch, for "exact" and "tree".
    """

    search: str
    kind: str
    chance: float | None
    leaf: int | None
    p1: float
    share_found: float
    shared: float | None = None
    ms: float | None = None


def measure_brittleness(
    train: FeatureTable,
    test: FeatureTable,
    *,
    chances: Sequence[float] = (0.5, 0.25, 0.1),
    depths: Sequence[int] = (1, 2, 3, 4, 6, 8),
    neighbours: int = 100,
    scaling: Any = "tfidf",
    seed: int = 0,
    progress: Progress = SILENT,
) -> list[NeighbourSearchFigures]:
    """Measure annotation by searches that miss the nearest neighbour more or less often.

    The chances are exact, not sampled: with a chance c for the first neighbour alone, the first counts c and the
    second 1 - c; with a chance c for any particular one, the j-th counts c (1 - c)^(j - 1), and the last listed what
    remains.

    Parameters
    ----------
    train, test : FeatureTable
        With the same columns. Test rows without a label that `train` knows do not count.
    chances : sequence of float
        Between 0 and 1.
    depths : sequence of int
        Levels of the trees; trees with fewer than 10 rows in a leaf are skipped.
    neighbours : int
        Listed neighbours of each test row, at least 2.
    scaling : {"tfidf", "auto", None}
        Of rows, as in `NearestNeighbours`.
    seed : int
        Of the trees.
    progress : Progress

    Returns
    -------
    list of NeighbourSearchFigures
        The exact search; each chance for the first neighbour; each for any; each tree.

    Raises
    ------
    InputError
        A chance outside 0 to 1, too few rows, or no test row with a known label.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, Y = np.repeat(np.eye(2), 2, axis=0), csr_matrix(np.repeat(np.eye(2, dtype=int), 2, axis=0))
    >>> train = FeatureTable(X, Y, ["ship", "horse"], list("abcd"))
    >>> [search.p1 for search in measure_brittleness(train, train, chances=(0.5,), neighbours=4, scaling=None)]
    [1.0, 1.0, 0.75]
    """
    require(all(0 <= chance <= 1 for chance in chances), f"the chances are {list(chances)}; choose numbers from 0 to 1")
    n, labelled = len(train), np.flatnonzero((test.Y > 0).getnnz(axis=1))
    require(n >= 2 and neighbours >= 2, f"{n} training rows and {neighbours} neighbours are too few; give 2 or more")
    if not len(labelled):
        raise InputError("no test row has a label that the training rows know; give other test rows")
    usable_depths = tuple(depth for depth in depths if n >> depth >= SHARED)
    with progress.stage("searching neighbours", 1 + len(usable_depths), "searches") as bar:
        exact = _list_neighbours(train, test.X[labelled], "exact", None, min(neighbours, n), scaling, seed)
        bar.advance()
        right = _measure_right_share(train.Y, test.Y[labelled], exact.ids)
        figures = [_measure_search(exact, exact, right)]
        figures += [_measure_by_chance(right, "first", c, np.array([c, 1 - c])) for c in chances]
        figures += [_measure_by_chance(right, "any", c, _compute_chances(c, right.shape[1])) for c in chances]
        for depth in usable_depths:
            tree = _list_neighbours(train, test.X[labelled], "tree", depth, SHARED, scaling, seed)
            figures.append(
                _measure_search(tree, exact, _measure_right_share(train.Y, test.Y[labelled], tree.ids[:, :1]))
            )
            bar.advance()
    return figures


class _NeighbourList(NamedTuple):
    kind: str
    leaf: int
    ids: Int64
    ms: float


def _list_neighbours(
    train: FeatureTable, X: Matrix, kind: str, depth: int | None, k: int, scaling: Any, seed: int
) -> _NeighbourList:
    from wsabie.models.nearest_neighbours import ApproximateNeighbours, NearestNeighbours

    tree = (
        NearestNeighbours(scaling=scaling)
        if depth is None
        else ApproximateNeighbours(depth, scaling=scaling, seed=seed)
    )
    model = tree.fit(train.X, train.Y, label_names=train.label_names)
    model.neighbours(X[:1], k)  # compiles
    started = time.perf_counter()
    ids, _ = model.neighbours(X, k)
    ms = 1e3 * (time.perf_counter() - started) / X.shape[0]
    return _NeighbourList(kind, len(train) >> (depth or 0), ids, ms)


def _measure_right_share(labels: Matrix, truth: Matrix, ids: Int64) -> Float64:
    """Return the share of right labels of each neighbour, (n, k); 0 without labels."""
    from scipy.sparse import diags

    trained_labels = (labels > 0).astype(np.float64)  # its stored values are all 1
    shares = (diags(1 / np.maximum(trained_labels.getnnz(axis=1), 1)) @ trained_labels).tocsr()
    right = (truth > 0).astype(np.float64)
    return np.stack([np.asarray(right.multiply(shares[column]).sum(1)).ravel() for column in ids.T], 1)


def _measure_search(listed: _NeighbourList, exact: _NeighbourList, right: Float64) -> NeighbourSearchFigures:
    k = min(SHARED, exact.ids.shape[1])
    pairs = zip(exact.ids[:, :k], listed.ids[:, :k], strict=True)
    shared = float(np.mean([np.isin(true_ids, listed_ids).mean() for true_ids, listed_ids in pairs]))
    words = "exact" if listed.kind == "exact" else f"tree, leaves of {listed.leaf:,} rows"
    found_share = float((listed.ids[:, 0] == exact.ids[:, 0]).mean())
    return NeighbourSearchFigures(
        words, listed.kind, None, listed.leaf, float(right[:, 0].mean()), found_share, shared, listed.ms
    )


def _measure_by_chance(right: Float64, kind: str, chance: float, weights: Float64) -> NeighbourSearchFigures:
    words = {"first": "the first found {:.0%} of the time, else the second", "any": "any one found {:.0%} of the time"}
    p1 = float((right[:, : len(weights)] @ weights).mean())
    return NeighbourSearchFigures(words[kind].format(chance), kind, chance, None, p1, float(chance))


def _compute_chances(chance: float, k: int) -> Float64:
    """Return the chances that each of k neighbours is the first found; the last takes the remainder.

    Examples
    --------
    >>> _compute_chances(0.5, 3).tolist()
    [0.5, 0.25, 0.25]
    """
    missed: Float64 = np.power(1.0 - chance, np.arange(k), dtype=np.float64)
    return np.append(chance * missed[:-1], missed[-1])
