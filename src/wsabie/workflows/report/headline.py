"""The result of a comparison in one plain sentence that tells chance from a difference."""

from typing import NamedTuple

from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.workflows.compare.comparison import Comparison, ModelEntry

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
    comparison_to_best = comparison[main].against.get(metric)
    return (
        None
        if comparison_to_best is None
        else ModelVerdict(metric, comparison[comparison_to_best[0]], comparison_to_best[1])
    )


def format_headline(comparison: Comparison, main: str, things: str = "rows") -> str:
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
        first = f"With {entry.title}, the first label suggested is right for {accuracy} of {n_rows} unseen {things}"
        if verdict is None:
            return f"{first}."
        return f"{first}, against {_format_accuracy(verdict.baseline)} with {verdict.baseline.title} ({verdict.words})."
    n_right = _format_right(entry, metric, k)
    start = f"With {entry.title}, {n_right} of the first {k} labels suggested for each of {n_rows} unseen"
    top = f"at most {comparison.ceilings[metric] * k:.1f} are possible"
    if verdict is None:
        return f"{start} {things} are right on average; {top}."
    baseline_text = f"{_format_right(verdict.baseline, metric, k)} with {verdict.baseline.title}"
    return f"{start} {things} are right on average, against {baseline_text} ({verdict.words}); {top}."


def _format_accuracy(entry: ModelEntry) -> str:
    return f"{entry.evaluation.means['p@1']:.1%}"


def _format_right(entry: ModelEntry, metric: str, k: int) -> str:
    return f"{entry.evaluation.means[metric] * k:.1f}"
