"""Models that suggest labels by their names alone, before the first tag, and find items by words.

Items are points of `ConseEncoder`, labels the sentence vectors of their names and synonyms, and the cosine of both is
the score. Training replaces such a model; its points of items stay for searches.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.annotations.training_examples import MIN_ITEMS
from wsabie.collection.db.database import begin_read, group_pairs
from wsabie.collection.db.journal import begin_entry, read_last_entry
from wsabie.collection.db.tables import annotations, models, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.registry import model_registry
from wsabie.collection.registry.item_index import ItemNeighbour, find_nearest_items
from wsabie.collection.scan.roots import read_modality
from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.tables import pad_rows
from wsabie.evaluation.calibration import Calibration
from wsabie.features.encoders.sentence_encoder import SentenceEncoder, is_sentence_encoder_installed
from wsabie.features.extractors.onnx_encoders import ConseEncoder
from wsabie.io.modalities import PICTURES
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.vocabulary.label_names import Vocabulary

SLOPE, OFFSET = 14.0, -10.5
"""Sigmoid of a cosine's probability, fitted on photos of 200 kinds of objects; none of the collection's own."""
NEAR = 0.4
"""Lowest cosine of an item that a free text finds."""

_COUNT_TAGGED = select(func.count(annotations.c.item_id.distinct())).where(annotations.c.state == "accepted")
_open_encoder = lru_cache(1)(SentenceEncoder)


def renew_model(collection: Collection, *, by: str) -> None:
    """Put a zero-shot model into use where there is too little to learn from, or renew it for other names.

    Nothing happens where a trained model exists, labels or the extra "words" are missing, or items are not pictures.
    The caller holds the lock.
    """
    records = model_registry.list_models(collection)
    is_possible = is_sentence_encoder_installed() and read_modality(collection) in (None, PICTURES.name)
    if not is_possible or any(record.method != model_registry.ZERO_SHOT for record in records):
        return
    current = find_model(collection)
    with begin_read(collection.engine) as connection:
        model_in_use, names = find_model_in_use(connection), label_store.read_label_names(connection)
        texts = _read_label_texts(connection, names)
        last_entry, n_tagged = read_last_entry(connection), connection.scalar(_COUNT_TAGGED) or 0
    if not texts or n_tagged >= MIN_ITEMS:
        return
    if current is not None and (current.id, current.annotator.facts["label_texts"]) == (model_in_use, texts):
        return
    extractor = ConseEncoder() if current is None else current.extractor
    facts: JsonObject = {"items": 0, "labels": len(names), "accepted": 0, "rejected": 0, "seconds": 0}
    facts |= {"features": extractor.name, "extractor": extractor.fingerprint()}
    row: JsonObject = {"method": model_registry.ZERO_SHOT, "facts": facts, "figures": {"items": 0, "now": None}}
    row |= {"parent_id": None, "last_entry_id": last_entry}
    model = place_labels(_open_encoder().encode(texts), list(names.values()))
    labels: JsonObject = {"label_ids": list(names), "label_texts": texts}
    model_id = model_registry.save_model(collection, model, extractor, row, **labels)
    message = f"model {model_id} in use, by the names of {len(names):,} labels alone"
    with begin_entry(collection.engine, by, "train", message, always=True) as change:
        model_registry.put_into_use(change, model_id)


def place_labels(vectors: Float32, names: list[str]) -> Wsabie:
    """Return a model of rows that are points already, with labels at these points of unit length.

    Examples
    --------
    >>> model = place_labels(np.eye(2, dtype=np.float32), ["toad", "frog"])
    >>> model.annotate(np.array([[0.6, 0.8]]), k=1)[0][0][0]
    'frog'
    """
    n, dim = vectors.shape
    model, empty = Wsabie(dim, scaling=None), np.zeros(0, np.float32)
    model.vocabulary_, model.n_features_in_ = Vocabulary(names), dim
    model.scaling_ = RowScaling("none", empty, empty)
    identity = pad_rows(np.eye(dim, dtype=np.float32))
    model.space_ = JointSpace(dim, "dot", identity, pad_rows(vectors), np.zeros(n, np.float32))
    model.calibration_ = Calibration(SLOPE, OFFSET, np.zeros(n, np.float32))
    model.settings_, model.history_ = {"learning_rate": 0.0, "feature_rate": 0.0, "max_norm": None}, []
    return model


def find_model(collection: Collection) -> model_registry.LoadedModel | None:
    """Return the last zero-shot model of a collection; None if there is none that opens."""
    model_id = _find_model_id(collection)
    try:
        return None if model_id is None else model_registry.load_model(collection, model_id)
    except InputError:
        return None


def find_items_by_text(collection: Collection, text: str, k: int, exclude: Iterable[int] = ()) -> list[ItemNeighbour]:
    """Return the items nearest to a text, best first; none without a zero-shot model or the extra."""
    model_id = _find_model_id(collection)
    if model_id is None or not is_sentence_encoder_installed():
        return []
    vectors = list(_open_encoder().encode([text]))
    try:
        (neighbours,) = find_nearest_items(collection, vectors, k, exclude=exclude, model=model_id)
    except InputError:  # its files are gone, or it has processed no items
        return []
    return [near for near in neighbours if near.score >= NEAR]


def _find_model_id(collection: Collection) -> int | None:
    query = select(models.c.id).where(models.c.method == model_registry.ZERO_SHOT, models.c.is_removed.is_(False))
    with begin_read(collection.engine) as connection:
        return connection.scalar(query.order_by(models.c.id.desc()).limit(1))


def _read_label_texts(connection: Connection, names: Mapping[int, str]) -> list[str]:
    """Return the names of labels with their synonyms, as the sentence encoder reads them."""
    query = select(synonyms.c.label_id, synonyms.c.name).order_by(synonyms.c.id)
    by_label = group_pairs((row[0], row[1]) for row in connection.execute(query))
    return [", ".join([name, *by_label[label_id]]) for label_id, name in names.items()]
