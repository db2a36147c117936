"""Whether an ONNX file names other files that its weights are read from.

A runtime that meets such a name opens the file. So the message is walked before any runtime sees it, as protobuf writes
it (https://protobuf.dev/programming-guides/encoding) and onnx.proto numbers its fields: every tensor, wherever the
format has one, says by `data_location` where its numbers are.
"""

from collections.abc import Iterator
from typing import NamedTuple

Content = bytes | memoryview

_HOLDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""Which fields of a message hold messages with tensors in them."""

_DATA_LOCATION = 14  # of a tensor; 0 is the file itself
_VARINT, _EIGHT_BYTES, _MESSAGE, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def names_other_files(content: Content) -> bool:
    """Whether a tensor of an ONNX model is said to be kept outside it.

    Raises
    ------
    ValueError
        The bytes are no message, or one with groups, which ONNX has not.

    Examples
    --------
    >>> names_other_files(bytes([0x3A, 4, 0x2A, 2, 0x70, 0])), names_other_files(bytes([0x3A, 4, 0x2A, 2, 0x70, 1]))
    (False, True)
    """
    left = [("model", 0, len(content))]
    while left:  # a list, and no recursion, so that depth does no harm
        kind, at, end = left.pop()
        for one in iterate_fields(content, at, end):
            if one.is_message and one.number in _HOLDS[kind]:
                left.append((_HOLDS[kind][one.number], one.begin, one.end))
            elif not one.is_message and (kind, one.number) == ("tensor", _DATA_LOCATION) and one.value:
                return True
    return False


class Field(NamedTuple):
    """One field of a message: a number (0 where its width is fixed), or the bytes from `begin` to `end`."""

    number: int
    is_message: bool
    is_varint: bool
    value: int
    begin: int
    end: int


def iterate_fields(content: Content, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message that lies from `at` to `end`.

    Raises
    ------
    ValueError
        As `names_other_files`.
    """
    while at < end:
        tag, at = read_varint(content, at, end)
        number, wire = (tag & 0xFFFFFFFF) >> 3, tag & 7  # the runtime's parser keeps 32 bits of a tag
        value, stop = _value(content, at, end, wire)
        if number == 0 or stop > end:
            raise ValueError("no protobuf message")
        is_message, is_varint = wire == _MESSAGE, wire == _VARINT
        yield Field(number, is_message, is_varint, value if is_varint else 0, stop - value if is_message else at, stop)
        at = stop


def _value(content: Content, at: int, end: int, wire: int) -> tuple[int, int]:
    """The number, or the length, that follows a tag; and where the field stops."""
    if wire in _FIXED:
        return 0, at + _FIXED[wire]
    if wire not in (_VARINT, _MESSAGE):
        raise ValueError("no protobuf message")
    value, at = read_varint(content, at, end)
    return value, at + value if wire == _MESSAGE else at


def read_varint(content: Content, at: int, end: int) -> tuple[int, int]:
    """Return a number of variable length and where it ends."""
    value = shift = 0
    while at < end and shift < 64:
        value |= (content[at] & 0x7F) << shift
        at += 1
        if content[at - 1] < 0x80:
            return value, at
        shift += 7
    raise ValueError("no protobuf message")
