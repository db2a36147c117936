"""The figures at the head of a report."""

from dataclasses import replace

import numpy as np

from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.report.html_report import ModelVerdict, format_gain


def test_gain_over_zero_is_stated_in_labels(comparison: Comparison) -> None:
    assert format_gain(set_baseline(comparison, 0.0, 0.2), 1) == "+0.2 of 1"
    assert format_gain(set_baseline(comparison, 0.5, 0.2), 1) == "+40%"
    assert format_gain(set_baseline(comparison, 0.5, -0.2), 1) == "−40%"


def set_baseline(comparison: Comparison, base: float, difference: float) -> ModelVerdict:
    """A difference to nearest neighbours of a given p@1."""
    nearest = comparison["nearest"]
    per_row = {"p@1": np.full_like(nearest.evaluation.per_row["p@1"], base)}
    baseline = replace(nearest, evaluation=replace(nearest.evaluation, per_row=per_row))
    return ModelVerdict("p@1", baseline, PairedDifference(difference, difference - 0.1, difference + 0.1, 0.5))
