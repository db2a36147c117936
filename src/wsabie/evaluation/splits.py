"""Split rows into training, validation and test: by row, by group, stratified by label, or by time.

The unit of a split is a row, or a whole group of rows. Units are ordered and cut by their number of rows. The order is
by time, or by a keyed hash of their names: then neither the order of the rows nor added rows reshuffle the others.
With `GroupShuffleSplit` of scikit-learn 1.9.1, a 1,001st group moves 171 of 1,000 to another side; here it moves 1.

`hold_out_labels` splits labels, not rows: of each row with several labels one is tested, the others train (the
protocol of Guo et al. 2018 and of recommenders). It measures how well a model completes the labels of a row. The
training labels of a row are then no candidates (`exclude` of `evaluate_scores`).

`drop_near` removes near-duplicates across a split. Weston et al. 2011 ("Wsabie", IJCAI, section 6.1 and the longer
version) remove the test pictures whose nearest neighbour among the training and validation pictures is too close.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Bool, Float32, Float64, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.core.label_lists import LabelLists, list_positives
from wsabie.core.validation import build_incidence, convert_to_csr

By = Literal["row", "group", "label", "time"]

TRAIN, VALID, TEST = 0, 1, 2
FREE = -1
"""Mark of a unit that is on no side yet."""
_MEBIBYTES = 64
"""Memory for the similarities that are held at once."""
_ROUNDING = 1e-6
"""Tolerance that lets a threshold of 1 catch exact duplicates, whose float32 cosine may be just below 1."""


@dataclass(frozen=True)
class Split:
    """Row numbers of the three sides, sorted and disjoint."""

    train: Int64
    valid: Int64
    test: Int64

    def sides(self, n: int) -> Int64:
        """Return 0 (train), 1 (valid), 2 (test) for each of n rows, -1 for a row on no side."""
        side = np.full(n, -1, np.int64)
        for number, rows in enumerate((self.train, self.valid, self.test)):
            side[rows] = number
        return side


def split(
    n: int,
    *,
    by: By = "row",
    valid: float = 0.1,
    test: float = 0.1,
    ids: Sequence[str] | None = None,
    groups: Sequence[str | None] | None = None,
    times: Any = None,
    Y: Matrix | None = None,
    seed: int = 0,
) -> Split:
    """Split n rows into training, validation and test.

    Parameters
    ----------
    n : int
    by : {"row", "group", "label", "time"}
        "row": each row by itself. "group": rows of one group stay together. "label": stratified by each unit's rarest
        label, and every label keeps a training row. "time": the latest rows are the test, those before them the
        validation; rows of one time stay together. With "label" and "time", `groups` stay together too.
    valid, test : float
        Fractions of the rows, met as closely as the units allow.
    ids : sequence of str or None
        Names that decide the sides (rows with the same name stay together); None: the row numbers.
    groups : sequence of (str or None) or None
        None or "": the row is its own group.
    times : sequence of ISO 8601 str, datetime64 or numbers, or None
        Times without a zone are UTC. A group has the time of its latest row.
    Y : csr_matrix (n, n_labels) or int array (n,), or None
        For "label": values above zero count.
    seed : int
        The same seed, ids and groups give the same split, in any order of the rows ("label": up to ties in frequency).

    Returns
    -------
    Split

    Raises
    ------
    InputError
        Fractions or the seed are out of range, an argument that `by` needs is missing or has another length, or a side
        stays empty.

    Examples
    --------
    >>> parts = split(10, valid=0.2, test=0.3)
    >>> len(parts.train), len(parts.valid), len(parts.test)
    (5, 2, 3)
    """
    check_fractions(valid, test, seed)
    check_split_arguments(n, by, {"ids": ids, "groups": groups, "times": times, "Y": Y})
    units = group_units(n, ids, None if by == "row" else groups, seed)
    if by == "time":
        side = _assign_by_time(units, _parse_times(times, range(n) if ids is None else ids), valid, test)
    elif by == "label":
        side = _assign_by_label(units, Y, valid, test)
    else:
        side = assign_by_hash(units, valid, test)
    return build_split(side[units.of_row], valid, test)


def check_overlap(train_ids: Sequence[str], train_X: Matrix, test_ids: Sequence[str], test_X: Matrix) -> None:
    """Refuse test rows that are training rows too, with the same id and the same features.

    The id alone is not enough, because in many formats it is the line number.

    Raises
    ------
    InputError
        Rows are on both sides; the message has their number and the first three.

    Examples
    --------
    >>> check_overlap(["1", "2"], np.eye(2), ["1"], np.ones((1, 2)))
    """
    row_by_id = {name: i for i, name in enumerate(train_ids)}
    shared = [(row_by_id[name], j) for j, name in enumerate(test_ids) if name in row_by_id]
    if not shared:
        return
    train_rows, test_rows = (list(side) for side in zip(*shared, strict=True))
    differences = abs(train_X[train_rows] - test_X[test_rows]).sum(axis=1)
    common = sorted(test_ids[j] for j, gap in zip(test_rows, np.asarray(differences).ravel(), strict=True) if gap == 0)
    if common:
        examples = ", ".join(repr(name) for name in common[:3])
        fact = f"{len(common)} test rows are training rows too ({examples}{' ...' if len(common) > 3 else ''})"
        raise InputError(f"{fact}; split again, or allow the overlap")


class SplitUnits(NamedTuple):
    """Units of a split, in ascending order of their hashes."""

    of_row: Int64  # (n_rows,) the unit of each row
    size: Int64  # (n_units,) rows of each unit


def check_fractions(valid: float, test: float, seed: int) -> None:
    """Refuse sizes of sides and seeds that are out of range."""
    if not (valid >= 0 and test >= 0 and valid + test < 1):
        raise InputError(f"valid = {valid} and test = {test} but both are 0 or more and their sum is below 1")
    require(0 <= seed < 2**63, f"seed is {seed}; choose a whole number from 0 to {2**63 - 1}")


def check_split_arguments(n: int, by: str, arguments: JsonObject) -> None:
    """Refuse arguments of another length than the rows, and a split without the argument it needs."""
    requirements = {"row": None, "group": "groups", "label": "Y", "time": "times"}
    require(by in requirements, f"a split by {by!r} is unknown; choose one of {', '.join(map(repr, requirements))}")
    requirement = requirements[by]
    if requirement is not None and arguments[requirement] is None:
        raise InputError(f"a split by {by} needs {requirement}, which the data lacks; choose another split")
    for name, values in arguments.items():
        rows = None if values is None else values.shape[0] if hasattr(values, "shape") else len(values)
        require(rows in (None, n), f"{name} has {rows} entries for {n} rows; give one per row")


def group_units(n: int, ids: Sequence[str] | None, groups: Sequence[str | None] | None, seed: int) -> SplitUnits:
    """Group rows of one group, or of one id, into one unit."""
    row_names = [f"row {name}" for name in (range(n) if ids is None else ids)]
    names = row_names
    if groups is not None:
        pairs = zip(groups, row_names, strict=True)
        names = [f"group {group}" if group else row for group, row in pairs]
    order = sorted(dict.fromkeys(names), key=lambda name: hash_with_seed(name, seed))
    rank = {name: place for place, name in enumerate(order)}
    of_row = np.array([rank[name] for name in names], np.int64)
    return SplitUnits(of_row, np.bincount(of_row))


def hash_with_seed(name: str, seed: int) -> int:
    """Hash a name to a number below 2^64 that depends on the seed."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, salt=int(seed).to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")


def assign_by_hash(units: SplitUnits, valid: float, test: float, preset: Int64 | None = None) -> Int64:
    """Fill the test, then the validation side with units in hash order; `preset` sides stay."""
    side = np.full(len(units.size), FREE) if preset is None else preset.copy()
    total = units.size.sum()
    for number, target in ((TEST, test * total), (VALID, valid * total)):
        free = np.flatnonzero(side == FREE)
        side[free[_choose_units(units.size[free], target - units.size[side == number].sum())]] = number
    return np.where(side == FREE, TRAIN, side)


def _choose_units(size: Int64, target: float) -> Bool:
    """Choose units greedily, in order, whose sizes sum up to nearly the target."""
    selection = np.zeros(len(size), bool)
    deficit = target
    for i in range(len(size)):
        if size[i] <= deficit:
            selection[i] = True
            deficit -= size[i]
        if deficit <= 0:
            break
    remaining = np.flatnonzero(~selection)
    if len(remaining):
        nearest = remaining[np.argmin(np.abs(size[remaining] - deficit))]
        selection[nearest] = abs(size[nearest] - deficit) < deficit
    return selection


def _assign_by_time(units: SplitUnits, times: Float64, valid: float, test: float) -> Int64:
    """Cut the units, ordered by time, between two times."""
    unit_times = np.full(len(units.size), -np.inf)
    np.maximum.at(unit_times, units.of_row, times)
    moments, moment = np.unique(unit_times, return_inverse=True)
    sizes = np.bincount(moment.ravel(), units.size, minlength=len(moments))
    rows_before = np.concatenate([[0], np.cumsum(sizes)])
    shares = 1 - test - valid, 1 - test
    starts = [int(np.argmin(np.abs(rows_before - rows_before[-1] * share))) for share in shares]
    return np.searchsorted(starts, moment.ravel(), side="right")


def _parse_times(times: Any, names: Sequence[object]) -> Float64:
    """Parse times to seconds (n,); errors call the rows by `names`."""
    values = np.asarray(times)
    if values.dtype.kind in "iuf":
        stamps: Float64 = values.astype(np.float64)
    elif values.dtype.kind == "M":
        stamps = values.astype("datetime64[us]").astype(np.float64) / 1e6
        stamps[np.isnat(values)] = np.nan
    else:
        stamps = np.array([_parse_time(str(text), name) for text, name in zip(times, names, strict=True)])
    if np.isnan(stamps).any():
        name = names[int(np.argmax(np.isnan(stamps)))]
        raise InputError(f"the time of row {name!r} is missing; a split by time needs the time of every row")
    return stamps


def _parse_time(text: str, name: object) -> float:
    if not text:
        return np.nan
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"time {text!r} of row {name!r} is not an ISO 8601 date; write it like 2024-05-31") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _assign_by_label(units: SplitUnits, Y: Matrix, valid: float, test: float) -> Int64:
    """Split evenly along the units by their rarest label; the only unit of a label stays in training."""
    unit_labels = _collect_unit_labels(units, Y)
    frequency = np.asarray(unit_labels.sum(axis=0)).ravel()
    rarest = _find_rarest_labels(unit_labels, frequency)
    order = np.lexsort((np.arange(len(rarest)), rarest))
    is_needed = np.asarray((unit_labels @ (frequency == 1).astype(np.int64)) > 0).ravel()
    side = np.full(len(rarest), TRAIN)
    for number, fraction in ((TEST, test), (VALID, valid)):
        free = order[(side[order] == TRAIN) & ~is_needed[order]]
        side[free[_choose_evenly(units.size[free], fraction * units.size.sum())]] = number
    return _return_lost_labels(side, unit_labels)


def _choose_evenly(size: Int64, target: float) -> Bool:
    """Choose units so that every stretch of the order gives the same share, at most half."""
    share = min(target / max(size.sum(), 1), 0.5)
    selection, deficit = np.zeros(len(size), bool), 0.0
    for i, rows in enumerate(size.tolist()):
        deficit += share * rows
        if share and deficit >= rows / 2:
            selection[i] = True
            deficit -= rows
    return selection


def _collect_unit_labels(units: SplitUnits, Y: Matrix) -> Matrix:
    """Return the labels of each unit as 0/1 CSR, (n_units, n_labels)."""
    n_labels = Y.shape[1] if np.ndim(Y) == 2 or hasattr(Y, "tocsr") else int(np.max(Y, initial=0)) + 1
    lists = list_positives(Y, n_labels)
    unit_labels = build_incidence(units.of_row[lists.rows], lists.labels, (len(units.size), n_labels))
    return (unit_labels > 0).astype(np.int64)


def _find_rarest_labels(unit_labels: Matrix, frequency: Int64) -> Int64:
    """Return the rank of each unit's rarest label, 0 for the rarest of all; -1 without labels."""
    frequency_rank = np.empty(len(frequency), np.int64)
    frequency_rank[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    unit = np.repeat(np.arange(unit_labels.shape[0]), np.diff(unit_labels.indptr))
    rarest = np.full(unit_labels.shape[0], len(frequency), np.int64)
    np.minimum.at(rarest, unit, frequency_rank[unit_labels.indices])
    return np.where(rarest == len(frequency), -1, rarest)


def _return_lost_labels(side: Int64, unit_labels: Matrix) -> Int64:
    """Move one unit of every label without a training unit back to training."""
    by_label = unit_labels.tocsc()
    training_counts = np.asarray(unit_labels[side == TRAIN].sum(axis=0)).ravel()
    for label in np.flatnonzero((training_counts == 0) & (np.diff(by_label.indptr) > 0)):
        units = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        if (side[units] != TRAIN).all():
            side[units.min()] = TRAIN
    return side


def build_split(side: Int64, valid: float, test: float) -> Split:
    """Build the split from the side of each row; no requested side may be empty."""
    rows = [np.flatnonzero(side == number) for number in (TRAIN, VALID, TEST)]
    fractions = {"training": 1.0, "validation": valid, "test": test}
    for name, side_rows, fraction in zip(fractions, rows, fractions.values(), strict=True):
        if fraction > 0 and not len(side_rows):
            raise InputError(f"the {name} side of the split would be empty; use other fractions or more rows")
    return Split(*rows)


class LabelHoldout(NamedTuple):
    """Training and test labels of every row.

    Attributes
    ----------
    train : csr_matrix (n, n_labels)
        The remaining labels; explicit negatives stay.
    test : csr_matrix (n, n_labels) int8
        1 for the held-out label; rows without one are empty.
    """

    train: Matrix
    test: Matrix


def hold_out_labels(
    Y: Matrix, *, least: int = 2, share: float = 1.0, ids: Sequence[str] | None = None, seed: int = 0
) -> LabelHoldout:
    """Hold out one random label of every row with enough labels.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels)
        Values above zero are labels of a row, values below are explicit negatives.
    least : int
        Rows with fewer labels keep them all. 1 holds out the only label of a row too, which then trains nothing.
    share : float
        Fraction of the rows with enough labels that lose one; above 0, up to 1.
    ids : sequence of str or None
        Names that decide the draw; None: the numbers of the rows.
    seed : int
        The same seed and ids give the same labels, in any order of the rows.

    Returns
    -------
    LabelHoldout

    Raises
    ------
    InputError
        A parameter is out of range, or no row has so many labels.

    Examples
    --------
    >>> sides = hold_out_labels(np.array([[1, 1, 0], [0, -1, 1]]))
    >>> sides.train.sum(axis=1).ravel().tolist(), sides.test.sum(axis=1).ravel().tolist()
    ([[1, 0]], [[1, 0]])
    """
    if least < 1 or not 0 < share <= 1:
        raise InputError(f"least = {least} and share = {share} but least is 1 or more, and share above 0 and up to 1")
    check_fractions(0.0, 0.0, seed)
    Y = convert_to_csr(Y, "Y").copy()
    Y.sum_duplicates()
    n, n_labels = Y.shape
    if ids is not None and len(ids) != n:
        raise InputError(f"ids has {len(ids)} entries for {n} rows; give one per row")
    positives = list_positives(Y, n_labels)
    eligible = np.flatnonzero(np.diff(positives.indptr) >= least)
    require(len(eligible) > 0, f"no row has {least} labels or more, so that none can be held out; give rows with more")
    names = [str(i if ids is None else ids[i]) for i in eligible.tolist()]
    rows, labels = _draw_labels(positives, eligible, share, names, seed)
    entries = np.repeat(np.arange(n, dtype=np.int64), np.diff(Y.indptr)) * n_labels + Y.indices
    Y.data[np.isin(entries, rows * n_labels + labels)] = 0
    Y.eliminate_zeros()
    return LabelHoldout(Y, build_incidence(rows, labels, (n, n_labels), np.int8))


def _draw_labels(
    positives: LabelLists, eligible: Int64, share: float, names: list[str], seed: int
) -> tuple[Int64, Int64]:
    """Draw a share of the rows in `eligible`, which have these names, and a label of each."""
    turns = np.array([hash_with_seed(f"turn of {name}", seed) for name in names], np.uint64)
    positions = np.sort(np.argsort(turns, kind="stable")[: max(1, round(share * len(eligible)))])
    hashes = np.array([hash_with_seed(f"label of {names[i]}", seed) for i in positions.tolist()], np.uint64)
    rows = eligible[positions]
    first, last = positives.indptr[rows], positives.indptr[rows + 1]
    return rows, positives.labels[first + (hashes % (last - first).astype(np.uint64)).astype(np.int64)].astype(np.int64)


class NearDuplicates(NamedTuple):
    """Rows removed from a split, with the row that each is too close to."""

    rows: Int64
    neighbours: Int64
    similarities: Float32  # cosine


def drop_near(X: Matrix, parts: Split, threshold: float) -> tuple[Split, NearDuplicates]:
    """Remove validation rows near a training row, then test rows near a training or validation row.

    Parameters
    ----------
    X : csr_matrix or array, (n, d)
    parts : Split
    threshold : float
        Rows whose cosine with their nearest neighbour is at least this are removed; above 0, up to 1. Rows of zeros
        have no neighbours.

    Returns
    -------
    Split
        Without the dropped rows.
    NearDuplicates
        Sorted by row.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> parts, dropped = drop_near(X, Split(np.array([0, 1]), np.array([], int), np.array([2])), 0.99)
    >>> parts.test.tolist(), dropped.neighbours.tolist()
    ([], [0])
    """
    if not 0 < threshold <= 1:
        raise InputError(f"threshold = {threshold} but a cosine similarity above 0 and up to 1 is needed, such as 0.95")
    points = convert_to_csr(X, "X").astype(np.float32) if hasattr(X, "tocsr") else np.asarray(X, np.float32)
    valid, from_valid = _separate_near_rows(points, parts.valid, parts.train, threshold)
    test, from_test = _separate_near_rows(points, parts.test, np.concatenate([parts.train, valid]), threshold)
    near: list[Array] = [np.concatenate([from_valid[i], from_test[i]]) for i in range(3)]
    order = np.argsort(near[0])
    return Split(parts.train, valid, test), NearDuplicates(*(column[order] for column in near))


def _separate_near_rows(
    points: Matrix, rows: Int64, known_rows: Int64, threshold: float
) -> tuple[Int64, NearDuplicates]:
    """Return the rows that stay, and those too near to a known row (of equally near ones the first)."""
    from sklearn import config_context
    from sklearn.metrics import pairwise_distances_argmin_min

    if not len(rows) or not len(known_rows):
        return rows, NearDuplicates(rows[:0], rows[:0], np.zeros(0, np.float32))
    with config_context(working_memory=_MEBIBYTES):
        nearest, distances = pairwise_distances_argmin_min(points[rows], points[known_rows], metric="cosine")
    similarities = 1 - distances
    near = similarities >= threshold - _ROUNDING
    return rows[~near], NearDuplicates(rows[near], known_rows[nearest[near]], similarities[near])
