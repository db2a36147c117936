"""What a comparison found: figures of every model, differences to the best baseline, as JSON and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsabie.base.plain import plain
from wsabie.evaluation.bootstrap import Difference, Interval
from wsabie.evaluation.evaluate import Evaluation
from wsabie.studies.task import Task

HEADLINE = ("p@1", "p@5", "p@10", "recall@10", "recall@50", "MAP", "AUC", "psib@10")
"""Metrics that a table shows, as far as they were measured."""


@dataclass(frozen=True)
class Entry:
    """One model that took part.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    baseline : bool
    parameters : dict
        All constructor parameters.
    chosen : dict
        Those chosen on the validation rows.
    tried : list of (dict, float)
        Every choice with its figure there; empty when there was nothing to choose.
    fit_seconds, tuning_seconds, compile_seconds : float
        The training of this model, the search before it, and compilation (once per machine, then cached).
    predict_ms : float
        Milliseconds per row for the 10 best labels, rows given together.
    n_bytes : int
        Every array that a prediction needs.
    evaluation : Evaluation
    intervals : dict of str to Interval
        95 % bootstrap intervals of the means.
    against : dict of str to (str, Difference)
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
    against: dict[str, tuple[str, Difference]] = field(default_factory=dict)
    model: Any = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = self.evaluation.as_dict()
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
            "metrics": found["metrics"],
            "intervals": {name: [i.low, i.high] for name, i in self.intervals.items()},
            "against": {
                name: {"baseline": best, **difference._asdict()} for name, (best, difference) in self.against.items()
            },
            "coverage": found["coverage"],
            "rows_tied_at_cut": found["rows_tied_at_cut"],
        }


class Skipped(NamedTuple):
    """A model that did not take part, and why."""

    name: str
    title: str
    reason: str


class Table(NamedTuple):
    """Cells as text, for any face to draw; the first column is a name, the rest are figures."""

    headers: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Comparison:
    """Every model on the same split.

    Attributes
    ----------
    task : Task
    entries : list of Entry
        In the order in which the models were given.
    skipped : list of Skipped
    metrics : tuple of str
        What intervals and differences were computed of.
    tuned_on : str
        The metric that chose parameters on the validation rows.
    seed : int
        Of the bootstrap.
    versions : dict of str to str
    """

    task: Task
    entries: list[Entry]
    skipped: list[Skipped]
    metrics: tuple[str, ...]
    tuned_on: str
    seed: int
    versions: dict[str, str]

    def __getitem__(self, name: str) -> Entry:
        return next(entry for entry in self.entries if entry.name == name)

    @property
    def ceilings(self) -> dict[str, float]:
        """The highest p@k and recall@k that the numbers of true labels allow."""
        return self.entries[0].evaluation.ceilings if self.entries else {}

    @property
    def main(self) -> Entry | None:
        """The entry that a report is about: the first that is no baseline, or the first; None without any."""
        return next((entry for entry in self.entries if not entry.baseline), next(iter(self.entries), None))

    def best(self, metric: str, *, baselines: bool = False) -> Entry | None:
        """The entry with the highest mean of a metric (among baselines only, if asked); None without any."""
        entries = [entry for entry in self.entries if entry.baseline or not baselines]
        return max(entries, key=lambda entry: entry.evaluation.means[metric], default=None)

    def table(self, metrics: Sequence[str] | None = None) -> Table:
        """Means of the headline metrics (or of some of them), time and memory; the last row is the ceiling."""
        metrics = self.metrics if metrics is None else [name for name in metrics if name in self.metrics]
        headers = ["model", *metrics, "train s", "ms/row", "MB"]
        rows = [self._row(entry, metrics) for entry in self.entries]
        if self.entries:
            top = [self.ceilings.get(metric) for metric in metrics]
            rows.append(["highest possible", *("" if v is None else f"{v:.3f}" for v in top), "", "", ""])
        rows += [[skipped.title, "skipped", *[""] * (len(headers) - 2)] for skipped in self.skipped]
        return Table(headers, rows)

    def _row(self, entry: Entry, metrics: Sequence[str]) -> list[str]:
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
        """Everything but the models, for JSON (schema 1); None where a figure is not defined."""
        found = {
            "schema": 1,
            "data": self.task.facts.as_dict(),
            "ceilings": self.ceilings,
            "tuned_on": self.tuned_on,
            "seed": self.seed,
            "models": [entry.as_dict() for entry in self.entries],
            "skipped": [skipped._asdict() for skipped in self.skipped],
            "versions": self.versions,
        }
        as_json: dict[str, Any] = plain(found)
        return as_json


def text_table(table: Table, gap: str = "  ") -> str:
    """The table as aligned text.

    Examples
    --------
    >>> print(text_table(Table(["model", "p@1"], [["popularity", "0.029"], ["warp", "0.5"]])))
    model         p@1
    popularity  0.029
    warp          0.5
    """
    lines = [table.headers, *table.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.headers))]
    return "\n".join(_aligned(line, widths, gap) for line in lines)


def _aligned(cells: Sequence[str], widths: Sequence[int], gap: str) -> str:
    first = cells[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return gap.join([first, *rest]).rstrip()
