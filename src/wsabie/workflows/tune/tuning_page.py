"""Page of a search: parallel coordinates of all trials, the best figure against time, a table.

Parallel coordinates have an axis per parameter and a line per setting. A better line is darker and thicker, and drawn
later; stopped trials are dashed. So the drawing is readable in grey, too. Its attributes are the colours of the file
parallel.svg; a page's style sheet replaces them in dark mode.
"""

import math
from collections.abc import Sequence
from datetime import date
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

from wsabie.core.machine import collect_versions
from wsabie.storage.atomic_files import write_text
from wsabie.workflows.charts.svg_charts import (
    AxisScale,
    ChartAxis,
    ChartSeries,
    Point,
    Ticks,
    draw_line_chart,
    format_points,
    format_svg,
    format_tick,
    list_round_numbers,
    make_element,
    start_chart,
)
from wsabie.workflows.compare.comparison import TextTable
from wsabie.workflows.report.html_pages import PageChart, render_page
from wsabie.workflows.tune.search_spaces import ChoiceParameter, RangeParameter
from wsabie.workflows.tune.trial_study import Trial
from wsabie.workflows.tune.tuning_results import TuningResult

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
    is_log : bool
        Numbers are laid out on a logarithmic scale.
    is_choice : bool
        The values are choices; each has a mark.
    """

    name: str
    values: Sequence[Any]
    is_log: bool = False
    is_choice: bool = False

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


def write_tuning_page(folder: Path, result: TuningResult, name: str) -> None:
    """Write tuning.html and parallel.svg into the folder."""
    coordinates = draw_coordinates(result)
    write_text(folder / "tuning.html", render_tuning_page(result, name, coordinates))
    coordinates.set("xmlns", "http://www.w3.org/2000/svg")
    write_text(folder / "parallel.svg", format_svg(coordinates) + "\n")


def render_tuning_page(result: TuningResult, name: str, coordinates: Element) -> str:
    """Return the page as HTML."""
    values = result.plan.search.resolve(result.best.parameters, result.shape)
    return render_page(
        "tuning.html",
        name=name,
        result=result,
        verdict=result.verdict(),
        coordinates=coordinates,
        progress_chart=_draw_progress(result),
        best_values=[(parameter, format_value(value)) for parameter, value in values.items()],
        table=build_trial_table(result, result.trials),
        today=date.today().isoformat(),
        versions=", ".join(f"{package} {version}" for package, version in collect_versions().items()),
    )


def draw_coordinates(result: TuningResult) -> Element:
    """Draw all trials with a figure as parallel coordinates, the figure last."""
    trials, metric = [trial for trial in result.trials if trial.figure is not None], result.plan.metric
    figures = [trial.figure or 0.0 for trial in trials]
    settings = [result.plan.search.resolve(trial.parameters, result.shape) for trial in trials]
    axes = [
        ParallelAxis(
            name,
            [value if _is_number(value) else format_value(value) for value in (setting[name] for setting in settings)],
            isinstance(dimension, RangeParameter) and dimension.log,
            isinstance(dimension, ChoiceParameter),
        )
        for name, dimension in result.plan.search.space.items()
    ]
    lines = [
        ParallelLine(share, trial.state == "stopped", f"trial {trial.number}: {metric} {trial.figure:.4f}")
        for share, trial in zip(_rank_shares(figures), trials, strict=True)
    ]
    description = f"{len(trials)} trials; the best, number {result.best.number}, has {metric} {result.best.figure:.4f}"
    return draw_parallel_coordinates(
        [*axes, ParallelAxis(metric, figures)], lines, title="Settings and their figures", description=description
    )


def build_trial_table(result: TuningResult, trials: list[Trial]) -> TextTable:
    """Build a table of trials with their figures and the values of the tuned parameters."""
    names = [name for name in result.plan.search.space if name != "epochs"]
    headers = ["trial", result.plan.metric, "best epoch", "s", *names]
    rows = []
    for trial in trials:
        figure = (
            "failed" if trial.figure is None else f"{trial.figure:.4f}" + (" *" if trial.state == "stopped" else "")
        )
        values = result.plan.search.resolve(trial.parameters, result.shape)
        cells = [format_value(values[name]) for name in names]
        rows.append([str(trial.number), figure, f"{trial.epoch}/{trial.epochs}", f"{trial.seconds:.1f}", *cells])
    return TextTable(headers, rows)


def format_value(value: Any) -> str:
    """Format a parameter's value for a table.

    Examples
    --------
    >>> format_value(0.12345), format_value(None), format_value(True)
    ('0.123', 'none', 'yes')
    """
    words = {None: "none", True: "yes", False: "no"}
    if value is None or isinstance(value, bool):
        return words[value]
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rank_shares(figures: list[float]) -> list[float]:
    """Return figures as ranks from 0 to 1; a few failures would otherwise make all others look alike."""
    order = sorted(range(len(figures)), key=lambda i: figures[i])
    places = {i: place for place, i in enumerate(order)}
    return [places[i] / max(len(figures) - 1, 1) for i in range(len(figures))]


def _draw_progress(result: TuningResult) -> PageChart:
    """Draw the best figure of the finished trials against minutes, as steps."""
    metric, default = result.plan.metric, result.trials[0].figure
    ends = [seconds / 60 for seconds in accumulate(trial.seconds for trial in result.trials)]
    finished_figures = [
        trial.figure if trial.state == "done" and trial.figure is not None else -math.inf for trial in result.trials
    ]
    best = accumulate(finished_figures, max)
    best_points = [(x, y) for x, y in zip(ends, best, strict=True) if math.isfinite(y)]
    steps = [best_points[0]] + [point for (_, y), (x, z) in pairwise(best_points) for point in ((x, y), (x, z))]
    series = [ChartSeries("best", [x for x, _ in steps], [y for _, y in steps])]
    if default is not None:
        series.append(ChartSeries("defaults", [0.0, ends[-1]], [default] * 2, style=-1))
    values = [y for line in series for y in line.y]
    room = 0.1 * (max(values) - min(values)) or 0.01
    title = f"Best {metric} so far"
    drawing = draw_line_chart(
        series,
        ChartAxis("minutes", low=0.0),
        ChartAxis(metric, low=min(values) - room, high=max(values) + room),
        title=title,
        description=f"it ends at {result.best.figure:.4f}",
    )
    return PageChart(drawing)


def draw_parallel_coordinates(
    axes: Sequence[ParallelAxis], lines: Sequence[ParallelLine], *, title: str, description: str
) -> Element:
    """Draw the axes and lines.

    Examples
    --------
    >>> axes = [ParallelAxis("rate", [0.1, 1.0], is_log=True), ParallelAxis("scaling", ["auto", "tfidf"])]
    >>> lines = [ParallelLine(1.0, False, "a"), ParallelLine(0.0, True, "b")]
    >>> drawing = draw_parallel_coordinates(axes, lines, title="t", description="d")
    >>> len(drawing.findall("polyline")), "tfidf" in [text.text for text in drawing.iter("text")]
    (2, True)
    """
    width = 2 * SIDE + GAP * (len(axes) - 1)
    places = [_place_values(axis) for axis in axes]
    chart = start_chart(title, description, width=width, height=HEIGHT)
    chart.set("class", "chart parallel")
    chart.append(make_element("rect", width=width, height=HEIGHT, rx=8, fill="#ffffff"))
    for number in sorted(range(len(lines)), key=lambda number: lines[number].share):
        points = [(SIDE + GAP * at, heights[number]) for at, (heights, _) in enumerate(places)]
        chart.append(_draw_line(lines[number], points))
    for at, (axis, (_, marks)) in enumerate(zip(axes, places, strict=True)):
        chart.extend(_draw_axis(axis, SIDE + GAP * at, marks))
    return chart


def choose_line_colour(share: float) -> str:
    """Return the colour of a line.

    Examples
    --------
    >>> choose_line_colour(0), choose_line_colour(1)
    ('#aa8e4e', '#093448')
    """
    position = min(max(share, 0.0), 1.0) * (len(_SHADES) - 1)
    at = min(int(position), len(_SHADES) - 2)
    mixed = (
        round(low + (high - low) * (position - at)) for low, high in zip(_SHADES[at], _SHADES[at + 1], strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _place_values(axis: ParallelAxis) -> tuple[list[float], Ticks]:
    """Return the height of every value, and the marks of the axis with their heights."""
    bottom, top = float(HEIGHT - BOTTOM), float(TOP)
    if not axis.numeric:
        kinds = sorted(set(axis.values), key=lambda kind: (isinstance(kind, str), kind or 0))
        spread = AxisScale(0, len(kinds) - 1, bottom, top)
        heights = {kind: spread(i) if len(kinds) > 1 else (bottom + top) / 2 for i, kind in enumerate(kinds)}
        return [heights[value] for value in axis.values], [(height, str(kind)) for kind, height in heights.items()]
    transform = math.log10 if axis.is_log else float
    low, high = min(axis.values), max(axis.values)
    scale = AxisScale(transform(low), transform(high), bottom, top)
    heights_of_values = [scale(transform(value)) for value in axis.values]
    if axis.is_choice:
        return heights_of_values, [(scale(transform(mark)), format_tick(mark)) for mark in sorted(set(axis.values))]
    round_numbers = _list_log_marks(low, high) if axis.is_log else list_round_numbers(low, high, 5)
    between = [(scale(transform(mark)), format_tick(mark)) for mark in round_numbers]
    inner_marks = [mark for mark in between if top + _MIN_MARK_DISTANCE <= mark[0] <= bottom - _MIN_MARK_DISTANCE]
    return heights_of_values, [*zip((bottom, top), _format_ends(low, high), strict=True), *inner_marks]


def _format_ends(low: float, high: float) -> tuple[str, str]:
    """Return the texts of an axis' ends: three digits, or more if they would be the same.

    Examples
    --------
    >>> _format_ends(0.025187, 0.28512), _format_ends(0.31411, 0.31413)
    (('0.0252', '0.285'), ('0.31411', '0.31413'))
    """
    texts = format_tick(float(f"{low:.3g}")), format_tick(float(f"{high:.3g}"))
    return texts if texts[0] != texts[1] else (format_tick(low), format_tick(high))


def _list_log_marks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between the ends.

    Examples
    --------
    >>> _list_log_marks(0.03, 0.6), _list_log_marks(3.1, 3.9)
    ([0.05, 0.1, 0.2, 0.5], [])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= high]


def _draw_line(line: ParallelLine, points: Sequence[Point]) -> Element:
    element = make_element(
        "polyline",
        points=format_points(points),
        fill="none",
        stroke=choose_line_colour(line.share),
        stroke_width=round(0.9 + 2.3 * line.share**2, 2),
        stroke_linejoin="round",
        stroke_dasharray="5 4" if line.dashed else None,
        style=f"--share: {line.share:.0%}",
    )
    SubElement(element, "title").text = line.words
    return element


def _draw_axis(axis: ParallelAxis, x: float, marks: Ticks) -> list[Element]:
    words = axis.name.split("_")
    name_top = TOP - 36 + 14 * (2 - len(words))
    elements = [make_element("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, stroke=_RULE, stroke_width=1.5)]
    elements += [_draw_text(word, x, name_top + 14 * i, "middle", 12.5, _INK) for i, word in enumerate(words)]
    for y, text in marks:
        elements.append(make_element("line", x1=x - 3, x2=x + 3, y1=y, y2=y, stroke=_SOFT, stroke_width=1.2))
        elements.append(_draw_text(text, x + 9, y + 4, "start", 11.5, _INK, class_="mark-text", **_HALO))
    if axis.is_log and axis.numeric:
        elements.append(_draw_text("log scale", x, HEIGHT - BOTTOM + 22, "middle", 10.5, _SOFT))
    return elements


def _draw_text(text: str, x: float, y: float, anchor: str, size: float, colour: str, **attributes: Any) -> Element:
    font = {"font_family": "system-ui, sans-serif", "font_size": size, "text_anchor": anchor, "fill": colour}
    return make_element("text", text=text, x=x, y=y, **font, **attributes)
