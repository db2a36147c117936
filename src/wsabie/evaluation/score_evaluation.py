"""Evaluate a ranker from blocks of scores: metrics per row, ties, coverage, figures per label."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Bool, Float64, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.label_lists import LabelLists, build_exclusion_lists, list_positives, remove_excluded
from wsabie.core.validation import as_array
from wsabie.evaluation import hierarchy_metrics, metrics
from wsabie.evaluation.positive_ranks import rank_scores
from wsabie.kernels.ranking.topk import TopKHeap, allocate_heap, hide_labels, scan_topk, sort_topk
from wsabie.vocabulary.hierarchy_distances import AncestorHeights, HopDistances
from wsabie.vocabulary.label_similarity import as_label_similarity

_LARGEST_K = np.iinfo(np.int32).max
MetricValues = dict[str, Float64]


@dataclass(frozen=True)
class LabelFigures:
    """Accuracy of each label over the evaluated rows that carry it.

    Attributes
    ----------
    k : int
    support : (n_labels,) int64
        Evaluated rows with the label.
    recall : (n_labels,) float64
        Fraction of these rows that have it in their first k; NaN without support.
    reciprocal_rank : (n_labels,) float64
        Mean of 1 / its rank in these rows; NaN without support.
    """

    k: int
    support: Int64
    recall: Float64
    reciprocal_rank: Float64


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a ranker on rows with known labels.

    Attributes
    ----------
    ks : tuple of int
    n_labels : int
    rows : (n_rows,) int64
        Rows that count: those with a positive label that is a candidate.
    n_skipped : int
        Rows without such a label.
    per_row : dict of str to (n_rows,) float64
        "p@k", "recall@k", "hit@k" and "ndcg@k" for each k, "MAP", "MRR" and "AUC" (NaN in a row without negatives);
        "psib@k" with `similar`, "hp@k" with `hops`, "herr@k" with `heights` and "psp@k" with `propensities`.
    tied_at_cut : dict of int to int
        Rows whose k-th and (k + 1)-th scores are equal.
    tied_positives : int
        Rows in which a positive ties with a negative.
    coverage : dict of int to float
        Fraction of all labels that appear in the first k of some row (equal scores by label id).
    ceilings : dict of str to float
        Highest "p@k" and "recall@k" that the numbers of positives allow, and highest "psib@k" and "hp@k" that the
        hierarchy allows; 1 for "psp@k".
    labels : LabelFigures
    """

    ks: tuple[int, ...]
    n_labels: int
    rows: Int64
    n_skipped: int
    per_row: dict[str, Float64]
    tied_at_cut: dict[int, int]
    tied_positives: int
    coverage: dict[int, float]
    ceilings: dict[str, float]
    labels: LabelFigures

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def means(self) -> dict[str, float]:
        """Mean of each metric over the rows that count; of AUC over those where it is defined."""
        return {name: _average(values) for name, values in self.per_row.items()}

    def as_dict(self) -> JsonObject:
        """Return the summary for JSON (schema 1), without values per row or label; None for undefined figures."""
        summary = {
            "schema": 1,
            "rows": self.n_rows,
            "rows_without_positives": self.n_skipped,
            "labels": self.n_labels,
            "metrics": self.means,
            "ceilings": self.ceilings,
            "coverage": {f"@{k}": value for k, value in self.coverage.items()},
            "rows_tied_at_cut": {f"@{k}": count for k, count in self.tied_at_cut.items()},
            "rows_with_tied_positives": self.tied_positives,
        }
        return JsonObject(to_json_value(summary))


def evaluate_scores(
    score_blocks: Iterable[tuple[int, Array]],
    Y: Matrix,
    *,
    ks: Sequence[int] = (1, 5, 10),
    exclude: Matrix | None = None,
    similar: Any = None,
    hops: HopDistances | None = None,
    heights: AncestorHeights | None = None,
    propensities: Float64 | None = None,
) -> Evaluation:
    """Evaluate a ranker that yields scores block by block.

    Parameters
    ----------
    score_blocks : iterable of (lo, scores)
        `scores` (b, n_labels), float32 or float64, belongs to the rows lo..lo + b - 1; every row is in exactly one
        block, in any order. Only one block is held at a time.
    Y : csr_matrix (n, n_labels) or int array (n,)
        Values above zero are positives; explicit negatives (-1) are candidates like all other labels.
    ks : sequence of int
    exclude : csr_matrix (n, n_labels) or None
        Non-zeros are not candidates of their row, and no positives: the training labels, for leave-one-out.
    similar : csr_matrix (n_labels, n_labels), LabelSimilarity or None
        Similarity of labels, for the sibling precision: values in [0, 1], or `Hierarchy.find_siblings(label_names)`.
    hops : HopDistances or None
        Distances of labels, for the hierarchical precision: `Hierarchy.find_distances(label_names)`.
    heights : AncestorHeights or None
        Ancestors of labels, for the hierarchical error: `Hierarchy.find_ancestors(label_names)`.
    propensities : (n_labels,) float or None
        Propensities of labels in (0, 1], for the propensity-scored precision: `compute_propensities`.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        There are no blocks, a score is NaN, a row is missing or comes twice, or shapes do not fit.

    Notes
    -----
    A metric of tied scores is its mean over all orders of the ties. No score of -inf can be in the first k.

    Examples
    --------
    >>> scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.1]])
    >>> evaluation = evaluate_scores([(0, scores)], np.array([0, 1]), ks=(1,))
    >>> evaluation.means["p@1"], evaluation.means["MAP"], evaluation.tied_at_cut
    (0.75, 0.875, {1: 1})
    """
    if hasattr(score_blocks, "shape") or not isinstance(score_blocks, Iterable):
        kind = "one array" if hasattr(score_blocks, "shape") else type(score_blocks).__name__
        raise InputError(f"the scores are {kind} where blocks are expected; give [(0, scores)]")
    totals: EvaluationAccumulator | None = None
    for block in score_blocks:
        lo, scores = _check_block(block)
        totals = totals or EvaluationAccumulator(Y, scores.shape[1], ks, exclude, similar, hops, heights, propensities)
        totals.add(totals.measure(lo, scores))
        del block, scores  # free this block before the next one is made
    if totals is None:
        raise InputError("there are no scores to evaluate; give at least one block of rows")
    return totals.result()


class BlockFigures(NamedTuple):
    """Figures that a block of rows adds to an evaluation."""

    lo: int
    hi: int
    per_row: MetricValues
    highest: dict[str, float]
    has_positives: Bool
    best: TopKHeap
    positive_figures: tuple[Int64, Float64, Float64]  # positives one by one: label, hit, reciprocal rank
    tied_positives: int


class EvaluationAccumulator:
    """Running sums and values per row of an evaluation; other processes may measure the blocks."""

    def __init__(
        self,
        Y: Matrix,
        n_labels: int,
        ks: Sequence[int],
        exclude: Matrix | None = None,
        similar: Any = None,
        hops: HopDistances | None = None,
        heights: AncestorHeights | None = None,
        propensities: Float64 | None = None,
    ) -> None:
        ks = _check_ks(ks)
        positives = list_positives(Y, n_labels)
        n_rows = positives.n_rows
        self.excluded = build_exclusion_lists(exclude, n_rows, n_labels)
        self.positives = remove_excluded(positives, self.excluded, n_labels)
        similar = None if similar is None else as_label_similarity(similar, n_labels)
        for name, distances in (("hops", hops), ("heights", heights)):
            if distances is not None and distances.n_labels != n_labels:
                message = f"{name} are between {distances.n_labels:,} labels, not {n_labels:,}; make them again"
                raise InputError(message)
        relations: dict[str, tuple[hierarchy_metrics.RowMetric, Any]] = {
            "psib": (hierarchy_metrics.compute_sibling_precision, similar),
            "hp": (hierarchy_metrics.compute_hierarchical_precision, hops),
            "herr": (hierarchy_metrics.compute_hierarchical_error, heights),
        }
        self.relations = {name: relation for name, relation in relations.items() if relation[1] is not None}
        self.inverse_propensities = None if propensities is None else _invert(propensities, n_labels)
        self.ks, self.n_rows, self.n_labels = ks, n_rows, n_labels
        self.per_row: dict[str, Float64] = {}
        self.is_scored = np.zeros(n_rows, bool)
        self.tied_at_cut = dict.fromkeys(ks, 0)
        self.tied_positives = 0
        self.covered = {k: np.zeros(n_labels, bool) for k in ks}
        self.highest: dict[str, float] = {}
        self.sums = np.zeros((3, n_labels))  # support, recall, reciprocal rank

    def measure(self, lo: int, scores: Array) -> BlockFigures:
        """Measure the rows from lo on; the accumulator does not change."""
        scores, hi = _as_scores(scores), lo + len(scores)
        self._check_rows(lo, hi, scores)
        positives, excluded = self.positives.part(lo, hi), self.excluded.part(lo, hi)
        best = _rank_best(scores, excluded, max(self.ks) + 1, lo)
        ranks = rank_scores(scores, positives, excluded)
        has_positives = ranks.n_positives > 0
        values, ceilings = hierarchy_metrics.compute_hierarchy_metrics(
            scores, best, positives, excluded, self.relations, self.ks
        )
        if self.inverse_propensities is not None:
            weights = self.inverse_propensities[positives.labels]
            for k in self.ks:
                name = f"psp@{k}"
                values[name], ceilings[name] = metrics.measure_propensity_precision(ranks, weights, k)
        per_row = _compute_row_metrics(ranks, self.ks) | values
        highest = {name: float(ceiling[has_positives].sum()) for name, ceiling in ceilings.items()}
        hits, reciprocal = metrics.top_k_probability(ranks, max(self.ks)), metrics.label_reciprocal_rank(ranks)
        tied_rows = ranks.row[ranks.group > ranks.positives_in_group]
        positive_figures = positives.labels, hits, reciprocal
        return BlockFigures(lo, hi, per_row, highest, has_positives, best, positive_figures, len(np.unique(tied_rows)))

    def add(self, block: BlockFigures) -> None:
        """Add the figures of a block; the order of blocks decides the rounding of sums."""
        self.is_scored[block.lo : block.hi] = True
        for name, values in block.per_row.items():
            column = self.per_row.setdefault(name, np.full(self.n_rows, np.nan))
            column[block.lo : block.hi] = values
        for name, ceiling in block.highest.items():
            self.highest[name] = self.highest.get(name, 0.0) + ceiling
        self._add_best(block.best, block.has_positives)
        labels, *weights = block.positive_figures
        for sums, weight in zip(self.sums, (None, *weights), strict=True):
            sums += np.bincount(labels, weight, minlength=self.n_labels)
        self.tied_positives += block.tied_positives

    def _check_rows(self, lo: int, hi: int, scores: Array) -> None:
        if scores.shape[1] != self.n_labels:
            raise InputError(f"scores from row {lo} on have {scores.shape[1]} columns, others {self.n_labels}")
        if lo < 0 or hi > self.n_rows:
            raise InputError(f"there are scores for the rows {lo} to {hi - 1} but Y has {self.n_rows} rows")
        if self.is_scored[lo:hi].any():
            fact = f"row {lo + int(np.argmax(self.is_scored[lo:hi]))} has scores in two blocks"
            raise InputError(f"{fact}; give each once")

    def _add_best(self, best: TopKHeap, has_positives: Bool) -> None:
        for k in self.ks:
            if k < best.scores.shape[1]:
                cut, next_score = best.scores[has_positives, k - 1], best.scores[has_positives, k]
                self.tied_at_cut[k] += int(np.sum((cut == next_score) & (best.labels[has_positives, k] >= 0)))
            first = best.labels[has_positives, :k]
            self.covered[k][first[first >= 0]] = True

    def result(self) -> Evaluation:
        n_positives = np.diff(self.positives.indptr)
        rows = np.flatnonzero(n_positives)
        if not self.is_scored[rows].all():
            missing = rows[~self.is_scored[rows]]
            raise InputError(f"{len(missing)} rows have no scores, the first is row {missing[0]}; score every row")
        require(len(rows) > 0, "no row has a positive label among the candidates, so nothing can be measured")
        support = self.sums[0].astype(np.int64)
        recall, reciprocal = self.sums[1:] / np.where(support > 0, support, np.nan)
        per_row = {name: values[rows] for name, values in self.per_row.items()}
        ceilings = _compute_ceilings(n_positives[rows], self.ks)
        ceilings |= {name: sum_ / len(rows) for name, sum_ in self.highest.items()}
        for name in per_row:
            if name.startswith("psp@"):
                per_row[name], ceilings[name] = per_row[name] / ceilings[name], 1.0
        return Evaluation(
            self.ks,
            self.n_labels,
            rows,
            self.n_rows - len(rows),
            per_row,
            self.tied_at_cut,
            self.tied_positives,
            {k: float(covered.mean()) for k, covered in self.covered.items()},
            ceilings,
            LabelFigures(max(self.ks), support, recall, reciprocal),
        )


def _compute_row_metrics(ranks: metrics.PositiveRanks, ks: tuple[int, ...]) -> dict[str, Float64]:
    by_length = {"p": metrics.precision_at, "recall": metrics.recall_at, "hit": metrics.hit_at, "ndcg": metrics.ndcg_at}
    values = {f"{name}@{k}": measure(ranks, k) for name, measure in by_length.items() for k in ks}
    list_metrics = {"MAP": metrics.average_precision, "MRR": metrics.first_reciprocal_rank, "AUC": metrics.auc}
    return values | {name: measure(ranks) for name, measure in list_metrics.items()}


def _compute_ceilings(n_positives: Int64, ks: tuple[int, ...]) -> dict[str, float]:
    max_hits = {k: np.minimum(n_positives, k) for k in ks}
    values = {f"p@{k}": float(np.mean(max_hits[k] / k)) for k in ks}
    return values | {f"recall@{k}": float(np.mean(max_hits[k] / n_positives)) for k in ks}


def _rank_best(scores: Array, excluded: LabelLists, k: int, lo: int) -> TopKHeap:
    """Return the best k labels of each row of the block, best first."""
    heap = allocate_heap(len(scores), min(k, scores.shape[1]), scores.dtype)
    visible = scores
    if len(excluded.labels):
        visible = scores.copy()
        hide_labels(visible, 0, excluded)
    if scan_topk(visible, 0, heap, 0, len(scores)):
        row = int(np.argmax(np.isnan(scores).any(axis=1)))
        raise InputError(f"a score of row {lo + row} is NaN; the model has diverged or the row is not finite")
    sort_topk(heap, 0, len(scores))
    return heap


def _invert(propensities: Float64, n_labels: int) -> Float64:
    """Return 1 / propensity of each label."""
    values = np.asarray(propensities)
    if values.shape != (n_labels,) or values.dtype.kind != "f" or not ((values > 0) & (values <= 1)).all():
        message = f"propensities of the shape {values.shape} for {n_labels:,} labels"
        raise InputError(f"{message}; give each label a number above 0 and at most 1, see compute_propensities")
    inverse: Float64 = 1 / values.astype(np.float64)
    return inverse


def _check_block(block: Any) -> tuple[int, Array]:
    """Return the first row and the scores of a block."""
    try:
        lo, scores = block
        lo = index(lo)
    except (TypeError, ValueError) as error:
        raise InputError(f"a block of scores is not a pair of a row's number and an array ({error})") from error
    return lo, _as_scores(scores)


def _as_scores(scores: Array) -> Any:
    scores = as_array(scores, "a block of scores")
    if scores.ndim != 2 or scores.dtype.kind not in "fiub":
        raise InputError(f"scores of shape {scores.shape} and type {scores.dtype} are not a block; give (rows, labels)")
    dtype = scores.dtype if scores.dtype in (np.float32, np.float64) else np.float64
    return np.ascontiguousarray(scores, dtype)


def _check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(ks, Iterable):
        raise InputError(f"ks is {ks!r}; give a list of numbers, such as ({ks!r},)")
    try:
        checked = tuple(sorted({int(k) for k in ks}))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"ks = {ks!r} holds something that is not a number ({error}); give whole numbers") from error
    if not checked or checked[0] < 1 or checked[-1] > _LARGEST_K:
        raise InputError(f"ks = {tuple(ks)} but every k must be 1 or more, {_LARGEST_K:,} at most, and one is needed")
    return checked


def _average(values: Float64) -> float:
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if len(numbers) else float("nan")


class FrequencyBin(NamedTuple):
    """Labels with `low` to `high` training rows (inclusive), and the accuracy of their ranks.

    `recall` and `reciprocal_rank` are means over labels with support, where each label counts once; NaN without any.
    """

    low: int
    high: int
    n_labels: int
    n_rows: int
    recall: float
    reciprocal_rank: float


def group_by_frequency(figures: LabelFigures, counts: Int64) -> list[FrequencyBin]:
    """Compute the accuracy per band of training frequency: 0, 1, 2, 4, 8 ... up to the largest count.

    Parameters
    ----------
    figures : LabelFigures
    counts : (n_labels,) int
        Training rows that carry each label.

    Examples
    --------
    >>> figures = LabelFigures(1, np.array([1, 2]), np.array([0.0, 0.5]), np.array([0.25, 0.75]))
    >>> group_by_frequency(figures, np.array([1, 3]))[1]
    FrequencyBin(low=2, high=3, n_labels=1, n_rows=2, recall=0.5, reciprocal_rank=0.75)
    """
    lows = [0, *(2**i for i in range(int(counts.max()).bit_length()))]
    highs = [low - 1 for low in lows[1:]] + [max(int(counts.max()), lows[-1])]
    bands = [(low, high, (counts >= low) & (counts <= high)) for low, high in zip(lows, highs, strict=True)]
    return [
        FrequencyBin(
            low,
            high,
            int(band.sum()),
            int(figures.support[band].sum()),
            _average(figures.recall[band & (figures.support > 0)]),
            _average(figures.reciprocal_rank[band & (figures.support > 0)]),
        )
        for low, high, band in bands
        if band.any()
    ]
