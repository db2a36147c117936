"""Verdicts: what holds, what does not, what chance may explain, what was not run."""

import numpy as np
import pytest

from papers.claims import FAILS, HOLDS, NOT_RUN, OPEN, OrderingClaim, StatementCheck, is_borne_out_in_paper, judge_claim
from papers.record import FindingRow, PublishedFigures, RunFindings

PAPER = (PublishedFigures("ImageNet", ("p@1",), {"A": (4.0,), "B": (3.0,)}, percent=True),)


def make_finding(name: str, values: list[float] | None = None, mean: float = 0.0) -> FindingRow:
    if values is None:
        return FindingRow(name, "", {"p@1": mean})
    return FindingRow(name, "", {"p@1": float(np.mean(values))}, {"p@1": np.array(values)})


def verdict(a: FindingRow, b: FindingRow, why: str = "") -> tuple[str, str]:
    judged = judge_claim(OrderingClaim("A > B in p@1", why), RunFindings([a, b]), PAPER, 0)
    return judged.here, judged.words


def test_a_difference_that_is_the_same_in_every_row_holds() -> None:
    outcome, words = verdict(make_finding("A", [0.6, 0.8] * 20), make_finding("B", [0.5, 0.7] * 20))
    assert outcome == HOLDS
    assert words == "0.7 against 0.6, difference +0.1000 (95 % interval +0.1000 to +0.1000)"


def test_opposite_result_fails_with_a_reason() -> None:
    outcome, words = verdict(make_finding("A", [0.1] * 40), make_finding("B", [0.2] * 40), "the data are small")
    assert outcome == FAILS
    assert words.endswith("; perhaps because the data are small")


def test_a_difference_within_chance_is_not_decided() -> None:
    assert verdict(make_finding("A", [0.0, 1.0] * 20), make_finding("B", [1.0, 0.0] * 20))[0] == OPEN


def test_figures_without_rows_are_compared_as_they_are() -> None:
    assert verdict(make_finding("A", mean=2.0), make_finding("B", mean=1.0)) == (HOLDS, "2 against 1")


def test_a_row_that_was_not_run_decides_nothing() -> None:
    judged = judge_claim(OrderingClaim("A > B in p@1"), RunFindings([make_finding("A", mean=1.0)]), PAPER, 0)
    assert (judged.here, judged.paper, judged.words) == (NOT_RUN, HOLDS, "without B")
    judged = judge_claim(
        OrderingClaim("A > B in MAP"), RunFindings([make_finding("A", mean=1.0), make_finding("B", mean=0.0)]), PAPER, 0
    )
    assert (judged.here, judged.paper) == (NOT_RUN, "")


def test_groups_are_drawn_whole() -> None:
    a, b = make_finding("A", [1.0] * 10 + [0.0] * 10), make_finding("B", [0.0] * 10 + [0.4] * 10)
    groups = ["x"] * 10 + ["y"] * 10
    assert judge_claim(OrderingClaim("A > B in p@1"), RunFindings([a, b]), (), 0).here == HOLDS
    assert judge_claim(OrderingClaim("A > B in p@1"), RunFindings([a, b], groups=groups), (), 0).here == OPEN


def test_the_paper_is_held_to_all_of_its_tables() -> None:
    other_figures = PublishedFigures("Web", ("p@1",), {"A": (1.0,), "B": (2.0,)})
    assert is_borne_out_in_paper(OrderingClaim("A > B in p@1"), PAPER) == HOLDS
    assert is_borne_out_in_paper(OrderingClaim("A > B in p@1"), (*PAPER, other_figures)) == FAILS
    assert is_borne_out_in_paper(OrderingClaim("A > C in p@1"), PAPER) == ""


def test_a_check_without_its_row_is_not_run() -> None:
    check = StatementCheck("A is there", lambda findings: (bool(findings["A"]), "yes"))
    assert judge_claim(check, RunFindings([make_finding("A")]), (), 0).here == HOLDS
    assert judge_claim(check, RunFindings([]), (), 0).words == "without A"


def test_a_claim_of_another_form_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="not a claim of the form"):
        _ = OrderingClaim("A is better than B").parts
