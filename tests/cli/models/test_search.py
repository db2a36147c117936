"""Pictures by a text, through the command: emoji of vehicles, instruments and clothes, labels in three languages."""

import contextlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from wsabie.cli.main import run
from wsabie.samples import get_sample_path

Cli = Callable[..., Any]
CATEGORIES = {"transport-ground", "musical-instrument", "clothing"}
KINDS = """\
car\twheeled vehicle
bus\twheeled vehicle
bicycle\twheeled vehicle
taxi\tcar
guitar\tmusical instrument
violin\tmusical instrument
drum\tmusical instrument
"""
PARTS = "wheel\twheeled vehicle\nkeyboard\tmusical instrument\n"
VECTORS = "4 2\nguitar 1 0\nbus 0 1\nkart .1 .9\nukulele .9 .2\n"


class SearchTask(NamedTuple):
    model: Path
    collection: Path
    knowledge: tuple[Any, ...]
    folder: Path


def train_model(*words: Any) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", ["wsabie", "train", *map(str, words)])
        run()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> SearchTask:
    """A model of English labels, and the pictures with German and French ones too."""
    folder = tmp_path_factory.mktemp("search")
    table = pq.read_table(get_sample_path("emoji")).to_pylist()
    rows = [row for row in table if row["category"].partition("/")[2] in CATEGORIES or "wheel" in row["labels"]]
    assert len(rows) > 80
    for name, languages in (("english", {"en"}), ("all", {"en", "de", "fr"})):
        columns = {key: [row[key] for row in rows] for key in ("id", "image", "group")}
        columns["labels"] = [
            [label for label, spoken in zip(row["labels"], row["languages"], strict=True) if languages & set(spoken)]
            for row in rows
        ]
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "kinds.tsv").write_text(KINDS)
    (folder / "parts.tsv").write_text(PARTS)
    (folder / "words.vec").write_text(VECTORS)
    model = folder / "model"
    train_model(folder / "english.parquet", "--model", model, "--hold-out", 0, "--n-words", 200, "--size", 96,
            "--dim", 32, "--epochs", 60, "--threads", 1)  # fmt: skip
    assert (model / "config.json").exists(), "training failed"
    knowledge = "--knowledge", folder / "kinds.tsv", "--pairs", f"part-of={folder / 'parts.tsv'}"
    return SearchTask(model, folder / "all.parquet", knowledge, folder)


def search(cli: Cli, task: SearchTask, query: str, *words: Any) -> Any:
    return cli("search", task.model, query, "--in", task.collection, "--threads", 1, *words)


def test_broader_concept_finds_its_labels_and_their_parts(cli: Cli, task: SearchTask) -> None:
    result = search(cli, task, "wheeled vehicle", *task.knowledge, "-k", 6, "--json")
    assert result.code == 0, result.err
    report = result.json
    assert (report["match_kind"], report["concept"]) == ("kinds", "wheeled vehicle")
    assert set(report["labels"]) == {"car", "bus", "bicycle", "taxi"}
    kinds, part = report["groups"]
    assert sum(match["labelled"] for match in kinds["matches"]) >= 4
    assert {match["label"] for match in kinds["matches"]} <= set(report["labels"])
    assert (part["labels"], part["reason"], part["score"]) == (["wheel"], "kinds: part of wheeled vehicle", 1.0)
    assert part["matches"][0]["labelled"]
    scores = [match["score"] for match in kinds["matches"]]
    assert scores == sorted(scores, reverse=True)
    ids = [match["id"] for group in report["groups"] for match in group["matches"]]
    assert len(ids) == len(set(ids)) == 12


def test_other_languages_find_the_same_pictures(cli: Cli, task: SearchTask) -> None:
    """The model knows English labels alone; the collection says what others name."""
    english = search(cli, task, "guitar", "--json", "-k", 3).json
    for query in ("Gitarre", "guitare"):
        report = search(cli, task, query, "--json", "-k", 3).json
        assert (report["match_kind"], report["labels"]) == ("same items", ["guitar"])
        assert report["groups"][0]["matches"] == english["groups"][0]["matches"]
    assert english["groups"][0]["matches"][0]["id"] == "emoji-1f3b8"
    result = search(cli, task, "Gitarre", *task.knowledge)
    assert "'Gitarre' names the same items of the collection as 'guitar' (cosine 1.00)" in result.out
    assert "emoji-1f3b8\t*guitar " in result.out
    translated = task.folder / "translated.tsv"
    translated.write_text("Geige\tviolin\n")
    report = search(cli, task, "Geige", "--knowledge", translated, "--json").json
    assert report["labels"] == ["violin"]


def count_errors(err: str) -> int:
    """Count the lines of standard error that are not a summary of what was read."""
    return sum(" labels in " not in line for line in err.splitlines())


def test_word_vectors_answer_queries_without_a_label(cli: Cli, task: SearchTask) -> None:
    result = search(cli, task, "kart", "--vectors", task.folder / "words.vec", "--json")
    assert (result.json["match_kind"], result.json["labels"]) == ("word vector", ["bus"])
    lost = search(cli, task, "viollin")
    assert (lost.code, count_errors(lost.err)) == (1, 1)
    assert "there is no label 'viollin'; did you mean 'violin'" in lost.err


def test_trained_relation_finds_parts(cli: Cli, task: SearchTask) -> None:
    folder = task.folder
    (folder / "wholes.tsv").write_text("car\twheel\nbus\twheel\npiano\tkeyboard\nviolin\tbow\n")
    (folder / "wholes.toml").write_text(
        '[relations.parts]\nquery = "whole"\ntarget = "part"\npairs = "wholes.tsv"\n\n[space]\ndim = 8\n'
    )
    train_model(folder / "wholes.toml", "--model", folder / "space", "--hold-out", 0, "--threads", 1, "--epochs", 50)
    result = search(cli, task, "car", "--related-model", folder / "space", "--max-related", 1, "--json")
    assert result.code == 0, result.err
    _, part = result.json["groups"]
    assert part["labels"] == ["wheel"]
    assert part["reason"].startswith("parts: car (trained, ")
    result = search(cli, task, "car", "--related-model", folder / "space", "--relation", "wholes")
    assert "no relation 'wholes'; it has parts" in result.err
    result = cli("search", folder / "space", "car", "--in", task.collection)
    assert "search takes a model of labels, a space is a --related-model" in result.err


def test_single_picture_is_searched_without_labels(cli: Cli, task: SearchTask, tmp_path: Path) -> None:
    (tmp_path / "one.webp").write_bytes(pq.read_table(task.collection)["image"][0].as_py())
    result = cli("search", task.model, "wheel", "--in", tmp_path / "one.webp", "--threads", 1, "--json")
    assert result.code == 0, result.err
    assert [match["id"] for group in result.json["groups"] for match in group["matches"]] == ["one.webp"]


def test_results_are_written_as_pages_and_sheets(cli: Cli, task: SearchTask, tmp_path: Path) -> None:
    page, sheet = tmp_path / "found.html", tmp_path / "found.png"
    assert search(cli, task, "wheeled vehicle", *task.knowledge, "-k", 12, "--out", page).code == 0
    html = page.read_text()
    assert html.count("<img") == 24
    assert "part of wheeled vehicle" in html
    assert "http" not in html.replace("http-equiv", "")
    assert "<script" not in html
    assert search(cli, task, "wheeled vehicle", *task.knowledge, "-k", 12, "--out", sheet).code == 0
    with Image.open(sheet) as sheet_image:
        assert 960 < sheet_image.size[0] <= 1100
        assert len(np.unique(np.asarray(sheet_image))) > 100
    assert search(cli, task, "guitar", "-k", 1, "--out", sheet).code == 0
    with Image.open(sheet) as sheet_image:
        assert sheet_image.size[0] < 300  # one picture is not a wide sheet


def test_terminal_page_and_json_name_the_same_files(cli: Cli, task: SearchTask, tmp_path: Path) -> None:
    folder, page = tmp_path / "photos", tmp_path / "found.html"
    folder.mkdir()
    lines = ["file_name,labels"]
    for row in pq.read_table(task.folder / "english.parquet").to_pylist():
        if {"guitar", "car"} & set(row["labels"]):
            (folder / f"{row['id']}.webp").write_bytes(row["image"])
            lines.append(f"{row['id']}.webp,{'guitar' if 'guitar' in row['labels'] else 'car'}")
    (folder / "metadata.csv").write_text("\n".join(lines))
    command = "search", task.model, "guitar", "--in", folder, "-k", 3, "--threads", 1
    printed_lines = cli(*command, "--out", page).out.splitlines()[1:]
    matches = cli(*command, "--json").json["groups"][0]["matches"]
    assert [match["file"] for match in matches] == [line.split("\t")[0] for line in printed_lines]
    assert [match["file"] for match in matches] == [str(folder / match["id"]) for match in matches]
    html = page.read_text()
    for match in matches:
        carried = "*" if match["labelled"] else ""
        assert f'<div>{carried}<bdi dir="auto">guitar</bdi> {match["score"]:.2f}</div>' in html
        assert f'<bdi dir="auto">{match["file"]}</bdi>' in html
    assert any(match["labelled"] for match in matches)
    assert "* a label that it carries in the collection" in html
    assert "<nav" not in html  # there is one group
    assert re.findall(r"<h[12].*?</h[12]>", html) == [
        '<h1><bdi dir="auto">guitar</bdi></h1>', '<h2 id="group-0-heading">3 found</h2>'
    ]  # fmt: skip


def test_embeddings_are_reused_by_the_next_search(cli: Cli, task: SearchTask, tmp_path: Path) -> None:
    embeddings = tmp_path / "embeddings"
    first = search(cli, task, "guitar", "--embeddings", embeddings, "--json")
    assert "extracting features" in first.err
    again = search(cli, task, "guitar", "--embeddings", embeddings, "--json")
    assert "extracting features" not in again.err
    assert first.out == again.out == search(cli, task, "guitar", "--json").out
    rebuilt = cli("search", task.model, "guitar", "--in", task.folder / "english.parquet", "--embeddings", embeddings)
    assert "embeddings of another model or collection; they are made again" in rebuilt.err
    assert "extracting features" in rebuilt.err
    refused = search(cli, task, "guitar", "--embeddings", task.model)
    assert refused.code == 1
    reason = "'annotator' where 'embeddings' is needed; give the folder that `wsabie search --embeddings FOLDER` wrote"
    assert reason in refused.err
    (foreign := tmp_path / "foreign").mkdir()
    (foreign / "mine.txt").write_text("mine")
    errors = search(cli, task, "guitar", "--embeddings", foreign).err
    assert errors.endswith("foreign is a folder that holds other files; choose an empty or new folder\n")
    (embeddings / "config.json").write_bytes((embeddings / "config.json").read_bytes()[:-3])
    errors = search(cli, task, "guitar", "--embeddings", embeddings).err
    assert "restore the folder from a copy or make it again" in errors
    assert search(cli, task, "guitar").code == 0, "the model was lost"


def test_embeddings_without_a_fingerprint_are_not_saved(
    cli: Cli, task: SearchTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture that is lost after the collection was listed, in two collections."""
    monkeypatch.setattr("wsabie.io.fingerprints.compute_fingerprint_or_none", lambda source: None)
    embeddings = tmp_path / "embeddings"
    for collection in ("all", "english"):
        result = cli(
            "search", task.model, "guitar", "--in", task.folder / f"{collection}.parquet", "--embeddings", embeddings
        )
        assert (result.code, "extracting features" in result.err, embeddings.exists()) == (0, True, False)
        assert f"{embeddings} is left as it is" in result.err


def test_distinct_shows_one_item_of_a_group(cli: Cli, task: SearchTask) -> None:
    groups = dict(zip(*(pq.read_table(task.collection)[key].to_pylist() for key in ("id", "group")), strict=True))
    report = search(cli, task, "shoe", "-k", 40, "--distinct", "--json").json
    groups_shown = [groups[match["id"]] for match in report["groups"][0]["matches"]]
    assert len(groups_shown) == len(set(groups_shown)) == 40


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "found.gif"], "neither a page (.html) nor a sheet (.png)"),
        (["--table", "meant.tsv"], "--table says what labels mean in --knowledge"),
        (["--relation", "parts"], "name that space with --related-model"),
        (["--related-model", "MODEL"], "does not relate labels to each other"),
        (["--knowledge", "nowhere"], "nowhere"),
        (["--pairs", "parts"], "is not RELATION=FILE"),
        (["--vectors", "nowhere.vec"], "nowhere.vec"),
        (["--in", "nowhere"], "nowhere"),
    ],
)
def test_bad_options_are_refused(cli: Cli, task: SearchTask, words: list[str], sentence: str) -> None:
    result = search(cli, task, "guitar", *(str(task.model) if word == "MODEL" else word for word in words))
    assert (result.code, count_errors(result.err)) == (1, 1)
    assert sentence in result.err


def test_unsuitable_models_and_data_are_refused(cli: Cli, task: SearchTask, rows: Path, tmp_path: Path) -> None:
    assert cli("train", rows, "--kind", "popularity", "--model", tmp_path / "p").code == 0
    result = cli("search", tmp_path / "p", "1", "--in", rows)
    assert "a model of kind popularity has no embeddings of items" in result.err
    (tmp_path / "told.tsv").write_text("0\t1\n")
    parts = "--kind", "parts", "--relations", tmp_path / "told.tsv", "--model", tmp_path / "parts", "--epochs", 1
    assert cli("train", rows, *parts).code == 0
    result = cli(
        "search", tmp_path / "parts", "1", "--in", rows, "--related-model", tmp_path / "parts", "--relation", "has"
    )
    assert "--relation has is one of a space, and --related-model has none" in result.err
    assert cli("train", rows, "--model", tmp_path / "m", "--dim", 8, "--epochs", 20).code == 0
    result = cli("search", tmp_path / "m", "1", "--in", rows, "-k", 5, "--json")
    assert all(match["labelled"] for match in result.json["groups"][0]["matches"])
    assert "holds rows of features; leave --out out" in (
        cli("search", tmp_path / "m", "1", "--in", rows, "--out", tmp_path / "x.png").err
    )
    assert "has no groups" in cli("search", tmp_path / "m", "1", "--in", rows, "--distinct").err
    assert "cannot be joined" in cli("search", tmp_path / "m", "1", "--in", rows, "--in", rows).err
    result = search(cli, task, "guitar", "--in", rows)
    assert result.code == 1
