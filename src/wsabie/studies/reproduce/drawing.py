"""Charts of a record as one SVG file that stands alone, and the same drawing as PNG."""

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any, NamedTuple
from xml.etree import ElementTree

from wsabie.studies.charts import Series, line_chart
from wsabie.studies.fonts import font
from wsabie.studies.html import svg
from wsabie.studies.html.markup import Markup, element, join
from wsabie.studies.html.svg import HEIGHT, WIDTH, Axis

COLOURS = ("#0b6e69", "#cc5a1e", "#5a55c9", "#8a6a00", "#b8336f", "#4d5560")
INK, SOFT, LINE, PAPER = "#1d1c1a", "#5c5952", "#e4e0d7", "#ffffff"
_MARGIN, _HEAD, _ROW, _TEXT, _HEADING = 14, 22, 16, 11.0, 13.0
_STYLE = (
    f"svg{{overflow:visible}}"  # half of the last mark's number stands outside of its panel
    f"text{{font:{_TEXT:g}px system-ui,sans-serif;fill:{SOFT}}}.heading{{font-size:{_HEADING:g}px;fill:{INK}}}"
    f".grid{{stroke:{LINE}}}.base{{stroke:{SOFT}}}.line{{fill:none;stroke-width:2}}"
    f".limit{{fill:none;stroke:{SOFT};stroke-width:1.5;stroke-dasharray:4 4}}.mark{{stroke:{PAPER}}}"
    ".band{opacity:.14}"
    + "".join(
        f".line.s{i}{{stroke:{colour}}}.mark.s{i},.bar.s{i},.band.s{i}{{fill:{colour}}}"
        f".mark.hollow.s{i}{{fill:{PAPER};stroke:{colour};stroke-width:2}}"
        for i, colour in enumerate(COLOURS)
    )
)


class Chart(NamedTuple):
    """Lines over a common axis, with what they are called."""

    title: str
    series: Sequence[Series]
    x: Axis
    y: Axis


def log_axis(name: str, values: Sequence[float]) -> Axis:
    """An axis for values that are given as their logarithm to base 10, with marks at the powers of ten.

    Examples
    --------
    >>> log_axis("rank", [1, 300]).ticks
    [(0.0, '1'), (1.0, '10'), (2.0, '100'), (3.0, '1k')]
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    ticks = [(float(power), svg.short(10.0**power)) for power in range(low, high + 1)]
    return Axis(name, ticks, float(low), float(high))


def svg_of(charts: Sequence[Chart]) -> str:
    """All charts beside and below each other, two in a row, as an SVG file."""
    columns = min(len(charts), 2)
    panels, below = [], float(_MARGIN)
    for start in range(0, len(charts), columns):
        row = charts[start : start + columns]
        tallest = max(_height(chart) for chart in row)
        panels += [_panel(chart, _MARGIN + i * (WIDTH + 2 * _MARGIN), below) for i, chart in enumerate(row)]
        below += tallest + _MARGIN
    width = columns * (WIDTH + 2 * _MARGIN)
    drawing = element(
        "svg",
        element("style", Markup(_STYLE)),
        element("rect", x=0, y=0, width=width, height=below, fill=PAPER),
        panels,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {below:g}",
        width=width,
        height=f"{below:g}",
    )
    return f"{drawing}\n"


def _height(chart: Chart) -> float:
    return _HEAD + HEIGHT + _ROW * len(_legend_rows(chart)) + 4


def _panel(chart: Chart, x: float, y: float) -> Markup:
    inner = element(
        "svg",
        line_chart(chart.series, chart.x, chart.y, title=chart.title),
        x=x,
        y=y + _HEAD,
        width=WIDTH,
        height=HEIGHT,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
    )
    heading = element("text", chart.title, x=x, y=y + _HEADING, class_="heading")
    rows = [
        join(
            element("svg", svg.sample(style), x=x + at, y=below, width=30, height=12, viewBox="0 0 30 12"),
            element("text", name, x=x + at + 35, y=below + 10),
        )
        for number, row in enumerate(_legend_rows(chart))
        for below in [y + _HEAD + HEIGHT + 4 + number * _ROW]
        for name, style, at in row
    ]
    return join(heading, inner, rows)


def _legend_rows(chart: Chart) -> list[list[tuple[str, int, float]]]:
    """Names with their style and place, in as many lines as they need; none where there is one series."""
    if len(chart.series) < 2:
        return []
    rows: list[list[tuple[str, int, float]]] = [[]]
    at = 0.0
    for series in chart.series:
        needed = 35 + 6.0 * len(series.name) + 12
        if rows[-1] and at + needed > WIDTH:
            rows.append([])
            at = 0.0
        rows[-1].append((series.name, series.style, at))
        at += needed
    return rows


def png_of(drawing: str, zoom: float = 3.0) -> bytes:
    """An SVG of `svg_of` as PNG, drawn with Pillow: lines, polygons, circles and text are all it holds."""
    from PIL import Image, ImageDraw

    root = ElementTree.fromstring(drawing)  # noqa: S314 our own drawing
    size = tuple(round(float(root.get(side, 0)) * zoom) for side in ("width", "height"))
    picture = Image.new("RGB", size, PAPER)  # type: ignore[arg-type]
    _Pen(ImageDraw.Draw(picture, "RGBA"), zoom).children(root, 0.0, 0.0)
    file = BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


class _Pen:
    """Draws elements, each kind by a method of its name."""

    def __init__(self, draw: Any, zoom: float) -> None:
        self.draw, self.zoom = draw, zoom

    def children(self, parent: Any, dx: float, dy: float) -> None:
        for child in parent:
            tag = child.tag.rpartition("}")[2]
            if tag == "svg":
                self.children(child, dx + float(child.get("x", 0)), dy + float(child.get("y", 0)))
            elif hasattr(self, f"_{tag}"):
                getattr(self, f"_{tag}")(child, child.get("class", ""), dx, dy)

    def _points(self, pairs: Sequence[tuple[float, float]], dx: float, dy: float) -> list[tuple[float, float]]:
        return [((x + dx) * self.zoom, (y + dy) * self.zoom) for x, y in pairs]

    def _line(self, item: Any, kind: str, dx: float, dy: float) -> None:
        ends = [(float(item.get(f"x{end}")), float(item.get(f"y{end}"))) for end in "12"]
        self._stroke(self._points(ends, dx, dy), kind)

    def _polyline(self, item: Any, kind: str, dx: float, dy: float) -> None:
        self._stroke(self._points(_pairs(item), dx, dy), kind)

    def _stroke(self, points: list[tuple[float, float]], kind: str) -> None:
        if "limit" in kind:
            for piece in _dashes(points, 4 * self.zoom):
                self.draw.line(piece, fill=SOFT, width=round(1.5 * self.zoom))
            return
        thick = 2.0 if "line" in kind else 1.0
        self.draw.line(points, fill=_colour(kind), width=round(thick * self.zoom), joint="curve")

    def _polygon(self, item: Any, kind: str, dx: float, dy: float) -> None:
        alpha = "24" if "band" in kind else ""
        self.draw.polygon(self._points(_pairs(item), dx, dy), fill=_colour(kind) + alpha)

    def _circle(self, item: Any, kind: str, dx: float, dy: float) -> None:
        x, y, r = (float(item.get(name)) for name in ("cx", "cy", "r"))
        box = self._points([(x - r, y - r), (x + r, y + r)], dx, dy)
        hollow = "hollow" in kind
        self.draw.ellipse(
            box, fill=PAPER if hollow else _colour(kind), outline=_colour(kind), width=round(2 * self.zoom)
        )

    def _text(self, item: Any, kind: str, dx: float, dy: float) -> None:
        face = font((_HEADING if "heading" in kind else _TEXT) * self.zoom)
        anchor = {"middle": "ms", "end": "rs"}.get(item.get("text-anchor"), "ls")
        ((x, y),) = self._points([(float(item.get("x")), float(item.get("y")))], dx, dy)
        words = (item.text or "").replace("−", "-").replace("–", "-")
        self.draw.text((x, y), words, fill=INK if "heading" in kind else SOFT, font=face, anchor=anchor)


def _pairs(item: Any) -> list[tuple[float, float]]:
    corners = (pair.split(",") for pair in item.get("points").split())
    return [(float(x), float(y)) for x, y in corners]


def _colour(kind: str) -> str:
    styles = [word for word in kind.split() if word[0] == "s" and word[1:].isdecimal()]
    if styles:
        return COLOURS[int(styles[0][1:]) % len(COLOURS)]
    return LINE if "grid" in kind else SOFT


def _dashes(points: Sequence[tuple[float, float]], length: float) -> list[list[tuple[float, float]]]:
    """Every other piece of a line, each so long."""
    found = []
    for (x1, y1), (x2, y2) in pairwise(points):
        pieces = max(1, int(math.dist((x1, y1), (x2, y2)) / length))
        steps = [(x1 + (x2 - x1) * i / pieces, y1 + (y2 - y1) * i / pieces) for i in range(pieces + 1)]
        found += [[steps[i], steps[i + 1]] for i in range(0, pieces, 2)]
    return found
