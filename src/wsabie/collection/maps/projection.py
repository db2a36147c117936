"""Projections to the plane: principal components, UMAP, and places for labels and new items.

Only the direction of a point counts: models that compare by inner products give points different lengths, and nearness
is measured by the cosine.
"""

import warnings
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Float64, Int64
from wsabie.core.errors import InputError
from wsabie.core.machine import limit_blas_threads

FEWEST = 10
"""Minimum number of items for UMAP."""

_BLOCK = 8192
_NEIGHBOURS, _MIN_DISTANCE = 30, 0.4  # with fewer and less, groups shrink to specks that fly apart
_SHORTEST = 1e-12


class PrincipalComponents(NamedTuple):
    """Two directions of largest variance of unit vectors; `share` is their part of the variance."""

    mean: Float64  # (dim,)
    directions: Float64  # (dim, 2)
    share: float

    def places(self, points: Any) -> Float32:
        """Return points (n, dim) in the plane, (n, 2)."""
        plane = np.empty((len(points), 2), np.float32)
        with limit_blas_threads():
            for lo in range(0, len(points), _BLOCK):
                plane[lo : lo + _BLOCK] = (_normalise(points[lo : lo + _BLOCK]) - self.mean) @ self.directions
        return plane


def compute_principal_components(points: Any) -> PrincipalComponents:
    """Return the principal components of directions, by exact covariance, with fixed signs.

    The largest entry of each direction is positive, as in scikit-learn. The same points give the same bits for any
    number of threads. Points are read in blocks, so a memory-mapped table need not fit in memory.

    Parameters
    ----------
    points : (n, dim) float32

    Examples
    --------
    >>> components = compute_principal_components(np.array([[1, 0.1, 0], [1, -0.1, 0], [0.5, 0, 0.5]], np.float32))
    >>> np.abs(components.directions).round(1).tolist()
    [[0.4, 0.0], [0.0, 1.0], [0.9, 0.0]]
    """
    n, dim = points.shape
    mean, covariance = np.zeros(dim), np.zeros((dim, dim))
    with limit_blas_threads():
        for lo in range(0, n, _BLOCK):
            mean += _normalise(points[lo : lo + _BLOCK]).sum(axis=0, dtype=np.float64) / n
        centre = mean.astype(np.float32)
        for lo in range(0, n, _BLOCK):
            block = _normalise(points[lo : lo + _BLOCK]) - centre
            covariance += block.T @ block
        return PrincipalComponents(mean, *_find_leading(covariance))


def _find_leading(covariance: Float64) -> tuple[Float64, float]:
    from scipy.linalg import eigh

    dim = len(covariance)
    directions = np.zeros((dim, 2))
    n_directions = min(2, dim)
    values, vectors = eigh(covariance, subset_by_index=[dim - n_directions, dim - 1])
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    directions[:, :n_directions] = vectors * np.where(vectors[largest, np.arange(n_directions)] < 0, -1, 1)
    return directions, float(values.sum() / max(np.trace(covariance), _SHORTEST))


def has_umap() -> bool:
    """Return True if UMAP is installed."""
    return find_spec("umap") is not None


def compute_umap(points: Any, start: Float32, seed: int = 0) -> Float32:
    """Return points in the plane by UMAP, which keeps neighbours together; it begins at `start`.

    Parameters
    ----------
    points : (n, dim) float32
        At least `FEWEST`.
    start : (n, 2) float32
        Principal components; points far apart in them stay apart.
    seed : int
        The same seed gives the same places; UMAP then runs in one thread.

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
        warnings.simplefilter("ignore")  # deprecations, which do not concern readers of a map
        from umap import UMAP

        neighbours = min(_NEIGHBOURS, len(points) - 1)
        initial_places = (start / max(float(start.std()), _SHORTEST)).astype(np.float32)
        reducer = UMAP(
            n_neighbors=neighbours,
            min_dist=_MIN_DISTANCE,
            metric="cosine",
            init=initial_places,
            random_state=seed,
            n_jobs=1,
        )
        return np.asarray(reducer.fit_transform(np.asarray(points)), np.float32)


def compute_median(places: Float32) -> Float32:
    """Return, for each row of places (n, k, 2), the place nearest to all others in sum, (n, 2).

    A mean could lie between the groups of a row, far from all places.

    Examples
    --------
    >>> compute_median(np.array([[[0, 0], [0, 1], [9, 9]]], np.float32))
    array([[0., 1.]], dtype=float32)
    """
    distances = np.sqrt(np.square(places[:, :, None] - places[:, None]).sum(axis=-1)).sum(axis=-1)
    medians: Float32 = places[np.arange(len(places)), distances.argmin(axis=1)]
    return medians


def place_between(places: Float32, nearest: Int64) -> Float32:
    """Return the places of new points: the medians of their nearest points, (n, k) to (n, 2)."""
    return np.median(places[nearest], axis=1).astype(np.float32)


def _normalise(block: Any) -> Float32:
    lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
    unit_vectors: Float32 = block / np.maximum(lengths, _SHORTEST)[:, None]
    return unit_vectors
