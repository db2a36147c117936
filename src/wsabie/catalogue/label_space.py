"""Labels of the catalogue as points of the space of the model in use."""

from collections.abc import Iterable, Sequence

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.catalogue import book
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.points import Near, nearest_items, opened_model
from wsabie.catalogue.shelf import OpenModel
from wsabie.search.exact import top_k


def search_labels(collection: Collection, wanted: Sequence[int], k: int = 20, *, but: Iterable[int] = ()) -> list[Near]:
    """Items that all of some labels fit best, by the numbers of the labels; those that the model knows count.

    Raises
    ------
    InputError
        There is no model, it was not applied yet, or it knows none of the labels.
    """
    opened, now = _opened(collection)
    columns = [np.flatnonzero(now == number) for number in wanted]
    vectors = [opened.model.label_vectors[own].mean(axis=0) for own in columns if len(own)]
    if not vectors:
        raise InputError(
            f"the model in use has not learnt this yet; tag some items so, then train: wsabie collection train "
            f"{collection.folder}"
        )
    return nearest_items(collection, np.mean(vectors, axis=0), k, similarity="dot", but=but)


def neighbours(collection: Collection, number: int, k: int = 10) -> list[tuple[int, str, float]]:
    """The labels nearest to a label, by cosine: number, name, cosine; none where the model does not know it."""
    try:
        opened, now = _opened(collection)
    except InputError:
        return []
    own = np.flatnonzero(now == number)
    if not len(own):
        return []
    vectors = opened.model.label_vectors
    ids, cosines = top_k(vectors[own].mean(axis=0, keepdims=True), vectors, min(k + 8, len(now)), similarity="cosine")
    with reading(collection.engine) as connection:
        names = book.names(connection)
    found: dict[int, tuple[int, str, float]] = {}
    for column, cosine in zip(ids[0].tolist(), cosines[0].tolist(), strict=True):
        other = int(now[column])
        if other not in (number, -1) and other in names:
            found.setdefault(other, (other, names[other], float(cosine)))
    return list(found.values())[:k]


def _opened(collection: Collection) -> tuple[OpenModel, Int64]:
    opened = opened_model(collection)
    with reading(collection.engine) as connection:
        return opened, opened.labels_now(connection)
