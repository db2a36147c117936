"""`wsabie annotate --out`: output files for every input format and block size."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import wsabie
from wsabie.io.formats import parquet_rows, svmlight
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.parsers.text_files import iterate_line_blocks
from wsabie.workflows import batch_inference

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def corel(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of Corel5k's training rows (m), and the test rows as ARFF, text and Parquet."""
    folder = tmp_path_factory.mktemp("corel")
    train, test = (data_dir / "corel5k_mulan" / f"Corel5k-{side}-sparse.arff" for side in ("train", "test"))
    words = ("train", train, "--model", folder / "m", "--epochs", 4, "--threads", 1)
    subprocess.run([sys.executable, "-m", "wsabie", *map(str, words)], capture_output=True, check=True)
    for name in (test.name, "Corel5k.xml"):
        shutil.copy(test.with_name(name), folder / name)
    (folder / test.name).rename(folder / "test.arff")
    (folder / "Corel5k.xml").rename(folder / "test.xml")
    rows = wsabie.open_source(test)
    write_parquet_rows(rows, folder / "test.parquet")
    with (folder / "test.txt").open("w") as file:
        for row in rows.X.tocsr():
            file.write("0 " + " ".join(f"{j}:{v:g}" for j, v in zip(row.indices, row.data, strict=True)) + "\n")
    return folder


def annotate_to_jsonl(cli: Cli, corel: Path, data: Path, out: Path, *words: object) -> list[list[Any]]:
    """Return the labels that the command writes as lines of JSON."""
    result = cli("annotate", corel / "m", data, "--out", out, "-k", 5, *words)
    assert result.code == 0, result.err
    return [json.loads(line)["labels"] for line in out.read_text(encoding="utf-8").splitlines()]


def test_every_input_format_gets_the_printed_labels(cli: Cli, corel: Path, tmp_path: Path) -> None:
    printed = cli("annotate", corel / "m", corel / "test.arff", "-k", 5, "--json").json["results"]
    expected = [row["labels"] for row in printed]
    assert len(expected) == 500
    for name in ("test.arff", "test.parquet", "test.txt"):
        assert annotate_to_jsonl(cli, corel, corel / name, tmp_path / f"{name}.jsonl") == expected, name
    cli("shards", corel / "test.parquet", "--out", tmp_path / "shards")
    in_order = annotate_to_jsonl(cli, corel, tmp_path / "shards", tmp_path / "shards.jsonl")
    assert sorted(map(json.dumps, in_order)) == sorted(map(json.dumps, expected))


def test_output_is_independent_of_the_block_size(
    cli: Cli, corel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents_by_name = {}
    for size in (None, 7, 100):
        if size is not None:
            monkeypatch.setattr(parquet_rows, "_STREAM_BATCH", size)
            monkeypatch.setattr(
                svmlight.text_files, "iterate_line_blocks", partial(iterate_line_blocks, size=1000 * size)
            )
        for name in ("test.parquet", "test.txt"):
            out = tmp_path / f"{size} {name}.jsonl"
            annotate_to_jsonl(cli, corel, corel / name, out, "--threads", 1 if size == 7 else 2)
            assert contents_by_name.setdefault(name, out.read_bytes()) == out.read_bytes()


def test_rows_without_labels_and_repeated_ids_are_annotated(
    cli: Cli, corel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input rows need no labels; the file does not depend on where blocks end."""
    table = pq.read_table(corel / "test.parquet").drop_columns(["labels"]).slice(0, 40)
    ids = [f"row {i % 30}" for i in range(40)]
    pq.write_table(table.set_column(table.schema.get_field_index("id"), "id", [ids]), tmp_path / "bare.parquet")
    for size in (8192, 7):
        monkeypatch.setattr(parquet_rows, "_STREAM_BATCH", size)
        result = cli("annotate", corel / "m", tmp_path / "bare.parquet", "--out", tmp_path / "bare.jsonl")
        assert result.code == 0, result.err
        lines = (tmp_path / "bare.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["id"] for line in lines] == ids


def test_unlabelled_lines_of_words_are_annotated(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("".join(f"__label__{'ab'[i % 2]} {['red', 'blue'][i % 2]}\n" for i in range(40)))
    (tmp_path / "bare.txt").write_text("red\nblue red red\n")
    words = ("--model", tmp_path / "m", "--epochs", 2, "--threads", 1)
    assert cli("train", tmp_path / "rows.txt", *words).code == 0
    printed = cli("annotate", tmp_path / "m", tmp_path / "bare.txt", "--json").json["results"]
    result = cli("annotate", tmp_path / "m", tmp_path / "bare.txt", "--out", tmp_path / "out.jsonl")
    assert result.code == 0, result.err
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == printed


def test_exact_ignores_the_index(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{i % 1200} " + " ".join(f"{j}:1" for j in np.sort(rng.permutation(300)[:8])) for i in range(2400)]
    (tmp_path / "rows.txt").write_text("\n".join(rows) + "\n")
    words = ("--model", tmp_path / "m", "--epochs", 2, "--threads", 1, "--hold-out", 0.1)
    assert cli("train", tmp_path / "rows.txt", *words).code == 0
    assert cli("index", tmp_path / "m", "--kind", "tree", "--recall", 0.3).code == 0
    labels_by_name = {}
    for name, more in (("index", ()), ("exact", ("--exact",))):
        result = cli("annotate", tmp_path / "m", tmp_path / "rows.txt", "--out", tmp_path / f"{name}.jsonl", *more)
        assert result.code == 0, result.err
        labels_by_name[name] = [
            json.loads(line)["labels"] for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()
        ]
    printed = cli("annotate", tmp_path / "m", tmp_path / "rows.txt", "--exact", "--json").json["results"]
    assert labels_by_name["exact"] == [row["labels"] for row in printed] != labels_by_name["index"]
    refused = cli("annotate", tmp_path / "m", tmp_path / "rows.txt", "--out", tmp_path / "a.tsv", "--parent-first")
    assert (refused.code, "leave --parent-first out" in refused.err) == (1, True)


def test_unreadable_input_is_refused_before_annotation(cli: Cli, corel: Path, tmp_path: Path) -> None:
    refused = cli("annotate", corel / "m", corel / "test.parquet", tmp_path / "no", "--out", tmp_path / "a.jsonl")
    assert (refused.code, "there is no file or folder" in refused.err, "annotating" in refused.err) == (1, True, False)


def test_tsv_and_parquet_output_agree(cli: Cli, corel: Path, tmp_path: Path) -> None:
    lines = annotate_to_jsonl(cli, corel, corel / "test.parquet", tmp_path / "a.jsonl")
    for name in ("a.tsv", "a.parquet"):
        result = cli("annotate", corel / "m", corel / "test.parquet", "--out", tmp_path / name, "-k", 5, "--json")
        assert {"rows": 500, "skipped": 0, "unknown_features": 0}.items() <= result.json.items()
    head, *table = [line.split("\t") for line in (tmp_path / "a.tsv").read_text().splitlines()]
    assert head == ["id", "label", "score"]
    assert [(name, float(score)) for _, name, score in table] == [
        (name, pytest.approx(score, abs=2e-6)) for row in lines for name, score in row
    ]
    columns = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert columns["labels"] == [[name for name, _ in row] for row in lines]
    assert columns["scores"][3] == pytest.approx([score for _, score in lines[3]], abs=1e-6)
    assert columns["id"] == [row[0] for row in table[::5]]


def test_ids_distinguish_several_inputs(
    cli: Cli, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_inference, "ITEMS_PER_BLOCK", 50)
    options = ("--model", tmp_path / "m", "--epochs", 3, "--features", "colour")
    assert cli("train", pictures, *options).code == 0
    (tmp_path / "more").mkdir()
    (tmp_path / "more/broken.png").write_bytes(b"no picture")
    first = next(path for path in sorted(pictures.rglob("*.webp")))
    (tmp_path / "more/same.webp").write_bytes(first.read_bytes())
    result = cli("annotate", tmp_path / "m", pictures, tmp_path / "more", "--out", tmp_path / "a.jsonl", "--json")
    assert (result.code, result.json["skipped"]) == (0, 1), result.err
    labels_by_id = {
        row["id"]: row["labels"] for row in map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    }
    assert len(labels_by_id) == result.json["rows"] == len(list(pictures.rglob("*.webp"))) + 1
    assert labels_by_id[f"{tmp_path / 'more'}/same.webp"] == labels_by_id[f"{pictures}/{first.relative_to(pictures)}"]


def test_unwritable_output_is_refused_before_annotation(cli: Cli, corel: Path, tmp_path: Path) -> None:
    model, rows = corel / "m", corel / "test.parquet"
    (tmp_path / "mine.jsonl").write_text("something else")
    (tmp_path / "wide.txt").write_text("1 601 1\n0 600:1\n")
    for words, message in [
        (("--out", tmp_path / "a.csv"), "labels of rows are written as .jsonl, .tsv or .parquet"),
        (("--out", tmp_path / "mine.jsonl"), "mine.jsonl"),
        (("--out", rows), "it is read by this command"),
        (
            ("--out", tmp_path / "a.tsv", "--explain", tmp_path),
            "--explain cannot be used here: --out writes labels alone",
        ),
    ]:
        result = cli("annotate", model, rows, *words)
        assert result.code == 1
        assert message in " ".join(result.err.split())
        assert "Traceback" not in result.err
    result = cli("annotate", model, tmp_path / "wide.txt", "--out", tmp_path / "wide.tsv")
    assert (result.code, "the data has 601 features" in " ".join(result.err.split())) == (1, True)
    assert not (tmp_path / "wide.tsv").exists()
    assert (tmp_path / "mine.jsonl").read_text() == "something else"
