"""Small real data sets on disk, and a runner of commands."""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from emoji_files import write_emoji
from entity_declarations import MUSIC, PAIRS, SPEAKERS, TAKES
from papers.__main__ import run as run_papers
from wsabie.cli.main import run


class CliResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., CliResult]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """cli("train", data, "--model", folder) -> exit code and what was printed."""
    return make_caller("wsabie", run, monkeypatch, capfd)


@pytest.fixture
def papers_cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """papers_cli("list") -> exit code and what was printed."""
    return make_caller("python -m papers", run_papers, monkeypatch, capfd)


def make_caller(
    program: str, run: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Cli:
    """Return what runs a program with words, as the shell would."""

    def call(*words: object) -> CliResult:
        monkeypatch.setattr(sys, "argv", [program, *map(str, words)])
        capfd.readouterr()
        code = 0
        with patch.dict(os.environ):  # a command changes those of its process
            try:
                run()
            except SystemExit as stop:
                code = int(stop.code or 0)
        captured = capfd.readouterr()
        return CliResult(code, captured.out, captured.err)

    return call


@pytest.fixture
def init(cli: Cli, database: str | None) -> Cli:
    """init(folder, ...): `wsabie collection init`, in each of the databases."""
    where = () if database is None else ("--database", database)
    return lambda folder, *words: cli("collection", "init", folder, *where, *words)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """An XC file of 90 rows: three labels, each with words of its own."""
    lines = ["90 9 3"]
    for i in range(90):
        label = i % 3
        lines.append(f"{label} " + " ".join(f"{3 * label + (i + k) % 3}:{1 + k}" for k in range(2)))
    file = tmp_path / "rows.txt"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 emoji as files with metadata.csv, as somebody would bring them."""
    folder = tmp_path_factory.mktemp("pictures")
    write_emoji(folder, 120, 12)
    return folder


@pytest.fixture(scope="session")
def model(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small picture model, trained through the command."""
    folder = tmp_path_factory.mktemp("models") / "emoji"
    words = ["wsabie", "train", pictures, "--model", folder, "--n-words", "100", "--dim", "16", "--epochs", "20"]
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", [*map(str, words), "--threads", "1"])
        run()
    assert (folder / "config.json").exists(), "training failed"
    return folder


@pytest.fixture(scope="session")
def music(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Takes 0 to 4 (test) and 5 to 8 of four digits by three speakers, as published, and declarations of both sides."""
    for module in ("soundfile", "soxr"):
        pytest.importorskip(module, reason=f"{module} is needed for sounds")
    root = tmp_path_factory.mktemp("music")
    (root / "digits" / "recordings").mkdir(parents=True)
    shutil.copy(data_dir / "fsdd" / "metadata.txt", root / "digits")
    for speaker in SPEAKERS:
        for digit in range(4):
            for take in TAKES:
                name = f"{digit}_{speaker}_{take}.wav"
                shutil.copy(data_dir / "fsdd" / "recordings" / name, root / "digits" / "recordings")
    for side in ("train", "test"):
        text = MUSIC.replace("SIDE", side)
        (root / f"{side}.toml").write_text(
            text if side == "train" else text.replace('features = "mfcc"\nn_words = 200', "")
        )
    return root


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """Artists, what they are like and what they play, as pair lists beside a declaration."""
    artists = {"rock": ["Ann", "Bob", "Cid", "Dee", "Eli", "Flo"], "jazz": ["Gil", "Han", "Ida", "Joe", "Kay", "Leo"]}
    near = [f"{a}\t{b}" for group in artists.values() for a in group for b in group if a < b]
    (tmp_path / "near.tsv").write_text("\n".join(near) + "\n")
    genres = [f"{artist}\t{tag}" for genre, group in artists.items() for artist in group for tag in (genre, "music")]
    (tmp_path / "genres.tsv").write_text("\n".join(genres) + "\n")
    (tmp_path / "lists.toml").write_text(PAIRS)
    return tmp_path


@pytest.fixture(scope="session")
def cars(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 and 10 pictures of the car parts, as they were published."""
    root = tmp_path_factory.mktemp("cars")
    for side, n in (("trainingset", 30), ("testset", 10)):
        source = data_dir / "car_parts" / side
        annotations = json.loads((source / "annotations.json").read_text())
        images = annotations["images"][:n]
        image_ids = {image["id"] for image in images}
        marked = [annotation for annotation in annotations["annotations"] if annotation["image_id"] in image_ids]
        (root / side / "JPEGImages").mkdir(parents=True)
        for image in images:
            shutil.copy(source / image["path"], root / side / "JPEGImages")
        content = {**annotations, "images": images, "annotations": marked}
        (root / side / "annotations.json").write_text(json.dumps(content))
    return root
