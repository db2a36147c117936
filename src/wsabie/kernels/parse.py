"""Rows of sparse text (`l1,l2 j:v j:v`) from bytes to arrays.

`parse_lines` eats whole lines out of a buffer into fixed scratch arrays and stops before the first line that
no longer fits, so that memory does not depend on the size of the file. Every number becomes the float32 that
`numpy.float32(float(token))` gives: a decimal of up to 18 digits times a tabulated power of ten is within
2**-50 of the truth, which settles the float32 unless a rounding boundary lies that near; such a token is
handed back as doubtful and parsed by Python. (Exactness wants strict arithmetic, hence `strict` and not the fast-math
flags of `_jit`; all leaves are in this file, which is what numba's own cache watches.)
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int32, Int64
from wsabie.kernels._jit import STRICT, cached, strict

KEPT, BAD_LABEL, BAD_FEATURE, NOT_FINITE, NEGATIVE, REPEATED, LABEL_RANGE, FEATURE_RANGE, FULL = range(9)
LINES, ROWS, LABELS, FEATURES, BAD, DOUBTS = range(6)
LARGEST = 2**31 - 2  # the largest index or label number; everything is stored as int32

_SPACE, _TAB, _RETURN, _NEWLINE, _HASH = 32, 9, 13, 10, 35
_COLON, _COMMA, _PLUS, _MINUS, _POINT = 58, 44, 43, 45, 46
_SATURATED = np.int64(1) << 40
_DIGITS = 18  # 10**18 fits an int64
_EXACT = np.int64(1) << 53
_LOWEST, _HIGHEST = -65, 38  # 10**18 * 10**-65 rounds to zero, 10**39 to infinity
_POWERS = np.array([float(f"1e{k}") for k in range(_LOWEST, _HIGHEST + 1)])
_ERROR = 2.0**-50


class Limits(NamedTuple):
    """What a row may hold.

    Attributes
    ----------
    n_features : int
        Feature numbers are below this.
    n_labels : int
        Label numbers are from 0 to below this; -1 when the file promises nothing (then -1 is a label too).
    blank_rows : bool
        A blank line is a row without labels and features (and not just a blank line).
    counts : bool
        Values must not be negative.
    """

    n_features: int
    n_labels: int
    blank_rows: bool
    counts: bool


class Batch(NamedTuple):
    """Scratch that one call fills; the sizes of the arrays are its capacities."""

    used: Int64  # (6,) how much is filled: LINES, ROWS, LABELS, FEATURES, BAD, DOUBTS
    row_lines: Int64  # (rows,) line of each row, counted from the call's first line
    label_counts: Int32  # (rows,)
    feature_counts: Int32  # (rows,)
    labels: Int32  # (labels,) as written, neither sorted nor unique
    indices: Int32  # (features,) strictly increasing inside a row
    values: Float32  # (features,) no zeros
    bad: Int64  # (bad, 3): line, reason, position in the buffer
    doubts: Int64  # (doubts, 3): row, feature number, position in the buffer


def new_batch(rows: int, labels: int, features: int, bad: int = 1024, doubts: int = 1024) -> Batch:
    """Scratch of the given capacities."""
    return Batch(
        used=np.zeros(6, np.int64),
        row_lines=np.empty(rows, np.int64),
        label_counts=np.empty(rows, np.int32),
        feature_counts=np.empty(rows, np.int32),
        labels=np.empty(labels, np.int32),
        indices=np.empty(features, np.int32),
        values=np.empty(features, np.float32),
        bad=np.empty((bad, 3), np.int64),
        doubts=np.empty((doubts, 3), np.int64),
    )


@strict
def _is_blank(c: Any) -> Any:
    return c in (_SPACE, _TAB, _RETURN)


@strict
def _is_end(c: Any) -> Any:
    return c in (_NEWLINE, _HASH) or _is_blank(c)


@strict
def _is_empty(buffer: Any, i: Any) -> Any:
    """Whether only blanks or a comment are left of the line."""
    while _is_blank(buffer[i]):
        i += 1
    return buffer[i] == _NEWLINE or buffer[i] == _HASH


@strict
def _whole(buffer: Any, i: Any) -> Any:
    """An unsigned integer at i: (number, position after it); it saturates instead of overflowing."""
    number = np.int64(0)
    while True:
        digit = np.int64(buffer[i]) - 48
        if digit < 0 or digit > 9:
            return number, i
        number = min(number * 10 + digit, _SATURATED)
        i += 1


@strict
def _mantissa(buffer: Any, i: Any) -> Any:
    """Digits with an optional point: (as integer, power of ten, any digit seen, all digits kept, end)."""
    number: Any = np.int64(0)
    power, kept = 0, 0
    seen, whole, fraction = False, True, False
    while True:
        c = np.int64(buffer[i])
        digit = c - 48
        if 0 <= digit <= 9:
            seen = True
            if kept < _DIGITS:
                number = number * 10 + digit
                kept += number > 0
                power -= fraction
            else:
                whole = False
                power += not fraction
        elif c == _POINT and not fraction:
            fraction = True
        else:
            return number, power, seen, whole, i
        i += 1


@strict
def _exponent(buffer: Any, i: Any) -> Any:
    """`e-12` at i, or nothing: (exponent, end); the end is -1 when digits are missing."""
    if buffer[i] != 101 and buffer[i] != 69:
        return np.int64(0), i
    i += 1
    minus = buffer[i] == _MINUS
    if minus or buffer[i] == _PLUS:
        i += 1
    number, end = _whole(buffer, i)
    if end == i:
        return np.int64(0), -1
    return -number if minus else number, end


@strict
def _scaled(number: Any, power: Any, whole: Any) -> Any:
    """number * 10**power as float32, and whether Python has to decide the last bit."""
    if whole and number < _EXACT and -22 <= power <= 22:
        scale = _POWERS[abs(power) - _LOWEST]
        return np.float32(number / scale if power < 0 else number * scale), False
    if number == 0 or power < _LOWEST:
        return np.float32(0.0), False
    if power > _HIGHEST:
        return np.float32(np.inf), False
    near = np.float64(number) * _POWERS[power - _LOWEST]
    high = np.float32(near * (1.0 + _ERROR))
    return high, high != np.float32(near * (1.0 - _ERROR))


@strict
def _says_not_finite(buffer: Any, i: Any) -> Any:
    """Whether `nan` or `inf` stands at i, in any case (the final newline matches no letter: no overrun)."""
    a = buffer[i] | 32
    if a == 110:
        return (buffer[i + 1] | 32) == 97 and (buffer[i + 2] | 32) == 110
    return a == 105 and (buffer[i + 1] | 32) == 110 and (buffer[i + 2] | 32) == 102


@strict
def _value(buffer: Any, i: Any) -> Any:
    """A decimal number at i: (reason, value, doubtful, end)."""
    minus = buffer[i] == _MINUS
    if minus or buffer[i] == _PLUS:
        i += 1
    number, power, seen, whole, end = _mantissa(buffer, i)
    if not seen:
        return (NOT_FINITE if _says_not_finite(buffer, i) else BAD_FEATURE), np.float32(0), False, i
    exponent, end = _exponent(buffer, end)
    if end < 0 or not _is_end(buffer[end]):
        return BAD_FEATURE, np.float32(0), False, i
    value, doubtful = _scaled(number, power + exponent, whole)
    if np.isinf(value):
        return NOT_FINITE, value, False, i
    return KEPT, (-value if minus else value), doubtful, end


@strict
def _labels(buffer: Any, start: Any, limits: Any, batch: Any) -> Any:
    """Comma-separated integers that open a line: (reason, end, filled labels)."""
    i, at = start, batch.used[LABELS]
    if _is_end(buffer[i]):
        return KEPT, start, at
    while True:
        minus = buffer[i] == _MINUS
        first = i + 1 if minus or buffer[i] == _PLUS else i
        number, end = _whole(buffer, first)
        if at == batch.used[LABELS] and buffer[end] == _COLON and first == start and end > first:
            return KEPT, start, at  # the line opens with a feature
        if end == first or number > LARGEST or not (_is_end(buffer[end]) or buffer[end] == _COMMA):
            return BAD_LABEL, i, at
        if limits.n_labels >= 0 and (minus or number >= limits.n_labels):
            return (BAD_LABEL if minus else LABEL_RANGE), i, at
        if at == len(batch.labels):
            return FULL, i, at
        batch.labels[at] = -number if minus else number
        at += 1
        if buffer[end] != _COMMA:
            return KEPT, end, at
        i = end + 1


@strict
def _features(buffer: Any, i: Any, limits: Any, batch: Any) -> Any:
    """`j:v j:v ...` up to the line's end or a comment: (reason, end, filled features, filled doubts)."""
    first, doubts = batch.used[FEATURES], batch.used[DOUBTS]
    at, previous, ordered = first, np.int64(-1), True
    while True:
        while _is_blank(buffer[i]):
            i += 1
        if buffer[i] == _NEWLINE or buffer[i] == _HASH:
            break
        number, end = _whole(buffer, i)
        if end == i or buffer[end] != _COLON or number > LARGEST:
            return BAD_FEATURE, i, at, doubts
        reason, value, doubtful, end = _value(buffer, end + 1)
        if reason != KEPT:
            return reason, i, at, doubts
        if number >= limits.n_features:
            return FEATURE_RANGE, i, at, doubts
        if limits.counts and value < 0:
            return NEGATIVE, i, at, doubts
        if at == len(batch.indices) or doubts == len(batch.doubts):
            return FULL, i, at, doubts
        if doubtful:
            doubt = batch.doubts[doubts]
            doubt[0], doubt[1], doubt[2] = batch.used[ROWS], number, i
            doubts += 1
        ordered = ordered and number > previous
        previous = number
        if value != 0 or doubtful:
            batch.indices[at] = number
            batch.values[at] = value
            at += 1
        i = end
    if not ordered and not _sort(batch.indices, batch.values, first, at):
        return REPEATED, i, at, doubts
    return KEPT, i, at, doubts


@strict
def _sort(indices: Any, values: Any, first: Any, stop: Any) -> Any:
    """Shell sort of one row by index; False when an index comes twice."""
    gap = 1
    while 3 * gap < stop - first:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(first + gap, stop):
            index, value, at = indices[k], values[k], k
            while at - gap >= first and indices[at - gap] > index:
                indices[at], values[at] = indices[at - gap], values[at - gap]
                at -= gap
            indices[at], values[at] = index, value
        gap //= 3
    for k in range(first + 1, stop):  # noqa: SIM110 (numba compiles no generator)
        if indices[k] == indices[k - 1]:
            return False
    return True


@strict
def _keep(batch: Any, line: Any, labels_end: Any, features_end: Any, doubts_end: Any) -> None:
    row = batch.used[ROWS]
    batch.row_lines[row] = line
    batch.label_counts[row] = labels_end - batch.used[LABELS]
    batch.feature_counts[row] = features_end - batch.used[FEATURES]
    batch.used[ROWS] = row + 1
    batch.used[LABELS] = labels_end
    batch.used[FEATURES] = features_end
    batch.used[DOUBTS] = doubts_end


@cached(**STRICT)
def parse_lines(buffer: Any, start: Any, limits: Any, batch: Any) -> Any:
    """Parse whole lines from `start` on until the buffer ends or the batch is full.

    Parameters
    ----------
    buffer : ndarray of uint8
        Must end with a newline.
    start : int
        Where a line begins.
    limits : Limits
    batch : Batch
        Overwritten; `batch.used` says how much of it is filled. A row that is not kept has an entry in `bad`.

    Returns
    -------
    int
        Where the next call has to begin; `start` itself when not even one line fits into the batch.
    """
    used = batch.used
    used[:] = 0
    i = start
    while i < len(buffer) and used[ROWS] < len(batch.row_lines) and used[BAD] < len(batch.bad):
        doubts_end, features_end = used[DOUBTS], used[FEATURES]
        reason, at, labels_end = _labels(buffer, i, limits, batch)
        if reason == KEPT:
            reason, at, features_end, doubts_end = _features(buffer, at, limits, batch)
        if reason == FULL:
            break
        if reason != KEPT:
            used[BAD] += 1
            last = batch.bad[used[BAD] - 1]
            last[0], last[1], last[2] = used[LINES], reason, at
        elif limits.blank_rows or not _is_empty(buffer, i):
            _keep(batch, used[LINES], labels_end, features_end, doubts_end)
        while buffer[at] != _NEWLINE:
            at += 1
        used[LINES] += 1
        i = at + 1
    return i
