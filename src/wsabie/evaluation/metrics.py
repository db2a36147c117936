"""Ranking metrics of rows with any number of positives, as expected values over random orders of tied labels.

Derivation. Take one row. A *group* is a set of t candidates with one score; A candidates score strictly above
it. r labels of the group are positive, P above it are, R in the whole row are. In a random order of the group
each of its t places (ranks A + 1 to A + t) holds a positive with probability r / t, and given that place j
does, each of the j - 1 places before it holds one of the other r - 1 positives with probability q = (r - 1) /
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
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from wsabie.base.arrays import Float64, Int64


@dataclass(frozen=True)
class Ranks:
    """Where the positives stand among the candidates of their rows; entries are sorted by row.

    Attributes
    ----------
    row : (nnz,) int64
        Row of each positive.
    above, group : (nnz,) int64
        Candidates that score strictly above it; candidates with the same score, itself included.
    positives_above, positives_in_group : (nnz,) int64
        Positives of the row among these.
    n_positives, n_candidates : (n_rows,) int64
    """

    row: Int64
    above: Int64
    group: Int64
    positives_above: Int64
    positives_in_group: Int64
    n_positives: Int64
    n_candidates: Int64

    @property
    def n_rows(self) -> int:
        return len(self.n_positives)

    def mean_per_row(self, values: Float64) -> Float64:
        """Mean of a value per positive over each row's positives; NaN for rows without any."""
        return _ratio(self.sum_per_row(values), self.n_positives)

    def sum_per_row(self, values: Float64) -> Float64:
        """Sum of a value per positive over each row's positives."""
        return np.bincount(self.row, weights=values, minlength=self.n_rows).astype(np.float64)


def ranks_from_counts(indptr: Int64, above: Int64, tied: Int64, n_candidates: Int64) -> Ranks:
    """Ranks from the kernels' counts.

    Parameters
    ----------
    indptr : (n_rows + 1,) int64
        Delimits the positives of each row.
    above, tied : (nnz,)
        Candidates strictly above each positive, and *other* candidates with the same score.
    n_candidates : (n_rows,)

    Examples
    --------
    Scores 3, 2, 2, 1 with the first and third label positive:

    >>> ranks = ranks_from_counts(np.array([0, 2]), np.array([0, 1]), np.array([0, 1]), np.array([4]))
    >>> ranks.group, ranks.positives_above
    (array([1, 2]), array([0, 1]))
    """
    n_positives = np.diff(indptr).astype(np.int64)
    row = np.repeat(np.arange(len(n_positives), dtype=np.int64), n_positives)
    order = np.lexsort((above, row))
    sorted_above = np.asarray(above, np.int64)[order]
    new = np.ones(len(order), bool)
    new[1:] = (row[1:] != row[:-1]) | (sorted_above[1:] != sorted_above[:-1])
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(order)))
    before, inside = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    before[order] = np.repeat(starts, sizes) - indptr[row]
    inside[order] = np.repeat(sizes, sizes)
    group = np.asarray(tied, np.int64) + 1
    return Ranks(
        row,
        np.asarray(above, np.int64),
        group,
        before,
        inside,
        n_positives,
        np.asarray(n_candidates, np.int64),
    )


def hits_at(ranks: Ranks, k: int) -> Float64:
    """Probability, per positive, that it is among the first k, (nnz,)."""
    inside: Float64 = np.clip(k - ranks.above, 0, ranks.group) / ranks.group
    return inside


def precision_at(ranks: Ranks, k: int) -> Float64:
    """p@k = hits in the first k / k, per row; k is never reduced to the number of candidates."""
    return ranks.mean_per_row(hits_at(ranks, k)) * (ranks.n_positives / k)


def recall_at(ranks: Ranks, k: int) -> Float64:
    """recall@k = hits in the first k / number of positives, per row."""
    return ranks.mean_per_row(hits_at(ranks, k))


def hit_at(ranks: Ranks, k: int) -> Float64:
    """hit@k = probability that some positive is among the first k, per row: the flat hit@k of one true label."""
    best = _best_positive(ranks)
    cases = np.stack([np.maximum(k - ranks.above[best], 0), ranks.group[best], ranks.positives_in_group[best]], axis=1)
    result = np.full(ranks.n_rows, np.nan)
    result[ranks.row[best]] = [_any_drawn(*case) for case in cases.tolist()]
    return result


def ndcg_at(ranks: Ranks, k: int) -> Float64:
    """nDCG@k = sum over hits of 1 / log2(rank + 1), divided by the same sum for a perfect ranking, per row.

    Gains are 0 or 1 (Jarvelin & Kekalainen 2002, with the discount log2(rank + 1)).
    """
    gains = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    upper, lower = np.minimum(ranks.above + ranks.group, k), np.minimum(ranks.above, k)
    got = ranks.sum_per_row((gains[upper] - gains[lower]) / ranks.group)
    return _ratio(got, gains[np.minimum(ranks.n_positives, k)])


def average_precision(ranks: Ranks) -> Float64:
    """AP = mean over all positives of the precision at their rank, per row; with one positive, 1 / rank.

    The mean over rows is MAP. The denominator is the number of positives, not of those found.
    """
    others = np.divide(
        ranks.positives_in_group - 1,
        ranks.group - 1,
        out=np.zeros(len(ranks.row)),
        where=ranks.group > 1,
    )
    spread = _harmonic_gap(ranks.above, ranks.group)
    ahead = ranks.positives_above + 1 - others * (ranks.above + 1)
    return ranks.mean_per_row(others + ahead * spread / ranks.group)


def auc(ranks: Ranks) -> Float64:
    """Fraction of (positive, negative) pairs in the right order, ties half; NaN without negatives."""
    wrong = ranks.above - ranks.positives_above + (ranks.group - ranks.positives_in_group) / 2
    return 1 - _ratio(ranks.mean_per_row(wrong), ranks.n_candidates - ranks.n_positives)


def first_reciprocal_rank(ranks: Ranks) -> Float64:
    """1 / rank of the row's first positive, per row; the mean over rows is MRR."""
    best = _best_positive(ranks)
    cases = np.stack([ranks.above[best], ranks.group[best], ranks.positives_in_group[best]], axis=1)
    distinct, where = np.unique(cases, axis=0, return_inverse=True)
    values = np.array([_expected_first(*case) for case in distinct.tolist()], float)
    result = np.full(ranks.n_rows, np.nan)
    result[ranks.row[best]] = values[where.ravel()]
    return result


def label_reciprocal_rank(ranks: Ranks) -> Float64:
    """1 / rank of every positive, (nnz,): how well each label is found, whatever else the row has."""
    return _harmonic_gap(ranks.above, ranks.group) / ranks.group


def _best_positive(ranks: Ranks) -> Int64:
    """One entry of the best group with a positive, for each row that has one."""
    best = (ranks.positives_above == 0).nonzero()[0]
    _, one_each = np.unique(ranks.row[best], return_index=True)
    first: Int64 = best[one_each]
    return first


def _any_drawn(places: int, group: int, positives: int) -> float:
    """1 - C(t - r, m) / C(t, m): that one of r positives is among m drawn of t."""
    drawn = min(places, group)
    return 1 - comb(group - positives, drawn) / comb(group, drawn)


def _expected_first(above: int, group: int, positives: int) -> float:
    """sum_j C(t - j, r - 1) / C(t, r) / (A + j), the probabilities by their ratio from one j to the next."""
    j = np.arange(1, group - positives + 2)
    chance = np.cumprod(np.append(positives / group, (group - j[:-1] - positives + 1) / (group - j[:-1])))
    return float(np.sum(chance / (above + j)))


def _harmonic_gap(above: Int64, group: Int64) -> Float64:
    """H(A + t) - H(A)."""
    gap = 1 / (above + 1.0)
    tied = group > 1
    if tied.any():
        upper = above[tied] + group[tied]
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, upper.max() + 1))])
        gap[tied] = harmonic[upper] - harmonic[above[tied]]
    return gap


def _ratio(numerator: Float64, denominator: Int64 | Float64) -> Float64:
    """numerator / denominator, NaN where the denominator is 0."""
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def telling(ks: Sequence[int], n_labels: int) -> list[int]:
    """Those lengths of a list that tell models apart: a list of all labels is the same whoever made it.

    Examples
    --------
    >>> telling((1, 5, 10), 6), telling((1, 5, 10), 1), telling((1, 5, 10), 1000)
    ([1, 5], [1], [1, 5, 10])
    """
    return [k for k in ks if k == 1 or k < n_labels]
