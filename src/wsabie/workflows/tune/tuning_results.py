"""Plan and result of a search: the trials, the test figures, the verdict."""

from dataclasses import dataclass
from typing import Any

from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.records import convert_records
from wsabie.evaluation.bootstrap import Interval, PairedDifference
from wsabie.io.alignment import AlignedTable
from wsabie.models.base.hyperparameters import TrainingShape
from wsabie.workflows.tune.search_spaces import ParameterSpace
from wsabie.workflows.tune.trial_study import Trial

METRICS = ("MAP", "p@1", "p@10")
"""Metrics that can be tuned for; the test rows report all of them."""


@dataclass(frozen=True)
class TuningPlan:
    """Settings of a search.

    Attributes
    ----------
    search : ParameterSpace
    metric : str
        Of the validation rows; chooses the epoch, too.
    trials : int or None
        In all, those of earlier runs included; None has no limit.
    minutes : float or None
        For all trials, those of earlier runs included.
    halving : bool
        Stop trials that fall behind, by successive halving (Li et al. 2020, ASHA).
    all_rows : bool
        Train the saved model on the validation rows too, for as many epochs as were best.
    allow_overlap : bool
        Accept test rows that are training rows too.
    group_size : int
        Trials that are proposed at once, from earlier ones; their results do not depend on where they run.
    """

    search: ParameterSpace
    metric: str = "MAP"
    trials: int | None = 30
    minutes: float | None = None
    halving: bool = True
    all_rows: bool = False
    allow_overlap: bool = False
    group_size: int = 1

    def identity(self, data: Any, seed: int, hold_out: float | None, **others: Any) -> JsonObject:
        """Return the facts that must agree for trials to be comparable; limits and threads may change."""
        split = {"seed": seed, "hold_out": hold_out, **others}
        return {"data": data, "metric": self.metric, **self.search.as_dict(), **split, "halving": self.halving}


@dataclass(frozen=True)
class TestFigures:
    """Test figures by metric: the tuned model, the defaults, and tuned minus defaults on the same rows.

    The last two are empty if training with the defaults failed.
    """

    rows: int
    tuned: dict[str, Interval]
    defaults: dict[str, Interval]
    difference: dict[str, PairedDifference]


@dataclass(frozen=True)
class TuningResult:
    """The result of a search.

    Attributes
    ----------
    plan : TuningPlan
    shape : TrainingShape
        Of the training rows: the sizes that defaults depend on.
    trials : list of Trial
    best : Trial
    facts : dict
        Of the data, as saved with the model.
    test_figures : TestFigures or None
    test_table : AlignedTable or None
        The test data in the model's features and labels.
    """

    plan: TuningPlan
    shape: TrainingShape
    trials: list[Trial]
    best: Trial
    facts: JsonObject
    test_figures: TestFigures | None
    test_table: AlignedTable | None

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON (schema 1)."""
        values = {
            "schema": 1,
            "metric": self.plan.metric,
            "verdict": self.verdict(),
            "best": self.best.number,
            "search": self.plan.search.as_dict(),
            "trials": [{**vars(trial), "figure": trial.figure, "best_epoch": trial.epoch} for trial in self.trials],
            "data": self.facts,
            "test": self.test_figures,
        }
        return JsonObject(to_json_value(convert_records(values)))

    def verdict(self) -> str:
        """Return a sentence that says if tuning improved on the defaults."""
        if self.best.number == 0:
            return f"the defaults were the best of {len(self.trials)} trials"
        metric, first = self.plan.metric, self.trials[0].figure
        default_figure = "training failed" if first is None else f"{first:.4f}"
        summary = f"validation {metric} {self.best.figure:.4f}, the defaults' {default_figure}"
        if self.test_figures is None or not self.test_figures.defaults:
            return f"{summary}; the best of many is too good by chance, and only test rows tell whether it holds"
        tuned, default = self.test_figures.tuned[metric].mean, self.test_figures.defaults[metric].mean
        gap = self.test_figures.difference[metric]
        outcome = "tuning was worth it" if gap.low > 0 else "the test rows show no difference"
        outcome = "tuning did harm" if gap.high < 0 else outcome
        return (
            f"{outcome}: test {metric} {tuned:.4f}, the defaults' {default:.4f}, {gap.mean:+.4f} "
            f"(95 % interval {gap.low:+.4f} to {gap.high:+.4f})"
        )
