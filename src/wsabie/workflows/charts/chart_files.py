"""Charts as one standalone SVG file, and the same drawing as PNG by Pillow."""

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from wsabie.workflows.charts import svg_charts
from wsabie.workflows.charts.svg_charts import COLOURS, HEIGHT, INK, LINE, PAPER, SOFT, WIDTH, LineChart, Point
from wsabie.workflows.report.html_pages import render_page

_MARGIN, _ROW = 14, 16

LegendItem = tuple[str, int, float, float]
"""Name, style and position."""


def render_svg(charts: Sequence[LineChart]) -> str:
    """Render all charts, two in a row, as an SVG file."""
    columns, y = min(len(charts), 2), _MARGIN
    panels: list[tuple[LineChart, int, int, list[LegendItem]]] = []
    for start in range(0, len(charts), columns):
        n_lines = 0
        for i, chart in enumerate(charts[start : start + columns]):
            x = _MARGIN + i * (WIDTH + 2 * _MARGIN)
            legend = _arrange_legend(chart, x, y + svg_charts.HEAD + HEIGHT + 4)
            panels.append((chart, x, y, legend))
            n_lines = max(n_lines, len({top for *_, top in legend}))
        y += svg_charts.HEAD + HEIGHT + _ROW * n_lines + 4 + _MARGIN
    return render_page("figure.svg", width=columns * (WIDTH + 2 * _MARGIN), height=y, panels=panels)


def render_png(charts: Sequence[LineChart], zoom: float = 3.0) -> bytes:
    """Render the same drawing as PNG with Pillow; it holds lines, polygons, circles and text only."""
    from PIL import Image, ImageDraw

    figure = fromstring(render_svg(charts))  # noqa: S314 our own drawing
    picture = Image.new("RGB", (round(_read(figure, "width") * zoom), round(_read(figure, "height") * zoom)), PAPER)
    _Pen(ImageDraw.Draw(picture, "RGBA"), zoom).draw_children(figure, 0.0, 0.0)
    return encode_picture(picture, optimize=True)


def encode_picture(picture: Any, image_format: str = "PNG", **options: Any) -> bytes:
    """Return the bytes of a Pillow image; `options` are those of its format."""
    file = BytesIO()
    picture.save(file, image_format, **options)
    return file.getvalue()


def load_font(size: float) -> Any:
    """Load DejaVu where it is installed, which has more alphabets than Pillow's own font."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def _arrange_legend(chart: LineChart, x: float, y: float) -> list[LegendItem]:
    """Return the names with their positions, in as many lines as they need; empty for a single series."""
    items: list[LegendItem] = []
    offset = 0.0
    for series in chart.series if len(chart.series) > 1 else ():
        width = 35 + 6.0 * len(series.name) + 12
        if offset and offset + width > WIDTH:
            offset, y = 0.0, y + _ROW
        items.append((series.name, series.style, x + offset, y))
        offset += width
    return items


class _Pen:
    """Drawing of SVG elements, each kind by a method of its name."""

    def __init__(self, draw: Any, zoom: float) -> None:
        self.draw, self.zoom = draw, zoom

    def draw_children(self, parent: Element, dx: float, dy: float) -> None:
        for child in parent:
            tag = child.tag.rpartition("}")[2]
            if tag == "svg":
                self.draw_children(child, dx + _read(child, "x"), dy + _read(child, "y"))
            elif hasattr(self, f"_{tag}"):
                getattr(self, f"_{tag}")(child, child.get("class", ""), (dx, dy))

    def _scale(self, points: Sequence[Point], shift: Point) -> list[Point]:
        return [((x + shift[0]) * self.zoom, (y + shift[1]) * self.zoom) for x, y in points]

    def _line(self, item: Element, css_class: str, shift: Point) -> None:
        ends = [(_read(item, f"x{end}"), _read(item, f"y{end}")) for end in "12"]
        self._stroke(self._scale(ends, shift), css_class)

    def _polyline(self, item: Element, css_class: str, shift: Point) -> None:
        self._stroke(self._scale(_read_points(item), shift), css_class)

    def _stroke(self, points: list[Point], css_class: str) -> None:
        if "limit" in css_class:
            for piece in _cut_dashes(points, 4 * self.zoom):
                self.draw.line(piece, fill=SOFT, width=round(1.5 * self.zoom))
            return
        thick = 2.0 if "line" in css_class else 1.0
        self.draw.line(points, fill=_choose_colour(css_class), width=round(thick * self.zoom), joint="curve")

    def _polygon(self, item: Element, css_class: str, shift: Point) -> None:
        alpha = "24" if "band" in css_class else ""
        self.draw.polygon(self._scale(_read_points(item), shift), fill=_choose_colour(css_class) + alpha)

    def _circle(self, item: Element, css_class: str, shift: Point) -> None:
        x, y, r = (_read(item, name) for name in ("cx", "cy", "r"))
        box, colour = self._scale([(x - r, y - r), (x + r, y + r)], shift), _choose_colour(css_class)
        fill = PAPER if "hollow" in css_class else colour
        self.draw.ellipse(box, fill=fill, outline=colour, width=round(2 * self.zoom))

    def _text(self, item: Element, css_class: str, shift: Point) -> None:
        is_heading = "heading" in css_class
        font = load_font((svg_charts.HEADING_SIZE if is_heading else svg_charts.TEXT_SIZE) * self.zoom)
        anchor = {"middle": "ms", "end": "rs"}.get(item.get("text-anchor", ""), "ls")
        ((x, y),) = self._scale([(_read(item, "x"), _read(item, "y"))], shift)
        text = (item.text or "").replace("−", "-").replace("–", "-")
        self.draw.text((x, y), text, fill=INK if is_heading else SOFT, font=font, anchor=anchor)


def _read(item: Element, name: str) -> float:
    return float(item.get(name, 0))


def _read_points(item: Element) -> list[Point]:
    corners = (pair.split(",") for pair in item.get("points", "").split())
    return [(float(x), float(y)) for x, y in corners]


def _choose_colour(css_class: str) -> str:
    styles = [word for word in css_class.split() if word[0] == "s" and word[1:].isdecimal()]
    if styles:
        return COLOURS[int(styles[0][1:]) % len(COLOURS)]
    return LINE if "grid" in css_class else SOFT


def _cut_dashes(points: Sequence[Point], length: float) -> list[list[Point]]:
    """Return every other piece of a line, each of this length."""
    dashes = []
    for (x1, y1), (x2, y2) in pairwise(points):
        pieces = max(1, int(math.dist((x1, y1), (x2, y2)) / length))
        steps = [(x1 + (x2 - x1) * i / pieces, y1 + (y2 - y1) * i / pieces) for i in range(pieces + 1)]
        dashes += [[steps[i], steps[i + 1]] for i in range(0, pieces, 2)]
    return dashes
