"""Elements of charts: scales, frames, markers, round numbers."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wsabie.workflows.charts.html_markup import Markup, build_element, join_markup

WIDTH, HEIGHT = 360, 236
"""Units of the drawing; the page scales it to the available room."""

LEFT, RIGHT, TOP, BOTTOM = 44, 12, 24, 38
MARKERS = ("circle", "square", "triangle", "diamond", "ring", "cross")


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
    ticks: Sequence[tuple[float, str]] | None = None
    low: float | None = None
    high: float | None = None

    def marks(self, scale: "AxisScale", about: int) -> Sequence[tuple[float, str]]:
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


def build_scale(
    axis: ChartAxis, values: Sequence[float], start: float, end: float, *, whole: bool = False
) -> AxisScale:
    """Build a scale that holds all finite values; `whole` ends it at the next round number."""
    finite_values = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low = min(finite_values) if axis.low is None else axis.low
    high = max(finite_values) if axis.high is None else axis.high
    if not high > low:
        high = low + 1
    if whole and axis.high is None:
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


def draw_frame(x: ChartAxis, y: ChartAxis, across: AxisScale, up: AxisScale) -> Markup:
    """Draw grid, ticks and names of both axes."""
    floor, right = up.start, across.end
    steps = y.marks(up, 5)
    return join_markup(
        [build_element("line", x1=LEFT, x2=right, y1=up(v), y2=up(v), class_="grid") for v, _ in steps],
        [draw_tick(words, LEFT - 6, up(v) + 3.5, "end") for v, words in steps],
        [draw_tick(words, across(v), floor + 15) for v, words in x.marks(across, 6)],
        build_element("line", x1=LEFT, x2=right, y1=floor, y2=floor, class_="base"),
        build_element("text", x.name, x=(LEFT + right) / 2, y=HEIGHT - 5, class_="axis", text_anchor="middle"),
        build_element("text", y.name, x=2, y=11, class_="axis"),
    )


def draw_tick(words: str, x: float, y: float, anchor: str = "middle") -> Markup:
    """Draw the text of a mark."""
    return build_element("text", words, x=x, y=y, class_="tick", text_anchor=anchor)


def split_at_gaps(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Split points into stretches without gaps.

    Examples
    --------
    >>> split_at_gaps([(0, 1), None, (2, 3), (4, 5)])
    [[(0, 1)], [(2, 3), (4, 5)]]
    """
    stretches: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(point)
    return [stretch for stretch in stretches if stretch]


def draw_marker(x: float, y: float, style: int) -> Markup:
    """Draw the marker of a series, with its own shape and colour."""
    return _SHAPES[MARKERS[style % len(MARKERS)]](x, y, f"mark s{style}")


def draw_legend_sample(style: int) -> Markup:
    """Draw a piece of a line with its marker, 30 x 12, for legends; -1 is a limit."""
    if style < 0:
        return build_element("line", x1=1, x2=29, y1=6, y2=6, class_="limit")
    line = build_element("line", x1=1, x2=29, y1=6, y2=6, class_=f"line s{style}")
    return join_markup(line, draw_marker(15, 6, style))


def build_svg(
    title: str, description: str, *parts: object, height: float = HEIGHT, width: float = WIDTH, **attributes: Any
) -> Markup:
    """Build the complete drawing, with a text alternative."""
    return build_element(
        "svg",
        build_element("title", title),
        build_element("desc", description) if description else None,
        parts,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=f"{title}. {description}".strip(),
        class_="chart",
        **attributes,
    )


def _polygon(corners: Sequence[tuple[float, float]]) -> Callable[[float, float, str], Markup]:
    def draw(x: float, y: float, kind: str) -> Markup:
        points = " ".join(f"{round(x + dx, 2)},{round(y + dy, 2)}" for dx, dy in corners)
        return build_element("polygon", points=points, class_=kind)

    return draw


_PLUS = [(-3, -1), (-1, -1), (-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1), (1, 3), (-1, 3), (-1, 1), (-3, 1)]
_SHAPES: dict[str, Callable[[float, float, str], Markup]] = {
    "circle": lambda x, y, kind: build_element("circle", cx=x, cy=y, r=3.2, class_=kind),
    "square": _polygon([(-2.8, -2.8), (2.8, -2.8), (2.8, 2.8), (-2.8, 2.8)]),
    "triangle": _polygon([(0, -3.8), (3.6, 2.8), (-3.6, 2.8)]),
    "diamond": _polygon([(0, -4), (4, 0), (0, 4), (-4, 0)]),
    "ring": lambda x, y, kind: build_element("circle", cx=x, cy=y, r=2.8, class_=f"{kind} hollow"),
    "cross": _polygon(_PLUS),
}
