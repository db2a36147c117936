"""Evaluation of objects and parts on quadruplets of two pictures and two labels: splits and metrics.

Splits put relations on every side (Mesnil et al. 2014, section 4.3.2). A relation is on a side that has two different
pictures, one with the label of the object and one with that of the part. Relations get their units first, rare labels
before others, each as few as it needs (a unit is a picture or a group of pictures). The remaining units fill up the
sides as in `split`. Where each picture has one label and is not part of a group, every relation whose labels have three
pictures is on every side. Where labels share pictures or groups, one relation may need a unit on this side and another
relation the same unit on that: the later one is dropped.

Metrics are those of the three tasks of section 6.2: the rank of the true answer. Image annotation ranks the K labels of
a picture, part-object labelling the K^2 pairs of labels of two pictures, triplet the K labels of one picture given the
label of the other. Each row has one true answer, so that MAP is the mean of 1 / rank and p@k at most 1 / k. Ranks count
from 1 (the paper's p@k counts from 0, its MAP from 1).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Float64, Int32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.evaluation import splits
from wsabie.vocabulary.label_quadruplets import ImagesByLabel, check_relations, count_quadruplets, group_images_by_label

_NAMES = {splits.TRAIN: "training", splits.VALID: "validation", splits.TEST: "test"}


class RelationOmission(NamedTuple):
    """A relation that is missing on a side, and the reason."""

    object_label: int
    part_label: int
    reason: str


@dataclass(frozen=True)
class QuadrupletSplit:
    """A split, the relations that are on all its sides, (n_kept, 2), and the omitted ones."""

    split: splits.Split
    relations: Int32
    dropped: list[RelationOmission]


def split_quadruplets(
    Y: Matrix,
    relations: npt.ArrayLike,
    *,
    valid: float = 0.1,
    test: float = 0.1,
    ids: Sequence[str] | None = None,
    groups: Sequence[str | None] | None = None,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> QuadrupletSplit:
    """Split annotated pictures so that each relation has a quadruplet on each side.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels)
        Values above zero are the labels of a picture.
    relations : (n_relations, 2) ints
        Label of the object, label of the part.
    valid, test : float
        Fractions of the pictures, met as closely as groups and relations allow; 0: no such side.
    ids, groups, seed
        See `split`: the same seed, ids and groups give the same split, in any order of the pictures.
    names : sequence of str or None
        Names of the labels in reasons; None: their numbers.

    Returns
    -------
    QuadrupletSplit
        Relations in their input order; those missing on a side are dropped, each with a reason.

    Raises
    ------
    InputError
        A fraction, the seed or a relation is out of range, a side stays empty, or no relation is on every side.

    Examples
    --------
    Label 2 has two pictures only:

    >>> Y = np.eye(3, dtype=int)[[0] * 5 + [1] * 5 + [2] * 2]
    >>> result = split_quadruplets(Y, [(0, 1), (0, 2)])
    >>> result.relations.tolist(), result.dropped[0].reason
    ([[0, 1]], 'label 2 has 2 pictures, and one is needed for each of 3 sides')
    >>> len(result.split.train), len(result.split.valid), len(result.split.test)
    (8, 2, 2)
    """
    splits.check_fractions(valid, test, seed)
    pairs = check_relations(relations, Y.shape[1])
    splits.check_split_arguments(Y.shape[0], "row", {"ids": ids, "groups": groups})
    sides = [side for side, fraction in ((splits.TEST, test), (splits.VALID, valid), (splits.TRAIN, 1)) if fraction]
    pictures, units = group_images_by_label(Y), splits.group_units(Y.shape[0], ids, groups, seed)
    reasons = [_find_shortage(pictures, units, pair, len(sides), names) for pair in pairs]
    is_possible = np.array([not reason for reason in reasons])
    side_of_unit = splits.assign_by_hash(units, valid, test, _assign_units(pictures, units, pairs[is_possible], sides))
    parts = splits.build_split(side_of_unit[units.of_row], valid, test)
    rows = {splits.TRAIN: parts.train, splits.VALID: parts.valid, splits.TEST: parts.test}
    is_missing = {side: count_quadruplets(Y, pairs, rows=rows[side]) == 0 for side in sides}
    is_on_every_side = ~np.any(list(is_missing.values()), axis=0)
    if not is_on_every_side.any():
        first_reason = reasons[0] or _format_conflict(side for side in sides if is_missing[side][0])
        fact = f"none of {len(pairs)} relations can be on every side (the first: {first_reason})"
        raise InputError(f"{fact}; add pictures")
    dropped = [
        RelationOmission(
            object_label, part_label, reasons[i] or _format_conflict(side for side in sides if is_missing[side][i])
        )
        for i, (object_label, part_label) in enumerate(pairs.tolist())
        if not is_on_every_side[i]
    ]
    return QuadrupletSplit(parts, pairs[is_on_every_side], dropped)


def _find_shortage(
    pictures: ImagesByLabel, units: splits.SplitUnits, pair: Int32, sides: int, names: Sequence[str] | None
) -> str:
    """Return the reason why a relation alone cannot be on every side; "" if it can."""
    for label in pair.tolist():
        rows = pictures.get_rows(label)
        label_name = label if names is None else repr(names[label])
        if len(rows) < sides:
            count = _format_count(len(rows), "picture")
            return f"label {label_name} has {count}, and one is needed for each of {sides} sides"
        groups = len(np.unique(units.of_row[rows]))
        if groups < sides:
            count = _format_count(groups, "group")
            return f"the pictures of label {label_name} are in {count}, and {sides} sides need one each"
    n_either = len(np.union1d(*(pictures.get_rows(label) for label in pair)))
    if n_either < 2 * sides:
        return f"the labels have {n_either} pictures together, and two are needed for each of {sides} sides"
    return ""


def _format_count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _format_conflict(sides: Iterable[int]) -> str:
    missing = " and ".join(_NAMES[side] for side in sides)
    return f"other relations hold its pictures on other sides, and none is left for {missing}"


def _assign_units(pictures: ImagesByLabel, units: splits.SplitUnits, relations: Int32, sides: list[int]) -> Int64:
    """Return the side of each unit that a relation needs, FREE for the others."""
    side_of_unit = np.full(len(units.size), splits.FREE)
    sizes = np.sort(np.diff(pictures.indptr)[relations], axis=1)
    for number in np.lexsort((sizes[:, 1], sizes[:, 0])):
        rarer, commoner = sorted((pictures.get_rows(label) for label in relations[number]), key=len)
        for side in sides:
            _provide_pictures(side_of_unit, side, units, rarer, commoner)
    return side_of_unit


def _provide_pictures(side_of_unit: Int64, side: int, units: splits.SplitUnits, rarer: Int64, commoner: Int64) -> None:
    """Assign units to a side until it has two different pictures, one of each label, or no unit is free."""
    while True:
        rarer_rows, commoner_rows = (rows[side_of_unit[units.of_row[rows]] == side] for rows in (rarer, commoner))
        if not len(rarer_rows):
            needed, shared = rarer, commoner
        elif not len(commoner_rows):
            needed, shared = commoner, rarer
        elif len(rarer_rows) == len(commoner_rows) == 1 and rarer_rows[0] == commoner_rows[0]:
            needed, shared = np.union1d(rarer, commoner), np.intersect1d(rarer, commoner)
        else:
            return
        free_units = np.unique(units.of_row[needed])
        free_units = free_units[side_of_unit[free_units] == splits.FREE]
        if not len(free_units):
            return
        exclusive_units = np.setdiff1d(free_units, units.of_row[shared])  # units with both labels can serve two sides
        side_of_unit[(exclusive_units if len(exclusive_units) else free_units)[0]] = side


def compute_rank_metrics(
    ranks: npt.ArrayLike, ks: Sequence[int] = (1, 10), *, tied: npt.ArrayLike | None = None
) -> dict[str, Float64]:
    """Compute p@k, MAP and rank of each row, for the functions of `bootstrap`.

    Parameters
    ----------
    ranks : (n,) ints
        1 + number of candidates that score higher than the true one.
    ks : sequence of int
    tied : (n,) ints or None
        Number of other candidates with the same score; None: no ties. A metric is then its mean over the ranks that
        the true one may have among them, so that a constant scorer gets exactly chance.

    Returns
    -------
    dict
        "p@k" for each k, "MAP", "rank": (n,) float64 each.

    Examples
    --------
    >>> values = compute_rank_metrics([1, 4], ks=(1, 2))
    >>> {name: value.tolist() for name, value in values.items()}
    {'p@1': [1.0, 0.0], 'p@2': [0.5, 0.0], 'MAP': [1.0, 0.25], 'rank': [1.0, 4.0]}
    """
    from wsabie.evaluation import metrics

    first = np.asarray(ranks, np.int64)
    ties = np.zeros_like(first) if tied is None else np.asarray(tied, np.int64)
    true_ranks = metrics.build_ranks(np.arange(len(first) + 1), first - 1, ties, first)  # one true candidate a row
    values = {f"p@{k}": metrics.precision_at(true_ranks, k) for k in ks}
    return {**values, "MAP": metrics.average_precision(true_ranks), "rank": first + ties / 2}
