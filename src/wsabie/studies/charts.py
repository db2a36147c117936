"""Charts as inline SVG that scale to a phone, follow the page's colours in light and dark, and need no script.

Colours are CSS classes (`s0`, `s1` ...) and markers differ in shape too, so that nobody has to tell series apart
by colour alone. Every chart says in words what it shows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wsabie.studies.html import svg
from wsabie.studies.html.markup import Markup, element, join
from wsabie.studies.html.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Scale


@dataclass(frozen=True)
class Series:
    """One line.

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


class Bars(NamedTuple):
    """Bars of one kind, one value per category."""

    name: str
    values: Sequence[float]
    style: int = 0


class Span(NamedTuple):
    """A value with its interval, one row of `interval_chart`."""

    name: str
    value: float
    low: float
    high: float


def line_chart(series: Sequence[Series], x: Axis, y: Axis, *, title: str, description: str = "") -> Markup:
    """Lines over a common axis.

    Examples
    --------
    >>> chart = line_chart([Series("loss", [1, 2], [0.9, 0.4])], Axis("epoch"), Axis("loss"), title="Loss")
    >>> chart.startswith("<svg"), "polyline" in chart
    (True, True)
    """
    across = svg.scale(x, [v for s in series for v in s.x], LEFT, WIDTH - RIGHT)
    values = [v for s in series for part in (s.y, s.low or (), s.high or ()) for v in part]
    up = svg.scale(y, values, HEIGHT - BOTTOM, TOP, whole=True)
    bands = [_band(s, across, up) for s in series if s.low is not None]
    lines = [_line(s, across, up) for s in reversed(series)]  # the first is drawn on top
    return svg.drawing(title, description, svg.frame(x, y, across, up), bands, lines)


def bar_chart(
    groups: Sequence[Bars], categories: Sequence[str], x: str, y: Axis, *, title: str, description: str = ""
) -> Markup:
    """Bars side by side in each category.

    Examples
    --------
    >>> bar_chart([Bars("n", [3, 1])], ["a", "b"], "kind", Axis("count"), title="Kinds").count("<rect")
    2
    """
    values = [v for group in groups for v in group.values]
    up = svg.scale(y._replace(low=0.0), values, HEIGHT - BOTTOM, TOP, whole=True)
    across = Scale(-0.5, len(categories) - 0.5, LEFT, WIDTH - RIGHT)
    room = (WIDTH - LEFT - RIGHT) / max(len(categories), 1) * 0.76
    width = room / max(len(groups), 1)
    bars = [
        _bar(across(i) - room / 2 + g * width, width, up, value, f"{group.name}, {name}", group.style)
        for g, group in enumerate(groups)
        for i, (name, value) in enumerate(zip(categories, group.values, strict=True))
        if math.isfinite(value)
    ]
    every = math.ceil(len(categories) / 9)
    marks = [(float(i), name) for i, name in enumerate(categories) if i % every == 0]
    return svg.drawing(title, description, svg.frame(Axis(x, marks), y, across, up), bars)


def interval_chart(spans: Sequence[Span], x: str, *, title: str, description: str = "") -> Markup:
    """Values with intervals, one below the other, and a line at zero.

    Examples
    --------
    >>> interval_chart([Span("p@1", 0.1, 0.05, 0.15)], "difference", title="t").count("<circle")
    1
    """
    top, step, left = 6, 26, 74
    floor = top + step * len(spans) + 4
    ends = [v for s in spans for v in (s.low, s.high, 0.0) if math.isfinite(v)]
    axis = Axis(x, [(v, svg.short(v)) for v in svg.round_numbers(min(ends), max(ends), 5, outwards=True)])
    across = svg.scale(axis, [v for v, _ in axis.ticks or ()], left, WIDTH - RIGHT)
    rows = [_span(s, top + step * (i + 0.5), across, left) for i, s in enumerate(spans)]
    marks = [
        join(
            element("line", x1=across(v), x2=across(v), y1=top, y2=floor, class_="grid" if v else "zero"),
            svg.tick(words, across(v), floor + 14),
        )
        for v, words in axis.marks(across, 4)
    ]
    middle, height = (left + WIDTH - RIGHT) / 2, floor + BOTTOM
    name = element("text", x, x=middle, y=height - 5, class_="axis", text_anchor="middle")
    return svg.drawing(title, description, marks, rows, name, height=height)


def legend(entries: Sequence[tuple[str, int]], *, bars: bool = False) -> Markup:
    """Names of series (name, style) with a sample of each, as HTML that wraps."""
    width = 12 if bars else 30
    items = [
        element(
            "li",
            element(
                "svg",
                element("rect", x=1, y=1, width=10, height=10, rx=2, class_=f"bar s{style}")
                if bars
                else svg.sample(style),
                viewBox=f"0 0 {width} 12",
                width=width,
                height=12,
                aria_hidden="true",
            ),
            element("span", name),
        )
        for name, style in entries
    ]
    return element("ul", items, class_="legend")


def _line(series: Series, across: Scale, up: Scale) -> Markup:
    pairs = zip(series.x, series.y, strict=True)
    points = [(across(x), up(y)) if math.isfinite(y) else None for x, y in pairs]
    kind = "limit" if series.style < 0 else f"line s{series.style}"
    lines = [
        element("polyline", points=" ".join(f"{x},{y}" for x, y in run), class_=kind)
        for run in svg.runs(points)
        if len(run) > 1
    ]
    if series.style < 0:
        return join(lines)
    return join(lines, [svg.marker(x, y, series.style) for x, y in _apart(points)])


def _apart(points: Sequence[tuple[float, float] | None], gap: float = 11.0) -> list[tuple[float, float]]:
    """Points for markers: so far apart that they do not touch; every lonely point is shown."""
    shown: list[tuple[float, float]] = []
    for point in points:
        if point is not None and (not shown or point[0] - shown[-1][0] >= gap):
            shown.append(point)
    return shown


def _band(series: Series, across: Scale, up: Scale) -> Markup:
    bounds = zip(series.x, series.low or (), series.high or (), strict=True)
    known = [(x, lo, hi) for x, lo, hi in bounds if math.isfinite(lo) and math.isfinite(hi)]
    outline = [(x, hi) for x, _, hi in known] + [(x, lo) for x, lo, _ in reversed(known)]
    points = " ".join(f"{across(x)},{up(y)}" for x, y in outline)
    return element("polygon", points=points, class_=f"band s{series.style}")


def _bar(x: float, width: float, up: Scale, value: float, words: str, style: int) -> Markup:
    top = up(min(value, up.high))
    return element(
        "rect",
        element("title", f"{words}: {value:g}"),
        x=round(x + 0.5, 2),
        y=top,
        width=round(max(width - 1, 1), 2),
        height=round(max(up.start - top, 0), 2),
        rx=1.5,
        class_=f"bar s{style}",
    )


def _span(span: Span, y: float, across: Scale, left: float) -> Markup:
    style = "sure" if span.low > 0 or span.high < 0 else "unsure"
    words = f"{span.name}: {span.value:+.3f}, from {span.low:+.3f} to {span.high:+.3f}"
    return join(
        svg.tick(span.name, left - 8, y + 4, "end"),
        element("line", x1=across(span.low), x2=across(span.high), y1=y, y2=y, class_=f"whisker {style}"),
        element("circle", element("title", words), cx=across(span.value), cy=y, r=4.5, class_=f"dot {style}"),
    )
