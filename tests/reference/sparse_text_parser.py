"""The slow twin of `parse`: one line at a time, in plain Python, as the written specification."""

import re
from typing import NamedTuple

import numpy as np

from wsabie.kernels.text.sparse_text_parser import (
    ACCEPTED,
    BAD_FEATURE,
    BAD_LABEL,
    FEATURE_RANGE,
    LABEL_RANGE,
    LARGEST,
    NEGATIVE,
    NOT_FINITE,
    REPEATED,
    RowLimits,
)

_LABELS = re.compile(rb"(?![ \t\r])[^ \t\r,]*([ \t\r]*,[ \t\r]*[^ \t\r,]*)*")
_LABEL = re.compile(rb"[+-]?[0-9]+(\.0*)?")
_FEATURE = re.compile(rb"([0-9]+):(.*)", re.DOTALL)
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(rb"[+-]?(nan|inf)", re.IGNORECASE)
_TINY = 2.0**-50


class ParsedLine(NamedTuple):
    """One parsed line; `reason` is ACCEPTED for a row, None for a line that is not a row."""

    reason: int | None
    labels: list[int]
    features: dict[int, np.float32]


def parse_line(line: bytes, limits: RowLimits) -> ParsedLine:
    """Parse one line without its newline.

    Examples
    --------
    >>> parse_line(b"3,1 7:.5 2:1", RowLimits(8, 4, True, False)).labels
    [3, 1]
    """
    line = line.partition(b"#")[0]
    if not line.strip(b" \t\r") and not limits.blank_rows:
        return ParsedLine(None, [], {})
    opening = _LABELS.match(line)
    first = opening.group() if opening and not re.match(rb"[0-9]+:", opening.group()) else b""
    reason, labels = _parse_labels(first, limits)
    features: dict[int, np.float32] = {}
    repeated = False
    for token in re.split(rb"[ \t\r]+", line[len(first) :].strip(b" \t\r")) if reason == ACCEPTED else []:
        if not token:
            continue
        reason, number, value = _parse_feature(token, limits)
        if reason != ACCEPTED:
            return ParsedLine(reason, [], {})
        if value != 0:
            repeated = repeated or number in features
            features[number] = value
    if repeated:
        return ParsedLine(REPEATED, [], {})
    return ParsedLine(reason, labels, features) if reason == ACCEPTED else ParsedLine(reason, [], {})


def _parse_labels(text: bytes, limits: RowLimits) -> tuple[int, list[int]]:
    labels = []
    for token in re.split(rb"[ \t\r]*,[ \t\r]*", text) if text else []:
        if not _LABEL.fullmatch(token) or not _fits(token.lstrip(b"+-").partition(b".")[0]):
            return BAD_LABEL, []
        token = token.partition(b".")[0]
        if limits.n_labels >= 0 and token.startswith(b"-"):
            return BAD_LABEL, []
        if limits.n_labels >= 0 and int(token) >= limits.n_labels:
            return LABEL_RANGE, []
        labels.append(int(token))
    return ACCEPTED, labels


def _parse_feature(token: bytes, limits: RowLimits) -> tuple[int, int, np.float32]:
    pair = _FEATURE.fullmatch(token)
    nothing = np.float32(0)
    if not pair or not _fits(pair[1]):
        return BAD_FEATURE, 0, nothing
    number = int(pair[1])
    if not _NUMBER.fullmatch(pair[2]):
        return (NOT_FINITE if _NO_NUMBER.match(pair[2]) else BAD_FEATURE), 0, nothing
    if _overflows(float(pair[2])):
        return NOT_FINITE, 0, nothing
    if number >= limits.n_features:
        return FEATURE_RANGE, 0, nothing
    value = np.float32(float(pair[2]))
    if limits.counts and value < 0:
        return NEGATIVE, 0, nothing
    return ACCEPTED, number, value


def _fits(digits: bytes) -> bool:
    digits = digits.lstrip(b"0") or b"0"
    return len(digits) <= 10 and int(digits) <= LARGEST


def _overflows(value: float) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.float32(abs(value) * (1 + _TINY))))
