"""Labels of the catalogue as points of the space of the model in use."""

from collections.abc import Iterable, Sequence

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.base.errors import InputError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.points import Near, nearest_to_each, opened_model
from wsabie.catalogue.shelf import OpenModel
from wsabie.catalogue.understanding import names_of
from wsabie.search.exact import top_k


def search_labels(
    collection: Collection, wanted: Sequence[Sequence[int]], k: int = 20, *, but: Iterable[int] = ()
) -> list[list[Near]]:
    """For each set of labels, by their numbers, the items that all of them fit best.

    Labels that the model does not know do not count; nothing is found for a set without any other, or where there is
    no model, or it was not applied yet.
    """
    found = [list[Near]() for _ in wanted]
    try:
        opened, now = _opened(collection)
        made = ((place, _vector(opened, now, one)) for place, one in enumerate(wanted))
        vectors = {place: vector for place, vector in made if vector is not None}
        points = list(vectors.values())
        near = nearest_to_each(collection, points, k, but=but, model=opened.number) if points else []
    except InputError:
        return found
    for place, items in zip(vectors, near, strict=True):
        found[place] = items
    return found


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
        names = names_of(connection).labels
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


def _vector(opened: OpenModel, now: Int64, wanted: Sequence[int]) -> Float32 | None:
    """The point between some labels; of one that others were merged into, theirs count too."""
    columns = [own for number in wanted if len(own := np.flatnonzero(now == number))]
    if not columns:
        return None
    vector: Float32 = np.mean([opened.model.label_vectors[own].mean(axis=0) for own in columns], axis=0)
    return vector
