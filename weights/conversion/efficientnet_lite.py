"""Graph of EfficientNet-Lite0 in ONNX, with the weights of a torch state in half precision.

Each batch normalisation is folded into its convolution: a filter w with scale g, shift b, mean m and variance v becomes
w g / sqrt(v + EPSILON), with the bias b - m g / sqrt(v + EPSILON). Weights are stored as float16 and cast to float32 by
the graph, so that all sums are those of float32; a runtime casts them once, when it opens the file.

Source: EfficientNet (Tan and Le 2019) without squeeze-and-excitation, with ReLU6 in place of swish.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

State = Mapping[str, NDArray[Any]]

EPSILON = 1e-3
"""Term of batch normalisation beside the variance."""

SIDE = 224
FEATURES, CLASSES = "features", "classes"
"""Outputs: the mean over places before the classifier (1,280), and the logits of 1,000 classes."""

_OPSET, _IR_VERSION = 18, 8


class Stage(NamedTuple):
    """Blocks of one width; the first of them has the stride."""

    n_blocks: int
    kernel: int
    stride: int


STAGES = (
    Stage(1, 3, 1),
    Stage(2, 3, 2),
    Stage(2, 5, 2),
    Stage(3, 3, 2),
    Stage(3, 5, 1),
    Stage(4, 5, 2),
    Stage(1, 3, 1),
)


class Convolution(NamedTuple):
    """Convolution with the bias of its batch normalisation."""

    weight: NDArray[Any]  # (channels, channels of the input / groups, kernel, kernel)
    bias: NDArray[Any]  # (channels,)


def fold_normalisation(state: State, conv: str, norm: str) -> Convolution:
    """Fold the batch normalisation `norm` into the convolution `conv`, in double precision."""
    weight, gamma, beta, mean, variance = (
        state[name].astype(np.float64)
        for name in (
            f"{conv}.weight",
            *(f"{norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")),
        )
    )
    scale = gamma / np.sqrt(variance + EPSILON)
    return Convolution(weight * scale[:, None, None, None], beta - mean * scale)


class GraphBuilder:
    """Nodes and stored tensors of a graph, in order; every method returns the name of its result.

    Parameters
    ----------
    dtype : numpy type
        Type of stored weights; results are float32.
    """

    def __init__(self, dtype: type[np.floating[Any]] = np.float16) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._dtype = dtype

    def add_node(self, op: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Add a node with one output, which has the name of the node."""
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def add_weight(self, array: NDArray[Any], name: str) -> str:
        """Store an array, and cast it to float32 where it is not stored so."""
        with np.errstate(over="ignore"):
            stored = array.astype(self._dtype)
        if not np.isfinite(stored).all():
            raise ValueError(f"{name} does not fit {stored.dtype}")
        if self._dtype is np.float32:
            self.tensors.append(numpy_helper.from_array(stored, name))
            return name
        self.tensors.append(numpy_helper.from_array(stored, f"{name}.stored"))
        return self.add_node("Cast", [f"{name}.stored"], name, to=TensorProto.FLOAT)

    def add_constant(self, value: float, name: str) -> str:
        """Store a number in float32."""
        self.tensors.append(numpy_helper.from_array(np.array(value, np.float32), name))
        return name

    def add_convolution(self, source: str, convolution: Convolution, name: str, *, stride: int, depthwise: bool) -> str:
        """Add a convolution with the padding of TensorFlow, the odd pixel at the end."""
        weight = self.add_weight(convolution.weight, f"{name}.weight")
        self.tensors.append(numpy_helper.from_array(convolution.bias.astype(np.float32), f"{name}.bias"))
        kernel = list(convolution.weight.shape[2:])
        groups = len(convolution.weight) if depthwise else 1
        options = {"kernel_shape": kernel, "strides": [stride, stride], "group": groups, "auto_pad": "SAME_UPPER"}
        return self.add_node("Conv", [source, weight, f"{name}.bias"], name, **options)

    def add_relu6(self, source: str) -> str:
        """Add a cut to [0, 6]; the bounds are stored as "zero" and "six"."""
        return self.add_node("Clip", [source, "zero", "six"], f"{source}.relu6")


def build_model(state: State, dtype: type[np.floating[Any]] = np.float16) -> onnx.ModelProto:
    """Build the network of a state.

    Parameters
    ----------
    state : mapping of str to ndarray
        Tensors by the names of efficientnet_lite_pytorch.
    dtype : numpy type
        Type of stored weights.

    Returns
    -------
    ModelProto
        Input "pictures" (batch, 3, 224, 224), red, green and blue as (byte - 127) / 128; outputs `FEATURES` and
        `CLASSES`.
    """
    builder = GraphBuilder(dtype)
    builder.add_constant(0, "zero")
    builder.add_constant(6, "six")
    stem = fold_normalisation(state, "_conv_stem", "_bn0")
    last = builder.add_relu6(builder.add_convolution("pictures", stem, "stem", stride=2, depthwise=False))
    for name, kernel, stride in list_blocks():
        last = _add_block(builder, state, last, name, kernel, stride)
    head = fold_normalisation(state, "_conv_head", "_bn1")
    places = builder.add_relu6(builder.add_convolution(last, head, "head", stride=1, depthwise=False))
    mean = builder.add_node("GlobalAveragePool", [places], "mean")
    features = builder.add_node("Flatten", [mean], FEATURES)
    weight = builder.add_weight(state["_fc.weight"], "classifier.weight")
    builder.tensors.append(numpy_helper.from_array(state["_fc.bias"].astype(np.float32), "classifier.bias"))
    builder.add_node("Gemm", [features, weight, "classifier.bias"], CLASSES, transB=1)
    n_classes, n_features = state["_fc.weight"].shape
    graph = helper.make_graph(
        builder.nodes,
        "EfficientNet-Lite0",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])],
        [
            helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, ["batch", n_features]),
            helper.make_tensor_value_info(CLASSES, TensorProto.FLOAT, ["batch", n_classes]),
        ],
        builder.tensors,
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="wsabie-lite0")


def list_blocks() -> Iterator[tuple[str, int, int]]:
    """Yield name, kernel and stride of each of the 16 blocks.

    Examples
    --------
    >>> list(list_blocks())[:3]
    [('_blocks.0', 3, 1), ('_blocks.1', 3, 2), ('_blocks.2', 3, 1)]
    """
    strides = [(stage.kernel, stage.stride if i == 0 else 1) for stage in STAGES for i in range(stage.n_blocks)]
    for number, (kernel, stride) in enumerate(strides):
        yield f"_blocks.{number}", kernel, stride


def _add_block(builder: GraphBuilder, state: State, source: str, name: str, kernel: int, stride: int) -> str:
    """Add an inverted residual block: expansion (where it has one), depthwise convolution, projection."""
    label, last = name.strip("_"), source
    if f"{name}._expand_conv.weight" in state:
        expansion = fold_normalisation(state, f"{name}._expand_conv", f"{name}._bn0")
        last = builder.add_convolution(last, expansion, f"{label}.expand", stride=1, depthwise=False)
        last = builder.add_relu6(last)
    depthwise = fold_normalisation(state, f"{name}._depthwise_conv", f"{name}._bn1")
    if depthwise.weight.shape[2:] != (kernel, kernel):
        raise ValueError(f"{name} has the kernel {depthwise.weight.shape[2:]} in place of {kernel}")
    last = builder.add_convolution(last, depthwise, f"{label}.depthwise", stride=stride, depthwise=True)
    projection = fold_normalisation(state, f"{name}._project_conv", f"{name}._bn2")
    last = builder.add_relu6(last)
    last = builder.add_convolution(last, projection, f"{label}.project", stride=1, depthwise=False)
    n_inputs = state.get(f"{name}._expand_conv.weight", state[f"{name}._depthwise_conv.weight"].swapaxes(0, 1)).shape[1]
    if stride == 1 and n_inputs == len(projection.bias):
        return builder.add_node("Add", [last, source], f"{label}.sum")
    return last
