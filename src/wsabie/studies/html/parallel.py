"""Parallel coordinates: an axis per parameter, a line per setting, as an SVG that needs no style sheet.

The better a line, the darker and the thicker it is and the later it is drawn; those that were stopped are dashed. So
the drawing can be read in grey, too. It has a ground of its own and colours of its own: it is also a file by itself.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from wsabie.studies.html import svg
from wsabie.studies.html.markup import Markup, element, join

GAP, HEIGHT, TOP, BOTTOM, SIDE = 88, 400, 64, 44, 60
_SHADES = ((170, 142, 78), (58, 130, 124), (9, 52, 72))
"""From the worst to the best, ever darker; the first can still be seen on white (a contrast of 3)."""
_APART = 16.0
"""Between the texts of two marks, at least."""
_HALO = {"paint_order": "stroke", "stroke": "#ffffff", "stroke_width": 7, "stroke_linejoin": "round"}
"""Behind the text of a mark, so that no line crosses it."""
_INK, _SOFT, _RULE = "#1d1c1a", "#5c5952", "#b9b4a8"


class Coordinate(NamedTuple):
    """One axis.

    Attributes
    ----------
    name : str
    values : sequence
        One per line: numbers, or anything else, which stands for itself.
    log : bool
        Numbers are laid out on a logarithmic scale.
    few : bool
        The values are choices, each of which has its mark.
    """

    name: str
    values: Sequence[Any]
    log: bool = False
    few: bool = False

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers, and not all the same."""
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values)
        return numbers and len(set(self.values)) > 1


class Line(NamedTuple):
    """What is drawn through all axes: how good from 0 to 1, dashed or not, and its words."""

    share: float
    dashed: bool
    words: str


def parallel(axes: Sequence[Coordinate], lines: Sequence[Line], *, title: str, description: str) -> Markup:
    """The drawing.

    Examples
    --------
    >>> axes = [Coordinate("rate", [0.1, 1.0], log=True), Coordinate("rows", ["auto", "tfidf"])]
    >>> drawn = parallel(axes, [Line(1.0, False, "a"), Line(0.0, True, "b")], title="t", description="d")
    >>> drawn.count("<polyline"), "tfidf" in drawn
    (2, True)
    """
    width = 2 * SIDE + GAP * (len(axes) - 1)
    places = [_placed(axis) for axis in axes]
    order = sorted(range(len(lines)), key=lambda i: lines[i].share)
    drawn = [_line(lines[i], [(SIDE + GAP * a, heights[i]) for a, (heights, _) in enumerate(places)]) for i in order]
    rules = [_axis(axis, SIDE + GAP * a, marks) for a, (axis, (_, marks)) in enumerate(zip(axes, places, strict=True))]
    ground = element("rect", width=width, height=HEIGHT, rx=8, fill="#ffffff")
    return svg.drawing(
        title, description, ground, drawn, rules, width=width, height=HEIGHT, xmlns="http://www.w3.org/2000/svg"
    )


def shade(share: float) -> str:
    """The colour of a line.

    Examples
    --------
    >>> shade(0), shade(1)
    ('#aa8e4e', '#093448')
    """
    at = min(max(share, 0.0), 1.0) * (len(_SHADES) - 1)
    low = min(int(at), len(_SHADES) - 2)
    mixed = (round(a + (b - a) * (at - low)) for a, b in zip(_SHADES[low], _SHADES[low + 1], strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _placed(axis: Coordinate) -> tuple[list[float], list[tuple[float, str]]]:
    """The height of every value, and the marks of the axis with theirs."""
    bottom, top = float(HEIGHT - BOTTOM), float(TOP)
    if not axis.numeric:
        kinds = sorted(set(axis.values), key=lambda v: (isinstance(v, str), v if isinstance(v, str) else float(v or 0)))
        step = (bottom - top) / max(len(kinds) - 1, 1)
        heights = {kind: (bottom - i * step if len(kinds) > 1 else (bottom + top) / 2) for i, kind in enumerate(kinds)}
        return [heights[v] for v in axis.values], [(height, str(kind)) for kind, height in heights.items()]
    turn = math.log10 if axis.log else float
    numbers = [turn(v) for v in axis.values]
    scale = svg.Scale(min(numbers), max(numbers), bottom, top)
    low, high = min(axis.values), max(axis.values)
    if axis.few:
        return [scale(v) for v in numbers], [(scale(turn(m)), svg.short(m)) for m in sorted(set(axis.values))]
    rounded = _log_marks(low, high) if axis.log else svg.round_numbers(low, high, 5)
    between = [(scale(turn(m)), svg.short(m)) for m in rounded]
    between = [(height, text) for height, text in between if top + _APART <= height <= bottom - _APART]
    return [scale(v) for v in numbers], [*zip((bottom, top), _ends(low, high), strict=True), *between]


def _ends(low: float, high: float) -> tuple[str, str]:
    """The texts of an axis' ends: three digits, or more where they would be the same.

    Examples
    --------
    >>> _ends(0.025187, 0.28512), _ends(0.31411, 0.31413)
    (('0.0252', '0.285'), ('0.31411', '0.31413'))
    """
    texts = svg.short(float(f"{low:.3g}")), svg.short(float(f"{high:.3g}"))
    return texts if texts[0] != texts[1] else (svg.short(low), svg.short(high))


def _log_marks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between the ends.

    Examples
    --------
    >>> _log_marks(0.03, 0.6), _log_marks(3.1, 3.9)
    ([0.05, 0.1, 0.2, 0.5], [])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [m for p in powers for m in (float(f"{k}e{p}") for k in (1, 2, 5)) if low <= m <= high]


def _line(line: Line, points: Sequence[tuple[float, float]]) -> Markup:
    return element(
        "polyline",
        element("title", line.words),
        points=" ".join(f"{x},{y}" for x, y in points),
        fill="none",
        stroke=shade(line.share),
        stroke_width=round(0.9 + 2.3 * line.share**2, 2),
        stroke_linejoin="round",
        stroke_dasharray="5 4" if line.dashed else None,
    )


def _axis(axis: Coordinate, x: float, marks: Sequence[tuple[float, str]]) -> Markup:
    words = axis.name.split("_")
    name = [
        _text(word, x, TOP - 36 + 14 * i + 14 * (2 - len(words)), "middle", 12.5, _INK) for i, word in enumerate(words)
    ]
    rule = element("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, stroke=_RULE, stroke_width=1.5)
    ticks = [
        join(
            element("line", x1=x - 3, x2=x + 3, y1=y, y2=y, stroke=_SOFT, stroke_width=1.2),
            _text(text, x + 9, y + 4, "start", 11.5, _INK, **_HALO),
        )
        for y, text in marks
    ]
    scale = _text("log scale", x, HEIGHT - BOTTOM + 22, "middle", 10.5, _SOFT) if axis.log and axis.numeric else None
    return join(rule, ticks, name, scale)


def _text(words: str, x: float, y: float, anchor: str, size: float, colour: str, **attributes: Any) -> Markup:
    font = {"font_family": "system-ui, sans-serif", "font_size": size, "text_anchor": anchor}
    return element("text", words, x=x, y=y, style=f"fill: {colour}", **font, **attributes)
