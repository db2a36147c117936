"""The law of Algorithm 1's rank estimate: exact sums, and measurements with the sampler of training.

A pair whose margin is violated by k of n negatives draws them uniformly, with replacement, until the first violator:
N is geometric with p = k / n, cut off after T draws (Weston et al. 2010, section 3; T = n in Algorithm 1). Then

    P(no update) = (1 - p)^T                    E[draws] = (1 - (1 - p)^T) / p
    E[g(floor(n / N))] = sum_{i <= T} (1 - p)^(i - 1) p g(floor(n / i)),      0 where no violator is found

With g = L this is the loss that is really minimised, the L~ of Remark 1. Without floor and cut the mean of n / N is
n p (-ln p) / (1 - p), which is about k ln(n / k): the estimate of a small rank is far too large.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float64
from wsabie.core.validation import check_features
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base.hyperparameters import resolve_settings
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.rank_losses import RankWeight
from wsabie.training.trainer import Trainer
from wsabie.training.training_data import RowBlock, TrainingData, build_targets

_DRAWS = 2e7
"""Approximate draws of a measurement; fewer pairs if each needs many."""

_MAX_PAIRS = 20_000
_HINGE = 0.5


class RankLaw(NamedTuple):
    """Behaviour of the sampler for a pair of margin rank k.

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


def compute_harmonic_numbers(n: int) -> Float64:
    """Return L(k) = 1 + 1/2 + ... + 1/k for k = 0 .. n."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])


def compute_exact_law(
    n: int, k: int, trials: int | None = None, losses: Float64 | None = None, power: int = 1
) -> RankLaw:
    """Compute the law for n negatives of which k violate.

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

    >>> law = compute_exact_law(15_951, 1)
    >>> round(law.no_update, 3), round(law.loss, 3)
    (0.368, 1.188)
    """
    cap = n if trials is None else min(trials, n)
    p, i = k / n, np.arange(1, cap + 1)
    with np.errstate(divide="ignore"):  # k = n: every draw violates
        survives = np.exp((i - 1) * np.log1p(-p)) if k < n else (i == 1).astype(np.float64)
    chance, estimate = survives * p, n // i
    values = compute_harmonic_numbers(n) if losses is None else losses
    none = float(survives[-1] * (1 - p))
    draws = float(chance @ i.astype(np.float64) ** power + none * cap**power)
    return RankLaw(
        none, draws, float(chance @ estimate.astype(np.float64) ** power), float(chance @ values[estimate] ** power)
    )


def compute_standard_errors(n: int, k: int, pairs: int) -> RankLaw:
    """Compute the standard deviation of means over so many pairs around the exact law."""
    mean, square = np.array(compute_exact_law(n, k)), np.array(compute_exact_law(n, k, power=2))
    square[0] = mean[0]  # an indicator is its own square
    return RankLaw(*np.sqrt(np.maximum(square - mean**2, 0) / pairs).tolist())


def compute_unlimited_estimate(n: int, k: int) -> float:
    """Compute E[n / N] without floor or limit on the draws (slide "accuracy of the approximation").

    Examples
    --------
    >>> round(compute_unlimited_estimate(15_951, 1), 1), compute_unlimited_estimate(10, 10)
    (9.7, 10.0)
    """
    p = k / n
    return float(n) if k == n else float(n * p * -np.log(p) / (1 - p))


def measure_law(n: int, k: int, trials: int | None = None, seed: int = 0) -> tuple[RankLaw, int]:
    """Measure the law as means over many equal pairs of the trainer, and return their number.

    Scores are set so that k of n negatives violate the margin; steps of size 0 keep them.

    Examples
    --------
    If every negative violates, one draw is enough and the rank is known:

    >>> measure_law(7, 7)[0].draws, round(measure_law(7, 7)[0].estimate)
    (1.0, 7)
    """
    rows = int(np.clip(_DRAWS / compute_exact_law(n, k, trials).draws, 200, _MAX_PAIRS))
    ranks, losses = (_train_epoch(n, k, trials, weight, rows, seed) for weight in ([1.0], "precision"))
    return RankLaw(1 - ranks.violation_rate, ranks.mean_draws, ranks.loss / _HINGE, losses.loss / _HINGE), rows


def _train_epoch(n: int, k: int, trials: int | None, rank_weight: RankWeight, rows: int, seed: int) -> EpochStats:
    """Train one epoch on equal rows of one label; negatives 1..k violate a margin of 1 + `_HINGE`."""
    from scipy.sparse import csr_matrix

    Y = csr_matrix((np.ones(rows, np.int8), np.zeros(rows, np.int32), np.arange(rows + 1)), shape=(rows, n + 1))
    space = JointSpace.random(1, n + 1, 1, "dot", np.random.default_rng(0), {"V": 0.0, "W": 0.0})
    space.features[0, 0] = space.labels[0, 0] = 1  # the true label scores 1, violators 0, the others -1
    space.labels[k + 1 :, 0] = -1
    parameters = {
        **Wsabie(margin=1 + _HINGE, rank_weight=rank_weight, epochs=1, threads=1, seed=seed).get_params(),
        "max_sampled": trials,
        "max_norm": None,
    }
    settings = replace(
        resolve_settings(parameters, TrainingShape(rows, rows, n + 1)), learning_rate=0.0, feature_rate=0.0
    )
    block = RowBlock(check_features(np.ones((rows, 1), np.float32)), build_targets(Y, None, "pairs"))
    return Trainer(settings).train(space, TrainingData([block]))[0]
