"""How training went: curves per epoch, and how far down the violators were found."""

import math
from collections.abc import Callable, Sequence

from wsabie.evaluation.metrics import telling
from wsabie.studies.charts import Bars, Series, bar_chart, legend, line_chart
from wsabie.studies.html.markup import Markup, element, join
from wsabie.studies.html.page import Section, chart, numbers
from wsabie.studies.html.svg import Axis
from wsabie.studies.html.words import bands, duration, explained, figure, span
from wsabie.studies.report_input import ReportInput
from wsabie.training.stats import EpochStats, other_metrics

Curve = tuple[str, str, str, Callable[[EpochStats], float | None]]
"""Heading, axis, caption, and how the figure is read."""

_DECIDES: Curve = (
    "Quality on validation rows",
    "MAP",
    "Mean average precision on rows kept aside to decide when to stop; the best epoch's model is the one kept.",
    lambda s: s.validation,
)
_LEARNING: tuple[Curve, ...] = (
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
_RATES: tuple[Curve, ...] = (
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


def training(given: ReportInput) -> Section | None:
    """Small charts, one per figure."""
    history = given.history
    if not history:
        return None
    others = [name for name in other_metrics(history) if _tells(name, given.comparison.task.facts.labels)]
    curves = [_curve(history, *curve) for curve in (_DECIDES, *map(_beside, others), *_LEARNING)]
    rates = [_curve(history, *curve) for curve in _RATES]
    table = numbers(
        ["epoch", "MAP", *others, "loss", "violations", "draws", "pairs/s", "GB/s", "seconds"],
        [_line(number, stats, others) for number, stats in enumerate(history, 1)],
        "Every epoch",
    )
    seconds = sum(stats.seconds for stats in history)
    pairs = sum(stats.pairs for stats in history) / max(seconds, 1e-9)
    intro = (
        f"{len(history)} passes over the training pairs in {duration(seconds)}, {pairs:,.0f} pairs a second. "
        + _kept(history)
    )
    body = element("div", curves, _rank_curve(history), _ranks(history), rates, class_="charts")
    return Section("training", "Training", "How it learned", intro, join(body, table, _rank_table(history)))


def _tells(metric: str, n_labels: int) -> bool:
    """Whether a figure tells models apart: one of a list of all labels does not."""
    length = metric.partition("@")[2]
    return not length or bool(telling([int(length)], n_labels))


def _kept(history: Sequence[EpochStats]) -> str:
    known = [stats for stats in history if stats.validation is not None]
    if not known:
        return ""
    best = max(known, key=lambda stats: stats.validation or 0.0)
    return f"The model of epoch {history.index(best) + 1} was the best on the validation rows and was kept."


def _beside(name: str) -> Curve:
    """A figure that does not decide."""
    meaning = explained(name)
    caption = f"{meaning[:1].upper()}{meaning[1:]}, on the same rows; it does not decide."
    return f"{name} on validation rows", name, caption, lambda s: s.validation_metrics.get(name)


def _curve(
    history: Sequence[EpochStats],
    title: str,
    unit: str,
    caption: str,
    read: Callable[[EpochStats], float | None],
) -> Markup | None:
    known = [(i, value) for i, stats in enumerate(history, 1) if (value := read(stats)) is not None]
    if not known:
        return None
    epochs, values = zip(*known, strict=True)
    drawing = line_chart(
        [Series(title, epochs, values)],
        Axis("epoch", ticks=_epoch_ticks(epochs)),
        Axis(unit, low=0.0),
        title=f"{title} by epoch",
        description=f"From {values[0]:.3g} in epoch {epochs[0]} to {values[-1]:.3g} in epoch {epochs[-1]}.",
    )
    return chart(title, drawing, caption)


def _epoch_ticks(epochs: Sequence[int]) -> list[tuple[float, str]]:
    step = max(1, -(-(epochs[-1] - epochs[0]) // 8))
    return [(float(e), str(e)) for e in range(epochs[0], epochs[-1] + 1, step)]


def _rank_curve(history: Sequence[EpochStats]) -> Markup | None:
    """Median and quartiles of the estimated ranks, on a scale of powers of two."""
    known = [(number, stats.rank_histogram) for number, stats in enumerate(history, 1) if any(stats.rank_histogram)]
    if not known:
        return None
    epochs, histograms = zip(*known, strict=True)
    low, middle, high = ([_quantile(h, share) for h in histograms] for share in (0.25, 0.5, 0.75))
    top = math.ceil(max(high))
    drawing = line_chart(
        [Series("median", epochs, middle, low, high)],
        Axis("epoch", ticks=_epoch_ticks(epochs)),
        Axis("estimated place", [(b, f"{2**b:,}") for b in range(0, top + 1, 1 + top // 8)], 0.0, top),
        title="Estimated ranks by epoch",
        description=f"Median from {2 ** middle[0]:.0f} in epoch {epochs[0]} to {2 ** middle[-1]:.0f} in epoch "
        f"{epochs[-1]}.",
    )
    caption = (
        "Where the right label was estimated to stand when a step was taken: the median and, shaded, the middle half "
        "of the steps. The scale is of powers of two."
    )
    return chart("Estimated ranks by epoch", drawing, caption)


def _quantile(histogram: Sequence[int], share: float) -> float:
    """Power of two below which this share of the steps lies, each bin taken as evenly filled.

    Examples
    --------
    >>> _quantile([0, 10, 10], 0.5), _quantile([0, 10, 10], 0.25)
    (2.0, 1.5)
    """
    left = share * sum(histogram)
    for b, n in enumerate(histogram):
        if n and left <= n:
            return b + left / n
        left -= n
    return float(len(histogram))


def _ranks(history: Sequence[EpochStats]) -> Markup | None:
    first, last = history[0], history[-1]
    width = max(len(first.rank_histogram), len(last.rank_histogram))
    if not width:
        return None
    compared = {1: first} if first is last else {1: first, len(history): last}
    groups = [
        Bars(f"epoch {number}", _shares(stats, width), style)
        for (number, stats), style in zip(compared.items(), (1, 0), strict=False)
    ]
    drawing = bar_chart(
        groups,
        bands([2**b for b in range(width)], [2 ** (b + 1) - 1 for b in range(width)]),
        "estimated place of the right label",
        Axis("% of steps"),
        title="Estimated ranks",
        description="Share of the training steps by the place at which the right label was estimated to stand.",
    )
    caption = (
        "Where the right label was estimated to stand when a step was taken. Training moves it to the left: "
        "towards the top of the list."
    )
    names = legend([(bars.name, bars.style) for bars in groups], bars=True)
    return chart("Estimated ranks", drawing, caption, names)


def _rank_table(history: Sequence[EpochStats]) -> Markup | None:
    width = max(len(stats.rank_histogram) for stats in history)
    if not width:
        return None
    places = [span(2**b, 2 ** (b + 1) - 1) for b in range(width)]
    lines = [[str(number), *(f"{v:.1f}" for v in _shares(stats, width))] for number, stats in enumerate(history, 1)]
    return numbers(["epoch", *places], lines, "Estimated ranks of every epoch, % of steps")


def _shares(stats: EpochStats, width: int) -> list[float]:
    total = max(sum(stats.rank_histogram), 1)
    padded = [*stats.rank_histogram, *[0] * (width - len(stats.rank_histogram))]
    return [100 * n / total for n in padded]


def _line(number: int, stats: EpochStats, others: Sequence[str]) -> list[str]:
    measured = [stats.validation, *map(stats.validation_metrics.get, others)]
    return [
        str(number),
        *("" if value is None else figure(value) for value in measured),
        figure(stats.loss),
        figure(stats.violation_rate),
        figure(stats.mean_draws, 1),
        f"{stats.pairs_per_second:,.0f}",
        f"{stats.bytes_per_second / 1e9:.2f}",
        f"{stats.seconds:.2f}",
    ]
