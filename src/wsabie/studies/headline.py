"""The result in one sentence, without jargon, and honest about chance."""

from typing import NamedTuple

from wsabie.evaluation.bootstrap import Difference
from wsabie.studies.comparison import Comparison, Entry

_SEVERAL = 1.1
"""True labels of a row from which on, in the mean, a list says more than the first label."""


class Verdict(NamedTuple):
    """How the main model stands to the best baseline in one metric."""

    metric: str
    baseline: Entry
    difference: Difference

    @property
    def relative(self) -> float:
        """Difference / the baseline's figure; infinite where that is 0."""
        base = self.baseline.evaluation.means[self.metric]
        return self.difference.mean / base if base else float("inf")

    @property
    def words(self) -> str:
        """What the interval says."""
        if self.difference.low > 0:
            return "more than chance explains"
        if self.difference.high < 0:
            return "less, by more than chance explains"
        return "a difference that may be chance"


def list_length(comparison: Comparison) -> int:
    """The k that a report speaks of: 10, or the longest list in the table that holds at most two thirds of the labels.

    A list of nearly all labels is nearly as good whoever made it; and where rows have one label, of a longer list no
    more than one can be right.
    """
    evaluation = comparison.entries[0].evaluation
    if all(comparison.ceilings.get(f"p@{k}", 1.0) * k < _SEVERAL for k in evaluation.ks):
        return min(evaluation.ks)
    shown = [k for k in evaluation.ks if f"p@{k}" in comparison.metrics and 3 * k <= 2 * evaluation.n_labels]
    return max(shown, default=min(evaluation.ks))


def verdict(comparison: Comparison, main: str, metric: str) -> Verdict | None:
    """The main model against the best baseline; None without one."""
    found = comparison[main].against.get(metric)
    return None if found is None else Verdict(metric, comparison[found[0]], found[1])


def headline(comparison: Comparison, main: str, things: str = "rows") -> str:
    """One sentence about the first k suggestions.

    With the sample collection, for instance: "With WARP embedding, 4.0 of the first 10 labels suggested for each of 877
    unseen pictures are right on average, against 3.6 with k nearest neighbours (more than chance explains); at most 6.8
    are possible."
    """
    entry, k = comparison[main], list_length(comparison)
    metric, n = f"p@{k}", f"{entry.evaluation.n_rows:,}"
    against = verdict(comparison, main, metric)
    if k == 1:
        first = f"With {entry.title}, the first label suggested is right for {_share(entry)} of {n} unseen {things}"
        if against is None:
            return f"{first}."
        return f"{first}, against {_share(against.baseline)} with {against.baseline.title} ({against.words})."
    start = f"With {entry.title}, {_right(entry, metric, k)} of the first {k} labels suggested for each of {n} unseen"
    top = f"at most {comparison.ceilings[metric] * k:.1f} are possible"
    if against is None:
        return f"{start} {things} are right on average; {top}."
    other = f"{_right(against.baseline, metric, k)} with {against.baseline.title}"
    return f"{start} {things} are right on average, against {other} ({against.words}); {top}."


def _share(entry: Entry) -> str:
    return f"{entry.evaluation.means['p@1']:.1%}"


def _right(entry: Entry, metric: str, k: int) -> str:
    return f"{entry.evaluation.means[metric] * k:.1f}"
