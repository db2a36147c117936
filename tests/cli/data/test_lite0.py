"""The packaged network on the command line: rows, a model, annotations."""

import sys

import numpy as np
import pytest

from wsabie.io.recognition import open_source

QUICK = ("--dim", 8, "--epochs", 2, "--threads", 1)


@pytest.fixture(autouse=True)
def network():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")


def test_rows_of_photos(cli, pictures, tmp_path):
    out = tmp_path / "rows.parquet"
    result = cli("features", "images", pictures, "--features", "lite0", "--out", out, "--threads", 1)
    assert result.code == 0, result.err
    rows = open_source(out)
    assert isinstance(rows.X, np.ndarray)
    assert rows.X.shape == (120, 1280)
    assert "120 rows of 1,280 features (lite0)" in result.out.replace("\n", " ")
    assert cli("train", out, "--model", tmp_path / "model", *QUICK).code == 0


def test_a_model_of_photos_has_the_network(cli, pictures, tmp_path, monkeypatch):
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


def test_a_missing_network_says_how_to_install_it(cli, pictures, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wsabie_lite0", None)
    result = cli("train", pictures, "--model", tmp_path / "model", "--features", "lite0", *QUICK)
    assert result.code == 1
    assert "pip install 'wsabie[photos]'" in result.err.replace("\n", " ")
    assert not (tmp_path / "model").exists()
