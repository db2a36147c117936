"""Figures of a report: its sentence, which tells chance from a difference, and its charts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.evaluation.metrics import select_informative_lengths
from wsabie.evaluation.score_evaluation import FrequencyBin, group_by_frequency
from wsabie.training.epoch_stats import EpochStats, compute_rank_shares, find_best_epoch, list_other_metrics
from wsabie.workflows.charts import svg_charts
from wsabie.workflows.compare.comparison import Comparison, ModelEntry
from wsabie.workflows.report.number_format import format_bands, format_difference, format_duration, format_range
from wsabie.workflows.report.report_input import ReportInput

_MIN_LABELS_PER_ROW = 1.1
"""Mean number of true labels above which a list says more than the first label."""


class ModelVerdict(NamedTuple):
    """The difference of the main model to the best baseline in one metric."""

    metric: str
    baseline: ModelEntry
    difference: PairedDifference

    @property
    def relative(self) -> float:
        """Difference / the baseline's figure; infinite if that is 0."""
        base = self.baseline.evaluation.means[self.metric]
        return self.difference.mean / base if base else float("inf")

    @property
    def words(self) -> str:
        """Meaning of the interval in words."""
        if self.difference.low > 0:
            return "more than chance explains"
        if self.difference.high < 0:
            return "less, by more than chance explains"
        return "a difference that may be chance"


def choose_list_length(comparison: Comparison) -> int:
    """Return the k of a report: 10, or the longest list with at most two thirds of the labels.

    A list of nearly all labels is nearly as good for any model. If rows have one label, at most one label of a longer
    list can be right.
    """
    evaluation = comparison.entries[0].evaluation
    if all(comparison.ceilings.get(f"p@{k}", 1.0) * k < _MIN_LABELS_PER_ROW for k in evaluation.ks):
        return min(evaluation.ks)
    lengths = [k for k in evaluation.ks if f"p@{k}" in comparison.metrics and 3 * k <= 2 * evaluation.n_labels]
    return max(lengths, default=min(evaluation.ks))


def judge_main_model(comparison: Comparison, main: ModelEntry, metric: str) -> ModelVerdict | None:
    """Compare the main model with the best baseline; return None without one."""
    difference = main.differences.get(metric)
    return None if difference is None else ModelVerdict(metric, comparison[difference[0]], difference[1])


def format_headline(comparison: Comparison, entry: ModelEntry, modality: str = "rows") -> str:
    """Return one sentence about the first k suggestions.

    With the sample data, for instance: "With WARP embedding, 4.0 of the first 10 labels suggested for each of 877
    unseen pictures are right on average, against 3.6 with k nearest neighbours (more than chance explains); at most 6.8
    are possible."
    """
    k = choose_list_length(comparison)
    metric, n_rows = f"p@{k}", f"{entry.evaluation.n_rows:,}"
    verdict = judge_main_model(comparison, entry, metric)
    n_right, against = _format_right(entry, metric, k), ""
    if verdict is not None:
        baseline = verdict.baseline
        against = f", against {_format_right(baseline, metric, k)} with {baseline.title} ({verdict.words})"
    if k == 1:
        start = f"With {entry.title}, the first label suggested is right for {n_right} of {n_rows} unseen"
        return f"{start} {modality}{against}."
    start = f"With {entry.title}, {n_right} of the first {k} labels suggested for each of {n_rows} unseen"
    top = f"at most {comparison.ceilings[metric] * k:.1f} are possible"
    return f"{start} {modality} are right on average{against}; {top}."


def format_gain(verdict: ModelVerdict, base: int) -> str:
    """Return the difference in percent of the baseline; in labels or items if the baseline has none right."""
    if math.isfinite(verdict.relative):
        return f"{verdict.relative:+z.0%}".replace("-", "−")
    return f"{format_difference(verdict.difference.mean * base, 1)} of {base}"


def _format_right(entry: ModelEntry, metric: str, k: int) -> str:
    """Return the number of correct labels among the first k; of the first one the share of rows."""
    mean = entry.evaluation.means[metric]
    return f"{mean:.1%}" if k == 1 else f"{mean * k:.1f}"


class FrequencyFigures(NamedTuple):
    """Accuracy on rare and frequent labels: each entry's bins, two charts, bands with the baseline ahead."""

    bins: list[tuple[FrequencyBin, ...]]
    accuracy: svg_charts.BarChart
    counts: svg_charts.BarChart
    weak_bands: str


class TrainingFigures(NamedTuple):
    """Figures of a training: a sentence, named charts, further metrics, and shares of the estimated ranks."""

    summary: str
    charts: Sequence[tuple[str, svg_charts.Chart]]
    metrics: list[str]
    ranks: list[str]
    rank_shares: list[list[float]]


def draw_precision_chart(comparison: Comparison, entries: Sequence[ModelEntry]) -> svg_charts.LineChart:
    """Draw the precision of every model by the length of the list."""
    ks = entries[0].evaluation.ks
    low, high = ([getattr(entries[0].intervals[f"p@{k}"], end) for k in ks] for end in ("low", "high"))
    series = [
        svg_charts.ChartSeries(entry.title, ks, [entry.evaluation.means[f"p@{k}"] for k in ks], style=style)
        for style, entry in enumerate(entries)
    ]
    series[0] = replace(series[0], low=low, high=high)
    ends = sorted({min(ks), max(ks)})
    descriptions = [f"{line.name}: {', '.join(f'{line.y[ks.index(k)]:.2f} at {k}' for k in ends)}" for line in series]
    series.append(svg_charts.ChartSeries("highest possible", ks, [comparison.ceilings[f"p@{k}"] for k in ks], style=-1))
    return svg_charts.LineChart(
        "Precision by length of the list",
        series,
        svg_charts.ChartAxis("number of suggestions looked at", _choose_length_ticks(ks)),
        svg_charts.ChartAxis("share that is right", low=0.0),
        "; ".join(descriptions) + ".",
    )


def draw_difference_chart(title: str, verdicts: Sequence[ModelVerdict]) -> svg_charts.IntervalChart:
    """Draw the differences of the main model to the best baseline of each metric."""
    spans = [svg_charts.IntervalSpan(verdict.metric, *verdict.difference[:3]) for verdict in verdicts]
    description = "; ".join(f"{span.name} {span.value:+.3f}" for span in spans) + "."
    return svg_charts.IntervalChart(f"{title} minus the best baseline", spans, "difference", description)


def collect_frequency_figures(report: ReportInput, main: ModelEntry) -> FrequencyFigures | None:
    """Collect accuracy by label frequency, of the main model and the best baseline; None for one band."""
    comparison, items = report.comparison, report.modality
    baseline = comparison.best(f"p@{choose_list_length(comparison)}", baselines=True)
    entries = [main] + ([baseline] if baseline is not None and baseline is not main else [])
    bands = [group_by_frequency(entry.evaluation.labels, comparison.task.counts) for entry in entries]
    non_empty = [i for i, band in enumerate(bands[0]) if band.n_rows]
    if len(non_empty) < 2:
        return None
    bands = [[band[i] for i in non_empty] for band in bands]
    first = bands[0]
    names = format_bands([band.low for band in first], [band.high for band in first])
    axis = f"training {items} that carry the label"
    return FrequencyFigures(
        list(zip(*bands, strict=True)),
        svg_charts.BarChart(
            "Label frequency against accuracy",
            [
                svg_charts.BarGroup(entry.title, [frequency_bin.recall for frequency_bin in band], style)
                for style, (entry, band) in enumerate(zip(entries, bands, strict=True))
            ],
            names,
            axis,
            svg_charts.ChartAxis("share found"),
            f"From labels with {first[0].low} to labels with {first[-1].high} training {items}.",
        ),
        svg_charts.BarChart(
            "How many labels are how frequent",
            [svg_charts.BarGroup("labels", [frequency_bin.n_labels for frequency_bin in first], 3)],
            names,
            axis,
            svg_charts.ChartAxis("labels"),
            f"{first[0].n_labels:,} labels have {format_range(first[0].low, first[0].high)} training {items}.",
        ),
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
    """Collect the summary and the small charts (one per figure) of a training."""
    other_metrics = [name for name in list_other_metrics(history) if _is_informative(name, n_labels)]
    rank_shares = [[100 * share for share in shares] for shares in compute_rank_shares(history)]
    figures: dict[str, tuple[str, list[float | None]]] = {
        "Quality on validation rows": ("MAP", [stats.validation for stats in history]),
        **{
            f"{name} on validation rows": (name, [stats.validation_metrics.get(name) for stats in history])
            for name in other_metrics
        },
        "Loss": ("loss", [stats.loss for stats in history]),
        "Violations": ("share of pairs", [stats.violation_rate for stats in history]),
        "Search": ("labels drawn", [stats.mean_draws for stats in history]),
        "Speed": ("pairs/s", [stats.pairs_per_second for stats in history]),
        "Memory traffic": ("GB/s", [stats.bytes_per_second / 1e9 for stats in history]),
    }
    curves = [(name, _draw_curve(name, unit, values)) for name, (unit, values) in figures.items()]
    ranks = ("Estimated ranks by epoch", _draw_rank_curve(history)), ("Estimated ranks", _draw_rank_bars(rank_shares))
    charts = [(name, chart) for name, chart in (*curves[:-2], *ranks, *curves[-2:]) if chart is not None]
    seconds = sum(stats.seconds for stats in history)
    pairs = sum(stats.pairs for stats in history) / max(seconds, 1e-9)
    summary = (
        f"{len(history)} passes over the training pairs in {format_duration(seconds)}, {pairs:,.0f} pairs a second. "
        + _name_best_epoch(history)
    )
    ranks_by_bin = [format_range(2**i, 2 ** (i + 1) - 1) for i in range(len(rank_shares[0]))]
    return TrainingFigures(summary, charts, other_metrics, ranks_by_bin, rank_shares)


def _choose_length_ticks(ks: Sequence[int]) -> list[tuple[float, str]]:
    """Return the shortest list, and round lengths that do not crowd."""
    step = max(1, (ks[-1] - ks[0]) // 6)
    lengths = [ks[0]]
    for k in ks[1:]:
        if k - lengths[-1] >= step and (k % 5 == 0 or ks[-1] <= 10):
            lengths.append(k)
    return [(float(k), str(k)) for k in lengths]


def _is_informative(metric: str, n_labels: int) -> bool:
    """Return True if a figure differs between models; recall among all labels does not."""
    length = metric.partition("@")[2]
    return not length or bool(select_informative_lengths([int(length)], n_labels))


def _name_best_epoch(history: Sequence[EpochStats]) -> str:
    if (best := find_best_epoch(history)) is None:
        return ""
    return f"The model of epoch {history.index(best) + 1} was the best on the validation rows and was kept."


def _draw_curve(name: str, unit: str, figures: Sequence[float | None]) -> svg_charts.LineChart | None:
    """Draw a figure of every epoch; the template has a caption for the name."""
    points = [(epoch, value) for epoch, value in enumerate(figures, 1) if value is not None]
    if not points:
        return None
    epochs, values = zip(*points, strict=True)
    return svg_charts.LineChart(
        f"{name} by epoch",
        [svg_charts.ChartSeries(name, epochs, values)],
        _build_epoch_axis(epochs),
        svg_charts.ChartAxis(unit, low=0.0),
        f"From {values[0]:.3g} in epoch {epochs[0]} to {values[-1]:.3g} in epoch {epochs[-1]}.",
    )


def _build_epoch_axis(epochs: Sequence[int]) -> svg_charts.ChartAxis:
    step = max(1, -(-(epochs[-1] - epochs[0]) // 8))
    ticks = [(float(epoch), str(epoch)) for epoch in range(epochs[0], epochs[-1] + 1, step)]
    return svg_charts.ChartAxis("epoch", ticks)


def _draw_rank_curve(history: Sequence[EpochStats]) -> svg_charts.LineChart | None:
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
    return svg_charts.LineChart(
        "Estimated ranks by epoch",
        [svg_charts.ChartSeries("median", epochs, median, low, high)],
        _build_epoch_axis(epochs),
        svg_charts.ChartAxis("estimated rank", ticks, 0.0, top),
        f"Median from {2 ** median[0]:.0f} in epoch {epochs[0]} to {2 ** median[-1]:.0f} in epoch {epochs[-1]}.",
    )


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


def _draw_rank_bars(rank_shares: Sequence[list[float]]) -> svg_charts.BarChart | None:
    """Draw the ranks of the first and the last epoch."""
    width = len(rank_shares[0])
    if not width:
        return None
    epochs = sorted({1, len(rank_shares)})
    return svg_charts.BarChart(
        "Estimated ranks",
        [
            svg_charts.BarGroup(f"epoch {number}", rank_shares[number - 1], style)
            for number, style in zip(epochs, (1, 0), strict=False)
        ],
        format_bands([2**i for i in range(width)], [2 ** (i + 1) - 1 for i in range(width)]),
        "estimated rank of the right label",
        svg_charts.ChartAxis("% of steps"),
        "Share of the training steps by the estimated rank of the right label.",
    )
