"""Resource limits of ONNX networks, checked before they run or in a separate process."""

from pathlib import Path

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.core.memory_budget import ITEM_MEMORY
from wsabie.features.encoders import onnx_network
from wsabie.features.encoders.onnx_graph_check import check_graph
from wsabie.features.encoders.onnx_network import OnnxContent, OnnxNetwork, TrialCost, crop_centre
from wsabie.features.extractors.onnx_encoders import OnnxEncoder
from wsabie.io.records import ItemList

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def write_network(path, nodes, weights=(), shape=(1, 3, 4, 4), sparse=()):
    """Write a network whose input is "picture" and whose output is "out"."""
    from onnx import TensorProto, helper, numpy_helper

    picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, list(shape))
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights]
    graph = helper.make_graph(nodes, "encoder", [picture], [out], stored, sparse_initializer=list(sparse))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def node(op, inputs, outputs=("out",), **attributes):
    return onnx.helper.make_node(op, list(inputs), list(outputs), **attributes)


def fit_network(path, **options):
    return OnnxEncoder(path, **options).fit(ItemList(path.parent, []))


def make_body():
    from onnx import TensorProto, helper

    flags = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go", "go on")]
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    return helper.make_graph([helper.make_node("Identity", ["go"], ["go on"])], "body", [count, flags[0]], [flags[1]])


def test_control_flow_is_refused(tmp_path):
    loop = node("Loop", ["steps", ""], (), body=make_body())
    last = node("Flatten", ["picture"])
    path = write_network(tmp_path / "loop.onnx", [loop, last], [("steps", np.int64(2**62))])
    with pytest.raises(InputError, match=r"loop\.onnx is not run: it has control flow \(Loop\); export the image"):
        fit_network(path)


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ([node("Shape", ["picture"], ["s"]), node("ConstantOfShape", ["huge"])], [("huge", [2_500_000_000, 1])]),
        ([node("Expand", ["picture", "huge"])], [("huge", [20_000_000, 3, 4, 4])]),
        ([node("Range", ["a", "b", "c"], ["r"]), node("Cast", ["r"], to=1)], [("a", 0), ("b", 2**31), ("c", 1)]),
    ],
)
def test_unbounded_sizes_are_refused(tmp_path, nodes, weights):
    stored = [(name, np.asarray(values, np.int64)) for name, values in weights]
    path = write_network(tmp_path / "huge.onnx", nodes, stored)
    with pytest.raises(InputError, match=r'huge\.onnx takes too many bytes .* set WSABIE_LIMITS="network_bytes='):
        fit_network(path)


def test_unbounded_time_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WSABIE_LIMITS", "network_seconds=1")
    nodes = [node("MatMul", ["w", "w"], ["0"]), *(node("MatMul", [str(i), "w"], [str(i + 1)]) for i in range(600))]
    nodes += [node("ReduceMean", ["600"], ["mean"]), node("Add", ["mean", "picture"])]
    constant = node("ConstantOfShape", ["square"], ["w"])
    path = write_network(tmp_path / "long.onnx", [constant, *nodes], [("square", np.array([1500, 1500]))])
    with pytest.raises(InputError, match=r'long\.onnx takes too many seconds .* set WSABIE_LIMITS="network_seconds='):
        fit_network(path)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("NonZero", ["picture"], ["n"]), node("Cast", ["n"], to=1)], "NonZero makes something whose size"),
        (
            [node("Cast", ["picture"], ["n"], to=7), node("ConstantOfShape", ["n"])],
            "ConstantOfShape makes something whose size depends on the colours",
        ),
    ],
)
def test_sizes_that_depend_on_pixels_are_refused(tmp_path, nodes, reason):
    with pytest.raises(InputError, match=reason):
        fit_network(write_network(tmp_path / "a.onnx", nodes))


def test_sizes_that_depend_on_the_picture_shape_are_accepted(tmp_path):
    nodes = [node("Shape", ["picture"], ["s"]), node("Reshape", ["picture", "s"], ["r"]), node("Flatten", ["r"])]
    assert fit_network(write_network(tmp_path / "a.onnx", nodes)).n_features_ == 48


@pytest.mark.parametrize("dims", [[1 << 40], [-5], [1 << 32, 1 << 32], [2, 100]])
def test_tensors_of_a_wrong_length_are_refused(dims):
    tensor = onnx.TensorProto(name="w", data_type=1, raw_data=b"1234")
    tensor.dims.extend(dims)
    for place in ("initializer", "constant"):
        graph = onnx.GraphProto(initializer=[tensor])
        if place == "constant":
            graph = onnx.GraphProto(node=[node("Constant", [], value=tensor)])
        with pytest.raises(ValueError, match=r"has 4 bytes for|below 0"):
            check_graph(onnx.ModelProto(graph=graph).SerializeToString())


def test_sparse_tensors_are_refused():
    for graph in (
        onnx.GraphProto(sparse_initializer=[onnx.SparseTensorProto(dims=[1 << 40])]),
        onnx.GraphProto(node=[node("Constant", [], sparse_value=onnx.SparseTensorProto(dims=[1 << 40]))]),
    ):
        with pytest.raises(ValueError, match="sparse"):
            check_graph(onnx.ModelProto(graph=graph).SerializeToString())


def test_unbounded_input_is_refused(tmp_path):
    for shape in ((1, 3, 1 << 20, 1 << 20),):
        path = write_network(tmp_path / "a.onnx", [node("GlobalAveragePool", ["picture"])], shape=shape)
        with pytest.raises(InputError, match=r"the input of the ONNX model, .* has [\d,]+ bytes, and at most"):
            fit_network(path)


@pytest.mark.parametrize("short", range(100, 400, 7))
def test_crop_lies_in_the_picture(short):
    for height, width in ((short, short), (short, short + 1), (short * 4 // 3, short), (1, short), (20_000, 3)):
        for sides in ((224, 224), (299, 299), (384, 32)):
            assert crop_centre(np.zeros((height, width, 3), np.uint8), *sides).size == sides[::-1]


def test_networks_share_the_memory_of_pictures(monkeypatch):
    monkeypatch.setattr(OnnxNetwork, "run", lambda *_: np.array([ITEM_MEMORY.used], np.float32))
    shares = OnnxNetwork.features(object.__new__(OnnxNetwork), None, None, None, TrialCost(1, 1 << 20))
    assert (shares.tolist(), ITEM_MEMORY.used) == ([1 << 20], 0)


# ---- the check cannot be got around


def check_nodes(nodes, more=b"", picture="picture"):
    """Check a network whose graph ends with the bytes `more`."""
    graph = onnx.GraphProto(input=[onnx.ValueInfoProto(name=picture)], node=nodes)
    content = graph.SerializeToString().replace(b"picture?", b"picture\xff") + more
    check_graph(bytes([0x3A, 0x80 | len(content) & 0x7F, len(content) >> 7]) + content)


def test_nodes_are_checked_in_any_order():
    chain = [node("Add", [str(i), "picture" if not i else str(i)], [str(i + 1)]) for i in range(5)]
    chain += [node("Cast", ["5"], ["n"], to=7), node("ConstantOfShape", ["n"])]
    for nodes in (chain, chain[::-1]):
        with pytest.raises(ValueError, match="ConstantOfShape makes something whose size"):
            check_nodes(nodes)


def test_second_graph_is_refused():
    parts = (onnx.GraphProto(input=[onnx.ValueInfoProto(name="picture")]), onnx.GraphProto(node=[node("Relu", ["n"])]))
    with pytest.raises(ValueError, match="second graph"):
        check_graph(b"".join(onnx.ModelProto(graph=part).SerializeToString() for part in parts))


@pytest.mark.parametrize(
    ("node_proto", "reason"),
    [
        (node("ReduceSum", ["w", "picture"]), "ReduceSum makes something whose size"),
        (node("ReduceMax", ["w", "picture"], domain="ai.onnx"), "ReduceMax makes something whose size"),
        (node("SplitToSequence", ["w", "picture"]), "SplitToSequence makes something whose size"),
        (node("Resize", ["w", "picture"]), "Resize makes something whose size"),
        (node("Pad", ["w", "picture"], domain="com.microsoft"), "Pad makes something whose size"),
        (node("ImageDecoder", ["picture"]), "the operator 'ImageDecoder'"),
        (node("CropAndResize", ["w", "b", "i", "picture"], domain="com.microsoft"), "'com.microsoft.CropAndResize'"),
        (node("Relu", ["picture"], domain="com.example"), "'com.example.Relu'"),
    ],
)
def test_operators_with_unknown_output_size_are_refused(node_proto, reason):
    with pytest.raises(ValueError, match=reason):
        check_nodes([node_proto])


def test_random_sizes_are_refused():
    with pytest.raises(ValueError, match="NonZero makes something whose size"):
        check_nodes([node("RandomUniform", [], ["r"], shape=[9]), node("Round", ["r"], ["s"]), node("NonZero", ["s"])])


@pytest.mark.parametrize(
    ("more", "picture"),
    [
        (b"\x29\x08\x00\x42\x04name", "name"),  # a number of 8 bytes in the place of a tensor of this name
        (b"\x2a\x0c\x08\x00\x42\x08picture\xfe", "picture?"),  # the same name as that of the input, read as UTF-8
    ],
)
def test_decoys_do_not_hide_the_input(more, picture):
    with pytest.raises(ValueError, match="NonZero makes something whose size"):
        check_nodes([node("NonZero", [picture])], more, picture)


def test_decoys_do_not_hide_an_operator():
    hidden = node("NonZero", ["picture"]).SerializeToString() + b"\x21Reshape\x00"
    with pytest.raises(ValueError, match="NonZero makes something whose size"):
        check_nodes([], bytes([0x0A, len(hidden)]) + hidden)


def test_decoys_do_not_hide_a_tensor_size():
    tensor = onnx.TensorProto(name="w", dims=[1 << 40], raw_data=b"1234").SerializeToString()
    with pytest.raises(ValueError, match="has 4 bytes for"):
        check_nodes([], bytes([0x2A, len(tensor) + 9]) + tensor + b"\x09" + bytes(8))
    parts = [onnx.TensorProto(dims=[32], raw_data=b"1234").SerializeToString()] * 2
    twice = b"".join(bytes([0x2A, len(part)]) + part for part in parts)
    with pytest.raises(ValueError, match="two tensors"):
        check_nodes([], bytes([0x0A, len(twice) + 2, 0x2A, len(twice)]) + twice)


def test_pictures_select_only_short_strings():
    for long in (onnx.TensorProto(data_type=8, dims=[2], string_data=[b"", b"x" * 256]), b"x" * 256, [b"x" * 256]):
        kind = {bytes: "value_string", list: "value_strings"}.get(type(long), "value")
        with pytest.raises(ValueError, match="a string of more than 255 bytes"):
            check_nodes([node("Constant", [], ["w"], **{kind: long}), node("Gather", ["w", "picture"])])


STEPS = """
    Shape Gather Concat Slice Unsqueeze Reshape Conv Transpose Expand Where Equal Resize Floor Pad LayerNormalization
    ReduceMean Pow Sub Sqrt Div MatMul Softmax Split Erf Tanh Gelu HardSwish HardSigmoid Sigmoid Clip Identity Einsum
    ReduceL2 Max Cast ArgMax GatherND ScatterND Trilu DynamicQuantizeLinear MatMulInteger ConvInteger QuantizeLinear
    DequantizeLinear QLinearConv QLinearMatMul com.microsoft.FusedConv com.microsoft.FusedMatMul
    com.microsoft.QLinearAdd com.microsoft.Attention com.microsoft.MultiHeadAttention com.microsoft.BiasGelu
    com.microsoft.SkipLayerNormalization com.microsoft.MatMulNBits com.microsoft.nchwc.Conv
"""


def test_published_networks_are_accepted():
    for path in (Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"):
        check_graph(path.read_bytes())
    for step in STEPS.split():
        domain, _, op = step.rpartition(".")
        check_nodes([node(op, ["picture"], domain=domain)])
    check_nodes([node("LSTM", ["picture"], ["", "h"]), node("Resize", ["h", "", "", "sizes"])])


def test_file_is_checked_once_without_a_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_network, "require_safe_model", None)  # of this process, not of the one that tries
    path = write_network(tmp_path / "a.onnx", [node("Flatten", ["picture"])])
    assert fit_network(path).n_features_ == 48
    model = OnnxContent.load(path)
    assert model.to_bytes() is model.to_bytes()
