"""The graph of an ONNX file, looked through before a runtime opens it.

A network whose shapes follow from the shape of its input alone takes the same memory and about the same time for every
picture, so that what it does with the first one holds for all. So there is no control flow, and no size may depend on
the values of a picture.
"""

from collections.abc import Iterator
from typing import NamedTuple

from wsabie.features.onnx_message import Field, iterate_fields, read_varint

_MOST_NODES = 100_000
_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_NODE, _INITIALIZER, _SPARSE, _INPUT = 1, 5, 15, 11
_NODE_INPUT, _NODE_OUTPUT, _OP, _ATTRIBUTE = 1, 2, 4, 5
_TENSOR, _TENSORS, _GRAPHS, _SPARSES = 5, 10, (6, 11), (22, 23)
_DIMS, _NAME = 1, 8
_DATA = (4, 5, 6, 7, 9, 10, 11)
_MOST_IN_A_BYTE = 8  # elements of the smallest types

_SHAPES = ("Shape", "Size")  # say nothing of values
_SIZES: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "Compress": (1,),
    "ConstantOfShape": (0,), "DFT": (1,), "Expand": (1,), "HammingWindow": (0,), "HannWindow": (0,),
    "MaxUnpool": (2,), "MelWeightMatrix": (0, 1), "NonMaxSuppression": (0, 1, 2, 3, 4), "NonZero": (0,),
    "OneHot": (1,), "Pad": (1,), "Range": (0, 1, 2), "Reshape": (1,), "Resize": (2, 3), "STFT": (1, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1, 2), "TopK": (1,), "Unique": (0,),
    "Unsqueeze": (1,), "Upsample": (1,),
}  # fmt: skip
"""Inputs, by operator, that the size of the result depends on."""


class _Node(NamedTuple):
    op: str
    inputs: list[str]
    outputs: list[str]


def check_graph(content: bytes) -> None:
    """Raise ValueError, with a phrase that says why, for a network that no image encoder is.

    Parameters
    ----------
    content : bytes
        Of an ONNX file.

    Raises
    ------
    ValueError
        There is control flow, a function or a sparse tensor in it, a tensor is larger than its data, or a size depends
        on the values of a picture; or the bytes are no message.

    Examples
    --------
    >>> check_graph(bytes([0xCA, 1, 0]))
    Traceback (most recent call last):
    ...
    ValueError: it has functions of its own
    """
    for field in iterate_fields(content, 0, len(content)):
        if field.number == _MODEL_FUNCTION:
            raise ValueError("it has functions of its own")
        if field.number == _MODEL_GRAPH and field.is_message:
            _check_nodes(content, field)


def _check_nodes(content: bytes, graph: Field) -> None:
    inputs: set[str] = set()
    stored: set[str] = set()
    nodes: list[_Node] = []
    for field in iterate_fields(content, graph.begin, graph.end):
        if field.number == _SPARSE:
            raise ValueError("it has sparse tensors")
        if field.number == _NODE:
            nodes.append(_read_node(content, field))
            if len(nodes) > _MOST_NODES:
                raise ValueError(f"it has more than {_MOST_NODES:,} nodes")
        elif field.number == _INITIALIZER:
            stored.add(_check_tensor(content, field))
        elif field.number == _INPUT:
            inputs.update(_texts(content, field, 1))
    _check_sizes(nodes, inputs - stored)


def _check_sizes(nodes: list[_Node], pictures: set[str]) -> None:
    """No size may depend on values: `pictures` grows by what is computed from them."""
    for node in nodes:
        for place in _SIZES.get(node.op, ()):
            if place < len(node.inputs) and node.inputs[place] in pictures:
                raise ValueError(f"{node.op} makes something whose size depends on the colours of a picture")
        if node.op not in _SHAPES and not pictures.isdisjoint(node.inputs):
            pictures.update(node.outputs)


def _read_node(content: bytes, node: Field) -> _Node:
    op, attributes = "", []
    inputs: list[str] = []
    outputs: list[str] = []
    for field in iterate_fields(content, node.begin, node.end):
        if field.number == _ATTRIBUTE:
            attributes.append(field)
        elif field.number in (_NODE_INPUT, _NODE_OUTPUT, _OP):
            text = content[field.begin : field.end].decode("utf-8", "replace")
            if field.number == _OP:
                op = text
            else:
                (inputs if field.number == _NODE_INPUT else outputs).append(text)
    for attribute in attributes:
        for field in iterate_fields(content, attribute.begin, attribute.end):
            if field.number in _GRAPHS:
                raise ValueError(f"it has control flow ({op or 'a node with a graph of its own'})")
            if field.number in _SPARSES:
                raise ValueError("it has sparse tensors")
            if field.number in (_TENSOR, _TENSORS) and field.is_message:
                _check_tensor(content, field)
    return _Node(op, inputs, outputs)


def _check_tensor(content: bytes, tensor: Field) -> str:
    """Return the name of a tensor whose data are as long as its shape says."""
    elements, n_bytes, name = 1, 0, ""
    for field in iterate_fields(content, tensor.begin, tensor.end):
        if field.number == _DIMS:
            for size in _numbers(content, field):
                if size >= 1 << 63:
                    raise ValueError("it has a tensor with a size below 0")
                elements *= size
        elif field.number in _DATA:
            n_bytes += field.end - field.begin
        elif field.number == _NAME:
            name = content[field.begin : field.end].decode("utf-8", "replace")
    if elements > _MOST_IN_A_BYTE * n_bytes:
        raise ValueError(f"its tensor {name[:60]!r} has {n_bytes:,} bytes for {elements:,} numbers")
    return name


def _numbers(content: bytes, field: Field) -> Iterator[int]:
    """A number, or several that are packed."""
    if not field.is_message:
        yield field.value
        return
    at = field.begin
    while at < field.end:
        value, at = read_varint(content, at, field.end)
        yield value


def _texts(content: bytes, message: Field, number: int) -> Iterator[str]:
    for field in iterate_fields(content, message.begin, message.end):
        if field.number == number:
            yield content[field.begin : field.end].decode("utf-8", "replace")
