"""Split rows into training, validation and test: by row, by group, stratified by label, or by time.

The unit that is dealt out is a row, or a whole group of rows. Units are put in an order (by a keyed hash of
their names, so that neither the order of the rows nor added rows reshuffle the others; or by time) and cut by
their number of rows.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool, Float64, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.evaluation.targets import positive_lists

By = Literal["row", "group", "label", "time"]

TRAIN, VALID, TEST = 0, 1, 2
FREE = -1
"""A unit that is on no side yet."""


@dataclass(frozen=True)
class Split:
    """Row numbers of the three sides, each sorted; no row is on two sides."""

    train: Int64
    valid: Int64
    test: Int64

    def sides(self, n: int) -> Int64:
        """0 (train), 1 (valid), 2 (test) for each of n rows, -1 for a row on no side."""
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
    """Deal n rows out to training, validation and test.

    Parameters
    ----------
    n : int
    by : {"row", "group", "label", "time"}
        "row": each row by itself. "group": rows of one group stay together. "label": stratified by each
        unit's rarest label, and every label keeps a training row. "time": the latest rows are the test, those
        before them the validation; rows of one time stay together. With "label" and "time", groups stay
        together when given.
    valid, test : float
        Fractions of the rows, met as closely as the units allow.
    ids : sequence of str or None
        Names that decide the fate of rows (rows that share one stay together); None = their numbers.
    groups : sequence of (str or None) or None
        None or "" = the row is its own group.
    times : sequence of ISO 8601 str, datetime64 or numbers, or None
        Times without a zone count as UTC. A group has the time of its latest row.
    Y : csr_matrix (n, n_labels) or int array (n,), or None
        For "label": values above zero count.
    seed : int
        Same seed, ids and groups = same split, whatever the order of the rows ("label": up to ties in
        frequency).

    Returns
    -------
    Split

    Raises
    ------
    InputError
        When fractions or the seed are out of range, what `by` needs is missing or of another length, or a side stays
        empty.

    Examples
    --------
    >>> parts = split(10, valid=0.2, test=0.3)
    >>> len(parts.train), len(parts.valid), len(parts.test)
    (5, 2, 3)
    """
    check_fractions(valid, test, seed)
    check_given(n, by, {"ids": ids, "groups": groups, "times": times, "Y": Y})
    units = units_of(n, ids, None if by == "row" else groups, seed)
    if by == "time":
        side = _by_time(units, _timestamps(times, range(n) if ids is None else ids), valid, test)
    elif by == "label":
        side = _by_label(units, Y, valid, test)
    else:
        side = by_hash(units, valid, test)
    return as_split(side[units.of_row], valid, test)


def check_overlap(train_ids: Sequence[str], train_X: Matrix, test_ids: Sequence[str], test_X: Matrix) -> None:
    """Refuse test rows that are training rows too: the same id and the same features.

    The id alone is not enough, for in many formats it is the number of the line.

    Raises
    ------
    InputError
        Naming how many rows are on both sides and the first three of them.

    Examples
    --------
    >>> check_overlap(["1", "2"], np.eye(2), ["1"], np.ones((1, 2)))
    """
    place = {name: i for i, name in enumerate(train_ids)}
    shared = [(place[name], j) for j, name in enumerate(test_ids) if name in place]
    if not shared:
        return
    ours, theirs = (list(side) for side in zip(*shared, strict=True))
    differ = abs(train_X[ours] - test_X[theirs]).sum(axis=1)
    common = sorted(test_ids[j] for j, gap in zip(theirs, np.asarray(differ).ravel(), strict=True) if gap == 0)
    if common:
        named = ", ".join(repr(name) for name in common[:3])
        raise InputError(
            f"{len(common)} test rows are training rows too ({named}{' ...' if len(common) > 3 else ''}); "
            "split again, or allow the overlap"
        )


class Units(NamedTuple):
    """What is dealt out, in ascending order of its hash."""

    of_row: Int64  # (n_rows,) the unit of each row
    size: Int64  # (n_units,) rows of each unit


def check_fractions(valid: float, test: float, seed: int) -> None:
    """Refuse sizes of sides and seeds that are out of range."""
    if not (valid >= 0 and test >= 0 and valid + test < 1):
        raise InputError(f"valid = {valid} and test = {test} but both are 0 or more and their sum is below 1")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; choose a whole number from 0 to {2**63 - 1}")


def check_given(n: int, by: str, given: dict[str, Any]) -> None:
    """Refuse what is of another length than the rows, and a split without what it goes by."""
    needs = {"row": None, "group": "groups", "label": "Y", "time": "times"}
    if by not in needs:
        raise InputError(f"a split by {by!r} is unknown; choose one of {', '.join(map(repr, needs))}")
    needed = needs[by]
    if needed is not None and given[needed] is None:
        raise InputError(f"a split by {by} needs {needed}, which the data lacks; choose another split")
    for name, values in given.items():
        rows = None if values is None else values.shape[0] if hasattr(values, "shape") else len(values)
        if rows is not None and rows != n:
            raise InputError(f"{name} has {rows} entries for {n} rows; give one per row")


def units_of(n: int, ids: Sequence[str] | None, groups: Sequence[str | None] | None, seed: int) -> Units:
    """Rows of one group, or of one id, as one unit."""
    row_names = [f"row {name}" for name in (range(n) if ids is None else ids)]
    names = row_names
    if groups is not None:
        named = zip(groups, row_names, strict=True)
        names = [f"group {group}" if group else row for group, row in named]
    number: dict[str, int] = {}
    first_seen = np.array([number.setdefault(name, len(number)) for name in names], np.int64)
    hashes = np.array([keyed_hash(name, seed) for name in number], np.uint64)
    rank = np.empty(len(number), np.int64)
    rank[np.argsort(hashes, kind="stable")] = np.arange(len(number))
    of_row = rank[first_seen]
    return Units(of_row, np.bincount(of_row, minlength=len(number)))


def keyed_hash(name: str, seed: int) -> int:
    """A number below 2^64 for a name, another one for every seed."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, salt=int(seed).to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")


def by_hash(units: Units, valid: float, test: float, dealt: Int64 | None = None) -> Int64:
    """Fill the test, then the validation, with units in hash order as long as they fit; units dealt before stay."""
    side = np.full(len(units.size), FREE) if dealt is None else dealt.copy()
    total = units.size.sum()
    for number, target in ((TEST, test * total), (VALID, valid * total)):
        free = np.flatnonzero(side == FREE)
        side[free[_fill(units.size[free], target - units.size[side == number].sum())]] = number
    return np.where(side == FREE, TRAIN, side)


def _fill(size: Int64, target: float) -> Bool:
    """Choose units, in order, whose sizes sum up as closely to the target as this greedy walk finds."""
    chosen = np.zeros(len(size), bool)
    missing = target
    for i in range(len(size)):
        if size[i] <= missing:
            chosen[i] = True
            missing -= size[i]
        if missing <= 0:
            break
    rest = np.flatnonzero(~chosen)
    if len(rest):
        nearest = rest[np.argmin(np.abs(size[rest] - missing))]
        chosen[nearest] = abs(size[nearest] - missing) < missing
    return chosen


def _by_time(units: Units, times: Float64, valid: float, test: float) -> Int64:
    """Cut the units, ordered by time, between two times."""
    when = np.full(len(units.size), -np.inf)
    np.maximum.at(when, units.of_row, times)
    moments, moment = np.unique(when, return_inverse=True)
    sizes = np.bincount(moment.ravel(), units.size, minlength=len(moments))
    before = np.concatenate([[0], np.cumsum(sizes)])
    valid_from, test_from = (
        int(np.argmin(np.abs(before - before[-1] * share))) for share in (1 - test - valid, 1 - test)
    )
    return np.searchsorted([valid_from, test_from], moment.ravel(), side="right")


def _timestamps(times: Any, names: Sequence[Any]) -> Float64:
    """Seconds (n,); `names` are what errors call the rows."""
    values = np.asarray(times)
    if values.dtype.kind in "iuf":
        stamps: Float64 = values.astype(np.float64)
    elif values.dtype.kind == "M":
        stamps = values.astype("datetime64[us]").astype(np.float64) / 1e6
        stamps[np.isnat(values)] = np.nan
    else:
        stamps = np.array([_timestamp(str(text), name) for text, name in zip(times, names, strict=True)])
    if np.isnan(stamps).any():
        name = names[int(np.argmax(np.isnan(stamps)))]
        raise InputError(f"the time of row {name!r} is missing; a split by time needs the time of every row")
    return stamps


def _timestamp(text: str, name: Any) -> float:
    if not text:
        return np.nan
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"the time {text!r} of row {name!r} is no ISO 8601 date; write it like 2024-05-31") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _by_label(units: Units, Y: Matrix, valid: float, test: float) -> Int64:
    """Deal out evenly along the units ordered by their rarest label; units with an only label stay in
    training.
    """
    carried = _labels_of_units(units, Y)
    frequency = np.asarray(carried.sum(axis=0)).ravel()
    place = _rarest(carried, frequency)
    order = np.lexsort((np.arange(len(place)), place))
    needed = np.asarray((carried @ (frequency == 1).astype(np.int64)) > 0).ravel()
    side = np.full(len(place), TRAIN)
    for number, fraction in ((TEST, test), (VALID, valid)):
        free = order[(side[order] == TRAIN) & ~needed[order]]
        side[free[_evenly(units.size[free], fraction * units.size.sum())]] = number
    return _give_back(side, carried)


def _evenly(size: Int64, target: float) -> Bool:
    """Choose units along the order so that every stretch gives the same share, at most half of it."""
    share = min(target / max(size.sum(), 1), 0.5)
    chosen, owed = np.zeros(len(size), bool), 0.0
    for i, rows in enumerate(size.tolist()):
        owed += share * rows
        if share and owed >= rows / 2:
            chosen[i] = True
            owed -= rows
    return chosen


def _labels_of_units(units: Units, Y: Matrix) -> Any:
    """(n_units, n_labels) 0/1 in CSR: the labels that a unit carries."""
    from scipy.sparse import csr_matrix

    n_labels = Y.shape[1] if np.ndim(Y) == 2 or hasattr(Y, "tocsr") else int(np.max(Y, initial=0)) + 1
    lists = positive_lists(Y, n_labels)
    entries = (np.ones(len(lists.labels), np.int64), lists.labels, lists.indptr)
    positive = csr_matrix(entries, shape=(lists.n_rows, n_labels))
    n = len(units.of_row)
    member = csr_matrix((np.ones(n), (units.of_row, np.arange(n))), shape=(len(units.size), n))
    return ((member @ positive) > 0).astype(np.int64).tocsr()


def _rarest(carried: Any, frequency: Int64) -> Int64:
    """The place of each unit's rarest label in the order of frequency; -1 without labels."""
    place = np.empty(len(frequency), np.int64)
    place[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    unit = np.repeat(np.arange(carried.shape[0]), np.diff(carried.indptr))
    rarest = np.full(carried.shape[0], len(frequency), np.int64)
    np.minimum.at(rarest, unit, place[carried.indices])
    return np.where(rarest == len(frequency), -1, rarest)


def _give_back(side: Int64, carried: Any) -> Int64:
    """Move one unit of every label that has no training unit back to training."""
    by_label = carried.tocsc()
    left = np.asarray(carried[side == TRAIN].sum(axis=0)).ravel()
    for label in np.flatnonzero((left == 0) & (np.diff(by_label.indptr) > 0)):
        units = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        if (side[units] != TRAIN).all():
            side[units.min()] = TRAIN
    return side


def as_split(side: Int64, valid: float, test: float) -> Split:
    """The split of rows on these sides, none of which may be empty."""
    rows = [np.flatnonzero(side == number) for number in (TRAIN, VALID, TEST)]
    wanted = {"training": 1.0, "validation": valid, "test": test}
    for name, found, fraction in zip(wanted, rows, wanted.values(), strict=True):
        if fraction > 0 and not len(found):
            raise InputError(f"the {name} side of the split would be empty; use other fractions or more rows")
    return Split(*rows)
