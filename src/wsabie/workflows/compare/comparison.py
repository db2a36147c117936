"""Results of a comparison: figures of every model, differences to the best baseline, JSON and tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsabie.core.json_conversion import to_json_value
from wsabie.evaluation.bootstrap import Interval, PairedDifference
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.workflows.compare.comparison_task import ComparisonTask

HEADLINE = ("p@1", "p@5", "p@10", "recall@10", "recall@50", "MAP", "AUC", "psib@10")
"""Metrics of a table, as far as they were measured."""


@dataclass(frozen=True)
class ModelEntry:
    """The results of one model.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    baseline : bool
    parameters : dict
        All constructor parameters.
    chosen : dict
        Parameters chosen on the validation rows.
    tried : list of (dict, float)
        Every choice with its validation figure; empty without a choice.
    fit_seconds, tuning_seconds, compile_seconds : float
        The training of this model, the search before it, and compilation (once per machine, then cached).
    predict_ms : float
        Milliseconds per row for the 10 best labels, in a batch of rows.
    n_bytes : int
        All arrays that a prediction needs.
    evaluation : Evaluation
    intervals : dict of str to Interval
        95 % bootstrap intervals of the means.
    against : dict of str to (str, PairedDifference)
        Per metric: the best baseline, and this model minus it on the same resampled rows. Empty for baselines.
    model : object
        The fitted model.
    """

    name: str
    title: str
    baseline: bool
    parameters: dict[str, Any]
    chosen: dict[str, Any]
    tried: list[tuple[dict[str, Any], float]]
    fit_seconds: float
    tuning_seconds: float
    compile_seconds: float
    predict_ms: float
    n_bytes: int
    evaluation: Evaluation
    intervals: dict[str, Interval]
    against: dict[str, tuple[str, PairedDifference]] = field(default_factory=dict)
    model: Any = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        evaluation = self.evaluation.as_dict()
        return {
            "name": self.name,
            "title": self.title,
            "baseline": self.baseline,
            "parameters": self.parameters,
            "chosen": self.chosen,
            "tried": [{"parameters": parameters, "value": value} for parameters, value in self.tried],
            "fit_seconds": self.fit_seconds,
            "tuning_seconds": self.tuning_seconds,
            "compile_seconds": self.compile_seconds,
            "predict_ms_per_row": self.predict_ms,
            "bytes": self.n_bytes,
            "metrics": evaluation["metrics"],
            "intervals": {name: [interval.low, interval.high] for name, interval in self.intervals.items()},
            "against": {
                name: {"baseline": best, **difference._asdict()} for name, (best, difference) in self.against.items()
            },
            "coverage": evaluation["coverage"],
            "rows_tied_at_cut": evaluation["rows_tied_at_cut"],
        }


class ModelOmission(NamedTuple):
    """A model that did not take part, with the reason."""

    name: str
    title: str
    reason: str


class TextTable(NamedTuple):
    """A table of text cells; the first column is a name, the others are figures."""

    headers: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Comparison:
    """All models on the same split.

    Attributes
    ----------
    task : ComparisonTask
    entries : list of ModelEntry
        In the order of the requested models.
    skipped : list of ModelOmission
    metrics : tuple of str
        Metrics with intervals and differences.
    tuned_on : str
        The metric that chose parameters on the validation rows.
    seed : int
        Of the bootstrap.
    versions : dict of str to str
    """

    task: ComparisonTask
    entries: list[ModelEntry]
    skipped: list[ModelOmission]
    metrics: tuple[str, ...]
    tuned_on: str
    seed: int
    versions: dict[str, str]

    def __getitem__(self, name: str) -> ModelEntry:
        return next(entry for entry in self.entries if entry.name == name)

    @property
    def ceilings(self) -> dict[str, float]:
        """Highest p@k and recall@k that the numbers of true labels allow."""
        return self.entries[0].evaluation.ceilings if self.entries else {}

    @property
    def main(self) -> ModelEntry | None:
        """The entry that a report is about: the first that is no baseline, or the first; None without any."""
        return next((entry for entry in self.entries if not entry.baseline), next(iter(self.entries), None))

    def best(self, metric: str, *, baselines: bool = False) -> ModelEntry | None:
        """Return the entry (or baseline) with the highest mean of a metric; None without any."""
        entries = [entry for entry in self.entries if entry.baseline or not baselines]
        return max(entries, key=lambda entry: entry.evaluation.means[metric], default=None)

    def table(self, metrics: Sequence[str] | None = None) -> TextTable:
        """Build a table of metric means, time and memory; the last row is the ceiling."""
        metrics = self.metrics if metrics is None else [name for name in metrics if name in self.metrics]
        headers = ["model", *metrics, "train s", "ms/row", "MB"]
        rows = [self._row(entry, metrics) for entry in self.entries]
        if self.entries:
            ceilings = [self.ceilings.get(metric) for metric in metrics]
            rows.append(
                ["highest possible", *("" if ceiling is None else f"{ceiling:.3f}" for ceiling in ceilings), "", "", ""]
            )
        rows += [[skipped.title, "skipped", *[""] * (len(headers) - 2)] for skipped in self.skipped]
        return TextTable(headers, rows)

    def _row(self, entry: ModelEntry, metrics: Sequence[str]) -> list[str]:
        means = entry.evaluation.means
        figures = [f"{means[metric]:.3f}" for metric in metrics]
        return [
            entry.title,
            *figures,
            f"{entry.fit_seconds:.1f}",
            f"{entry.predict_ms:.2f}",
            f"{entry.n_bytes / 1e6:.2f}",
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the models for JSON (schema 1); None for an undefined figure."""
        values = {
            "schema": 1,
            "data": self.task.facts.as_dict(),
            "ceilings": self.ceilings,
            "tuned_on": self.tuned_on,
            "seed": self.seed,
            "models": [entry.as_dict() for entry in self.entries],
            "skipped": [skipped._asdict() for skipped in self.skipped],
            "versions": self.versions,
        }
        as_json: dict[str, Any] = to_json_value(values)
        return as_json


def format_text_table(table: TextTable, gap: str = "  ") -> str:
    """Format the table as aligned text.

    Examples
    --------
    >>> print(format_text_table(TextTable(["model", "p@1"], [["popularity", "0.029"], ["warp", "0.5"]])))
    model         p@1
    popularity  0.029
    warp          0.5
    """
    lines = [table.headers, *table.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.headers))]
    return "\n".join(_align_line(line, widths, gap) for line in lines)


def _align_line(cells: Sequence[str], widths: Sequence[int], gap: str) -> str:
    name = cells[0].ljust(widths[0])
    figures = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return gap.join([name, *figures]).rstrip()
