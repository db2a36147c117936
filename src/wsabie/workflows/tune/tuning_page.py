"""Page of a search: parallel coordinates, the best figure against time, all trials."""

import math
from datetime import date
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from wsabie.core.machine import collect_versions
from wsabie.storage.atomic_files import write_text
from wsabie.workflows.charts.chart_types import ChartSeries, draw_line_chart
from wsabie.workflows.charts.html_markup import Markup, build_element, join_markup
from wsabie.workflows.charts.html_page import PageSection, render_chart, render_facts, render_number_table, render_page
from wsabie.workflows.charts.parallel_coordinates import ParallelAxis, ParallelLine, draw_parallel_coordinates
from wsabie.workflows.charts.svg_elements import ChartAxis
from wsabie.workflows.compare.comparison import TextTable
from wsabie.workflows.tune.search_spaces import ChoiceParameter, RangeParameter
from wsabie.workflows.tune.trial_journal import Trial
from wsabie.workflows.tune.tuning_results import TuningResult

_CAPTION = (
    "One line per trial. The darker and thicker, the better; dashed lines were stopped because they fell behind. The "
    "axis on the right is the figure on the validation rows."
)


def write_tuning_page(folder: Path, result: TuningResult, name: str) -> None:
    """Write tuning.html and parallel.svg into the folder."""
    coordinates = build_coordinates(result)
    write_text(folder / "parallel.svg", coordinates + "\n")
    write_text(folder / "tuning.html", render_tuning_page(result, name, coordinates))


def render_tuning_page(result: TuningResult, name: str, coordinates: Markup) -> str:
    """Return the page as HTML."""
    metric, n_trials = result.plan.metric, len(result.trials)
    header = join_markup(
        build_element("p", "wsabie tune", class_="eyebrow"),
        build_element("h1", f"Tuning on {name}"),
        build_element("p", result.verdict()[:1].upper() + result.verdict()[1:] + ".", class_="lead"),
    )
    trial_table = build_trial_table(result, result.trials)
    best = render_facts([(name, format_value(value)) for name, value in _resolve_values(result, result.best).items()])
    stopped = sum(trial.state == "stopped" for trial in result.trials)
    failed = sum(trial.state == "failed" for trial in result.trials)
    trial_counts = f"{n_trials} trials, of which {stopped} were stopped early and {failed} failed."
    scrollable = build_element("div", build_element("div", coordinates, style="min-width: 54rem"), class_="scroll")
    figure = build_element(
        "figure", scrollable, build_element("figcaption", _CAPTION), class_="chart", style="max-width: none"
    )
    progress_chart = render_chart(
        f"Best {metric} so far", _draw_progress(result), "The dashed line is the defaults' figure."
    )
    sections = [
        PageSection("trials", "Trials", "All trials", trial_counts, figure),
        PageSection("time", "Time", "Against time", None, build_element("div", progress_chart, class_="charts")),
        PageSection("best", "Best setting", f"Trial {result.best.number}", None, best),
        PageSection(
            "table",
            "TextTable",
            "In numbers",
            None,
            render_number_table(trial_table.headers, trial_table.rows, "All trials"),
        ),
    ]
    versions = ", ".join(f"{package} {version}" for package, version in collect_versions().items())
    fingerprint = result.facts["fingerprint"] or "unknown"
    footer = f"Made by wsabie on {date.today().isoformat()}: {versions}; data {fingerprint}. This file loads nothing."
    return render_page(f"Tuning on {name}", header, sections, footer)


def build_coordinates(result: TuningResult) -> Markup:
    """Draw all trials with a figure as parallel coordinates, the figure last."""
    trials = [trial for trial in result.trials if trial.figure is not None]
    settings = [_resolve_values(result, trial) for trial in trials]
    figures = [trial.figure or 0.0 for trial in trials]
    axes = [
        ParallelAxis(
            name,
            [setting[name] for setting in settings],
            isinstance(dimension, RangeParameter) and dimension.log,
            isinstance(dimension, ChoiceParameter),
        )
        for name, dimension in result.plan.search.space.items()
    ]
    axes = [
        axis._replace(values=[format_value(value) if not _is_number(value) else value for value in axis.values])
        for axis in axes
    ]
    metric = result.plan.metric
    shares = _rank_shares(figures)
    lines = [
        ParallelLine(share, trial.state == "stopped", f"trial {trial.number}: {metric} {trial.figure:.4f}")
        for share, trial in zip(shares, trials, strict=True)
    ]
    description_ = f"{len(trials)} trials; the best, number {result.best.number}, has {metric} {result.best.figure:.4f}"
    return draw_parallel_coordinates(
        [*axes, ParallelAxis(metric, figures)], lines, title="Settings and their figures", description=description_
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
        values = _resolve_values(result, trial)
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


def _resolve_values(result: TuningResult, trial: Trial) -> dict[str, Any]:
    return result.plan.search.resolved(trial.parameters, result.shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rank_shares(figures: list[float]) -> list[float]:
    """Return figures as ranks from 0 to 1; a few failures would otherwise make all others look alike."""
    order = sorted(range(len(figures)), key=lambda i: figures[i])
    places = {i: place for place, i in enumerate(order)}
    return [places[i] / max(len(figures) - 1, 1) for i in range(len(figures))]


def _draw_progress(result: TuningResult) -> Markup:
    """Draw the best figure of the finished trials against minutes, as steps."""
    ends = [seconds / 60 for seconds in accumulate(trial.seconds for trial in result.trials)]
    finished_figures = [
        trial.figure if trial.state == "done" and trial.figure is not None else -math.inf for trial in result.trials
    ]
    best = list(accumulate(finished_figures, max))
    best_points = [(x, y) for x, y in zip(ends, best, strict=True) if math.isfinite(y)]
    steps = [best_points[0]] + [point for (_, y), (x, z) in pairwise(best_points) for point in ((x, y), (x, z))]
    series = [ChartSeries("best", [x for x, _ in steps], [y for _, y in steps])]
    if result.trials[0].figure is not None:
        series.append(ChartSeries("defaults", [0.0, ends[-1]], [result.trials[0].figure] * 2, style=-1))
    title, description_ = f"Best {result.plan.metric} so far", f"it ends at {result.best.figure:.4f}"
    values = [y for line in series for y in line.y]
    room = 0.1 * (max(values) - min(values)) or 0.01
    figure_axis = ChartAxis(result.plan.metric, low=min(values) - room, high=max(values) + room)
    return draw_line_chart(series, ChartAxis("minutes", low=0.0), figure_axis, title=title, description=description_)
