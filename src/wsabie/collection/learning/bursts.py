"""Bursts: pictures of one moment, which are held out, calibrated and judged together.

With near-copies on both sides of a hold-out, every figure is too good. So the first picture of a burst leads it, and
the burst takes the leader's position in the hold-out. A later picture joins the first leader that it nearly equals, or
merely resembles if the camera took both within a few seconds. Rows of visual words, of colours and of encoders of the
Hugging Face Hub may be alike for different pictures, so with them only pictures with a time join.

A picture keeps its burst for ever: no model learns later from what another one was tested on.
"""

from datetime import datetime

import numpy as np
from sqlalchemy import func, insert, select

from wsabie.collection.db.database import begin_write, fetch_rows
from wsabie.collection.db.tables import bursts, items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.learning.feature_store import FeatureStore
from wsabie.core.arrays import Float64, Int64, Matrix
from wsabie.features.extractors.hub_encoder import HubEncoder
from wsabie.features.extractors.onnx_encoder import OnnxEncoder

SECONDS = 10.0
"""Longest time between a picture and the leader that it resembles."""
RESEMBLANCE = 0.65
"""Lowest cosine of rows of pictures that resemble each other."""
NEAR_EQUALITY = 0.85
"""Lowest cosine of a network's rows of pictures that are nearly equal."""

_CELLS = 1 << 24  # of a block of cosines


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
    from sklearn.preprocessing import normalize

    rows, n = normalize(X), X.shape[0]
    leaders, is_leader = np.arange(n), np.arange(n) < n_leaders
    size = max(1, _CELLS // max(n, 1))
    for lo in range(n_leaders, n, size):
        hi = min(lo + size, n)
        cosines = rows[lo:hi] @ rows[:hi].T
        cosines = cosines if isinstance(cosines, np.ndarray) else cosines.toarray()
        is_close = np.abs(times[lo:hi, None] - times[None, :hi]) <= SECONDS
        is_similar = cosines >= np.where(is_close, RESEMBLANCE, near_equality)
        for row in range(lo, hi):
            candidates = np.flatnonzero(is_similar[row - lo, :row] & is_leader[:row])
            is_leader[row] = not len(candidates)
            leaders[row] = candidates[0] if len(candidates) else row
    return leaders


def _parse_time(text: str | None) -> float:
    """Return the seconds of a time by the camera's clock; NaN if it is unknown."""
    return np.nan if text is None else datetime.fromisoformat(f"{text}+00:00").timestamp()
