"""Results of a comparison of methods, relation by relation: figures, tables, charts, a page, JSON."""

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from wsabie.core.json_conversion import to_json_value
from wsabie.evaluation.bootstrap import Interval, PairedDifference
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.workflows.charts.chart_files import COLOURS, ChartSpec
from wsabie.workflows.charts.svg_charts import ChartAxis, ChartSeries
from wsabie.workflows.compare.comparison import (
    ModelOmission,
    TextTable,
    describe_machine,
    format_markdown_table,
    list_bounds,
)

MADE_BY = "Made by `wsabie compare`."
"""Last line of the page, by which a later run recognises it."""
METRICS = ("p@1", "p@5", "p@10", "recall@10", "MAP")
_MAX_CHART_K = 10
"""Largest k of the chart."""


@dataclass(frozen=True)
class RelationMethod:
    """A method that finds the targets of a relation.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    evaluation : Evaluation
    fit_seconds : float or None
        None where nothing is trained.
    intervals : dict of str to Interval
        95 % bootstrap intervals of the means.
    differences : dict of str to PairedDifference
        This method minus the first one, on the same resampled queries.
    """

    name: str
    title: str
    evaluation: Evaluation
    fit_seconds: float | None = None
    intervals: dict[str, Interval] = field(default_factory=dict)
    differences: dict[str, PairedDifference] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "fit_seconds": self.fit_seconds,
            "metrics": self.evaluation.means,
            "intervals": list_bounds(self.intervals),
            "differences": {metric: gap._asdict() for metric, gap in self.differences.items()},
        }


@dataclass(frozen=True)
class RelationFigures:
    """All methods on the same queries and candidates.

    Attributes
    ----------
    name, query, target : str
    methods : list of RelationMethod
    skipped : list of ModelOmission
        Models that did not take part, with the reason.
    """

    name: str
    query: str
    target: str
    methods: list[RelationMethod]
    skipped: list[ModelOmission]

    @property
    def title(self) -> str:
        evaluation = self.methods[0].evaluation
        queries = f"{evaluation.n_rows:,} {'query' if evaluation.n_rows == 1 else 'queries'}"
        return f"{self.name} ({self.query} to {self.target}): {queries}, {evaluation.n_labels:,} candidates"

    @property
    def metrics(self) -> list[str]:
        """Metrics that can differ between methods; recall over all candidates is 1 for every method."""
        n_candidates = self.methods[0].evaluation.n_labels
        return [name for name in METRICS if name == "p@1" or int(name.partition("@")[2] or 0) < n_candidates]

    def table(self) -> TextTable:
        """Build the table of means and of the MAP difference to the first row with its interval."""
        rows = []
        for method in self.methods:
            figures = [f"{method.intervals[metric].mean:.3f}" for metric in self.metrics]
            gap = method.differences.get("MAP")
            gap_text = "" if gap is None else f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
            seconds = "" if method.fit_seconds is None else f"{method.fit_seconds:.1f}"
            rows.append([method.title, *figures, gap_text, seconds])
        headers = ["method", *self.metrics, "MAP minus first row", "train s"]
        return TextTable(headers, rows).add_omissions(self.skipped)

    def chart(self) -> ChartSpec:
        """Build the chart of p@k of every method against k."""
        ks = [k for k in self.methods[0].evaluation.ks if k <= min(_MAX_CHART_K, self.methods[0].evaluation.n_labels)]
        series = [
            ChartSeries(method.title, ks, [method.evaluation.means[f"p@{k}"] for k in ks], style=i % len(COLOURS))
            for i, method in enumerate(self.methods)
        ]
        return ChartSpec(self.name, series, ChartAxis("k"), ChartAxis("p@k", low=0.0))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        evaluation = self.methods[0].evaluation
        return {
            "query": self.query,
            "target": self.target,
            "queries": evaluation.n_rows,
            "candidates": evaluation.n_labels,
            "methods": [method.as_dict() for method in self.methods],
            "skipped": [skipped._asdict() for skipped in self.skipped],
        }


@dataclass(frozen=True)
class SpaceComparison:
    """The comparisons of all relations.

    Attributes
    ----------
    relations : list of RelationFigures
    facts : dict
        Of the data and the spaces, JSON-able.
    seed : int
    versions : dict of str to str
    """

    relations: list[RelationFigures]
    facts: dict[str, Any]
    seed: int
    versions: dict[str, str]

    def table(self) -> TextTable:
        """Build a table with a line per figure: its interval, and its difference to the first method."""
        rows = []
        for relation in self.relations:
            for method in relation.methods:
                for metric, interval in method.intervals.items():
                    gap = method.differences.get(metric, ())
                    cells = [f"{number:.6f}" for number in (*interval, *gap[:3])]
                    rows.append([relation.name, method.name, metric, *cells, *[""] * (6 - len(cells))])
        figures = ["value", "low", "high", "difference", "difference_low", "difference_high"]
        return TextTable(["relation", "method", "metric", *figures], rows)

    def charts(self) -> list[ChartSpec]:
        """Build the p@k charts of all relations."""
        return [relation.chart() for relation in self.relations if len(relation.methods[0].evaluation.ks) > 1]

    def page(self, command: str) -> str:
        """Build a Markdown page of data, settings and tables."""
        side_counts = ", ".join(
            f"{name} {sides['train']:,} / {sides['valid']:,} / {sides['test']:,}"
            for name, sides in self.facts["entities"].items()
        )
        packages = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        use = (
            ", which chooses the epoch."
            if self.facts["test"]
            else "; one half chooses the epoch, the other is the test."
        )
        sizes = f" Things for training / validation / test: {side_counts}." if side_counts else ""
        parts = [
            "# Comparison of methods, relation by relation",
            f"`{command}`",
            f"A share of {self.facts['hold_out']:g} is held out{use}{sizes}",
            f"Run on {date.today().isoformat()} with {packages}; {describe_machine()}, seed {self.seed}.",
            "![figure](figure.svg)",
        ]
        for relation in self.relations:
            parts += [f"## {relation.title}", format_markdown_table(relation.table())]
            parts += [f"{skipped.title}: {skipped.reason}" for skipped in relation.skipped]
        return "\n\n".join([*parts, MADE_BY]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON (schema 1); None where a figure is not defined."""
        values: dict[str, Any] = to_json_value(
            {
                "schema": 1,
                **self.facts,
                "seed": self.seed,
                "relations": {relation.name: relation.as_dict() for relation in self.relations},
                "versions": self.versions,
            }
        )
        return values
