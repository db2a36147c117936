"""Models that suggest labels by their names alone, before the first tag, and find items by words.

Items are points of an encoder with a text tower, and each name and synonym of a label has a point beside them; or items
are points of `ConseEncoder`, and labels the sentence vectors of their names and synonyms. The cosine of both is the
score. Training replaces such a model; its points of items stay for searches.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.annotations.training_examples import MIN_ITEMS, TrainingExamples, read_examples
from wsabie.collection.db.database import begin_read, group_pairs
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.db.tables import models, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.learning.feature_store import open_feature_store
from wsabie.collection.registry import model_registry
from wsabie.collection.registry.item_index import ItemNeighbour, find_nearest_items, load_search_index
from wsabie.collection.scan.roots import read_modality
from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.tables import pad_rows
from wsabie.evaluation.calibration import Calibration, ScoredPairs, fit_calibration, sample_pairs
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.encoders.encoder_list import HUB_ENCODERS
from wsabie.features.encoders.encoder_store import is_tower_installed
from wsabie.features.encoders.text_encoders import SentenceEncoder, TextEncoder, is_sentence_encoder_installed
from wsabie.features.extractors.onnx_encoders import ConseEncoder, HubEncoder
from wsabie.io.modalities import PICTURES
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.vocabulary.label_names import Vocabulary

SLOPE, OFFSET = 14.0, -10.5
"""Sigmoid of a cosine's probability, fitted on photos of 200 kinds of objects; none of the collection's own."""
NEAR = -4.9
"""Lowest logit of an item that a free text finds: a cosine of .4 in `ConseEncoder`."""
MIN_DECISIONS = 20
"""Decisions from which on the probabilities follow the collection's own; again when they have doubled."""


class LabelTexts(NamedTuple):
    """Texts that stand for labels, of one label or more each."""

    label_ids: list[int]
    names: list[str]
    texts: list[str]


def find_name_encoder() -> str | None:
    """Return the installed extractor whose points lie among words; None without one."""
    names = (*reversed(HUB_ENCODERS), ConseEncoder.name)
    return next((name for name in names if _is_text_encoder_installed(name)), None)


def _is_text_encoder_installed(extractor: str) -> bool:
    encoder = HUB_ENCODERS.get(extractor)
    return is_sentence_encoder_installed() if encoder is None else is_tower_installed(encoder)


@lru_cache(2)
def _open_text_encoder(extractor: str) -> SentenceEncoder | TextEncoder:
    return TextEncoder(extractor) if extractor in HUB_ENCODERS else SentenceEncoder()


def _open_extractor(name: str) -> FeatureExtractor:
    return HubEncoder(name) if name in HUB_ENCODERS else ConseEncoder()


def renew_model(collection: Collection, *, by: str, free_words: bool = False) -> None:
    """Put a zero-shot model into use where there is too little to learn from, or renew it.

    It is renewed for other names, and to calibrate it by decisions. Nothing happens where a trained model exists,
    labels or an encoder of words are missing, or items are not pictures. With `free_words` a collection that has no
    zero-shot model gets one beside the trained one, for searches, or raises InputError without an encoder. The caller
    holds the lock.
    """
    records = model_registry.list_models(collection)
    current = find_model(collection)
    encoder = find_name_encoder() if current is None else current.extractor.name
    is_possible = read_modality(collection) in (None, PICTURES.name)
    is_first = not any(record.method != model_registry.ZERO_SHOT for record in records)
    is_for_search = free_words and current is None
    if is_for_search and encoder is None:
        SentenceEncoder()  # raises what to install
    if not is_possible or not (is_first or is_for_search) or encoder is None or not _is_text_encoder_installed(encoder):
        return
    with begin_read(collection.engine) as connection:
        model_in_use, labels = find_model_in_use(connection), _read_label_texts(connection, encoder in HUB_ENCODERS)
        examples = read_examples(connection)
    if not labels.texts or not (is_for_search or _is_due(current, model_in_use, labels.texts, examples)):
        return
    extractor = _open_extractor(encoder) if current is None else current.extractor
    model = place_labels(_open_text_encoder(encoder).encode(labels.texts), labels.names, *_get_sigmoid(encoder))
    n_decisions = _calibrate(collection, model, np.array(labels.label_ids), extractor, examples)
    facts: JsonObject = {"items": 0, "labels": len(set(labels.label_ids)), "accepted": 0, "rejected": 0, "seconds": 0}
    facts |= {"features": extractor.name, "extractor": extractor.fingerprint(), "calibrated_on": n_decisions}
    row: JsonObject = {"method": model_registry.ZERO_SHOT, "facts": facts, "figures": {"items": 0, "metrics": None}}
    row |= {"parent_id": None, "last_entry_id": examples.last_entry_id}
    sources: JsonObject = {"label_ids": labels.label_ids, "label_texts": labels.texts}
    model_id = model_registry.save_model(collection, model, extractor, row, **sources)
    role = "in use" if is_first else "for searches in free words"
    message = f"model {model_id} {role}, by the names of {facts['labels']:,} labels alone"
    message += f", calibrated on {n_decisions:,} decisions" if n_decisions else ""
    with begin_entry(collection.engine, by, "train", message, always=True) as change:
        if is_first:
            model_registry.put_into_use(change, model_id)


def _is_due(
    current: model_registry.LoadedModel | None, model_in_use: int | None, texts: list[str], examples: TrainingExamples
) -> bool:
    """Return True if no such model is in use, or if names or many decisions have changed."""
    n_tagged = len(np.unique((examples.Y > 0).nonzero()[0]))
    if current is None or current.id != model_in_use:
        return n_tagged < MIN_ITEMS
    if examples.Y.nnz >= max(MIN_DECISIONS, 2 * current.record.facts.get("calibrated_on", 0)):
        return True
    return n_tagged < MIN_ITEMS and current.annotator.facts["label_texts"] != texts


def _get_sigmoid(encoder: str) -> tuple[float, float]:
    tower = HUB_ENCODERS[encoder].tower if encoder in HUB_ENCODERS else None
    return (SLOPE, OFFSET) if tower is None else (tower.slope, tower.offset)


def _calibrate(
    collection: Collection, model: Wsabie, column_labels: Int64, extractor: FeatureExtractor, examples: TrainingExamples
) -> int:
    """Fit the probabilities to decisions about items with points; return their number, or 0."""
    # an item with an accepted label has no others; of an item without one, rejected labels count alone
    X, has_features = open_feature_store(collection, extractor).matrix(examples.hashes)
    examples = examples.take(has_features)
    if examples.Y.nnz < MIN_DECISIONS:
        return 0
    scores, Y = model.scores(X), examples.read_columns(column_labels).tocsr()
    is_tagged = np.diff((Y > 0).tocsr().indptr) > 0
    if not is_tagged.any():
        return 0
    rows, columns = (Y.multiply(~is_tagged[:, np.newaxis]) < 0).nonzero()
    sampled = sample_pairs([(0, scores[is_tagged])], (Y[is_tagged] > 0).astype(np.int8))
    rejected = (scores[rows, columns], columns, np.zeros(len(rows)), np.ones(len(rows)))
    pairs = ScoredPairs._make(np.append(*parts) for parts in zip(sampled, rejected, strict=True))
    if pairs.outcomes.all():
        return 0
    calibration = fit_calibration(pairs, n_labels=len(column_labels))
    if calibration.slope <= 0:  # cosines that say nothing would rank nothing
        return 0
    model.calibration_ = calibration
    return int(examples.Y.nnz)


def place_labels(vectors: Float32, names: list[str], slope: float = SLOPE, offset: float = OFFSET) -> Wsabie:
    """Return a model of rows that are points already, with labels at these points of unit length.

    `slope` and `offset` turn cosines into probabilities.

    Examples
    --------
    >>> model = place_labels(np.eye(2, dtype=np.float32), ["toad", "frog"])
    >>> model.annotate(np.array([[0.6, 0.8]]), k=1)[0][0][0]
    'frog'
    """
    n, dim = vectors.shape
    model = Wsabie(dim)
    model.vocabulary_, model.n_features_in_ = Vocabulary(names), dim
    to_unit_length = np.ones(dim + 1, np.float32)
    to_unit_length[-1] = 0  # of the constant feature
    model.scaling_ = RowScaling("homogeneous", to_unit_length, np.zeros(dim, np.float32))
    identity = pad_rows(np.eye(dim + 1, dim, dtype=np.float32))
    model.space_ = JointSpace(dim, "dot", identity, pad_rows(vectors), np.zeros(n, np.float32))
    model.calibration_ = Calibration(slope, offset, np.zeros(n, np.float32))
    model.settings_, model.history_ = {"learning_rate": 0.0, "feature_rate": 0.0, "max_norm": None}, []
    return model


def find_model(collection: Collection) -> model_registry.LoadedModel | None:
    """Return the last zero-shot model of a collection; None if there is none that opens."""
    record = _find_record(collection)
    try:
        return None if record is None else model_registry.load_model(collection, record[0])
    except InputError:
        return None


def find_items_by_text(collection: Collection, text: str, k: int, exclude: Iterable[int] = ()) -> list[ItemNeighbour]:
    """Return the items nearest to a text, best first; none without a zero-shot model or its encoder."""
    try:
        model_id, vectors, lowest = _encode_texts(collection, [text])
        (neighbours,) = find_nearest_items(collection, list(vectors), k, exclude=exclude, model=model_id)
    except InputError:
        return []
    return [near for near in neighbours if near.score >= lowest]


def find_unwanted_items(collection: Collection, text: str, unwanted: Sequence[str]) -> list[int] | None:
    """Return all items nearer to an unwanted text than to another; None if none can be found."""
    try:
        model_id, vectors, lowest = _encode_texts(collection, [text, *unwanted])
        embeddings = load_search_index(model_registry.find_model_folder(collection, model_id)[0]).embeddings
    except InputError:
        return None
    products = embeddings.vectors @ vectors.T
    nearest = products[:, 1:].max(axis=1)
    is_near = nearest >= lowest * np.linalg.norm(embeddings.vectors, axis=1)
    return list(map(int, embeddings.items[is_near & (nearest > products[:, 0])]))


def _encode_texts(collection: Collection, texts: list[str]) -> tuple[int, Float32, float]:
    """Return the id of the zero-shot model, points of texts, and the lowest cosine of an item near one.

    Raises InputError if there is no such model, or its files or the encoder are gone.
    """
    record = _find_record(collection)
    if record is None:
        raise InputError("no model places items among words; run: `collection.apply()`")
    slope, offset = _get_sigmoid(record[1])
    return record[0], _open_text_encoder(record[1]).encode(texts), (NEAR - offset) / slope


def _find_record(collection: Collection) -> tuple[int, str] | None:
    """Return the id of the last zero-shot model and the name of its extractor."""
    query = select(models.c.id, models.c.facts).where(
        models.c.method == model_registry.ZERO_SHOT, models.c.is_removed.is_(False)
    )
    with begin_read(collection.engine) as connection:
        row = connection.execute(query.order_by(models.c.id.desc()).limit(1)).first()
        return None if row is None else (row.id, row.facts["features"])


def _read_label_texts(connection: Connection, are_apart: bool) -> LabelTexts:
    """Return the names of labels with their synonyms, as one text for a label or `are_apart`."""
    query = select(synonyms.c.label_id, synonyms.c.name).order_by(synonyms.c.id)
    by_label = group_pairs((row[0], row[1]) for row in connection.execute(query))
    labels = label_store.read_label_names(connection)
    if not are_apart:
        texts = [", ".join([name, *by_label[label_id]]) for label_id, name in labels.items()]
        return LabelTexts(list(labels), list(labels.values()), texts)
    pairs = [(label_id, text) for label_id, name in labels.items() for text in (name, *by_label[label_id])]
    names = [text for _, text in pairs]
    return LabelTexts([label_id for label_id, _ in pairs], names, [f"a photo of a {name}." for name in names])
