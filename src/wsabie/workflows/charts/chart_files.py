"""Charts of a record as one standalone SVG file, and the same drawing as PNG."""

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any, NamedTuple
from xml.etree import ElementTree

from wsabie.workflows.charts import svg_elements
from wsabie.workflows.charts.chart_types import ChartSeries, draw_line_chart
from wsabie.workflows.charts.fonts import load_font
from wsabie.workflows.charts.html_markup import Markup, build_element, join_markup
from wsabie.workflows.charts.svg_elements import HEIGHT, WIDTH, ChartAxis

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
    ticks = [(float(power), svg_elements.format_tick(10.0**power)) for power in range(low, high + 1)]
    return ChartAxis(name, ticks, float(low), float(high))


def render_svg(charts: Sequence[ChartSpec]) -> str:
    """Render all charts, two in a row, as an SVG file."""
    columns = min(len(charts), 2)
    panel_markup, y = [], float(_MARGIN)
    for start in range(0, len(charts), columns):
        row = charts[start : start + columns]
        tallest = max(_measure_height(chart) for chart in row)
        panel_markup += [_draw_panel(chart, _MARGIN + i * (WIDTH + 2 * _MARGIN), y) for i, chart in enumerate(row)]
        y += tallest + _MARGIN
    width = columns * (WIDTH + 2 * _MARGIN)
    drawing = build_element(
        "svg",
        build_element("style", Markup(_STYLE)),
        build_element("rect", x=0, y=0, width=width, height=y, fill=PAPER),
        panel_markup,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {y:g}",
        width=width,
        height=f"{y:g}",
    )
    return f"{drawing}\n"


def _measure_height(chart: ChartSpec) -> float:
    return _HEAD + HEIGHT + _ROW * len(_arrange_legend(chart)) + 4


def _draw_panel(chart: ChartSpec, x: float, y: float) -> Markup:
    inner = build_element(
        "svg",
        draw_line_chart(chart.series, chart.x, chart.y, title=chart.title),
        x=x,
        y=y + _HEAD,
        width=WIDTH,
        height=HEIGHT,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
    )
    heading = build_element("text", chart.title, x=x, y=y + _HEADING, class_="heading")
    rows = [
        join_markup(
            build_element(
                "svg",
                svg_elements.draw_legend_sample(style),
                x=x + offset,
                y=sample_y,
                width=30,
                height=12,
                viewBox="0 0 30 12",
            ),
            build_element("text", name, x=x + offset + 35, y=sample_y + 10),
        )
        for number, row in enumerate(_arrange_legend(chart))
        for sample_y in [y + _HEAD + HEIGHT + 4 + number * _ROW]
        for name, style, offset in row
    ]
    return join_markup(heading, inner, rows)


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


def render_png(drawing: str, zoom: float = 3.0) -> bytes:
    """Render an SVG of `render_svg` as PNG with Pillow; it holds lines, polygons, circles and text only."""
    from PIL import Image, ImageDraw

    root = ElementTree.fromstring(drawing)  # noqa: S314 our own drawing
    size = tuple(round(float(root.get(side, 0)) * zoom) for side in ("width", "height"))
    picture = Image.new("RGB", size, PAPER)  # type: ignore[arg-type]
    _Pen(ImageDraw.Draw(picture, "RGBA"), zoom).draw_children(root, 0.0, 0.0)
    file = BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


class _Pen:
    """Drawing of SVG elements, each kind by a method of its name."""

    def __init__(self, draw: Any, zoom: float) -> None:
        self.draw, self.zoom = draw, zoom

    def draw_children(self, parent: Any, dx: float, dy: float) -> None:
        for child in parent:
            tag = child.tag.rpartition("}")[2]
            if tag == "svg":
                self.draw_children(child, dx + float(child.get("x", 0)), dy + float(child.get("y", 0)))
            elif hasattr(self, f"_{tag}"):
                getattr(self, f"_{tag}")(child, child.get("class", ""), dx, dy)

    def _points(self, pairs: Sequence[tuple[float, float]], dx: float, dy: float) -> list[tuple[float, float]]:
        return [((x + dx) * self.zoom, (y + dy) * self.zoom) for x, y in pairs]

    def _line(self, item: Any, kind: str, dx: float, dy: float) -> None:
        ends = [(float(item.get(f"x{end}")), float(item.get(f"y{end}"))) for end in "12"]
        self._stroke(self._points(ends, dx, dy), kind)

    def _polyline(self, item: Any, kind: str, dx: float, dy: float) -> None:
        self._stroke(self._points(_parse_points(item), dx, dy), kind)

    def _stroke(self, points: list[tuple[float, float]], kind: str) -> None:
        if "limit" in kind:
            for piece in _cut_dashes(points, 4 * self.zoom):
                self.draw.line(piece, fill=SOFT, width=round(1.5 * self.zoom))
            return
        thick = 2.0 if "line" in kind else 1.0
        self.draw.line(points, fill=_choose_colour(kind), width=round(thick * self.zoom), joint="curve")

    def _polygon(self, item: Any, kind: str, dx: float, dy: float) -> None:
        alpha = "24" if "band" in kind else ""
        self.draw.polygon(self._points(_parse_points(item), dx, dy), fill=_choose_colour(kind) + alpha)

    def _circle(self, item: Any, kind: str, dx: float, dy: float) -> None:
        x, y, r = (float(item.get(name)) for name in ("cx", "cy", "r"))
        box = self._points([(x - r, y - r), (x + r, y + r)], dx, dy)
        hollow = "hollow" in kind
        self.draw.ellipse(
            box,
            fill=PAPER if hollow else _choose_colour(kind),
            outline=_choose_colour(kind),
            width=round(2 * self.zoom),
        )

    def _text(self, item: Any, kind: str, dx: float, dy: float) -> None:
        font = load_font((_HEADING if "heading" in kind else _TEXT) * self.zoom)
        anchor = {"middle": "ms", "end": "rs"}.get(item.get("text-anchor"), "ls")
        ((x, y),) = self._points([(float(item.get("x")), float(item.get("y")))], dx, dy)
        text = (item.text or "").replace("−", "-").replace("–", "-")
        self.draw.text((x, y), text, fill=INK if "heading" in kind else SOFT, font=font, anchor=anchor)


def _parse_points(item: Any) -> list[tuple[float, float]]:
    corners = (pair.split(",") for pair in item.get("points").split())
    return [(float(x), float(y)) for x, y in corners]


def _choose_colour(kind: str) -> str:
    styles = [word for word in kind.split() if word[0] == "s" and word[1:].isdecimal()]
    if styles:
        return COLOURS[int(styles[0][1:]) % len(COLOURS)]
    return LINE if "grid" in kind else SOFT


def _cut_dashes(points: Sequence[tuple[float, float]], length: float) -> list[list[tuple[float, float]]]:
    """Return every other piece of a line, each of this length."""
    dashes = []
    for (x1, y1), (x2, y2) in pairwise(points):
        pieces = max(1, int(math.dist((x1, y1), (x2, y2)) / length))
        steps = [(x1 + (x2 - x1) * i / pieces, y1 + (y2 - y1) * i / pieces) for i in range(pieces + 1)]
        dashes += [[steps[i], steps[i + 1]] for i in range(0, pieces, 2)]
    return dashes
