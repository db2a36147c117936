"""The figures at the head of a report."""

from dataclasses import replace

import numpy as np

from wsabie.evaluation.bootstrap import Difference
from wsabie.studies.comparison import Comparison
from wsabie.studies.headline import Verdict
from wsabie.studies.html.about import _gain


def test_a_gain_over_nothing_is_told_in_labels(comparison: Comparison) -> None:
    assert _gain(against(comparison, 0.0, 0.2), 1) == "+0.2 of 1"
    assert _gain(against(comparison, 0.5, 0.2), 1) == "+40%"
    assert _gain(against(comparison, 0.5, -0.2), 1) == "−40%"


def against(comparison: Comparison, base: float, difference: float) -> Verdict:
    """A difference to nearest neighbours of a given p@1."""
    nearest = comparison["nearest"]
    per_row = {"p@1": np.full_like(nearest.evaluation.per_row["p@1"], base)}
    baseline = replace(nearest, evaluation=replace(nearest.evaluation, per_row=per_row))
    return Verdict("p@1", baseline, Difference(difference, difference - 0.1, difference + 0.1, 0.5))
