"""The figures of every epoch as tables that fit 80 columns; `--json` has all of them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from wsabie.faces.cli.terminal import out, plural, show_table
from wsabie.training.stats import EpochStats, other_metrics

_WIDEST = 10
"""Characters of a drawn histogram; more bins are drawn two or more to a character."""


def show_epochs(history: Sequence[EpochStats]) -> None:
    """A line per epoch with its estimated ranks as a small drawing, then the shares of the ranks in some epochs."""
    width = max((len(stats.rank_histogram) for stats in history), default=0)
    shares = [_shares(stats, width) for stats in history]
    drawn = [_merged(share, max(1, -(-width // _WIDEST))) for share in shares]
    top = max((value for share in drawn for value in share), default=0.0)
    others = other_metrics(history)
    lines = [
        [*_figures(stats, others), "".join(_block(value, top) for value in share)]
        for stats, share in zip(history, drawn, strict=True)
    ]
    headers = ["epoch", "loss", "violators", "draws", "pairs/s", "GB/s", _decides(history), *others, "ranks"]
    show_table(f"epochs; estimated ranks from 1 to {2**width - 1:,}" if width else "epochs", headers, lines)
    if width:
        _show_ranks(history, shares, width)


def epochs_run(history: Sequence[EpochStats], about: Mapping[str, Any]) -> str:
    """How many epochs were run; of a model that is made of several, how many for each.

    Parameters
    ----------
    history : sequence of EpochStats
        Of one part after the other.
    about : mapping
        The facts of the model: "models" of an ensemble, "blend" of one with two terms.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> history = [SimpleNamespace(epoch=epoch) for epoch in (0, 1, 0, 1, 2)]
    >>> epochs_run(history, {"blend": 1.0}), epochs_run(history, {"models": 2}), epochs_run(history[:2], {"blend": 1.0})
    ('2 to 3 epochs for each of 2 terms', '2 models of 2 to 3 epochs', '2 epochs')
    """
    if not {"models", "blend"} & about.keys():
        return plural(len(history), "epoch")
    starts = [i for i, stats in enumerate(history) if stats.epoch == 0]
    counts = [end - start for start, end in pairwise([*starts, len(history)])] or [0]
    least, most = min(counts), max(counts)
    each = plural(most, "epoch") if least == most else f"{least:,} to {plural(most, 'epoch')}"
    if "models" in about:
        return f"{plural(about['models'], 'model')} of {each}"
    return f"{each} for each of {len(counts)} terms" if len(counts) > 1 else each


def _figures(stats: EpochStats, others: Sequence[str]) -> list[str]:
    measured = [stats.validation_metrics.get(name) for name in others]
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


def _show_ranks(history: Sequence[EpochStats], shares: Sequence[Sequence[float]], width: int) -> None:
    """The whole histogram of the first, the middle, the best and the last epoch."""
    known = [i for i, stats in enumerate(history) if stats.validation is not None]
    best = max(known, key=lambda i: history[i].validation or 0.0, default=None)
    last = len(history) - 1
    chosen = sorted({0, last // 2, last} | ({best} if best is not None else set()))
    names = [f"epoch {history[i].epoch + 1}" + (" (best)" if i == best else "") for i in chosen]
    lines = [[_bin(b), *(f"{100 * shares[i][b]:.1f}" for i in chosen)] for b in range(width)]
    show_table("estimated ranks, % of the epoch's steps", ["rank", *names], lines)


def _decides(history: Sequence[EpochStats]) -> str:
    """The name of the figure that chose the epoch."""
    return next((name for stats in history for name in stats.validation_metrics), "MAP")


def _shares(stats: EpochStats, width: int) -> list[float]:
    steps = max(sum(stats.rank_histogram), 1)
    return [n / steps for n in stats.rank_histogram] + [0.0] * (width - len(stats.rank_histogram))


def _merged(shares: Sequence[float], step: int) -> list[float]:
    return [sum(shares[lo : lo + step]) for lo in range(0, len(shares), step)]


def _block(share: float, top: float) -> str:
    """One character, the higher the larger the share; digits where the terminal knows no blocks."""
    levels = ".12345678" if out.options.ascii_only else "·▁▂▃▄▅▆▇█"
    return levels[-int(-8 * share // top)] if share else levels[0]


def _bin(b: int) -> str:
    """What bin b of the histogram counts, as "64-127"."""
    return f"{2**b:,}-{2 ** (b + 1) - 1:,}" if b else "1"
