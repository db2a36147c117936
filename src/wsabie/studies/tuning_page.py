"""What a search found, to look at: parallel coordinates, the best figure against time, all trials."""

import math
from datetime import date
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from wsabie.base.machine import versions
from wsabie.storage.atomic import write_text
from wsabie.studies.charts import Series, line_chart
from wsabie.studies.comparison import Table
from wsabie.studies.html.markup import Markup, element, join
from wsabie.studies.html.page import Section, chart, facts, numbers, page
from wsabie.studies.html.parallel import Coordinate, Line, parallel
from wsabie.studies.html.svg import Axis
from wsabie.studies.journal import Trial
from wsabie.studies.search_spaces import Choice, Range
from wsabie.studies.tuned import Tuned

_CAPTION = (
    "One line per trial. The darker and thicker, the better; dashed lines were stopped because they fell behind. The "
    "axis on the right is the figure on the validation rows."
)


def write_page(folder: Path, found: Tuned, name: str) -> None:
    """Write tuning.html and parallel.svg into the folder."""
    drawn = coordinates(found)
    write_text(folder / "parallel.svg", drawn + "\n")
    write_text(folder / "tuning.html", render(found, name, drawn))


def render(found: Tuned, name: str, drawn: Markup) -> str:
    """The page as a string."""
    metric, n = found.plan.metric, len(found.trials)
    header = join(
        element("p", "wsabie tune", class_="eyebrow"),
        element("h1", f"Tuning on {name}"),
        element("p", found.verdict()[:1].upper() + found.verdict()[1:] + ".", class_="lead"),
    )
    every = trial_table(found, found.trials)
    best = facts([(name, shown(value)) for name, value in _values(found, found.best).items()])
    stopped = sum(trial.state == "stopped" for trial in found.trials)
    failed = sum(trial.state == "failed" for trial in found.trials)
    counted = f"{n} trials, of which {stopped} were stopped early and {failed} failed."
    scrolled = element("div", element("div", drawn, style="min-width: 54rem"), class_="scroll")
    wide = element("figure", scrolled, element("figcaption", _CAPTION), class_="chart", style="max-width: none")
    curve = chart(f"Best {metric} so far", _progress(found), "The dashed line is the defaults' figure.")
    sections = [
        Section("trials", "Trials", "All trials", counted, wide),
        Section("time", "Time", "Against time", None, element("div", curve, class_="charts")),
        Section("best", "Best setting", f"Trial {found.best.number}", None, best),
        Section("table", "Table", "In numbers", None, numbers(every.headers, every.rows, "All trials")),
    ]
    made = ", ".join(f"{what} {version}" for what, version in versions().items())
    fingerprint = found.facts["fingerprint"] or "unknown"
    footer = f"Made by wsabie on {date.today().isoformat()}: {made}; data {fingerprint}. This file loads nothing."
    return page(f"Tuning on {name}", header, sections, footer)


def coordinates(found: Tuned) -> Markup:
    """All trials with a figure as parallel coordinates, the figure last."""
    trials = [trial for trial in found.trials if trial.figure is not None]
    settings = [_values(found, trial) for trial in trials]
    figures = [trial.figure or 0.0 for trial in trials]
    axes = [
        Coordinate(
            name,
            [setting[name] for setting in settings],
            isinstance(along, Range) and along.log,
            isinstance(along, Choice),
        )
        for name, along in found.plan.search.space.items()
    ]
    axes = [axis._replace(values=[shown(v) if not _is_number(v) else v for v in axis.values]) for axis in axes]
    metric = found.plan.metric
    shares = _shares(figures)
    lines = [
        Line(share, trial.state == "stopped", f"trial {trial.number}: {metric} {trial.figure:.4f}")
        for share, trial in zip(shares, trials, strict=True)
    ]
    words = f"{len(trials)} trials; the best, number {found.best.number}, has {metric} {found.best.figure:.4f}"
    return parallel([*axes, Coordinate(metric, figures)], lines, title="Settings and their figures", description=words)


def trial_table(found: Tuned, trials: list[Trial]) -> Table:
    """Some trials with their figures and all values that are tried."""
    names = [name for name in found.plan.search.space if name != "epochs"]
    headers = ["trial", found.plan.metric, "best epoch", "s", *names]
    rows = []
    for trial in trials:
        figure = (
            "failed" if trial.figure is None else f"{trial.figure:.4f}" + (" *" if trial.state == "stopped" else "")
        )
        values = _values(found, trial)
        told = [shown(values[name]) for name in names]
        rows.append([str(trial.number), figure, f"{trial.epoch}/{trial.epochs}", f"{trial.seconds:.1f}", *told])
    return Table(headers, rows)


def shown(value: Any) -> str:
    """A value of a parameter in a table.

    Examples
    --------
    >>> shown(0.12345), shown(None), shown(True)
    ('0.123', 'none', 'yes')
    """
    words = {None: "none", True: "yes", False: "no"}
    if value is None or isinstance(value, bool):
        return words[value]
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _values(found: Tuned, trial: Trial) -> dict[str, Any]:
    return found.plan.search.resolved(trial.parameters, found.shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shares(figures: list[float]) -> list[float]:
    """How good from 0 to 1, by rank: a few failures would otherwise make all others look alike."""
    order = sorted(range(len(figures)), key=lambda i: figures[i])
    places = {i: place for place, i in enumerate(order)}
    return [places[i] / max(len(figures) - 1, 1) for i in range(len(figures))]


def _progress(found: Tuned) -> Markup:
    """The best figure of the trials that came to their end, against minutes, as steps."""
    ends = [seconds / 60 for seconds in accumulate(trial.seconds for trial in found.trials)]
    done = [trial.figure if trial.state == "done" and trial.figure is not None else -math.inf for trial in found.trials]
    best = list(accumulate(done, max))
    known = [(x, y) for x, y in zip(ends, best, strict=True) if math.isfinite(y)]
    steps = [known[0]] + [point for (_, y), (x, z) in pairwise(known) for point in ((x, y), (x, z))]
    series = [Series("best", [x for x, _ in steps], [y for _, y in steps])]
    if found.trials[0].figure is not None:
        series.append(Series("defaults", [0.0, ends[-1]], [found.trials[0].figure] * 2, style=-1))
    title, words = f"Best {found.plan.metric} so far", f"it ends at {found.best.figure:.4f}"
    values = [y for one in series for y in one.y]
    room = 0.1 * (max(values) - min(values)) or 0.01
    up = Axis(found.plan.metric, low=min(values) - room, high=max(values) + room)
    return line_chart(series, Axis("minutes", low=0.0), up, title=title, description=words)
