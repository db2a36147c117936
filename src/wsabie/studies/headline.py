"""The result in one sentence, without jargon, and honest about chance."""

from typing import NamedTuple

from wsabie.evaluation.bootstrap import Difference
from wsabie.studies.comparison import Comparison, Entry


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
    """The k that a report speaks of: 10, or the longest list up to that which was measured."""
    ks = comparison.entries[0].evaluation.ks
    return max((k for k in ks if k <= 10), default=min(ks))


def verdict(comparison: Comparison, main: str, metric: str) -> Verdict | None:
    """The main model against the best baseline; None without one."""
    found = comparison[main].against.get(metric)
    return None if found is None else Verdict(metric, comparison[found[0]], found[1])


def headline(comparison: Comparison, main: str, things: str = "rows") -> str:
    """One sentence about the first k suggestions.

    Examples
    --------
    "On 363 pictures that it had not seen, 4.5 of the first 10 labels that the WARP embedding suggests are right; k
    nearest neighbours get 4.3 right (a difference that may be chance), and at most 9.8 are possible."
    """
    entry, k = comparison[main], list_length(comparison)
    metric = f"p@{k}"
    n = f"{entry.evaluation.n_rows:,}"
    right = _right(entry, metric, k)
    start = f"On {n} {things} that it had not seen, {right} of the first {k} labels that the {entry.title} suggests"
    top = f"at most {comparison.ceilings[metric] * k:.1f} are possible"
    if k == 1:
        start = f"On {n} {things} that it had not seen, the first label that the {entry.title} suggests is right in"
        return f"{start} {entry.evaluation.means[metric]:.0%} of the cases."
    against = verdict(comparison, main, metric)
    if against is None:
        return f"{start} are right on average; {top}."
    other = f"{_right(against.baseline, metric, k)} with {against.baseline.title}"
    return f"{start} are right on average, against {other} ({against.words}); {top}."


def _right(entry: Entry, metric: str, k: int) -> str:
    return f"{entry.evaluation.means[metric] * k:.1f}"
