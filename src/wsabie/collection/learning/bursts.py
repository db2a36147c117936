"""Bursts: pictures of one moment, which are held out, calibrated and judged together.

With near-copies on both sides of a hold-out, every figure is too good. So the first picture of a burst leads it, and
the burst takes the leader's position in the hold-out. A later picture joins the first leader that it nearly equals, or
merely resembles if the camera took both within a few seconds. Rows of visual words, of colours and of encoders of the
Hugging Face Hub may be alike for different pictures, so with them only pictures with a time join.

A picture keeps its burst for ever: no model learns later from what another one was tested on.
"""

from datetime import datetime

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils.extmath import safe_sparse_dot
from sqlalchemy import func, insert, select

from wsabie.collection.db.database import begin_write, fetch_rows
from wsabie.collection.db.tables import bursts, items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.learning.feature_store import FeatureStore
from wsabie.core.arrays import Float32, Float64, Int64, Matrix
from wsabie.features.extractors.onnx_encoders import HubEncoder, OnnxEncoder

SECONDS = 10.0
"""Longest time between a picture and the leader that it resembles."""
RESEMBLANCE = 0.65
"""Lowest cosine of rows of pictures that resemble each other."""
NEAR_EQUALITY = 0.85
"""Lowest cosine of a network's rows of pictures that are nearly equal."""

_CELLS = 1 << 24  # of a block of cosines
_SKETCH_WIDTH = 128  # of rows that find the pairs whose cosine is worth computing
_SKETCH_ERROR = 0.1  # four times the standard error of a cosine of .85, (1 - .85 ** 2) / 128 ** .5


def assign_bursts(collection: Collection, store: FeatureStore) -> None:
    """Assign the contents with features that have no burst yet."""
    c, b = items.c, bursts.c
    query = select(c.hash, func.min(c.taken_at).label("taken_at"), b.leader)
    query = query.select_from(items.outerjoin(bursts, b.hash == c.hash)).where(c.hash.is_not(None))
    query = query.group_by(c.hash, b.leader).order_by(b.leader.is_(None), func.min(c.id))
    rows = [row for row in fetch_rows(collection.engine, query) if row.hash in store.positions]
    leaders, new = [row for row in rows if row.leader == row.hash], [row for row in rows if row.leader is None]
    if not new:
        return
    hashes = [row.hash for row in leaders + new]
    times = np.array([_parse_time(row.taken_at) for row in leaders + new])
    is_network = isinstance(store.extractor, OnnxEncoder) and not isinstance(store.extractor, HubEncoder)
    near_equality = NEAR_EQUALITY if is_network else np.inf
    positions = find_leaders(store.matrix(hashes)[0], times, len(leaders), near_equality)[len(leaders) :]
    values = [{"hash": row.hash, "leader": hashes[leader]} for row, leader in zip(new, positions, strict=True)]
    with begin_write(collection.engine) as connection:
        connection.execute(insert(bursts), values)


def find_leaders(X: Matrix, times: Float64, n_leaders: int = 0, near_equality: float = NEAR_EQUALITY) -> Int64:
    """Return the row of the leader of each row, (n,).

    Parameters
    ----------
    X : ndarray or csr_matrix (n, n_features)
    times : (n,) float64
        Seconds; NaN where the time is unknown.
    n_leaders : int
        Number of first rows that lead already.
    near_equality : float
        Lowest cosine of pictures of one burst whose times differ or are unknown.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.9, 0.5], [0.0, 1.0], [0.01, 1.0]])
    >>> find_leaders(X, np.array([0.0, 3.0, 500.0, np.nan])).tolist()
    [0, 0, 2, 2]
    """
    rows, n = normalize(X), X.shape[0]
    sketches = _sketch_rows(rows) if np.isfinite(near_equality) else None
    leaders, is_leader = np.arange(n), np.arange(n) < n_leaders
    by_time = np.argsort(times)
    starts = np.searchsorted(times, times - SECONDS, sorter=by_time)
    ends = np.searchsorted(times, np.nextafter(times + SECONDS, np.inf), sorter=by_time)
    size = max(1, _CELLS // max(n, 1))
    for row in range(n_leaders, n):
        near = by_time[starts[row] : ends[row]]
        limits = np.full(len(near), RESEMBLANCE)
        if sketches is not None:
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


def _sketch_rows(rows: Matrix) -> Float32:
    """Return short rows whose cosines are those of the rows within `_SKETCH_ERROR`, with rare exceptions."""
    if rows.shape[1] <= _SKETCH_WIDTH:
        return rows if isinstance(rows, np.ndarray) else rows.toarray()
    projection = GaussianRandomProjection(_SKETCH_WIDTH, random_state=0)
    sketches: Float32 = normalize(projection.fit_transform(rows))
    return sketches


def _parse_time(text: str | None) -> float:
    """Return the seconds of a time by the camera's clock; NaN if it is unknown."""
    return np.nan if text is None else datetime.fromisoformat(f"{text}+00:00").timestamp()
