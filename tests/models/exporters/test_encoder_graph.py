"""Encoder and model as one graph: from the pixels of pictures to the labels of the model."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabie
from export_checks import assert_labels, rank_pictures
from wsabie.features.encoders.encoder_list import HUB_ENCODERS
from wsabie.features.encoders.encoder_store import install_encoder
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.extractors.onnx_encoders import OnnxEncoder
from wsabie.models.annotators import Annotator
from wsabie.samples import get_photo_folder

pytest.importorskip("onnx", reason="onnx writes the graphs")
pytest.importorskip("onnxruntime")
TINY = Path(__file__).parents[2] / "features" / "encoders" / "tiny"


def train(extractor: Any, pictures: list[Path]) -> Annotator:
    X = np.stack([extractor.transform_one(picture)[1] for picture in pictures])
    labels = [f"{picture.parent.name} {number % 3}" for number, picture in enumerate(pictures)]
    return Annotator(wsabie.Wsabie(dim=6, epochs=5, threads=1).fit(X, labels), extractor)


@pytest.mark.parametrize("name", ["clip-base", "dinov2-small", "siglip2-base"])
def test_encoders_of_the_hub_are_joined(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSABIE_ENCODERS", str(tmp_path / "encoders"))
    install_encoder(HUB_ENCODERS[name], TINY / name)
    pictures = sorted(get_photo_folder().rglob("*.jpg"))[::15]
    annotator = train(create_extractor(name, crop=0.75), pictures)
    shutil.rmtree(tmp_path / "encoders")
    wsabie.export(annotator, tmp_path / "m.onnx", k=3, with_encoder=True, license="MIT")
    facts, ids, scores = rank_pictures(tmp_path / "m.onnx", pictures)
    assert facts["license"] == {"clip-base": "MIT"}.get(name, "Apache-2.0 AND MIT")
    assert_labels(facts, ids, scores, annotator.annotate(pictures, 3))


def save_encoder(path: Path, *, kind: str, shape: list[Any], opset: int = 13) -> Path:
    """Write an encoder of three channels; its output is a map."""
    from onnx import TensorProto, helper, save

    cast = helper.make_node("Cast", ["x.in"], ["/m/x"], to=TensorProto.FLOAT)
    steps = [cast, helper.make_node("Neg", ["/m/x"], ["W"])]
    infos = [helper.make_tensor_value_info("x.in", getattr(TensorProto, kind), shape)]
    output = helper.make_tensor_value_info("W", TensorProto.FLOAT, None)
    graph = helper.make_graph(steps, "encoder", infos, [output])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("kind", "shape", "opset"),
    [("FLOAT16", ["batch", 3, 8, 4], 13), ("UINT8", [1, 6, 6, 3], 18), ("FLOAT", [None, 8, 8, 3], 20)],
)
def test_maps_of_any_form_become_rows(kind: str, shape: list[Any], opset: int, tmp_path: Path) -> None:
    pictures = sorted(get_photo_folder().rglob("*.jpg"))[::15]
    extractor = OnnxEncoder(save_encoder(tmp_path / "e.onnx", kind=kind, shape=shape, opset=opset))
    annotator = train(extractor, pictures)
    message = "the licence of the image encoder is unknown, and the file passes it on; state its `license`"
    with pytest.raises(wsabie.InputError, match=message):
        wsabie.export(annotator, tmp_path / "m.onnx", with_encoder=True)
    wsabie.export(annotator, tmp_path / "m.onnx", k=3, with_encoder=True, license="CC0-1.0")
    facts, ids, scores = rank_pictures(tmp_path / "m.onnx", pictures)
    assert facts["license"] == "CC0-1.0"
    assert_labels(facts, ids, scores, annotator.annotate(pictures, 3))


def refuse_export(extractor: Any, folder: Path) -> str:
    """The message of a refused export."""
    model = wsabie.Wsabie(dim=2, epochs=1, threads=1).fit(np.eye(3), ["a", "b", "c"])
    with pytest.raises(wsabie.InputError) as caught:
        wsabie.export(Annotator(model, extractor), folder / "no.onnx", with_encoder=True)
    return str(caught.value)


def test_other_features_beside_the_encoder_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")
    message = (
        "the model takes the features lite0,colour, which are not those of one image encoder; leave `with_encoder` out"
    )
    assert refuse_export(create_extractor("lite0,colour"), tmp_path) == message
