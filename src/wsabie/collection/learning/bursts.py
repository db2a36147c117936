"""Bursts: pictures of one moment, which are held out, calibrated and judged together.

With near-copies on both sides of a hold-out, every figure is too good. So the first picture of a burst leads it, and
the burst takes the leader's position in the hold-out. A later picture joins the first leader that it nearly equals, or
merely resembles if the camera took both within a few seconds. Rows of most features may be alike for different
pictures (`FeatureExtractor.near_equality`), so with them only pictures with a time join.

A picture keeps its burst for ever: no model learns later from what another one was tested on.
"""

import numpy as np
from sqlalchemy import func, insert, select

from wsabie.collection.db.database import begin_write, fetch_rows
from wsabie.collection.db.tables import bursts, items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.learning.feature_store import FeatureStore
from wsabie.evaluation.bursts import find_leaders, parse_capture_times


def assign_bursts(collection: Collection, store: FeatureStore, *, is_final: bool = True) -> None:
    """Assign the contents with features that have no burst; unless `is_final`, lone ones stay without."""
    c, b = items.c, bursts.c
    query = select(c.hash, func.min(c.taken_at).label("taken_at"), b.leader)
    query = query.select_from(items.outerjoin(bursts, b.hash == c.hash)).where(c.hash.is_not(None))
    query = query.group_by(c.hash, b.leader).order_by(b.leader.is_(None), func.min(c.id))
    rows = [row for row in fetch_rows(collection.engine, query) if row.hash in store.positions]
    leaders, new = [row for row in rows if row.leader == row.hash], [row for row in rows if row.leader is None]
    if not new:
        return
    hashes = [row.hash for row in leaders + new]
    times = parse_capture_times([row.taken_at for row in leaders + new])
    X, near_equality = store.matrix(hashes)[0], store.extractor.near_equality
    positions = find_leaders(X, times, near_equality, len(leaders))
    is_settled = is_final | (np.bincount(positions, minlength=len(hashes)) > 1)
    pairs = zip(hashes[len(leaders) :], positions[len(leaders) :], strict=True)
    values = [{"hash": name, "leader": hashes[leader]} for name, leader in pairs if is_settled[leader]]
    if not values:
        return
    with begin_write(collection.engine) as connection:
        connection.execute(insert(bursts), values)
