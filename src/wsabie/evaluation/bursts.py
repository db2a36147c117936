"""Bursts: near-copies among pictures, and pictures of one moment, which no split may part."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils.extmath import safe_sparse_dot

from wsabie.core.arrays import Float32, Float64, Int64, Matrix

SECONDS = 10.0
"""Longest time between a picture and the leader that it resembles."""
RESEMBLANCE = 0.65
"""Lowest cosine of rows of pictures that resemble each other."""

_CELLS = 1 << 24  # of a block of cosines
_SKETCH_WIDTH = 128  # of rows that find the pairs whose cosine is worth computing
_SKETCH_ERROR = 0.1  # four times the standard error of a cosine of .85, (1 - .85 ** 2) / 128 ** .5


def find_leaders(X: Matrix, times: Float64, near_equality: float | None, n_leaders: int = 0) -> Int64:
    """Return the row of the leader of each row, (n,).

    A row joins the first leader that it nearly equals, or merely resembles if both were taken within `SECONDS`.

    Parameters
    ----------
    X : ndarray or csr_matrix (n, n_features)
    times : (n,) float64
        Seconds; NaN where the time is unknown.
    near_equality : float or None
        Lowest cosine of pictures of one burst whose times differ or are unknown (`FeatureTable.near_equality`); None:
        only pictures with a time join.
    n_leaders : int
        Number of first rows that lead already.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.9, 0.5], [0.0, 1.0], [0.01, 1.0]])
    >>> find_leaders(X, np.array([0.0, 3.0, 500.0, np.nan]), 0.85).tolist()
    [0, 0, 2, 2]
    """
    rows, n = normalize(X), X.shape[0]
    sketches = None if near_equality is None else _sketch_rows(rows)
    leaders, is_leader = np.arange(n), np.arange(n) < n_leaders
    by_time = np.argsort(times)
    starts = np.searchsorted(times, times - SECONDS, sorter=by_time)
    ends = np.searchsorted(times, np.nextafter(times + SECONDS, np.inf), sorter=by_time)
    size = max(1, _CELLS // max(n, 1))
    for row in range(n_leaders, n):
        near = by_time[starts[row] : ends[row]]
        limits = np.full(len(near), RESEMBLANCE)
        if sketches is not None and near_equality is not None:
            offset = (row - n_leaders) % size
            if offset == 0:
                alike = sketches[row : row + size] @ sketches[: row + size].T >= near_equality - _SKETCH_ERROR
            near = np.append(near, np.flatnonzero(alike[offset, :row]))
            limits = np.append(limits, np.full(len(near) - len(limits), near_equality))
        is_candidate = (near < row) & is_leader[near]
        near, limits = near[is_candidate], limits[is_candidate]
        candidates = near[safe_sparse_dot(rows[near], rows[[row]].T, dense_output=True).ravel() >= limits]
        is_leader[row] = not len(candidates)
        leaders[row] = candidates.min(initial=row)
    return leaders


def parse_capture_times(times: Sequence[str | None]) -> Float64:
    """Return the seconds of ISO 8601 times, by the camera's clock; NaN for none and for mere dates, (n,).

    Examples
    --------
    >>> parse_capture_times(["1970-01-02T00:00:01", "2024-05-01", "", None]).tolist()
    [86401.0, nan, nan, nan]
    """
    return np.array([_parse_capture_time(text or "") for text in times], np.float64)


def _parse_capture_time(text: str) -> float:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    is_date = len(text) <= len("2024-05-01")
    return np.nan if is_date else (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _sketch_rows(rows: Matrix) -> Float32:
    """Return short rows whose cosines are those of the rows within `_SKETCH_ERROR`, with rare exceptions."""
    if rows.shape[1] <= _SKETCH_WIDTH:
        return rows if isinstance(rows, np.ndarray) else rows.toarray()
    projection = GaussianRandomProjection(_SKETCH_WIDTH, random_state=0)
    sketches: Float32 = normalize(projection.fit_transform(rows))
    return sketches
