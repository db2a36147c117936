"""Scales and round numbers."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.workflows.charts.svg_charts import ChartAxis, build_scale, format_tick, list_round_numbers, split_at_gaps

ends = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 4))


@given(ends, st.floats(1e-3, 1e6), st.integers(2, 10), st.booleans())
def test_round_numbers_are_even_few_and_within_bounds(low: float, width: float, about: int, outwards: bool) -> None:
    high = low + width
    marks = list_round_numbers(low, high, about, outwards=outwards)
    assert marks == sorted(set(marks))
    steps = [b - a for a, b in itertools.pairwise(marks)]
    assert all(step == pytest.approx(steps[0], rel=1e-6) for step in steps)
    slack = 1e-6 * (width + abs(low))
    if outwards:
        assert marks[0] <= low + slack
        assert marks[-1] >= high - slack
        assert len(marks) <= about + 3
    else:
        assert marks[0] >= low - slack
        assert marks[-1] <= high + slack
        assert len(marks) <= about + 1


def test_scales_map_ends_to_ends_and_accept_one_value() -> None:
    scale = build_scale(ChartAxis("x", low=0.0), [1.0, 4.0, float("nan")], 100, 20)
    assert (scale(0), scale(4), scale(2)) == (100, 20, 60)
    assert build_scale(ChartAxis("x"), [3.0], 0, 10)(3.0) == 0
    assert build_scale(ChartAxis("x"), [], 0, 10).low == 0
    assert build_scale(ChartAxis("y", low=0.0), [0.43], 0, 10, ends_round=True).high == pytest.approx(0.5)


def test_ticks_are_formatted_shortly() -> None:
    assert [format_tick(v) for v in (0, 0.25, 999, 1000, 25_000, 3e6, -0.1)] == [
        "0",
        "0.25",
        "999",
        "1k",
        "25k",
        "3M",
        "−0.1",
    ]


def test_lines_break_at_gaps() -> None:
    assert split_at_gaps([None, (1, 2), None, None, (3, 4)]) == [[(1, 2)], [(3, 4)]]
    assert split_at_gaps([]) == []
