"""A self-contained HTML file about one comparison, with its charts, readable on a phone and offline."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from wsabie.core.errors import InputError, UnreadableItemError
from wsabie.evaluation.bootstrap import PairedDifference
from wsabie.evaluation.metrics import select_informative_lengths
from wsabie.evaluation.score_evaluation import FrequencyBin, group_by_frequency
from wsabie.storage.atomic_files import write_text
from wsabie.training.epoch_stats import EpochStats, compute_rank_shares, find_best_epoch, list_other_metrics
from wsabie.workflows.charts import svg_charts
from wsabie.workflows.compare.comparison_table import Comparison, ModelEntry
from wsabie.workflows.report import html_pages
from wsabie.workflows.report.html_pages import EncodedImage, format_bands, format_range, render_page
from wsabie.workflows.report.report_input import ReportExample, ReportInput, render_thumbnail

PICTURE_BYTES = 2_000_000
"""Bytes of all images in a report, which keeps the file below 3 MB."""
_MAX_IMAGE_BYTES = 48_000
_MAX_TRUE_LABELS = 120
"""True labels that a card lists; the remaining ones are counted."""
_MIN_LABELS_PER_ROW = 1.1
"""Mean number of true labels above which a list says more than the first label."""


def write_report(path: str | Path, report: ReportInput) -> int:
    """Write the report, atomically.

    Parameters
    ----------
    path : path
    report : ReportInput
        Large images are shrunk. If all of them together still exceed `PICTURE_BYTES`, the last examples are left out,
        and the report says so.

    Returns
    -------
    int
        Bytes of the file.

    Raises
    ------
    InputError
        The file cannot be written, no model took part in the comparison, or an image cannot be shown.
    """
    html = render_report(report)
    write_text(path, html)
    return len(html.encode())


def render_report(report: ReportInput) -> str:
    """Return the report as HTML."""
    report, comparison, main = _fit_images(report), report.comparison, report.comparison.main
    if main is None:
        reasons = [f": {omission.reason}" for omission in comparison.skipped]
        raise InputError(f"no model took part in the comparison{reasons[0] if reasons else '; compare it too'}")
    entries = sorted(comparison.entries, key=lambda entry: entry is not main)  # the position sets the colour
    k, n_labels = choose_list_length(comparison), comparison.task.facts.labels
    judgements = (judge_main_model(comparison, main, name) for name in comparison.metrics)
    verdicts = {verdict.metric: verdict for verdict in judgements if verdict is not None}
    return render_page(
        "report.html",
        report=report,
        comparison=comparison,
        counts=comparison.task.facts,
        entries=entries,
        item=report.modality.removesuffix("s"),
        k=k,
        headline=format_headline(comparison, main, report.modality),
        verdicts=verdicts,
        gain=format_gain(verdicts[f"p@{k}"], k if k > 1 else 100) if f"p@{k}" in verdicts else "",
        parameters=sorted({**entries[0].parameters, **report.parameters}.items()),
        precision_chart=draw_precision_chart(comparison, entries),
        difference_chart=draw_difference_chart(entries[0].title, [*verdicts.values()]),
        frequency=collect_frequency_figures(report, main),
        training=collect_training_figures(report.history, n_labels) if report.history else None,
        max_true_labels=_MAX_TRUE_LABELS,
    )


def _fit_images(report: ReportInput) -> ReportInput:
    """Shrink images, and keep as many examples as the file has room for."""
    examples: list[ReportExample] = []
    room = PICTURE_BYTES
    for example in report.examples:
        heat_maps = [heat_map._replace(picture=shrink_report_image(heat_map.picture)) for heat_map in example.heat_maps]
        small_example = replace(example, picture=shrink_report_image(example.picture), heat_maps=heat_maps)
        images = small_example.picture, *(heat_map.picture for heat_map in heat_maps)
        room -= sum(len(image.content) for image in images)
        if room < 0:
            break
        examples.append(small_example)
    left_out = len(report.examples) - len(examples)
    note = report.examples_note + (f" {left_out} more were left out to keep this file small." if left_out else "")
    return replace(report, examples=examples, examples_note=note)


def shrink_report_image(image: EncodedImage) -> EncodedImage:
    """Shrink an image that is larger than a report needs.

    Raises
    ------
    InputError
        It must be shrunk and cannot be read.
    """
    if len(image.content) <= _MAX_IMAGE_BYTES:
        return image
    try:
        return render_thumbnail(image.content)
    except UnreadableItemError as error:
        raise InputError(f"a picture for the report cannot be read ({error.reason}); leave it out") from error


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
    return f"{html_pages.format_difference(verdict.difference.mean * base, 1)} of {base}"


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
    passes = f"{len(history)} passes over the training pairs in {html_pages.format_duration(seconds)}"
    summary = f"{passes}, {pairs:,.0f} pairs a second. {_name_best_epoch(history)}"
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
    pairs = [(number, stats.rank_histogram) for number, stats in enumerate(history, 1) if any(stats.rank_histogram)]
    if not pairs:
        return None
    epochs, histograms = zip(*pairs, strict=True)
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
    """Return the power of two below which this share of the steps lies; each bin counts as evenly filled."""
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
