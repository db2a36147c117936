"""A comparison of models: its task, the figures of every model, tables, JSON, and a folder of results."""

import csv
import io
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.machine import count_available_cores
from wsabie.evaluation.bootstrap import Interval, PairedDifference
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.evaluation.splits import check_overlap
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.records import FeatureTable, count_labels
from wsabie.storage.atomic_files import check_writable, write_bytes, write_text
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.label_similarity import LabelSimilarity
from wsabie.workflows.charts.chart_files import render_png, render_svg
from wsabie.workflows.charts.svg_charts import LineChart

HEADLINE = ("p@1", "p@5", "p@10", "recall@10", "recall@50", "MAP", "AUC", "psib@10")
"""Metrics of a table, as far as they were measured."""
RESULT_FILES = ("table.csv", "figure.svg", "figure.png", "about.md")
"""Files of a results folder."""
_MAX_FIGURE_LENGTH = 24
"""Longest cell of a figure; columns with longer cells align left."""

_JSON_FIELDS = ("name", "title", "baseline", "parameters", "option", "fit_seconds", "tuning_seconds", "compile_seconds")
"""Fields of a `ModelEntry` that JSON has as they are."""

SiblingsOf = Callable[[Sequence[str]], LabelSimilarity]
"""Function that returns the similarities of labels, by their names."""


@dataclass(frozen=True)
class ComparisonTask:
    """One split with the same label columns on every side.

    Attributes
    ----------
    train, test : FeatureTable
    valid : FeatureTable or None
        Chooses parameters and epochs; never trained on.
    counts : (n_labels,) int64
        Training rows of each label.
    facts : TaskFacts
    similar : LabelSimilarity or None
        Sibling labels, where they are known.
    allow_overlap : bool
        Test rows may be training rows too.
    """

    train: FeatureTable
    valid: FeatureTable | None
    test: FeatureTable
    counts: Int64
    facts: "TaskFacts"
    similar: LabelSimilarity | None = None
    allow_overlap: bool = False


@dataclass(frozen=True)
class TaskFacts:
    """Counts that accompany every figure.

    Attributes
    ----------
    train_rows, valid_rows, test_rows, features : int
    labels : int
        Labels with at least `min_rows` training rows: the candidates of every model.
    labels_dropped : int
        Labels of the data with fewer.
    min_rows : int
    train_pairs : int
        (row, label) pairs to learn from.
    test_pairs, test_pairs_known : int
        Pairs of the test rows, and those whose label is among `labels`.
    test_rows_unlabelled : int
        Test rows without any of these labels; they cannot be evaluated and do not count.
    fingerprint : dict of str to str
        Fingerprint of each side, before labels are dropped.
    """

    train_rows: int
    valid_rows: int
    test_rows: int
    features: int
    labels: int
    labels_dropped: int
    min_rows: int
    train_pairs: int
    test_pairs: int
    test_pairs_known: int
    test_rows_unlabelled: int
    fingerprint: dict[str, str]

    @property
    def coverage(self) -> float:
        """Fraction of the test pairs whose label a model can know."""
        return self.test_pairs_known / max(self.test_pairs, 1)

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON."""
        return {**asdict(self), "coverage": self.coverage}


def build_comparison_task(
    train: FeatureTable,
    valid: FeatureTable | None,
    test: FeatureTable,
    *,
    min_rows: int = 1,
    allow_overlap: bool = False,
    unknown_pairs: int = 0,
    similar: SiblingsOf | Hierarchy | None = None,
) -> ComparisonTask:
    """Select the labels with at least `min_rows` training rows, and count the dropped ones.

    Parameters
    ----------
    train, test : FeatureTable
    valid : FeatureTable or None
        Chooses parameters and epochs; without it the first option of each model is used.
    min_rows : int
        Labels with fewer training rows are left out, and counted.
    allow_overlap : bool
        Accept test rows that are training rows too.
    unknown_pairs : int
        Test pairs that alignment dropped because the training data lack their label; they count against coverage.
    similar : Hierarchy or callable, or None
        Sibling labels, for the sibling precision: label names -> their similarities (`LabelSimilarity`). Called with
        the names of the selected labels.

    Raises
    ------
    InputError
        The sides differ in features or label names, share rows (unless `allow_overlap`), or no label is left.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> train = FeatureTable(np.ones((1, 2)), csr_matrix([[1, 0]]), ["sky", "sea"], ["a"])
    >>> test = FeatureTable(np.ones((1, 2)), csr_matrix([[1, 1]]), ["sky", "sea"], ["b"])
    >>> task = build_comparison_task(train, None, test)
    >>> task.test.label_names, task.facts.coverage
    (['sky'], 0.5)
    """
    sides = {"train": train, "test": test} | ({} if valid is None else {"valid": valid})
    for name, rows in sides.items():
        _check_same_columns(train, rows, name)
        if rows is not train and not allow_overlap:
            check_overlap(train.ids, train.X, rows.ids, rows.X)
    counts = count_labels(train)
    label_ids = np.flatnonzero(counts >= max(min_rows, 1))
    require(len(label_ids) > 0, f"no label has {max(min_rows, 1)} training rows; give more rows, or lower the limit")
    selected = {name: rows.with_labels(label_ids) for name, rows in sides.items()}
    if valid is not None and not count_labels(selected["valid"]).any():
        del selected["valid"]  # rows without a known label cannot choose an epoch
    facts = TaskFacts(
        train_rows=len(train),
        valid_rows=len(selected["valid"]) if "valid" in selected else 0,
        test_rows=len(test),
        features=int(train.X.shape[1]),
        labels=len(label_ids),
        labels_dropped=len(counts) - len(label_ids),
        min_rows=max(min_rows, 1),
        train_pairs=int(counts[label_ids].sum()),
        test_pairs=int(count_labels(test).sum()) + unknown_pairs,
        test_pairs_known=int(count_labels(selected["test"]).sum()),
        test_rows_unlabelled=int(((selected["test"].Y > 0).sum(axis=1) == 0).sum()),
        fingerprint={name: compute_fingerprint(rows) for name, rows in sides.items()},
    )
    if isinstance(similar, Hierarchy):
        similar = similar.find_siblings
    similarity = None if similar is None else similar(selected["train"].label_names)
    sides_and_counts = selected["train"], selected.get("valid"), selected["test"], counts[label_ids]
    return ComparisonTask(*sides_and_counts, facts, similarity, allow_overlap)


def _check_same_columns(train: FeatureTable, rows: FeatureTable, name: str) -> None:
    if rows.X.shape[1] != train.X.shape[1]:
        fact = f"the {name} rows have {rows.X.shape[1]} features and the training rows {train.X.shape[1]}"
        raise InputError(f"{fact}; extract the features of both with the same settings")
    if rows.label_names != train.label_names:
        fact = f"the {name} rows and the training rows number their labels differently"
        raise InputError(f"{fact}; read them as one collection and split it, or align them first")


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
