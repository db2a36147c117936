"""What a search is asked for and what it found: the plan, the trials, the test figures, the verdict."""

from dataclasses import asdict, dataclass
from typing import Any

from wsabie.base.plain import plain
from wsabie.evaluation.bootstrap import Difference, Interval
from wsabie.models.defaults import Shape
from wsabie.sources.align import Aligned
from wsabie.studies.journal import Trial
from wsabie.studies.search_spaces import Search

METRICS = ("MAP", "p@1", "p@10")
"""What can be tuned for, and what the test rows are asked."""


@dataclass(frozen=True)
class Plan:
    """How to search.

    Attributes
    ----------
    search : Search
    metric : str
        Of the validation rows; chooses the epoch, too.
    trials : int or None
        In all, those of earlier runs included; None has no limit.
    minutes : float or None
        For all trials, those of earlier runs included.
    halving : bool
        Stop trials that fall behind (`RUNGS`), in the manner of successive halving (Li et al. 2020, ASHA).
    all_rows : bool
        Train the model that is saved on the validation rows too, for as many epochs as were the best.
    allow_overlap : bool
        Accept test rows that are training rows too.
    together : int
        Trials that are proposed at once, from those before; what they find does not depend on where they run.
    """

    search: Search
    metric: str = "MAP"
    trials: int | None = 30
    minutes: float | None = None
    halving: bool = True
    all_rows: bool = False
    allow_overlap: bool = False
    together: int = 1


@dataclass(frozen=True)
class Tested:
    """Figures of the test rows, by metric: the tuned model, the defaults, tuned minus defaults on the same rows.

    The last two are empty when training with the defaults failed.
    """

    tuned: dict[str, Interval]
    defaults: dict[str, Interval]
    difference: dict[str, Difference]
    rows: int


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes
    ----------
    plan : Plan
    shape : Shape
        Of the training rows: what the defaults are functions of.
    trials : list of Trial
    best : Trial
    facts : dict
        What is known of the data, as it was saved with the model.
    tested : Tested or None
    unknown : Aligned or None
        The test data in the model's terms.
    """

    plan: Plan
    shape: Shape
    trials: list[Trial]
    best: Trial
    facts: dict[str, Any]
    tested: Tested | None
    unknown: Aligned | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON (schema 1)."""
        found = {
            "schema": 1,
            "metric": self.plan.metric,
            "verdict": self.verdict(),
            "best": self.best.number,
            "search": self.plan.search.as_dict(),
            "trials": [{**asdict(trial), "figure": trial.figure, "best_epoch": trial.epoch} for trial in self.trials],
            "data": self.facts,
            "test": None if self.tested is None else _as_dict(self.tested),
        }
        as_json: dict[str, Any] = plain(found)
        return as_json

    def verdict(self) -> str:
        """Whether tuning was worth it, in a sentence."""
        if self.best.number == 0:
            return f"the defaults were the best of {len(self.trials)} trials"
        metric, first = self.plan.metric, self.trials[0].figure
        before = "training failed" if first is None else f"{first:.4f}"
        told = f"validation {metric} {self.best.figure:.4f}, the defaults' {before}"
        if self.tested is None or not self.tested.defaults:
            return f"{told}; the best of many is too good by chance, and only test rows tell whether it holds"
        tuned, default = self.tested.tuned[metric].mean, self.tested.defaults[metric].mean
        gap = self.tested.difference[metric]
        found = "tuning was worth it" if gap.low > 0 else "the test rows show no difference"
        found = "tuning did harm" if gap.high < 0 else found
        return (
            f"{found}: test {metric} {tuned:.4f}, the defaults' {default:.4f}, {gap.mean:+.4f} "
            f"(95 % interval {gap.low:+.4f} to {gap.high:+.4f})"
        )


def _as_dict(tested: Tested) -> dict[str, Any]:
    sides: dict[str, dict[str, Any]] = {
        "tuned": tested.tuned,
        "defaults": tested.defaults,
        "difference": tested.difference,
    }
    told = {side: {name: value._asdict() for name, value in figures.items()} for side, figures in sides.items()}
    return {"rows": tested.rows, **told}
