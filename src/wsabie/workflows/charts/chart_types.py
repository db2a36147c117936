"""Charts as inline SVG that scale to a phone, follow light and dark mode, and need no script.

Colours are CSS classes (`s0`, `s1` ...). Markers differ in shape too, so that series can be told apart without colour.
Every chart has a description in words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wsabie.workflows.charts import svg_elements
from wsabie.workflows.charts.html_markup import Markup, build_element, join_markup
from wsabie.workflows.charts.svg_elements import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, AxisScale, ChartAxis


@dataclass(frozen=True)
class ChartSeries:
    """One line of a chart.

    Attributes
    ----------
    name : str
    x, y : sequence of float
        A NaN breaks the line.
    low, high : sequence of float or None
        A band around it.
    style : int
        Number of its colour and marker; -1 is a dashed line without markers, for limits.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    style: int = 0


class BarGroup(NamedTuple):
    """Bars of one kind, one value per category."""

    name: str
    values: Sequence[float]
    style: int = 0


class IntervalSpan(NamedTuple):
    """A value with its interval, one row of `draw_interval_chart`."""

    name: str
    value: float
    low: float
    high: float


def draw_line_chart(
    series: Sequence[ChartSeries], x: ChartAxis, y: ChartAxis, *, title: str, description: str = ""
) -> Markup:
    """Draw lines over a common axis.

    Examples
    --------
    >>> series = [ChartSeries("loss", [1, 2], [0.9, 0.4])]
    >>> chart = draw_line_chart(series, ChartAxis("epoch"), ChartAxis("loss"), title="Loss")
    >>> chart.startswith("<svg"), "polyline" in chart
    (True, True)
    """
    across = svg_elements.build_scale(
        x, [value for line_series in series for value in line_series.x], LEFT, WIDTH - RIGHT
    )
    values = [
        value
        for line_series in series
        for part in (line_series.y, line_series.low or (), line_series.high or ())
        for value in part
    ]
    up = svg_elements.build_scale(y, values, HEIGHT - BOTTOM, TOP, whole=True)
    bands = [_draw_band(line_series, across, up) for line_series in series if line_series.low is not None]
    lines = [_draw_line(line_series, across, up) for line_series in reversed(series)]  # the first line ends up on top
    return svg_elements.build_svg(title, description, svg_elements.draw_frame(x, y, across, up), bands, lines)


def draw_bar_chart(
    groups: Sequence[BarGroup], categories: Sequence[str], x: str, y: ChartAxis, *, title: str, description: str = ""
) -> Markup:
    """Draw bars side by side in each category.

    Examples
    --------
    >>> draw_bar_chart([BarGroup("n", [3, 1])], ["a", "b"], "kind", ChartAxis("count"), title="Kinds").count("<rect")
    2
    """
    values = [bar_value for group in groups for bar_value in group.values]
    up = svg_elements.build_scale(y._replace(low=0.0), values, HEIGHT - BOTTOM, TOP, whole=True)
    across = AxisScale(-0.5, len(categories) - 0.5, LEFT, WIDTH - RIGHT)
    room = (WIDTH - LEFT - RIGHT) / max(len(categories), 1) * 0.76
    width = room / max(len(groups), 1)
    bars = [
        _draw_bar(
            across(category_number) - room / 2 + group_number * width,
            width,
            up,
            value,
            f"{group.name}, {name}",
            group.style,
        )
        for group_number, group in enumerate(groups)
        for category_number, (name, value) in enumerate(zip(categories, group.values, strict=True))
        if math.isfinite(value)
    ]
    every = math.ceil(len(categories) / 9)
    marks = [
        (float(category_number), name)
        for category_number, name in enumerate(categories)
        if category_number % every == 0
    ]
    return svg_elements.build_svg(title, description, svg_elements.draw_frame(ChartAxis(x, marks), y, across, up), bars)


def draw_interval_chart(spans: Sequence[IntervalSpan], x: str, *, title: str, description: str = "") -> Markup:
    """Draw values with intervals, one below the other, and a line at zero.

    Examples
    --------
    >>> draw_interval_chart([IntervalSpan("p@1", 0.1, 0.05, 0.15)], "difference", title="t").count("<circle")
    1
    """
    top, step, plot_left = 6, 26, 74
    floor = top + step * len(spans) + 4
    ends = [tick for span in spans for tick in (span.low, span.high, 0.0) if math.isfinite(tick)]
    axis = ChartAxis(
        x,
        [
            (tick, svg_elements.format_tick(tick))
            for tick in svg_elements.list_round_numbers(min(ends), max(ends), 5, outwards=True)
        ],
    )
    across = svg_elements.build_scale(axis, [tick for tick, _ in axis.ticks or ()], plot_left, WIDTH - RIGHT)
    rows = [_draw_span(span, top + step * (i + 0.5), across, plot_left) for i, span in enumerate(spans)]
    marks = [
        join_markup(
            build_element(
                "line", x1=across(tick), x2=across(tick), y1=top, y2=floor, class_="grid" if tick else "zero"
            ),
            svg_elements.draw_tick(words, across(tick), floor + 14),
        )
        for tick, words in axis.marks(across, 4)
    ]
    middle, height = (plot_left + WIDTH - RIGHT) / 2, floor + BOTTOM
    name = build_element("text", x, x=middle, y=height - 5, class_="axis", text_anchor="middle")
    return svg_elements.build_svg(title, description, marks, rows, name, height=height)


def draw_legend(entries: Sequence[tuple[str, int]], *, bars: bool = False) -> Markup:
    """Draw names of series (name, style) with a sample of each, as HTML that wraps."""
    width = 12 if bars else 30
    items = [
        build_element(
            "li",
            build_element(
                "svg",
                build_element("rect", x=1, y=1, width=10, height=10, rx=2, class_=f"bar s{style}")
                if bars
                else svg_elements.draw_legend_sample(style),
                viewBox=f"0 0 {width} 12",
                width=width,
                height=12,
                aria_hidden="true",
            ),
            build_element("span", name),
        )
        for name, style in entries
    ]
    return build_element("ul", items, class_="legend")


def _draw_line(series: ChartSeries, across: AxisScale, up: AxisScale) -> Markup:
    pairs = zip(series.x, series.y, strict=True)
    points = [(across(x), up(y)) if math.isfinite(y) else None for x, y in pairs]
    kind = "limit" if series.style < 0 else f"line s{series.style}"
    lines = [
        build_element("polyline", points=" ".join(f"{x},{y}" for x, y in run), class_=kind)
        for run in svg_elements.split_at_gaps(points)
        if len(run) > 1
    ]
    if series.style < 0:
        return join_markup(lines)
    return join_markup(lines, [svg_elements.draw_marker(x, y, series.style) for x, y in _space_markers(points)])


def _space_markers(points: Sequence[tuple[float, float] | None], gap: float = 11.0) -> list[tuple[float, float]]:
    """Return marker points that do not touch; every isolated point stays."""
    markers: list[tuple[float, float]] = []
    for point in points:
        if point is not None and (not markers or point[0] - markers[-1][0] >= gap):
            markers.append(point)
    return markers


def _draw_band(series: ChartSeries, across: AxisScale, up: AxisScale) -> Markup:
    bounds = zip(series.x, series.low or (), series.high or (), strict=True)
    finite_bounds = [(x, low, high) for x, low, high in bounds if math.isfinite(low) and math.isfinite(high)]
    outline = [(x, high) for x, _, high in finite_bounds] + [(x, low) for x, low, _ in reversed(finite_bounds)]
    points = " ".join(f"{across(x)},{up(y)}" for x, y in outline)
    return build_element("polygon", points=points, class_=f"band s{series.style}")


def _draw_bar(x: float, width: float, up: AxisScale, value: float, words: str, style: int) -> Markup:
    top = up(min(value, up.high))
    return build_element(
        "rect",
        build_element("title", f"{words}: {value:g}"),
        x=round(x + 0.5, 2),
        y=top,
        width=round(max(width - 1, 1), 2),
        height=round(max(up.start - top, 0), 2),
        rx=1.5,
        class_=f"bar s{style}",
    )


def _draw_span(span: IntervalSpan, y: float, across: AxisScale, plot_left: float) -> Markup:
    style = "sure" if span.low > 0 or span.high < 0 else "unsure"
    words = f"{span.name}: {span.value:+.3f}, from {span.low:+.3f} to {span.high:+.3f}"
    return join_markup(
        svg_elements.draw_tick(span.name, plot_left - 8, y + 4, "end"),
        build_element("line", x1=across(span.low), x2=across(span.high), y1=y, y2=y, class_=f"whisker {style}"),
        build_element(
            "circle", build_element("title", words), cx=across(span.value), cy=y, r=4.5, class_=f"dot {style}"
        ),
    )
