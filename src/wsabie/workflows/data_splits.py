"""Splits of rows into training, validation and test."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.evaluation.bursts import find_leaders, parse_capture_times
from wsabie.evaluation.quadruplets import split_quadruplets
from wsabie.evaluation.splits import Split, hold_out_labels, split
from wsabie.features.images.augmentation import strip_view_ids
from wsabie.io.records import FeatureTable
from wsabie.vocabulary.label_names import Vocabulary
from wsabie.vocabulary.label_quadruplets import Pair, convert_pairs_to_ids, count_quadruplets


def require_enough_items(n_items: int, share: float, unit: str) -> None:
    """Raise InputError for too few items to hold a share out."""
    problem = f"1 {unit} is too few" if n_items == 1 else f"{n_items:,} {unit}s are too few"
    require(n_items >= 2 / share, f"{problem} to set {100 * share:.3g}% aside; give more {unit}s, or `hold_out=0`")


def find_centred_views(rows: FeatureTable) -> Int64:
    """Return the numbers of rows that are not further views of an image; only these are evaluated."""
    originals = strip_view_ids(rows.ids, rows.augment)
    return np.flatnonzero([name == original for name, original in zip(rows.ids, originals, strict=True)])


def split_rows(rows: FeatureTable, by: str, valid: float, test: float, seed: int) -> Split:
    """Return the row numbers of the three sides.

    Views of one image stay together for every `by`. Only its centred view is evaluated: further views of validation and
    test images are on no side.

    Parameters
    ----------
    rows : FeatureTable
    by : {"auto", "group", "row", "label", "time"}
        As in `split`; "auto" is "group" if the rows have groups, else "row".
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
    >>> rows = FeatureTable(X, Y, ["sea"], ["a", "a#1", "b", "b#1", "c", "c#1"], augment=1)
    >>> sides = split_rows(rows, "auto", 0.0, 0.3, 0)
    >>> [rows.ids[i] for i in sides.train], [rows.ids[i] for i in sides.test]
    (['a', 'a#1', 'b', 'b#1'], ['c'])
    """
    if by == "auto":
        by = "row" if rows.groups is None else "group"
    originals = strip_view_ids(rows.ids, rows.augment)
    groups = rows.groups
    if originals != rows.ids and (groups is None or by == "row"):
        by, groups = ("group" if by == "row" else by), originals
    sides = split(
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
    centred = find_centred_views(rows)
    valid_rows, test_rows = (side[np.isin(side, centred)] for side in (sides.valid, sides.test))
    return Split(sides.train, valid_rows, test_rows)


def group_bursts(rows: FeatureTable) -> tuple[FeatureTable, int]:
    """Join the rows of each burst and the groups that it touches; also return the number of bursts.

    `wsabie.evaluation.bursts` finds the bursts. Without one of several pictures the rows stay as they are. Further
    views of a picture follow it.

    Parameters
    ----------
    rows : FeatureTable
        Rows of pictures; by `times` of day and `near_equality`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, Y = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]]), csr_matrix((3, 0))
    >>> group_bursts(FeatureTable(X, Y, [], ["a", "b", "c"], near_equality=0.85))[0].groups
    ['a', '', 'a']
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    centred, times = find_centred_views(rows), parse_capture_times(rows.times or [""] * len(rows))
    leaders = centred[find_leaders(rows.X[centred], times[centred], rows.near_equality)]
    n_bursts = int((np.bincount(leaders) > 1).sum())
    if not n_bursts:
        return rows, 0
    leader_of = {rows.ids[row]: leader for row, leader in zip(centred, leaders, strict=True)}
    groups, first_of_group = rows.groups or [""] * len(rows), dict[str, int]()
    links = [(row, leader_of[name]) for row, name in enumerate(strip_view_ids(rows.ids, rows.augment))]
    links += [(row, first_of_group.setdefault(group, row)) for row, group in enumerate(groups) if group]
    row, linked = np.array(links, np.int64).T
    graph = csr_matrix((np.ones(len(row), np.int8), (row, linked)), (len(rows), len(rows)))
    _, numbers = connected_components(graph, directed=False)
    _, first, sizes = np.unique(numbers, return_index=True, return_counts=True)
    names = [groups[row] or (rows.ids[row] if size > 1 else "") for row, size in zip(first, sizes, strict=True)]
    return replace(rows, groups=[names[number] for number in numbers]), n_bursts


class RelationSplit(NamedTuple):
    """Sides, the relations with quadruplets on each side, and the dropped ones with their reasons."""

    sides: Split
    relations: list[Pair]
    dropped: list[tuple[Pair, str]]


def split_with_relations(
    rows: FeatureTable, relations: Sequence[Pair], valid: float, test: float, seed: int
) -> RelationSplit:
    """Split rows so that each side has quadruplets of as many relations between labels as possible.

    Groups and views of one image stay together, and further views are left out of validation and test, as in
    `split_rows`.

    Parameters
    ----------
    rows : FeatureTable
    relations : sequence of (object label, part label)
    valid, test : float
        Fractions of the images; 0 = there is no such side.
    seed : int

    Raises
    ------
    InputError
        No relation is between labels of the rows, or as `split_quadruplets`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> Y = csr_matrix(np.eye(2, dtype="int8")[[0, 1] * 6])
    >>> rows = FeatureTable(csr_matrix((12, 0)), Y, ["car", "wheel"], [str(i) for i in range(12)])
    >>> result = split_with_relations(rows, [("car", "wheel"), ("car", "wing")], 0.2, 0.2, 0)
    >>> result.relations, result.dropped
    ([('car', 'wheel')], [(('car', 'wing'), "no row has the label 'wing'")])
    """
    labels = Vocabulary(rows.label_names)
    label_pairs = convert_pairs_to_ids(relations, labels)
    if not len(label_pairs.ids):
        problem = f"none of {len(label_pairs.left_out)} relations is between two labels of the data"
        raise InputError(f"{problem}, such as {' and '.join(label_pairs.left_out[0])}; name labels as the data do")
    originals = strip_view_ids(rows.ids, rows.augment)
    centred = find_centred_views(rows)
    originals_only = rows if len(centred) == len(rows) else rows.take(centred)
    image_split = split_quadruplets(
        originals_only.Y,
        label_pairs.ids,
        valid=valid,
        test=test,
        ids=originals_only.ids,
        groups=originals_only.groups,
        seed=seed,
        names=rows.label_names,
    )
    training_ids = {originals_only.ids[i] for i in image_split.split.train}
    train = np.flatnonzero([original in training_ids for original in originals])
    usable = [(object_label, part_label) for object_label, part_label in map(labels.names, image_split.relations)]
    dropped = [(pair, _explain_unknown(pair, labels)) for pair in label_pairs.left_out]
    dropped += [((rows.label_names[drop.object_label], rows.label_names[drop.part_label]), drop.reason)
                for drop in image_split.dropped]  # fmt: skip
    sides = Split(train, centred[image_split.split.valid], centred[image_split.split.test])
    return RelationSplit(sides, usable, dropped)


def recheck_relations(split: RelationSplit, rows: FeatureTable, sides: Split) -> RelationSplit:
    """Check the relations again after rows have left the sides."""
    ids = convert_pairs_to_ids(split.relations, Vocabulary(rows.label_names)).ids
    names = [name for name in ("train", "valid", "test") if len(getattr(split.sides, name))]
    has_quadruplets = np.all([count_quadruplets(rows.Y, ids, rows=getattr(sides, name)) > 0 for name in names], axis=0)
    usable = [pair for pair, is_usable in zip(split.relations, has_quadruplets, strict=True) if is_usable]
    unusable = [pair for pair, is_usable in zip(split.relations, has_quadruplets, strict=True) if not is_usable]
    reason = "its pictures on a side are too near those of an earlier side"
    return RelationSplit(sides, usable, [*split.dropped, *((pair, reason) for pair in unusable)])


def _explain_unknown(pair: Pair, labels: Vocabulary) -> str:
    """Return the reason why a pair of labels is not a relation between labels of the data."""
    missing = [repr(end) for end in pair if end not in labels]
    return f"no row has the label {' or '.join(missing)}" if missing else "a label is not part of itself"


def map_split(sides: Split, extracted_from: FeatureTable, rows: FeatureTable) -> Split:
    """Map the sides to rows in another order; rows whose features could not be extracted may be missing.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> def named(ids):
    ...     return FeatureTable(csr_matrix((len(ids), 0)), csr_matrix((len(ids), 0)), [], list(ids))
    >>> map_split(Split(np.array([0, 1]), np.array([2]), np.array([3])), named("abcd"), named("dca")).train
    array([2])
    """
    side_of = dict(zip(extracted_from.ids, sides.sides(len(extracted_from)).tolist(), strict=True))
    side = np.array([side_of[name] for name in rows.ids], np.int64)
    return Split(*(np.flatnonzero(side == number) for number in range(3)))


def split_labels(rows: FeatureTable, valid: float, test: float, seed: int, least: int = 2) -> dict[str, FeatureTable]:
    """Split the labels of the rows: leave one out.

    Parameters
    ----------
    rows : FeatureTable
    valid, test : float
        Fraction of the rows with `least` labels or more that lose one to the test, and of those with as many left that
        lose one more to the validation; `valid` may be 0.
    seed : int
    least : int
        See `hold_out_labels`.

    Returns
    -------
    dict of str to FeatureTable
        "train" has all rows with their remaining labels; "valid" and "test" have the rows that lost a label, with that
        label alone.

    Raises
    ------
    InputError
        Rows with further views of images, which would keep the held-out label, or as `hold_out_labels`.
    """
    fact = "further views of a picture would keep the label that is held out"
    require(not rows.augment, f"{fact}; extract features without `augment`")
    sides, remaining = {}, rows.Y
    for number, (name, share) in enumerate((("test", test), ("valid", valid))):
        if share or name == "test":
            options: JsonObject = {"least": least, "ids": rows.ids, "seed": (seed + number) % 2**63}
            remaining, holdout = hold_out_labels(remaining, share=share, **options)
            sides[name] = replace(rows, Y=holdout).take(np.flatnonzero(np.diff(holdout.indptr)))
    return {"train": replace(rows, Y=remaining), **sides}
