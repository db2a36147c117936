"""A folder without tags and a list of labels: suggestions by names at the command line."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="collections need SQLAlchemy")

from wsabie.features.encoders import text_encoders
from wsabie.samples import get_photo_folder

Cli = Callable[..., Any]


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
    assert "damage" not in cli("collection", "status", photos, "--check").out
