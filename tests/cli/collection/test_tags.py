"""`wsabie collection import` and `export` on pictures, and other commands on the exports."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsabie.io.tags.image_tags import read_image_tags

Cli = Callable[..., Any]


@pytest.fixture
def photos(init: Cli, pictures: Path, tmp_path: Path) -> Path:
    """A collection of 120 emoji whose items are known, and their metadata."""
    folder = tmp_path / "photos"
    shutil.copytree(pictures, folder)
    assert init(folder, "--tags", "none").code == 0
    return folder


def read_contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("*.webp")}


def test_imported_metadata_are_exported_and_train_a_model(cli: Cli, photos: Path, tmp_path: Path) -> None:
    contents_before = read_contents(photos)
    with (photos / "metadata.csv").open(encoding="utf-8", newline="") as file:
        n = sum(len({name.strip() for name in row["labels"].split(";")}) for row in csv.DictReader(file))
    report = cli("collection", "import", photos, photos / "metadata.csv", "--by", "eve", "--json").json
    assert (report["items"], report["added"], report["skipped"]) == (120, n, 0)
    exported = cli("collection", "export", photos, tmp_path / "out", "--as", "imagefolder", "--json").json
    assert exported == {
        "schema": 1,
        "out": str(tmp_path / "out"),
        "kind": "imagefolder",
        "tags": n,
        "files": 120,
        "skipped": 0,
    }
    trained = cli("train", tmp_path / "out", "--model", tmp_path / "m", "--epochs", "1", "--n-words", "50", "--json")
    assert trained.code == 0, trained.err
    assert trained.json["rows"] + trained.json["validation_rows"] > 100
    assert read_contents(photos) == contents_before
    (photos / "tags.json").touch()  # it is empty, and nothing is lost
    coco = cli("collection", "export", photos, photos / "tags.json")
    assert coco.code == 0, coco.err
    assert f"{n:,} tags written to {photos / 'tags.json'}" in coco.err.replace("\n", "")
    again = cli("collection", "export", photos, photos / "tags.json")
    assert (again.code, "is there already and would be lost" in again.err) == (1, True)
    (photos / "tags.json").write_text('{"info": 1}')
    assert cli("collection", "export", photos, photos / "tags.json", "--overwrite").code == 0
    undone = cli("collection", "undo", photos, str(report["entry"]), "--by", "eve")
    assert undone.code == 0, undone.err
    assert len(json.loads((photos / "tags.json").read_text())["annotations"]) == n
    assert cli("collection", "import", photos, photos / "tags.json", "--json").json["added"] == n


def test_skipped_tags_are_listed(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "tags.csv").write_text("file,tags\n000.webp,sea|sky\nlost.webp,sea\n")
    result = cli("collection", "import", photos, tmp_path / "tags.csv", "--rejects", tmp_path / "skipped.jsonl")
    assert result.code == 0
    assert "2 tags of 1 item: 2 added, 0 changed; 2 new labels" in result.err
    assert "1 skipped: unknown item (1)" in result.err
    assert json.loads((tmp_path / "skipped.jsonl").read_text())["where"] == f"{tmp_path}/tags.csv:3"
    strict = cli("collection", "import", photos, tmp_path / "tags.csv", "--strict")
    assert strict.code == 1
    assert "tags.csv:3: unknown item" in strict.err


def test_xmp_export_writes_to_the_requested_folder(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "tags.jsonl").write_text('{"path": "000.webp", "labels": ["sea", "sky"]}\n')
    assert cli("collection", "import", photos, tmp_path / "tags.jsonl").code == 0
    contents_before = read_contents(photos)
    assert cli("collection", "export", photos, tmp_path / "xmp", "--as", "xmp").code == 0
    assert [path.name for path in (tmp_path / "xmp").iterdir()] == ["000.webp.xmp"]
    result = cli("collection", "export", photos, "--beside-originals")
    assert "2 tags written to 1 file" in result.err
    assert read_contents(photos) == contents_before
    (photos / "000.webp.xmp").unlink()
    assert cli("collection", "export", photos, "--into-originals").code == 0
    assert read_image_tags(photos / "000.webp").names == ("sea", "sky")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "OUT is missing"),
        (["tags"], "does not tell a format"),
        (["tags.csv", "--label", "sea"], "there is no label 'sea' here"),
        (["tags.csv", "--folder", "nowhere"], "no items in the folder 'nowhere'"),
        (["tags.csv", "--state", "suggested"], "the collection has no model yet"),
        (["tags.json", "--state", "rejected"], "export rejected ones as csv or jsonl"),
        (["out", "--beside-originals"], "leave OUT and --pictures out"),
        (["--into-originals", "--beside-originals"], "give one of"),
        (["--into-originals", "--as", "csv"], "leave --as csv out"),
        (["--into-originals", "--overwrite"], "leave --overwrite out"),
    ],
)
def test_bad_exports_give_one_sentence(
    cli: Cli, photos: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(photos.parent)
    result = cli("collection", "export", photos, *words)
    assert (result.code, message in result.err.replace("\n", " ")) == (1, True), result.err
