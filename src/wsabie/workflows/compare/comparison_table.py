"""Results of a comparison: the figures of every model as table and JSON, and a folder for them."""

import csv
import io
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.machine import count_available_cores
from wsabie.evaluation.bootstrap import Interval, PairedDifference
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.storage.atomic_files import check_writable, write_bytes, write_text
from wsabie.workflows.charts.chart_files import render_png, render_svg
from wsabie.workflows.charts.svg_charts import LineChart
from wsabie.workflows.compare.comparison_task import ComparisonTask

HEADLINE = ("p@1", "p@5", "p@10", "recall@10", "recall@50", "MAP", "AUC", "psib@10")
"""Metrics of a table, as far as they were measured."""
RESULT_FILES = ("table.csv", "figure.svg", "figure.png", "about.md")
"""Files of a results folder."""
_MAX_FIGURE_LENGTH = 24
"""Longest cell of a figure; columns with longer cells align left."""

_JSON_FIELDS = ("name", "title", "baseline", "parameters", "option", "fit_seconds", "tuning_seconds", "compile_seconds")
"""Fields of a `ModelEntry` that JSON has as they are."""


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
    option : dict
        Parameters chosen on the validation rows.
    option_figures : list of (dict, float)
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
    differences : dict of str to (str, PairedDifference)
        Per metric: the best baseline, and this model minus it on the same resampled rows. Empty for baselines.
    model : object
        The fitted model.
    """

    name: str
    title: str
    baseline: bool
    parameters: JsonObject
    option: JsonObject
    option_figures: list[tuple[JsonObject, float]]
    fit_seconds: float
    tuning_seconds: float
    compile_seconds: float
    predict_ms: float
    n_bytes: int
    evaluation: Evaluation
    intervals: dict[str, Interval]
    differences: dict[str, tuple[str, PairedDifference]] = field(default_factory=dict)
    model: Any = field(default=None, repr=False, compare=False)

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON."""
        evaluation = self.evaluation.as_dict()
        differences = {name: {"baseline": best, **gap._asdict()} for name, (best, gap) in self.differences.items()}
        return {
            **{name: getattr(self, name) for name in _JSON_FIELDS},
            "option_figures": [{"parameters": option, "value": value} for option, value in self.option_figures],
            "predict_ms_per_row": self.predict_ms,
            "bytes": self.n_bytes,
            "intervals": list_bounds(self.intervals),
            "differences": differences,
            **{name: evaluation[name] for name in ("metrics", "coverage", "rows_tied_at_cut")},
        }


def list_bounds(intervals: Mapping[str, Interval]) -> dict[str, list[float]]:
    """Return the lower and upper bounds of intervals, for JSON."""
    return {name: [interval.low, interval.high] for name, interval in intervals.items()}


class ModelOmission(NamedTuple):
    """A model that did not take part, with the reason."""

    name: str
    title: str
    reason: str


class TextTable(NamedTuple):
    """A table of text cells; the first column is a name, the others are figures."""

    headers: list[str]
    rows: list[list[str]]

    def add_omissions(self, skipped: Sequence[ModelOmission]) -> "TextTable":
        """Return the table with a row for each model that did not take part."""
        blanks = [""] * (len(self.headers) - 2)
        return self._replace(rows=self.rows + [[omission.title, "skipped", *blanks] for omission in skipped])


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
        Seed of the bootstrap.
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
        """The entry that a report is about: the first that is not a baseline, or the first; None without any."""
        return next((entry for entry in self.entries if not entry.baseline), next(iter(self.entries), None))

    def best(self, metric: str, *, baselines: bool = False) -> ModelEntry | None:
        """Return the entry (or baseline) with the highest mean of a metric; None without any."""
        entries = [entry for entry in self.entries if entry.baseline or not baselines]
        return max(entries, key=lambda entry: entry.evaluation.means[metric], default=None)

    def table(self, metrics: Sequence[str] | None = None) -> TextTable:
        """Build a table of metric means, time and memory; the last row is the ceiling."""
        metrics = self.metrics if metrics is None else [name for name in metrics if name in self.metrics]
        rows = []
        for entry in self.entries:
            figures = [f"{entry.evaluation.means[metric]:.3f}" for metric in metrics]
            costs = [f"{entry.fit_seconds:.1f}", f"{entry.predict_ms:.2f}", f"{entry.n_bytes / 1e6:.2f}"]
            rows.append([entry.title, *figures, *costs])
        if self.entries:
            ceilings = [f"{self.ceilings[metric]:.3f}" if metric in self.ceilings else "" for metric in metrics]
            rows.append(["highest possible", *ceilings, "", "", ""])
        return TextTable(["model", *metrics, "train s", "ms/row", "MB"], rows).add_omissions(self.skipped)

    def as_dict(self) -> JsonObject:
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
        return JsonObject(to_json_value(values))


class ComparisonInterrupt(KeyboardInterrupt):
    """Ctrl-C in a comparison.

    Parameters
    ----------
    finished : Comparison or list of RelationFigures
        Results of the finished models.
    """

    def __init__(self, finished: Any) -> None:
        super().__init__()
        self.finished = finished


def write_results(
    folder: Path, table: TextTable, charts: Sequence[LineChart], page: str, image_sheet: bytes | None = None
) -> list[Path]:
    """Write table.csv, about.md, and figure.svg and figure.png if there are charts; return the paths.

    `image_sheet` is a figure.png of images.
    """
    files: dict[str, str | bytes] = {"table.csv": format_csv(table.headers, table.rows)}
    if image_sheet is not None:
        files["figure.png"] = image_sheet
    if charts:
        files["figure.svg"] = render_svg(charts)
        files["figure.png"] = render_png(charts)
    files["about.md"] = page
    for name, content in files.items():
        if isinstance(content, bytes):
            write_bytes(folder / name, content)
        else:
            write_text(folder / name, content)
    return [folder / name for name in files]


def require_writable_folder(folder: Path, made_by: str) -> None:
    """Refuse a results folder that cannot be written, or that holds other files with these names.

    Parameters
    ----------
    folder : Path
    made_by : str
        Last words of the page of an earlier run.

    Raises
    ------
    InputError
        The message names the file.
    """
    check_writable(folder / RESULT_FILES[0])
    existing_files = [folder / name for name in RESULT_FILES if (folder / name).exists()]
    page = folder / "about.md"
    is_earlier_run = page.is_file() and page.read_text(encoding="utf-8", errors="replace").rstrip().endswith(made_by)
    if existing_files and not is_earlier_run:
        fact = "it was not written by an earlier run and would be lost"
        raise InputError(f"cannot write {existing_files[0]}: {fact}; choose another folder")


def format_markdown_table(table: TextTable) -> str:
    """Format the table as Markdown, with figures aligned right."""
    texts = [max(map(len, column), default=0) > _MAX_FIGURE_LENGTH for column in zip(*table.rows, strict=True)]
    rule = ["---" if i == 0 or text else "---:" for i, text in enumerate(texts or [False] * len(table.headers))]
    lines = [table.headers, rule, *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def describe_machine() -> str:
    """Return processor, cores and system in a line."""
    cpu_file = Path("/proc/cpuinfo")
    lines = cpu_file.read_text(encoding="utf-8", errors="replace").splitlines() if cpu_file.exists() else []
    model_names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = model_names[0] if model_names else platform.processor() or platform.machine()
    return f"{processor}, {count_available_cores()} cores, {platform.system()}"


def format_csv(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([headers, *rows])
    return file.getvalue()
