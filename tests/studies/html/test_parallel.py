"""Parallel coordinates: values stand where their axis says, and good lines are told from bad ones without colour."""

import xml.etree.ElementTree as ET
from typing import Any

from wsabie.studies.html.parallel import BOTTOM, GAP, HEIGHT, SIDE, TOP, Coordinate, Line, parallel, shade

SVG = "{http://www.w3.org/2000/svg}"


def drawn(axes: list[Coordinate], lines: list[Line]) -> Any:
    return ET.fromstring(parallel(axes, lines, title="t", description="d"))  # noqa: S314


def points(line: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.get("points").split())]


def test_linear_logarithmic_and_named_axes() -> None:
    axes = [
        Coordinate("plain", [0.0, 5.0, 10.0]),
        Coordinate("rate", [0.01, 0.1, 1.0], log=True),
        Coordinate("kind", ["a", "b", "c"]),
        Coordinate("same", [3, 3, 3]),
    ]
    lines = [Line(i / 2, False, f"trial {i}") for i in range(3)]
    found = [points(line) for line in drawn(axes, lines).iter(f"{SVG}polyline")]
    bottom, middle = HEIGHT - BOTTOM, (HEIGHT - BOTTOM + TOP) / 2
    heights = [bottom, middle, TOP]
    for line, height in zip(found, heights, strict=True):
        assert [x for x, _ in line] == [SIDE + GAP * i for i in range(4)]
        assert [y for _, y in line] == [height, height, height, middle]


def test_the_best_line_is_thick_dark_and_on_top() -> None:
    lines = [Line(1.0, False, "best"), Line(0.0, True, "worst")]
    worst, best = drawn([Coordinate("a", [1, 2]), Coordinate("b", [1, 2])], lines).iter(f"{SVG}polyline")
    assert [line.find(f"{SVG}title").text for line in (worst, best)] == ["worst", "best"]
    assert float(best.get("stroke-width")) > 2 * float(worst.get("stroke-width"))
    assert worst.get("stroke-dasharray") is not None
    assert best.get("stroke-dasharray") is None


def test_shades_get_darker_all_the_way() -> None:
    light = [sum(int(shade(i / 20)[j : j + 2], 16) for j in (1, 3, 5)) for i in range(21)]
    assert light == sorted(light, reverse=True)
    assert len(set(light)) == 21


def test_choices_have_a_mark_each_and_names_are_words() -> None:
    axes = [Coordinate("max_trials", ["auto", "<b>", "none"]), Coordinate("dim", [50, 100, 200], few=True)]
    words = [text.text for text in drawn(axes, [Line(0.5, False, "")] * 3).iter(f"{SVG}text")]
    assert {"max", "trials", "auto", "<b>", "none", "50", "100", "200"} <= set(words)
