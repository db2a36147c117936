"""Labels on a map: where they lie and which items they colour."""

import threading
from typing import NamedTuple

import numpy as np
from sqlalchemy import func, select

from wsabie.base.arrays import Int64, UInt8
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.few import Few
from wsabie.catalogue.maps import Map
from wsabie.catalogue.plane import middle
from wsabie.catalogue.tables import annotations, suggestions

NOTHING, REJECTED, ACCEPTED, SUGGESTED = range(4)
"""What is known of an item and a label; from SUGGESTED to 255: suggested, the surer the higher."""


_BEST = 5  # items among which a label lies
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


def labels_at(collection: Collection, drawn: Map, k: int = 500) -> list[LabelAt]:
    """The labels that the model knows in the plane, those with most items first.

    A label lies in the middle of the five items that it fits best. Its own point would not do: in the plane only two of
    the dimensions are left by which it is told from others, and UMAP has no map for points of another kind.

    Parameters
    ----------
    collection : Collection
    drawn : Map
        Its model is asked, whichever is in use by now.
    k : int
    """
    a = annotations.c
    query = select(a.label_id, func.count(a.item_id.distinct())).where(a.state == "accepted").group_by(a.label_id)
    with reading(collection.engine) as connection:
        columns, names = drawn.opened.labels_now(connection), book.names(connection)
        counts = {row[0]: int(row[1]) for row in connection.execute(query)}
    known = sorted({int(n) for n in columns} & names.keys(), key=lambda n: (-counts.get(n, 0), names[n]))[:k]
    if not len(drawn.items) or not known:
        return []
    places = middle(drawn.places[_best(drawn, known, columns)])
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


def _sure(probability: float) -> int:
    return SUGGESTED + round((255 - SUGGESTED) * min(1.0, max(0.0, probability)))


_bests = Few[dict[int, Int64]](2)


def _best(drawn: Map, wanted: list[int], columns: Int64) -> Int64:
    """Positions among the items of a map of those that labels fit best, (n_wanted, k); kept for the next question."""
    known = _bests.get((drawn.of, columns.tobytes()), dict)
    with _making:
        missing = [n for n in wanted if n not in known]
        if missing:
            points, dot, vectors = drawn.seen.points, drawn.seen.dot, drawn.opened.model.label_vectors
            queries = np.stack([vectors[np.flatnonzero(columns == n)].mean(axis=0) for n in missing])
            there = np.flatnonzero(np.isin(points.items, drawn.items))
            found = dot.top_k(queries, min(_BEST, len(there)), candidates=there)[0]
            known.update(zip(missing, np.searchsorted(drawn.items, points.items[found]), strict=True))
        return np.stack([known[n] for n in wanted])
