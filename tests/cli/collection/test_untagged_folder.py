"""A folder without tags and a list of labels: suggestions by names at the command line."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.server.conftest import run_service

pytest.importorskip("sqlalchemy", reason="collections need SQLAlchemy")

from wsabie.cli.collection import reports
from wsabie.features.encoders import text_encoders
from wsabie.samples import get_photo_folder, get_sample_path

Cli = Callable[..., Any]
_PEAK_MEMORY = """
from pathlib import Path
from wsabie.__main__ import run

try:
    run()
finally:
    print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""
"""Script that runs a command, and prints the peak of its memory in kB: a parent's stays in `ru_maxrss` of a child."""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two photos without tags."""
    (tmp_path / "photos").mkdir()
    for name in ("butterfly", "toucan"):
        shutil.copy(get_photo_folder() / f"animal/erase_{name}.jpg", tmp_path / "photos" / f"{name}.jpg")
    return tmp_path / "photos"


@pytest.fixture
def names(tmp_path: Path) -> Path:
    (tmp_path / "names.txt").write_text("butterfly\ntoucan\nbutterfly\n\n", encoding="utf-8")
    return tmp_path / "names.txt"


def test_init_writes_the_labels_and_says_what_is_next(
    cli: Cli, init: Cli, photos: Path, names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_encoders, "_PACKAGES", ("missing_package",))
    made = init(photos, "--labels", names, "--by", "eve")
    assert made.code == 0, made.err
    assert "wsabie collection apply" in made.err
    assert "after: pip install 'wsabie[words]'" in made.err.replace("\n", " ")
    labels = cli("collection", "labels", photos, "--json").json["labels"]
    assert [(label["name"], label["items"]) for label in labels] == [("butterfly", 0), ("toucan", 0)]
    assert "2 labels added" in cli("collection", "history", photos).out
    cli("collection", "undo", photos, "1")
    assert init(photos, "--labels", photos / "missing.txt").code == 1


@pytest.mark.skipif(
    not text_encoders.is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`"
)
def test_apply_suggests_by_names(cli: Cli, init: Cli, photos: Path, names: Path) -> None:
    assert "pip install" not in init(photos, "--labels", names).err
    applied = cli("collection", "apply", photos, "--threads", 1)
    assert applied.code == 0, applied.err
    assert "for 2 items" in applied.out
    assert "labels by name only" in applied.err
    assert f"then: wsabie collection train {photos}" in applied.err.replace("\n", " ").replace("  ", " ")
    assert "zero-shot" in cli("collection", "models", photos).out
    found = cli("collection", "search", photos, "flying insect", "-k", 1)
    assert found.out.splitlines()[0] == "flying insect: what the network sees is near 'flying insect'"
    assert found.out.splitlines()[1].startswith("butterfly.jpg")
    assert "\nflying insect: looks like butterfly.jpg, the first of these\n" in found.out
    assert "damage" not in cli("collection", "status", photos, "--check").out


@pytest.mark.skipif(
    not text_encoders.is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`"
)
def test_free_words_find_labels_then_what_the_network_sees_then_neighbours(cli: Cli, init: Cli, tmp_path: Path) -> None:
    """All bundled photos without tags; only the groups of words that are labels have tagged photos."""
    photos = shutil.copytree(get_photo_folder(), tmp_path / "photos")
    (photos / "metadata.csv").unlink()
    (tmp_path / "names.txt").write_text("butterfly\nguitar\nfish\nhammer\ntoucan\n", encoding="utf-8")
    init(photos, "--labels", tmp_path / "names.txt", "--tags", "none")
    assert cli("collection", "apply", photos, "--threads", 1).code == 0

    def search(text: str, *options: object) -> list[tuple[str, list[str]]]:
        found = cli("collection", "search", photos, text, "-k", 4, "--json", *options)
        assert found.code == 0, found.err
        return [(group["reason"], [hit["path"] for hit in group["hits"]]) for group in found.json["groups"]]

    near, alike = search("musical instrument")
    assert near[0] == "what the network sees is near 'musical instrument'"
    assert all(path.startswith("music/") for path in near[1])
    assert alike[0] == f"looks like {near[1][0]}, the first of these"
    assert alike[1]
    assert not {*near[1]} & {*alike[1]}

    fewer = search("musical instrument -drum")
    assert near[1][2] == "music/world_music_orchestra.jpg"
    assert not any("music/world_music_orchestra.jpg" in paths for _, paths in fewer)
    assert near[1][0] not in search("musical instrument -guitar")[0][1]
    assert search("musical instrument", "--under", "music", "--words", "mexico") == [
        (near[0], ["music/world_music_mexico.jpg"])
    ]
    ((_, paths),) = search("insect", "--label", "butterfly", "--label-state", "suggested", "--min-probability", 0.1)
    assert paths == ["animal/erase_caterpillar.jpg"]

    cli("collection", "tag", photos, "animal/erase_butterfly.jpg", "--accept", "butterfly")
    reasons = [reason for reason, _ in search("butterfly insect")]
    assert reasons[:3] == [
        "tagged 'butterfly'", "looks like 'butterfly'", "what the network sees is near 'butterfly insect'"
    ]  # fmt: skip
    assert search("insect butterfly", "--label", "butterfly")[0][1] == ["animal/erase_butterfly.jpg"]
    untagged = search("butterfly insect", "--untagged")
    assert not any("animal/erase_butterfly.jpg" in paths for _, paths in untagged)
    nothing = cli("collection", "search", photos, "insect", "--words", "nowhere")
    assert (nothing.code, nothing.out, "there is no label 'insect'" in nothing.err) == (0, "", True)


@pytest.mark.skipif(
    not text_encoders.is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`"
)
def test_three_thousand_labels_are_suggested_after_three_commands(cli: Cli, init: Cli, tmp_path: Path) -> None:
    """Ten animals among names of emoji in many languages; memory is that of the command with the networks."""
    animals = (
        "bee",
        "cheetah",
        "dolphin",
        "giraffe",
        "gorilla",
        "kitten",
        "penguin",
        "rhinoceros",
        "squirrel",
        "toucan",
    )
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in animals:
        shutil.copy(get_photo_folder() / f"animal/erase_{name}.jpg", photos / f"{name}.jpg")
    emoji_labels = pq.read_table(get_sample_path("emoji"), columns=["labels"])["labels"].combine_chunks().flatten()
    names = sorted({*emoji_labels.to_pylist()} - {*animals})
    names = [*animals, *names[:: len(names) // 2_990][:2_990]]
    (tmp_path / "names.txt").write_text("\n".join(names), encoding="utf-8")
    assert init(photos, "--labels", tmp_path / "names.txt").code == 0
    command = [sys.executable, "-c", _PEAK_MEMORY, "collection", "apply", photos, "--threads", "1"]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert int(process.stdout.split()[-1]) < 1_000_000  # in kB
    with run_service(photos) as service:
        assert service.get("/api/v1/vocabulary").json()["total"] == 3_000
        items = service.get("/api/v1/items?label_state=suggested").json()["items"]
        details = [service.get(f"/api/v1/items/{item['id']}").json() for item in items]
    best = {item["path"]: item["suggestions"][0]["label"] for item in details}
    assert len(best) >= 9
    assert sum(best.get(f"{name}.jpg") == name for name in animals) >= 4


@pytest.mark.skipif(
    not text_encoders.is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`"
)
def test_free_words_can_be_prepared_where_tags_came_first(cli: Cli, init: Cli, tmp_path: Path) -> None:
    photos = shutil.copytree(get_photo_folder(), tmp_path / "photos")
    init(photos)
    train = ("--features", "colour", "--dim", 4, "--epochs", 1, "--threads", 1)
    assert cli("collection", "train", photos, *train).code == 0
    failed = cli("collection", "search", photos, "zzzqqq")
    assert failed.code == 1
    assert f"; to search in free words, run: wsabie collection apply {photos} --free-words" in failed.err
    applied = cli("collection", "apply", photos, "--free-words", "--threads", 1, "--json").json
    assert (applied["model"], applied["is_zero_shot"]) == (1, False)
    listed = cli("collection", "models", photos, "--json").json["models"]
    assert [(model["method"], model["in_use"]) for model in listed] == [("zero-shot", False), ("full", True)]
    groups = cli("collection", "search", photos, "string instrument", "-k", 3, "--json").json["groups"]
    (near,) = [group for group in groups if group["reason"] == "what the network sees is near 'string instrument'"]
    assert {hit["path"].split("/")[0] for hit in near["hits"]} == {"music"}
    cli("collection", "apply", photos, "--free-words", "--threads", 1)
    assert len(cli("collection", "models", photos, "--json").json["models"]) == 2
    assert cli("collection", "train", photos, *train, "--from-scratch", "--json").json["is_in_use"]


def test_the_gallery_is_recommended_with_its_extra(
    cli: Cli, init: Cli, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remedy = f"wsabie serve {photos}, after: pip install 'wsabie[serve]'"
    monkeypatch.setattr(reports, "find_spec", lambda module: None if module == "fastapi" else True)
    assert remedy in " ".join(init(photos).err.split())
    monkeypatch.undo()
    assert "wsabie[serve]" not in cli("collection", "scan", photos).err
