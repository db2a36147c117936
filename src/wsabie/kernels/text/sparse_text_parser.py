"""Rows of sparse text (`l1,l2 j:v j:v`) from bytes to arrays.

`parse_lines` reads whole lines of a buffer into fixed scratch arrays and stops before the first line that does not fit,
so that memory does not depend on the size of the file. Every number becomes the float32 that
`numpy.float32(float(token))` gives: a decimal of up to 18 digits times a tabulated power of ten is within 2**-50 of the
truth, which decides the float32 unless a rounding boundary lies that near. Such a token is returned as ambiguous, and
Python parses it. (Exactness needs strict arithmetic, hence `jit_strict` without fast-math flags. All leaves are in this
file, since numba's own cache watches one file.)
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int32, Int64
from wsabie.kernels.compiler import STRICT, jit_strict, make_cached_jit

ACCEPTED, BAD_LABEL, BAD_FEATURE, NOT_FINITE, NEGATIVE, REPEATED, LABEL_RANGE, FEATURE_RANGE, FULL = range(9)
LINES, ROWS, LABELS, FEATURES, BAD, AMBIGUOUS = range(6)
LARGEST = 2**31 - 2  # the largest index or label number; everything is stored as int32

_SPACE, _TAB, _RETURN, _NEWLINE, _HASH = 32, 9, 13, 10, 35
_COLON, _COMMA, _PLUS, _MINUS, _POINT, _ZERO = 58, 44, 43, 45, 46, 48
_SATURATED = np.int64(1) << 40
_DIGITS = 18  # 10**18 fits an int64
_EXACT = np.int64(1) << 53
_LOWEST, _HIGHEST = -65, 38  # 10**18 * 10**-65 rounds to zero, 10**39 to infinity
_POWERS = np.array([float(f"1e{k}") for k in range(_LOWEST, _HIGHEST + 1)])
_ERROR = 2.0**-50


class RowLimits(NamedTuple):
    """Limits on the content of a row.

    Attributes
    ----------
    n_features : int
        Feature numbers are below this.
    n_labels : int
        Label numbers are from 0 to below this; -1 where the file states no number (then -1 is a label too).
    blank_rows : bool
        A blank line is a row without labels and features (and not just a blank line).
    counts : bool
        Values must not be negative.
    """

    n_features: int
    n_labels: int
    blank_rows: bool
    counts: bool


class LineBatch(NamedTuple):
    """Scratch that one call fills; the sizes of the arrays are its capacities."""

    used: Int64  # (6,) filled entries: LINES, ROWS, LABELS, FEATURES, BAD, AMBIGUOUS
    row_lines: Int64  # (rows,) line of each row, counted from the call's first line
    label_counts: Int32  # (rows,)
    feature_counts: Int32  # (rows,)
    labels: Int32  # (labels,) as written, neither sorted nor unique
    indices: Int32  # (features,) strictly increasing inside a row
    values: Float32  # (features,) no zeros
    bad: Int64  # (bad, 3): line, reason, position in the buffer
    ambiguous: Int64  # (ambiguous, 3): row, feature number, position in the buffer


def allocate_batch(rows: int, labels: int, features: int, bad: int = 1024, ambiguous: int = 1024) -> LineBatch:
    """Allocate scratch of these capacities."""
    return LineBatch(
        used=np.zeros(6, np.int64),
        row_lines=np.empty(rows, np.int64),
        label_counts=np.empty(rows, np.int32),
        feature_counts=np.empty(rows, np.int32),
        labels=np.empty(labels, np.int32),
        indices=np.empty(features, np.int32),
        values=np.empty(features, np.float32),
        bad=np.empty((bad, 3), np.int64),
        ambiguous=np.empty((ambiguous, 3), np.int64),
    )


@jit_strict
def _is_blank(c):
    return c in (_SPACE, _TAB, _RETURN)


@jit_strict
def _is_end(c):
    return c in (_NEWLINE, _HASH) or _is_blank(c)


@jit_strict
def _skip_blanks(buffer, i):
    while _is_blank(buffer[i]):
        i += 1
    return i


@jit_strict
def _is_empty(buffer, i):
    """Return True if only blanks or a comment are left of the line."""
    return buffer[_skip_blanks(buffer, i)] in (_NEWLINE, _HASH)


@jit_strict
def _parse_integer(buffer, i):
    """Parse an unsigned integer at i, which saturates: (number, position after it)."""
    number = np.int64(0)
    while True:
        digit = np.int64(buffer[i]) - 48
        if digit < 0 or digit > 9:
            return number, i
        number = min(number * 10 + digit, _SATURATED)
        i += 1


@jit_strict
def _parse_mantissa(buffer, i):
    """Parse digits with an optional point: (integer, power of ten, has a digit, is exact, end)."""
    number: Any = np.int64(0)
    power, n_digits = 0, 0
    has_digit, is_exact, has_point = False, True, False
    while True:
        c = np.int64(buffer[i])
        digit = c - 48
        if 0 <= digit <= 9:
            has_digit = True
            if n_digits < _DIGITS:
                number = number * 10 + digit
                n_digits += number > 0
                power -= has_point
            else:
                is_exact = False
                power += not has_point
        elif c == _POINT and not has_point:
            has_point = True
        else:
            return number, power, has_digit, is_exact, i
        i += 1


@jit_strict
def _parse_exponent(buffer, i):
    """Parse `e-12` at i, or nothing: (exponent, end); the end is -1 when digits are missing."""
    if buffer[i] != 101 and buffer[i] != 69:
        return np.int64(0), i
    i += 1
    minus = buffer[i] == _MINUS
    if minus or buffer[i] == _PLUS:
        i += 1
    number, end = _parse_integer(buffer, i)
    if end == i:
        return np.int64(0), -1
    return -number if minus else number, end


@jit_strict
def _scale_decimal(number, power, is_exact):
    """Return number * 10**power as float32, and True if Python has to decide the last bit."""
    if is_exact and number < _EXACT and -22 <= power <= 22:
        scale = _POWERS[abs(power) - _LOWEST]
        return np.float32(number / scale if power < 0 else number * scale), False
    if number == 0 or power < _LOWEST:
        return np.float32(0.0), False
    if power > _HIGHEST:
        return np.float32(np.inf), False
    near = np.float64(number) * _POWERS[power - _LOWEST]
    high = np.float32(near * (1.0 + _ERROR))
    return high, high != np.float32(near * (1.0 - _ERROR))


@jit_strict
def _is_not_finite(buffer, i):
    """Return True if `nan` or `inf`, in any case, stands at i (the final newline prevents an overrun)."""
    a = buffer[i] | 32
    if a == 110:
        return (buffer[i + 1] | 32) == 97 and (buffer[i + 2] | 32) == 110
    return a == 105 and (buffer[i + 1] | 32) == 110 and (buffer[i + 2] | 32) == 102


@jit_strict
def _parse_value(buffer, i):
    """Parse a decimal number at i: (reason, value, is ambiguous, end)."""
    minus = buffer[i] == _MINUS
    if minus or buffer[i] == _PLUS:
        i += 1
    number, power, has_digit, is_exact, end = _parse_mantissa(buffer, i)
    if not has_digit:
        return (NOT_FINITE if _is_not_finite(buffer, i) else BAD_FEATURE), np.float32(0), False, i
    exponent, end = _parse_exponent(buffer, end)
    if end < 0 or not _is_end(buffer[end]):
        return BAD_FEATURE, np.float32(0), False, i
    value, is_ambiguous = _scale_decimal(number, power + exponent, is_exact)
    if np.isinf(value):
        return NOT_FINITE, value, False, i
    return ACCEPTED, (-value if minus else value), is_ambiguous, end


@jit_strict
def _parse_label(buffer, i):
    """Parse an unsigned whole number at i, perhaps `7.0`: (number, position after it)."""
    number, end = _parse_integer(buffer, i)
    zeros = end + 1
    if end > i and buffer[end] == _POINT:
        while buffer[zeros] == _ZERO:
            zeros += 1
        if _is_end(buffer[zeros]) or buffer[zeros] == _COMMA:
            end = zeros
    return number, end


@jit_strict
def _parse_labels(buffer, start, limits, batch):
    """Parse the comma-separated integers that open a line, if any: (reason, end, filled labels)."""
    i, filled = start, batch.used[LABELS]
    if _is_end(buffer[i]):
        return ACCEPTED, start, filled
    while True:
        minus = buffer[i] == _MINUS
        first = i + 1 if minus or buffer[i] == _PLUS else i
        number, end = _parse_label(buffer, first)
        if filled == batch.used[LABELS] and buffer[end] == _COLON and first == start and end > first:
            return ACCEPTED, start, filled  # the line opens with a feature
        if end == first or number > LARGEST or not (_is_end(buffer[end]) or buffer[end] == _COMMA):
            return BAD_LABEL, i, filled
        if limits.n_labels >= 0 and (minus or number >= limits.n_labels):
            return (BAD_LABEL if minus else LABEL_RANGE), i, filled
        if filled == len(batch.labels):
            return FULL, i, filled
        batch.labels[filled] = -number if minus else number
        filled += 1
        comma = _skip_blanks(buffer, end)
        if buffer[comma] != _COMMA:
            return ACCEPTED, end, filled
        i = _skip_blanks(buffer, comma + 1)


@jit_strict
def _parse_features(buffer, i, limits, batch):
    """Parse `j:v j:v ...` to the end of the line or a comment: (reason, end, features, ambiguous ones)."""
    first, n_ambiguous = batch.used[FEATURES], batch.used[AMBIGUOUS]
    filled, previous, ordered = first, np.int64(-1), True
    while True:
        i = _skip_blanks(buffer, i)
        if buffer[i] in (_NEWLINE, _HASH):
            break
        number, end = _parse_integer(buffer, i)
        if end == i or buffer[end] != _COLON or number > LARGEST:
            return BAD_FEATURE, i, filled, n_ambiguous
        reason, value, is_ambiguous, end = _parse_value(buffer, end + 1)
        if reason != ACCEPTED:
            return reason, i, filled, n_ambiguous
        if number >= limits.n_features:
            return FEATURE_RANGE, i, filled, n_ambiguous
        if limits.counts and value < 0:
            return NEGATIVE, i, filled, n_ambiguous
        if filled == len(batch.indices) or n_ambiguous == len(batch.ambiguous):
            return FULL, i, filled, n_ambiguous
        if is_ambiguous:
            entry = batch.ambiguous[n_ambiguous]
            entry[0], entry[1], entry[2] = batch.used[ROWS], number, i
            n_ambiguous += 1
        ordered = ordered and number > previous
        previous = number
        if value != 0 or is_ambiguous:
            batch.indices[filled] = number
            batch.values[filled] = value
            filled += 1
        i = end
    if not ordered and not _sort(batch.indices, batch.values, first, filled):
        return REPEATED, i, filled, n_ambiguous
    return ACCEPTED, i, filled, n_ambiguous


@jit_strict
def _sort(indices, values, first, stop):
    """Shell-sort one row by index; return False when an index comes twice."""
    gap = 1
    while 3 * gap < stop - first:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(first + gap, stop):
            index, value, place = indices[k], values[k], k
            while place - gap >= first and indices[place - gap] > index:
                indices[place], values[place] = indices[place - gap], values[place - gap]
                place -= gap
            indices[place], values[place] = index, value
        gap //= 3
    for k in range(first + 1, stop):  # noqa: SIM110 (numba compiles no generator)
        if indices[k] == indices[k - 1]:
            return False
    return True


@jit_strict
def _append_row(batch, line, labels_end, features_end, ambiguous_end):
    row = batch.used[ROWS]
    batch.row_lines[row] = line
    batch.label_counts[row] = labels_end - batch.used[LABELS]
    batch.feature_counts[row] = features_end - batch.used[FEATURES]
    batch.used[ROWS] = row + 1
    batch.used[LABELS] = labels_end
    batch.used[FEATURES] = features_end
    batch.used[AMBIGUOUS] = ambiguous_end


@make_cached_jit(**STRICT)
def parse_lines(buffer, start, limits, batch):
    """Parse whole lines from `start` on until the buffer ends or the batch is full.

    Parameters
    ----------
    buffer : ndarray of uint8
        Must end with a newline.
    start : int
        Beginning of a line.
    limits : RowLimits
    batch : LineBatch
        Overwritten; `batch.used` holds the filled entries. A rejected row has an entry in `bad`.

    Returns
    -------
    int
        Start of the next call; `start` itself when not even one line fits into the batch.
    """
    used = batch.used
    used[:] = 0
    i = start
    while i < len(buffer) and used[ROWS] < len(batch.row_lines) and used[BAD] < len(batch.bad):
        ambiguous_end, features_end = used[AMBIGUOUS], used[FEATURES]
        reason, position, labels_end = _parse_labels(buffer, i, limits, batch)
        if reason == ACCEPTED:
            reason, position, features_end, ambiguous_end = _parse_features(buffer, position, limits, batch)
        if reason == FULL:
            break
        if reason != ACCEPTED:
            used[BAD] += 1
            last = batch.bad[used[BAD] - 1]
            last[0], last[1], last[2] = used[LINES], reason, position
        elif limits.blank_rows or not _is_empty(buffer, i):
            _append_row(batch, used[LINES], labels_end, features_end, ambiguous_end)
        while buffer[position] != _NEWLINE:
            position += 1
        used[LINES] += 1
        i = position + 1
    return i
