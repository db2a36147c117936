"""What a paper says about its figures, as statements that a run can check."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsabie.evaluation.bootstrap import Difference, paired_bootstrap

if TYPE_CHECKING:
    from wsabie.studies.reproduce.record import Findings, Published

_FORM = re.compile(r"(.+) > (.+) in (.+)")
HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "not decided", "not run"


class Claim(NamedTuple):
    """An ordering: "A > B in METRIC", A and B being rows of the table.

    Attributes
    ----------
    text : str
    why : str
        What may explain it where it does not hold.
    ours : bool
        No paper says it; it is asked here.
    """

    text: str
    why: str = ""
    ours: bool = False

    @property
    def parts(self) -> tuple[str, str, str]:
        """(higher row, lower row, metric).

        Examples
        --------
        >>> Claim("WARP > AUC in p@1").parts
        ('WARP', 'AUC', 'p@1')
        """
        found = _FORM.fullmatch(self.text)
        if found is None:
            raise ValueError(f"{self.text!r} is no claim of the form 'A > B in METRIC'")
        return found[1], found[2], found[3]


class Check(NamedTuple):
    """Any other statement, and what checks it: findings -> (it holds, in numbers).

    Attributes
    ----------
    text : str
    test : callable
        Raises LookupError where a row that it looks at was not run.
    why : str
    ours : bool
        No paper says it; it is asked here.
    """

    text: str
    test: Callable[["Findings"], tuple[bool, str]]
    why: str = ""
    ours: bool = False


class Verdict(NamedTuple):
    """What became of a claim.

    Attributes
    ----------
    text : str
    paper : str
        Whether the paper's own figures bear it out: "holds", "does not hold", or "" where it prints none.
    here : str
        "holds", "does not hold", "not decided" (the interval includes 0) or "not run".
    words : str
        In numbers.
    difference : Difference or None
        Paired bootstrap of the first row minus the second, where values of single rows are known.
    ours : bool
        No paper says it.
    """

    text: str
    paper: str
    here: str
    words: str
    difference: Difference | None = None
    ours: bool = False


def in_paper(claim: Claim, published: Sequence["Published"]) -> str:
    """Whether every table of the paper that has both rows bears the claim out."""
    better, worse, metric = claim.parts
    pairs = [(p.figure(better, metric), p.figure(worse, metric)) for p in published]
    known = [(a, b) for a, b in pairs if isinstance(a, (int, float)) and isinstance(b, (int, float))]
    if not known:
        return ""
    return HOLDS if all(a > b for a, b in known) else FAILS


def verdict_of(claim: Claim | Check, findings: "Findings", published: Sequence["Published"], seed: int) -> Verdict:
    """The verdict on one claim."""
    if isinstance(claim, Claim):
        return _ordered(claim, findings, published, seed)._replace(ours=claim.ours)
    try:
        holds, words = claim.test(findings)
    except LookupError as missing:
        return Verdict(claim.text, "", NOT_RUN, f"without {missing.args[0]}", ours=claim.ours)
    here = HOLDS if holds else FAILS
    return Verdict(claim.text, "", here, words if holds else _because(words, claim.why), ours=claim.ours)


def _ordered(claim: Claim, findings: "Findings", published: Sequence["Published"], seed: int) -> Verdict:
    better, worse, metric = claim.parts
    paper = in_paper(claim, published)
    absent = [row for row in (better, worse) if row not in findings]
    if absent:
        return Verdict(claim.text, paper, NOT_RUN, f"without {' and '.join(absent)}")
    a, b = findings[better], findings[worse]
    one, two = a.figures.get(metric), b.figures.get(metric)
    if not isinstance(one, (int, float)) or not isinstance(two, (int, float)):
        return Verdict(claim.text, paper, NOT_RUN, f"{metric} was not measured")
    words = f"{one:.4g} against {two:.4g}"
    if metric not in a.per_row or metric not in b.per_row:
        here = HOLDS if one > two else FAILS
        return Verdict(claim.text, paper, here, words if one > two else _because(words, claim.why))
    if findings.seeds:
        gap, range_ = two_errors(a.per_row[metric], b.per_row[metric]), "two standard errors:"
    else:
        groups = findings.groups.get(metric) if isinstance(findings.groups, Mapping) else findings.groups
        gap, range_ = paired_bootstrap(a.per_row[metric], b.per_row[metric], groups=groups, seed=seed), "95 % interval"
    here = HOLDS if gap.low > 0 else FAILS if gap.high < 0 else OPEN
    words += f", difference {gap.mean:+.4f} ({range_} {gap.low:+.4f} to {gap.high:+.4f})"
    return Verdict(claim.text, paper, here, words if here == HOLDS else _because(words, claim.why), gap)


def two_errors(a: Any, b: Any) -> Difference:
    """Mean difference of two models trained with the same seeds, give or take two standard errors.

    Examples
    --------
    >>> two_errors([0.3, 0.5], [0.1, 0.2])
    Difference(mean=0.25, low=0.15, high=0.35, ahead=1.0)
    """
    gaps = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    mean, reach = float(gaps.mean()), 2 * float(gaps.std(ddof=1)) / len(gaps) ** 0.5
    ahead = float(((gaps > 0) + (gaps == 0) / 2).mean())
    return Difference(mean, mean - reach, mean + reach, ahead)


def _because(words: str, why: str) -> str:
    return f"{words}; perhaps because {why}" if why else words


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """Plain values for JSON."""
    gap = verdict.difference
    return {**verdict._asdict(), "difference": None if gap is None else gap._asdict()}
