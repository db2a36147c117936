"""Models of objects and parts at work: detection in an image, and evaluation on pairs of images."""

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np
from PIL import Image, ImageDraw

from wsabie.core.arrays import Array, Bool, Int64
from wsabie.core.errors import InputError, UnreadableItemError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.evaluation.bootstrap import Interval, bootstrap_all
from wsabie.features.base.sampling import RunOptions
from wsabie.features.images.image_decoder import decode_with_size
from wsabie.io.records import FeatureTable, Item
from wsabie.io.regions import MIN_SIDE, Box, Region, RegionCrop, parse_region
from wsabie.models.annotators import Annotator
from wsabie.models.object_parts.pair_ranker import PairRanker, QuadrupletTest, Values, evaluate_pairs, evaluate_triplets
from wsabie.models.object_parts.ranker import ObjectParts
from wsabie.vocabulary.label_quadruplets import Pair, Quadruplets, count_quadruplets
from wsabie.workflows.charts.chart_files import encode_picture, load_font
from wsabie.workflows.compare.comparison_table import list_bounds

_WINDOW_DIVISORS = (2, 3)  # windows of a half and of a third of the sides, each shifted by half of itself
_DRAWING_SIDE = 900
_COLOURS = ("#b3261e", "#0b57d0", "#146c2e", "#7d4e00", "#6f2dbd", "#00696e")
MAX_QUADRUPLETS = 10_000
MIN_QUADRUPLETS = 100
_MAX_RANKED_PAIRS = 2e10
"""Label pairs that all quadruplets are ranked among by default: about a minute of work."""
KS = (1, 5, 10)
PAIRS, TRIPLET = "pairs", "triplet"


class DetectedPart(NamedTuple):
    """A part of the object in an image."""

    object_label: str
    label: str
    score: float
    region: str | Path  # region of the image, as requested or in per cent; or another image


def list_regions() -> list[str]:
    """Return regions that cover an image at two sizes, in per cent.

    Examples
    --------
    >>> len(list_regions()), list_regions()[:2]
    (34, ['0%,0%,50%,50%', '25%,0%,50%,50%'])
    """
    regions = []
    for scale in _WINDOW_DIVISORS:
        starts = [f"{50 * step / scale:.4g}%" for step in range(2 * scale - 1)]
        side = f"{100 / scale:.4g}%"
        regions += [f"{x},{y},{side},{side}" for y in starts for x in starts]
    return regions


def require_object_parts(annotator: Annotator, where: str = "the model") -> ObjectParts:
    """Return the annotator's model of objects and parts.

    Raises
    ------
    InputError
        It is another kind of model, or takes rows.
    """
    if not isinstance(annotator.model, ObjectParts):
        raise InputError(
            f"{where} is not a model of objects and parts; train one: `train(kind='parts', relations=FILE)`"
        )
    require(annotator.extractor is not None, f"{where} was trained on rows of features, and cannot look at pictures")
    return annotator.model


def find_parts(
    annotator: Annotator, picture: Path, object_label: str | None = None, k: int = 10, **context: Unpack[RunOptions]
) -> list[DetectedPart]:
    """Return the k parts that score best in an image, each with its best region.

    The object is the best of the labels that have parts, by f_I of the whole image. Every window of `list_regions` is
    then scored for the parts of this object by f_I + r f_L (Mesnil et al. 2014, section 6.2, "triplet"). The candidates
    are the parts that training knew for the object, or all part labels if it knew none.

    Raises
    ------
    InputError
        Not a model of objects and parts, an unreadable image, a label that the model does not know, or the only part
        that it knows.
    """
    model = require_object_parts(annotator)
    items = [Item(str(picture), picture, ())]
    items += [Item(text, RegionCrop(picture, parse_region(text)), ()) for text in list_regions()]
    X = annotator.rows_of_items(items, **context)
    names = list(model.vocabulary_)
    if object_label is None:
        objects = [names[y] for y in np.unique(model.relations_[:, 0])]
        ((object_label, _),) = model.annotate(X[:1], k=1, candidates=objects)[0]
    (object_id,) = model.vocabulary_.ids([object_label])
    object_parts = model.relations_[model.relations_[:, 0] == object_id, 1]
    candidates = np.setdiff1d(object_parts if len(object_parts) else model.relations_[:, 1], [object_id])
    require(len(candidates) > 0, f"{object_label} is the only part that the model knows; give another object")
    scores = model.scores_given(X[1:], [object_label] * (X.shape[0] - 1), side="part")[:, candidates]
    best_scores, best_windows = scores.max(0), scores.argmax(0)
    order = np.argsort(-best_scores, kind="stable")[:k]
    return [
        DetectedPart(names[object_id], names[candidates[j]], float(best_scores[j]), items[1 + int(best_windows[j])].id)
        for j in order
    ]


def label_parts(
    annotator: Annotator,
    picture: Path,
    regions: Sequence[str | Path],
    object_label: str | None = None,
    k: int = 10,
    *,
    couples: Sequence[tuple[str, str]] | None = None,
    **context: Unpack[RunOptions],
) -> list[list[DetectedPart]]:
    """Return for each region the k best pairs of labels: of the whole image, and of the region.

    Parameters
    ----------
    picture : Path
    regions : sequence of str or Path
        Regions of the image as `parse_region` takes them, or other images (a `Path`).
    object_label : str or None
        The object, if it is known: only the part is predicted.
    couples : list of (object label, part label) or None
        Only these pairs.

    Raises
    ------
    InputError
        As `find_parts`; or an invalid region, or one smaller than training takes.
    """
    model = require_object_parts(annotator)
    items = [Item(str(picture), picture, ())]
    for region in regions:
        content = region if isinstance(region, Path) else RegionCrop(picture, _parse_visible_region(picture, region))
        items.append(Item(str(region), content, ()))
    X = annotator.rows_of_items(items, **context)
    if object_label is None:
        pairs = model.annotate_pairs(X[np.zeros(len(regions), int)], X[1:], k, couples=couples)
    else:
        parts = None if couples is None else {part for label, part in couples if label == object_label}
        ranked_parts = model.annotate_given(X[1:], [object_label] * len(regions), side="part", k=len(model.vocabulary_))
        pairs = [
            [((object_label, part), score) for part, score in ranking if parts is None or part in parts][:k]
            for ranking in ranked_parts
        ]
    return [
        [DetectedPart(*labels, score, region) for labels, score in ranking]
        for ranking, region in zip(pairs, regions, strict=True)
    ]


def _parse_visible_region(picture: Path, text: str) -> Region:
    region = parse_region(text)
    with suppress(UnreadableItemError):  # extracting its features reports an unreadable image
        image = decode_with_size(picture, size=16)
        columns, rows = region.frame or (image.width, image.height)
        box = region.box.scale(image.width / columns, image.height / rows)
        visible = box.intersect(Box(0, 0, image.width, image.height))
        if visible.area > 0 and min(visible.width, visible.height) < MIN_SIDE:
            size = f"{visible.width:.3g} x {visible.height:.3g} pixels of {picture}"
            raise InputError(f"region {text[:60]!r} shows {size}; give one of {MIN_SIDE} or more a side")
    return region


def draw_parts(picture: Path, parts: Sequence[DetectedPart]) -> bytes:
    """Draw the image as PNG with a box and a name for every part that has a region in it.

    Raises
    ------
    UnreadableItemError
        The image cannot be read.
    """
    decoded = decode_with_size(picture, size=_DRAWING_SIDE)
    image = Image.fromarray(decoded.pixels)
    draw, font = ImageDraw.Draw(image), load_font(_DRAWING_SIDE // 55)
    regions = [(part.label, part.region) for part in parts if isinstance(part.region, str)]
    for number, (label, region_text) in enumerate(regions):
        region = parse_region(region_text)
        columns, rows = region.frame or (decoded.width, decoded.height)
        box = region.box.scale(image.width / columns, image.height / rows)
        colour = _COLOURS[number % len(_COLOURS)]
        draw.rectangle(box, outline=colour, width=3)
        position = box.left + 4, min(box.top + 3 + number % 3 * 18, image.height - 20)
        draw.text(position, label, fill="white", stroke_width=3, stroke_fill=colour, font=font)
    return encode_picture(image, optimize=True)


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
