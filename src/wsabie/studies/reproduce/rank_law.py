"""The law of Algorithm 1's rank estimate: exact sums, and the same measured with the sampler that training uses.

A pair whose margin is violated by k of n negatives draws them uniformly, with replacement, until the first violator:
N is geometric with p = k / n, cut off after T draws ([W] section 3; T = n in Algorithm 1). Then

    P(no update) = (1 - p)^T                    E[draws] = (1 - (1 - p)^T) / p
    E[g(floor(n / N))] = sum_{i <= T} (1 - p)^(i - 1) p g(floor(n / i)),      0 where no violator is found

With g = L this is the loss that is really minimised, the L~ of Remark 1. Without floor and cut the mean of n / N is
n p (-ln p) / (1 - p), which is about k ln(n / k): the estimate of a small rank is far too large.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Float64
from wsabie.base.validation import check_features
from wsabie.models.defaults import Shape
from wsabie.models.parameters import resolve
from wsabie.models.wsabie import Wsabie
from wsabie.space.joint import JointSpace
from wsabie.training.losses import RankWeight
from wsabie.training.stats import EpochStats
from wsabie.training.targets import row_blocks
from wsabie.training.trainer import Trainer

_DRAWS = 2e7
"""Draws that one measurement may take, about; pairs are fewer where each needs many."""

_MOST_PAIRS = 20_000
_HINGE = 0.5


class Law(NamedTuple):
    """What the sampler does for a pair of margin rank k.

    Attributes
    ----------
    no_update : float
        P(no violator within T draws).
    draws : float
        E[negatives drawn].
    estimate : float
        E[floor(n / N)], 0 where there is no update.
    loss : float
        E[L(floor(n / N))], 0 where there is no update; L(k) is the k-th harmonic number.
    """

    no_update: float
    draws: float
    estimate: float
    loss: float


def harmonic(n: int) -> Float64:
    """L(k) = 1 + 1/2 + ... + 1/k for k = 0 .. n."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])


def exact_law(n: int, k: int, trials: int | None = None, losses: Float64 | None = None, power: int = 1) -> Law:
    """The law for n negatives of which k violate.

    Parameters
    ----------
    n, k : int
        1 <= k <= n.
    trials : int or None
        T; None is n.
    losses : (n + 1,) float or None
        L; None is the harmonic numbers.
    power : int
        Means of the draws, the estimate and the loss to this power.

    Examples
    --------
    At margin rank 1 of 15,952 labels Algorithm 1 makes no update in 36.8 % of the visits:

    >>> law = exact_law(15_951, 1)
    >>> round(law.no_update, 3), round(law.loss, 3)
    (0.368, 1.188)
    """
    cap = n if trials is None else min(trials, n)
    p, i = k / n, np.arange(1, cap + 1)
    with np.errstate(divide="ignore"):  # k = n: every draw violates
        survives = np.exp((i - 1) * np.log1p(-p)) if k < n else (i == 1).astype(np.float64)
    chance, estimate = survives * p, n // i
    values = harmonic(n) if losses is None else losses
    none = float(survives[-1] * (1 - p))
    draws = float(chance @ i.astype(np.float64) ** power + none * cap**power)
    return Law(
        none, draws, float(chance @ estimate.astype(np.float64) ** power), float(chance @ values[estimate] ** power)
    )


def standard_errors(n: int, k: int, pairs: int) -> Law:
    """How far means over so many pairs may be from the exact law by chance: one standard deviation."""
    mean, square = np.array(exact_law(n, k)), np.array(exact_law(n, k, power=2))
    square[0] = mean[0]  # an indicator is its own square
    return Law(*np.sqrt(np.maximum(square - mean**2, 0) / pairs).tolist())


def uncut_estimate(n: int, k: int) -> float:
    """E[n / N] without floor and without limit on the draws (slide "accuracy of the approximation").

    Examples
    --------
    >>> round(uncut_estimate(15_951, 1), 1), uncut_estimate(10, 10)
    (9.7, 10.0)
    """
    p = k / n
    return float(n) if k == n else float(n * p * -np.log(p) / (1 - p))


def measured_law(n: int, k: int, trials: int | None = None, seed: int = 0) -> tuple[Law, int]:
    """The same law as means over many equal pairs that the trainer visits, and over how many.

    Scores are set so that k of n negatives violate the margin; steps of size 0 leave them so.

    Examples
    --------
    Where every negative violates, one draw is enough and the rank is known:

    >>> measured_law(7, 7)[0].draws, round(measured_law(7, 7)[0].estimate)
    (1.0, 7)
    """
    rows = int(np.clip(_DRAWS / exact_law(n, k, trials).draws, 200, _MOST_PAIRS))
    ranks, losses = (_visited(n, k, trials, weight, rows, seed) for weight in ([1.0], "precision"))
    return Law(1 - ranks.violation_rate, ranks.mean_draws, ranks.loss / _HINGE, losses.loss / _HINGE), rows


def _visited(n: int, k: int, trials: int | None, rank_weight: RankWeight, rows: int, seed: int) -> EpochStats:
    """One epoch over equal rows of one label; negatives 1..k violate a margin of 1 + `_HINGE`."""
    from scipy.sparse import csr_matrix

    Y = csr_matrix((np.ones(rows, np.int8), np.zeros(rows, np.int32), np.arange(rows + 1)), shape=(rows, n + 1))
    space = JointSpace.random(1, n + 1, 1, "dot", np.random.default_rng(0), {"V": 0.0, "W": 0.0})
    space.features[0, 0] = space.labels[0, 0] = 1  # the true label scores 1, violators 0, the others -1
    space.labels[k + 1 :, 0] = -1
    parameters = {
        **Wsabie(margin=1 + _HINGE, rank_weight=rank_weight, epochs=1, threads=1, seed=seed).get_params(),
        "max_trials": trials,
        "max_norm": None,
    }
    settings = replace(resolve(parameters, Shape(rows, rows, n + 1)), learning_rate=0.0, feature_rate=0.0)
    (block,) = row_blocks(check_features(np.ones((rows, 1), np.float32)), Y, None, "pairs")
    return Trainer(settings).train(space, lambda epoch: [block], rows)[0]
