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
from wsabie.evaluation.bursts import NEAR_EQUALITY, find_leaders
from wsabie.features.extractors.onnx_encoders import HubEncoder, OnnxEncoder


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


def _parse_time(text: str | None) -> float:
    """Return the seconds of a time by the camera's clock; NaN if it is unknown."""
    return np.nan if text is None else datetime.fromisoformat(f"{text}+00:00").timestamp()
