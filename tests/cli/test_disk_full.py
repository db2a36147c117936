"""Commands on a full disk: one sentence, no loss, and success after space is freed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from full_disk import disk as disk
from full_disk import fill
from wsabie.samples import get_sample_path

Cli = Callable[..., Any]


@pytest.fixture
def emoji(tmp_path: Path) -> Path:
    """300 emoji with all their labels, of which there are more than a thousand."""
    file = tmp_path / "emoji.parquet"
    pq.write_table(pq.read_table(get_sample_path("emoji")).slice(0, 300), file)
    return file


@pytest.fixture
def model(cli: Cli, emoji: Path, disk: Path) -> Path:
    """Model of the emoji on the small disk; it keeps training rows."""
    place = disk / "model"
    shape = ("--dim", 16, "--epochs", 2, "--threads", 1, "--features", "colour")
    assert cli("train", emoji, "--model", place, *shape, "--replay", "auto").code == 0
    return place


def read_contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def assert_disk_full(result: Any) -> None:
    assert result.code == 1
    assert "the disk is full; free some space" in result.err.splitlines()[-1]
    assert "Traceback" not in result.err


@pytest.mark.parametrize("n_free_blocks", [0, 100_000, 300_000])
def test_shards_are_written_after_space_is_freed(cli: Cli, emoji: Path, disk: Path, n_free_blocks: int) -> None:
    rows = emoji.with_name("rows.parquet")
    assert cli("features", "images", emoji, "--out", rows, "--features", "colour").code == 0
    assert cli("shards", rows, "--out", rows.with_name("whole"), "--rows", 100).code == 0
    filler = fill(disk, n_free_blocks)
    command = ("shards", rows, "--out", disk / "rows", "--rows", 100)
    assert_disk_full(cli(*command))
    assert not (disk / "rows" / "manifest.json").exists()
    filler.unlink()
    assert cli(*command).code == 0
    assert read_contents(disk / "rows") == read_contents(rows.with_name("whole"))


def test_failed_update_keeps_the_model(cli: Cli, emoji: Path, disk: Path, model: Path) -> None:
    later, contents_before = emoji.with_name("later.parquet"), read_contents(model)
    pq.write_table(pq.read_table(get_sample_path("emoji")).slice(300, 100), later)
    command = ("update", model, later, "--step", 50, "--epochs", 1, "--threads", 1, "--json")
    filler = fill(disk)
    assert_disk_full(cli(*command))
    assert read_contents(model) == contents_before
    filler.unlink()
    assert [step["rows"] for step in cli(*command).json["steps"]] == [50, 50]


def test_failed_index_leaves_no_files(cli: Cli, emoji: Path, disk: Path, model: Path) -> None:
    contents_before = read_contents(model)
    filler = fill(disk)
    command = ("index", model, "--kind", "int8", "--json")
    assert_disk_full(cli(*command))
    assert read_contents(model) == contents_before
    result = cli("annotate", model, emoji, "-k", 5, "--json")
    assert result.code == 0
    assert re.search(r"\bindex\b", result.err) is None
    filler.unlink()
    assert cli(*command).json["kind"] == "int8"
    assert cli("annotate", model, emoji, "-k", 5, "--json").json["results"] == result.json["results"]
