"""Models of Mesnil et al. 2014, section 6.2, trained alike; validation quadruplets choose settings."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from wsabie.embedding.relation_spaces import PartsSpace
from wsabie.io.records import FeatureTable, count_labels
from wsabie.models.object_parts.ranker import PAIRS, ObjectParts, PairMonitor
from wsabie.models.paper_presets import make_objects_and_parts

PARTS, PAPER_SETTINGS = "parts", "objects-and-parts"
"""Entrants: `ObjectParts` by ranks, and the settings of Mesnil et al. 2014."""

RELATION_WEIGHTS = (0.03, 0.1, 0.3, 1.0)
SCORE_WEIGHTS = (0.1, 0.3, 1.0)
DIM = 50
N_VALIDATION_QUADRUPLETS = 1000
"""Validation quadruplets that choose epochs and settings."""

_VISITS = 1_600_000


class PartTraining(NamedTuple):
    """Settings of a training.

    Attributes
    ----------
    tables : {"shared", "unshared"}
    relation_weight : float
    with_paper_settings : bool
        With the settings of Mesnil et al. 2014.
    """

    tables: str
    relation_weight: float
    with_paper_settings: bool = False


class PairScoring(NamedTuple):
    """Settings of scoring pairs of labels; parameters of `ObjectParts`."""

    label_scores: str
    score_weight: float
    same: bool = True


class ModelCandidate(NamedTuple):
    """A training and a scoring that a row can choose."""

    training: PartTraining
    scoring: PairScoring


@dataclass(frozen=True)
class BestPartModel:
    """A model at the best epoch for one scoring.

    Attributes
    ----------
    model : ObjectParts
    epoch : int
        From 1.
    mean_rank : float
        Of validation quadruplets' labels among all pairs of labels.
    """

    model: ObjectParts
    epoch: int
    mean_rank: float


def list_candidates(entrant: str, tables: str, scored: str, same: bool = True) -> list[ModelCandidate]:
    """Return the candidates of a row: `scored` is IW, I or IO.

    Relations have no effect if tables are not shared and do not score; that is WSABIE. Mesnil et al. 2014 rank all
    pairs, including those of a label with itself (`same`).

    Examples
    --------
    >>> len(list_candidates("parts", "shared", "IW")), len(list_candidates("parts", "unshared", "I"))
    (12, 1)
    """
    label_scores = {"IW": "learned", "I": "none", "IO": "known"}[scored]
    relations_unused = tables == "unshared" and scored != "IW"
    if entrant == PAPER_SETTINGS:
        return [
            ModelCandidate(
                PartTraining(tables, 0.0 if relations_unused else 1.0, True), PairScoring(label_scores, 0.1, same)
            )
        ]
    weights = (0.0,) if relations_unused else RELATION_WEIGHTS
    scores = SCORE_WEIGHTS if scored == "IW" else (1.0,)
    return [
        ModelCandidate(PartTraining(tables, weight), PairScoring(label_scores, score_weight, same))
        for weight in weights
        for score_weight in scores
    ]


def train_part_model(
    training: PartTraining,
    scorings: Iterable[PairScoring],
    sides: tuple[FeatureTable, FeatureTable],
    relations: list[tuple[str, str]],
    parameters: Mapping[str, Any],
    progress: Any,
) -> dict[PairScoring, BestPartModel]:
    """Fit one model, and return its best epoch for each scoring.

    Parameters
    ----------
    training : PartTraining
    scorings : iterable of PairScoring
    sides : (FeatureTable, FeatureTable)
        For training and validation.
    relations : list of (object label, part label)
        Relations of both sides.
    parameters : mapping
        Of `ObjectParts`, in place of its defaults; seed and threads among them.
    progress : Progress
    """
    train, valid = sides
    parameters_of_model = {"dim": DIM, "epochs": choose_epochs(train), "tables": training.tables, **parameters}
    if training.with_paper_settings:
        preset = make_objects_and_parts(
            f"{training.tables} (IW)", relations, **parameters_of_model, relation_weight=training.relation_weight
        )
        parameters_of_model = preset.get_params()
    else:
        parameters_of_model |= {"relations": relations, "relation_weight": training.relation_weight}
    model = _MonitoredParts(**parameters_of_model).with_scorings(scorings)
    model.fit(train.X, train.Y, validation=(valid.X, valid.Y), label_names=train.label_names, progress=progress)
    return model.collect_best()


def choose_epochs(train: FeatureTable) -> int:
    """Return passes over the pairs: about 1.6 million visits, at least 5 passes and at most 20."""
    return int(min(20, max(5, round(_VISITS / max(1, count_labels(train).sum())))))


class _BestSpace(NamedTuple):
    space: PartsSpace
    epoch: int
    figure: float


class _ScoringMonitors:
    """Monitors of one training, one for each scoring; each saves the best space."""

    def __init__(self, monitors: Mapping[PairScoring, PairMonitor]) -> None:
        self.monitors, self.best, self.epoch = monitors, dict[PairScoring, _BestSpace](), 0

    def figures(self, space: PartsSpace) -> dict[str, float]:
        """Return the mean over the scorings."""
        self.epoch += 1
        figures = {scoring: monitor.figures(space)[PAIRS] for scoring, monitor in self.monitors.items()}
        for scoring, figure in figures.items():
            if scoring not in self.best or figure > self.best[scoring].figure:
                self.best[scoring] = _BestSpace(space.copy(), self.epoch, figure)
        return {PAIRS: sum(figures.values()) / len(figures)}


class _MonitoredParts(ObjectParts):
    """Estimator with such monitors; it gives no probabilities."""

    scorings: list[PairScoring]
    watch: _ScoringMonitors

    def with_scorings(self, scorings: Iterable[PairScoring]) -> "_MonitoredParts":
        self.scorings = list(dict.fromkeys(scorings))
        return self

    def collect_best(self) -> dict[PairScoring, BestPartModel]:
        n_other_pairs, best_models = len(self.vocabulary_) ** 2 - 1, {}
        for scoring, best in self.watch.best.items():
            model = self._scoring(scoring)
            model.space_, model.words_ = best.space.items, best.space.words
            best_models[scoring] = BestPartModel(model, best.epoch, 1 + (1 - best.figure) * n_other_pairs)
        return best_models

    def _scoring(self, scoring: PairScoring) -> "_MonitoredParts":
        model = copy(self)
        model.label_scores, model.score_weight, model.same = scoring  # type: ignore[assignment]
        return model

    def _build_monitor(self, X: Any, Y: Any, *arguments: Any, **options: Any) -> Any:
        shared: Any = super()._build_monitor(X, Y, N_VALIDATION_QUADRUPLETS, metric=PAIRS)
        monitors: dict[PairScoring, PairMonitor] = {}
        for scoring in self.scorings:
            monitors[scoring] = copy(shared)
            monitors[scoring].build_index = self._scoring(scoring)._build_pair_index
        self.watch = _ScoringMonitors(monitors)
        return self.watch

    def _fit_calibration(self, monitor: Any) -> None:
        return None
