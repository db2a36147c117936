"""Training section: curves per epoch, and the estimated ranks of true labels."""

import math
from collections.abc import Callable, Sequence

from wsabie.evaluation.metrics import select_informative_lengths
from wsabie.training.epoch_stats import EpochStats, list_other_metrics
from wsabie.workflows.charts.chart_types import BarGroup, ChartSeries, draw_bar_chart, draw_legend, draw_line_chart
from wsabie.workflows.charts.html_markup import Markup, build_element, join_markup
from wsabie.workflows.charts.html_page import PageSection, render_chart, render_number_table
from wsabie.workflows.charts.svg_elements import ChartAxis
from wsabie.workflows.report.number_format import (
    explain_metric,
    format_bands,
    format_duration,
    format_metric,
    format_range,
)
from wsabie.workflows.report.report_input import ReportInput

Curve = tuple[str, str, str, Callable[[EpochStats], float | None]]
"""Heading, axis, caption, and the function that reads the figure."""

_VALIDATION_CURVE: Curve = (
    "Quality on validation rows",
    "MAP",
    "Mean average precision on rows kept aside to decide when to stop; the best epoch's model is the one kept.",
    lambda s: s.validation,
)
_LEARNING_CURVES: tuple[Curve, ...] = (
    (
        "Loss",
        "loss",
        "What training makes smaller: wrong labels that score too close to right ones, weighted by how far down the "
        "right one stands.",
        lambda s: s.loss,
    ),
    (
        "Violations",
        "share of pairs",
        "How often any wrong label was found that scores too close to the right one; when it falls, there is less "
        "left to learn.",
        lambda s: s.violation_rate,
    ),
    (
        "Search",
        "labels drawn",
        "How many wrong labels were drawn at random before one scored too high; the more it takes, the better the "
        "right label stands.",
        lambda s: s.mean_draws,
    ),
)
_SPEED_CURVES: tuple[Curve, ...] = (
    (
        "Speed",
        "pairs/s",
        "Pairs of a row and a label that were trained on, per second; looking at the validation rows is not counted.",
        lambda s: s.pairs_per_second,
    ),
    (
        "Memory traffic",
        "GB/s",
        "What the steps read and wrote of the model's two tables, mostly within the processor's caches when these are "
        "small; 1 GB is 1,000,000,000 bytes.",
        lambda s: s.bytes_per_second / 1e9,
    ),
)


def render_training_section(report: ReportInput) -> PageSection | None:
    """Render small charts, one per figure."""
    history = report.history
    if not history:
        return None
    other_metrics = [
        name for name in list_other_metrics(history) if _is_informative(name, report.comparison.task.facts.labels)
    ]
    curves = [
        _draw_curve(history, *curve)
        for curve in (_VALIDATION_CURVE, *map(_make_metric_curve, other_metrics), *_LEARNING_CURVES)
    ]
    rates = [_draw_curve(history, *curve) for curve in _SPEED_CURVES]
    table = render_number_table(
        ["epoch", "MAP", *other_metrics, "loss", "violations", "draws", "pairs/s", "GB/s", "seconds"],
        [_format_epoch(number, stats, other_metrics) for number, stats in enumerate(history, 1)],
        "Every epoch",
    )
    seconds = sum(stats.seconds for stats in history)
    pairs = sum(stats.pairs for stats in history) / max(seconds, 1e-9)
    intro = (
        f"{len(history)} passes over the training pairs in {format_duration(seconds)}, {pairs:,.0f} pairs a second. "
        + _name_best_epoch(history)
    )
    body = build_element("div", curves, _draw_rank_curve(history), _draw_rank_bars(history), rates, class_="charts")
    return PageSection(
        "training", "Training", "How it learned", intro, join_markup(body, table, _render_rank_table(history))
    )


def _is_informative(metric: str, n_labels: int) -> bool:
    """Return True if a figure differs between models; recall among all labels does not."""
    length = metric.partition("@")[2]
    return not length or bool(select_informative_lengths([int(length)], n_labels))


def _name_best_epoch(history: Sequence[EpochStats]) -> str:
    validated_epochs = [stats for stats in history if stats.validation is not None]
    if not validated_epochs:
        return ""
    best = max(validated_epochs, key=lambda stats: stats.validation or 0.0)
    return f"The model of epoch {history.index(best) + 1} was the best on the validation rows and was kept."


def _make_metric_curve(name: str) -> Curve:
    """Return the curve of a figure that does not choose the epoch."""
    meaning = explain_metric(name)
    caption = f"{meaning[:1].upper()}{meaning[1:]}, on the same rows; it does not decide."
    return f"{name} on validation rows", name, caption, lambda s: s.validation_metrics.get(name)


def _draw_curve(
    history: Sequence[EpochStats],
    title: str,
    unit: str,
    caption: str,
    read_figure: Callable[[EpochStats], float | None],
) -> Markup | None:
    points = [(epoch, value) for epoch, stats in enumerate(history, 1) if (value := read_figure(stats)) is not None]
    if not points:
        return None
    epochs, values = zip(*points, strict=True)
    drawing = draw_line_chart(
        [ChartSeries(title, epochs, values)],
        ChartAxis("epoch", ticks=_epoch_ticks(epochs)),
        ChartAxis(unit, low=0.0),
        title=f"{title} by epoch",
        description=f"From {values[0]:.3g} in epoch {epochs[0]} to {values[-1]:.3g} in epoch {epochs[-1]}.",
    )
    return render_chart(title, drawing, caption)


def _epoch_ticks(epochs: Sequence[int]) -> list[tuple[float, str]]:
    step = max(1, -(-(epochs[-1] - epochs[0]) // 8))
    return [(float(epoch), str(epoch)) for epoch in range(epochs[0], epochs[-1] + 1, step)]


def _draw_rank_curve(history: Sequence[EpochStats]) -> Markup | None:
    """Draw the median and quartiles of the estimated ranks, on a scale of powers of two."""
    histograms_by_epoch = [
        (number, stats.rank_histogram) for number, stats in enumerate(history, 1) if any(stats.rank_histogram)
    ]
    if not histograms_by_epoch:
        return None
    epochs, histograms = zip(*histograms_by_epoch, strict=True)
    low, median, high = ([_quantile(histogram, share) for histogram in histograms] for share in (0.25, 0.5, 0.75))
    top = math.ceil(max(high))
    drawing = draw_line_chart(
        [ChartSeries("median", epochs, median, low, high)],
        ChartAxis("epoch", ticks=_epoch_ticks(epochs)),
        ChartAxis(
            "estimated place",
            [(exponent, f"{2**exponent:,}") for exponent in range(0, top + 1, 1 + top // 8)],
            0.0,
            top,
        ),
        title="Estimated ranks by epoch",
        description=f"Median from {2 ** median[0]:.0f} in epoch {epochs[0]} to {2 ** median[-1]:.0f} in epoch "
        f"{epochs[-1]}.",
    )
    caption = (
        "Where the right label was estimated to stand when a step was taken: the median and, shaded, the middle half "
        "of the steps. The scale is of powers of two."
    )
    return render_chart("Estimated ranks by epoch", drawing, caption)


def _quantile(histogram: Sequence[int], share: float) -> float:
    """Return the power of two below which this share of the steps lies; each bin counts as evenly filled.

    Examples
    --------
    >>> _quantile([0, 10, 10], 0.5), _quantile([0, 10, 10], 0.25)
    (2.0, 1.5)
    """
    remaining = share * sum(histogram)
    for exponent, count in enumerate(histogram):
        if count and remaining <= count:
            return exponent + remaining / count
        remaining -= count
    return float(len(histogram))


def _draw_rank_bars(history: Sequence[EpochStats]) -> Markup | None:
    first, last = history[0], history[-1]
    width = max(len(first.rank_histogram), len(last.rank_histogram))
    if not width:
        return None
    shown_epochs = {1: first} if first is last else {1: first, len(history): last}
    groups = [
        BarGroup(f"epoch {number}", _compute_rank_shares(stats, width), style)
        for (number, stats), style in zip(shown_epochs.items(), (1, 0), strict=False)
    ]
    drawing = draw_bar_chart(
        groups,
        format_bands(
            [2**exponent for exponent in range(width)], [2 ** (exponent + 1) - 1 for exponent in range(width)]
        ),
        "estimated place of the right label",
        ChartAxis("% of steps"),
        title="Estimated ranks",
        description="Share of the training steps by the place at which the right label was estimated to stand.",
    )
    caption = (
        "Where the right label was estimated to stand when a step was taken. Training moves it to the left: "
        "towards the top of the list."
    )
    names = draw_legend([(bars.name, bars.style) for bars in groups], bars=True)
    return render_chart("Estimated ranks", drawing, caption, names)


def _render_rank_table(history: Sequence[EpochStats]) -> Markup | None:
    width = max(len(stats.rank_histogram) for stats in history)
    if not width:
        return None
    places = [format_range(2**exponent, 2 ** (exponent + 1) - 1) for exponent in range(width)]
    lines = [
        [str(number), *(f"{share:.1f}" for share in _compute_rank_shares(stats, width))]
        for number, stats in enumerate(history, 1)
    ]
    return render_number_table(["epoch", *places], lines, "Estimated ranks of every epoch, % of steps")


def _compute_rank_shares(stats: EpochStats, width: int) -> list[float]:
    total = max(sum(stats.rank_histogram), 1)
    counts = [*stats.rank_histogram, *[0] * (width - len(stats.rank_histogram))]
    return [100 * count / total for count in counts]


def _format_epoch(number: int, stats: EpochStats, other_metrics: Sequence[str]) -> list[str]:
    validation_figures = [stats.validation, *map(stats.validation_metrics.get, other_metrics)]
    return [
        str(number),
        *("" if value is None else format_metric(value) for value in validation_figures),
        format_metric(stats.loss),
        format_metric(stats.violation_rate),
        format_metric(stats.mean_draws, 1),
        f"{stats.pairs_per_second:,.0f}",
        f"{stats.bytes_per_second / 1e9:.2f}",
        f"{stats.seconds:.2f}",
    ]
