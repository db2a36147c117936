"""Labels on a map: where they lie, which items they colour, and how well that fits."""

import threading
from typing import NamedTuple

import numpy as np
from sqlalchemy import func, select

from wsabie.base.arrays import Int64, UInt8
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.maps import Map
from wsabie.catalogue.plane import middle
from wsabie.catalogue.points import opened_model, searched
from wsabie.catalogue.shelf import OpenModel
from wsabie.catalogue.tables import annotations, suggestions

NOTHING, REJECTED, ACCEPTED, SUGGESTED = range(4)
"""What is known of an item and a label; from SUGGESTED to 255: suggested, the surer the higher."""


_BEST = 5  # items among which a label lies
_JUDGED = 200  # labels, and how many items each has at least
_FEWEST = 5
_making = threading.Lock()


class LabelAt(NamedTuple):
    """A label in the plane, and on how many items it is accepted."""

    id: int
    name: str
    x: float
    y: float
    accepted: int


class Coloured(NamedTuple):
    """Items of which something is known about a label, ascending, and what (`SUGGESTED` and up: how sure)."""

    items: Int64
    codes: UInt8


class Figure(NamedTuple):
    """Of the ten items nearest to a label in the plane, the share that carries it; by chance; how many labels."""

    share: float
    chance: float
    labels: int


def labels_at(collection: Collection, drawn: Map, k: int = 500) -> list[LabelAt]:
    """The labels that the model knows in the plane, those with most items first.

    A label lies in the middle of the five items that it fits best. Its own point would not do: in the plane only two of
    the dimensions are left by which it is told from others, and UMAP has no map for points of another kind.

    Parameters
    ----------
    collection : Collection
    drawn : Map
        Of the model in use.
    k : int
    """
    opened = opened_model(collection)
    a = annotations.c
    query = select(a.label_id, func.count()).where(a.state == "accepted").group_by(a.label_id)
    with reading(collection.engine) as connection:
        columns, names = opened.labels_now(connection), book.names(connection)
        counts = {row[0]: int(row[1]) for row in connection.execute(query)}
    known = sorted({int(n) for n in columns} & names.keys(), key=lambda n: (-counts.get(n, 0), names[n]))[:k]
    if not len(drawn.items) or not known:
        return []
    places = middle(drawn.places[_best(opened, drawn, known, columns)])
    return [LabelAt(n, names[n], float(x), float(y), counts.get(n, 0)) for n, (x, y) in zip(known, places, strict=True)]


def coloured(collection: Collection, label: str) -> Coloured:
    """What is decided and suggested about a label, by its name or a synonym.

    Raises
    ------
    UnknownLabelError
        There is no such label.
    """
    a, s = annotations.c, suggestions.c
    with reading(collection.engine) as connection:
        number = book.found_one(connection, label)
        decided = select(a.item_id, a.state).where(a.label_id == number, a.region == "")
        thought = select(s.item_id, s.probability).where(s.model_id == model_in_use(connection), s.label_id == number)
        found = {row[0]: _sure(row[1]) for row in connection.execute(thought)}
        states = {"accepted": ACCEPTED, "rejected": REJECTED}
        found |= {row[0]: states[row[1]] for row in connection.execute(decided)}
    numbers = np.array(sorted(found), np.int64)
    return Coloured(numbers, np.array([found[n] for n in numbers.tolist()], np.uint8))


def judged(collection: Collection, drawn: Map, k: int = 10) -> Figure:
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


def _sure(probability: float) -> int:
    return SUGGESTED + round((255 - SUGGESTED) * min(1.0, max(0.0, probability)))


_bests: dict[str, dict[int, Int64]] = {}


def _best(opened: OpenModel, drawn: Map, wanted: list[int], columns: Int64) -> Int64:
    """Positions among the items of a map of those that labels fit best, (n_wanted, k); kept for the next question."""
    with _making:
        if drawn.of not in _bests:
            _bests.clear()
        known = _bests.setdefault(drawn.of, {})
        missing = [n for n in wanted if n not in known]
        if missing:
            points, dot, _ = searched(opened.path)
            vectors = opened.model.label_vectors
            queries = np.stack([vectors[np.flatnonzero(columns == n)].mean(axis=0) for n in missing])
            there = np.flatnonzero(np.isin(points.items, drawn.items))
            found = dot.top_k(queries, min(_BEST, len(there)), candidates=there)[0]
            known.update(zip(missing, np.searchsorted(drawn.items, points.items[found]), strict=True))
        return np.stack([known[n] for n in wanted])
