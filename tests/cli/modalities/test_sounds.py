"""From a folder of sounds to annotations, through the commands, on spoken digits."""

import contextlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from wsabie.cli.main import run

pytest.importorskip("soundfile", reason="soundfile decodes")
pytest.importorskip("soxr", reason="soxr changes rates")

Cli = Callable[..., Any]
SPEAKERS, DIGITS, TAKES = ("george", "theo"), range(3), range(9)


@pytest.fixture(scope="module")
def digits(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Takes 1 to 8 of three digits by two speakers, in folders that say which; take 0 in a folder of its own."""
    root, recordings = tmp_path_factory.mktemp("digits"), data_dir / "fsdd" / "recordings"
    for speaker in SPEAKERS:
        for digit in DIGITS:
            for take in TAKES:
                folder = root / ("train" if take else "test") / speaker / f"digit {digit}"
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(recordings / f"{digit}_{speaker}_{take}.wav", folder)
    return root


@pytest.fixture(scope="module")
def model(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained through the command."""
    folder = tmp_path_factory.mktemp("model") / "m"
    words = ["wsabie", "train", digits / "train", "--model", folder, "--dim", 16, "--epochs", 20]
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", [*map(str, words)])
        run()
    assert (folder / "config.json").exists(), "training failed"
    return folder


def test_new_recordings_are_annotated(cli: Cli, model: Path, digits: Path) -> None:
    """Two labels each: the digit and the speaker; chance finds both in one of ten."""
    result = cli("annotate", model, digits / "test", "-k", 2, "--json")
    assert result.code == 0, result.err
    hits = [set(Path(row["id"]).parts) >= {name for name, _ in row["labels"]} for row in result.json["results"]]
    assert len(hits) == 6
    assert sum(hits) >= 5
    evaluation = cli("evaluate", model, digits / "test", "--json")
    assert evaluation.json["metrics"]["MAP"] > 0.9


def test_single_sound_is_annotated_and_a_bad_one_listed(cli: Cli, model: Path, digits: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.wav"
    bad.write_text("no sound")
    good = next((digits / "test").rglob("*.wav"))
    result = cli("annotate", model, good, bad, "--rejects", tmp_path / "rejects.jsonl")
    assert result.code == 0
    assert len(result.out.splitlines()) == 1
    assert "not a sound" in (tmp_path / "rejects.jsonl").read_text()


def test_info_reports_the_extractor_of_sounds(cli: Cli, model: Path) -> None:
    facts = cli("info", model, "--json").json
    assert (facts["sounds"], facts["pictures"]) == (True, False)
    assert (facts["extractor"], facts["rate"]) == ("mfcc,sai", 8_000)


def test_feature_rows_of_sounds_are_a_source(cli: Cli, digits: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    result = cli("features", "audio", digits / "train", "--out", rows, "--features", "mfcc", "--n-words", 40, "--json")
    assert result.code == 0, result.err
    assert result.json["rows"] == pq.read_metadata(rows).num_rows == 48
    again = cli(
        "features", "audio", digits / "test", "--out", tmp_path / "t.parquet", "--extractor", f"{rows}.extractor"
    )
    assert "6 rows of 40 features (mfcc)" in again.out
    comparison = cli("compare", rows, "--test", tmp_path / "t.parquet", "--models", "wsabie,nearest", "--json")
    assert comparison.code == 0, comparison.err


def test_comparison_on_sounds_writes_a_report(cli: Cli, digits: Path, tmp_path: Path) -> None:
    words = ("--features", "mfcc", "--n-words", 40, "--models", "nearest,popularity", "--report", tmp_path / "r.html")
    result = cli("compare", digits / "train", *words)
    assert result.code == 0, result.err
    assert (tmp_path / "r.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--features", "colour"), "colour takes pictures and"),
        (("--augment", "2"), "sounds have no further views"),
        (("--size", "64"), "size is not an option of mfcc,sai"),
        (("--sample-rate", "8000", "--features", "mfcc,hog"), "names features of pictures and of sounds"),
    ],
)
def test_bad_arguments_give_one_sentence(
    cli: Cli, digits: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    result = cli("train", digits / "train", "--model", tmp_path / "m", *words)
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err


def test_model_of_sounds_refuses_pictures(cli: Cli, model: Path, pictures: Path) -> None:
    result = cli("annotate", model, next(pictures.glob("*.webp")))
    assert result.code == 1
    assert "is a model of sounds and" in result.err


def test_sound_errors_name_the_features_command(
    cli: Cli, model: Path, digits: Path, pictures: Path, tmp_path: Path
) -> None:
    split = cli("split", digits / "train", "--out", tmp_path / "s")
    assert split.code == 1
    assert f"extract features first: wsabie features audio {digits / 'train'}" in split.err
    wrong = cli("features", "images", digits / "train", "--out", tmp_path / "f.parquet")
    assert wrong.code == 1
    assert f"holds sounds; run: wsabie features audio {digits / 'train'}" in wrong.err
    sound, picture = next((digits / "test").rglob("*.wav")), next(pictures.glob("*.webp"))
    mixed = cli("annotate", model, sound, picture)
    assert mixed.code == 1
    assert f"{picture} holds pictures" in mixed.err


def test_wsabie_table_1_takes_sounds(papers_cli: Cli, digits: Path, tmp_path: Path) -> None:
    result = papers_cli("wsabie-table-1", "--data", digits / "train", "--out", tmp_path / "t")
    assert result.code == 0, result.err
