"""Charts as one standalone SVG file, and the same drawing as PNG by Pillow."""

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from wsabie.workflows.charts.svg_charts import (
    HEIGHT,
    WIDTH,
    ChartAxis,
    ChartSeries,
    Point,
    draw_legend_sample,
    draw_line_chart,
    format_svg,
    format_tick,
    make_element,
)

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


class ChartSpec(NamedTuple):
    """Lines over a common axis, with title and axes."""

    title: str
    series: Sequence[ChartSeries]
    x: ChartAxis
    y: ChartAxis


def build_log_axis(name: str, values: Sequence[float]) -> ChartAxis:
    """Build an axis for base-10 logarithms of values, with marks at the powers of ten.

    Examples
    --------
    >>> build_log_axis("rank", [1, 300]).ticks
    [(0.0, '1'), (1.0, '10'), (2.0, '100'), (3.0, '1k')]
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    ticks = [(float(power), format_tick(10.0**power)) for power in range(low, high + 1)]
    return ChartAxis(name, ticks, float(low), float(high))


def render_svg(charts: Sequence[ChartSpec]) -> str:
    """Render all charts, two in a row, as an SVG file."""
    return format_svg(_draw_figure(charts)) + "\n"


def render_png(charts: Sequence[ChartSpec], zoom: float = 3.0) -> bytes:
    """Render the same drawing as PNG with Pillow; it holds lines, polygons, circles and text only."""
    from PIL import Image, ImageDraw

    figure = _draw_figure(charts)
    picture = Image.new("RGB", (round(_read(figure, "width") * zoom), round(_read(figure, "height") * zoom)), PAPER)
    _Pen(ImageDraw.Draw(picture, "RGBA"), zoom).draw_children(figure, 0.0, 0.0)
    file = BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


def load_font(size: float) -> Any:
    """Load DejaVu where it is installed, which has more alphabets than Pillow's own font."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def _draw_figure(charts: Sequence[ChartSpec]) -> Element:
    columns = min(len(charts), 2)
    width, y = columns * (WIDTH + 2 * _MARGIN), float(_MARGIN)
    figure = make_element("svg", xmlns="http://www.w3.org/2000/svg", width=width)
    paper = make_element("rect", x=0, y=0, width=width, fill=PAPER)
    figure.extend([make_element("style", text=_STYLE), paper])
    for start in range(0, len(charts), columns):
        row = charts[start : start + columns]
        for i, chart in enumerate(row):
            figure.extend(_draw_panel(chart, _MARGIN + i * (WIDTH + 2 * _MARGIN), y))
        y += max(_HEAD + HEIGHT + _ROW * len(_arrange_legend(chart)) + 4 for chart in row) + _MARGIN
    paper.set("height", f"{y:g}")
    figure.set("height", f"{y:g}")
    figure.set("viewBox", f"0 0 {width} {y:g}")
    return figure


def _draw_panel(chart: ChartSpec, x: float, y: float) -> list[Element]:
    inner = draw_line_chart(chart.series, chart.x, chart.y, title=chart.title)
    _place_drawing(inner, x, y + _HEAD, WIDTH, HEIGHT)
    elements = [make_element("text", text=chart.title, x=x, y=y + _HEADING, class_="heading"), inner]
    for number, row in enumerate(_arrange_legend(chart)):
        top = y + _HEAD + HEIGHT + 4 + number * _ROW
        for name, style, offset in row:
            sample = draw_legend_sample(style)
            _place_drawing(sample, x + offset, top, 30, 12)
            elements += [sample, make_element("text", text=name, x=x + offset + 35, y=top + 10)]
    return elements


def _place_drawing(drawing: Element, x: float, y: float, width: float, height: float) -> None:
    for name, value in {"x": x, "y": y, "width": width, "height": height}.items():
        drawing.set(name, f"{value:g}")


def _arrange_legend(chart: ChartSpec) -> list[list[tuple[str, int, float]]]:
    """Return names with style and position, in as many lines as they need; empty for a single series."""
    if len(chart.series) < 2:
        return []
    rows: list[list[tuple[str, int, float]]] = [[]]
    offset = 0.0
    for series in chart.series:
        width = 35 + 6.0 * len(series.name) + 12
        if rows[-1] and offset + width > WIDTH:
            rows.append([])
            offset = 0.0
        rows[-1].append((series.name, series.style, offset))
        offset += width
    return rows


class _Pen:
    """Drawing of SVG elements, each kind by a method of its name."""

    def __init__(self, draw: Any, zoom: float) -> None:
        self.draw, self.zoom = draw, zoom

    def draw_children(self, parent: Element, dx: float, dy: float) -> None:
        for child in parent:
            if child.tag == "svg":
                self.draw_children(child, dx + float(child.get("x", 0)), dy + float(child.get("y", 0)))
            elif hasattr(self, f"_{child.tag}"):
                getattr(self, f"_{child.tag}")(child, child.get("class", ""), (dx, dy))

    def _scale(self, points: Sequence[Point], shift: Point) -> list[Point]:
        return [((x + shift[0]) * self.zoom, (y + shift[1]) * self.zoom) for x, y in points]

    def _line(self, item: Element, kind: str, shift: Point) -> None:
        ends = [(_read(item, f"x{end}"), _read(item, f"y{end}")) for end in "12"]
        self._stroke(self._scale(ends, shift), kind)

    def _polyline(self, item: Element, kind: str, shift: Point) -> None:
        self._stroke(self._scale(_read_points(item), shift), kind)

    def _stroke(self, points: list[Point], kind: str) -> None:
        if "limit" in kind:
            for piece in _cut_dashes(points, 4 * self.zoom):
                self.draw.line(piece, fill=SOFT, width=round(1.5 * self.zoom))
            return
        thick = 2.0 if "line" in kind else 1.0
        self.draw.line(points, fill=_choose_colour(kind), width=round(thick * self.zoom), joint="curve")

    def _polygon(self, item: Element, kind: str, shift: Point) -> None:
        alpha = "24" if "band" in kind else ""
        self.draw.polygon(self._scale(_read_points(item), shift), fill=_choose_colour(kind) + alpha)

    def _circle(self, item: Element, kind: str, shift: Point) -> None:
        x, y, r = (_read(item, name) for name in ("cx", "cy", "r"))
        box, colour = self._scale([(x - r, y - r), (x + r, y + r)], shift), _choose_colour(kind)
        fill = PAPER if "hollow" in kind else colour
        self.draw.ellipse(box, fill=fill, outline=colour, width=round(2 * self.zoom))

    def _text(self, item: Element, kind: str, shift: Point) -> None:
        is_heading = "heading" in kind
        font = load_font((_HEADING if is_heading else _TEXT) * self.zoom)
        anchor = {"middle": "ms", "end": "rs"}.get(item.get("text-anchor", ""), "ls")
        ((x, y),) = self._scale([(_read(item, "x"), _read(item, "y"))], shift)
        text = (item.text or "").replace("−", "-").replace("–", "-")
        self.draw.text((x, y), text, fill=INK if is_heading else SOFT, font=font, anchor=anchor)


def _read(item: Element, name: str) -> float:
    return float(item.get(name, 0))


def _read_points(item: Element) -> list[Point]:
    corners = (pair.split(",") for pair in item.get("points", "").split())
    return [(float(x), float(y)) for x, y in corners]


def _choose_colour(kind: str) -> str:
    styles = [word for word in kind.split() if word[0] == "s" and word[1:].isdecimal()]
    if styles:
        return COLOURS[int(styles[0][1:]) % len(COLOURS)]
    return LINE if "grid" in kind else SOFT


def _cut_dashes(points: Sequence[Point], length: float) -> list[list[Point]]:
    """Return every other piece of a line, each of this length."""
    dashes = []
    for (x1, y1), (x2, y2) in pairwise(points):
        pieces = max(1, int(math.dist((x1, y1), (x2, y2)) / length))
        steps = [(x1 + (x2 - x1) * i / pieces, y1 + (y2 - y1) * i / pieces) for i in range(pieces + 1)]
        dashes += [[steps[i], steps[i + 1]] for i in range(0, pieces, 2)]
    return dashes
