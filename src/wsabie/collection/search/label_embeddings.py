"""Labels of the collection as points in the space of the model in use."""

from collections.abc import Iterable, Sequence

import numpy as np

from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry.item_embeddings import ItemNeighbour, find_nearest_items_each, load_model_in_use
from wsabie.collection.registry.model_registry import LoadedModel
from wsabie.collection.search.query_parsing import read_names
from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError
from wsabie.search.exact_index import find_top_k


def find_items_of_labels(
    collection: Collection, label_sets: Sequence[Sequence[int]], k: int = 20, *, exclude: Iterable[int] = ()
) -> list[list[ItemNeighbour]]:
    """Return, for each set of label ids, the items that all of them fit best.

    Labels that the model does not know are ignored. A set without known labels finds nothing, and so does every set if
    there is no model or it was not applied yet.
    """
    results = [list[ItemNeighbour]() for _ in label_sets]
    try:
        loaded_model, column_labels = _load_model_and_labels(collection)
        pairs = (
            (place, _average_vectors(loaded_model, column_labels, label_set))
            for place, label_set in enumerate(label_sets)
        )
        vectors = {place: vector for place, vector in pairs if vector is not None}
        points = list(vectors.values())
        neighbours = (
            find_nearest_items_each(collection, points, k, exclude=exclude, model=loaded_model.number) if points else []
        )
    except InputError:
        return results
    for place, items in zip(vectors, neighbours, strict=True):
        results[place] = items
    return results


def find_nearest_labels(collection: Collection, number: int, k: int = 10) -> list[tuple[int, str, float]]:
    """Return id, name and cosine of the labels nearest to a label; empty if the model lacks it."""
    try:
        loaded_model, column_labels = _load_model_and_labels(collection)
    except InputError:
        return []
    columns = np.flatnonzero(column_labels == number)
    if not len(columns):
        return []
    vectors = loaded_model.model.label_vectors
    ids, cosines = find_top_k(
        vectors[columns].mean(axis=0, keepdims=True), vectors, min(k + 8, len(column_labels)), similarity="cosine"
    )
    with begin_read(collection.engine) as connection:
        names = read_names(connection).labels
    neighbours: dict[int, tuple[int, str, float]] = {}
    for column, cosine in zip(ids[0].tolist(), cosines[0].tolist(), strict=True):
        label = int(column_labels[column])
        if label not in (number, -1) and label in names:
            neighbours.setdefault(label, (label, names[label], float(cosine)))
    return list(neighbours.values())[:k]


def _load_model_and_labels(collection: Collection) -> tuple[LoadedModel, Int64]:
    model = load_model_in_use(collection)
    with begin_read(collection.engine) as connection:
        return model, model.labels_now(connection)


def _average_vectors(loaded_model: LoadedModel, column_labels: Int64, label_ids: Sequence[int]) -> Float32 | None:
    """Return the mean of some labels; labels merged into one of them count too."""
    columns = [matches for number in label_ids if len(matches := np.flatnonzero(column_labels == number))]
    if not columns:
        return None
    vector: Float32 = np.mean([loaded_model.model.label_vectors[matches].mean(axis=0) for matches in columns], axis=0)
    return vector
