"""What a trained model of objects and parts makes of pictures that belong together, beside what pictures alone tell."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabie.base.arrays import Bool, Int64
from wsabie.base.errors import InputError
from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import Interval, bootstrap_all
from wsabie.labels.quadruplets import Pair, Quadruplets, count_quadruplets
from wsabie.models.part_labels import PartLabels
from wsabie.models.part_tasks import PartsTest, Values, of_pairs, of_triplets
from wsabie.sources.records import Rows

QUADRUPLETS = 10_000
FEWEST = 100
_LOOKS = 2e10
"""Pairs of labels that all quadruplets together are ranked among where no number is asked for: about a minute."""
KS = (1, 5, 10)
PAIRS, TRIPLET = "pairs", "triplet"


@dataclass(frozen=True)
class Question:
    """What is asked of a model of objects and parts.

    Attributes
    ----------
    n : int
        Quadruplets to draw.
    seed : int
    relations : (m, 2) int64
        Of which quadruplets are drawn.
    told : (m,) bool
        Which of them training used.
    couples : (c, 2) int64 or None
        Pairs of labels are ranked among these alone; None = among all.
    not_among : int
        Relations that are left out because they are none of the couples.
    """

    n: int
    seed: int
    relations: Int64
    told: Bool
    couples: Int64 | None
    not_among: int


def usual_number(model: PartLabels, couples: Int64 | None = None) -> int:
    """Quadruplets to draw where no number is asked for: fewer of many labels, 0 where too few would be left."""
    among = len(model.vocabulary_) ** 2 if couples is None else len(couples)
    n = min(QUADRUPLETS, int(_LOOKS / max(among, 1)))
    return n if n >= FEWEST else 0


def question_to(
    model: PartLabels, n: int, seed: int = 0, relations: Int64 | None = None, couples: Int64 | None = None
) -> Question:
    """A question by label numbers; without relations of those that training used.

    Raises
    ------
    InputError
        No relation is among the couples.
    """
    asked = model.relations_ if relations is None else relations
    width = len(model.vocabulary_)
    codes = [pairs @ [width, 1] for pairs in (asked, model.relations_)]
    among = np.ones(len(asked), bool) if couples is None else np.isin(codes[0], couples @ [width, 1])
    if not among.any():
        raise InputError(f"none of {len(asked)} relations is among the given pairs of labels; give these pairs too")
    told = np.isin(codes[0], codes[1])
    return Question(n, seed, asked[among], told[among], couples, int((~among).sum()))


@dataclass(frozen=True)
class Task:
    """Figures of one task.

    Attributes
    ----------
    name : {"pairs", "triplet"}
        Part-object labelling, or a label beside a given one.
    of : {"all", "told", "not told"}
        Whose relations the quadruplets are of, by what training was told.
    quadruplets, candidates : int
    metrics, alone : dict of str to Interval
        Of the model, and of what it makes of pictures alone.
    certain : bool
        There are several relations, so that the intervals say something.
    """

    name: str
    of: str
    quadruplets: int
    candidates: int
    metrics: dict[str, Interval]
    alone: dict[str, Interval]
    certain: bool

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        about = {"task": self.name, "relations": self.of, "quadruplets": self.quadruplets}
        return {**about, "candidates": self.candidates, **self._told(self.metrics), "alone": self._told(self.alone)}

    def _told(self, found: dict[str, Interval]) -> dict[str, Any]:
        bounds = {name: [i.low, i.high] for name, i in found.items()} if self.certain else {}
        return {"metrics": {name: i.mean for name, i in found.items()}, "intervals": bounds}


@dataclass(frozen=True)
class PartsJudged:
    """What was drawn, and the figures.

    Attributes
    ----------
    question : Question
    possible : int
        Quadruplets that there are.
    without : list of (object label, part label)
        Relations that have no two different pictures.
    tasks : list of Task
        Empty where no relation has two.
    """

    question: Question
    possible: int
    without: list[Pair]
    tasks: list[Task]

    @property
    def used(self) -> int:
        """Relations that quadruplets were drawn of."""
        return len(self.question.relations) - len(self.without)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        asked = self.question
        left_out = {"not_among": asked.not_among, "without_pictures": self.without}
        about = {"drawn": asked.n if self.tasks else 0, "possible": self.possible, "seed": asked.seed}
        told: dict[str, Any] = plain({**about, "relations": self.used, **left_out})
        return {**told, "tasks": [task.as_dict() for task in self.tasks]}


def judge_parts(model: PartLabels, rows: Rows, asked: Question, progress: Progress = SILENT) -> PartsJudged:
    """Draw quadruplets of rows with the model's labels, and rank what is true.

    Parameters
    ----------
    model : PartLabels
    rows : Rows
    asked : Question
    progress : Progress
        Told how many quadruplets are ranked.
    """
    counts = count_quadruplets(rows.Y, asked.relations)
    names = model.vocabulary_.names
    without = [(one, other) for one, other in map(names, asked.relations[counts == 0])]
    if not counts.any():
        return PartsJudged(asked, 0, without, [])
    drawn = Quadruplets(rows.Y, asked.relations[counts > 0]).sample(asked.n, np.random.default_rng([asked.seed, 5]))
    test = PartsTest(drawn, rows.X)
    alone = copy(model)
    alone.label_scores = "none"
    with progress.stage("ranking pairs of labels", 2 * asked.n, "quadruplets") as bar:
        ranked = [_ranked(test, one, asked.couples, bar.advance) for one in (model, alone)]
    told = _were_told(test, asked)
    parts = {"all": np.ones(asked.n, bool), "told": told, "not told": ~told}
    if told.all():
        parts = {"all": parts["all"]}
    groups = np.array(test.relations)
    sizes = _candidates(model, asked)
    tasks = [
        _task(name, of, which, sizes[name], [of_one[name] for of_one in ranked], groups)
        for of, which in parts.items()
        for name in (PAIRS, TRIPLET)
        if which.any()
    ]
    return PartsJudged(asked, int(counts.sum()), without, tasks)


def _ranked(test: PartsTest, model: PartLabels, couples: Int64 | None, tell: Any) -> dict[str, Values]:
    return {PAIRS: of_pairs(test, model, couples, KS, tell), TRIPLET: of_triplets(test, model, KS)}


def _were_told(test: PartsTest, asked: Question) -> Bool:
    """Of each quadruplet, whether training was told of its relation."""
    told = {(one, other) for one, other in asked.relations[asked.told].tolist()}
    labels = zip(test.drawn.object_labels.tolist(), test.drawn.part_labels.tolist(), strict=True)
    return np.array([pair in told for pair in labels], bool)


def _candidates(model: PartLabels, asked: Question) -> dict[str, int]:
    """How many pairs, and how many labels beside a given one, are ranked."""
    n = len(model.vocabulary_)
    others = n if model.same else n - 1
    return {PAIRS: n * others if asked.couples is None else len(asked.couples), TRIPLET: others}


def _task(name: str, of: str, which: Bool, candidates: int, values: list[Values], groups: Any) -> Task:
    """Figures of some quadruplets; of a triplet both pictures count, objects before parts."""
    times = len(values[0]["MAP"]) // len(which)
    rows, relations = np.tile(which, times), np.tile(groups, times)
    shown = [metric for metric in values[0] if metric not in {f"p@{k}" for k in KS if k > 1 and k >= candidates}]
    metrics, alone = (
        bootstrap_all({metric: of_one[metric][rows] for metric in shown}, groups=relations[rows]) for of_one in values
    )
    certain = len(np.unique(relations[rows])) > 1
    return Task(name, of, int(which.sum()), candidates, metrics, alone, certain)
