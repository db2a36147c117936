"""Protection of the user's own files from overwriting, and lists of skipped rows."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsabie.cli.shared_options import RejectOptions
from wsabie.models.joint_embedding.estimator import Wsabie

Cli = Callable[..., Any]


@pytest.fixture
def parquet(cli: Cli, rows: Path, tmp_path: Path) -> Path:
    """The 90 rows as Parquet."""
    assert cli("split", rows, "--out", tmp_path / "parts", "--valid", 0, "--test", 0).code == 0
    return tmp_path / "parts" / "train.parquet"


@pytest.fixture
def photos(pictures: Path, tmp_path: Path) -> Path:
    """A few pictures with their metadata that a test may write among."""
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = (pictures / "metadata.csv").read_text(encoding="utf-8").splitlines()[:21]
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for line in lines[1:]:
        name = line.partition(",")[0]
        (folder / name).write_bytes((pictures / name).read_bytes())
    return folder


def read_contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_output_options_never_overwrite_user_files(
    cli: Cli, model: Path, rows: Path, parquet: Path, photos: Path, tmp_path: Path
) -> None:
    validation, notes = tmp_path / "valid.parquet", tmp_path / "notes.txt"
    shutil.copy(parquet, validation)
    notes.write_text("mine")
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "report.html").write_text("mine")
    picture = photos / "000.webp"
    contents_before = read_contents(tmp_path)
    for words in (
        ("compare", parquet, "--report", parquet),
        ("compare", rows, "--test", parquet, "--rejects", parquet),
        ("compare", rows, "--report", notes),
        ("annotate", model, parquet, "--rejects", parquet),
        ("annotate", model, photos, "--rejects", photos / "rejects.jsonl"),
        ("annotate", model, photos, "--explain", photos),
        ("annotate", model, photos, "--explain", notes),
        ("evaluate", model, parquet, "--rejects", parquet),
        ("evaluate", model, parquet, "--rejects", model / "new.jsonl"),
        ("features", "images", photos, "--out", picture),
        ("features", "images", photos, "--out", photos / "rows.parquet"),
        ("features", "images", photos, "--out", notes),
        ("demo", "--out", tmp_path / "demo"),
        ("train", rows, "--model", tmp_path / "m", "--log", validation),
        ("train", rows, "--model", tmp_path / "m", "--log", rows),
        ("train", rows, "--model", tmp_path / "m", "--valid", parquet, "--rejects", parquet),
        ("train", rows, "--model", tmp_path / "m", "--log", tmp_path / "m" / "log.jsonl"),
        ("train", rows, "--model", tmp_path / "m", "--log", tmp_path / "m.training" / "log.jsonl"),
        ("train", rows, "--model", tmp_path / "m", "--log", tmp_path / "a", "--rejects", tmp_path / "a"),
    ):
        refused = cli(*words)
        assert refused.code == 1, words
        assert refused.err.startswith("wsabie: cannot "), refused.err  # nothing was said before: no work
        assert read_contents(tmp_path) == contents_before


def test_outputs_replace_files_of_their_kind(cli: Cli, rows: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert cli("compare", rows, "--models", "popularity", "--report", tmp_path / "r.html").code == 0
        result = cli(
            "train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1,
            "--log", tmp_path / "log", "--rejects", tmp_path / "rejects",
        )  # fmt: skip
        assert result.code == 0, result.err
    assert [json.loads(line)["epoch"] for line in (tmp_path / "log").read_text().splitlines()] == [0, 1, 0, 1]


def test_training_data_in_the_work_folder_are_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    training_rows = tmp_path / "m.training" / "features.parquet"
    training_rows.parent.mkdir()
    shutil.copy(rows, training_rows)
    refused = cli("train", training_rows, "--model", tmp_path / "m")
    assert refused.code == 1
    assert "which is emptied at the end" in refused.err
    assert training_rows.exists()


def write_bad_rows(rows: Path, n_good: int) -> None:
    lines = [f"{i % 3} {i % 9}:1" for i in range(n_good)]
    rows.write_text("\n".join([f"{n_good + 3} 9 3", *lines, "0 1:nan", "1 2:x", "2 3:inf"]) + "\n")


def test_skipped_rows_are_listed_when_a_later_step_fails(cli: Cli, rows: Path, tmp_path: Path) -> None:
    write_bad_rows(rows, 8)
    listed = tmp_path / "rejects.jsonl"
    for command in (("train", rows, "--model", tmp_path / "m"), ("compare", rows, "--min-rows", 99)):
        result = cli(*command, "--rejects", listed)
        assert result.code == 1
        lines = result.err.splitlines()
        assert lines[-2].startswith("3 skipped: ")
        assert lines[-1].startswith("wsabie: ")
        assert len(listed.read_text().splitlines()) == 3
        listed.unlink()
    write_bad_rows(rows, 80)
    with pytest.MonkeyPatch.context() as patch:

        def stopped(*args: Any, **options: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(Wsabie, "fit", stopped)
        result = cli("train", rows, "--model", tmp_path / "m", "--rejects", listed)
    assert result.code == 130
    assert "3 skipped: " in result.err
    assert len(listed.read_text().splitlines()) == 3


def test_earlier_list_survives_a_command_that_read_nothing(cli: Cli, rows: Path, tmp_path: Path) -> None:
    write_bad_rows(rows, 80)
    listed = tmp_path / "rejects.jsonl"
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 1, "--rejects", listed).code == 0
    assert cli("train", tmp_path / "slip", "--model", tmp_path / "m", "--rejects", listed).code == 1
    assert len(listed.read_text().splitlines()) == 3


def test_unwritable_list_does_not_hide_the_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")

    def work() -> None:
        with RejectOptions(rejects=tmp_path / "file" / "rejects.jsonl").collect_rejects() as rejects:
            rejects.add("a.jpg", "empty file")
            raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        work()
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["features", "train"])
def test_damaged_pictures_are_all_listed(cli: Cli, photos: Path, tmp_path: Path, command: str) -> None:
    for file in photos.glob("*.webp"):
        file.write_bytes(file.read_bytes()[:40])
    listed = tmp_path / "rejects.jsonl"
    words = (
        ("images", photos, "--out", tmp_path / "f") if command == "features" else (photos, "--model", tmp_path / "m")
    )
    result = cli(command, *words, "--threads", 1, "--rejects", listed)
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("wsabie: none of the pictures")
    assert "20 skipped: " in result.err
    assert len(listed.read_text().splitlines()) == 20


def test_skipped_pictures_are_counted_once(cli: Cli, photos: Path, tmp_path: Path) -> None:
    (photos / "000.webp").write_bytes(b"RIFF nonsense")
    words = ("images", photos, "--out", tmp_path / "f", "--n-words", 20, "--size", 32, "--threads", 1, "--json")
    assert cli("features", *words).json["skipped"] == 1


def test_names_that_are_not_utf8_are_accepted(cli: Cli, rows: Path, parquet: Path, tmp_path: Path) -> None:
    """Data may be called so; a result that is would fail when all work is done."""
    data, model = tmp_path / "r\udcff.txt", tmp_path / "model"
    shutil.copy(rows, data)
    assert cli("train", data, "--model", model, "--epochs", 1).code == 0
    assert cli("info", model, "--json").json["source"] == str(data).replace("\udcff", "\\udcff")
    assert cli("shards", data, "--out", tmp_path / "shards").code == 0
    assert cli("export", model, tmp_path / "card", "--as", "huggingface").code == 0
    for words in (
        ("train", rows, "--model", tmp_path / "m\udcff"),
        ("split", parquet, "--out", tmp_path / "p\udcff"),
        ("compare", rows, "--report", tmp_path / "r\udcff.html"),
        ("export", model, tmp_path / "c\udcff", "--as", "huggingface"),
    ):
        refused = cli(*words)
        assert (refused.code, refused.out) == (1, "")
        assert "the name is not UTF-8; give another name" in refused.err
    assert not [file.name for file in tmp_path.iterdir() if "\udcff" in file.name and file != data]
