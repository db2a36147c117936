"""Parallel coordinates: an axis per parameter and a line per setting, as SVG without a style sheet.

A better line is darker and thicker, and drawn later; stopped trials are dashed. So the drawing is readable in grey,
too. It has a background and colours of its own, since it is also a file by itself.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from wsabie.workflows.charts import svg_elements
from wsabie.workflows.charts.html_markup import Markup, build_element, join_markup

GAP, HEIGHT, TOP, BOTTOM, SIDE = 88, 400, 64, 44, 60
_SHADES = ((170, 142, 78), (58, 130, 124), (9, 52, 72))
"""From the worst to the best, ever darker; the first is still visible on white (a contrast of 3)."""
_MIN_MARK_DISTANCE = 16.0
"""Least distance between the texts of two marks."""
_HALO = {"paint_order": "stroke", "stroke": "#ffffff", "stroke_width": 7, "stroke_linejoin": "round"}
"""Outline of a mark's text, so that no line crosses it."""
_INK, _SOFT, _RULE = "#1d1c1a", "#5c5952", "#b9b4a8"


class ParallelAxis(NamedTuple):
    """One axis.

    Attributes
    ----------
    name : str
    values : sequence
        One value per line: numbers or any other values.
    log : bool
        Numbers are laid out on a logarithmic scale.
    few : bool
        The values are choices; each has a mark.
    """

    name: str
    values: Sequence[Any]
    log: bool = False
    few: bool = False

    @property
    def numeric(self) -> bool:
        """True if all values are numbers, and not all the same."""
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values)
        return numbers and len(set(self.values)) > 1


class ParallelLine(NamedTuple):
    """A line through all axes: its rank from 0 to 1, dashed or not, and its text."""

    share: float
    dashed: bool
    words: str


def draw_parallel_coordinates(
    axes: Sequence[ParallelAxis], lines: Sequence[ParallelLine], *, title: str, description: str
) -> Markup:
    """Draw the axes and lines.

    Examples
    --------
    >>> axes = [ParallelAxis("rate", [0.1, 1.0], log=True), ParallelAxis("rows", ["auto", "tfidf"])]
    >>> lines = [ParallelLine(1.0, False, "a"), ParallelLine(0.0, True, "b")]
    >>> drawing = draw_parallel_coordinates(axes, lines, title="t", description="d")
    >>> drawing.count("<polyline"), "tfidf" in drawing
    (2, True)
    """
    width = 2 * SIDE + GAP * (len(axes) - 1)
    places = [_place_values(axis) for axis in axes]
    order = sorted(range(len(lines)), key=lambda line_number: lines[line_number].share)
    polylines = [
        _draw_line(
            lines[line_number],
            [(SIDE + GAP * axis_number, heights[line_number]) for axis_number, (heights, _) in enumerate(places)],
        )
        for line_number in order
    ]
    rules = [
        _draw_axis(axis, SIDE + GAP * axis_number, marks)
        for axis_number, (axis, (_, marks)) in enumerate(zip(axes, places, strict=True))
    ]
    ground = build_element("rect", width=width, height=HEIGHT, rx=8, fill="#ffffff")
    return svg_elements.build_svg(
        title, description, ground, polylines, rules, width=width, height=HEIGHT, xmlns="http://www.w3.org/2000/svg"
    )


def choose_line_colour(share: float) -> str:
    """Return the colour of a line.

    Examples
    --------
    >>> choose_line_colour(0), choose_line_colour(1)
    ('#aa8e4e', '#093448')
    """
    position = min(max(share, 0.0), 1.0) * (len(_SHADES) - 1)
    low = min(int(position), len(_SHADES) - 2)
    mixed = (
        round(low_channel + (high_channel - low_channel) * (position - low))
        for low_channel, high_channel in zip(_SHADES[low], _SHADES[low + 1], strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _place_values(axis: ParallelAxis) -> tuple[list[float], list[tuple[float, str]]]:
    """Return the height of every value, and the marks of the axis with their heights."""
    bottom, top = float(HEIGHT - BOTTOM), float(TOP)
    if not axis.numeric:
        kinds = sorted(
            set(axis.values),
            key=lambda value: (isinstance(value, str), value if isinstance(value, str) else float(value or 0)),
        )
        step = (bottom - top) / max(len(kinds) - 1, 1)
        heights = {kind: (bottom - i * step if len(kinds) > 1 else (bottom + top) / 2) for i, kind in enumerate(kinds)}
        return [heights[value] for value in axis.values], [(height, str(kind)) for kind, height in heights.items()]
    transform = math.log10 if axis.log else float
    numbers = [transform(value) for value in axis.values]
    scale = svg_elements.AxisScale(min(numbers), max(numbers), bottom, top)
    low, high = min(axis.values), max(axis.values)
    if axis.few:
        return [scale(value) for value in numbers], [
            (scale(transform(mark)), svg_elements.format_tick(mark)) for mark in sorted(set(axis.values))
        ]
    rounded = _list_log_marks(low, high) if axis.log else svg_elements.list_round_numbers(low, high, 5)
    between = [(scale(transform(mark)), svg_elements.format_tick(mark)) for mark in rounded]
    between = [
        (height, text) for height, text in between if top + _MIN_MARK_DISTANCE <= height <= bottom - _MIN_MARK_DISTANCE
    ]
    return [scale(value) for value in numbers], [*zip((bottom, top), _format_ends(low, high), strict=True), *between]


def _format_ends(low: float, high: float) -> tuple[str, str]:
    """Return the texts of an axis' ends: three digits, or more if they would be the same.

    Examples
    --------
    >>> _format_ends(0.025187, 0.28512), _format_ends(0.31411, 0.31413)
    (('0.0252', '0.285'), ('0.31411', '0.31413'))
    """
    texts = svg_elements.format_tick(float(f"{low:.3g}")), svg_elements.format_tick(float(f"{high:.3g}"))
    return texts if texts[0] != texts[1] else (svg_elements.format_tick(low), svg_elements.format_tick(high))


def _list_log_marks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between the ends.

    Examples
    --------
    >>> _list_log_marks(0.03, 0.6), _list_log_marks(3.1, 3.9)
    ([0.05, 0.1, 0.2, 0.5], [])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [
        mark for power in powers for mark in (float(f"{factor}e{power}") for factor in (1, 2, 5)) if low <= mark <= high
    ]


def _draw_line(line: ParallelLine, points: Sequence[tuple[float, float]]) -> Markup:
    return build_element(
        "polyline",
        build_element("title", line.words),
        points=" ".join(f"{x},{y}" for x, y in points),
        fill="none",
        stroke=choose_line_colour(line.share),
        stroke_width=round(0.9 + 2.3 * line.share**2, 2),
        stroke_linejoin="round",
        stroke_dasharray="5 4" if line.dashed else None,
    )


def _draw_axis(axis: ParallelAxis, x: float, marks: Sequence[tuple[float, str]]) -> Markup:
    words = axis.name.split("_")
    name = [
        _draw_text(word, x, TOP - 36 + 14 * i + 14 * (2 - len(words)), "middle", 12.5, _INK)
        for i, word in enumerate(words)
    ]
    rule = build_element("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, stroke=_RULE, stroke_width=1.5)
    ticks = [
        join_markup(
            build_element("line", x1=x - 3, x2=x + 3, y1=y, y2=y, stroke=_SOFT, stroke_width=1.2),
            _draw_text(text, x + 9, y + 4, "start", 11.5, _INK, **_HALO),
        )
        for y, text in marks
    ]
    scale = (
        _draw_text("log scale", x, HEIGHT - BOTTOM + 22, "middle", 10.5, _SOFT) if axis.log and axis.numeric else None
    )
    return join_markup(rule, ticks, name, scale)


def _draw_text(words: str, x: float, y: float, anchor: str, size: float, colour: str, **attributes: Any) -> Markup:
    font = {"font_family": "system-ui, sans-serif", "font_size": size, "text_anchor": anchor}
    return build_element("text", words, x=x, y=y, style=f"fill: {colour}", **font, **attributes)
