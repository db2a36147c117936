"""Page of a search: parallel coordinates of all trials, the best figure against time, a table.

Parallel coordinates have an axis per parameter and a line per setting. A better line is darker and thicker, and drawn
later; stopped trials are dashed. So the drawing is readable in grey, too.

Optuna's own plots need Plotly or Matplotlib (`docs/decisions/optuna-study.md`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wsabie.core.machine import collect_versions
from wsabie.storage.atomic_files import write_text
from wsabie.workflows.charts import svg_charts
from wsabie.workflows.compare.comparison_table import TextTable
from wsabie.workflows.report.html_pages import render_page
from wsabie.workflows.tune.model_tuning import TuningResult
from wsabie.workflows.tune.search_spaces import ChoiceParameter, RangeParameter
from wsabie.workflows.tune.trial_study import Trial

GAP, HEIGHT, TOP, BOTTOM, SIDE = 88, 400, 64, 44, 60
_SHADES = ((170, 142, 78), (58, 130, 124), (9, 52, 72))
"""From the worst to the best, ever darker; the first is still visible on white (a contrast of 3)."""
_MIN_MARK_DISTANCE = 16.0
"""Least distance between the texts of two marks."""


@dataclass(frozen=True)
class ParallelAxis:
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

    @cached_property
    def is_numeric(self) -> bool:
        """True if all values are numbers, and not all the same."""
        return all(_is_number(value) for value in self.values) and len(set(self.values)) > 1

    @cached_property
    def scale(self) -> svg_charts.AxisScale:
        """Heights of numbers, or of the positions of other values."""
        if not self.is_numeric:
            return svg_charts.AxisScale(0, len(self.choices) - 1, HEIGHT - BOTTOM, TOP)
        low, high = self._transform(min(self.values)), self._transform(max(self.values))
        return svg_charts.AxisScale(low, high, HEIGHT - BOTTOM, TOP)

    @cached_property
    def choices(self) -> list[Any]:
        """Different values that are not numbers, in order."""
        return sorted(set(self.values), key=lambda value: (isinstance(value, str), value or 0))

    @property
    def heights(self) -> list[float]:
        """Heights of all values."""
        return [self._find_height(value) for value in self.values]

    @property
    def marks(self) -> svg_charts.Ticks:
        """Marks of the axis by their heights."""
        if not self.is_numeric:
            return [(self._find_height(choice), str(choice)) for choice in self.choices]
        if self.is_choice:
            return [(self._find_height(mark), svg_charts.format_tick(mark)) for mark in sorted(set(self.values))]
        low, high = min(self.values), max(self.values)
        round_numbers = _list_log_marks(low, high) if self.is_log else svg_charts.list_round_numbers(low, high, 5)
        between = [(self._find_height(mark), svg_charts.format_tick(mark)) for mark in round_numbers]
        bottom = HEIGHT - BOTTOM
        inner_marks = [mark for mark in between if TOP + _MIN_MARK_DISTANCE <= mark[0] <= bottom - _MIN_MARK_DISTANCE]
        return [*zip((bottom, TOP), _format_ends(low, high), strict=True), *inner_marks]

    def _transform(self, value: float) -> float:
        return math.log10(value) if self.is_log else float(value)

    def _find_height(self, value: Any) -> float:
        if self.is_numeric:
            return self.scale(self._transform(value))
        return self.scale(self.choices.index(value)) if len(self.choices) > 1 else (HEIGHT - BOTTOM + TOP) / 2


class ParallelLine(NamedTuple):
    """A line through all axes: its rank from 0 to 1, dashed or not, and its text."""

    share: float
    dashed: bool
    words: str

    @property
    def colour(self) -> str:
        return choose_line_colour(self.share)

    @property
    def thickness(self) -> float:
        return round(0.9 + 2.3 * self.share**2, 2)


@dataclass(frozen=True)
class ParallelChart:
    """Parallel coordinates: a line through all axes for each setting."""

    title: str
    axes: Sequence[ParallelAxis]
    lines: Sequence[ParallelLine]
    description: str
    height: ClassVar = HEIGHT
    top: ClassVar = TOP
    bottom: ClassVar = HEIGHT - BOTTOM

    @property
    def width(self) -> int:
        return 2 * SIDE + GAP * (len(self.axes) - 1)

    def find_x(self, number: int) -> int:
        """Return the horizontal position of an axis."""
        return SIDE + GAP * number

    def paths(self) -> Iterator[tuple[ParallelLine, list[svg_charts.Point]]]:
        """Yield the lines with their points, the best last."""
        heights = [axis.heights for axis in self.axes]
        for i in sorted(range(len(self.lines)), key=lambda i: self.lines[i].share):
            yield self.lines[i], [(self.find_x(number), column[i]) for number, column in enumerate(heights)]


def write_tuning_page(folder: Path, result: TuningResult, name: str) -> None:
    """Write tuning.html and parallel.svg into the folder."""
    write_text(folder / "tuning.html", render_tuning_page(result, name))
    write_text(folder / "parallel.svg", render_page("parallel.svg", coordinates=build_coordinates(result)))


def render_tuning_page(result: TuningResult, name: str) -> str:
    """Return the page as HTML."""
    values = result.plan.search.resolve(result.best.parameters, result.shape)
    return render_page(
        "tuning.html",
        name=name,
        result=result,
        verdict=result.verdict(),
        coordinates=build_coordinates(result),
        progress_chart=_draw_progress(result),
        best_values=[(parameter, format_value(value)) for parameter, value in values.items()],
        table=build_trial_table(result, result.trials),
        today=date.today().isoformat(),
        versions=", ".join(f"{package} {version}" for package, version in collect_versions().items()),
    )


def build_coordinates(result: TuningResult) -> ParallelChart:
    """Build the parallel coordinates of all trials with a figure, the figure last."""
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
    return ParallelChart("Settings and their figures", [*axes, ParallelAxis(metric, figures)], lines, description)


def build_trial_table(result: TuningResult, trials: list[Trial]) -> TextTable:
    """Build a table of trials with their figures and the values of the tuned parameters."""
    names = [name for name in result.plan.search.space if name != "epochs"]
    headers = ["trial", result.plan.metric, "best epoch", "s", *names]
    rows = []
    for trial in trials:
        figure = "failed" if trial.figure is None else f"{trial.figure:.4f}"
        figure += " *" if trial.state == "stopped" else ""
        values = result.plan.search.resolve(trial.parameters, result.shape)
        cells = [format_value(values[name]) for name in names]
        rows.append([str(trial.number), figure, f"{trial.epoch}/{trial.epochs}", f"{trial.seconds:.1f}", *cells])
    return TextTable(headers, rows)


def format_value(value: object) -> str:
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


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rank_shares(figures: list[float]) -> list[float]:
    """Return figures as ranks from 0 to 1; a few failures would otherwise make all others look alike."""
    ranks = np.argsort(np.argsort(figures, kind="stable"))
    return (ranks / max(len(figures) - 1, 1)).tolist()  # type: ignore[no-any-return]


def _draw_progress(result: TuningResult) -> svg_charts.LineChart:
    """Draw the best figure of the finished trials against minutes, as steps."""
    metric, default = result.plan.metric, result.trials[0].figure
    ends = [seconds / 60 for seconds in accumulate(trial.seconds for trial in result.trials)]
    finished_figures = [
        trial.figure if trial.state == "done" and trial.figure is not None else -math.inf for trial in result.trials
    ]
    best = accumulate(finished_figures, max)
    best_points = [(x, y) for x, y in zip(ends, best, strict=True) if math.isfinite(y)]
    steps = [best_points[0]] + [point for (_, y), (x, z) in pairwise(best_points) for point in ((x, y), (x, z))]
    series = [svg_charts.ChartSeries("best", [x for x, _ in steps], [y for _, y in steps])]
    if default is not None:
        series.append(svg_charts.ChartSeries("defaults", [0.0, ends[-1]], [default] * 2, style=-1))
    values = [y for line in series for y in line.y]
    room = 0.1 * (max(values) - min(values)) or 0.01
    return svg_charts.LineChart(
        f"Best {metric} so far",
        series,
        svg_charts.ChartAxis("minutes", low=0.0),
        svg_charts.ChartAxis(metric, low=min(values) - room, high=max(values) + room),
        f"it ends at {result.best.figure:.4f}",
    )


def choose_line_colour(share: float) -> str:
    """Return the colour of a line.

    Examples
    --------
    >>> choose_line_colour(0), choose_line_colour(1)
    ('#aa8e4e', '#093448')
    """
    position = min(max(share, 0.0), 1.0) * (len(_SHADES) - 1)
    channels = zip(*_SHADES, strict=True)
    return "#" + "".join(f"{round(np.interp(position, range(len(_SHADES)), shades)):02x}" for shades in channels)


def _format_ends(low: float, high: float) -> tuple[str, str]:
    """Return the texts of an axis' ends: three digits, or more if they would be the same."""
    texts = svg_charts.format_tick(float(f"{low:.3g}")), svg_charts.format_tick(float(f"{high:.3g}"))
    return texts if texts[0] != texts[1] else (svg_charts.format_tick(low), svg_charts.format_tick(high))


def _list_log_marks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between the ends."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= high]
