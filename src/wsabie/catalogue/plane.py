"""Points of a space in two dimensions: principal components, UMAP, and where labels and new items go beside others.

All that counts is the direction of a point: items and labels of a model that compares by inner products have lengths
of their own, and what is near to what is said by the cosine.
"""

import warnings
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64
from wsabie.base.errors import InputError
from wsabie.base.machine import one_blas_thread

FEWEST = 10
"""Items that UMAP needs."""

_BLOCK = 8192
_NEIGHBOURS, _APART = 30, 0.4  # with fewer and less, groups shrink to specks that fly apart
_SHORTEST = 1e-12


class Principal(NamedTuple):
    """The two directions along which unit vectors differ most; `share` of their variance that these hold."""

    mean: Float64  # (dim,)
    directions: Float64  # (dim, 2)
    share: float

    def places(self, points: Any) -> Float32:
        """Points (n, dim) in the plane, (n, 2)."""
        found = np.empty((len(points), 2), np.float32)
        with one_blas_thread():
            for lo in range(0, len(points), _BLOCK):
                found[lo : lo + _BLOCK] = (_unit(points[lo : lo + _BLOCK]) - self.mean) @ self.directions
        return found


def principal(points: Any) -> Principal:
    """The principal components of the directions of points, by their exact covariance, with fixed signs.

    The entry of a direction that is largest is positive, as in scikit-learn. The same points give the same bits,
    whatever the number of threads; blocks are read, so that a table that is mapped need not fit in memory.

    Parameters
    ----------
    points : (n, dim) float32

    Examples
    --------
    >>> found = principal(np.array([[1, 0.1, 0], [1, -0.1, 0], [0.5, 0, 0.5]], np.float32))
    >>> np.abs(found.directions).round(1).tolist()
    [[0.4, 0.0], [0.0, 1.0], [0.9, 0.0]]
    """
    n, dim = points.shape
    mean, covariance = np.zeros(dim), np.zeros((dim, dim))
    with one_blas_thread():
        for lo in range(0, n, _BLOCK):
            mean += _unit(points[lo : lo + _BLOCK]).sum(axis=0, dtype=np.float64) / n
        near = mean.astype(np.float32)
        for lo in range(0, n, _BLOCK):
            block = _unit(points[lo : lo + _BLOCK]) - near
            covariance += block.T @ block
        return Principal(mean, *_leading(covariance))


def _leading(covariance: Float64) -> tuple[Float64, float]:
    from scipy.linalg import eigh

    dim = len(covariance)
    directions = np.zeros((dim, 2))
    kept = min(2, dim)
    values, vectors = eigh(covariance, subset_by_index=[dim - kept, dim - 1])
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    directions[:, :kept] = vectors * np.where(vectors[largest, np.arange(kept)] < 0, -1, 1)
    return directions, float(values.sum() / max(np.trace(covariance), _SHORTEST))


def has_umap() -> bool:
    """Whether the extra is installed."""
    return find_spec("umap") is not None


def umap_places(points: Any, start: Float32, seed: int = 0) -> Float32:
    """Points in the plane by UMAP, where near ones stay near; it begins where `start` puts them.

    Parameters
    ----------
    points : (n, dim) float32
        At least `FEWEST`.
    start : (n, 2) float32
        Of principal components: what is far apart in them stays so.
    seed : int
        The same seed gives the same places; that is done in one thread.

    Raises
    ------
    InputError
        UMAP is not installed, or there are too few points.
    """
    if not has_umap():
        raise InputError("UMAP is not installed; run: pip install 'wsabie[map]'")
    if len(points) < FEWEST:
        raise InputError(f"UMAP needs {FEWEST} items and there are {len(points)}; look at principal components")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions to come, which are nothing to people who look at a map
        from umap import UMAP

        neighbours = min(_NEIGHBOURS, len(points) - 1)
        begin = (start / max(float(start.std()), _SHORTEST)).astype(np.float32)
        reducer = UMAP(
            n_neighbors=neighbours, min_dist=_APART, metric="cosine", init=begin, random_state=seed, n_jobs=1
        )
        return np.asarray(reducer.fit_transform(np.asarray(points)), np.float32)


def middle(places: Float32) -> Float32:
    """Of some places in each row, (n, k, 2), the one from which all others of the row are nearest in sum, (n, 2).

    A mean would lie between the groups of a row, where nothing of it is.

    Examples
    --------
    >>> middle(np.array([[[0, 0], [0, 1], [9, 9]]], np.float32))
    array([[0., 1.]], dtype=float32)
    """
    apart = np.sqrt(np.square(places[:, :, None] - places[:, None]).sum(axis=-1)).sum(axis=-1)
    chosen: Float32 = places[np.arange(len(places)), apart.argmin(axis=1)]
    return chosen


def between(places: Float32, nearest: Int64) -> Float32:
    """Where new points go whose nearest ones are given, (n, k): at the median of these, (n, 2)."""
    return np.median(places[nearest], axis=1).astype(np.float32)


def _unit(block: Any) -> Float32:
    lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
    found: Float32 = block / np.maximum(lengths, _SHORTEST)[:, None]
    return found
