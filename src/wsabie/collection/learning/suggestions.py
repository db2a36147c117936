"""Inference on items (suggestions, uncertainty and embeddings), and the review of suggestions."""

from collections.abc import Iterable
from itertools import compress
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select

from wsabie.collection.annotations import decisions
from wsabie.collection.db.database import begin_read, begin_write, execute_in, group_pairs, iterate_chunks, select_in
from wsabie.collection.db.journal import Row, begin_entry, format_current_time
from wsabie.collection.db.tables import Query, annotations, item_scores, items, suggestions
from wsabie.collection.folder.collection import Collection, lock_models
from wsabie.collection.labels import label_store
from wsabie.collection.learning import feature_store, zero_shot
from wsabie.collection.learning.bursts import assign_bursts
from wsabie.collection.registry import item_index
from wsabie.collection.registry.model_registry import LoadedModel, load_model
from wsabie.collection.registry.thresholds import Threshold
from wsabie.core.arrays import Array, Bool, Float32, Float64, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.core.validation import build_incidence
from wsabie.evaluation.calibration import Calibration
from wsabie.search.exact_index import ExactIndex

MAX_SUGGESTIONS = 10
"""Maximum number of suggestions for an item."""
MIN_PROBABILITY = 0.01
"""Lowest probability of a suggestion."""
_BLOCK = 1000  # items in a transaction
_MAX_LISTED_ITEMS = 1000  # uncovered items that an answer lists


class TopLabels(NamedTuple):
    """Most probable labels of items, best first; label -1 pads rows with fewer than k."""

    labels: Int64  # (n, k)
    scores: Float32  # (n, k)
    probabilities: Float64  # (n, k)


class LabelRanker:
    """Ranker of a model's current labels by probability.

    A probability is a sigmoid of slope * score + offset + the label's offset: an inner product with a bias, so an exact
    search finds the highest ones for any number of labels. Competition among the labels of an item keeps their order.
    `calibration` takes the place of the model's.
    """

    def __init__(self, loaded_model: LoadedModel, labels_now: Int64, calibration: Calibration | None = None) -> None:
        self.loaded_model, model = loaded_model, loaded_model.model
        self.columns = np.flatnonzero(labels_now >= 0)
        self.labels = labels_now[self.columns]
        self._calibration = calibration or model.calibration_
        self._offsets = self._calibration.label_offsets[self.columns].astype(np.float64)  # type: ignore[index]  # of a model
        slope, offset = self._calibration.slope, self._calibration.offset
        self._vectors = np.ascontiguousarray(model.label_vectors[self.columns])
        self._bias = model.space_.bias[self.columns]
        bias = (slope * self._bias + offset + self._offsets).astype(np.float32)
        self._index = ExactIndex(self._vectors * np.float32(slope), bias=bias)
        self._columns_by_label = group_pairs((label, column) for column, label in enumerate(self.labels.tolist()))
        self._most = max(map(len, self._columns_by_label.values()), default=1)

    def exclude_pairs(self, pairs: Iterable[tuple[int, int]], n: int) -> Matrix:
        """Return (row, label) pairs as a matrix of excluded columns, (n, n_columns)."""
        cells = [(row, column) for row, label in pairs for column in self._columns_by_label.get(label, ())]
        rows, columns = np.array(cells, np.int64).reshape(-1, 2).T
        return build_incidence(rows, columns, (n, len(self.labels)), np.int8)

    def top(self, points: Float32, k: int, exclude: Matrix | None = None, threads: int | None = None) -> TopLabels:
        """Return the k most probable labels of points, (n, dim)."""
        ids = self._search(points, k, exclude, threads)
        scores, columns = self._score(points, ids)
        best = None
        if self._calibration.competition and (exclude is not None or k == 1):
            best = self._score(points, self._search(points, 2, None, threads))
        probabilities = self._calibration.predict_proba(scores, columns, best)
        is_empty = ids < 0
        labels, scores = np.where(is_empty, -1, self.labels[ids]), np.where(is_empty, 0, scores).astype(np.float32)
        return TopLabels(labels, scores, np.where(is_empty, 0.0, probabilities))

    def _search(self, points: Float32, k: int, exclude: Matrix | None, threads: int | None) -> Int64:
        """Return the positions of the k most probable labels of points; -1 pads rows with fewer."""
        n_candidates = min(k - 1 + self._most, len(self.labels)) or 1
        ids, _ = self._index.top_k(points, n_candidates, exclude=exclude, threads=threads)
        if self._most > 1:
            ids = _drop_repeated_labels(ids, self.labels)
        return np.pad(ids[:, :k], ((0, 0), (0, max(0, k - ids.shape[1]))), constant_values=-1)

    def _score(self, points: Float32, ids: Int64) -> tuple[Float32, Int64]:
        """Return the scores and columns of positions, column -1 for position -1."""
        scores = np.einsum("nd,nkd->nk", points, self._vectors[ids]) + self._bias[ids]
        return scores, np.where(ids < 0, -1, self.columns[ids])


def _drop_repeated_labels(ids: Int64, labels: Int64) -> Int64:
    """Return ids without columns whose label ranks higher already, as labels may have merged."""
    distinct = np.full_like(ids, -1)
    for row, row_ids in enumerate(ids):
        columns: dict[int, int] = {}  # the first of each label
        for column in row_ids[row_ids >= 0].tolist():
            columns.setdefault(int(labels[column]), column)
        distinct[row, : len(columns)] = list(columns.values())
    return distinct


class InferenceOptions(NamedTuple):
    """Options of an inference, as `apply_model` explains them."""

    resources: feature_store.Resources
    again: bool = False
    k: int = MAX_SUGGESTIONS
    floor: float = MIN_PROBABILITY


class InferenceResult(NamedTuple):
    """Counts of an inference; `unreadable` and `changed` items have no features."""

    items: int
    suggestions: int
    unreadable: int
    changed: int


class SuggestionCoverage(NamedTuple):
    """Counts of items whose best suggestion is precise enough and of those that no tag fits."""

    precision: float
    probability: float | None
    own_thresholds: int
    items: int
    uncovered: int
    uncovered_items: list[int]


class ApplyResult(NamedTuple):
    """Results of applying a model.

    `is_zero_shot` if it knows only the names of labels; `calibrated_on` is its number of decisions then, else 0.
    """

    model: int
    inference: InferenceResult
    coverage: SuggestionCoverage | None
    accepted: decisions.DecisionCounts | None
    is_zero_shot: bool
    calibrated_on: int = 0


def apply_model(
    collection: Collection,
    *,
    by: str,
    again: bool = False,
    k: int = MAX_SUGGESTIONS,
    floor: float = MIN_PROBABILITY,
    min_precision: float | None = None,
    accept_above: float | None = None,
    free_words: bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> ApplyResult:
    """Let the model in use suggest labels for new items and for items whose content changed.

    Before the first training this is a model that knows only the names of labels (`zero_shot.renew_model`).

    Parameters
    ----------
    collection : Collection
    by : str
        Author of the journal entry.
    again : bool
        Process all items, because of decisions or merges since.
    k, floor : int, float
        Maximum number of suggestions for an item, and their lowest probability.
    min_precision : float or None
        Report how many items have a suggestion of this precision, and how many have none: no tag fits them.
    accept_above : float or None
        Accept suggestions from this probability on, in one journal entry.
    free_words : bool
        Prepare searches in free words also where a trained model came first.
    threads : int or None
    executor : Executor or None
        Executor of the feature extraction.
    progress : Progress

    Raises
    ------
    InputError
        There is no model, a number is out of range, or another command trains or applies.
    """
    _check_shares(floor=floor, accept_above=accept_above)
    with lock_models(collection):
        zero_shot.renew_model(collection, by=by, free_words=free_words)
        loaded_model = load_model(collection)
        if loaded_model.is_zero_shot and min_precision is not None:
            fact = f"model {loaded_model.id} suggests by names alone, and nobody knows how often it is right"
            raise InputError(f"{fact}; leave the precision out, or tag some items and train")
        threshold = None if min_precision is None else loaded_model.find_threshold(min_precision)
        options = InferenceOptions(feature_store.Resources(executor, threads, progress), again, k, floor)
        inference = infer_suggestions(collection, loaded_model, options)
        if not loaded_model.is_zero_shot and (name_model := zero_shot.find_model(collection)) is not None:
            infer_suggestions(collection, name_model, options._replace(again=False))  # for free words
        item_index.renew_indices(collection, loaded_model.path, progress)
        if inference.items:  # the entry records the inference; suggestions themselves are never undone
            message = f"looked at {inference.items:,} items and suggests {inference.suggestions:,} labels"
            with begin_entry(collection.engine, by, "apply", f"model {loaded_model.id} {message}", always=True):
                pass
    model_id, accepted = loaded_model.id, None
    coverage = None if threshold is None else measure_coverage(collection, model_id, threshold)
    if accept_above is not None:
        accepted = accept_suggestions(collection, accept_above, by=by, model=model_id).counts
    calibrated_on = loaded_model.record.facts.get("calibrated_on", 0)
    return ApplyResult(model_id, inference, coverage, accepted, loaded_model.is_zero_shot, calibrated_on)


def infer_suggestions(collection: Collection, loaded_model: LoadedModel, options: InferenceOptions) -> InferenceResult:
    """Run the inference of `apply_model` by an open model; the caller holds the lock.

    A killed run continues where it stopped.
    """
    embeddings = item_index.load_item_embeddings(loaded_model.path, loaded_model.model.dim)
    item_ids, hashes = _find_new_items(collection, loaded_model.id, embeddings, options.again)
    if not len(item_ids):
        return InferenceResult(0, 0, 0, 0)
    store = feature_store.open_feature_store(collection, loaded_model.extractor)
    missing = feature_store.extract_missing_features(collection, store, hashes, options.resources)
    assign_bursts(collection, store, is_final=not loaded_model.is_zero_shot)
    with begin_read(collection.engine) as connection:
        ranker = LabelRanker(loaded_model, loaded_model.read_current_labels(connection))
    updates: list[item_index.ItemEmbeddings] = []
    written = 0
    with options.resources.progress.stage("suggesting", len(item_ids), "items") as stage:
        for lo in range(0, len(item_ids), _BLOCK):
            block, block_hashes = item_ids[lo : lo + _BLOCK], hashes[lo : lo + _BLOCK]
            X, has_features = store.matrix(block_hashes)
            if has_features.any():
                short_hashes = [*map(item_index.shorten_hash, compress(block_hashes, has_features))]
                columns = block[has_features], np.array(short_hashes, np.uint64), loaded_model.model.transform(X)
                block_embeddings = item_index.ItemEmbeddings(*columns)
                written += _store_results(collection, ranker, block_embeddings, options)
                updates.append(block_embeddings)
            stage.advance(len(block))
    if updates:
        new = item_index.ItemEmbeddings(*(np.concatenate(column) for column in zip(*updates, strict=True)))
        item_index.save_item_embeddings(loaded_model.path, embeddings.merge(new))
    n_items = sum(len(block.items) for block in updates)
    return InferenceResult(n_items, written, len(missing.unreadable), len(missing.changed))


def accept_suggestions(
    collection: Collection, min_probability: float, label: str | None = None, *, by: str, model: int | None = None
) -> decisions.DecisionResult:
    """Accept pending suggestions of a model from a probability on, in one journal entry.

    Raises
    ------
    InputError
        No model is given, and none is in use.
    UnknownLabelError
        There is no such label.
    """
    s = suggestions.c
    total = decisions.DecisionCounts()
    with begin_entry(collection.engine, by, "accept") as change:
        model = decisions.require_model(change.connection, collection.folder) if model is None else model
        label_id = None if label is None else label_store.find_label(change.connection, label)
        query = build_pending_query(model, min_probability, label_id).order_by(s.item_id, s.label_id)
        pairs = change.connection.execute(query).all()
        for block in iterate_chunks(pairs, 10 * _BLOCK):
            accepted = [decisions.Decision(item, label, "accepted") for item, label in block]
            counts = decisions.write_decisions(change, accepted, origin="model", by=f"model {model}")
            total = decisions.DecisionCounts(*map(sum, zip(total, counts, strict=True)))
        change.summary = f"{total.added:,} suggestions of model {model} from {min_probability:g} on accepted"
    return decisions.DecisionResult(change.id if total.added else None, total)


def measure_coverage(collection: Collection, model: int, threshold: Threshold) -> SuggestionCoverage:
    """Return which untagged items have a suggestion above the threshold, and which have none."""
    s, a = suggestions.c, annotations.c
    v = item_scores.c
    is_tagged = select(a.id).where(a.item_id == v.item_id, a.state == "accepted").exists()
    is_present = select(items.c.id).where(items.c.id == v.item_id, items.c.state == "present").exists()
    scored_items = select(v.item_id).where(v.model_id == model, is_present, ~is_tagged).order_by(v.item_id)
    lowest = min([threshold.get_probability(label) for label in threshold.by_label] + [threshold.get_probability(-1)])
    query = select(s.item_id, s.label_id, s.probability)
    query = query.where(s.model_id == model, s.probability >= lowest, ~decisions.has_decision())
    with begin_read(collection.engine) as connection:
        covered = {item for item, label, p in connection.execute(query) if p >= threshold.get_probability(label)}
        uncovered = [item for item in connection.scalars(scored_items) if item not in covered]
    counts = len(threshold.by_label), len(covered), len(uncovered)
    return SuggestionCoverage(threshold.precision, threshold.common, *counts, uncovered[:_MAX_LISTED_ITEMS])


def _check_shares(**shares: float | None) -> None:
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"{name} is {share:g}; give a probability from 0 to 1")


def build_pending_query(model: int, min_probability: float, label: int | None = None) -> Query:
    """Return the query for undecided (item, label) suggestions from a probability on."""
    query = select(suggestions.c.item_id, suggestions.c.label_id).where(
        suggestions.c.model_id == model, suggestions.c.probability >= min_probability, ~decisions.has_decision()
    )
    present = select(items.c.id).where(items.c.id == suggestions.c.item_id, items.c.state == "present").exists()
    return query.where(present) if label is None else query.where(present, suggestions.c.label_id == label)


def count_pending(connection: Connection, model: int, min_probability: float = 0, label: int | None = None) -> int:
    """Return the number of suggestions that `build_pending_query` finds."""
    pending = build_pending_query(model, min_probability, label).subquery()
    return connection.scalar(select(func.count()).select_from(pending)) or 0


def _find_new_items(
    collection: Collection, model: int, embeddings: item_index.ItemEmbeddings, again: bool
) -> tuple[Int64, list[str]]:
    """Return ids and content hashes of the items that the model has not processed."""
    v = item_scores.c
    scores = select(v.item_id).where(v.model_id == model, v.item_id == items.c.id).exists()
    query = select(items.c.id, items.c.hash, scores).where(items.c.state == "present", items.c.hash.is_not(None))
    new: list[tuple[int, str]] = []
    with begin_read(collection.engine) as connection:
        rows = connection.execution_options(yield_per=10 * _BLOCK).execute(query.order_by(items.c.id))
        for part in rows.partitions():
            ids, hashes = [row[0] for row in part], [item_index.shorten_hash(row[1]) for row in part]
            positions = embeddings.find(np.array(ids, np.int64), np.array(hashes, np.uint64))
            candidates = zip(part, positions, strict=True)
            new += [(row[0], row[1]) for row, position in candidates if again or position < 0 or not row[2]]
    return np.array([item_id for item_id, _ in new], np.int64), [content for _, content in new]


def _store_results(
    collection: Collection, ranker: LabelRanker, embeddings: item_index.ItemEmbeddings, options: InferenceOptions
) -> int:
    """Rank the labels of some items and store them; return the number of suggestions."""
    loaded_model, item_ids = ranker.loaded_model, embeddings.items.tolist()
    model = loaded_model.id
    row_of = {item_id: row for row, item_id in enumerate(item_ids)}
    a = annotations.c
    query = select(a.item_id, a.label_id).where(a.region == "")
    with begin_read(collection.engine) as connection:
        annotation_pairs = [(row_of[item], label) for item, label in select_in(connection, query, a.item_id, item_ids)]
    exclude = ranker.exclude_pairs(annotation_pairs, len(item_ids)) if annotation_pairs else None
    top = ranker.top(embeddings.vectors, options.k, exclude, options.resources.threads)
    is_listed = (top.labels >= 0) & (top.probabilities >= options.floor)
    score_rows = _to_rows(
        model_id=np.full(len(item_ids), model),
        item_id=embeddings.items,
        best_probability=top.probabilities[:, 0],
        uncertainty=np.minimum(top.probabilities, 1 - top.probabilities).max(axis=1),
        best_precision=_compute_best_precisions(loaded_model, top, is_listed),
    )
    suggestion_rows = _to_rows(
        model_id=np.full(is_listed.sum(), model),
        item_id=embeddings.items[np.nonzero(is_listed)[0]],
        label_id=top.labels[is_listed],
        score=top.scores[is_listed],
        probability=top.probabilities[is_listed],
    )
    with begin_write(collection.engine) as connection:
        # Labels may have been deleted during the inference.
        current_labels = set(loaded_model.read_current_labels(connection).tolist())
        suggestion_rows = [row for row in suggestion_rows if row["label_id"] in current_labels]
        for table in (suggestions, item_scores):
            execute_in(connection, delete(table).where(table.c.model_id == model), table.c.item_id, item_ids)
        if suggestion_rows:
            connection.execute(insert(suggestions), suggestion_rows)
        connection.execute(insert(item_scores).values(scored_at=format_current_time()), score_rows)
    return len(suggestion_rows)


def _to_rows(**columns: Array) -> list[Row]:
    """Return the rows of a table with these columns."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]


def _compute_best_precisions(loaded_model: LoadedModel, top: TopLabels, is_listed: Bool) -> Array:
    """Return the best precision of each item's suggestions, 0 if it is unknown."""
    try:
        curve = loaded_model.precision_curve
    except InputError:
        return np.zeros(len(top.labels))
    precisions = curve.read_precision(top.labels.ravel(), top.probabilities.ravel()).reshape(top.labels.shape)
    best: Array = np.where(is_listed, precisions, 0.0).max(axis=1)
    return best


def count_suggestions_above(collection: Collection, probability: float, label: str | None = None) -> int:
    """Return the number of pending suggestions of the model in use from a probability on."""
    with begin_read(collection.engine) as connection:
        model = decisions.find_model_in_use(connection)
        label_id = None if label is None else label_store.find_label(connection, label)
        return 0 if model is None else count_pending(connection, model, probability, label_id)
