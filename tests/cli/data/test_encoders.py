"""`wsabie encoders`: the list, its JSON, and a measurement."""

import sys

import pytest

from wsabie.features.encoders.encoder_list import ENCODERS, measure_speed
from wsabie.features.extractor_names import EXTRACTOR_NAMES
from wsabie.features.extractors.lite0_encoder import Lite0Encoder, find_network
from wsabie.samples import get_sample_path


def test_encoders_lists_licences_and_installation(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "wsabie_lite0", None)
    document = cli("encoders", "--measure", "--json").json
    assert document["schema"] == 1
    assert len({encoder["name"] for encoder in document["encoders"]}) == len(document["encoders"]) >= 5
    for encoder in document["encoders"]:
        assert encoder["licence"] in {"Apache-2.0", "MIT"}
        assert (encoder["is_installed"], encoder["photos_per_second"]) == (False, None)
        assert encoder["is_verified"] == (encoder["repository"] is None)
    shown = cli("encoders")
    assert all(encoder.name in shown.out for encoder in ENCODERS)
    assert "pip install 'wsabie[photos]'" in shown.err.replace("\n", " ")


def test_encoder_options_are_those_of_features(cli, tmp_path):
    """With no ONNX file, that is what is missing."""
    for encoder in ENCODERS[1:]:
        options = encoder.options.replace("FILE", "gone.onnx").split()
        refused = cli("features", "images", get_sample_path("drawings"), "--out", tmp_path / "rows", *options)
        assert "there is no ONNX file at gone.onnx" in refused.err


def test_packaged_encoder_is_measured_when_installed(cli):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")
    packaged = ENCODERS[0]
    assert packaged.name in EXTRACTOR_NAMES["pictures"]
    assert packaged.dimensions == Lite0Encoder().n_features_
    assert packaged.megabytes == round(find_network().stat().st_size / 1e6, 1)
    assert measure_speed(2) > 0
    assert [row["is_installed"] for row in cli("encoders", "--json").json["encoders"]][:2] == [True, False]
