"""Check of the graph of an ONNX file before a runtime opens it.

A network whose shapes follow from the shape of its input alone takes the same memory and about the same time for every
picture, so that one trial is enough. So control flow is refused, every operator must be known, and no size may depend
on the values of a picture.

The checker of the package onnx asks if a network is valid, not if it ends (`docs/decisions/input-limits.md`).
"""

from collections import defaultdict
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
_WIRE_SIZES = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def has_external_weights(content: Content) -> bool:
    """Return True if a tensor of an ONNX model refers to data outside it.

    Raises
    ------
    ValueError
        The bytes are not a message, or one with groups, which ONNX does not use.

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
        value, stop = _read_value(content, begin, end, wire)
        if number == 0 or stop > end:
            raise ValueError("no protobuf message")
        is_message, is_varint = wire == _MESSAGE, wire == _VARINT
        yield MessageField(
            number, is_message, is_varint, value if is_varint else 0, stop - value if is_message else begin, stop
        )
        begin = stop


def _read_value(content: Content, begin: int, end: int, wire: int) -> tuple[int, int]:
    """Return the number, or the length, that follows a tag, and the end of the field."""
    if wire in _WIRE_SIZES:
        return 0, begin + _WIRE_SIZES[wire]
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


_MAX_NODES = 100_000
_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_NODE, _INITIALIZER, _SPARSE, _INPUT = 1, 5, 15, 11
_NODE_INPUT, _NODE_OUTPUT, _OP, _ATTRIBUTE, _DOMAIN = 1, 2, 4, 5, 7
_NODE_TEXTS = (_NODE_INPUT, _NODE_OUTPUT, _OP, _DOMAIN)
_TENSOR, _TENSORS, _GRAPHS, _SPARSES, _STRINGS = 5, 10, (6, 11), (22, 23), (4, 9)
_DIMS, _STRING_DATA, _NAME = 1, 6, 8
_DATA = (4, 5, 6, 7, 9, 10, 11)
_MAX_ELEMENTS_PER_BYTE = 8  # elements of the smallest types

_MAX_STRING_BYTES = 255  # bytes; a picture that selects among strings would determine how much memory they take

_STANDARD_DOMAINS = (b"", b"ai.onnx")
_SHAPES = ("Shape", "Size")  # do not depend on values
_RANDOM = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)
"""Operators whose results differ from run to run, as the values of pictures do."""

_SIZES: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,), "Attention": (6,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2),
    "Compress": (1,), "ConstantOfShape": (0,), "DFT": (1, 2), "Expand": (1,), "HammingWindow": (0,), "HannWindow": (0,),
    "MaxRoiPool": (1,), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1), "NonMaxSuppression": (0, 1, 2, 3, 4),
    "NonZero": (0,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2), "ReduceL1": (1,), "ReduceL2": (1,),
    "ReduceLogSum": (1,), "ReduceLogSumExp": (1,), "ReduceMax": (1,), "ReduceMean": (1,), "ReduceMin": (1,),
    "ReduceProd": (1,), "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,), "Resize": (1, 2, 3),
    "RoiAlign": (1, 2), "STFT": (1, 3), "SequenceAt": (1,), "SequenceErase": (1,), "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,), "Squeeze": (1,), "Tile": (1, 2), "TopK": (1,),
    "Unique": (0,), "Unsqueeze": (1,), "Upsample": (1,),
    "com.microsoft.Attention": (6,), "com.microsoft.ExpandDims": (1,), "com.microsoft.MultiHeadAttention": (8,),
    "com.microsoft.Pad": (1,), "com.microsoft.Range": (0, 1, 2), "com.microsoft.Unique": (0,),
}  # fmt: skip
"""Inputs, by operator, that the size of the result or the time depends on."""

_STANDARD = """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization BitShift BitwiseAnd
    BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Concat ConcatFromSequence Constant Conv ConvInteger
    ConvTranspose Cos Cosh CumProd CumSum DeformConv DepthToSpace DequantizeLinear Det Div DynamicQuantizeLinear Einsum
    Elu Equal Erf Exp EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool
    GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax
    LpNormalization LpPool MatMul MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not Or
    PRelu Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN Reciprocal Relu ReverseSequence
    RotaryEmbedding Round Scatter ScatterElements ScatterND Selu SequenceConstruct SequenceEmpty SequenceLength Shape
    Shrink Sigmoid Sign SimplifiedLayerNormalization Sin Sinh Size Softmax Softplus Softsign SpaceToDepth Sqrt Sub Sum
    SwiGLU Swish Tan Tanh TensorScatter ThresholdedRelu Transpose Trilu Where Xor
"""
_ML = "ArrayFeatureExtractor Normalizer Scaler ZipMap"
_MICROSOFT = """
    BiasAdd BiasGelu BiasSoftmax BiasSplitGelu ComplexMul ComplexMulConj DequantizeLinear DynamicQuantizeLSTM
    DynamicQuantizeMatMul FastGelu FusedConv FusedGemm FusedMatMul FusedMatMulActivation GatherBlockQuantized GatherND
    Gelu GemmFastGelu GridSample GroupNorm Inverse IsAllFinite Irfft MatMulBnb4 MatMulInteger16 MatMulIntegerToFloat
    MatMulNBits MaxpoolWithMask MoE MulInteger NhwcConv NhwcFusedConv NhwcMaxPool QAttention QGemm QLinearAdd
    QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearReduceMean
    QLinearSigmoid QLinearSoftmax QLinearWhere QMoE QuantizeLinear QuickGelu ReduceSumInteger Rfft RotaryEmbedding
    SkipGroupNorm SkipLayerNormalization SkipSimplifiedLayerNormalization TransposeMatMul Trilu UnfoldTensor
"""
_NCHWC = "AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput Upsample"
_FIXED = frozenset(
    prefix + op
    for prefix, ops in (
        ("", _STANDARD), ("ai.onnx.ml.", _ML), ("com.microsoft.", _MICROSOFT), ("com.microsoft.nchwc.", _NCHWC)
    )
    for op in ops.split()
)  # fmt: skip
"""Operators whose result sizes follow from the sizes and attributes of their inputs alone."""


class _Node(NamedTuple):
    op: str
    inputs: list[bytes]
    outputs: list[bytes]


def check_graph(content: Content) -> None:
    """Raise ValueError, with a reason, for a network that cannot be an image encoder.

    Parameters
    ----------
    content : bytes or memoryview
        Content of an ONNX file.

    Raises
    ------
    ValueError
        There is control flow, a function, a sparse tensor, a second graph or an operator that is not known in it, a
        tensor is larger than its data, or a size depends on the values of a picture; or the bytes are not a message.

    Examples
    --------
    >>> check_graph(bytes([0xCA, 1, 0]))
    Traceback (most recent call last):
    ...
    ValueError: it has functions of its own
    """
    has_graph = False
    for field in _iterate_messages(content, 0, len(content)):
        if field.number == _MODEL_FUNCTION:
            raise ValueError("it has functions of its own")
        if field.number == _MODEL_GRAPH:
            if has_graph:
                raise ValueError("it has a second graph")  # the runtime would merge them
            has_graph = True
            _check_nodes(content, field)


def _check_nodes(content: Content, graph: MessageField) -> None:
    inputs: set[bytes] = set()
    stored: set[bytes] = set()
    nodes: list[_Node] = []
    for field in _iterate_messages(content, graph.begin, graph.end):
        if field.number == _SPARSE:
            raise ValueError("it has sparse tensors")
        if field.number == _NODE:
            nodes.append(_read_node(content, field))
            if len(nodes) > _MAX_NODES:
                raise ValueError(f"it has more than {_MAX_NODES:,} nodes")
        elif field.number == _INITIALIZER:
            stored.add(_check_tensor(content, field))
        elif field.number == _INPUT:
            fields = _iterate_messages(content, field.begin, field.end)
            inputs.update(_read_text(content, inner) for inner in fields if inner.number == 1)
    _check_operators(nodes, inputs - stored)


def _check_operators(nodes: list[_Node], pictures: set[bytes]) -> None:
    """Check that every operator is known and that no size depends on values."""
    variable = _find_variable(nodes, pictures)
    for node in nodes:
        if node.op not in _SIZES and node.op not in _FIXED and node.op not in _RANDOM:
            raise ValueError(f"it has the operator {node.op[:60]!r}, which is not known from image encoders")
        for position in _SIZES.get(node.op, ()):
            if position < len(node.inputs) and node.inputs[position] in variable:
                raise ValueError(f"{node.op} makes something whose size depends on the colours of a picture")


def _find_variable(nodes: list[_Node], pictures: set[bytes]) -> set[bytes]:
    """Return the names of all values that pictures or chance decide; nodes may stand in any order."""
    readers: defaultdict[bytes, list[int]] = defaultdict(list)
    for i, node in enumerate(nodes):
        for name in node.inputs:
            readers[name].append(i)
    names = [*pictures, *(name for node in nodes if node.op in _RANDOM for name in node.outputs)]
    variable: set[bytes] = set()
    reached: set[int] = set()
    while names:
        name = names.pop()
        if not name or name in variable:  # no name: an input or output that is left out
            continue
        variable.add(name)
        for i in readers.get(name, ()):
            if i not in reached and nodes[i].op not in _SHAPES:
                reached.add(i)
                names += nodes[i].outputs
    return variable


def _read_node(content: Content, node: MessageField) -> _Node:
    fields: defaultdict[int, list[MessageField]] = defaultdict(list)
    for field in _iterate_messages(content, node.begin, node.end):
        fields[field.number].append(field)
    texts = {number: [_read_text(content, field) for field in fields[number]] for number in _NODE_TEXTS}
    op, domain = (texts[number][-1] if texts[number] else b"" for number in (_OP, _DOMAIN))
    name = (op if domain in _STANDARD_DOMAINS else domain + b"." + op).decode("utf-8", "replace")
    for attribute in fields[_ATTRIBUTE]:
        _check_attribute(content, attribute, name)
    return _Node(name, texts[_NODE_INPUT], texts[_NODE_OUTPUT])


def _check_attribute(content: Content, attribute: MessageField, op: str) -> None:
    has_tensor = False
    for field in _iterate_messages(content, attribute.begin, attribute.end):
        if field.number in _GRAPHS:
            raise ValueError(f"it has control flow ({op[:60] or 'a node with a graph of its own'})")
        if field.number in _SPARSES:
            raise ValueError("it has sparse tensors")
        if field.number == _TENSOR and has_tensor:
            raise ValueError("it has an attribute of two tensors")  # the runtime would merge them
        has_tensor |= field.number == _TENSOR
        if field.number in (_TENSOR, _TENSORS):
            _check_tensor(content, field)
        if op == "Constant" and field.number in _STRINGS:
            _check_string(field)


def _check_tensor(content: Content, tensor: MessageField) -> bytes:
    """Return the name of a tensor whose data are as long as its shape says."""
    elements, n_bytes, name = 1, 0, b""
    for field in iterate_fields(content, tensor.begin, tensor.end):
        if field.number == _DIMS:
            for size in _iterate_numbers(content, field):
                if size >= 1 << 63:
                    raise ValueError("it has a tensor with a size below 0")
                elements *= size
        elif field.number in _DATA:
            n_bytes += field.end - field.begin
            if field.number == _STRING_DATA and field.is_message:
                _check_string(field)
        elif field.number == _NAME and field.is_message:
            name = _read_text(content, field)
    if elements > _MAX_ELEMENTS_PER_BYTE * n_bytes:
        raise ValueError(
            f"its tensor {name[:60].decode('utf-8', 'replace')!r} has {n_bytes:,} bytes for {elements:,} numbers"
        )
    return name


def _check_string(field: MessageField) -> None:
    if field.end - field.begin > _MAX_STRING_BYTES:
        raise ValueError(f"it has a string of more than {_MAX_STRING_BYTES} bytes")


def _iterate_numbers(content: Content, field: MessageField) -> Iterator[int]:
    """Yield a number, or several packed ones."""
    if field.is_varint:
        yield field.value
    position = field.begin
    while field.is_message and position < field.end:
        value, position = read_varint(content, position, field.end)
        yield value


def _iterate_messages(content: Content, begin: int, end: int) -> Iterator[MessageField]:
    """Yield the fields that are messages or texts; the runtime ignores numbers in their place, too."""
    return (field for field in iterate_fields(content, begin, end) if field.is_message)


def _read_text(content: Content, field: MessageField) -> bytes:
    return bytes(content[field.begin : field.end])
