"""Charts and tables of figures in a report: models, label frequency, training."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from wsabie.evaluation.label_frequency import FrequencyBin, group_by_frequency
from wsabie.evaluation.metrics import select_informative_lengths
from wsabie.training.epoch_stats import EpochStats, list_other_metrics
from wsabie.workflows.charts.svg_charts import (
    BarGroup,
    ChartAxis,
    ChartSeries,
    IntervalSpan,
    draw_bar_chart,
    draw_interval_chart,
    draw_line_chart,
)
from wsabie.workflows.compare.comparison import Comparison, ModelEntry, TextTable
from wsabie.workflows.report.headline import choose_list_length, judge_main_model
from wsabie.workflows.report.html_pages import PageChart
from wsabie.workflows.report.number_format import (
    format_bands,
    format_difference,
    format_duration,
    format_metric,
    format_range,
)
from wsabie.workflows.report.report_input import ReportInput


class FrequencyFigures(NamedTuple):
    """Accuracy on rare and frequent labels: two charts, and a sentence about bands where the baseline is ahead."""

    found: PageChart
    counts: PageChart
    weak_bands: str


class TrainingFigures(NamedTuple):
    """Figures of a training: a sentence, named charts, all epochs, and the estimated ranks if there are any."""

    summary: str
    charts: list[tuple[str, PageChart]]
    epochs: TextTable
    ranks: TextTable | None


class TrainingCurve(NamedTuple):
    """A figure of every epoch, by the name that has a caption in the template."""

    name: str
    unit: str
    read_figure: Callable[[EpochStats], float | None]


_VALIDATION_CURVE = TrainingCurve("Quality on validation rows", "MAP", lambda stats: stats.validation)
_LEARNING_CURVES = (
    TrainingCurve("Loss", "loss", lambda stats: stats.loss),
    TrainingCurve("Violations", "share of pairs", lambda stats: stats.violation_rate),
    TrainingCurve("Search", "labels drawn", lambda stats: stats.mean_draws),
)
_SPEED_CURVES = (
    TrainingCurve("Speed", "pairs/s", lambda stats: stats.pairs_per_second),
    TrainingCurve("Memory traffic", "GB/s", lambda stats: stats.bytes_per_second / 1e9),
)


def order_entries(comparison: Comparison, main: str) -> list[ModelEntry]:
    """Return the entries with the main model first; the position sets the colour in every chart."""
    return sorted(comparison.entries, key=lambda entry: entry.name != main)


def draw_precision_chart(comparison: Comparison, entries: Sequence[ModelEntry]) -> PageChart:
    """Draw the precision of every model by the length of the list."""
    ks = entries[0].evaluation.ks
    series = [_build_precision_series(entry, style, ks) for style, entry in enumerate(entries)]
    series.append(ChartSeries("highest possible", ks, [comparison.ceilings[f"p@{k}"] for k in ks], style=-1))
    ends = sorted({min(ks), max(ks)})
    descriptions = [
        f"{line.name}: {', '.join(f'{line.y[ks.index(k)]:.2f} at {k}' for k in ends)}" for line in series[:-1]
    ]
    drawing = draw_line_chart(
        series,
        ChartAxis("number of suggestions looked at", _choose_length_ticks(ks)),
        ChartAxis("share that is right", low=0.0),
        title="Precision by length of the list",
        description="; ".join(descriptions) + ".",
    )
    rows = [[str(k), *(format_metric(line.y[i]) for line in series)] for i, k in enumerate(ks)]
    legend = [(line.name, line.style) for line in series]
    return PageChart(drawing, legend, table=TextTable(["k", *(line.name for line in series)], rows))


def draw_difference_chart(report: ReportInput) -> PageChart | None:
    """Draw the differences of the main model to the best baseline of each metric; None without baselines."""
    comparison = report.comparison
    verdicts = [judge_main_model(comparison, report.main, metric) for metric in comparison.metrics]
    spans, rows = [], []
    for verdict in verdicts:
        if verdict is not None:
            mean, low, high, _ = verdict.difference
            spans.append(IntervalSpan(verdict.metric, mean, low, high))
            rows.append([verdict.metric, verdict.baseline.title, *map(format_difference, (mean, low, high))])
    if not spans:
        return None
    title = f"{comparison[report.main].title} minus the best baseline"
    description = "; ".join(f"{span.name} {span.value:+.3f}" for span in spans) + "."
    drawing = draw_interval_chart(spans, "difference", title=title, description=description)
    return PageChart(drawing, table=TextTable(["metric", "best baseline", "difference", "from", "to"], rows))


def collect_frequency_figures(report: ReportInput) -> FrequencyFigures | None:
    """Collect the accuracy of the main model and the best baseline by label frequency; None for a single band."""
    comparison = report.comparison
    main = comparison[report.main]
    baseline = comparison.best(f"p@{choose_list_length(comparison)}", baselines=True)
    entries = [main] + ([baseline] if baseline is not None and baseline is not main else [])
    bands = [group_by_frequency(entry.evaluation.labels, comparison.task.counts) for entry in entries]
    non_empty = [i for i, band in enumerate(bands[0]) if band.n_rows]
    if len(non_empty) < 2:
        return None
    bands = [[band[i] for i in non_empty] for band in bands]
    names = format_bands([band.low for band in bands[0]], [band.high for band in bands[0]])
    axis = f"training {report.modality} that carry the label"
    return FrequencyFigures(
        _draw_found_chart(report, entries, bands, names, axis),
        _draw_counts_chart(report, bands[0], names, axis),
        name_weak_bands(report, entries, bands),
    )


def name_weak_bands(report: ReportInput, entries: Sequence[ModelEntry], bands: Sequence[Sequence[FrequencyBin]]) -> str:
    """Return a sentence that names the labels that the baseline finds more often; empty if there are none."""
    if len(entries) < 2:
        return ""
    worse = [main_bin for main_bin, baseline_bin in zip(*bands, strict=True) if baseline_bin.recall > main_bin.recall]
    if not worse:
        return ""
    listed = [format_range(band.low, band.high) for band in worse]
    ranges = " and ".join(filter(None, [", ".join(listed[:-1]), listed[-1]]))
    range_text = f"band {ranges}" if len(worse) == 1 else f"bands {ranges}"
    return f" {entries[1].title} finds more than {entries[0].title} in the {range_text} of training {report.modality}."


def collect_training_figures(history: Sequence[EpochStats], n_labels: int) -> TrainingFigures:
    """Collect the summary, the small charts (one per figure) and the tables of a training."""
    other_metrics = [name for name in list_other_metrics(history) if _is_informative(name, n_labels)]
    learning_curves = (_VALIDATION_CURVE, *map(_make_metric_curve, other_metrics), *_LEARNING_CURVES)
    charts = [
        *((curve.name, _draw_curve(history, curve)) for curve in learning_curves),
        ("Estimated ranks by epoch", _draw_rank_curve(history)),
        ("Estimated ranks", _draw_rank_bars(history)),
        *((curve.name, _draw_curve(history, curve)) for curve in _SPEED_CURVES),
    ]
    headers = ["epoch", "MAP", *other_metrics, "loss", "violations", "draws", "pairs/s", "GB/s", "seconds"]
    rows = [_format_epoch(number, stats, other_metrics) for number, stats in enumerate(history, 1)]
    seconds = sum(stats.seconds for stats in history)
    pairs = sum(stats.pairs for stats in history) / max(seconds, 1e-9)
    summary = (
        f"{len(history)} passes over the training pairs in {format_duration(seconds)}, {pairs:,.0f} pairs a second. "
        + _name_best_epoch(history)
    )
    return TrainingFigures(
        summary,
        [(name, chart) for name, chart in charts if chart is not None],
        TextTable(headers, rows),
        _build_rank_table(history),
    )


def _build_precision_series(entry: ModelEntry, style: int, ks: Sequence[int]) -> ChartSeries:
    low = high = None
    if style == 0:
        low, high = ([getattr(entry.intervals[f"p@{k}"], end) for k in ks] for end in ("low", "high"))
    return ChartSeries(entry.title, ks, [entry.evaluation.means[f"p@{k}"] for k in ks], low, high, style)


def _choose_length_ticks(ks: Sequence[int]) -> list[tuple[float, str]]:
    """Return the shortest list, and round lengths that do not crowd."""
    step = max(1, (ks[-1] - ks[0]) // 6)
    lengths = [ks[0]]
    for k in ks[1:]:
        if k - lengths[-1] >= step and (k % 5 == 0 or ks[-1] <= 10):
            lengths.append(k)
    return [(float(k), str(k)) for k in lengths]


def _draw_found_chart(
    report: ReportInput,
    entries: Sequence[ModelEntry],
    bands: Sequence[Sequence[FrequencyBin]],
    names: Sequence[str],
    axis: str,
) -> PageChart:
    items, first = report.modality, bands[0]
    groups = [
        BarGroup(entry.title, [frequency_bin.recall for frequency_bin in band], style)
        for style, (entry, band) in enumerate(zip(entries, bands, strict=True))
    ]
    drawing = draw_bar_chart(
        groups,
        names,
        axis,
        ChartAxis("share found"),
        title="Label frequency against accuracy",
        description=f"From labels with {first[0].low} to labels with {first[-1].high} training {items}.",
    )
    rows = [
        [
            format_range(bins[0].low, bins[0].high),
            f"{bins[0].n_labels:,}",
            *(format_metric(frequency_bin.recall) for frequency_bin in bins),
        ]
        for bins in zip(*bands, strict=True)
    ]
    table = TextTable([f"training {items}", "labels", *(entry.title for entry in entries)], rows)
    return PageChart(drawing, [(group.name, group.style) for group in groups], True, table)


def _draw_counts_chart(
    report: ReportInput, bands: Sequence[FrequencyBin], names: Sequence[str], axis: str
) -> PageChart:
    rarest = bands[0]
    drawing = draw_bar_chart(
        [BarGroup("labels", [frequency_bin.n_labels for frequency_bin in bands], 3)],
        names,
        axis,
        ChartAxis("labels"),
        title="How many labels are how frequent",
        description=f"{rarest.n_labels:,} labels have {format_range(rarest.low, rarest.high)} training "
        f"{report.modality}.",
    )
    return PageChart(drawing)


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


def _make_metric_curve(name: str) -> TrainingCurve:
    """Return the curve of a figure that does not choose the epoch."""
    return TrainingCurve(f"{name} on validation rows", name, lambda stats: stats.validation_metrics.get(name))


def _draw_curve(history: Sequence[EpochStats], curve: TrainingCurve) -> PageChart | None:
    points = [
        (epoch, value) for epoch, stats in enumerate(history, 1) if (value := curve.read_figure(stats)) is not None
    ]
    if not points:
        return None
    epochs, values = zip(*points, strict=True)
    drawing = draw_line_chart(
        [ChartSeries(curve.name, epochs, values)],
        _build_epoch_axis(epochs),
        ChartAxis(curve.unit, low=0.0),
        title=f"{curve.name} by epoch",
        description=f"From {values[0]:.3g} in epoch {epochs[0]} to {values[-1]:.3g} in epoch {epochs[-1]}.",
    )
    return PageChart(drawing)


def _build_epoch_axis(epochs: Sequence[int]) -> ChartAxis:
    step = max(1, -(-(epochs[-1] - epochs[0]) // 8))
    return ChartAxis("epoch", [(float(epoch), str(epoch)) for epoch in range(epochs[0], epochs[-1] + 1, step)])


def _draw_rank_curve(history: Sequence[EpochStats]) -> PageChart | None:
    """Draw the median and quartiles of the estimated ranks, on a scale of powers of two."""
    histograms_by_epoch = [
        (number, stats.rank_histogram) for number, stats in enumerate(history, 1) if any(stats.rank_histogram)
    ]
    if not histograms_by_epoch:
        return None
    epochs, histograms = zip(*histograms_by_epoch, strict=True)
    low, median, high = ([_quantile(histogram, share) for histogram in histograms] for share in (0.25, 0.5, 0.75))
    top = math.ceil(max(high))
    ticks = [(float(exponent), f"{2**exponent:,}") for exponent in range(0, top + 1, 1 + top // 8)]
    drawing = draw_line_chart(
        [ChartSeries("median", epochs, median, low, high)],
        _build_epoch_axis(epochs),
        ChartAxis("estimated place", ticks, 0.0, top),
        title="Estimated ranks by epoch",
        description=f"Median from {2 ** median[0]:.0f} in epoch {epochs[0]} "
        f"to {2 ** median[-1]:.0f} in epoch {epochs[-1]}.",
    )
    return PageChart(drawing)


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


def _draw_rank_bars(history: Sequence[EpochStats]) -> PageChart | None:
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
    return PageChart(drawing, [(group.name, group.style) for group in groups], has_bars=True)


def _build_rank_table(history: Sequence[EpochStats]) -> TextTable | None:
    width = max(len(stats.rank_histogram) for stats in history)
    if not width:
        return None
    places = [format_range(2**exponent, 2 ** (exponent + 1) - 1) for exponent in range(width)]
    rows = [
        [str(number), *(f"{share:.1f}" for share in _compute_rank_shares(stats, width))]
        for number, stats in enumerate(history, 1)
    ]
    return TextTable(["epoch", *places], rows)


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
