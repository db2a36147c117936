"""ONNX encoders: inputs, normalisation, outputs and refusals."""

import sys
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from wsabie.core.errors import InputError, UnreadableItemError
from wsabie.core.execution import ProcessExecutor
from wsabie.features.base.extraction import extract_to_file
from wsabie.features.encoders import onnx_network
from wsabie.features.encoders.onnx_network import OnnxContent
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.features.extractors.composite_extractors import ConcatenatedFeatures
from wsabie.features.extractors.onnx_encoders import OnnxEncoder
from wsabie.features.extractors.pyramid_histograms import HogFeatures
from wsabie.io.data_sources import open_source
from wsabie.io.records import ItemList
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.samples import get_sample_path

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
WIDTH = 12


def save_network(path, nodes, shape, outputs, weights=(), dtype="FLOAT", inputs=(), domain=None):
    """Write a network of these nodes; its input is "picture"."""
    from onnx import TensorProto, helper, numpy_helper

    kind = getattr(TensorProto, dtype)
    input_infos = [helper.make_tensor_value_info(name, kind, shape) for name in ("picture", *inputs)]
    output_infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    stored = [numpy_helper.from_array(array, name) for name, array in weights]
    graph = helper.make_graph(nodes, "encoder", input_infos, output_infos, stored)
    opsets = [helper.make_opsetid("", 13), *([helper.make_opsetid(domain, 1)] if domain else [])]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def save_identity(path, shape, dtype="FLOAT"):
    """A network that says what it was given."""
    from onnx import TensorProto, helper

    return save_network(
        path, [helper.make_node("Cast", ["picture"], ["out"], to=TensorProto.FLOAT)], shape, ["out"], dtype=dtype
    )


@pytest.fixture(scope="module")
def encoder_file(tmp_path_factory):
    """A small convolution with random weights; a map, its mean, and tokens as outputs."""
    from onnx import helper

    draw = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["picture", "filters"], ["raw"], strides=[4, 4], kernel_shape=[8, 8]),
        helper.make_node("Relu", ["raw"], ["map"]),
        helper.make_node("GlobalAveragePool", ["map"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["embeds"]),
        helper.make_node("Reshape", ["map", "flat"], ["flattened"]),
        helper.make_node("Transpose", ["flattened"], ["tokens"], perm=[0, 2, 1]),
    ]
    weights = [
        ("filters", draw.normal(size=(WIDTH, 3, 8, 8)).astype(np.float32)),
        ("flat", np.array([0, WIDTH, -1], np.int64)),
    ]
    path = tmp_path_factory.mktemp("onnx") / "encoder.onnx"
    return save_network(path, nodes, ["batch", 3, 32, 32], ["embeds", "map", "tokens"], weights)


@pytest.fixture(scope="module")
def emoji():
    """120 pictures of the sample collection, as they are bundled."""
    source = open_source(get_sample_path("emoji"))
    return ItemList(source.path, list(source)[:120])


def make_picture(pixels):
    file = BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, "PNG")
    return file.getvalue()


def encode_pixels(encoder, pixels):
    return encoder.transform_one(make_picture(pixels))[1]


# ---- from pictures to a model


def test_network_features_train_a_model_that_annotates(encoder_file, emoji, tmp_path):
    encoder = OnnxEncoder(encoder_file).fit(emoji)
    extract_to_file(emoji, encoder, tmp_path / "a.parquet", shard_pictures=50)
    rows = open_source(tmp_path / "a.parquet")
    assert rows.X.shape == (120, WIDTH)
    assert isinstance(rows.X, np.ndarray)
    np.testing.assert_array_equal(rows.X, encoder.transform(emoji).X)
    assert rows.extractor_fingerprint == encoder.fingerprint()
    model = Wsabie(dim=8, epochs=3, threads=1).fit(rows.X, rows.Y, label_names=rows.label_names)
    assert model.scaling_.method == "homogeneous"
    assert len(model.annotate(rows.X[:1], 5)[0]) == 5


def test_every_method_gives_the_same_rows(encoder_file, emoji, tmp_path):
    few = ItemList(emoji.path, emoji.items[:20])
    encoder = OnnxEncoder(encoder_file, normalise="clip", crop=0.9).fit(few)
    encoder.save(tmp_path / "saved")
    again = load_extractor(tmp_path / "saved")
    assert again.fingerprint() == encoder.fingerprint()
    assert again.parameters() == encoder.parameters()
    rows = encoder.transform(few, augment=1)
    np.testing.assert_array_equal(
        again.transform(few, augment=1, executor=ProcessExecutor(2, local_seconds=0)).X, rows.X
    )
    assert not (rows.X[0] == rows.X[1]).all()
    columns, values = again.transform_one(few.items[0].content)
    assert columns.tolist() == list(range(WIDTH))
    np.testing.assert_array_equal(values, rows.X[0])


def test_network_beside_histograms_has_unit_length(encoder_file, collection):
    mixed = ConcatenatedFeatures([HogFeatures(), OnnxEncoder(encoder_file)]).fit(collection)
    assert not mixed.is_dense
    rows = mixed.transform(collection)
    assert rows.X.shape == (24, HogFeatures().n_features_ + WIDTH)
    encoded = OnnxEncoder(encoder_file).transform(collection).X
    np.testing.assert_allclose(
        rows.X[:, -WIDTH:].toarray(), encoded / np.linalg.norm(encoded, axis=1, keepdims=True), rtol=1e-5
    )
    again = load_saved(mixed)
    assert again.fingerprint() == mixed.fingerprint()
    other_extractor = create_extractor(f"hog,onnx:{save_identity(encoder_file.with_name('other.onnx'), [1, 3, 4, 4])}")
    with pytest.raises(InputError, match="made with model"):
        again.refuse_other_options(other_extractor.identity(), "here", "x")


def load_saved(extractor):
    return type(extractor).from_state(extractor.to_state())


# ---- what a network is given


def test_values_are_normalised(tmp_path):
    file = save_identity(tmp_path / "a.onnx", [1, 3, 1, 1])
    pixels = [[[255, 0, 51]]]
    for normalise, expected in {
        "imagenet": [(1 - 0.485) / 0.229, -0.456 / 0.224, (0.2 - 0.406) / 0.225],
        "clip": [(1 - 0.48145466) / 0.26862954, -0.4578275 / 0.26130258, (0.2 - 0.40821073) / 0.27577711],
        "symmetric": [1, -1, -0.6],
        "unit": [1, 0, 0.2],
        "bytes": [255, 0, 51],
        "lite": [1, -127 / 128, -76 / 128],
        ((0.5, 0.5, 0.0), (1.0, 1.0, 0.1)): [0.5, -0.5, 2],
    }.items():
        encoder = OnnxEncoder(file, normalise=normalise)
        # a map of one place: its mean is what was given
        np.testing.assert_allclose(encode_pixels(encoder, pixels), expected, rtol=1e-5, atol=1e-6)
        assert load_saved(encoder).fingerprint() == encoder.fingerprint()


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [([1, 3, 6, 6], "FLOAT"), (["n", 6, 6, 3], "FLOAT"), ([4, 3, 6, 6], "FLOAT"), ([1, 6, 6, 3], "FLOAT16")],
)
def test_layouts_batches_and_types_are_supported(tmp_path, shape, dtype):
    """Whatever the network wants, the means of its maps are those of the channels."""
    encoder = OnnxEncoder(save_identity(tmp_path / "a.onnx", shape, dtype), normalise="unit")
    pixels = np.broadcast_to([204, 102, 0], (6, 6, 3))
    np.testing.assert_allclose(encode_pixels(encoder, pixels), [0.8, 0.4, 0], atol=1e-3)


def test_byte_inputs_get_bytes(tmp_path):
    encoder = OnnxEncoder(save_identity(tmp_path / "a.onnx", [1, 3, 5, 5], "UINT8"))
    np.testing.assert_allclose(encode_pixels(encoder, np.full((9, 9, 3), 77)), [77] * 3)


def test_open_input_sides_are_supported(tmp_path):
    file = save_identity(tmp_path / "a.onnx", ["n", 3, "height", "width"])
    assert onnx_network.open_network(OnnxContent.load(file), None, None).input[2:4] == (224, 224)
    assert onnx_network.open_network(OnnxContent.load(file), 96, None).input[2:4] == (96, 96)
    fixed = save_identity(tmp_path / "b.onnx", ["n", 3, 32, "width"])
    with pytest.raises(InputError, match="takes pictures of 32 x None pixels, and side is 96"):
        OnnxEncoder(fixed, side=96).prepare()


def test_crop_has_the_shape_of_the_input(tmp_path):
    """A wide picture loses its left and right third; crop takes away more, on all sides."""
    encoder = OnnxEncoder(save_identity(tmp_path / "a.onnx", [1, 3, 20, 20]), normalise="bytes")
    pixels = np.zeros((20, 60, 3))
    pixels[:, 20:40] = 200
    np.testing.assert_allclose(encode_pixels(encoder, pixels), 200, atol=1)
    pixels[5:15, 25:35] = 90
    cropped = OnnxEncoder(encoder.model, normalise="bytes", crop=0.5)
    np.testing.assert_allclose(
        encode_pixels(cropped, pixels), 90, atol=15
    )  # at its border, what lies around it shines through
    assert encode_pixels(encoder, pixels)[0] > 150


# ---- what it says


def test_maps_and_tokens_are_averaged(encoder_file):
    pixels = np.random.default_rng(1).integers(0, 256, (32, 32, 3))
    embeds, of_map, tokens = (
        encode_pixels(OnnxEncoder(encoder_file, output=o), pixels) for o in (None, "map", "tokens")
    )
    np.testing.assert_allclose(of_map, embeds, rtol=1e-4)
    np.testing.assert_allclose(tokens, embeds, rtol=1e-4)


def test_nonfinite_output_rejects_the_picture(tmp_path):
    from onnx import helper

    nodes = [helper.make_node("Log", ["picture"], ["logs"]), helper.make_node("Flatten", ["logs"], ["out"])]
    encoder = OnnxEncoder(save_network(tmp_path / "a.onnx", nodes, [1, 3, 2, 2], ["out"]), normalise="unit")
    with pytest.raises(UnreadableItemError, match="no finite features"):
        encode_pixels(encoder, np.zeros((2, 2, 3)))
    assert encode_pixels(encoder, np.full((2, 2, 3), 255)).tolist() == [0.0] * 12


# ---- what is refused


def test_unsuitable_networks_are_refused(tmp_path, encoder_file):
    from onnx import helper

    def refused(path, sentence, **options):
        with pytest.raises(InputError, match=sentence) as caught:
            OnnxEncoder(path, **options).fit(ItemList(tmp_path, []))
        assert "\n" not in str(caught.value)

    (tmp_path / "words.onnx").write_text("only words")
    (tmp_path / "empty.onnx").touch()
    refused(tmp_path / "gone.onnx", "there is no ONNX file at")
    refused(tmp_path, "there is no ONNX file at")
    refused(tmp_path / "words.onnx", r"ONNX Runtime cannot open .*words\.onnx \(")
    refused(tmp_path / "empty.onnx", "has 0 bytes")
    refused(encoder_file, "no output 'last'; choose from embeds, map, tokens", output="last")
    refused(encoder_file, "normalise is 'other'; choose from imagenet, clip", normalise="other")
    refused(encoder_file, "normalise is not a", normalise=((0.0,), (1.0,)))
    refused(encoder_file, "side is 1", side=1)
    refused(encoder_file, "takes pictures of 32 x 32 pixels, and side is 64", side=64)
    for shape in ([1, 4, 9, 9], [1, 3], [1, 9, 9, 1]):
        refused(
            save_identity(tmp_path / "a.onnx", shape), "give one that takes float or uint8 pictures of three channels"
        )
    refused(save_identity(tmp_path / "a.onnx", [1, 3, 4, 4], "INT64"), "give one that takes float or uint8")
    two = [helper.make_node("Add", ["picture", "other"], ["out"])]
    refused(save_network(tmp_path / "a.onnx", two, [1, 3, 4, 4], ["out"], inputs=["other"]), "has 2 inputs")
    custom_nodes = [helper.make_node("Anything", ["picture"], ["out"], domain="com.example")]
    path = save_network(tmp_path / "own.onnx", custom_nodes, [1, 3, 4, 4], ["out"], domain="com.example")
    refused(path, r"own\.onnx is not run: it has the operator 'com\.example\.Anything', which is not known")
    five = [helper.make_node("Unsqueeze", ["picture", "axis"], ["out"])]
    path = save_network(tmp_path / "a.onnx", five, [1, 3, 4, 4], ["out"], [("axis", np.array([0], np.int64))])
    with pytest.raises(InputError, match="choose an output of numbers"):
        encode_pixels(OnnxEncoder(path), np.zeros((4, 4, 3)))


def test_weights_outside_the_file_are_refused(tmp_path, encoder_file):
    model = onnx.load(encoder_file)
    onnx.save(model, tmp_path / "a.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(InputError, match="keeps its weights in other files"):
        OnnxEncoder(tmp_path / "a.onnx").prepare()


def test_decoys_open_no_other_file(tmp_path, encoder_file, monkeypatch):
    """The weights lie ready in the current directory, and text before the graph looks like the key of a location."""
    model = onnx.load(encoder_file)
    onnx.save(model, tmp_path / "a.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    decoy = b"x\n\x08location"
    (tmp_path / "a.onnx").write_bytes(b"\x32" + bytes([len(decoy)]) + decoy + (tmp_path / "a.onnx").read_bytes())
    assert onnx.load(tmp_path / "a.onnx").doc_string == decoy.decode()
    with pytest.raises(InputError, match="keeps its weights in other files"):
        OnnxEncoder(tmp_path / "a.onnx").prepare()


def test_too_large_file_is_not_read(encoder_file, monkeypatch):
    monkeypatch.setattr(onnx_network, "MAX_BYTES", 100)
    with pytest.raises(InputError, match="an ONNX file has 1 to 100"):
        OnnxEncoder(encoder_file).prepare()


def test_missing_runtime_error_names_the_install_command(encoder_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    onnx_network.open_network.cache_clear()
    onnx_network.try_network.cache_clear()
    with pytest.raises(InputError, match=r"pip install 'wsabie\[onnx\]'"):
        OnnxEncoder(encoder_file).prepare()


# ---- on another device


def test_rows_of_the_cpu_are_the_default(encoder_file, monkeypatch):
    pixels = np.random.default_rng(1).integers(0, 256, (32, 32, 3))
    rows = []
    for device in ("", "cpu"):
        monkeypatch.setenv("WSABIE_DEVICE", device)
        onnx_network.open_network.cache_clear()
        rows.append(encode_pixels(OnnxEncoder(encoder_file), pixels))
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("has_driver", [True, False])
def test_device_comes_before_the_cpu(encoder_file, monkeypatch, has_driver):
    import onnxruntime

    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    requested = []

    class Session(onnxruntime.InferenceSession):
        def __init__(self, content, options, providers):
            requested.append(providers)
            super().__init__(content, options, providers=providers[-1:])

        def get_providers(self):
            return providers if has_driver else providers[-1:]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["TensorrtExecutionProvider", *providers])
    monkeypatch.setenv("WSABIE_DEVICE", "cuda")
    onnx_network.open_network.cache_clear()
    encoder = OnnxEncoder(encoder_file)
    if has_driver:
        assert encode_pixels(encoder, np.zeros((32, 32, 3))).shape == (WIDTH,)
    else:
        with pytest.raises(InputError, match="has CUDAExecutionProvider, but cannot use it here; install its driver"):
            encode_pixels(encoder, np.zeros((32, 32, 3)))
    onnx_network.open_network.cache_clear()
    assert requested == [providers]
