"""Ranking metrics of rows with any number of positives, as expected values over orders of tied labels.

Derivation. Take one row. A *group* is a set of t candidates with one score; A candidates score strictly above
it. r labels of the group are positive, P above it are, R in the whole row are. In a random order of the group
each of its t ranks (A + 1 to A + t) holds a positive with probability r / t, and given that rank A + j
does, each of the j - 1 ranks before it holds one of the other r - 1 positives with probability q = (r - 1) /
(t - 1). Hence, with the harmonic numbers H and the discounts D(k) = sum_{j<=k} 1 / log2(j + 1),

    hits in the first k      r / t * clip(k - A, 0, t)
    sum of precisions        r / t * sum_j (P + 1 + q (j - 1)) / (A + j)
                             = r / t * (q t + (P + 1 - q (A + 1)) (H(A + t) - H(A)))
    discounted gain at k     r / t * (D(min(A + t, k)) - D(min(A, k)))
    some positive in k       1 - C(t - r, k - A) / C(t, k - A), for the row's best group
    1 / rank of the first    sum_j C(t - j, r - 1) / C(t, r) / (A + j), for the row's best group

Every group is shared out equally over its r positives, so that all sums run over positives. A constant scorer
is one group of everything, and gets exactly chance. McSherry & Najork ("Computing Information Retrieval
Performance Measures Efficiently in the Presence of Tied Scores", ECIR 2008) derive all but the last two.

Libraries break ties by position, by name or against the model, so they give other figures where scores tie
(`docs/decisions/metrics-and-calibration.md`).

Propensity-scored precision (Jain et al. 2016) weights a true label y by 1 / p_y, so that rare labels count more:

    psp@k = mean over rows of (sum over j <= k of hit_j / p_{y_j}) / k, divided by the same mean of the best orders

The Extreme Classification repository reports this ratio of means. A row's value is its sum, divided by the mean of the
best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from wsabie.core.arrays import Float64, Int64
from wsabie.core.errors import InputError


@dataclass(frozen=True)
class PositiveRanks:
    """Ranks of the positives among the candidates of their rows; entries are sorted by row.

    Attributes
    ----------
    row : (nnz,) int64
        Row of each positive.
    n_above, group : (nnz,) int64
        Candidates that score strictly higher; candidates with the same score, including the positive.
    positives_above, positives_in_group : (nnz,) int64
        Positives of the row among these.
    n_positives, n_candidates : (n_rows,) int64
    """

    row: Int64
    n_above: Int64
    group: Int64
    positives_above: Int64
    positives_in_group: Int64
    n_positives: Int64
    n_candidates: Int64

    @property
    def n_rows(self) -> int:
        return len(self.n_positives)

    def mean_per_row(self, values: Float64) -> Float64:
        """Return the mean of a value per positive over each row's positives; NaN for rows without any."""
        return _divide(self.sum_per_row(values), self.n_positives)

    def sum_per_row(self, values: Float64) -> Float64:
        """Return the sum of a value per positive over each row's positives."""
        return np.bincount(self.row, weights=values, minlength=self.n_rows).astype(np.float64)


def build_ranks(indptr: Int64, n_above: Int64, tied: Int64, n_candidates: Int64) -> PositiveRanks:
    """Build the ranks from the kernels' counts.

    Parameters
    ----------
    indptr : (n_rows + 1,) int64
        Delimits the positives of each row.
    n_above, tied : (nnz,)
        Candidates strictly above each positive, and *further* candidates with the same score.
    n_candidates : (n_rows,)

    Examples
    --------
    Scores 3, 2, 2, 1 with the first and third label positive:

    >>> ranks = build_ranks(np.array([0, 2]), np.array([0, 1]), np.array([0, 1]), np.array([4]))
    >>> ranks.group, ranks.positives_above
    (array([1, 2]), array([0, 1]))
    """
    n_above, tied, n_candidates = (np.asarray(numbers, np.int64) for numbers in (n_above, tied, n_candidates))
    n_positives = np.diff(indptr).astype(np.int64)
    row = np.repeat(np.arange(len(n_positives), dtype=np.int64), n_positives)
    order = np.lexsort((n_above, row))
    sorted_above = n_above[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (row[1:] != row[:-1]) | (sorted_above[1:] != sorted_above[:-1])
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(order)))
    positives_above, positives_in_group = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    positives_above[order] = np.repeat(starts, sizes) - indptr[row]
    positives_in_group[order] = np.repeat(sizes, sizes)
    return PositiveRanks(row, n_above, tied + 1, positives_above, positives_in_group, n_positives, n_candidates)


def top_k_probability(ranks: PositiveRanks, k: int) -> Float64:
    """Return the probability, per positive, that it is among the first k, (nnz,)."""
    return np.clip(k - ranks.n_above, 0, ranks.group) / ranks.group


def precision_at(ranks: PositiveRanks, k: int) -> Float64:
    """Return p@k = hits in the first k / k, per row; k is never reduced to the number of candidates."""
    return ranks.mean_per_row(top_k_probability(ranks, k)) * (ranks.n_positives / k)


def recall_at(ranks: PositiveRanks, k: int) -> Float64:
    """Return recall@k = hits in the first k / number of positives, per row."""
    return ranks.mean_per_row(top_k_probability(ranks, k))


def hit_at(ranks: PositiveRanks, k: int) -> Float64:
    """Return hit@k, the probability that some positive is among the first k, per row.

    It is 1 - C(t - r, m) / C(t, m): the chance that one of r positives is among m drawn of t.
    """

    def compute_chance(n_above: int, group: int, positives: int) -> float:
        n_drawn = min(max(k - n_above, 0), group)
        return 1 - comb(group - positives, n_drawn) / comb(group, n_drawn)

    return _compute_by_best_group(ranks, compute_chance)


def ndcg_at(ranks: PositiveRanks, k: int) -> Float64:
    """Return nDCG@k: the sum over hits of 1 / log2(rank + 1), relative to a perfect ranking, per row.

    Gains are 0 or 1 (Jarvelin & Kekalainen 2002, with the discount log2(rank + 1)).
    """
    gains = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    upper, lower = np.minimum(ranks.n_above + ranks.group, k), np.minimum(ranks.n_above, k)
    gain = ranks.sum_per_row((gains[upper] - gains[lower]) / ranks.group)
    return _divide(gain, gains[np.minimum(ranks.n_positives, k)])


def average_precision(ranks: PositiveRanks) -> Float64:
    """Return AP, the mean over all positives of the precision at their rank, per row.

    With one positive it is 1 / rank. The mean over rows is MAP. The denominator is the number of all positives.
    """
    zeros = np.zeros(len(ranks.row))
    other_rate = np.divide(ranks.positives_in_group - 1, ranks.group - 1, out=zeros, where=ranks.group > 1)
    gap = _compute_harmonic_gap(ranks.n_above, ranks.group)
    positives_before = ranks.positives_above + 1 - other_rate * (ranks.n_above + 1)
    return ranks.mean_per_row(other_rate + positives_before * gap / ranks.group)


def auc(ranks: PositiveRanks) -> Float64:
    """Return the share of (positive, negative) pairs in the right order, ties half; NaN without negatives."""
    negatives_above = ranks.n_above - ranks.positives_above + (ranks.group - ranks.positives_in_group) / 2
    return 1 - _divide(ranks.mean_per_row(negatives_above), ranks.n_candidates - ranks.n_positives)


def first_reciprocal_rank(ranks: PositiveRanks) -> Float64:
    """Return 1 / rank of the first positive, per row; the mean over rows is MRR."""
    return _compute_by_best_group(ranks, _compute_first_reciprocal)


def label_reciprocal_rank(ranks: PositiveRanks) -> Float64:
    """Return 1 / rank of every positive, (nnz,), regardless of the other positives of its row."""
    return _compute_harmonic_gap(ranks.n_above, ranks.group) / ranks.group


def compute_propensities(label_counts: Int64, n_rows: int, *, a: float = 0.55, b: float = 1.5) -> Float64:
    """Estimate label propensities: the chance that a row which deserves a label has it (Jain et al. 2016).

    p = 1 / (1 + C (N_l + b)^-a) with C = (log N - 1) (b + 1)^a.

    Parameters
    ----------
    label_counts : (n_labels,) int
        Training rows of each label, N_l.
    n_rows : int
        Training rows, N; at least 3, since C is negative for fewer.
    a, b : float
        Constants of the data. The Extreme Classification repository takes .5 and .4 for Wikipedia, .6 and 2.6 for
        Amazon, and the defaults for all else.

    Returns
    -------
    (n_labels,) float64

    Raises
    ------
    InputError
        A count is negative or more than n_rows, n_rows is below 3, or a or b is not positive.

    Examples
    --------
    >>> compute_propensities(np.array([1, 10, 100]), 1000).round(3)
    array([0.145, 0.282, 0.565])
    """
    counts = np.asarray(label_counts, np.float64)
    if n_rows < 3 or a <= 0 or b <= 0:
        raise InputError(f"propensities of {n_rows} rows with a = {a} and b = {b}; give 3 rows, and a, b above 0")
    if counts.ndim != 1 or not ((counts >= 0) & (counts <= n_rows)).all():
        raise InputError(f"the counts of labels are not one number from 0 to {n_rows:,} each; count training rows")
    propensities: Float64 = 1 / (1 + (np.log(n_rows) - 1) * (b + 1) ** a * (counts + b) ** -a)
    return propensities


def measure_propensity_precision(ranks: PositiveRanks, weights: Float64, k: int) -> tuple[Float64, Float64]:
    """Return the sum of weights of hits in the first k / k, and that of the best possible order, per row.

    Parameters
    ----------
    ranks : PositiveRanks
    weights : (nnz,) float64
        1 / propensity of each positive.
    k : int
    """
    start = np.cumsum(ranks.n_positives) - ranks.n_positives
    ideal_weights = weights[np.lexsort((-weights, ranks.row))]
    ideal_weights[np.arange(len(weights)) - start[ranks.row] >= k] = 0
    gains = ranks.sum_per_row(top_k_probability(ranks, k) * weights)
    return gains / k, ranks.sum_per_row(ideal_weights) / k


def _compute_by_best_group(ranks: PositiveRanks, compute: Callable[[int, int, int], float]) -> Float64:
    """Compute a value from each row's best group with a positive: labels above, size, positives; else NaN."""
    best = (ranks.positives_above == 0).nonzero()[0]
    best = best[np.unique(ranks.row[best], return_index=True)[1]]
    cases = np.stack([ranks.n_above[best], ranks.group[best], ranks.positives_in_group[best]], axis=1)
    distinct, case_of_row = np.unique(cases, axis=0, return_inverse=True)
    result = np.full(ranks.n_rows, np.nan)
    result[ranks.row[best]] = np.array([compute(*case) for case in distinct.tolist()], float)[case_of_row.ravel()]
    return result


def _compute_first_reciprocal(n_above: int, group: int, positives: int) -> float:
    """Return sum_j C(t - j, r - 1) / C(t, r) / (A + j), with probabilities by their successive ratios."""
    j = np.arange(1, group - positives + 2)
    chance = np.cumprod(np.append(positives / group, (group - j[:-1] - positives + 1) / (group - j[:-1])))
    return float(np.sum(chance / (n_above + j)))


def _compute_harmonic_gap(n_above: Int64, group: Int64) -> Float64:
    """Return H(A + t) - H(A)."""
    gap = 1 / (n_above + 1.0)
    tied = group > 1
    if tied.any():
        upper = n_above[tied] + group[tied]
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, upper.max() + 1))])
        gap[tied] = harmonic[upper] - harmonic[n_above[tied]]
    return gap


def _divide(numerator: Float64, denominator: Int64 | Float64) -> Float64:
    """Return numerator / denominator, NaN where the denominator is 0."""
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def select_informative_lengths(ks: Sequence[int], n_labels: int) -> list[int]:
    """Select the list lengths that distinguish models: a list of all labels is the same for every model.

    Examples
    --------
    >>> (
    ...     select_informative_lengths((1, 5, 10), 6),
    ...     select_informative_lengths((1, 5, 10), 1),
    ...     select_informative_lengths((1, 5, 10), 1000),
    ... )
    ([1, 5], [1], [1, 5, 10])
    """
    return [k for k in ks if k == 1 or k < n_labels]
