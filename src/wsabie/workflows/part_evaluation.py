"""Evaluation of a model of objects and parts on pairs of images."""

from copy import copy
from dataclasses import dataclass

import numpy as np

from wsabie.core.arrays import Array, Bool, Int64
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.evaluation.bootstrap import Interval, bootstrap_all
from wsabie.io.records import FeatureTable
from wsabie.models.object_parts.pair_ranker import PairRanker, QuadrupletTest, Values, evaluate_pairs, evaluate_triplets
from wsabie.vocabulary.label_quadruplets import Pair, Quadruplets, count_quadruplets
from wsabie.workflows.compare.comparison import list_bounds

MAX_QUADRUPLETS = 10_000
MIN_QUADRUPLETS = 100
_MAX_RANKED_PAIRS = 2e10
"""Label pairs that all quadruplets are ranked among by default: about a minute of work."""
KS = (1, 5, 10)
PAIRS, TRIPLET = "pairs", "triplet"


@dataclass(frozen=True)
class PartEvaluationRequest:
    """Options of an evaluation of objects and parts.

    Attributes
    ----------
    n : int
        Quadruplets to draw.
    seed : int
    relations : (m, 2) int64
        Relations that quadruplets are drawn from.
    in_training : (m,) bool
        True for relations that training used.
    couples : (c, 2) int64 or None
        Candidate pairs of labels; None = all pairs.
    non_candidates : int
        Relations that are left out because they are none of the candidates.
    """

    n: int
    seed: int
    relations: Int64
    in_training: Bool
    couples: Int64 | None
    non_candidates: int


def choose_quadruplet_count(model: PairRanker, couples: Int64 | None = None) -> int:
    """Return the default number of quadruplets: fewer with many labels, 0 if too few would be left."""
    n_candidates = len(model.vocabulary_) ** 2 if couples is None else len(couples)
    n_quadruplets = min(MAX_QUADRUPLETS, int(_MAX_RANKED_PAIRS / max(n_candidates, 1)))
    return n_quadruplets if n_quadruplets >= MIN_QUADRUPLETS else 0


def build_request(
    model: PairRanker, n: int, seed: int = 0, relations: Int64 | None = None, couples: Int64 | None = None
) -> PartEvaluationRequest:
    """Build a request with label ids; by default with the relations that training used.

    Raises
    ------
    InputError
        No relation is among the candidate pairs.
    """
    requested = model.relations_ if relations is None else relations
    weights = [len(model.vocabulary_), 1]  # of the ids in a code of the pair
    codes = requested @ weights
    is_candidate = np.ones(len(requested), bool) if couples is None else np.isin(codes, couples @ weights)
    if not is_candidate.any():
        raise InputError(f"none of {len(requested)} relations is among the given pairs of labels; give these pairs too")
    in_training = np.isin(codes, model.relations_ @ weights)
    selected, n_left_out = (requested[is_candidate], in_training[is_candidate]), int((~is_candidate).sum())
    return PartEvaluationRequest(n, seed, *selected, couples, n_left_out)


@dataclass(frozen=True)
class TaskFigures:
    """Figures of one task.

    Attributes
    ----------
    name : {"pairs", "triplet"}
        Part-object labelling, or a label beside a given one.
    relation_group : {"all", "trained", "untrained"}
        Relations of the quadruplets: all, those of training, or the others.
    quadruplets, candidates : int
    metrics, image_metrics : dict of str to Interval
        Metrics of the model, and of the same model without relations.
    has_intervals : bool
        True for several relations: with one the intervals mean nothing.
    """

    name: str
    relation_group: str
    quadruplets: int
    candidates: int
    metrics: dict[str, Interval]
    image_metrics: dict[str, Interval]
    has_intervals: bool

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON."""
        return {
            "task": self.name,
            "relations": self.relation_group,
            "quadruplets": self.quadruplets,
            "candidates": self.candidates,
            **self._format_intervals(self.metrics),
            "without_relations": self._format_intervals(self.image_metrics),
        }

    def _format_intervals(self, intervals: dict[str, Interval]) -> JsonObject:
        bounds = list_bounds(intervals) if self.has_intervals else {}
        return {"metrics": {name: interval.mean for name, interval in intervals.items()}, "intervals": bounds}


@dataclass(frozen=True)
class PartEvaluation:
    """Facts and figures of an evaluation.

    Attributes
    ----------
    request : PartEvaluationRequest
    possible : int
        Number of different quadruplets.
    without : list of (object label, part label)
        Relations without two different images.
    tasks : list of TaskFigures
        Empty if no relation has two.
    """

    request: PartEvaluationRequest
    possible: int
    without: list[Pair]
    tasks: list[TaskFigures]

    @property
    def n_used_relations(self) -> int:
        """Relations that quadruplets were drawn from."""
        return len(self.request.relations) - len(self.without)

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON."""
        request = self.request
        return {
            "sampled": request.n if self.tasks else 0,
            "possible": int(self.possible),
            "seed": request.seed,
            "relations": self.n_used_relations,
            "non_candidates": request.non_candidates,
            "without_pictures": [list(pair) for pair in self.without],
            "tasks": [to_json_value(task.as_dict()) for task in self.tasks],
        }


def evaluate_parts(
    model: PairRanker, rows: FeatureTable, request: PartEvaluationRequest, progress: Progress = SILENT
) -> PartEvaluation:
    """Draw quadruplets of rows with the model's labels, and rank the true pairs.

    Parameters
    ----------
    model : PairRanker
    rows : FeatureTable
    request : PartEvaluationRequest
    progress : Progress
        Counts ranked quadruplets.
    """
    counts = count_quadruplets(rows.Y, request.relations)
    names, n_labels = model.vocabulary_.names, len(model.vocabulary_)
    without = [(object_label, part_label) for object_label, part_label in map(names, request.relations[counts == 0])]
    if not counts.any():
        return PartEvaluation(request, 0, without, [])
    rng = np.random.default_rng([request.seed, 5])
    quadruplets = Quadruplets(rows.Y, request.relations[counts > 0]).sample(request.n, rng)
    test = QuadrupletTest(quadruplets, rows.X)
    image_model = copy(model)
    image_model.label_scores = "none"
    values: dict[str, list[Values]] = {PAIRS: [], TRIPLET: []}
    with progress.stage("ranking pairs of labels", 2 * request.n, "quadruplets") as bar:
        for ranker in (model, image_model):
            values[PAIRS].append(evaluate_pairs(test, ranker, request.couples, KS, bar.advance))
            values[TRIPLET].append(evaluate_triplets(test, ranker, KS))
    codes = np.stack([quadruplets.object_labels, quadruplets.part_labels], 1) @ [n_labels, 1]
    in_training = np.isin(codes, request.relations[request.in_training] @ [n_labels, 1])
    parts = {"all": np.ones(request.n, bool)}
    if not in_training.all():
        parts |= {"trained": in_training, "untrained": ~in_training}
    n_partners = n_labels if model.same else n_labels - 1  # labels beside a given one
    sizes = {PAIRS: n_labels * n_partners if request.couples is None else len(request.couples), TRIPLET: n_partners}
    tasks = [
        _build_task(name, relation_group, mask, sizes[name], values[name], np.array(test.relations))
        for relation_group, mask in parts.items()
        for name in (PAIRS, TRIPLET)
        if mask.any()
    ]
    return PartEvaluation(request, int(counts.sum()), without, tasks)


def _build_task(
    name: str, relation_group: str, mask: Bool, candidates: int, values: list[Values], relation_ids: Array
) -> TaskFigures:
    """Return the figures of the quadruplets in `mask`; triplets have values of objects, then of parts."""
    repeats = len(values[0]["MAP"]) // len(mask)
    rows, relations = np.tile(mask, repeats), np.tile(relation_ids, repeats)
    metric_names = [metric for metric in values[0] if metric not in {f"p@{k}" for k in KS if k > 1 and k >= candidates}]
    metrics, image_metrics = (
        bootstrap_all({metric: task_values[metric][rows] for metric in metric_names}, groups=relations[rows])
        for task_values in values
    )
    has_intervals = len(np.unique(relations[rows])) > 1
    return TaskFigures(name, relation_group, int(mask.sum()), candidates, metrics, image_metrics, has_intervals)
