"""The parts that charts are drawn from: scales, frames, markers, round numbers."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wsabie.studies.html.markup import Markup, element, join

WIDTH, HEIGHT = 360, 236
"""Units of the drawing; the page scales it to the room there is."""

LEFT, RIGHT, TOP, BOTTOM = 44, 12, 24, 38
MARKERS = ("circle", "square", "triangle", "diamond", "ring", "cross")


class Axis(NamedTuple):
    """What stands along an axis.

    Attributes
    ----------
    name : str
        What is measured, with its unit.
    ticks : sequence of (float, str) or None
        Marks and their texts; None chooses round numbers.
    low, high : float or None
        Ends; None takes those of the data.
    """

    name: str
    ticks: Sequence[tuple[float, str]] | None = None
    low: float | None = None
    high: float | None = None

    def marks(self, scale: "Scale", about: int) -> Sequence[tuple[float, str]]:
        """The ticks, or round numbers between the ends."""
        return self.ticks or [(v, short(v)) for v in round_numbers(scale.low, scale.high, about)]


class Scale(NamedTuple):
    """Values low..high laid along start..end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 2)


def scale(axis: Axis, values: Sequence[float], start: float, end: float, *, whole: bool = False) -> Scale:
    """A scale that holds all finite values; `whole` ends it at the next round number."""
    known = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
    low = min(known) if axis.low is None else axis.low
    high = max(known) if axis.high is None else axis.high
    if not high > low:
        high = low + 1
    if whole and axis.high is None:
        high = round_numbers(low, high, 5, outwards=True)[-1]
    return Scale(low, high, start, end)


def round_numbers(low: float, high: float, about: int = 5, *, outwards: bool = False) -> list[float]:
    """Round numbers from low to high, roughly as many as asked for; `outwards` adds those just beyond the ends.

    Examples
    --------
    >>> round_numbers(0, 1, 5)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> round_numbers(-0.06, 0.12, 4, outwards=True)
    [-0.1, -0.05, 0.0, 0.05, 0.1, 0.15]
    >>> round_numbers(3, 3)
    [3.0]
    """
    if not high > low:
        return [float(low)]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - 1e-9))
    down, up = (math.floor, math.ceil) if outwards else (math.ceil, math.floor)
    slack = 1e-9 if outwards else -1e-9
    first, last = down(low / step + slack), up(high / step - slack)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def short(value: float) -> str:
    """Short text for a tick.

    Examples
    --------
    >>> short(20_000), short(1.5e6), short(-0.05)
    ('20k', '1.5M', '−0.05')
    """
    for unit, words in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{words}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def frame(x: Axis, y: Axis, across: Scale, up: Scale) -> Markup:
    """Grid, ticks and names of both axes."""
    floor, right = up.start, across.end
    steps = y.marks(up, 5)
    return join(
        [element("line", x1=LEFT, x2=right, y1=up(v), y2=up(v), class_="grid") for v, _ in steps],
        [tick(words, LEFT - 6, up(v) + 3.5, "end") for v, words in steps],
        [tick(words, across(v), floor + 15) for v, words in x.marks(across, 6)],
        element("line", x1=LEFT, x2=right, y1=floor, y2=floor, class_="base"),
        element("text", x.name, x=(LEFT + right) / 2, y=HEIGHT - 5, class_="axis", text_anchor="middle"),
        element("text", y.name, x=2, y=11, class_="axis"),
    )


def tick(words: str, x: float, y: float, anchor: str = "middle") -> Markup:
    """The text of a mark."""
    return element("text", words, x=x, y=y, class_="tick", text_anchor=anchor)


def runs(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Stretches without gaps.

    Examples
    --------
    >>> runs([(0, 1), None, (2, 3), (4, 5)])
    [[(0, 1)], [(2, 3), (4, 5)]]
    """
    found: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            found.append([])
        else:
            found[-1].append(point)
    return [run for run in found if run]


def marker(x: float, y: float, style: int) -> Markup:
    """The mark of a series: its own shape and colour."""
    return _SHAPES[MARKERS[style % len(MARKERS)]](x, y, f"mark s{style}")


def sample(style: int) -> Markup:
    """A piece of a line with its marker, 30 x 12, for legends; -1 is a limit."""
    if style < 0:
        return element("line", x1=1, x2=29, y1=6, y2=6, class_="limit")
    line = element("line", x1=1, x2=29, y1=6, y2=6, class_=f"line s{style}")
    return join(line, marker(15, 6, style))


def drawing(
    title: str, description: str, *parts: object, height: float = HEIGHT, width: float = WIDTH, **attributes: Any
) -> Markup:
    """The whole drawing, with its words for those who cannot see it."""
    return element(
        "svg",
        element("title", title),
        element("desc", description) if description else None,
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
        return element("polygon", points=points, class_=kind)

    return draw


_PLUS = [(-3, -1), (-1, -1), (-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1), (1, 3), (-1, 3), (-1, 1), (-3, 1)]
_SHAPES: dict[str, Callable[[float, float, str], Markup]] = {
    "circle": lambda x, y, kind: element("circle", cx=x, cy=y, r=3.2, class_=kind),
    "square": _polygon([(-2.8, -2.8), (2.8, -2.8), (2.8, 2.8), (-2.8, 2.8)]),
    "triangle": _polygon([(0, -3.8), (3.6, 2.8), (-3.6, 2.8)]),
    "diamond": _polygon([(0, -4), (4, 0), (0, 4), (-4, 0)]),
    "ring": lambda x, y, kind: element("circle", cx=x, cy=y, r=2.8, class_=f"{kind} hollow"),
    "cross": _polygon(_PLUS),
}
