"""`wsabie split`: sides, left-out views, dropped rows and refused options."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from wsabie.io.formats import parquet_rows

Cli = Callable[..., Any]


def test_ids_that_look_like_views_lose_no_row(cli: Cli, tmp_path: Path) -> None:
    lines = [f"song {i}{more}\t{'abc'[i % 3]}" for i in range(50) for more in ("", "#2")]
    (tmp_path / "songs.tsv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "parts"
    result = cli("split", tmp_path / "songs.tsv", "--out", out, "--json")
    assert result.json == {"schema": 1, "out": str(out), "train": 80, "valid": 10, "test": 10, "left_out": 0}
    assert "left out" not in result.err


def test_views_left_out_are_counted(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / "parts"
    assert cli("features", "images", pictures, "--out", rows, "--n-words", 20, "--size", 32, "--augment", 2).code == 0
    result = cli("split", rows, "--out", out, "--valid", 0.2, "--test", 0.2, "--json")
    assert result.json["left_out"] == 2 * (result.json["valid"] + result.json["test"])
    assert f"{result.json['left_out']} further views of validation and test pictures left out" in result.err
    again = cli("split", out / "train.parquet", "--out", tmp_path / "again", "--json").json
    assert again["left_out"] == 2 * (again["valid"] + again["test"])  # the parts still know their views
    assert pq.read_table(out / "test.parquet").num_rows == result.json["test"]


def test_pictures_are_split_before_feature_extraction(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    result = cli("split", pictures, "--out", parts, "--valid", 0.2, "--test", 0.2)
    assert result.code == 0, result.err
    tables = {side: pq.read_table(parts / f"{side}.parquet").to_pylist() for side in ("train", "valid", "test")}
    assert result.out.strip().endswith(", ".join(f"{side} {len(rows)} pictures" for side, rows in tables.items()))
    groups = {side: {row["group"] for row in rows} for side, rows in tables.items()}
    assert not (groups["train"] | groups["valid"]) & groups["test"]
    assert sorted(row["id"] for rows in tables.values() for row in rows) == [f"{n:03d}.webp" for n in range(120)]
    assert all(row["image"] == (pictures / row["id"]).read_bytes() for row in tables["test"])
    words = ("--n-words", 20, "--size", 32, "--dim", 4, "--epochs", 1, "--threads", 1)
    trained = cli(
        "train", parts / "train.parquet", "--valid", parts / "valid.parquet", "--model", tmp_path / "m", *words
    )
    assert trained.code == 0, trained.err
    assert cli("evaluate", tmp_path / "m", parts / "test.parquet", "--threads", 1).code == 0


@pytest.mark.parametrize("option", [("--drop-near", 0.9), ("--by", "burst")])
def test_comparisons_of_rows_need_features(cli: Cli, pictures: Path, tmp_path: Path, option: tuple[str, Any]) -> None:
    refused = cli("split", pictures, "--out", tmp_path / "parts", *option)
    assert refused.code == 1
    assert "extract features first: wsabie features images" in refused.err
    assert not (tmp_path / "parts").exists()


def test_split_does_not_overwrite_its_input(cli: Cli, rows: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    assert cli("split", rows, "--out", parts).code == 0
    contents_before = {file: file.read_bytes() for file in parts.iterdir()}
    for side in ("train", "test"):
        refused = cli("split", parts / f"{side}.parquet", "--out", parts)
        assert refused.code == 1
        assert "it is read by this command and would be lost" in refused.err
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "dropped.jsonl").write_text("my notes")
    assert "would be lost" in cli("split", rows, "--out", tmp_path / "own").err
    assert {file: file.read_bytes() for file in parts.iterdir()} == contents_before


def test_dropped_near_rows_are_listed(cli: Cli, tmp_path: Path) -> None:
    """Line i has the features of line i + 20: whichever of the two is held out is too near to the other."""
    lines = [f"{i % 2} {i % 20}:1 {40 + i % 20}:2" for i in range(40)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    command = ("split", tmp_path / "a.txt", "--out", tmp_path / "parts", "--test", 0.2, "--valid", 0)
    report = cli(*command, "--drop-near", 0.99, "--json").json
    listed = [json.loads(line) for line in (tmp_path / "parts" / "dropped.jsonl").read_text().splitlines()]
    assert report["left_out"] == len(listed) > 0
    assert report["train"] + report["test"] + len(listed) == 40
    for row in listed:
        neighbour, similarity = row["detail"].split()
        assert abs(int(row["where"]) - int(neighbour)) == 20
        assert float(similarity) > 0.99
    assert cli(*command).code == 0
    assert not (tmp_path / "parts" / "dropped.jsonl").exists()


def test_interrupted_split_leaves_the_old_one_whole(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New training rows beside old test rows would let a model be judged on what it learned."""
    rows, out = tmp_path / "a.txt", tmp_path / "parts"
    rows.write_text("".join(f"{i % 2} {i}:1 {i + 1}:1\n" for i in range(40)))
    assert cli("split", rows, "--out", out, "--valid", 0.2, "--test", 0.2, "--drop-near", 0.99).code == 0
    contents_before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert set(contents_before) == {"train.parquet", "valid.parquet", "test.parquet", "dropped.jsonl"}
    write, written = parquet_rows.write_parquet_rows, []

    def stop_at_the_third(part: Any, path: Path) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        write(part, path)
        written.append(path)

    monkeypatch.setattr(parquet_rows, "write_parquet_rows", stop_at_the_third)
    assert cli("split", rows, "--out", out, "--valid", 0.2, "--test", 0.2, "--seed", 1).code == 130
    assert len(written) == 2
    assert {file.name: file.read_bytes() for file in out.iterdir()} == contents_before


def test_leftovers_of_a_killed_split_are_removed(cli: Cli, rows: Path, tmp_path: Path) -> None:
    left_over = tmp_path / "parts" / ".split-abc"
    left_over.mkdir(parents=True)
    (left_over / "train.parquet").write_bytes(b"half")
    assert cli("split", rows, "--out", tmp_path / "parts").code == 0
    assert sorted(file.name for file in (tmp_path / "parts").iterdir()) == [
        "test.parquet", "train.parquet", "valid.parquet"
    ]  # fmt: skip


def test_full_disk_gives_one_sentence(cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(part: Any, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(parquet_rows, "write_parquet_rows", full)
    refused = cli("split", rows, "--out", tmp_path / "parts")
    assert refused.code == 1
    assert "the disk is full; free some space" in refused.err.splitlines()[-1]
    assert "Traceback" not in refused.err
    assert not list((tmp_path / "parts").iterdir())


def test_dropped_list_names_the_side_of_the_near_row(cli: Cli, tmp_path: Path) -> None:
    """Each of 30 lines comes three times: copies of a training row leave, and test copies of validation rows."""
    (tmp_path / "a.txt").write_text("".join(f"{i % 2} {i % 30}:1 {40 + i % 30}:2\n" for i in range(90)))
    command = ("split", tmp_path / "a.txt", "--out", tmp_path / "parts", "--by", "row", "--test", 0.4, "--valid", 0.4)
    assert cli(*command, "--drop-near", 0.99).code == 0
    listed = [json.loads(line) for line in (tmp_path / "parts" / "dropped.jsonl").read_text().splitlines()]
    assert {row["reason"] for row in listed} == {"too near a training row", "too near a validation row"}


@pytest.fixture
def tags(tmp_path: Path) -> Path:
    """Pictures known by their ids: one half has tags a to f, the other g to l, each all but one of them."""
    file = tmp_path / "tags.tsv"
    lines = [
        f"{side}{i}\t{tag}" for side in ("abcdef", "ghijkl") for i in range(30) for tag in side if tag != side[i % 6]
    ]
    file.write_text("\n".join(lines) + "\n")
    return file


def test_leave_one_label_out_sides_train_and_evaluate(cli: Cli, tags: Path, tmp_path: Path) -> None:
    parts, model = tmp_path / "parts", tmp_path / "model"
    result = cli("split", tags, "--out", parts, "--by", "one-label", "--json")
    assert result.code == 0, result.err
    pairs = {"train": 240, "test": 60}
    assert result.json == {
        "schema": 1, "out": str(parts), "train": 60, "test": 60, "pairs": pairs, "labels_without_training": 0
    }  # fmt: skip
    words = ("--dim", 8, "--epochs", 60, "--hold-out", 0, "--threads", 1, "--set", "init=random")
    assert cli("train", parts / "train.parquet", "--model", model, *words).code == 0
    command = ("evaluate", model, parts / "test.parquet", "--threads", 1, "--json")
    assert "--allow-overlap" in cli(*command).err  # the rows themselves were trained on
    with_overlap = cli(*command, "--allow-overlap").json["metrics"]
    out = cli(*command, "--exclude", parts / "train.parquet").json["metrics"]
    assert with_overlap["p@1"] == 0
    assert out["recall@5"] == 1  # two tags of the own half are left, and the six of the other one
    assert out["AUC"] > 0.8
    assert with_overlap["MAP"] < 0.3 < out["MAP"]


def test_leave_one_label_out_refuses_bad_options(cli: Cli, tags: Path, pictures: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    ask = ("split", tags, "--out", parts)
    assert "--min-labels is for --by one-label" in cli(*ask, "--min-labels", 3).err
    assert "leave --drop-near out" in cli(*ask, "--by", "one-label", "--drop-near", 0.9).err
    assert "no row has 9 labels or more" in cli(*ask, "--by", "one-label", "--min-labels", 9).err
    assert "extract features first" in cli("split", pictures, "--out", parts, "--by", "one-label").err
    assert cli(*ask, "--by", "one-label", "--valid", 0.5).out.strip() == (
        f"{parts}: train 210 labels of 60 rows, test 60 labels of 60 rows, valid 30 labels of 30 rows"
    )
    assert "would stay beside a split without rows for it" in cli(*ask, "--by", "one-label").err
    assert "was trained on" not in cli("split", tags, "--out", tmp_path / "new").err


def test_labels_without_a_training_row_are_reported(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\tsea\na\tsea-weed\n")
    result = cli("split", tmp_path / "t.tsv", "--out", tmp_path / "parts", "--by", "one-label")
    assert "1 label without a training row: every row that has them lost them" in result.err


def test_excluded_data_must_cover_the_same_rows(cli: Cli, tags: Path, tmp_path: Path) -> None:
    parts, model = tmp_path / "parts", tmp_path / "model"
    cli("split", tags, "--out", parts, "--by", "one-label")
    assert cli("train", parts / "train.parquet", "--model", model, "--epochs", 1, "--hold-out", 0).code == 0
    (tmp_path / "other.tsv").write_text("x\ta\n")
    command = ("evaluate", model, parts / "test.parquet")
    assert "has a label in" in cli(*command, "--exclude", tmp_path / "other.tsv").err
    result = cli(*command, "--exclude", tags)
    assert result.code == 1
    assert "60 pairs of" in result.err
    assert "no row has a positive label among the candidates" in result.err
