"""Evaluation of a model of objects and parts on image pairs, beside the same model without relations."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabie.core.arrays import Bool, Int64
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import to_json_value
from wsabie.core.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import Interval, bootstrap_all
from wsabie.io.records import FeatureTable
from wsabie.models.object_parts.pair_ranker import PairRanker
from wsabie.models.object_parts.ranking_tasks import QuadrupletTest, Values, evaluate_pairs, evaluate_triplets
from wsabie.vocabulary.label_quadruplets import Pair, Quadruplets, count_quadruplets

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
    not_among : int
        Relations that are left out because they are none of the candidates.
    """

    n: int
    seed: int
    relations: Int64
    in_training: Bool
    couples: Int64 | None
    not_among: int


def choose_quadruplet_count(model: PairRanker, couples: Int64 | None = None) -> int:
    """Return the default number of quadruplets: fewer with many labels, 0 if too few would be left."""
    n_candidates = len(model.vocabulary_) ** 2 if couples is None else len(couples)
    n_quadruplets = min(MAX_QUADRUPLETS, int(_MAX_RANKED_PAIRS / max(n_candidates, 1)))
    return n_quadruplets if n_quadruplets >= MIN_QUADRUPLETS else 0


def build_request(
    model: PairRanker, n: int, seed: int = 0, relations: Int64 | None = None, couples: Int64 | None = None
) -> PartEvaluationRequest:
    """Build a request with label numbers; by default with the relations that training used.

    Raises
    ------
    InputError
        No relation is among the candidate pairs.
    """
    requested = model.relations_ if relations is None else relations
    width = len(model.vocabulary_)
    codes = [pairs @ [width, 1] for pairs in (requested, model.relations_)]
    is_candidate = np.ones(len(requested), bool) if couples is None else np.isin(codes[0], couples @ [width, 1])
    if not is_candidate.any():
        raise InputError(f"none of {len(requested)} relations is among the given pairs of labels; give these pairs too")
    in_training = np.isin(codes[0], codes[1])
    return PartEvaluationRequest(
        n, seed, requested[is_candidate], in_training[is_candidate], couples, int((~is_candidate).sum())
    )


@dataclass(frozen=True)
class TaskFigures:
    """Figures of one task.

    Attributes
    ----------
    name : {"pairs", "triplet"}
        Part-object labelling, or a label beside a given one.
    of : {"all", "told", "not told"}
        Relations of the quadruplets: all, those of training, or the others.
    quadruplets, candidates : int
    metrics, image_metrics : dict of str to Interval
        Of the model, and of the same model without relations.
    certain : bool
        True for several relations: with one the intervals mean nothing.
    """

    name: str
    of: str
    quadruplets: int
    candidates: int
    metrics: dict[str, Interval]
    image_metrics: dict[str, Interval]
    certain: bool

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        facts = {"task": self.name, "relations": self.of, "quadruplets": self.quadruplets}
        return {
            **facts,
            "candidates": self.candidates,
            **self._format_intervals(self.metrics),
            "alone": self._format_intervals(self.image_metrics),
        }

    def _format_intervals(self, intervals: dict[str, Interval]) -> dict[str, Any]:
        bounds = {name: [interval.low, interval.high] for name, interval in intervals.items()} if self.certain else {}
        return {"metrics": {name: interval.mean for name, interval in intervals.items()}, "intervals": bounds}


@dataclass(frozen=True)
class PartEvaluation:
    """Facts and figures of an evaluation.

    Attributes
    ----------
    question : PartEvaluationRequest
    possible : int
        Number of different quadruplets.
    without : list of (object label, part label)
        Relations without two different images.
    tasks : list of TaskFigures
        Empty if no relation has two.
    """

    question: PartEvaluationRequest
    possible: int
    without: list[Pair]
    tasks: list[TaskFigures]

    @property
    def used(self) -> int:
        """Relations that quadruplets were drawn from."""
        return len(self.question.relations) - len(self.without)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        request = self.question
        left_out = {"not_among": request.not_among, "without_pictures": self.without}
        counts = {"drawn": request.n if self.tasks else 0, "possible": self.possible, "seed": request.seed}
        facts: dict[str, Any] = to_json_value({**counts, "relations": self.used, **left_out})
        return {**facts, "tasks": [task.as_dict() for task in self.tasks]}


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
    names = model.vocabulary_.names
    without = [(object_label, part_label) for object_label, part_label in map(names, request.relations[counts == 0])]
    if not counts.any():
        return PartEvaluation(request, 0, without, [])
    quadruplets = Quadruplets(rows.Y, request.relations[counts > 0]).sample(
        request.n, np.random.default_rng([request.seed, 5])
    )
    test = QuadrupletTest(quadruplets, rows.X)
    image_model = copy(model)
    image_model.label_scores = "none"
    with progress.stage("ranking pairs of labels", 2 * request.n, "quadruplets") as bar:
        ranked = [_rank_tasks(test, ranker, request.couples, bar.advance) for ranker in (model, image_model)]
    in_training = _find_training_pairs(test, request)
    parts = {"all": np.ones(request.n, bool), "told": in_training, "not told": ~in_training}
    if in_training.all():
        parts = {"all": parts["all"]}
    groups = np.array(test.relations)
    sizes = _count_candidates(model, request)
    tasks = [
        _build_task(name, relation_group, mask, sizes[name], [values[name] for values in ranked], groups)
        for relation_group, mask in parts.items()
        for name in (PAIRS, TRIPLET)
        if mask.any()
    ]
    return PartEvaluation(request, int(counts.sum()), without, tasks)


def _rank_tasks(test: QuadrupletTest, model: PairRanker, couples: Int64 | None, on_progress: Any) -> dict[str, Values]:
    return {PAIRS: evaluate_pairs(test, model, couples, KS, on_progress), TRIPLET: evaluate_triplets(test, model, KS)}


def _find_training_pairs(test: QuadrupletTest, request: PartEvaluationRequest) -> Bool:
    """Return True for each quadruplet whose relation training used."""
    training_pairs = {
        (object_label, part_label) for object_label, part_label in request.relations[request.in_training].tolist()
    }
    labels = zip(test.drawn.object_labels.tolist(), test.drawn.part_labels.tolist(), strict=True)
    return np.array([pair in training_pairs for pair in labels], bool)


def _count_candidates(model: PairRanker, request: PartEvaluationRequest) -> dict[str, int]:
    """Return the number of candidate pairs, and of candidate labels beside a given one."""
    n_labels = len(model.vocabulary_)
    n_partners = n_labels if model.same else n_labels - 1
    return {PAIRS: n_labels * n_partners if request.couples is None else len(request.couples), TRIPLET: n_partners}


def _build_task(name: str, of: str, mask: Bool, candidates: int, values: list[Values], groups: Any) -> TaskFigures:
    """Return the figures of some quadruplets; a triplet counts both images, objects before parts."""
    repeats = len(values[0]["MAP"]) // len(mask)
    rows, relations = np.tile(mask, repeats), np.tile(groups, repeats)
    metric_names = [metric for metric in values[0] if metric not in {f"p@{k}" for k in KS if k > 1 and k >= candidates}]
    metrics, image_metrics = (
        bootstrap_all({metric: task_values[metric][rows] for metric in metric_names}, groups=relations[rows])
        for task_values in values
    )
    certain = len(np.unique(relations[rows])) > 1
    return TaskFigures(name, of, int(mask.sum()), candidates, metrics, image_metrics, certain)
