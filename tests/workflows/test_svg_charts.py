"""SVG charts: positions follow the numbers, gaps stay gaps, and texts stay texts."""

import itertools
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from wsabie.workflows.charts.svg_charts import (
    BOTTOM_MARGIN,
    HEIGHT,
    LEFT_MARGIN,
    RIGHT_MARGIN,
    TOP_MARGIN,
    WIDTH,
    BarChart,
    BarGroup,
    Chart,
    ChartAxis,
    ChartSeries,
    IntervalChart,
    IntervalSpan,
    LineChart,
)
from wsabie.workflows.report.html_pages import render_page

NAN = float("nan")


def parse_chart(chart: Chart) -> Any:
    """The chart as a reader of its file sees it."""
    return ET.fromstring(render_page("charts.svg", chart=chart))  # noqa: S314


def read_points(node: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in node.get("points").split())]


def test_line_runs_from_corner_to_corner() -> None:
    chart = parse_chart(LineChart("t", [ChartSeries("a", [1, 5], [0.0, 1.0])], ChartAxis("x"), ChartAxis("y", low=0.0)))
    (line,) = chart.iter("polyline")
    assert read_points(line) == [(LEFT_MARGIN, HEIGHT - BOTTOM_MARGIN), (WIDTH - RIGHT_MARGIN, TOP_MARGIN)]
    assert chart.find("title").text == "t"
    assert chart.get("role") == "img"


def test_gap_breaks_the_line_and_single_points_are_marked() -> None:
    y = [0.1, 0.2, NAN, 0.4, NAN, 0.6, 0.7]
    chart = parse_chart(LineChart("t", [ChartSeries("a", range(7), y)], ChartAxis("x"), ChartAxis("y")))
    assert [len(read_points(line)) for line in chart.iter("polyline")] == [2, 2]
    assert len(list(chart.iter("circle"))) == 5


def test_bands_surround_their_line_and_limits_have_no_markers() -> None:
    series = [
        ChartSeries("a", [0, 1], [0.5, 0.5], [0.4, 0.4], [0.6, 0.6]),
        ChartSeries("top", [0, 1], [1.0, 1.0], style=-1),
    ]
    chart = parse_chart(LineChart("t", series, ChartAxis("x"), ChartAxis("y", low=0.0)))
    (band,) = [node for node in chart.iter("polygon") if "band" in node.get("class")]
    line = next(node for node in chart.iter("polyline") if node.get("class") == "line s0")
    heights = sorted({y for _, y in read_points(band)})
    assert heights[0] < read_points(line)[0][1] < heights[1]
    assert len(list(chart.iter("circle"))) == 2


def test_many_points_have_spaced_markers() -> None:
    chart = parse_chart(LineChart("t", [ChartSeries("a", range(500), [1.0] * 500)], ChartAxis("x"), ChartAxis("y")))
    assert 10 <= len(list(chart.iter("circle"))) <= 32


def test_bars_are_as_high_as_their_values() -> None:
    groups = [BarGroup("one", [1.0, 2.0, NAN]), BarGroup("two", [4.0, 0.0, 3.0], 1)]
    chart = parse_chart(BarChart("t", groups, ["a", "b", "c"], "x", ChartAxis("n")))
    bars = list(chart.iter("rect"))
    heights = [float(bar.get("height")) for bar in bars]
    assert len(bars) == 5  # NaN has none
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.05)
    assert heights[2] == pytest.approx(HEIGHT - BOTTOM_MARGIN - TOP_MARGIN, abs=0.05)
    assert heights[3] == 0
    assert [bar.find("title").text for bar in bars][:2] == ["one, a: 1", "one, b: 2"]
    places = sorted((float(bar.get("x")), float(bar.get("width"))) for bar in bars)
    assert all(x + width <= following for (x, width), (following, _) in itertools.pairwise(places))


def test_intervals_that_hold_zero_look_uncertain() -> None:
    spans = [
        IntervalSpan("p@1", 0.1, 0.05, 0.15),
        IntervalSpan("MAP", -0.01, -0.03, 0.02),
        IntervalSpan("AUC", -0.2, -0.3, -0.1),
    ]
    chart = parse_chart(IntervalChart("t", spans, "difference"))
    dots = list(chart.iter("circle"))
    assert [dot.get("class") for dot in dots] == ["dot significant", "dot uncertain", "dot significant"]
    zero = next(line for line in chart.iter("line") if line.get("class") == "zero")
    assert float(dots[2].get("cx")) < float(dots[1].get("cx")) < float(zero.get("x1")) < float(dots[0].get("cx"))
    whiskers = [line for line in chart.iter("line") if "whisker" in line.get("class")]
    assert all(LEFT_MARGIN < float(w.get("x1")) < float(w.get("x2")) < WIDTH for w in whiskers)


def test_names_from_data_stay_text() -> None:
    hostile = "</svg><script>alert(1)</script>"
    chart = parse_chart(BarChart(hostile, [BarGroup(hostile, [1.0])], [hostile], hostile, ChartAxis(hostile), hostile))
    assert {node.tag for node in chart.iter()} == {"svg", "title", "desc", "line", "text", "rect"}


def test_empty_chart_is_drawn() -> None:
    assert parse_chart(LineChart("t", [ChartSeries("a", [1], [NAN])], ChartAxis("x"), ChartAxis("y"))) is not None
    assert parse_chart(BarChart("t", [BarGroup("a", [0.0])], ["x"], "x", ChartAxis("y"))) is not None
