"""What a comparison of methods for the relations of a declaration found: figures, tables, charts, a page, JSON."""

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from wsabie.base.plain import plain
from wsabie.evaluation.bootstrap import Difference, Interval
from wsabie.evaluation.evaluate import Evaluation
from wsabie.studies.charts import Series
from wsabie.studies.comparison import Skipped, Table
from wsabie.studies.html.svg import Axis
from wsabie.studies.reproduce.drawing import COLOURS, Chart
from wsabie.studies.results_folder import machine, markdown_table

MADE_BY = "Made by `wsabie compare`."
"""How the page ends, so that it is known again."""
METRICS = ("p@1", "p@5", "p@10", "recall@10", "MAP")
_LONGEST = 10


@dataclass(frozen=True)
class Method:
    """A way to find the things of a relation.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    evaluation : Evaluation
    fit_seconds : float or None
        None where nothing is trained.
    intervals : dict of str to Interval
        95 % bootstrap intervals of the means.
    against : dict of str to Difference
        This method minus the first one, on the same resampled queries.
    """

    name: str
    title: str
    evaluation: Evaluation
    fit_seconds: float | None = None
    intervals: dict[str, Interval] = field(default_factory=dict)
    against: dict[str, Difference] = field(default_factory=dict)


@dataclass(frozen=True)
class OneRelation:
    """All methods on the same queries and candidates.

    Attributes
    ----------
    name, query, target : str
    methods : list of Method
    skipped : list of Skipped
        Models that did not take part, and why.
    """

    name: str
    query: str
    target: str
    methods: list[Method]
    skipped: list[Skipped]

    @property
    def title(self) -> str:
        found = self.methods[0].evaluation
        queries = f"{found.n_rows:,} {'query' if found.n_rows == 1 else 'queries'}"
        return f"{self.name} ({self.query} to {self.target}): {queries}, {found.n_labels:,} candidates"

    @property
    def metrics(self) -> list[str]:
        """Those that say something: a list as long as that of all candidates holds the same whoever made it."""
        n = self.methods[0].evaluation.n_labels
        return [name for name in METRICS if name == "p@1" or int(name.partition("@")[2] or 0) < n]

    def table(self) -> Table:
        """Means, and the difference to the first row by MAP with its interval."""
        rows = []
        for one in self.methods:
            figures = [f"{one.intervals[metric].mean:.3f}" for metric in self.metrics]
            gap = one.against.get("MAP")
            told = "" if gap is None else f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"
            rows.append([one.title, *figures, told, "" if one.fit_seconds is None else f"{one.fit_seconds:.1f}"])
        rows += [[one.title, "skipped", *[""] * (len(self.metrics) + 1)] for one in self.skipped]
        return Table(["method", *self.metrics, "MAP minus first row", "train s"], rows)

    def chart(self) -> Chart:
        """p@k of every method against k."""
        ks = [k for k in self.methods[0].evaluation.ks if k <= min(_LONGEST, self.methods[0].evaluation.n_labels)]
        series = [
            Series(one.title, ks, [one.evaluation.means[f"p@{k}"] for k in ks], style=i % len(COLOURS))
            for i, one in enumerate(self.methods)
        ]
        return Chart(self.name, series, Axis("k"), Axis("p@k", low=0.0))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = self.methods[0].evaluation
        return {
            "query": self.query,
            "target": self.target,
            "queries": found.n_rows,
            "candidates": found.n_labels,
            "methods": [
                {
                    "name": one.name,
                    "title": one.title,
                    "fit_seconds": one.fit_seconds,
                    "metrics": one.evaluation.means,
                    "intervals": {metric: [i.low, i.high] for metric, i in one.intervals.items()},
                    "against_first": {metric: gap._asdict() for metric, gap in one.against.items()},
                }
                for one in self.methods
            ],
            "skipped": [one._asdict() for one in self.skipped],
        }


@dataclass(frozen=True)
class SpaceComparison:
    """The comparisons of all relations.

    Attributes
    ----------
    relations : list of OneRelation
    facts : dict
        Of the data and the spaces, JSON-able.
    seed : int
    versions : dict of str to str
    """

    relations: list[OneRelation]
    facts: dict[str, Any]
    seed: int
    versions: dict[str, str]

    def table(self) -> Table:
        """Every figure with its interval, and every difference to the first method, a line for each."""
        rows = []
        for relation in self.relations:
            for one in relation.methods:
                for metric, found in one.intervals.items():
                    gap = one.against.get(metric)
                    numbers = [*found, *([] if gap is None else gap[:3])]
                    cells = [f"{number:.6f}" for number in numbers]
                    rows.append([relation.name, one.name, metric, *cells, *[""] * (6 - len(cells))])
        heads = ["relation", "method", "metric", "value", "low", "high", "minus_first", "minus_low", "minus_high"]
        return Table(heads, rows)

    def charts(self) -> list[Chart]:
        """p@k of every relation."""
        return [relation.chart() for relation in self.relations if len(relation.methods[0].evaluation.ks) > 1]

    def page(self, command: str) -> str:
        """What was compared on what, and the tables, in Markdown."""
        told = ", ".join(
            f"{name} {sides['train']:,} / {sides['valid']:,} / {sides['test']:,}"
            for name, sides in self.facts["things"].items()
        )
        known = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        parts = [
            "# Comparison of methods, relation by relation",
            f"`{command}`",
            f"A share of {self.facts['hold_out']:g} is held out"
            + (
                ", which chooses the epoch."
                if self.facts["test"]
                else "; one half chooses the epoch, the other is the test."
            )
            + (f" Things for training / validation / test: {told}." if told else ""),
            f"Run on {date.today().isoformat()} with {known}; {machine()}, seed {self.seed}.",
            "![figure](figure.svg)",
        ]
        for one in self.relations:
            parts += [f"## {one.title}", markdown_table(one.table())]
            parts += [f"{skipped.title}: {skipped.reason}" for skipped in one.skipped]
        return "\n\n".join([*parts, MADE_BY]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Everything for JSON (schema 1); None where a figure is not defined."""
        found: dict[str, Any] = plain(
            {
                "schema": 1,
                **self.facts,
                "seed": self.seed,
                "relations": {one.name: one.as_dict() for one in self.relations},
                "versions": self.versions,
            }
        )
        return found
