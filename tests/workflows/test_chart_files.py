"""Charts as self-contained SVG files and as PNG files of the same drawing."""

from io import BytesIO
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from wsabie.workflows.charts.chart_files import render_png, render_svg
from wsabie.workflows.charts.svg_charts import COLOURS, ChartAxis, ChartSeries, LineChart

RISING = LineChart("Rising <fast>", [ChartSeries("up", [0, 1, 2], [0.0, 0.5, 1.0])], ChartAxis("x"), ChartAxis("y"))
BAND = LineChart(
    "Band",
    [ChartSeries("b", [0, 1], [1, 2], [0, 1], [2, 3], style=1), ChartSeries("top", [0, 1], [3, 3], style=-1)],
    ChartAxis("x"),
    ChartAxis("y"),
)


def read_pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"), int)


def find_pixels(image: np.ndarray, colour: str) -> np.ndarray:
    rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return np.argwhere(np.abs(image - rgb).sum(axis=2) < 12)


def test_svg_is_self_contained_xml() -> None:
    drawing = render_svg([RISING, BAND, RISING])
    root = ElementTree.fromstring(drawing)  # noqa: S314 our own drawing
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.get("height")) > 2 * 236  # type: ignore[arg-type]  # two rows
    assert "<script" not in drawing
    assert "Rising &lt;fast&gt;" in drawing
    assert "http" not in drawing.replace("http://www.w3.org/2000/svg", "")


def test_png_shows_the_line_from_bottom_left_to_top_right() -> None:
    image = read_pixels(render_png([RISING], zoom=2))
    points = find_pixels(image[: 2 * 240], COLOURS[0])
    assert len(points) > 200
    lower_left, right = points[points[:, 1].argmin()], points[points[:, 1].argmax()]
    assert right[0] < lower_left[0] - 150
    assert right[1] > lower_left[1] + 400


def test_bands_and_limits_are_drawn() -> None:
    image = read_pixels(render_png([BAND]))
    assert len(find_pixels(image, COLOURS[1])) > 100
    assert len(find_pixels(image, "#5c5952")) > 100  # dashes, ticks


def test_series_without_values_is_drawn() -> None:
    chart = LineChart(
        "none",
        [ChartSeries("empty", [], []), ChartSeries("gap", [1.0], [float("nan")], style=2)],
        ChartAxis("x"),
        ChartAxis("y"),
    )
    assert render_png([chart]).startswith(b"\x89PNG")
