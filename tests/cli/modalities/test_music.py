"""Published collections of sounds through the commands: recordings of spoken digits in two layouts."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsabie.io.datasets.attribute_recognition import read_attributes
from wsabie.io.datasets.magnatagatune import ANNOTATIONS, INFO

soundfile = pytest.importorskip("soundfile", reason="soundfile decodes, and writes the clips")
pytest.importorskip("soxr", reason="soxr changes rates")

Cli = Callable[..., Any]
SPEAKERS, TAGS = ("george", "theo"), ("zero", "one", "two", "george", "theo", "unused")


@pytest.fixture(scope="module")
def clips(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MagnaTagATune's layout: MP3 tagged with digit and speaker, take 0 in a folder for testing, and an empty clip."""
    root, recordings = tmp_path_factory.mktemp("magnatagatune"), data_dir / "fsdd" / "recordings"
    annotations, info = [("clip_id", *TAGS, "mp3_path")], [("clip_id", "title", "artist", "album", "mp3_path")]
    for take in range(9):
        for speaker in SPEAKERS:
            for digit in range(3):
                name = f"{'0f'[take == 0]}/{speaker}-{digit}-{take}-0-29.mp3"
                samples, rate = soundfile.read(recordings / f"{digit}_{speaker}_{take}.wav")
                (root / name).parent.mkdir(exist_ok=True)
                soundfile.write(root / name, samples, rate, format="MP3")
                flags = (str(int(tag in (TAGS[digit], speaker))) for tag in TAGS)
                annotations.append((str(len(info)), *flags, name))
                info.append((str(len(info)), f"take {take}", speaker, "digits", name))
    (root / "0" / "empty-0-29.mp3").touch()
    annotations.append(("999", "1", *"00000", "0/empty-0-29.mp3"))
    for file, rows in ((ANNOTATIONS, annotations), (INFO, info)):
        (root / file).write_text("".join("\t".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    return root


def test_tagged_clips_train_a_model(cli: Cli, clips: Path, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    words = ("--model", tmp_path / "m", "--dim", 16, "--epochs", 20, "--features", "mfcc", "--rejects", rejects)
    trained = cli("train", clips, *words)
    assert trained.code == 0, trained.err
    assert "empty-0-29.mp3" in rejects.read_text()
    assert cli("info", tmp_path / "m", "--json").json["labels"] == 5  # one tag is unused
    result = cli("annotate", tmp_path / "m", clips / "f", "-k", 2, "--json")
    assert result.code == 0, result.err
    tagged = set(read_attributes(clips).pairs["tag"])
    hits = [{(f"f/{row['id']}", name) for name, _ in row["labels"]} <= tagged for row in result.json["results"]]
    assert len(hits) == 6
    assert sum(hits) >= 5


def test_attributes_of_every_kind_share_the_ids_of_the_clips(clips: Path) -> None:
    related = read_attributes(clips)
    counts = {kind: (len(pairs), len({name for _, name in pairs})) for kind, pairs in related.pairs.items()}
    assert counts == {"tag": (109, 5), "artist": (54, 2), "album": (54, 1)}
    assert [(clips / name).is_file() for name in related.select_side("test").ids] == [True] * 6


def test_published_spoken_digits_train_a_model(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    for side, takes in (("train", range(5, 13)), ("test", range(5))):
        folder = tmp_path / side / "recordings"
        folder.mkdir(parents=True)
        shutil.copy(data_dir / "fsdd" / "metadata.txt", folder.parent)
        for name in (f"{digit}_theo_{take}.wav" for digit in range(3) for take in takes):
            shutil.copy(data_dir / "fsdd" / "recordings" / name, folder)
    model = tmp_path / "m"
    trained = cli("train", tmp_path / "train", "--model", model, "--dim", 8, "--epochs", 20, "--features", "mfcc")
    assert trained.code == 0, trained.err
    result = cli("evaluate", model, tmp_path / "test", "--json")
    assert result.json["metrics"]["p@1"] > 0.6  # chance is a third
    annotation = cli("annotate", model, tmp_path / "test", "-k", 1, "--json")
    assert len(annotation.json["results"]) == 15


def test_damaged_clip_table_gives_one_sentence(cli: Cli, clips: Path, tmp_path: Path) -> None:
    (tmp_path / INFO).write_text((clips / INFO).read_text())
    (tmp_path / ANNOTATIONS).write_text('"clip_id"\t"slow"\n"1"\t"1"\n')
    result = cli("train", tmp_path, "--model", tmp_path / "m")
    assert result.code == 1
    assert f"{ANNOTATIONS}:1 has no column 'mp3_path'" in result.err
    assert "Traceback" not in result.err
