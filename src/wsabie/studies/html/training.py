"""How training went: curves per epoch, and how far down the violators were found."""

from collections.abc import Callable, Sequence

from wsabie.studies.charts import Bars, Series, bar_chart, legend, line_chart
from wsabie.studies.html.markup import Markup, element
from wsabie.studies.html.page import Section, chart, numbers
from wsabie.studies.html.svg import Axis
from wsabie.studies.html.words import bands, duration, figure
from wsabie.studies.report_input import ReportInput
from wsabie.training.stats import EpochStats

_CURVES: tuple[tuple[str, str, str, Callable[[EpochStats], float | None]], ...] = (
    (
        "Quality on validation rows",
        "MAP",
        "Mean average precision on rows kept aside to decide when to stop; the best epoch's model is the one kept.",
        lambda s: s.validation,
    ),
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


def training(given: ReportInput) -> Section | None:
    """Small charts, one per figure."""
    history = given.history
    if not history:
        return None
    charts = [_curve(history, *curve) for curve in _CURVES]
    table = numbers(
        ["epoch", "validation", "loss", "violations", "draws", "pairs/s", "seconds"],
        [_line(number, stats) for number, stats in enumerate(history, 1)],
        "Every epoch",
    )
    seconds = sum(stats.seconds for stats in history)
    pairs = sum(stats.pairs for stats in history) / max(seconds, 1e-9)
    intro = (
        f"{len(history)} passes over the training pairs in {duration(seconds)}, {pairs:,.0f} pairs a second. "
        + _kept(history)
    )
    body = element("div", charts, _ranks(history), class_="charts")
    return Section("training", "Training", "How it learned", intro, Markup(body + table))


def _kept(history: Sequence[EpochStats]) -> str:
    known = [stats for stats in history if stats.validation is not None]
    if not known:
        return ""
    best = max(known, key=lambda stats: stats.validation or 0.0)
    return f"The model of epoch {history.index(best) + 1} was the best on the validation rows and was kept."


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


def _shares(stats: EpochStats, width: int) -> list[float]:
    total = max(sum(stats.rank_histogram), 1)
    padded = [*stats.rank_histogram, *[0] * (width - len(stats.rank_histogram))]
    return [100 * n / total for n in padded]


def _line(number: int, stats: EpochStats) -> list[str]:
    validation = "" if stats.validation is None else figure(stats.validation)
    return [
        str(number),
        validation,
        figure(stats.loss),
        figure(stats.violation_rate),
        figure(stats.mean_draws, 1),
        f"{stats.pairs_per_second:,.0f}",
        f"{stats.seconds:.2f}",
    ]
