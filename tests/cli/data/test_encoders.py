"""`wsabie encoders`: the list, its JSON, and a measurement."""

import sys

import pytest

from wsabie.features.encoders.encoder_list import ENCODERS, HUB_ENCODERS
from wsabie.features.encoders.encoder_speed import measure_speed
from wsabie.features.extractor_names import EXTRACTOR_NAMES
from wsabie.features.extractors.onnx_encoders import Lite0Encoder, find_network
from wsabie.samples import get_sample_path


@pytest.fixture(autouse=True)
def no_encoders(tmp_path, monkeypatch):
    monkeypatch.setenv("WSABIE_ENCODERS", str(tmp_path / "encoders"))


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


def test_features_take_the_name_of_an_encoder(cli, tmp_path):
    """Without the files, that is what is missing."""
    for name in HUB_ENCODERS:
        refused = cli("features", "images", get_sample_path("drawings"), "--out", tmp_path / "rows", "--features", name)
        assert f"the encoder {name} is not installed; run: wsabie encoders get {name}" in refused.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get"], "wsabie encoders get NAME"),
        (["list", "clip-base"], "takes no name; leave 'clip-base' out"),
        (["get", "clip-base", "--measure"], "--measure"),
        (["--from", "folder"], "--from"),
        (["get", "lite0"], "pip install 'wsabie[photos]'"),
        (["get", "clipbase"], "there is no encoder called 'clipbase'; choose from"),
    ],
)
def test_get_refuses_other_names(cli, arguments, message):
    assert message in cli("encoders", *arguments).err.replace("\n", " ")


def test_packaged_encoder_is_measured_when_installed(cli):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")
    packaged = ENCODERS[0]
    assert packaged.name in EXTRACTOR_NAMES["pictures"]
    assert packaged.dimensions == Lite0Encoder().n_features_
    assert packaged.megabytes == round(find_network().stat().st_size / 1e6, 1)
    assert measure_speed("lite0", 2) > 0
    assert [row["is_installed"] for row in cli("encoders", "--json").json["encoders"]][:2] == [True, False]
