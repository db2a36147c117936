"""Tables of the figures of every epoch, within 80 columns; `--json` has all figures."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from wsabie.cli.framework import JsonObject
from wsabie.cli.output import format_count, format_figure, out, show_table

if TYPE_CHECKING:
    from wsabie.training.epoch_stats import EpochStats


_MAX_BARS = 10
"""Characters of a drawn histogram; more bins are drawn two or more to a character."""


def show_epochs(history: "Sequence[EpochStats]") -> None:
    """Show a line per epoch with a drawn histogram of its ranks, and the histograms of some epochs."""

    from wsabie.training.epoch_stats import compute_rank_shares, list_other_metrics

    shares = compute_rank_shares(history)
    width = len(shares[0]) if shares else 0
    step = max(1, -(-width // _MAX_BARS))
    bars = [[sum(share[lo : lo + step]) for lo in range(0, width, step)] for share in shares]
    top = max((value for share in bars for value in share), default=0.0)
    extra_metrics = list_other_metrics(history)
    lines = [
        [*_format_figures(stats, extra_metrics), "".join(_draw_block(value, top) for value in share)]
        for stats, share in zip(history, bars, strict=True)
    ]
    deciding_metric = next((name for stats in history for name in stats.validation_metrics), "MAP")
    headers = ["epoch", "loss", "violators", "draws", "pairs/s", "GB/s", deciding_metric, *extra_metrics, "ranks"]
    show_table(f"epochs; estimated ranks from 1 to {2**width - 1:,}" if width else "epochs", headers, lines)
    if width:
        _show_ranks(history, shares, width)


def format_epoch_count(history: "Sequence[EpochStats]", facts: JsonObject) -> str:
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
    steps = [f"{stats.loss:.4f}", f"{stats.violation_rate:.3f}", f"{stats.mean_draws:.1f}"]
    speeds = [f"{stats.pairs_per_second:,.0f}", f"{stats.bytes_per_second / 1e9:.1f}"]
    measured = [format_figure(stats.validation_metrics.get(name), ".3f") for name in extra_metrics]
    return [str(stats.epoch + 1), *steps, *speeds, format_figure(stats.validation, ".4f"), *measured]


def _show_ranks(history: "Sequence[EpochStats]", shares: Sequence[Sequence[float]], width: int) -> None:
    """Show the histograms of the first, the middle, the best and the last epoch."""
    validated = [i for i, stats in enumerate(history) if stats.validation is not None]
    best = max(validated, key=lambda i: history[i].validation or 0.0, default=None)
    last = len(history) - 1
    shown_epochs = sorted({0, last // 2, last} | ({best} if best is not None else set()))
    names = [f"epoch {history[i].epoch + 1}" + (" (best)" if i == best else "") for i in shown_epochs]
    lines = []
    for rank_bin in range(width):
        ranks = f"{2**rank_bin:,}-{2 ** (rank_bin + 1) - 1:,}" if rank_bin else "1"
        lines.append([ranks, *(f"{100 * shares[i][rank_bin]:.1f}" for i in shown_epochs)])
    show_table("estimated ranks, % of the epoch's steps", ["rank", *names], lines)


def _draw_block(share: float, top: float) -> str:
    """Draw a share as one block character, or as a digit on an ASCII terminal."""
    levels = ".12345678" if out.options.ascii_only else "·▁▂▃▄▅▆▇█"
    return levels[-int(-8 * share // top)] if share else levels[0]
