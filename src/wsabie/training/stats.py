"""What one epoch did, in numbers: for the table, the JSON lines and the curves."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wsabie.space.protocol import Traffic
from wsabie.training.loops import Tally


@dataclass(frozen=True)
class EpochStats:
    """Figures of one epoch.

    Attributes
    ----------
    loss : float
        Mean over pairs of weight * L(rank) * hinge.
    violation_rate : float
        Share of pairs for which a violator was found, so that a step was taken.
    mean_draws : float
        Negatives drawn per pair.
    rank_histogram : list of int
        Bin b counts steps whose estimated rank was in [2^b, 2^(b+1)).
    skipped : int
        Pairs without negatives or with weight 0, or whose every draw was a true label.
    unlabelled : int
        Rows without a true label: they make no pairs.
    rejected : int
        Draws thrown back because they were true labels.
    pairs_per_second, bytes_per_second : float
        Bytes = rows of both tables read and written.
    validation : float or None
        The monitored figure, which decides (mean average precision on the validation rows).
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

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return asdict(self)


def kept_epoch(history: Sequence[EpochStats]) -> EpochStats | None:
    """The epoch whose tables were kept, with its figures; None where the last one was not judged: a model without
    validation rows, or one that was trained on after its figures were taken.
    """
    if not history or history[-1].validation is None:
        return None
    return max(history, key=lambda stats: stats.validation or 0.0)


def other_metrics(history: Iterable[EpochStats]) -> list[str]:
    """Names of the validation figures beside the monitored one, in the order of their first appearance."""
    return list(dict.fromkeys(name for stats in history for name in list(stats.validation_metrics)[1:]))


def summarise(tally: Tally, epoch: int, learning_rate: float, seconds: float, traffic: Traffic) -> EpochStats:
    """Turn the counters of an epoch into figures."""
    from wsabie.kernels import warp

    counters, loss = tally.counters.sum(0), float(tally.loss.sum())
    pairs, updates, draws = (int(counters[c]) for c in (warp.VISITED, warp.UPDATES, warp.DRAWS))
    histogram = [int(n) for n in counters[warp.HISTOGRAM :]]
    while histogram and histogram[-1] == 0:
        histogram.pop()
    moved = pairs * traffic.pair + draws * traffic.draw + updates * traffic.step
    return EpochStats(
        epoch=epoch,
        loss=loss / max(pairs, 1),
        violation_rate=updates / max(pairs, 1),
        mean_draws=draws / max(pairs, 1),
        rank_histogram=histogram,
        pairs=pairs,
        skipped=int(counters[warp.SKIPPED]),
        rejected=int(counters[warp.REJECTED]),
        pairs_per_second=pairs / max(seconds, 1e-9),
        bytes_per_second=moved / max(seconds, 1e-9),
        learning_rate=learning_rate,
        seconds=seconds,
    )
