"""Inference on items: suggestions, uncertainty, and embeddings in the model's space."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from wsabie.collection.annotations.decisions import Decision, DecisionCounts, DecisionResult, write_decisions
from wsabie.collection.db.database import begin_read, begin_write, select_in
from wsabie.collection.db.journal import begin_entry, format_current_time
from wsabie.collection.db.tables import annotations, item_scores, items, suggestions
from wsabie.collection.folder.collection import Collection, lock_models
from wsabie.collection.learning.feature_store import FeatureStore, extract_missing_features, open_feature_store
from wsabie.collection.registry.item_embeddings import (
    ItemEmbeddings,
    compute_mark,
    load_item_embeddings,
    save_item_embeddings,
)
from wsabie.collection.registry.item_index import renew_indices
from wsabie.collection.registry.model_registry import LoadedModel, load_model
from wsabie.collection.registry.thresholds import Threshold
from wsabie.core.arrays import Float32, Float64, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import SILENT, Progress
from wsabie.search.exact_index import ExactIndex


class TopLabels(NamedTuple):
    """Most probable labels of items, best first; label -1 pads rows with fewer than k."""

    labels: Int64  # (n, k)
    scores: Float32  # (n, k)
    probabilities: Float64  # (n, k)


class LabelRanker:
    """Ranker of a model's current labels by probability.

    A probability is a sigmoid of slope * score + offset + the label's offset: an inner product with a bias, so an exact
    search finds the highest ones for any number of labels.
    """

    def __init__(self, loaded_model: LoadedModel, labels_now: Int64) -> None:
        model = loaded_model.model
        self.columns = np.flatnonzero(labels_now >= 0)
        self.labels = labels_now[self.columns]
        self._calibration = model.calibration_
        self._offsets = model.calibration_.label_offsets[self.columns].astype(np.float64)
        slope, offset = model.calibration_.slope, model.calibration_.offset
        self._vectors = np.ascontiguousarray(model.label_vectors[self.columns])
        self._bias = model.space_.bias[self.columns]
        bias = (slope * self._bias + offset + self._offsets).astype(np.float32)
        self._index = ExactIndex(self._vectors * np.float32(slope), bias=bias)
        self._most = int(np.unique(self.labels, return_counts=True)[1].max(initial=1))
        order = np.argsort(self.labels, kind="stable")
        self._sorted, self._order = self.labels[order], order

    def exclude_pairs(self, pairs: Iterable[tuple[int, int]], n: int) -> Matrix:
        """Return (row, label) pairs as a matrix of excluded columns, (n, n_columns)."""
        from scipy.sparse import csr_matrix

        rows: list[int] = []
        columns: list[int] = []
        for place, label in pairs:
            start, end = np.searchsorted(self._sorted, [label, label + 1])
            rows += [place] * int(end - start)
            columns += self._order[start:end].tolist()
        values = np.ones(len(rows), np.int8)
        return csr_matrix((values, (rows, columns)), (n, len(self.labels)))

    def top(self, points: Float32, k: int, exclude: Any = None, threads: int | None = None) -> TopLabels:
        """Return the k most probable labels of points, (n, dim)."""
        n_candidates = min(k - 1 + self._most, len(self.labels)) or 1
        ids, _ = self._index.top_k(points, n_candidates, exclude=exclude, threads=threads)
        if self._most > 1:
            ids = _drop_repeated_labels(ids, self.labels)
        ids = np.pad(ids[:, :k], ((0, 0), (0, max(0, k - ids.shape[1]))), constant_values=-1)
        scores = np.einsum("nd,nkd->nk", points, self._vectors[ids]) + self._bias[ids]
        probabilities = self._calibration.predict_proba(scores, self.columns[ids])
        is_empty = ids < 0
        return TopLabels(
            np.where(is_empty, -1, self.labels[ids]),
            np.where(is_empty, 0, scores).astype(np.float32),
            np.where(is_empty, 0.0, probabilities),
        )


def _drop_repeated_labels(ids: Int64, labels: Int64) -> Int64:
    """Return ids without columns whose label ranks higher already, as labels may have merged."""
    distinct = np.full_like(ids, -1)
    for row, row_ids in enumerate(ids):
        row_labels = dict.fromkeys(labels[row_ids[row_ids >= 0]].tolist())
        first = {label: int(i) for i, label in reversed(list(zip(row_ids, labels[row_ids], strict=True))) if i >= 0}
        distinct[row, : len(row_labels)] = [first[label] for label in row_labels]
    return distinct


TOP = 10
"""Maximum number of suggestions for an item."""
FLOOR = 0.01
"""Lowest probability of a suggestion."""

_BLOCK = 1000  # items in a transaction
_LISTED = 1000  # uncovered items that an answer lists


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
    """Results of applying a model."""

    model: int
    inference: InferenceResult
    coverage: SuggestionCoverage | None
    accepted: DecisionCounts | None


def apply_model(
    collection: Collection,
    *,
    by: str,
    again: bool = False,
    k: int = TOP,
    floor: float = FLOOR,
    min_precision: float | None = None,
    accept_above: float | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> ApplyResult:
    """Let the model in use suggest labels for new items and for items whose content changed.

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
        loaded_model = load_model(collection)
        threshold = None if min_precision is None else loaded_model.threshold(min_precision)
        store = open_feature_store(collection, loaded_model.annotator.terms)  # type: ignore[arg-type]  # it describes items
        inference = infer_suggestions(
            collection,
            loaded_model,
            store,
            again=again,
            k=k,
            floor=floor,
            threads=threads,
            executor=executor,
            progress=progress,
        )
        renew_indices(collection, loaded_model.path, progress)
        if inference.items:  # the entry records the inference; suggestions themselves are never undone
            counts = f"looked at {inference.items:,} items and suggests {inference.suggestions:,} labels"
            message = f"model {loaded_model.number} {counts}"
            with begin_entry(collection.engine, by, "apply", message, always=True):
                pass
    coverage = None if threshold is None else measure_coverage(collection, loaded_model.number, threshold)
    accepted_counts = (
        None
        if accept_above is None
        else accept_suggestions(collection, loaded_model.number, accept_above, by=by).decided
    )
    return ApplyResult(loaded_model.number, inference, coverage, accepted_counts)


def infer_suggestions(
    collection: Collection,
    loaded_model: LoadedModel,
    store: FeatureStore,
    *,
    again: bool = False,
    k: int = TOP,
    floor: float = FLOOR,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> InferenceResult:
    """Run the inference of `apply_model` on open resources; the caller holds the lock.

    A killed run continues where it stopped.
    """
    points = load_item_embeddings(loaded_model.path, loaded_model.model.dim)
    numbers, hashes = _find_new_items(collection, loaded_model.number, points, again)
    missing = extract_missing_features(collection, store, hashes, executor=executor, progress=progress)
    with begin_read(collection.engine) as connection:
        ranker = LabelRanker(loaded_model, loaded_model.labels_now(connection))
    embeddings: list[ItemEmbeddings] = []
    written = 0
    stage = progress.stage("suggesting", len(numbers), "items") if len(numbers) else nullcontext()
    with stage as bar:
        for lo in range(0, len(numbers), _BLOCK):
            block, block_hashes = numbers[lo : lo + _BLOCK], hashes[lo : lo + _BLOCK]
            X, has_features = store.matrix(block_hashes)
            if has_features.any():
                item_ids = block[has_features]
                marks = [
                    compute_mark(name) for name, is_stored in zip(block_hashes, has_features, strict=True) if is_stored
                ]
                block_points = ItemEmbeddings(item_ids, np.array(marks, np.uint64), loaded_model.model.transform(X))
                written += _store_results(collection, loaded_model, ranker, block_points, k, floor, threads)
                embeddings.append(block_points)
            if bar is not None:
                bar.advance(len(block))
    if embeddings:
        new_points = ItemEmbeddings(*(np.concatenate(column) for column in zip(*embeddings, strict=True)))
        save_item_embeddings(loaded_model.path, points.merge(new_points))
    return InferenceResult(
        sum(len(block_points.items) for block_points in embeddings),
        written,
        len(missing.unreadable),
        len(missing.changed),
    )


def accept_suggestions(
    collection: Collection, model: int, min_probability: float, *, by: str, label: int | None = None
) -> DecisionResult:
    """Accept pending suggestions of a model from a probability on; `undo` takes them back."""
    s = suggestions.c
    total = DecisionCounts()
    with begin_entry(collection.engine, by, "accept") as change:
        query = build_pending_query(model, min_probability, label).order_by(s.item_id, s.label_id)
        pairs = change.connection.execute(query).all()
        for lo in range(0, len(pairs), 10 * _BLOCK):
            decisions = [Decision(item, label, "accepted") for item, label in pairs[lo : lo + 10 * _BLOCK]]
            counts = write_decisions(change, decisions, origin="model", by=f"model {model}")
            total = DecisionCounts(*map(sum, zip(total, counts, strict=True)))
        change.summary = f"{total.added:,} suggestions of model {model} from {min_probability:g} on accepted"
    return DecisionResult(change.id if total.added else None, total)


def measure_coverage(collection: Collection, model: int, threshold: Threshold) -> SuggestionCoverage:
    """Return which untagged items have a suggestion above the threshold, and which have none."""
    s, a = suggestions.c, annotations.c
    is_tagged = select(a.id).where(a.item_id == item_scores.c.item_id, a.state == "accepted").exists()
    is_present = select(items.c.id).where(items.c.id == item_scores.c.item_id, items.c.state == "present").exists()
    scored_items = (
        select(item_scores.c.item_id)
        .where(item_scores.c.model_id == model, is_present, ~is_tagged)
        .order_by(item_scores.c.item_id)
    )
    lowest = min([threshold.of(label) for label in threshold.by_label] + [threshold.of(-1)])
    query = select(s.item_id, s.label_id, s.probability)
    query = query.where(s.model_id == model, s.probability >= lowest, ~_has_decision())
    with begin_read(collection.engine) as connection:
        covered = {item for item, label, p in connection.execute(query) if p >= threshold.of(label)}
        uncovered = [item for item in connection.execute(scored_items).scalars() if item not in covered]
    return SuggestionCoverage(
        threshold.precision,
        threshold.common,
        len(threshold.by_label),
        len(covered),
        len(uncovered),
        uncovered[:_LISTED],
    )


def _check_shares(**shares: float | None) -> None:
    for name, share in shares.items():
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"{name} is {share:g}; give a probability from 0 to 1")


def build_pending_query(model: int, min_probability: float, label: int | None = None) -> Any:
    """Return the query for undecided (item, label) suggestions from a probability on."""
    s = suggestions.c
    query = select(s.item_id, s.label_id).where(s.model_id == model, s.probability >= min_probability, ~_has_decision())
    present = select(items.c.id).where(items.c.id == s.item_id, items.c.state == "present").exists()
    return query.where(present) if label is None else query.where(present, s.label_id == label)


def _has_decision() -> Any:
    a, s = annotations.c, suggestions.c
    is_same_pair = (a.item_id == s.item_id) & (a.label_id == s.label_id) & (a.region == "")
    return select(a.id).where(is_same_pair).exists()


def _find_new_items(collection: Collection, model: int, points: ItemEmbeddings, again: bool) -> tuple[Int64, list[str]]:
    """Return ids and content hashes of the items that the model has not processed."""
    is_scored = (
        select(item_scores.c.item_id)
        .where(item_scores.c.model_id == model, item_scores.c.item_id == items.c.id)
        .exists()
    )
    query = select(items.c.id, items.c.hash, is_scored).where(items.c.state == "present", items.c.hash.is_not(None))
    numbers: list[int] = []
    hashes: list[str] = []
    with begin_read(collection.engine) as connection:
        rows = connection.execution_options(yield_per=10 * _BLOCK).execute(query.order_by(items.c.id))
        for part in rows.partitions():
            ids = np.array([row[0] for row in part], np.int64)
            has_embedding = points.contains(ids, np.array([compute_mark(row[1]) for row in part], np.uint64))
            for row, is_known in zip(part, has_embedding, strict=True):
                if again or not is_known or not row[2]:
                    numbers.append(row[0])
                    hashes.append(row[1])
    return np.array(numbers, np.int64), hashes


def _store_results(
    collection: Collection,
    loaded_model: LoadedModel,
    ranker: LabelRanker,
    points: ItemEmbeddings,
    k: int,
    floor: float,
    threads: int | None,
) -> int:
    """Rank the labels of some items and store them; return the number of suggestions."""
    model, numbers = loaded_model.number, points.items.tolist()
    with begin_read(collection.engine) as connection:
        decided_pairs = _read_decided_pairs(connection, numbers)
    row_of = {number: place for place, number in enumerate(numbers)}
    exclude = (
        ranker.exclude_pairs(((row_of[item], label) for item, label in decided_pairs), len(numbers))
        if decided_pairs
        else None
    )
    top = ranker.top(points.points, k, exclude, threads)
    suggestion_rows = list(_make_rows(model, numbers, top, floor))
    uncertainty = np.minimum(top.probabilities, 1 - top.probabilities).max(axis=1)
    score_rows = [
        {
            "model_id": model,
            "item_id": number,
            "best_probability": best,
            "uncertainty": item_uncertainty,
            "best_precision": best_precision,
        }
        for number, best, item_uncertainty, best_precision in zip(
            numbers,
            top.probabilities[:, 0].tolist(),
            uncertainty.tolist(),
            _compute_best_precisions(loaded_model, top, floor),
            strict=True,
        )
    ]
    with begin_write(collection.engine) as connection:
        # Labels may have been deleted during the inference.
        current_labels = set(loaded_model.labels_now(connection).tolist())
        suggestion_rows = [row for row in suggestion_rows if row["label_id"] in current_labels]
        for table in (suggestions, item_scores):
            for lo in range(0, len(numbers), 500):
                is_old = table.c.item_id.in_(numbers[lo : lo + 500])
                connection.execute(delete(table).where(table.c.model_id == model, is_old))
        if suggestion_rows:
            connection.execute(insert(suggestions), suggestion_rows)
        connection.execute(insert(item_scores).values(scored_at=format_current_time()), score_rows)
    return len(suggestion_rows)


def _compute_best_precisions(loaded_model: LoadedModel, top: TopLabels, floor: float) -> list[float | None]:
    """Return the best precision of each item's suggestions, None if it is unknown."""
    try:
        curve = loaded_model.precision_curve
    except InputError:
        return [None] * len(top.labels)
    precisions = curve.of(top.labels.ravel(), top.probabilities.ravel()).reshape(top.labels.shape)
    is_listed = (top.labels >= 0) & (top.probabilities >= floor)
    best_precisions: list[float | None] = np.where(is_listed, precisions, 0.0).max(axis=1).tolist()
    return best_precisions


def _make_rows(model: int, numbers: list[int], top: TopLabels, floor: float) -> Iterator[dict[str, Any]]:
    for place, rank in zip(*np.nonzero((top.labels >= 0) & (top.probabilities >= floor)), strict=True):
        yield {
            "model_id": model,
            "item_id": numbers[place],
            "label_id": int(top.labels[place, rank]),
            "score": float(top.scores[place, rank]),
            "probability": float(top.probabilities[place, rank]),
        }


def _read_decided_pairs(connection: Connection, numbers: list[int]) -> list[tuple[int, int]]:
    a = annotations.c
    query = select(a.item_id, a.label_id).where(a.region == "")
    return [(row[0], row[1]) for row in select_in(connection, query, a.item_id, numbers)]
