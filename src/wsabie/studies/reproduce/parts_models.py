"""The models of [P] 6.2, trained alike, and what chooses among their settings: mean ranks of validation quadruplets."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from wsabie.models.pair_monitor import PAIRS, PairMonitor
from wsabie.models.parts import Parts
from wsabie.models.presets import objects_and_parts
from wsabie.sources.records import Rows, label_counts
from wsabie.space.parts import PartsSpace

PARTS, AS_IN_P = "parts", "objects-and-parts"
"""Entrants: `Parts` by ranks, and the settings of [P]."""

RELATION_WEIGHTS = (0.03, 0.1, 0.3, 1.0)
SCORE_WEIGHTS = (0.1, 0.3, 1.0)
DIM = 50
JUDGES = 1000
"""Validation quadruplets that choose epochs and settings."""

_VISITS = 1_600_000


class Training(NamedTuple):
    """What decides a training.

    Attributes
    ----------
    tables : {"shared", "unshared"}
    relation_weight : float
    as_in_p : bool
        With the settings of [P].
    """

    tables: str
    relation_weight: float
    as_in_p: bool = False


class Scoring(NamedTuple):
    """How a trained model scores pairs of labels; parameters of `Parts`."""

    label_scores: str
    score_weight: float
    same: bool = True


class Candidate(NamedTuple):
    """A training and a way to score, which a row chooses among others."""

    training: Training
    scoring: Scoring


@dataclass(frozen=True)
class Kept:
    """A model at the epoch that is best for one way to score.

    Attributes
    ----------
    model : Parts
    epoch : int
        From 1.
    mean_rank : float
        Of validation quadruplets' labels among all pairs of labels.
    """

    model: Parts
    epoch: int
    mean_rank: float


def candidates_of(entrant: str, tables: str, scored: str, same: bool = True) -> list[Candidate]:
    """What a row of [P]'s tables chooses from: `scored` is IW, I or IO.

    Nothing is learned of relations where tables are not shared and do not score; that is WSABIE. [P] ranks all pairs,
    those of a label with itself too (`same`).

    Examples
    --------
    >>> len(candidates_of("parts", "shared", "IW")), len(candidates_of("parts", "unshared", "I"))
    (12, 1)
    """
    label_scores = {"IW": "learned", "I": "none", "IO": "known"}[scored]
    alone = tables == "unshared" and scored != "IW"
    if entrant == AS_IN_P:
        return [Candidate(Training(tables, 0.0 if alone else 1.0, True), Scoring(label_scores, 0.1, same))]
    weights = (0.0,) if alone else RELATION_WEIGHTS
    scores = SCORE_WEIGHTS if scored == "IW" else (1.0,)
    return [Candidate(Training(tables, r), Scoring(label_scores, s, same)) for r in weights for s in scores]


def trained(
    training: Training,
    scorings: Iterable[Scoring],
    sides: tuple[Rows, Rows],
    relations: list[tuple[str, str]],
    parameters: Mapping[str, Any],
    progress: Any,
) -> dict[Scoring, Kept]:
    """Fit one model, and keep its best epoch for each way to score.

    Parameters
    ----------
    training : Training
    scorings : iterable of Scoring
    sides : (Rows, Rows)
        For training and validation.
    relations : list of (object label, part label)
        What both sides are told.
    parameters : mapping
        Of `Parts`, in place of its defaults; seed and threads among them.
    progress : Progress
    """
    train, valid = sides
    own = {"dim": DIM, "epochs": epochs_for(train), "tables": training.tables, **parameters}
    if training.as_in_p:
        made = objects_and_parts(f"{training.tables} (IW)", relations, **own, relation_weight=training.relation_weight)
        own = made.get_params()
    else:
        own |= {"relations": relations, "relation_weight": training.relation_weight}
    model = _Watched(**own).watching(scorings)
    model.fit(train.X, train.Y, validation=(valid.X, valid.Y), label_names=train.label_names, progress=progress)
    return model.kept()


def epochs_for(train: Rows) -> int:
    """Passes over the pairs: about 1.6 million visits, at least 5 passes and at most 20."""
    return int(min(20, max(5, round(_VISITS / max(1, label_counts(train).sum())))))


class _Best(NamedTuple):
    space: PartsSpace
    epoch: int
    figure: float


class _Watch:
    """Monitors of one training, one for each way to score; each keeps the best space."""

    def __init__(self, monitors: Mapping[Scoring, PairMonitor]) -> None:
        self.monitors, self.best, self.epoch = monitors, dict[Scoring, _Best](), 0

    def figures(self, space: PartsSpace) -> dict[str, float]:
        """The mean over the ways to score."""
        self.epoch += 1
        found = {scoring: monitor.figures(space)[PAIRS] for scoring, monitor in self.monitors.items()}
        for scoring, figure in found.items():
            if scoring not in self.best or figure > self.best[scoring].figure:
                self.best[scoring] = _Best(space.copy(), self.epoch, figure)
        return {PAIRS: sum(found.values()) / len(found)}


class _Watched(Parts):
    """The estimator with such monitors; it gives no probabilities."""

    scorings: list[Scoring]
    watch: _Watch

    def watching(self, scorings: Iterable[Scoring]) -> "_Watched":
        self.scorings = list(dict.fromkeys(scorings))
        return self

    def kept(self) -> dict[Scoring, Kept]:
        among, found = len(self.vocabulary_) ** 2 - 1, {}
        for scoring, best in self.watch.best.items():
            model = self._scoring(scoring)
            model.space_, model.words_ = best.space.things, best.space.words
            found[scoring] = Kept(model, best.epoch, 1 + (1 - best.figure) * among)
        return found

    def _scoring(self, scoring: Scoring) -> "_Watched":
        model = copy(self)
        model.label_scores, model.score_weight, model.same = scoring  # type: ignore[assignment]
        return model

    def _monitor(self, X: Any, Y: Any, threads: int, *given: Any, **named: Any) -> Any:
        shared: Any = super()._monitor(X, Y, threads, JUDGES, metric=PAIRS)
        monitors: dict[Scoring, PairMonitor] = {}
        for scoring in self.scorings:
            monitors[scoring] = copy(shared)
            monitors[scoring].pairs_of = self._scoring(scoring)._pairs_in
        self.watch = _Watch(monitors)
        return self.watch

    def _calibrated(self, monitor: Any) -> None:
        return None
