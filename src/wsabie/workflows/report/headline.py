"""The result of a report in one sentence that tells chance from a difference, and its main figures."""

from math import isfinite
from typing import NamedTuple

from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.workflows.compare.comparison import Comparison, ModelEntry
from wsabie.workflows.report.number_format import (
    format_bytes,
    format_difference,
    format_duration,
    format_metric,
    format_milliseconds,
    singularise,
)
from wsabie.workflows.report.report_input import ReportInput

_MIN_LABELS_PER_ROW = 1.1
"""Mean number of true labels above which a list says more than the first label."""


class ModelVerdict(NamedTuple):
    """The difference of the main model to the best baseline in one metric."""

    metric: str
    baseline: ModelEntry
    difference: PairedDifference

    @property
    def relative(self) -> float:
        """Difference / the baseline's figure; infinite if that is 0."""
        base = self.baseline.evaluation.means[self.metric]
        return self.difference.mean / base if base else float("inf")

    @property
    def words(self) -> str:
        """Meaning of the interval in words."""
        if self.difference.low > 0:
            return "more than chance explains"
        if self.difference.high < 0:
            return "less, by more than chance explains"
        return "a difference that may be chance"


def choose_list_length(comparison: Comparison) -> int:
    """Return the k of a report: 10, or the longest list with at most two thirds of the labels.

    A list of nearly all labels is nearly as good for any model. If rows have one label, at most one label of a longer
    list can be right.
    """
    evaluation = comparison.entries[0].evaluation
    if all(comparison.ceilings.get(f"p@{k}", 1.0) * k < _MIN_LABELS_PER_ROW for k in evaluation.ks):
        return min(evaluation.ks)
    lengths = [k for k in evaluation.ks if f"p@{k}" in comparison.metrics and 3 * k <= 2 * evaluation.n_labels]
    return max(lengths, default=min(evaluation.ks))


def judge_main_model(comparison: Comparison, main: str, metric: str) -> ModelVerdict | None:
    """Compare the main model with the best baseline; return None without one."""
    difference = comparison[main].differences.get(metric)
    return None if difference is None else ModelVerdict(metric, comparison[difference[0]], difference[1])


def format_headline(comparison: Comparison, main: str, modality: str = "rows") -> str:
    """Return one sentence about the first k suggestions.

    With the sample collection, for instance: "With WARP embedding, 4.0 of the first 10 labels suggested for each of 877
    unseen pictures are right on average, against 3.6 with k nearest neighbours (more than chance explains); at most 6.8
    are possible."
    """
    entry, k = comparison[main], choose_list_length(comparison)
    metric, n_rows = f"p@{k}", f"{entry.evaluation.n_rows:,}"
    verdict = judge_main_model(comparison, main, metric)
    if k == 1:
        accuracy = _format_accuracy(entry)
        first = f"With {entry.title}, the first label suggested is right for {accuracy} of {n_rows} unseen {modality}"
        if verdict is None:
            return f"{first}."
        return f"{first}, against {_format_accuracy(verdict.baseline)} with {verdict.baseline.title} ({verdict.words})."
    n_right = _format_right(entry, metric, k)
    start = f"With {entry.title}, {n_right} of the first {k} labels suggested for each of {n_rows} unseen"
    top = f"at most {comparison.ceilings[metric] * k:.1f} are possible"
    if verdict is None:
        return f"{start} {modality} are right on average; {top}."
    baseline_text = f"{_format_right(verdict.baseline, metric, k)} with {verdict.baseline.title}"
    return f"{start} {modality} are right on average, against {baseline_text} ({verdict.words}); {top}."


class ReportStat(NamedTuple):
    """A main figure of a report with its name and small print."""

    figure: str
    name: str
    small: str


def collect_stats(report: ReportInput) -> list[ReportStat]:
    """Return the main figures."""
    comparison, entry, k = report.comparison, report.comparison[report.main], choose_list_length(report.comparison)
    metric, base, unit = f"p@{k}", k if k > 1 else 100, "labels" if k > 1 else report.modality
    interval, counts = entry.intervals[metric], comparison.task.facts
    stats = [
        ReportStat(
            f"{entry.evaluation.means[metric] * base:.1f} of {base}",
            "labels right" if k > 1 else f"{unit} with the first label right",
            f"95 % interval {interval.low * base:.1f}–{interval.high * base:.1f}",
        )
    ]
    verdict = judge_main_model(comparison, report.main, metric)
    if verdict is not None:
        mean, low, high = (format_difference(value * base, 1) for value in verdict.difference[:3])
        small = f"{mean} of {base} {unit}, interval {low} to {high}"
        stats.append(ReportStat(format_gain(verdict, base), f"against {verdict.baseline.title}", small))
    ceiling = f"highest possible {metric}: {format_metric(comparison.ceilings[metric])}"
    prediction = f"{format_milliseconds(entry.predict_ms)} per {singularise(report.modality)}"
    return [
        *stats,
        ReportStat(f"{counts.labels:,}", "labels to choose from", ceiling),
        ReportStat(format_duration(entry.fit_seconds), "of training", f"on {counts.train_rows:,} {report.modality}"),
        ReportStat(format_bytes(entry.n_bytes), "of model", prediction),
    ]


def format_gain(verdict: ModelVerdict, base: int) -> str:
    """Return the difference in percent of the baseline; in labels or items if the baseline has none right."""
    if isfinite(verdict.relative):
        return f"{verdict.relative:+.0%}".replace("-", "−")
    return f"{format_difference(verdict.difference.mean * base, 1)} of {base}"


def _format_accuracy(entry: ModelEntry) -> str:
    return f"{entry.evaluation.means['p@1']:.1%}"


def _format_right(entry: ModelEntry, metric: str, k: int) -> str:
    return f"{entry.evaluation.means[metric] * k:.1f}"
