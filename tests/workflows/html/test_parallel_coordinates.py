"""Parallel coordinates: positions on axes, and good lines distinct without colour."""

import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

from wsabie.workflows.report.html_pages import render_page
from wsabie.workflows.tune.tuning_page import (
    BOTTOM,
    GAP,
    HEIGHT,
    SIDE,
    TOP,
    ParallelAxis,
    ParallelChart,
    ParallelLine,
    _format_ends,
    _list_log_marks,
    choose_line_colour,
)


def draw_chart(axes: list[ParallelAxis], lines: list[ParallelLine]) -> Any:
    drawing = render_page("parallel.svg", coordinates=ParallelChart("t", axes, lines, "d"))
    return ET.fromstring(drawing.replace(' xmlns="http://www.w3.org/2000/svg"', ""))  # noqa: S314


def read_points(line: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.get("points").split())]


def test_axes_may_be_linear_logarithmic_or_named() -> None:
    axes = [
        ParallelAxis("plain", [0.0, 5.0, 10.0]),
        ParallelAxis("rate", [0.01, 0.1, 1.0], is_log=True),
        ParallelAxis("kind", ["a", "b", "c"]),
        ParallelAxis("same", [3, 3, 3]),
    ]
    lines = [ParallelLine(i / 2, False, f"trial {i}") for i in range(3)]
    chart = [read_points(line) for line in draw_chart(axes, lines).iter("polyline")]
    bottom, middle = HEIGHT - BOTTOM, (HEIGHT - BOTTOM + TOP) / 2
    heights = [bottom, middle, TOP]
    for line, height in zip(chart, heights, strict=True):
        assert [x for x, _ in line] == [SIDE + GAP * i for i in range(4)]
        assert [y for _, y in line] == [height, height, height, middle]


def test_best_line_is_thick_dark_and_on_top() -> None:
    lines = [ParallelLine(1.0, False, "best"), ParallelLine(0.0, True, "worst")]
    worst, best = draw_chart([ParallelAxis("a", [1, 2]), ParallelAxis("b", [1, 2])], lines).iter("polyline")
    assert [line.find("title").text for line in (worst, best)] == ["worst", "best"]
    assert float(best.get("stroke-width")) > 2 * float(worst.get("stroke-width"))
    assert worst.get("stroke-dasharray") is not None
    assert best.get("stroke-dasharray") is None


def test_line_colours_darken_monotonically() -> None:
    light = [sum(int(choose_line_colour(i / 20)[j : j + 2], 16) for j in (1, 3, 5)) for i in range(21)]
    assert light == sorted(light, reverse=True)
    assert len(set(light)) == 21


def test_worst_line_has_enough_contrast_on_white() -> None:
    """A contrast of 3 or more, as WCAG 1.4.11 asks of lines."""
    channels = [int(choose_line_colour(0)[j : j + 2], 16) / 255 for j in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    assert 1.05 / (luminance + 0.05) >= 3


def test_numeric_axes_label_their_ends_with_room() -> None:
    axes = [ParallelAxis("rate", [0.025187, 0.28512], is_log=True), ParallelAxis("MAP", [0.20923, 0.3164])]
    chart = draw_chart(axes, [ParallelLine(0.5, False, "")] * 2)
    marks = {t.text: float(t.get("y")) for t in chart.iter("text") if t.get("text-anchor") == "start"}
    assert {"0.0252", "0.05", "0.1", "0.2", "0.285"} < set(marks)
    assert marks["0.0252"] == marks["0.209"] > marks["0.285"] == marks["0.316"]
    for axis in (("0.0252", "0.05", "0.1", "0.2", "0.285"), ("0.209", "0.225", "0.25", "0.275", "0.3", "0.316")):
        heights = [marks[text] for text in axis]
        assert all(lower - upper >= 14 for lower, upper in pairwise(heights))


def test_choices_have_marks_and_wrapped_names() -> None:
    axes = [ParallelAxis("max_sampled", ["auto", "<b>", "none"]), ParallelAxis("dim", [50, 100, 200], is_choice=True)]
    words = [text.text for text in draw_chart(axes, [ParallelLine(0.5, False, "")] * 3).iter("text")]
    assert {"max", "sampled", "auto", "<b>", "none", "50", "100", "200"} <= set(words)


def test_ends_of_an_axis_differ() -> None:
    assert _format_ends(0.025187, 0.28512) == ("0.0252", "0.285")
    assert _format_ends(0.31411, 0.31413) == ("0.31411", "0.31413")


def test_marks_of_a_log_axis_lie_between_its_ends() -> None:
    assert (_list_log_marks(0.03, 0.6), _list_log_marks(3.1, 3.9)) == ([0.05, 0.1, 0.2, 0.5], [])
