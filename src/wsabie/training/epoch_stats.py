"""Figures of one epoch, for the table, the JSON lines and the curves."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from wsabie.core.json_conversion import JsonObject
from wsabie.embedding.protocols import MemoryTraffic
from wsabie.kernels.training import warp
from wsabie.training.loops import EpochTotals


@dataclass(frozen=True)
class EpochStats:
    """Figures of one epoch.

    Attributes
    ----------
    loss : float
        Mean over pairs of weight * L(rank) * hinge.
    violation_rate : float
        Share of pairs with a violator, which cause a step.
    mean_draws : float
        Negatives drawn per pair.
    rank_histogram : list of int
        Bin b counts steps with an estimated rank in [2^b, 2^(b+1)).
    skipped : int
        Pairs without negatives, with weight 0, or with true labels as all draws.
    unlabelled : int
        Rows without a true label, which have no pairs.
    rejected : int
        Draws rejected because they were true labels.
    pairs_per_second, bytes_per_second : float
        Bytes = rows of both tables read and written.
    validation : float or None
        The monitored figure, which selects the best epoch (mean average precision on the validation rows).
    validation_metrics : dict of str to float
        All figures of the validation rows by name, the monitored one first ("MAP", "p@10"); empty without such rows.
    seconds, validation_seconds : float
    """

    epoch: int
    loss: float
    violation_rate: float
    mean_draws: float
    rank_histogram: list[int]
    pairs: int
    skipped: int
    rejected: int
    pairs_per_second: float
    bytes_per_second: float
    learning_rate: float
    seconds: float
    validation_seconds: float = 0.0
    validation: float | None = None
    unlabelled: int = 0
    validation_metrics: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> JsonObject:
        """Return plain numbers for JSON."""
        return asdict(self)


def find_best_epoch(history: Sequence[EpochStats]) -> EpochStats | None:
    """Return the epoch with the best validation figure, whose tables the model has.

    None if the last epoch has no validation figure: the model has no validation rows, or was updated later.
    """
    if not history or history[-1].validation is None:
        return None
    return max(history, key=lambda stats: stats.validation or 0.0)


def compute_rank_shares(history: Sequence[EpochStats]) -> list[list[float]]:
    """Return the share of each bin of estimated ranks among the steps of an epoch, for all epochs."""
    width = max((len(stats.rank_histogram) for stats in history), default=0)
    histograms = [[*stats.rank_histogram, *[0] * (width - len(stats.rank_histogram))] for stats in history]
    return [[count / max(sum(histogram), 1) for count in histogram] for histogram in histograms]


def list_other_metrics(history: Iterable[EpochStats]) -> list[str]:
    """List the validation figures beside the monitored one, in the order of their first appearance."""
    return list(dict.fromkeys(name for stats in history for name in list(stats.validation_metrics)[1:]))


def summarise_epoch(
    epoch_pass: EpochTotals, epoch: int, learning_rate: float, seconds: float, traffic: MemoryTraffic
) -> EpochStats:
    """Turn the sums of an epoch into figures."""
    counters = epoch_pass.counters
    pairs, updates, draws = (int(counters[c]) for c in (warp.VISITED, warp.UPDATES, warp.DRAWS))
    histogram = [int(n) for n in counters[warp.HISTOGRAM :]]
    while histogram and histogram[-1] == 0:
        histogram.pop()
    n_bytes = pairs * traffic.pair + draws * traffic.draw + updates * traffic.step
    return EpochStats(
        epoch=epoch,
        loss=epoch_pass.loss / max(pairs, 1),
        violation_rate=updates / max(pairs, 1),
        mean_draws=draws / max(pairs, 1),
        rank_histogram=histogram,
        pairs=pairs,
        skipped=int(counters[warp.SKIPPED]),
        rejected=int(counters[warp.REJECTED]),
        unlabelled=epoch_pass.unlabelled,
        pairs_per_second=pairs / max(seconds, 1e-9),
        bytes_per_second=n_bytes / max(seconds, 1e-9),
        learning_rate=learning_rate,
        seconds=seconds,
    )
