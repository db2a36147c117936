"""Charts: lines, bars and intervals, with the geometry that the templates of SVG read.

`report/templates/charts.svg` draws them, because a page inlines them: they scale to a phone, follow light and dark mode
by CSS classes (`s0`, `s1` ...), need no script, and hold text as text. docs/decisions/report-pages.md compares
Matplotlib and Altair. Markers differ in shape too, so that series can be told apart without colour. Every chart has a
description in words.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, NamedTuple

WIDTH, HEIGHT = 360, 236
"""Units of the drawing; the page scales it to the available room."""
COLOURS = ("#0b6e69", "#cc5a1e", "#5a55c9", "#8a6a00", "#b8336f", "#4d5560")
INK, SOFT, LINE, PAPER = "#1d1c1a", "#5c5952", "#e4e0d7", "#ffffff"
HEAD, TEXT_SIZE, HEADING_SIZE = 22, 11, 13
"""Height of a title above its chart, and sizes of texts."""
LEFT_MARGIN, RIGHT_MARGIN, TOP_MARGIN, BOTTOM_MARGIN = 44, 12, 24, 38
_SPAN_LEFT, _SPAN_TOP, _SPAN_STEP = 74, 6, 26
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


class Bar(NamedTuple):
    """A drawn bar: its rectangle, its text and the number of its colour."""

    x: float
    y: float
    width: float
    height: float
    words: str
    style: int


class IntervalSpan(NamedTuple):
    """A value with its interval, one row of an `IntervalChart`."""

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
        Values and their texts; None chooses round numbers.
    low, high : float or None
        Ends; None takes those of the data.
    """

    name: str
    ticks: Ticks | None = None
    low: float | None = None
    high: float | None = None

    def choose_ticks(self, scale: "AxisScale", about: int) -> Ticks:
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


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis."""

    title: str
    series: Sequence[ChartSeries]
    x: ChartAxis
    y: ChartAxis
    description: str = ""
    kind: ClassVar = "lines"
    height: ClassVar = HEIGHT

    @property
    def across(self) -> AxisScale:
        values = [value for line in self.series for value in line.x]
        return build_scale(self.x, values, LEFT_MARGIN, WIDTH - RIGHT_MARGIN)

    @property
    def up(self) -> AxisScale:
        values = [value for line in self.series for part in (line.y, line.low or (), line.high or ()) for value in part]
        return build_scale(self.y, values, HEIGHT - BOTTOM_MARGIN, TOP_MARGIN, ends_round=True)

    def points(self, line: ChartSeries, across: AxisScale, up: AxisScale) -> list[Point | None]:
        """Return the points of a line; None for a gap."""
        return [(across(x), up(y)) if math.isfinite(y) else None for x, y in zip(line.x, line.y, strict=True)]

    def band(self, line: ChartSeries, across: AxisScale, up: AxisScale) -> list[Point]:
        """Return the outline of the band around a line."""
        bounds = zip(line.x, line.low or (), line.high or (), strict=True)
        finite_bounds = [(x, low, high) for x, low, high in bounds if math.isfinite(low) and math.isfinite(high)]
        outline = [(x, high) for x, _, high in finite_bounds] + [(x, low) for x, low, _ in reversed(finite_bounds)]
        return [(across(x), up(y)) for x, y in outline]


@dataclass(frozen=True)
class BarChart:
    """Bars side by side in each category."""

    title: str
    series: Sequence[BarGroup]
    categories: Sequence[str]
    axis: str
    y: ChartAxis
    description: str = ""
    kind: ClassVar = "bars"
    height: ClassVar = HEIGHT

    @property
    def x(self) -> ChartAxis:
        return ChartAxis(self.axis, [*enumerate(self.categories)][:: math.ceil(len(self.categories) / 9)])

    @property
    def across(self) -> AxisScale:
        return AxisScale(-0.5, len(self.categories) - 0.5, LEFT_MARGIN, WIDTH - RIGHT_MARGIN)

    @property
    def up(self) -> AxisScale:
        values = [value for group in self.series for value in group.values]
        return build_scale(self.y._replace(low=0.0), values, HEIGHT - BOTTOM_MARGIN, TOP_MARGIN, ends_round=True)

    def bars(self, across: AxisScale, up: AxisScale) -> Iterator[Bar]:
        """Yield the bars of all values but NaN."""
        room = (WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / max(len(self.categories), 1) * 0.76
        width = room / max(len(self.series), 1)
        for number, group in enumerate(self.series):
            for category, (name, value) in enumerate(zip(self.categories, group.values, strict=True)):
                if math.isfinite(value):
                    left, top = across(category) - room / 2 + number * width, up(min(value, up.high))
                    sides = round(max(width - 1, 1), 2), round(max(up.start - top, 0), 2)
                    yield Bar(round(left + 0.5, 2), top, *sides, f"{group.name}, {name}: {value:g}", group.style)


@dataclass(frozen=True)
class IntervalChart:
    """Values with intervals, one below the other, and a line at zero."""

    title: str
    spans: Sequence[IntervalSpan]
    axis: str
    description: str = ""
    kind: ClassVar = "intervals"
    top: ClassVar = _SPAN_TOP

    @property
    def floor(self) -> float:
        return _SPAN_TOP + _SPAN_STEP * len(self.spans) + 4

    @property
    def height(self) -> float:
        return self.floor + BOTTOM_MARGIN

    @property
    def ticks(self) -> list[float]:
        ends = [end for span in self.spans for end in (span.low, span.high, 0.0) if math.isfinite(end)]
        return list_round_numbers(min(ends), max(ends), 5, outwards=True)

    @property
    def across(self) -> AxisScale:
        return build_scale(ChartAxis(self.axis), self.ticks, _SPAN_LEFT, WIDTH - RIGHT_MARGIN)

    def rows(self) -> list[tuple[float, IntervalSpan]]:
        """Return the values with their heights."""
        return [(_SPAN_TOP + _SPAN_STEP * (number + 0.5), span) for number, span in enumerate(self.spans)]


Chart = LineChart | BarChart | IntervalChart


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
    stretches = groupby(points, lambda point: point is not None)
    return [[point for point in stretch if point] for is_line, stretch in stretches if is_line]


def space_markers(points: Sequence[Point | None], gap: float = 11.0) -> list[Point]:
    """Return marker points that do not touch; every isolated point stays."""
    markers: list[Point] = []
    for point in points:
        if point is not None and (not markers or point[0] - markers[-1][0] >= gap):
            markers.append(point)
    return markers


def place_marker(style: int, x: float, y: float) -> list[Point]:
    """Return the corners of the marker of a series; empty for a circle."""
    return [(x + dx, y + dy) for dx, dy in _POLYGONS.get(MARKERS[style % len(MARKERS)], ())]
