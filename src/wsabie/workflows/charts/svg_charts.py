"""Charts as SVG elements: lines, bars, intervals and parallel coordinates.

Drawn here because a page inlines them: they scale to a phone, follow light and dark mode by CSS classes (`s0`, `s1`
...), need no script, and hold text as text. docs/decisions/report-pages.md compares Matplotlib and Altair. Markers
differ in shape too, so that series can be told apart without colour. Every chart has a description in words.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, tostring

WIDTH, HEIGHT = 360, 236
"""Units of the drawing; the page scales it to the available room."""
LEFT_MARGIN, RIGHT_MARGIN, TOP_MARGIN, BOTTOM_MARGIN = 44, 12, 24, 38
_SPAN_LEFT, _SPAN_TOP, _SPAN_STEP = 74, 6, 26
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_POLYGONS: dict[str, list[tuple[float, float]]] = {
    "square": [(-2.8, -2.8), (2.8, -2.8), (2.8, 2.8), (-2.8, 2.8)],
    "triangle": [(0, -3.8), (3.6, 2.8), (-3.6, 2.8)],
    "diamond": [(0, -4), (4, 0), (0, 4), (-4, 0)],
    "cross": [
        *[(-3, -1), (-1, -1), (-1, -3), (1, -3), (1, -1), (3, -1)],
        *[(3, 1), (1, 1), (1, 3), (-1, 3), (-1, 1), (-3, 1)],
    ],
}
MARKERS = ("circle", "square", "triangle", "diamond", "ring", "cross")

Point = tuple[float, float]
Ticks = Sequence[tuple[float, str]]


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


class ChartAxis(NamedTuple):
    """An axis of a chart.

    Attributes
    ----------
    name : str
        Quantity with its unit.
    ticks : sequence of (float, str) or None
        Marks and their texts; None chooses round numbers.
    low, high : float or None
        Ends; None takes those of the data.
    """

    name: str
    ticks: Ticks | None = None
    low: float | None = None
    high: float | None = None

    def marks(self, scale: "AxisScale", about: int) -> Ticks:
        """Return the ticks, or round numbers between the ends."""
        return self.ticks or [(v, format_tick(v)) for v in list_round_numbers(scale.low, scale.high, about)]


class AxisScale(NamedTuple):
    """A scale that maps values low..high to start..end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 2)


def draw_line_chart(
    series: Sequence[ChartSeries], x: ChartAxis, y: ChartAxis, *, title: str, description: str = ""
) -> Element:
    """Draw lines over a common axis.

    Examples
    --------
    >>> series = [ChartSeries("loss", [1, 2], [0.9, 0.4])]
    >>> chart = draw_line_chart(series, ChartAxis("epoch"), ChartAxis("loss"), title="Loss")
    >>> chart.tag, len(chart.findall("polyline"))
    ('svg', 1)
    """
    across = build_scale(x, [value for line in series for value in line.x], LEFT_MARGIN, WIDTH - RIGHT_MARGIN)
    values = [value for line in series for part in (line.y, line.low or (), line.high or ()) for value in part]
    up = build_scale(y, values, HEIGHT - BOTTOM_MARGIN, TOP_MARGIN, ends_round=True)
    chart = start_chart(title, description)
    chart.extend(_draw_frame(x, y, across, up))
    chart.extend(_draw_band(line, across, up) for line in series if line.low is not None)
    for line in reversed(series):  # the first line ends up on top
        chart.extend(_draw_line(line, across, up))
    return chart


def draw_bar_chart(
    groups: Sequence[BarGroup], categories: Sequence[str], x: str, y: ChartAxis, *, title: str, description: str = ""
) -> Element:
    """Draw bars side by side in each category.

    Examples
    --------
    >>> chart = draw_bar_chart([BarGroup("n", [3, 1])], ["a", "b"], "kind", ChartAxis("count"), title="Kinds")
    >>> len(chart.findall("rect"))
    2
    """
    values = [value for group in groups for value in group.values]
    up = build_scale(y._replace(low=0.0), values, HEIGHT - BOTTOM_MARGIN, TOP_MARGIN, ends_round=True)
    across = AxisScale(-0.5, len(categories) - 0.5, LEFT_MARGIN, WIDTH - RIGHT_MARGIN)
    room = (WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / max(len(categories), 1) * 0.76
    width = room / max(len(groups), 1)
    every = math.ceil(len(categories) / 9)
    chart = start_chart(title, description)
    chart.extend(_draw_frame(ChartAxis(x, [*enumerate(categories)][::every]), y, across, up))
    for number, group in enumerate(groups):
        for category, (name, value) in enumerate(zip(categories, group.values, strict=True)):
            if math.isfinite(value):
                left, words = across(category) - room / 2 + number * width, f"{group.name}, {name}: {value:g}"
                chart.append(_draw_bar(left, width, up.start, up(min(value, up.high)), words, group.style))
    return chart


def draw_interval_chart(spans: Sequence[IntervalSpan], x: str, *, title: str, description: str = "") -> Element:
    """Draw values with intervals, one below the other, and a line at zero.

    Examples
    --------
    >>> chart = draw_interval_chart([IntervalSpan("p@1", 0.1, 0.05, 0.15)], "difference", title="t")
    >>> len(chart.findall("circle"))
    1
    """
    floor, right = _SPAN_TOP + _SPAN_STEP * len(spans) + 4, WIDTH - RIGHT_MARGIN
    ends = [end for span in spans for end in (span.low, span.high, 0.0) if math.isfinite(end)]
    marks = list_round_numbers(min(ends), max(ends), 5, outwards=True)
    across = build_scale(ChartAxis(x), marks, _SPAN_LEFT, right)
    height = floor + BOTTOM_MARGIN
    chart = start_chart(title, description, height=height)
    for mark in marks:
        kind = "grid" if mark else "zero"
        chart.append(make_element("line", x1=across(mark), x2=across(mark), y1=_SPAN_TOP, y2=floor, class_=kind))
        chart.append(_draw_tick(format_tick(mark), across(mark), floor + 14))
    for number, span in enumerate(spans):
        chart.extend(_draw_span(span, _SPAN_TOP + _SPAN_STEP * (number + 0.5), across))
    middle = (_SPAN_LEFT + right) / 2
    chart.append(make_element("text", text=x, x=middle, y=height - 5, class_="axis", text_anchor="middle"))
    return chart


def start_chart(title: str, description: str, *, width: float = WIDTH, height: float = HEIGHT) -> Element:
    """Make the drawing with its text alternative."""
    words = f"{title}. {description}".strip()
    chart = make_element("svg", viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=words, class_="chart")
    chart.append(make_element("title", text=title))
    if description:
        chart.append(make_element("desc", text=description))
    return chart


def draw_legend_sample(style: int, *, is_bar: bool = False) -> Element:
    """Draw a piece of a line with its marker, or of a bar, for legends; -1 is a limit."""
    width = 12 if is_bar else 30
    sample = make_element("svg", viewBox=f"0 0 {width} 12", width=width, height=12, aria_hidden="true")
    if is_bar:
        sample.append(make_element("rect", x=1, y=1, width=10, height=10, rx=2, class_=f"bar s{style}"))
        return sample
    kind = "limit" if style < 0 else f"line s{style}"
    sample.append(make_element("line", x1=1, x2=29, y1=6, y2=6, class_=kind))
    if style >= 0:
        sample.append(_draw_marker(15, 6, style))
    return sample


def format_svg(element: Element) -> str:
    """Return the SVG text of an element."""
    return replace_forbidden(tostring(element, encoding="unicode"))


def replace_forbidden(text: str) -> str:
    """Replace characters that HTML and XML forbid by U+FFFD.

    Examples
    --------
    >>> replace_forbidden("a\\x00b")
    'a�b'
    """
    return _FORBIDDEN.sub("\ufffd", text)


def make_element(tag: str, *, text: str | None = None, **attributes: Any) -> Element:
    """Make an element; a trailing underscore of an attribute is dropped, others become hyphens, None leaves it out.

    Examples
    --------
    >>> format_svg(make_element("text", text="a < b", text_anchor="end", class_="tick", x=None))
    '<text text-anchor="end" class="tick">a &lt; b</text>'
    """
    element = Element(
        tag, {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items() if value is not None}
    )
    element.text = text
    return element


def build_scale(
    axis: ChartAxis, values: Sequence[float], start: float, end: float, *, ends_round: bool = False
) -> AxisScale:
    """Build a scale that holds all finite values; `ends_round` ends it at the next round number."""
    finite_values = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low = min(finite_values) if axis.low is None else axis.low
    high = max(finite_values) if axis.high is None else axis.high
    if not high > low:
        high = low + 1
    if ends_round and axis.high is None:
        high = list_round_numbers(low, high, 5, outwards=True)[-1]
    return AxisScale(low, high, start, end)


def list_round_numbers(low: float, high: float, about: int = 5, *, outwards: bool = False) -> list[float]:
    """Return about `about` round numbers from low to high; `outwards` adds those just beyond the ends.

    Examples
    --------
    >>> list_round_numbers(0, 1, 5)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> list_round_numbers(-0.06, 0.12, 4, outwards=True)
    [-0.1, -0.05, 0.0, 0.05, 0.1, 0.15]
    >>> list_round_numbers(3, 3)
    [3.0]
    """
    if not high > low:
        return [float(low)]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(multiple * power for multiple in (1, 2, 2.5, 5, 10) if multiple * power >= raw * (1 - 1e-9))
    down, up = (math.floor, math.ceil) if outwards else (math.ceil, math.floor)
    slack = 1e-9 if outwards else -1e-9
    first, last = down(low / step + slack), up(high / step - slack)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def format_tick(value: float) -> str:
    """Format a short text for a tick.

    Examples
    --------
    >>> format_tick(20_000), format_tick(1.5e6), format_tick(-0.05)
    ('20k', '1.5M', '−0.05')
    """
    for unit, words in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{words}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def format_points(points: Iterable[Point]) -> str:
    """Format points for a line or polygon."""
    return " ".join(f"{round(x, 2)},{round(y, 2)}" for x, y in points)


def split_at_gaps(points: Sequence[Point | None]) -> list[list[Point]]:
    """Split points into stretches without gaps.

    Examples
    --------
    >>> split_at_gaps([(0, 1), None, (2, 3), (4, 5)])
    [[(0, 1)], [(2, 3), (4, 5)]]
    """
    stretches: list[list[Point]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(point)
    return [stretch for stretch in stretches if stretch]


def _draw_frame(x: ChartAxis, y: ChartAxis, across: AxisScale, up: AxisScale) -> list[Element]:
    """Draw grid, ticks and names of both axes."""
    floor, right, steps = up.start, across.end, y.marks(up, 5)
    return [
        *(make_element("line", x1=LEFT_MARGIN, x2=right, y1=up(v), y2=up(v), class_="grid") for v, _ in steps),
        *(_draw_tick(words, LEFT_MARGIN - 6, up(v) + 3.5, "end") for v, words in steps),
        *(_draw_tick(words, across(v), floor + 15) for v, words in x.marks(across, 6)),
        make_element("line", x1=LEFT_MARGIN, x2=right, y1=floor, y2=floor, class_="base"),
        make_element(
            "text", text=x.name, x=(LEFT_MARGIN + right) / 2, y=HEIGHT - 5, class_="axis", text_anchor="middle"
        ),
        make_element("text", text=y.name, x=2, y=11, class_="axis"),
    ]


def _draw_tick(words: str, x: float, y: float, anchor: str = "middle") -> Element:
    return make_element("text", text=words, x=x, y=y, class_="tick", text_anchor=anchor)


def _draw_line(series: ChartSeries, across: AxisScale, up: AxisScale) -> list[Element]:
    pairs = zip(series.x, series.y, strict=True)
    points = [(across(x), up(y)) if math.isfinite(y) else None for x, y in pairs]
    kind = "limit" if series.style < 0 else f"line s{series.style}"
    lines = [
        make_element("polyline", points=format_points(stretch), class_=kind)
        for stretch in split_at_gaps(points)
        if len(stretch) > 1
    ]
    markers = [] if series.style < 0 else [_draw_marker(x, y, series.style) for x, y in _space_markers(points)]
    return lines + markers


def _space_markers(points: Sequence[Point | None], gap: float = 11.0) -> list[Point]:
    """Return marker points that do not touch; every isolated point stays."""
    markers: list[Point] = []
    for point in points:
        if point is not None and (not markers or point[0] - markers[-1][0] >= gap):
            markers.append(point)
    return markers


def _draw_marker(x: float, y: float, style: int) -> Element:
    """Draw the marker of a series, with its own shape and colour."""
    shape, kind = MARKERS[style % len(MARKERS)], f"mark s{style}"
    if shape == "circle":
        return make_element("circle", cx=x, cy=y, r=3.2, class_=kind)
    if shape == "ring":
        return make_element("circle", cx=x, cy=y, r=2.8, class_=f"{kind} hollow")
    return make_element("polygon", points=format_points((x + dx, y + dy) for dx, dy in _POLYGONS[shape]), class_=kind)


def _draw_band(series: ChartSeries, across: AxisScale, up: AxisScale) -> Element:
    bounds = zip(series.x, series.low or (), series.high or (), strict=True)
    finite_bounds = [(x, low, high) for x, low, high in bounds if math.isfinite(low) and math.isfinite(high)]
    outline = [(x, high) for x, _, high in finite_bounds] + [(x, low) for x, low, _ in reversed(finite_bounds)]
    points = format_points((across(x), up(y)) for x, y in outline)
    return make_element("polygon", points=points, class_=f"band s{series.style}")


def _draw_bar(left: float, width: float, floor: float, top: float, words: str, style: int) -> Element:
    bar = make_element(
        "rect",
        x=round(left + 0.5, 2),
        y=top,
        width=round(max(width - 1, 1), 2),
        height=round(max(floor - top, 0), 2),
        rx=1.5,
        class_=f"bar s{style}",
    )
    bar.append(make_element("title", text=words))
    return bar


def _draw_span(span: IntervalSpan, y: float, across: AxisScale) -> list[Element]:
    style = "sure" if span.low > 0 or span.high < 0 else "unsure"
    dot = make_element("circle", cx=across(span.value), cy=y, r=4.5, class_=f"dot {style}")
    words = f"{span.name}: {span.value:+.3f}, from {span.low:+.3f} to {span.high:+.3f}"
    dot.append(make_element("title", text=words))
    return [
        _draw_tick(span.name, _SPAN_LEFT - 8, y + 4, "end"),
        make_element("line", x1=across(span.low), x2=across(span.high), y1=y, y2=y, class_=f"whisker {style}"),
        dot,
    ]
