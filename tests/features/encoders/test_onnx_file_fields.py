"""Parsing of ONNX files: tensors in every field, and malformed messages."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.features.encoders.onnx_graph_check import has_external_weights

onnx = pytest.importorskip("onnx")


def make_tensor(outside: bool):
    from onnx import TensorProto

    proto = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT, float_data=[1.5, -2.0])
    if outside:
        proto.data_location = TensorProto.EXTERNAL
        proto.external_data.add(key="location", value="weights.bin")
    return proto


def make_attribute(name: str, value: object, many: bool):
    node = onnx.NodeProto(op_type="Any")
    field = getattr(node.attribute.add(name="a"), name)
    (field.append if many else field.CopyFrom)(value)
    return node


def list_tensor_places(weights_proto):
    """Models that hold a tensor, by where."""
    graph = onnx.GraphProto(initializer=[weights_proto])
    sparse = onnx.SparseTensorProto(values=weights_proto)
    nodes = {
        "attribute": make_attribute("t", weights_proto, False),
        "attributes": make_attribute("tensors", weights_proto, True),
        "sub-graph": make_attribute("g", graph, False),
        "sub-graphs": make_attribute("graphs", graph, True),
        "sparse attribute": make_attribute("sparse_tensor", sparse, False),
        "sparse attributes": make_attribute("sparse_tensors", sparse, True),
    }
    graphs = {name: onnx.GraphProto(node=[node]) for name, node in nodes.items()}
    graphs |= {"initializer": graph, "sparse": onnx.GraphProto(sparse_initializer=[sparse])}
    graphs["indices"] = onnx.GraphProto(sparse_initializer=[onnx.SparseTensorProto(indices=weights_proto)])
    for _ in range(20):
        graphs["deep"] = onnx.GraphProto(node=[make_attribute("g", graphs.get("deep", graph), False)])
    models = {name: onnx.ModelProto(ir_version=8, graph=graph_proto) for name, graph_proto in graphs.items()}
    function = onnx.FunctionProto(node=[nodes["attribute"]], attribute_proto=[])
    models["function"] = onnx.ModelProto(functions=[function])
    function = onnx.FunctionProto(attribute_proto=nodes["attribute"].attribute)
    models["default of a function"] = onnx.ModelProto(functions=[function])
    models["training"] = onnx.ModelProto(training_info=[onnx.TrainingInfoProto(algorithm=graph)])
    models["start of training"] = onnx.ModelProto(training_info=[onnx.TrainingInfoProto(initialization=graph)])
    return models


@pytest.mark.parametrize("place", list_tensor_places(make_tensor(False)))
def test_tensors_are_found_in_every_field(place):
    inside, outside = (list_tensor_places(make_tensor(where))[place].SerializeToString() for where in (False, True))
    assert not has_external_weights(inside)
    assert has_external_weights(outside)


def test_order_and_spelling_of_fields_do_not_matter():
    """A location whose value comes before its key; a tag with bits that a parser drops; decoys in names."""
    model = onnx.ModelProto(doc_string="j\n\x08location", graph=onnx.GraphProto(name="j\n\x08location"))
    assert not has_external_weights(model.SerializeToString())
    entry = b"\x12\x05w.bin" + b"\x0a\x08location"
    weights = b"\x6a" + bytes([len(entry)]) + entry
    for location in (b"\x70\x01", b"\x70\x81\x80\x80\x80\x10", b"\xf0\x80\x80\x80\x10\x01"):
        field = weights + location
        graph = b"\x2a" + bytes([len(field)]) + field
        content = b"\x3a" + bytes([len(graph)]) + graph
        assert has_external_weights(content)


@pytest.mark.parametrize(
    "content", [b"\x3a", b"\x3a\x05\x00", b"\x0b\x0c", b"\x0f", b"\x00\x01", b"\x09\x00", b"\x08" + b"\xff" * 11]
)
def test_malformed_messages_are_refused(content):
    """A field without its length, too short, in a group, of no kind, without a number; a number without an end."""
    with pytest.raises(ValueError, match="no protobuf message"):
        has_external_weights(content)


@given(st.binary(max_size=60), st.integers(0, 200))
def test_any_bytes_are_parsed_or_refused(noise, cut):
    content = list_tensor_places(make_tensor(True))["sub-graph"].SerializeToString()
    with suppress(ValueError):  # an IndexError would be neither
        assert has_external_weights(content[:cut] + noise) in (True, False)
