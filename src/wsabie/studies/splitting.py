"""Rows of a collection dealt out to training, validation and test."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wsabie.base.errors import InputError
from wsabie.evaluation.leave_one_out import hold_out_labels
from wsabie.evaluation.quadruplet_splits import split_quadruplets
from wsabie.evaluation.splits import Split, split
from wsabie.features.augment import original_ids
from wsabie.labels.names import Vocabulary
from wsabie.labels.quadruplets import Pair, count_quadruplets, numbered
from wsabie.sources.records import Rows


def refuse_few(n: int, share: float, what: str) -> None:
    """InputError where too few things are to be held out of."""
    if n < 2 / share:
        few = f"1 {what} is too few" if n == 1 else f"{n:,} {what}s are too few"
        raise InputError(f"{few} to set {100 * share:.3g}% aside; give more {what}s, or --hold-out 0")


def split_rows(rows: Rows, by: str, valid: float, test: float, seed: int) -> Split:
    """Row numbers of the three sides.

    Views of one picture stay together, whatever the split is by, and only its centred view is judged: the further
    views of validation and test pictures are on no side.

    Parameters
    ----------
    rows : Rows
    by : {"auto", "group", "row", "label", "time"}
        As in `split`; "auto" is "group" where the rows have groups, else "row".
    valid, test : float
        Fractions of the rows.
    seed : int

    Raises
    ------
    InputError
        As `split`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, Y = csr_matrix((6, 2)), csr_matrix(np.ones((6, 1), "int8"))
    >>> rows = Rows(X, Y, ["sea"], ["a", "a#1", "b", "b#1", "c", "c#1"], augment=1)
    >>> sides = split_rows(rows, "auto", 0.0, 0.3, 0)
    >>> [rows.ids[i] for i in sides.train], [rows.ids[i] for i in sides.test]
    (['a', 'a#1', 'b', 'b#1'], ['c'])
    """
    if by == "auto":
        by = "row" if rows.groups is None else "group"
    originals = original_ids(rows.ids, rows.augment)
    groups = rows.groups
    if originals != rows.ids and (groups is None or by == "row"):
        by, groups = ("group" if by == "row" else by), originals
    found = split(
        len(rows),
        by=by,  # type: ignore[arg-type]
        valid=valid,
        test=test,
        ids=rows.ids,
        groups=groups,
        times=rows.times if by == "time" else None,
        Y=rows.Y if by == "label" else None,
        seed=seed,
    )
    centred = np.array([name == original for name, original in zip(rows.ids, originals, strict=True)], bool)
    return Split(found.train, found.valid[centred[found.valid]], found.test[centred[found.test]])


class RelatedSplit(NamedTuple):
    """Sides, the relations that have quadruplets on each of them, and the others, each with its reason."""

    sides: Split
    kept: list[Pair]
    dropped: list[tuple[Pair, str]]


def split_related(rows: Rows, relations: Sequence[Pair], valid: float, test: float, seed: int) -> RelatedSplit:
    """Row numbers of three sides such that as many relations between labels as can be are on each of them.

    Groups and views of one picture stay together, and views are left out of validation and test, as in `split_rows`.

    Parameters
    ----------
    rows : Rows
    relations : sequence of (object label, part label)
    valid, test : float
        Fractions of the pictures; 0 = there is no such side.
    seed : int

    Raises
    ------
    InputError
        No relation is between labels of the rows, or as `split_quadruplets`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> Y = csr_matrix(np.eye(2, dtype="int8")[[0, 1] * 6])
    >>> rows = Rows(csr_matrix((12, 0)), Y, ["car", "wheel"], [str(i) for i in range(12)])
    >>> found = split_related(rows, [("car", "wheel"), ("car", "wing")], 0.2, 0.2, 0)
    >>> found.kept, found.dropped
    ([('car', 'wheel')], [(('car', 'wing'), "no row has the label 'wing'")])
    """
    labels = Vocabulary(rows.label_names)
    known = numbered(relations, labels)
    if not len(known.ids):
        told = f"none of {len(known.left_out)} relations is between two labels of the data"
        raise InputError(f"{told}, such as {' and '.join(known.left_out[0])}; name labels as the data do")
    originals = original_ids(rows.ids, rows.augment)
    centred = np.flatnonzero([name == original for name, original in zip(rows.ids, originals, strict=True)])
    pictures = rows if len(centred) == len(rows) else rows.take(centred)
    found = split_quadruplets(
        pictures.Y,
        known.ids,
        valid=valid,
        test=test,
        ids=pictures.ids,
        groups=pictures.groups,
        seed=seed,
        names=rows.label_names,
    )
    learnt = {pictures.ids[i] for i in found.split.train}
    train = np.flatnonzero([original in learnt for original in originals])
    kept = [(one, other) for one, other in map(labels.names, found.relations)]
    dropped = [(pair, _unknown(pair, labels)) for pair in known.left_out]
    dropped += [((rows.label_names[one.object_label], rows.label_names[one.part_label]), one.reason)
                for one in found.dropped]  # fmt: skip
    return RelatedSplit(Split(train, centred[found.split.valid], centred[found.split.test]), kept, dropped)


def still_related(found: RelatedSplit, rows: Rows, sides: Split) -> RelatedSplit:
    """The same after rows have left the sides."""
    ids = numbered(found.kept, Vocabulary(rows.label_names)).ids
    names = [name for name in ("train", "valid", "test") if len(getattr(found.sides, name))]
    whole = np.all([count_quadruplets(rows.Y, ids, rows=getattr(sides, name)) > 0 for name in names], axis=0)
    kept = [pair for pair, has in zip(found.kept, whole, strict=True) if has]
    lost = [pair for pair, has in zip(found.kept, whole, strict=True) if not has]
    reason = "its pictures on a side are too near those of an earlier side"
    return RelatedSplit(sides, kept, [*found.dropped, *((pair, reason) for pair in lost)])


def _unknown(pair: Pair, labels: Vocabulary) -> str:
    """Why a pair of labels is no relation between labels of the data."""
    missing = [repr(end) for end in pair if end not in labels]
    return f"no row has the label {' or '.join(missing)}" if missing else "a label is no part of itself"


def carried(sides: Split, planned: Rows, rows: Rows) -> Split:
    """The sides of rows in another order, some of which may be missing: what could not be described.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> def named(ids):
    ...     return Rows(csr_matrix((len(ids), 0)), csr_matrix((len(ids), 0)), [], list(ids))
    >>> carried(Split(np.array([0, 1]), np.array([2]), np.array([3])), named("abcd"), named("dca")).train
    array([2])
    """
    side_of = dict(zip(planned.ids, sides.sides(len(planned)).tolist(), strict=True))
    side = np.array([side_of[name] for name in rows.ids], np.int64)
    return Split(*(np.flatnonzero(side == number) for number in range(3)))


def split_labels(rows: Rows, valid: float, test: float, seed: int, least: int = 2) -> dict[str, Rows]:
    """Labels of the rows dealt out: leave one out.

    Parameters
    ----------
    rows : Rows
    valid, test : float
        Fractions of the rows with `least` labels or more that lose one to the test, and of those that have so many
        left, one more to the validation; `valid` may be 0.
    seed : int
    least : int
        See `hold_out_labels`.

    Returns
    -------
    dict of str to Rows
        "train" has all rows with what is left to them, "valid" and "test" the rows that lost a label, with that alone.

    Raises
    ------
    InputError
        Rows with further views of pictures, which would keep what was held out, or as `hold_out_labels`.
    """
    if rows.augment:
        raise InputError(
            "further views of a picture would keep the label that is held out; describe pictures without --augment"
        )
    sides, left = {}, rows.Y
    for number, (name, share) in enumerate((("test", test), ("valid", valid))):
        if share or name == "test":
            left, held = hold_out_labels(left, least=least, share=share, ids=rows.ids, seed=(seed + number) % 2**63)
            sides[name] = replace(rows, Y=held).take(np.flatnonzero(np.diff(held.indptr)))
    return {"train": replace(rows, Y=left), **sides}
