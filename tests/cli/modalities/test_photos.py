"""The demonstration on the bundled photos, with the packaged network."""

import csv
from html import unescape
from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from wsabie.samples import get_photo_folder


def test_demo_credits_each_photo_in_its_report(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")
    monkeypatch.delenv("WSABIE_FEATURES")
    result = cli("demo", "--out", tmp_path / "d", "--threads", 1, "--json")
    assert result.code == 0, result.err
    models = {entry["name"]: entry for entry in result.json["models"]}
    assert models["wsabie"]["metrics"]["p@1"] > 2 * models["popularity"]["metrics"]["p@1"]
    report = unescape((tmp_path / "d" / "report.html").read_text(encoding="utf-8"))
    with (get_photo_folder() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        credits = {f"Photo: {row['author']}, {row['licence']}" for row in csv.DictReader(file)}
    assert sum(credit in report for credit in credits) >= 10
    annotated = cli("annotate", tmp_path / "d" / "model", get_photo_folder() / "fish", "-k", 3, "--json")
    assert annotated.code == 0, annotated.err
    first_labels = [row["labels"][0][0] for row in annotated.json["results"]]
    assert first_labels.count("fish") + first_labels.count("animal") + first_labels.count("underwater") >= 25
