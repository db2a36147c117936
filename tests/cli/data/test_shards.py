"""`wsabie shards`, and shards as data of the other commands."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabie
from interrupts import heed_ctrl_c
from shard_files import toy_rows
from wsabie.io.formats.parquet_rows import write_parquet_rows

Cli = Callable[..., Any]
CORL = "corel5k_mulan/Corel5k-{}-sparse.arff"


def test_shards_of_rows_train_a_model(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    train, test = (data_dir / CORL.format(side) for side in ("train", "test"))
    result = cli("shards", train, "--out", tmp_path / "train", "--rows", 1000, "--json")
    assert result.code == 0, result.err
    assert {"rows": 4500, "labels": 374, "shards": 5, "values": "uint8"}.items() <= result.json.items()
    again = cli("shards", train, "--out", tmp_path / "train", "--rows", 1000, "--json")
    assert again.json["fingerprint"] == result.json["fingerprint"]
    for side in ("train", "test"):
        cli("shards", data_dir / CORL.format(side), "--out", tmp_path / side, "--rows", 1000)
    model = cli("train", tmp_path / "train", "--model", tmp_path / "m", "--epochs", 10, "--seed", 1, "--json")
    assert model.code == 0, model.err
    assert (model.json["rows"], model.json["validation_rows"], model.json["labels"]) == (4050, 450, 374)
    assert model.json["validation_map"] > 0.3
    evaluation, same = (cli("evaluate", tmp_path / "m", data, "--json") for data in (test, tmp_path / "test"))
    assert evaluation.json["metrics"]["MAP"] == pytest.approx(same.json["metrics"]["MAP"], abs=1e-9)
    assert evaluation.json["metrics"]["MAP"] > 0.3
    refused = cli("evaluate", tmp_path / "m", tmp_path / "train")
    assert refused.code == 1
    assert "4,050 of 4,500 rows" in refused.err
    lines = cli("annotate", tmp_path / "m", tmp_path / "test", "-k", 2).out.splitlines()
    assert len(lines) == 500


def test_other_kinds_of_model_read_all_shards(cli: Cli, rows: Path, tmp_path: Path) -> None:
    cli("shards", rows, "--out", tmp_path / "shards")
    for kind in ("popularity", "nearest"):
        result = cli("train", tmp_path / "shards", "--model", tmp_path / kind, "--kind", kind, "--json")
        assert result.code == 0, result.err
        assert result.json["rows"] == 90


def test_model_of_shards_equals_the_model_of_their_rows(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """Few rows are one block: the same bits as in memory, where the rows are in the same order."""
    cli("shards", rows, "--out", tmp_path / "shards")
    options = "--hold-out", 0, "--epochs", 3, "--dim", 8
    result = cli("train", tmp_path / "shards", "--model", tmp_path / "a", *options)
    assert result.code == 0, result.err
    assert "3 labels from 90 rows" in result.out
    results = cli("annotate", tmp_path / "a", rows, "-k", 1, "--json").json["results"]
    assert [int(row["labels"][0][0]) for row in results] == [i % 3 for i in range(90)]


def test_model_of_shards_is_updated(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """With a buffer it learns more rows, and another training on shards begins with it."""
    cli("shards", rows, "--out", tmp_path / "shards")
    first = "train", tmp_path / "shards", "--epochs", 5, "--dim", 8, "--threads", 1, "--hold-out", 0, "--model"
    assert cli(*first, tmp_path / "m", "--replay", 30).code == 0
    info = cli("info", tmp_path / "m", "--json").json
    assert (info["buffer_rows"], info["stream_rows"]) == (30, 90)
    header, *lines = rows.read_text().splitlines()
    new = [line.replace(line.split()[0], "3", 1) for line in lines[:12]]
    (tmp_path / "more.txt").write_text("\n".join([f"{len(new)} {header.split()[1]} 4", *new]) + "\n")
    result = cli("update", tmp_path / "m", tmp_path / "more.txt", "--json")
    assert result.code == 0, result.err
    assert result.json["steps"][0]["new_labels"] == 1
    hardly = "--learning-rate", 1e-9, "--epochs", 1
    assert cli(*first, tmp_path / "again", "--init-model", tmp_path / "m", *hardly).code == 0
    original, again = (wsabie.load(tmp_path / name).model for name in ("m", "again"))
    assert np.allclose(again.space_.features, original.space_.features, atol=1e-5)
    assert np.allclose(
        again.label_vectors, original.label_vectors[original.vocabulary_.ids(list(again.vocabulary_))], atol=1e-5
    )


def test_shards_take_validation_data_and_drop_rare_labels(cli: Cli, rows: Path, tmp_path: Path) -> None:
    text = rows.read_text().replace("90 9 3", "91 9 5") + "4 1:1\n"
    (tmp_path / "more.txt").write_text(text)
    cli("shards", tmp_path / "more.txt", "--out", tmp_path / "shards")
    where = "--model", tmp_path / "m", "--epochs", 2
    result = cli("train", tmp_path / "shards", *where, "--valid", rows, "--min-rows", 2, "--json")
    assert result.code == 0, result.err
    assert (result.json["labels"], result.json["labels_dropped"], result.json["rows_without_labels"]) == (3, 2, 1)
    assert result.json["validation_rows"] == 90
    few = cli("train", tmp_path / "shards", *where, "--min-rows", 50)
    assert (few.code, few.err.strip().splitlines()[-1]) == (
        1,
        "wsabie: no label has 50 training rows; lower --min-rows, or give more rows",
    )


@pytest.mark.parametrize(("share", "side"), [(0.1, "validation"), (0.9, "training")])
def test_holdout_without_a_group_is_refused(cli: Cli, tmp_path: Path, share: float, side: str) -> None:
    """All rows are of one group, whose hash lies between; as from memory."""
    rows = replace(toy_rows(), groups=["the only one"] * 600)
    write_parquet_rows(rows, tmp_path / "rows.parquet")
    cli("shards", tmp_path / "rows.parquet", "--out", tmp_path / "shards")
    message = f"wsabie: the {side} side of the split would be empty; use other fractions or more rows"
    for source in ("shards", "rows.parquet"):
        result = cli("train", tmp_path / source, "--model", tmp_path / "m", "--hold-out", share)
        assert (result.code, result.err.strip().splitlines()[-1]) == (1, message)


def test_info_verifies_shards(cli: Cli, rows: Path, tmp_path: Path) -> None:
    cli("shards", rows, "--out", tmp_path / "shards", "--rows", 40)
    facts = cli("info", tmp_path / "shards", "--verify", "--json").json
    assert {"rows": 90, "features": 9, "labels": 3, "pairs": 90, "verified": True}.items() <= facts.items()
    assert "uint8" in cli("info", tmp_path / "shards").out
    shard = next((tmp_path / "shards").glob("rows-*"))
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    assert cli("info", tmp_path / "shards").code == 0
    message = f"wsabie: {shard} is damaged; restore it from a copy, or delete "
    for words, again in (
        (("info", tmp_path / "shards", "--verify"), "the folder and make the shards again with `wsabie shards`"),
        (
            ("shards", rows, "--out", tmp_path / "shards", "--rows", 40),
            f"{tmp_path / 'shards'} and give the command again",
        ),
    ):
        result = cli(*words)
        assert (result.code, result.err.strip().splitlines()[-1]) == (1, message + again)
    assert "--epochs" in cli("info", tmp_path / "shards", "--epochs").err


def test_bad_conversions_are_refused(cli: Cli, rows: Path, pictures: Path, tmp_path: Path) -> None:
    inside = cli("shards", pictures, "--out", pictures / "shards")
    assert "lies in, the data" in inside.err
    result = cli("shards", pictures, "--out", tmp_path / "shards")
    assert "extract features first with `wsabie features`" in result.err
    assert not (tmp_path / "shards").exists()
    (tmp_path / "text.csv").write_text("mine")
    result = cli("shards", rows, "--out", tmp_path / "text.csv")
    assert (result.code, result.err) == (1, f"wsabie: {tmp_path / 'text.csv'} is a file; give the name of a folder\n")
    assert (tmp_path / "text.csv").read_text() == "mine"
    cli("shards", rows, "--out", tmp_path / "shards")
    for flag, value in (("--size", 100), ("--items", "boxes")):
        refused = cli("train", tmp_path / "shards", "--model", tmp_path / "m", flag, value)
        assert refused.code == 1
        assert flag in refused.err
    assert cli("info", tmp_path / "shards", "--verify").code == 0
    assert "--verify" in cli("info", rows.parent, "--verify").err


def test_bad_rows_are_listed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("1 2:1\n1 2:1 2:5\n2 3:1\n")
    words = "shards", tmp_path / "rows.txt", "--out", tmp_path / "a", "--rejects", tmp_path / "r.jsonl", "--json"
    for _ in ("writes", "finds them written"):
        result = cli(*words)
        assert (result.json["rows"], result.json["skipped"]) == (2, 1)
        assert "feature given twice" in (tmp_path / "r.jsonl").read_text()
    assert "run without --strict" in cli(*words, "--strict").err
    assert "run without --strict" in cli("shards", tmp_path / "rows.txt", "--out", tmp_path / "b", "--strict").err


def test_ctrl_c_before_the_first_shard_is_reported(tmp_path: Path) -> None:
    """A run holds all of these rows, so that none is there while they are read."""
    with (tmp_path / "rows.txt").open("w") as out:
        out.writelines(f"{i % 50} {i % 7}:1 {i % 11 + 7}:1\n" for i in range(200_000))
    words = [sys.executable, "-m", "wsabie", "shards", str(tmp_path / "rows.txt"), "--out", str(tmp_path / "out")]
    run = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)
    deadline = time.monotonic() + 120
    work = tmp_path / "out" / "unfinished"
    while not (work / "work.json").exists() and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    if not list((tmp_path / "out").rglob("r*-*.safetensors")):  # it may have been quicker
        message = "stopped before anything was finished, so the same command starts from the beginning"
        # of `python -m` Python itself makes a death by the signal where that came inside an exec, as of a dataclass
        assert (run.returncode in (130, -signal.SIGINT), message in " ".join(err.split())) == (True, True)
    assert subprocess.run(words, check=False, capture_output=True).returncode == 0


def test_ctrl_c_keeps_finished_shards(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with (tmp_path / "rows.txt").open("w") as out:
        for i in range(60_000):
            out.write(f"{i % 50} " + " ".join(f"{j}:1" for j in np.unique(rng.integers(0, 500, 40))) + "\n")
    words = [
        sys.executable,
        "-m",
        "wsabie",
        "shards",
        tmp_path / "rows.txt",
        "--out",
        tmp_path / "out",
        "--rows",
        "2000",
    ]
    run = subprocess.Popen([*map(str, words)], stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "out").glob("rows-*")) and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    if run.returncode != 0:  # it may have been quicker
        assert "the same command again goes on from it" in " ".join(err.split())
        assert list((tmp_path / "out").glob("rows-*"))
    assert subprocess.run([*map(str, words)], check=False, capture_output=True).returncode == 0
    assert not (tmp_path / "out" / "unfinished").exists()
