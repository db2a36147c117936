"""Claims of a paper about its figures, as statements that a run can check."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsabie.evaluation.bootstrap import PairedDifference, paired_bootstrap

if TYPE_CHECKING:
    from papers.record import PublishedFigures, RunFindings

_FORM = re.compile(r"(.+) > (.+) in (.+)")
HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "not decided", "not run"


class OrderingClaim(NamedTuple):
    """An ordering: "A > B in METRIC", A and B being rows of the table.

    Attributes
    ----------
    text : str
    why : str
        Possible reason if it does not hold.
    ours : bool
        The claim is this project's, not the paper's.
    """

    text: str
    why: str = ""
    ours: bool = False

    @property
    def parts(self) -> tuple[str, str, str]:
        """Higher row, lower row and metric.

        Examples
        --------
        >>> OrderingClaim("WARP > AUC in p@1").parts
        ('WARP', 'AUC', 'p@1')
        """
        match = _FORM.fullmatch(self.text)
        if match is None:
            raise ValueError(f"{self.text!r} is not a claim of the form 'A > B in METRIC'")
        return match[1], match[2], match[3]


class StatementCheck(NamedTuple):
    """Any other statement with its check: findings -> (it holds, in numbers).

    Attributes
    ----------
    text : str
    test : callable
        Raises LookupError if a row that it reads was not run.
    why : str
    ours : bool
        The statement is this project's, not the paper's.
    """

    text: str
    test: Callable[["RunFindings"], tuple[bool, str]]
    why: str = ""
    ours: bool = False


class ClaimVerdict(NamedTuple):
    """The verdict on a claim.

    Attributes
    ----------
    text : str
    paper : str
        Verdict of the paper's own figures: "holds", "does not hold", or "" without figures.
    here : str
        "holds", "does not hold", "not decided" (the interval includes 0) or "not run".
    words : str
        In numbers.
    difference : PairedDifference or None
        Paired bootstrap of the first row minus the second, if values of single rows are known.
    ours : bool
        The claim is this project's.
    """

    text: str
    paper: str
    here: str
    words: str
    difference: PairedDifference | None = None
    ours: bool = False


def is_borne_out_in_paper(claim: OrderingClaim, published: Sequence["PublishedFigures"]) -> str:
    """Return the verdict of every table of the paper that has both rows."""
    better, worse, metric = claim.parts
    pairs = [(table.figure(better, metric), table.figure(worse, metric)) for table in published]
    figures = [
        (better_figure, worse_figure)
        for better_figure, worse_figure in pairs
        if isinstance(better_figure, (int, float)) and isinstance(worse_figure, (int, float))
    ]
    if not figures:
        return ""
    return HOLDS if all(better_figure > worse_figure for better_figure, worse_figure in figures) else FAILS


def judge_claim(
    claim: OrderingClaim | StatementCheck, findings: "RunFindings", published: Sequence["PublishedFigures"], seed: int
) -> ClaimVerdict:
    """Return the verdict on one claim."""
    if isinstance(claim, OrderingClaim):
        return _judge_ordering(claim, findings, published, seed)._replace(ours=claim.ours)
    try:
        holds, words = claim.test(findings)
    except LookupError as missing:
        return ClaimVerdict(claim.text, "", NOT_RUN, f"without {missing.args[0]}", ours=claim.ours)
    verdict = HOLDS if holds else FAILS
    return ClaimVerdict(claim.text, "", verdict, words if holds else _add_reason(words, claim.why), ours=claim.ours)


def _judge_ordering(
    claim: OrderingClaim, findings: "RunFindings", published: Sequence["PublishedFigures"], seed: int
) -> ClaimVerdict:
    better, worse, metric = claim.parts
    paper = is_borne_out_in_paper(claim, published)
    absent = [row for row in (better, worse) if row not in findings]
    if absent:
        return ClaimVerdict(claim.text, paper, NOT_RUN, f"without {' and '.join(absent)}")
    higher_row, lower_row = findings[better], findings[worse]
    higher_value, lower_value = higher_row.figures.get(metric), lower_row.figures.get(metric)
    if not isinstance(higher_value, (int, float)) or not isinstance(lower_value, (int, float)):
        return ClaimVerdict(claim.text, paper, NOT_RUN, f"{metric} was not measured")
    words = f"{higher_value:.4g} against {lower_value:.4g}"
    if metric not in higher_row.per_row or metric not in lower_row.per_row:
        verdict = HOLDS if higher_value > lower_value else FAILS
        return ClaimVerdict(
            claim.text, paper, verdict, words if higher_value > lower_value else _add_reason(words, claim.why)
        )
    if findings.seeds:
        gap, range_ = (
            compute_two_standard_errors(higher_row.per_row[metric], lower_row.per_row[metric]),
            "two standard errors:",
        )
    else:
        groups = findings.groups.get(metric) if isinstance(findings.groups, Mapping) else findings.groups
        gap, range_ = (
            paired_bootstrap(higher_row.per_row[metric], lower_row.per_row[metric], groups=groups, seed=seed),
            "95 % interval",
        )
    verdict = HOLDS if gap.low > 0 else FAILS if gap.high < 0 else OPEN
    words += f", difference {gap.mean:+.4f} ({range_} {gap.low:+.4f} to {gap.high:+.4f})"
    return ClaimVerdict(claim.text, paper, verdict, words if verdict == HOLDS else _add_reason(words, claim.why), gap)


def compute_two_standard_errors(first: Any, second: Any) -> PairedDifference:
    """Return the mean difference of two models with the same seeds, with two standard errors as its reach.

    Examples
    --------
    >>> compute_two_standard_errors([0.3, 0.5], [0.1, 0.2])
    PairedDifference(mean=0.25, low=0.15, high=0.35, ahead=1.0)
    """
    gaps = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    mean, reach = float(gaps.mean()), 2 * float(gaps.std(ddof=1)) / len(gaps) ** 0.5
    ahead = float(((gaps > 0) + (gaps == 0) / 2).mean())
    return PairedDifference(mean, mean - reach, mean + reach, ahead)


def _add_reason(words: str, why: str) -> str:
    return f"{words}; perhaps because {why}" if why else words


def dump_verdict(verdict: ClaimVerdict) -> dict[str, Any]:
    """Return plain values for JSON."""
    gap = verdict.difference
    return {**verdict._asdict(), "difference": None if gap is None else gap._asdict()}
