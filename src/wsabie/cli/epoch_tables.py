"""Tables of the figures of every epoch, within 80 columns; `--json` has all figures."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wsabie.cli.output import format_count, out, show_table

if TYPE_CHECKING:
    from wsabie.training.epoch_stats import EpochStats


_MAX_BARS = 10
"""Characters of a drawn histogram; more bins are drawn two or more to a character."""


def show_epochs(history: "Sequence[EpochStats]") -> None:
    """Show a line per epoch with a drawn histogram of its ranks, and the histograms of some epochs."""

    from wsabie.training.epoch_stats import list_other_metrics

    width = max((len(stats.rank_histogram) for stats in history), default=0)
    shares = [_compute_shares(stats, width) for stats in history]
    bars = [_merge_bins(share, max(1, -(-width // _MAX_BARS))) for share in shares]
    top = max((value for share in bars for value in share), default=0.0)
    extra_metrics = list_other_metrics(history)
    lines = [
        [*_format_figures(stats, extra_metrics), "".join(_draw_block(value, top) for value in share)]
        for stats, share in zip(history, bars, strict=True)
    ]
    headers = [
        "epoch",
        "loss",
        "violators",
        "draws",
        "pairs/s",
        "GB/s",
        _find_deciding_metric(history),
        *extra_metrics,
        "ranks",
    ]
    show_table(f"epochs; estimated ranks from 1 to {2**width - 1:,}" if width else "epochs", headers, lines)
    if width:
        _show_ranks(history, shares, width)


def format_epoch_count(history: "Sequence[EpochStats]", facts: Mapping[str, Any]) -> str:
    """Format the number of epochs; for a model of several parts, the number of each.

    Parameters
    ----------
    history : sequence of EpochStats
        Of one part after the other.
    facts : mapping
        The facts of the model: "models" of an ensemble, "blend" of one with two terms.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> history = [SimpleNamespace(epoch=epoch) for epoch in (0, 1, 0, 1, 2)]
    >>> (
    ...     format_epoch_count(history, {"blend": 1.0}),
    ...     format_epoch_count(history, {"models": 2}),
    ...     format_epoch_count(history[:2], {"blend": 1.0}),
    ... )
    ('2 to 3 epochs for each of 2 terms', '2 models of 2 to 3 epochs', '2 epochs')
    """
    if not {"models", "blend"} & facts.keys():
        return format_count(len(history), "epoch")
    starts = [i for i, stats in enumerate(history) if stats.epoch == 0]
    counts = [end - start for start, end in pairwise([*starts, len(history)])] or [0]
    fewest, most = min(counts), max(counts)
    phrase = format_count(most, "epoch") if fewest == most else f"{fewest:,} to {format_count(most, 'epoch')}"
    if "models" in facts:
        return f"{format_count(facts['models'], 'model')} of {phrase}"
    return f"{phrase} for each of {len(counts)} terms" if len(counts) > 1 else phrase


def _format_figures(stats: "EpochStats", extra_metrics: Sequence[str]) -> list[str]:
    measured = [stats.validation_metrics.get(name) for name in extra_metrics]
    return [
        str(stats.epoch + 1),
        f"{stats.loss:.4f}",
        f"{stats.violation_rate:.3f}",
        f"{stats.mean_draws:.1f}",
        f"{stats.pairs_per_second:,.0f}",
        f"{stats.bytes_per_second / 1e9:.1f}",
        "" if stats.validation is None else f"{stats.validation:.4f}",
        *("" if value is None else f"{value:.3f}" for value in measured),
    ]


def _show_ranks(history: "Sequence[EpochStats]", shares: Sequence[Sequence[float]], width: int) -> None:
    """Show the histograms of the first, the middle, the best and the last epoch."""
    validated = [i for i, stats in enumerate(history) if stats.validation is not None]
    best = max(validated, key=lambda i: history[i].validation or 0.0, default=None)
    last = len(history) - 1
    shown_epochs = sorted({0, last // 2, last} | ({best} if best is not None else set()))
    names = [f"epoch {history[i].epoch + 1}" + (" (best)" if i == best else "") for i in shown_epochs]
    lines = [
        [_format_bin(rank_bin), *(f"{100 * shares[i][rank_bin]:.1f}" for i in shown_epochs)]
        for rank_bin in range(width)
    ]
    show_table("estimated ranks, % of the epoch's steps", ["rank", *names], lines)


def _find_deciding_metric(history: "Sequence[EpochStats]") -> str:
    """Return the name of the metric that chose the epoch."""
    return next((name for stats in history for name in stats.validation_metrics), "MAP")


def _compute_shares(stats: "EpochStats", width: int) -> list[float]:
    steps = max(sum(stats.rank_histogram), 1)
    return [n / steps for n in stats.rank_histogram] + [0.0] * (width - len(stats.rank_histogram))


def _merge_bins(shares: Sequence[float], step: int) -> list[float]:
    return [sum(shares[lo : lo + step]) for lo in range(0, len(shares), step)]


def _draw_block(share: float, top: float) -> str:
    """Draw a share as one block character, or as a digit on an ASCII terminal."""
    levels = ".12345678" if out.options.ascii_only else "·▁▂▃▄▅▆▇█"
    return levels[-int(-8 * share // top)] if share else levels[0]


def _format_bin(rank_bin: int) -> str:
    """Format the ranks of a bin of the histogram, as "64-127"."""
    return f"{2**rank_bin:,}-{2 ** (rank_bin + 1) - 1:,}" if rank_bin else "1"
