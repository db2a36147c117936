"""Labels on a map: their positions and the colours of their items."""

import threading
from typing import NamedTuple

import numpy as np
from sqlalchemy import func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.cache import FileCache
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.tables import annotations, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.maps.item_map import Map
from wsabie.collection.maps.projection import compute_median
from wsabie.core.arrays import Int64, UInt8

NOTHING, REJECTED, ACCEPTED, SUGGESTED = range(4)
"""Codes of a label's state on an item; SUGGESTED to 255 are suggestions in order of probability."""


_BEST = 5  # items that define the position of a label
_making = threading.Lock()


class LabelPosition(NamedTuple):
    """Label in the plane with the number of items on which it is accepted."""

    id: int
    name: str
    x: float
    y: float
    accepted: int


class ItemColours(NamedTuple):
    """Ids of items with a state of a label, ascending, and the codes of the states."""

    items: Int64
    codes: UInt8


def place_labels(collection: Collection, item_map: Map, k: int = 500) -> list[LabelPosition]:
    """Return the positions of the model's labels in the plane, those with most items first.

    A label lies in the middle of the five items that it fits best. Its own embedding would not do: the plane keeps only
    two of the dimensions that separate labels, and UMAP cannot map points of another kind.

    Parameters
    ----------
    collection : Collection
    item_map : Map
        Its model supplies the labels, whichever model is in use by now.
    k : int
    """
    a = annotations.c
    query = select(a.label_id, func.count(a.item_id.distinct())).where(a.state == "accepted").group_by(a.label_id)
    with begin_read(collection.engine) as connection:
        columns, names = item_map.opened.labels_now(connection), label_store.read_label_names(connection)
        counts = {row[0]: int(row[1]) for row in connection.execute(query)}
    label_ids = sorted(
        {int(number) for number in columns} & names.keys(), key=lambda number: (-counts.get(number, 0), names[number])
    )[:k]
    if not len(item_map.items) or not label_ids:
        return []
    places = compute_median(item_map.places[_find_best_items(item_map, label_ids, columns)])
    return [
        LabelPosition(number, names[number], float(x), float(y), counts.get(number, 0))
        for number, (x, y) in zip(label_ids, places, strict=True)
    ]


def colour_items(collection: Collection, label: str) -> ItemColours:
    """Return the codes of items with a decision or suggestion of a label, by name or synonym.

    Raises
    ------
    UnknownLabelError
        There is no such label.
    """
    a, s = annotations.c, suggestions.c
    with begin_read(collection.engine) as connection:
        number = label_store.find_label(connection, label)
        decision_query = select(a.item_id, a.state).where(a.label_id == number, a.region == "")
        suggestion_query = select(s.item_id, s.probability).where(
            s.model_id == find_model_in_use(connection), s.label_id == number
        )
        codes = {row[0]: _encode_probability(row[1]) for row in connection.execute(suggestion_query)}
        states = {"accepted": ACCEPTED, "rejected": REJECTED}
        codes |= {row[0]: states[row[1]] for row in connection.execute(decision_query)}
    numbers = np.array(sorted(codes), np.int64)
    return ItemColours(numbers, np.array([codes[item] for item in numbers.tolist()], np.uint8))


def _encode_probability(probability: float) -> int:
    return SUGGESTED + round((255 - SUGGESTED) * min(1.0, max(0.0, probability)))


_bests = FileCache[dict[int, Int64]](2)


def _find_best_items(item_map: Map, label_ids: list[int], columns: Int64) -> Int64:
    """Return the positions, within the items of a map, of the best items of labels, (n_labels, k)."""
    cache = _bests.get((item_map.of, columns.tobytes()), dict)
    with _making:
        missing = [label for label in label_ids if label not in cache]
        if missing:
            points, dot, vectors = item_map.snapshot.points, item_map.snapshot.dot, item_map.opened.model.label_vectors
            queries = np.stack([vectors[np.flatnonzero(columns == label)].mean(axis=0) for label in missing])
            candidates = np.flatnonzero(np.isin(points.items, item_map.items))
            best = dot.top_k(queries, min(_BEST, len(candidates)), candidates=candidates)[0]
            cache.update(zip(missing, np.searchsorted(item_map.items, points.items[best]), strict=True))
        return np.stack([cache[label] for label in label_ids])


_MEASURED_LABELS = 200
_FEWEST = 5  # items of a measured label


class MapQuality(NamedTuple):
    """Share of a label's nearest items in the plane that carry it, by chance, and number of labels."""

    share: float
    chance: float
    labels: int


def measure_map_quality(collection: Collection, item_map: Map, k: int = 10) -> MapQuality:
    """Measure how often the items around a label in the plane carry it, for the largest labels."""
    positions = [
        position for position in place_labels(collection, item_map, _MEASURED_LABELS) if position.accepted >= _FEWEST
    ]
    a = annotations.c
    query = select(a.item_id, a.label_id).where(
        a.state == "accepted", a.label_id.in_([position.id for position in positions])
    )
    items_by_label: dict[int, list[int]] = {}
    with begin_read(collection.engine) as connection:
        for item, label in connection.execute(query):
            items_by_label.setdefault(label, []).append(item)
    shares, chances = [], []
    for position in positions:
        has_label = np.isin(item_map.items, items_by_label[position.id])
        distances = np.square(item_map.places - np.array([position.x, position.y], np.float32)).sum(axis=1)
        shares.append(has_label[np.argsort(distances, kind="stable")[:k]].mean())
        chances.append(has_label.mean())
    return MapQuality(float(np.mean(shares or [0])), float(np.mean(chances or [0])), len(positions))
