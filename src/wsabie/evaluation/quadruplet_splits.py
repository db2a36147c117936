"""Splits of annotated pictures for quadruplets: every relation that can be is on every side ([P] section 4.3.2).

A relation is on a side that has two different pictures, one with the label of the object and one with that of the
part. Relations are served first, those of rare labels before others, each with as few units as it needs (a unit is a
picture or a group of them); the remaining units fill up the sides as in `split`. Where each picture has one label and
is no part of a group, every relation whose labels have three pictures is on every side. Where labels share pictures or
groups, one relation may need a unit on this side and another relation the same unit on that: the later one is dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Int32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.evaluation.splits import (
    FREE,
    TEST,
    TRAIN,
    VALID,
    Split,
    Units,
    as_split,
    by_hash,
    check_fractions,
    check_given,
    units_of,
)
from wsabie.labels.quadruplets import Pictures, checked_relations, count_quadruplets, pictures_of

_NAMES = {TRAIN: "training", VALID: "validation", TEST: "test"}


class DroppedRelation(NamedTuple):
    """A relation that is missing on a side, and why."""

    object_label: int
    part_label: int
    reason: str


@dataclass(frozen=True)
class QuadrupletSplit:
    """A split, the relations that are on each of its sides, (n_kept, 2), and the others."""

    split: Split
    relations: Int32
    dropped: list[DroppedRelation]


def split_quadruplets(
    Y: Matrix,
    relations: Any,
    *,
    valid: float = 0.1,
    test: float = 0.1,
    ids: Any = None,
    groups: Any = None,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> QuadrupletSplit:
    """Deal annotated pictures out so that each relation has a quadruplet on each side.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels)
        Values above zero are the labels of a picture.
    relations : (n_relations, 2) ints
        Label of the object, label of the part.
    valid, test : float
        Fractions of the pictures, met as closely as groups and relations allow; 0 = there is no such side.
    ids, groups, seed
        As in `split`: same seed, ids and groups = same split, whatever the order of the pictures.
    names : sequence of str or None
        What reasons call the labels; None = their numbers.

    Returns
    -------
    QuadrupletSplit
        Relations in the order given; those that are missing on a side are dropped, each with its reason.

    Raises
    ------
    InputError
        A fraction, the seed or a relation is out of range, a side stays empty, or no relation is on every side.

    Examples
    --------
    Label 2 has two pictures only:

    >>> Y = np.eye(3, dtype=int)[[0] * 5 + [1] * 5 + [2] * 2]
    >>> dealt = split_quadruplets(Y, [(0, 1), (0, 2)])
    >>> dealt.relations.tolist(), dealt.dropped[0].reason
    ([[0, 1]], 'label 2 has 2 pictures, and one is needed for each of 3 sides')
    >>> len(dealt.split.train), len(dealt.split.valid), len(dealt.split.test)
    (8, 2, 2)
    """
    check_fractions(valid, test, seed)
    pairs = checked_relations(relations, Y.shape[1])
    check_given(Y.shape[0], "row", {"ids": ids, "groups": groups})
    sides = [side for side, fraction in ((TEST, test), (VALID, valid), (TRAIN, 1)) if fraction]
    pictures, units = pictures_of(Y), units_of(Y.shape[0], ids, groups, seed)
    reasons = [_too_few(pictures, units, pair, len(sides), names) for pair in pairs]
    enough = np.array([not reason for reason in reasons])
    dealt = by_hash(units, valid, test, _dealt(pictures, units, pairs[enough], sides))
    parts = as_split(dealt[units.of_row], valid, test)
    rows = {TRAIN: parts.train, VALID: parts.valid, TEST: parts.test}
    lacking = {side: count_quadruplets(Y, pairs, rows=rows[side]) == 0 for side in sides}
    kept = ~np.any(list(lacking.values()), axis=0)
    if not kept.any():
        why = reasons[0] or _taken(side for side in sides if lacking[side][0])
        raise InputError(f"none of {len(pairs)} relations can be on every side (the first: {why}); add pictures")
    dropped = [
        DroppedRelation(one, other, reasons[i] or _taken(side for side in sides if lacking[side][i]))
        for i, (one, other) in enumerate(pairs.tolist())
        if not kept[i]
    ]
    return QuadrupletSplit(parts, pairs[kept], dropped)


def _too_few(pictures: Pictures, units: Units, pair: Int32, sides: int, names: Sequence[str] | None) -> str:
    """Why a relation cannot be on every side, whatever becomes of the others; "" where it may."""
    for label in pair.tolist():
        rows = pictures.of(label)
        called = label if names is None else repr(names[label])
        if len(rows) < sides:
            return f"label {called} has {_several(len(rows), 'picture')}, and one is needed for each of {sides} sides"
        groups = len(np.unique(units.of_row[rows]))
        if groups < sides:
            return f"the pictures of label {called} are in {_several(groups, 'group')}, and {sides} sides need one each"
    either = len(np.union1d(*(pictures.of(label) for label in pair)))
    if either < 2 * sides:
        return f"the labels have {either} pictures together, and two are needed for each of {sides} sides"
    return ""


def _several(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _taken(sides: Any) -> str:
    missing = " and ".join(_NAMES[side] for side in sides)
    return f"other relations hold its pictures on other sides, and none is left for {missing}"


def _dealt(pictures: Pictures, units: Units, relations: Int32, sides: list[int]) -> Int64:
    """The side of each unit that a relation needs, the others FREE."""
    dealt = np.full(len(units.size), FREE)
    sizes = np.sort(np.diff(pictures.indptr)[relations], axis=1)
    for number in np.lexsort((sizes[:, 1], sizes[:, 0])):
        rarer, other = sorted((pictures.of(label) for label in relations[number]), key=len)
        for side in sides:
            _provide(dealt, side, units, rarer, other)
    return dealt


def _provide(dealt: Int64, side: int, units: Units, rarer: Int64, other: Int64) -> None:
    """Deal units to a side until it has two different pictures, one of each label, or no unit is free."""
    while True:
        here, there = (rows[dealt[units.of_row[rows]] == side] for rows in (rarer, other))
        if not len(here):
            needed, spared = rarer, other
        elif not len(there):
            needed, spared = other, rarer
        elif len(here) == len(there) == 1 and here[0] == there[0]:
            needed, spared = np.union1d(rarer, other), np.intersect1d(rarer, other)
        else:
            return
        found = np.unique(units.of_row[needed])
        found = found[dealt[found] == FREE]
        if not len(found):
            return
        alone = np.setdiff1d(found, units.of_row[spared])  # what carries both labels may serve two sides
        dealt[(alone if len(alone) else found)[0]] = side
