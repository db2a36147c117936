"""How well the labels of a map fit the items around them."""

from typing import NamedTuple

import numpy as np
from sqlalchemy import select

from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.map_labels import labels_at
from wsabie.catalogue.maps import Map
from wsabie.catalogue.tables import annotations

_JUDGED = 200  # labels, and how many items each has at least
_FEWEST = 5


class Figure(NamedTuple):
    """Of the ten items nearest to a label in the plane, the share that carries it; by chance; how many labels."""

    share: float
    chance: float
    labels: int


def fit_of(collection: Collection, drawn: Map, k: int = 10) -> Figure:
    """How often the items around a label in the plane carry it, over the labels with most items."""
    at = [one for one in labels_at(collection, drawn, _JUDGED) if one.accepted >= _FEWEST]
    a = annotations.c
    query = select(a.item_id, a.label_id).where(a.state == "accepted", a.label_id.in_([one.id for one in at]))
    own: dict[int, list[int]] = {}
    with reading(collection.engine) as connection:
        for item, label in connection.execute(query):
            own.setdefault(label, []).append(item)
    shares, chances = [], []
    for one in at:
        carried = np.isin(drawn.items, own[one.id])
        apart = np.square(drawn.places - np.array([one.x, one.y], np.float32)).sum(axis=1)
        shares.append(carried[np.argsort(apart, kind="stable")[:k]].mean())
        chances.append(carried.mean())
    return Figure(float(np.mean(shares or [0])), float(np.mean(chances or [0])), len(at))
