"""Word vectors on the command line: devise, conse and warm starts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wsabie

Cli = Callable[..., Any]
PARTS = ("stripes", "hooves", "claws", "wings", "water")
BEASTS = {
    "tiger": (1, 0, 1, 0, 0), "horse": (0, 1, 0, 0, 0), "cat": (0, 0, 1, 0, 0), "wasp": (1, 0, 0, 1, 0),
    "fish": (0, 0, 0, 0, 1), "duck": (0, 0, 0, 1, 1), "eagle": (0, 0, 1, 1, 0), "hippo": (0, 1, 0, 0, 1),
}  # fmt: skip
NEW = {"zebra": (1, 1, 0, 0, 0), "otter": (0, 0, 1, 0, 1)}


def write_documents(file: Path, beasts: dict[str, Any], n: int = 12) -> Path:
    """Texts that name the parts of a beast, which is their label."""
    lines = [
        {"id": f"{name}-{i}", "text": " ".join(p for p, has in zip(PARTS, parts, strict=True) if has), "labels": [name]}
        for name, parts in beasts.items()
        for i in range(n)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    """Documents of eight beasts, of two new ones, word vectors of all, and a list of the new ones."""
    vectors_by_name = {**BEASTS, **NEW}
    vectors = tmp_path / "words.vec"
    vectors.write_text("".join(f"{name} {' '.join(map(str, parts))}\n" for name, parts in vectors_by_name.items()))
    new = tmp_path / "new.txt"
    new.write_text("zebra\notter\n")
    return {
        "train": write_documents(tmp_path / "train.jsonl", BEASTS),
        "test": write_documents(tmp_path / "test.jsonl", NEW),
        "vectors": vectors,
        "new": new,
        "model": tmp_path / "m",
    }


@pytest.mark.parametrize("kind", ["devise", "conse"])
def test_unseen_labels_are_annotated_by_word_vectors(
    cli: Cli, paths: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    words = ("--kind", kind, "--vectors", paths["vectors"], "--labels", paths["new"], "--threads", 1)
    result = cli("train", paths["train"], "--model", paths["model"], *words)
    assert result.code == 0, result.err
    annotation = cli("annotate", paths["model"], paths["test"], "-k", 1, "--candidates", paths["new"], "--json").json
    assert {(r["id"].split("-")[0], r["labels"][0][0]) for r in annotation["results"]} == {(x, x) for x in NEW}
    evaluation = cli("evaluate", paths["model"], paths["test"], "--candidates", paths["new"], "--json").json
    assert (evaluation["labels"], evaluation["metrics"]["hit@1"]) == (2, 1)
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text("zebra\tequine\nhorse\tequine\nequine\tmammal\notter\tmammal\n")
    every = cli("evaluate", paths["model"], paths["test"], "--hierarchy", kinds, "--json").json
    assert 0 <= every["metrics"]["herr@5"] <= every["metrics"]["herr@1"] <= 3
    assert every["labels"] == 10
    assert every["metrics"]["hit@5"] > 0.9
    about = cli("info", paths["model"], "--json").json
    assert (about["system"], about["labels_with_a_vector"], about["dimensions"]) == (kind, 10, 5)
    near = cli("neighbours", paths["model"], "zebra", "--json").json["neighbours"]
    assert near[0][1] == pytest.approx(0.5**0.5, abs=1e-3)  # horse, which has hooves alone


def test_held_sets_the_number_of_held_out_labels(papers_cli: Cli, paths: dict[str, Path], tmp_path: Path) -> None:
    words = "devise-zero-shot", "--data", paths["train"], "--vectors", paths["vectors"], "--threads", 1
    result = papers_cli(*words, "--held", 4, "--epochs", 2, "--out", tmp_path / "out", "--json")
    assert result.code == 0, result.err
    about = (tmp_path / "out" / "about.md").read_text()
    assert "4 of them are held out with all their rows, 10 times" in about
    assert "| chance | 0.25 |" in about
    lost = papers_cli(*words, "--out", tmp_path / "lost")
    assert (lost.code, lost.err.splitlines()[-1].count("hold fewer out (--held)")) == (1, 1)


def test_wordnet_names_find_vectors_of_synset_labels(cli: Cli, paths: dict[str, Path], tmp_path: Path) -> None:
    """Labels are synsets, whose terms have the vectors."""
    names = {f"n{i:08}": name for i, name in enumerate(BEASTS, 1)}
    data = write_documents(tmp_path / "synsets.jsonl", {id_: BEASTS[name] for id_, name in names.items()})
    words = tmp_path / "words.txt"
    words.write_text("".join(f"{id_}\t{name}, beast\n" for id_, name in names.items()))
    options = ("--kind", "devise", "--vectors", paths["vectors"], "--threads", 1)
    result = cli("train", data, "--model", paths["model"], *options, "--knowledge", words)
    assert result.code == 0, result.err
    tiger = json.loads(cli("annotate", paths["model"], data, "-k", 1, "--json").out)["results"][0]
    assert (tiger["id"], tiger["labels"][0][0]) == ("n00000001-0", "n00000001")
    without_knowledge = cli("train", data, "--model", tmp_path / "other", *options)
    assert without_knowledge.code == 1
    assert "none of the 8 labels of" in without_knowledge.err
    assert "has a word vector, such as 'n00000001', 'n00000002', 'n00000003'; give vectors" in without_knowledge.err


def test_labels_without_a_vector_are_listed(cli: Cli, paths: dict[str, Path], tmp_path: Path) -> None:
    data = write_documents(tmp_path / "more.jsonl", {**BEASTS, "gryphon": (0, 0, 1, 1, 0)})
    words = ("--kind", "devise", "--vectors", paths["vectors"], "--threads", 1)
    result = cli("train", data, "--model", paths["model"], *words, "--rejects", tmp_path / "r.jsonl", "--json")
    assert result.json["labels"] == 8
    assert "1 skipped: label without a word vector (1)" in result.err
    listed = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert listed == [{"where": "gryphon", "reason": "label without a word vector", "detail": ""}]
    strict = cli("train", data, "--model", paths["model"], *words, "--strict")
    assert (strict.code, "gryphon: label without a word vector" in strict.err) == (1, True)


def test_warm_start_takes_the_dimensions_of_the_vectors(cli: Cli, paths: dict[str, Path]) -> None:
    result = cli("train", paths["train"], "--model", paths["model"], "--vectors", paths["vectors"], "--threads", 1)
    assert result.code == 0, result.err
    assert cli("info", paths["model"], "--json").json["dimensions"] == 5
    words = ("--vectors", paths["vectors"], "--epochs", 2, "--threads", 1)
    for more in (("--ensemble", 2), ("--kind", "full-rank")):
        assert cli("train", paths["train"], "--model", paths["model"], *words, *more).code == 0
        assert cli("annotate", paths["model"], paths["test"], "-k", 1).code == 0
    mismatch = cli("train", paths["train"], "--model", paths["model"], *words, "--dim", 9)
    assert (mismatch.code, "has vectors of 5 dimensions and --dim is 9" in mismatch.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "devise"), "--kind devise needs word vectors; add --vectors FILE"),
        (
            ("--kind", "popularity", "--vectors", "v"),
            "--vectors is for kinds that use word vectors, and popularity does not",
        ),
        (("--labels", "new.txt"), "--labels is for kinds that rank labels by their words, such as devise"),
        (("--kind", "devise", "--vectors", "missing.vec"), "missing.vec"),
    ],
)
def test_bad_vectors_give_one_sentence(cli: Cli, paths: dict[str, Path], words: Any, message: str) -> None:
    result = cli("train", paths["train"], "--model", paths["model"], *words)
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err


def test_too_few_candidates_are_refused(cli: Cli, paths: dict[str, Path], tmp_path: Path) -> None:
    cli("train", paths["train"], "--model", paths["model"], "--epochs", 1, "--threads", 1)
    few = tmp_path / "few.txt"
    few.write_text("# none\n")
    for command in ("annotate", "evaluate"):
        result = cli(command, paths["model"], paths["test"], "--candidates", few)
        assert (result.code, f"{few} names no label; write one a line" in result.err) == (1, True)
    few.write_text(f"{next(iter(wsabie.load(paths['model']).model.vocabulary_))}\n")
    result = cli("evaluate", paths["model"], paths["test"], "--candidates", few)
    assert (result.code, "names one label, which is always right" in result.err) == (1, True)


def test_unknown_candidates_are_refused(cli: Cli, paths: dict[str, Path]) -> None:
    cli("train", paths["train"], "--model", paths["model"], "--epochs", 1, "--threads", 1)
    for command in ("annotate", "evaluate"):
        result = cli(command, paths["model"], paths["test"], "--candidates", paths["new"])
        assert result.code == 1
        assert "there is no label 'zebra'" in result.err


def test_devise_trains_on_corel5k(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    vectors = shutil.copy(data_dir / "glove_twitter_25d_12k" / "glove_twitter_25d.txt", tmp_path / "glove.txt")
    train, test = (data_dir / "corel5k_mulan" / f"Corel5k-{side}-sparse.arff" for side in ("train", "test"))
    options = ("--kind", "devise", "--vectors", vectors, "--epochs", 2, "--threads", 1)
    result = cli("train", train, "--model", tmp_path / "m", *options, "--json")
    assert result.code == 0, result.err
    assert result.json["labels"] == 278  # of 374
    assert cli("evaluate", tmp_path / "m", test, "--json").json["metrics"]["AUC"] > 0.6
