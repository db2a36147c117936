"""Fields of an ONNX file, and the check for weights in other files.

A runtime opens every file that a model names. So this module reads the message before any runtime does, in the encoding
of protobuf (https://protobuf.dev/programming-guides/encoding) with the field numbers of onnx.proto. Every tensor states
in `data_location` where its numbers are.
"""

from collections.abc import Iterator
from typing import NamedTuple

Content = bytes | memoryview

_TENSOR_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""Fields of each message that hold messages with tensors."""

_DATA_LOCATION = 14  # of a tensor; 0 is the file itself
_VARINT, _EIGHT_BYTES, _MESSAGE, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def has_external_weights(content: Content) -> bool:
    """Return True if a tensor of an ONNX model refers to data outside it.

    Raises
    ------
    ValueError
        The bytes are no message, or one with groups, which ONNX does not use.

    Examples
    --------
    >>> (
    ...     has_external_weights(bytes([0x3A, 4, 0x2A, 2, 0x70, 0])),
    ...     has_external_weights(bytes([0x3A, 4, 0x2A, 2, 0x70, 1])),
    ... )
    (False, True)
    """
    stack = [("model", 0, len(content))]
    while stack:  # a list instead of recursion, so that depth does no harm
        kind, begin, end = stack.pop()
        for field in iterate_fields(content, begin, end):
            if field.is_message and field.number in _TENSOR_FIELDS[kind]:
                stack.append((_TENSOR_FIELDS[kind][field.number], field.begin, field.end))
            elif not field.is_message and (kind, field.number) == ("tensor", _DATA_LOCATION) and field.value:
                return True
    return False


class MessageField(NamedTuple):
    """Field of a message: a number (0 where its width is fixed), or the bytes from `begin` to `end`."""

    number: int
    is_message: bool
    is_varint: bool
    value: int
    begin: int
    end: int


def iterate_fields(content: Content, begin: int, end: int) -> Iterator[MessageField]:
    """Yield the fields of the message that lies from `begin` to `end`.

    Raises
    ------
    ValueError
        As `has_external_weights`.
    """
    while begin < end:
        tag, begin = read_varint(content, begin, end)
        number, wire = (tag & 0xFFFFFFFF) >> 3, tag & 7  # the runtime's parser keeps 32 bits of a tag
        value, stop = _value(content, begin, end, wire)
        if number == 0 or stop > end:
            raise ValueError("no protobuf message")
        is_message, is_varint = wire == _MESSAGE, wire == _VARINT
        yield MessageField(
            number, is_message, is_varint, value if is_varint else 0, stop - value if is_message else begin, stop
        )
        begin = stop


def _value(content: Content, begin: int, end: int, wire: int) -> tuple[int, int]:
    """Return the number, or the length, that follows a tag, and the end of the field."""
    if wire in _FIXED:
        return 0, begin + _FIXED[wire]
    if wire not in (_VARINT, _MESSAGE):
        raise ValueError("no protobuf message")
    value, begin = read_varint(content, begin, end)
    return value, begin + value if wire == _MESSAGE else begin


def read_varint(content: Content, position: int, end: int) -> tuple[int, int]:
    """Return a number of variable length and where it ends."""
    value = shift = 0
    while position < end and shift < 64:
        value |= (content[position] & 0x7F) << shift
        position += 1
        if content[position - 1] < 0x80:
            return value, position
        shift += 7
    raise ValueError("no protobuf message")
