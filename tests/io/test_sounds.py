"""Folders of sounds: labels by sub-folders, by a table, by tags inside the files; covers beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.tags.audio_tags import AudioTags, read_audio_tags
from wsabie.storage.rejects import Rejects, RowError

mutagen = pytest.importorskip("mutagen", reason="mutagen reads tags")
soundfile = pytest.importorskip("soundfile", reason="soundfile writes the sounds")


def sound(path: Path, **tags: Any) -> Path:
    """Half a second of noise, tagged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, 0.1 * np.random.default_rng(0).standard_normal(4_000), 8_000)
    if tags:
        file = mutagen.File(path, easy=True)
        if file.tags is None:
            file.add_tags()
        for name, value in tags.items():
            file[name] = value
        file.save()
    return path


def test_sub_folders_are_labels(tmp_path: Path) -> None:
    for name in ("jazz/a.wav", "jazz/b.flac", "rock/c.mp3"):
        sound(tmp_path / name)
    source: Any = open_source(tmp_path)
    assert source.modality == "sounds"
    assert [(item.id, item.labels) for item in source] == [
        ("jazz/a.wav", ("jazz",)),
        ("jazz/b.flac", ("jazz",)),
        ("rock/c.mp3", ("rock",)),
    ]


def test_mixed_folders_keep_the_main_modality(tmp_path: Path) -> None:
    from PIL import Image

    for number in range(2):
        sound(tmp_path / "jazz" / f"{number}.wav")
        sound(tmp_path / "rock" / f"{number}.wav")
    Image.new("RGB", (8, 8)).save(tmp_path / "jazz" / "cover.jpg")
    (tmp_path / "jazz" / "raw.psd").touch()
    rejects = Rejects()
    assert len(open_source(tmp_path, rejects=rejects)) == 4
    assert not len(rejects)
    for number in range(3):
        Image.new("RGB", (8, 8)).save(tmp_path / "jazz" / f"{number}.png")
    assert len(open_source(tmp_path)) == 4  # as many pictures as sounds
    for number in range(8):
        Image.new("RGB", (8, 8)).save(tmp_path / "rock" / f"{number}.png")
    source: Any = open_source(tmp_path)
    assert (source.modality, len(source)) == ("pictures", 12)


@pytest.mark.parametrize("ending", ["flac", "ogg", "mp3"])
def test_tags_are_labels_without_sub_folders(ending: str, tmp_path: Path) -> None:
    sound(tmp_path / f"a.{ending}", artist="Nina", genre=["Jazz; Soul"], album="Blue", title="Sea")
    sound(tmp_path / f"b.{ending}", artist=["Nina", "Ella"])
    sound(tmp_path / f"c.{ending}")
    rejects = Rejects()
    source: Any = open_source(tmp_path, rejects=rejects)
    assert [item.labels for item in source] == [("Jazz", "Soul", "Nina"), ("Nina", "Ella")]
    assert [(where, why) for where, why, _ in rejects.listed] == [(f"c.{ending}", "sound without labels")]
    assert read_audio_tags(tmp_path / f"a.{ending}") == AudioTags(("Nina",), ("Blue",), ("Sea",), ("Jazz", "Soul"))


def test_id3_tags_in_wav_are_read(tmp_path: Path) -> None:
    from mutagen.id3 import TCON, TPE1

    path = sound(tmp_path / "a.wav")
    file = mutagen.File(path)
    file.add_tags()
    file.tags.add(TPE1(encoding=3, text=["Nina"]))
    file.tags.add(TCON(encoding=3, text=["Jazz"]))
    file.save()
    assert read_audio_tags(path) == AudioTags(artist=("Nina",), genre=("Jazz",))


def test_unreadable_tags_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.flac"
    path.write_bytes(b"fLaC but no more")
    with pytest.raises(RowError):
        read_audio_tags(path)


def test_table_labels_sounds(tmp_path: Path) -> None:
    sound(tmp_path / "a.wav")
    sound(tmp_path / "b.wav")
    (tmp_path / "metadata.csv").write_text("file_name,labels\na.wav,jazz\n")
    rejects = Rejects()
    source: Any = open_source(tmp_path, rejects=rejects)
    assert [(item.id, item.labels) for item in source] == [("a.wav", ("jazz",))]
    assert [why for _, why, _ in rejects.listed] == ["sound without labels"]


def test_unsupported_sounds_and_options_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.m4a").touch()
    with pytest.raises(InputError, match=r"holds no sounds that can be read, but 1 .* convert them to FLAC"):
        open_source(tmp_path)
    (tmp_path / "a.m4a").write_bytes(b"\0\0\0\x20ftypM4A ")
    with pytest.raises(InputError, match="is a sound of a format that is not supported; convert it to FLAC"):
        open_source(tmp_path / "a.m4a")
    sound(tmp_path / "b.wav")
    with pytest.raises(InputError, match="and no embedded tags of genre and artist"):
        open_source(tmp_path)
    with pytest.raises(InputError, match="sounds have no xmp; say labels_from='tags'"):
        open_source(tmp_path, labels_from="xmp")


def test_missing_mutagen_error_names_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mutagen", None)
    with pytest.raises(InputError, match=r"pip install 'wsabie\[audio\]', or label"):
        read_audio_tags(tmp_path / "a.mp3")
