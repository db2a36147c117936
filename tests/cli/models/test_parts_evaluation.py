"""Evaluation of objects and parts through the commands: split, train, evaluate."""

import contextlib
import shutil
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wsabie
from wsabie.cli.main import run
from wsabie.samples import get_sample_path
from wsabie.vocabulary.label_quadruplets import Quadruplets, count_quadruplets
from wsabie.workflows import object_parts

LABELS = ("face", "eye", "mouth", "tree", "leaf", "flower", "plant", "animal", "car", "wheel", "window", "house")
RELATIONS = (
    ("face", "eye"), ("face", "mouth"), ("tree", "leaf"), ("plant", "flower"), ("plant", "leaf"), ("house", "window"),
    ("house", "roof"),
)  # fmt: skip
QUICK = ("--n-words", 60, "--size", 48, "--dim", 16, "--threads", 1, "--epochs", 6)


def write_pairs(file: Path, *pairs: tuple[str, str]) -> Path:
    file.write_text("".join(f"{first}\t{second}\n" for first, second in pairs))
    return file


def run_shell(*words: object) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", ["wsabie", *map(str, words)])
        run()


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawings of the sample collection that show a few things, and what relates these."""
    folder = tmp_path_factory.mktemp("drawings")
    rows = pq.read_table(get_sample_path("drawings"), columns=["id", "image", "labels", "group"]).to_pylist()
    labelled_rows = [row | {"labels": [name for name in row["labels"] if name in LABELS]} for row in rows]
    pq.write_table(pa.Table.from_pylist([row for row in labelled_rows if row["labels"]]), folder / "drawings.parquet")
    write_pairs(folder / "parts.tsv", *RELATIONS)
    return folder


@pytest.fixture(scope="module")
def sides(drawings: Path) -> Path:
    words = "--valid", 0.1, "--test", 0.4
    run_shell("split", drawings / "drawings.parquet", "--relations", drawings / "parts.tsv", "--out", drawings, *words)
    assert (drawings / "relations.tsv").exists(), "the split failed"
    return drawings


@pytest.fixture(scope="module")
def model(sides: Path) -> Path:
    """Told of all relations that are on every side but for one."""
    relations = [line.split("\t") for line in (sides / "relations.tsv").read_text().splitlines()[1:]]
    file = write_pairs(
        sides / "told.tsv",
        *[
            (object_name, part_name)
            for object_name, part_name in relations
            if (object_name, part_name) != ("plant", "leaf")
        ],
    )
    words = "--kind", "parts", "--relations", file, "--model", sides / "model", *QUICK
    run_shell("train", sides / "train.parquet", "--valid", sides / "valid.parquet", *words)
    assert (sides / "model" / "config.json").exists(), "training failed"
    return sides / "model"


# ---- split


def test_every_possible_relation_is_on_every_side(cli: Any, drawings: Path, tmp_path: Path) -> None:
    out = tmp_path / "sides"
    words = "split", drawings / "drawings.parquet", "--relations", drawings / "parts.tsv", "--out", out
    result = cli(*words, "--json")
    assert result.code == 0, result.err
    relations = [tuple(line.split("\t")) for line in (out / "relations.tsv").read_text().splitlines()[1:]]
    report = result.json["relations"]
    assert (report["n_relations"], report["file"]) == (len(relations), str(out / "relations.tsv"))
    reasons = {(drop["object"], drop["part"]): drop["reason"] for drop in report["dropped"]}
    assert {*relations, *reasons} == set(RELATIONS)
    assert ("face", "eye") in relations
    assert reasons["house", "window"] == "label 'window' has 2 pictures, and one is needed for each of 3 sides"
    assert reasons["house", "roof"] == "no row has the label 'roof'"
    assert (out / "relations-dropped.jsonl").read_text().count("\n") == len(reasons)
    groups = []
    for side in ("train", "valid", "test"):
        rows = pq.read_table(out / f"{side}.parquet", columns=["labels", "group"]).to_pylist()
        Y = np.array([[name in row["labels"] for name in LABELS] for row in rows], int)
        ends = np.array([[LABELS.index(name) for name in pair] for pair in relations])
        assert (count_quadruplets(Y, ends) > 0).all()
        groups.append({row["group"] for row in rows if row["group"]})
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]
    printed = cli(*words)
    assert f"{len(relations)} of {len(RELATIONS)} relations, which are on every side" in printed.out
    assert f"{len(reasons)} relations are not on every side, such as " in printed.err


def test_split_by_relation_keeps_relations_on_every_side(cli: Any, rows: Path, tmp_path: Path) -> None:
    """Label 3 has three rows: one for each side."""
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join(["93 9 4", *lines[1:], *(f"3 {k}:1 {k + 1}:2" for k in range(3))]) + "\n")
    relations = write_pairs(tmp_path / "parts.tsv", ("0", "3"), ("3", "3"))
    report = cli("split", rows, "--relations", relations, "--out", tmp_path / "sides", "--json").json
    assert report["relations"]["n_relations"] == 1
    assert report["relations"]["dropped"][0]["reason"] == "a label is not part of itself"
    near = cli("split", rows, "--relations", relations, "--out", tmp_path / "near", "--drop-near", 0.99, "--json").json
    assert near["relations"]["n_relations"] == 0  # equal rows leave the later sides, and what is left is counted again
    assert "too near those of an earlier side" in near["relations"]["dropped"][-1]["reason"]


def test_views_of_a_picture_stay_together(cli: Any, drawings: Path, tmp_path: Path) -> None:
    rows_path = tmp_path / "rows.parquet"
    words = "--n-words", 20, "--size", 32, "--augment", 2, "--threads", 1
    assert cli("features", "images", drawings / "drawings.parquet", "--out", rows_path, *words).code == 0
    relations = write_pairs(tmp_path / "parts.tsv", ("face", "eye"), ("tree", "leaf"), ("house", "window"))
    result = cli("split", rows_path, "--relations", relations, "--out", tmp_path / "sides", "--json")
    assert result.code == 0, result.err
    assert result.json["left_out"] == 2 * (result.json["valid"] + result.json["test"])
    assert not [
        row_id for row_id in pq.read_table(tmp_path / "sides" / "test.parquet")["id"].to_pylist() if "#" in row_id
    ]
    (dropped,) = result.json["relations"]["dropped"]
    assert "label 'window' has 2 pictures" in dropped["reason"]


def test_impossible_splits_are_refused(cli: Any, rows: Path, sides: Path, tmp_path: Path) -> None:
    nothing, strangers = tmp_path / "empty.tsv", write_pairs(tmp_path / "strangers.tsv", ("car", "wheel"))
    nothing.write_text("")
    few = write_pairs(tmp_path / "few.tsv", ("0", "1"))
    (tmp_path / "one.txt").write_text("0 0:1\n" * 20 + "1 1:1\n")
    for data, relations, more, sentence in (
        (rows, nothing, (), "holds no pairs"),
        (rows, tmp_path / "none.tsv", (), "none.tsv"),
        (rows, strangers, (), "none of 1 relations is between two labels of the data, such as car and wheel"),
        (tmp_path / "one.txt", few, (), "none of 1 relations can be on every side (the first: label '1' has 1 picture"),
        (rows, few, ("--by", "label"), "leave one of them out"),
        (rows, few, ("--by", "one-label"), "leave one of them out"),
        (sides / "drawings.parquet", sides / "relations.tsv", ("--out", sides), "would be lost"),
    ):
        lost = cli("split", data, "--out", tmp_path / "out", "--relations", relations, *more)
        assert lost.code == 1
        assert sentence in lost.err.splitlines()[-1]
    assert not list((tmp_path / "out").glob("*.parquet"))


# ---- evaluate


def compute_by_hand(
    model: Path, test: Path, relations: list[tuple[str, str]], n: int, *, without_relations: bool
) -> dict[str, float]:
    """Means over drawn quadruplets, from the whole table of pairs of labels."""
    loaded = wsabie.load(model)
    rows = loaded.rows(wsabie.open_source(test)).rows
    parts, names = loaded.model, rows.label_names
    ends = np.unique([[names.index(name) for name in pair] for pair in relations], axis=0)
    quadruplets = Quadruplets(rows.Y, ends).sample(n, np.random.default_rng([0, 5]))
    words = parts.words_[:, : parts.dim]
    between = 0 * words @ words.T if without_relations else words @ words.T
    on_objects, on_parts = parts.scores(rows.X[quadruplets.objects]), parts.scores(rows.X[quadruplets.parts])
    pairs, objects, label_ranks = [], [], []
    for a, b, object_label, part_label in zip(
        on_objects, on_parts, quadruplets.object_labels, quadruplets.part_labels, strict=True
    ):
        table = a[:, None] + b[None, :] + between
        np.fill_diagonal(table, -np.inf)
        pairs.append(1 + (table > table[object_label, part_label]).sum())
        objects.append(1 + (table[:, part_label] > table[object_label, part_label]).sum())
        label_ranks.append(1 + (table[object_label] > table[object_label, part_label]).sum())
    ranks, triplet_ranks = np.array(pairs), np.array(objects + label_ranks)
    return {
        "pairs": ranks.mean(),
        "triplet": triplet_ranks.mean(),
        "p@1": (ranks == 1).mean(),
        "MAP": (1 / triplet_ranks).mean(),
    }


def test_pair_metrics_equal_those_of_the_whole_table(cli: Any, model: Path, sides: Path) -> None:
    test, relations = (
        sides / "test.parquet",
        [tuple(p.split("\t")) for p in (sides / "told.tsv").read_text().splitlines()],
    )
    report = cli("evaluate", model, test, "--quadruplets", 300, "--json").json
    quadruplets = report["quadruplets"]
    assert report["schema"] == 1
    assert (quadruplets["sampled"], quadruplets["relations"], quadruplets["seed"], quadruplets["non_candidates"]) == (
        300,
        len(relations),
        0,
        0,
    )
    pairs, triplet = quadruplets["tasks"]
    n = len(wsabie.load(model).model.vocabulary_)
    assert [pairs["task"], pairs["candidates"]] == ["pairs", n * (n - 1)]
    assert [triplet["task"], triplet["candidates"]] == ["triplet", n - 1]
    for is_unrelated in (False, True):
        hand = compute_by_hand(model, test, [(a, b) for a, b in relations], 300, without_relations=is_unrelated)
        of_pairs, of_triplet = (
            figures["without_relations"] if is_unrelated else figures for figures in (pairs, triplet)
        )
        assert of_pairs["metrics"]["rank"] == pytest.approx(hand["pairs"], rel=0.01)
        assert of_pairs["metrics"]["p@1"] == pytest.approx(hand["p@1"], abs=0.01)
        assert of_triplet["metrics"]["rank"] == pytest.approx(hand["triplet"], rel=0.01)
        assert of_triplet["metrics"]["MAP"] == pytest.approx(hand["MAP"], abs=0.01)
        for figures in (of_pairs, of_triplet):
            assert all(low <= figures["metrics"][name] <= high for name, (low, high) in figures["intervals"].items())
    assert pairs["metrics"] != pairs["without_relations"]["metrics"]
    assert (
        triplet["metrics"]["MAP"] > triplet["without_relations"]["metrics"]["MAP"]
    )  # half of what belongs together is known
    again = cli("evaluate", model, test, "--quadruplets", 300, "--seed", 1, "--json").json["quadruplets"]
    assert again["tasks"] != quadruplets["tasks"]


def test_unseen_relations_are_measured_separately(cli: Any, model: Path, sides: Path) -> None:
    words = "evaluate", model, sides / "test.parquet", "--relations", sides / "parts.tsv", "--quadruplets", 400
    result = cli(*words, "--json")
    tasks = result.json["quadruplets"]["tasks"]
    assert [(figures["task"], figures["relations"]) for figures in tasks] == [
        (task, of) for of in ("all", "trained", "untrained") for task in ("pairs", "triplet")
    ]
    every, trained, unseen = tasks[::2]
    assert every["quadruplets"] == trained["quadruplets"] + unseen["quadruplets"] == 400
    combined = sum(figures["quadruplets"] * figures["metrics"]["MAP"] for figures in (trained, unseen)) / 400
    assert every["metrics"]["MAP"] == pytest.approx(combined)
    assert unseen["intervals"] == {}  # one relation says nothing of others
    assert "2 pairs of" in result.err
    assert "does not know left out, such as house and window" in result.err
    printed = cli(*words)
    assert (
        printed.out.index("pairs p@1")
        < printed.out.index("pairs, trained p@1")
        < printed.out.index("pairs, untrained p@1")
    )
    assert "pictures alone" in printed.out
    assert "intervals draw whole relations" in printed.err


def test_candidate_pairs_limit_the_ranking(cli: Any, model: Path, sides: Path, tmp_path: Path) -> None:
    among = write_pairs(tmp_path / "among.tsv", ("face", "eye"), ("face", "mouth"), ("tree", "car"), ("car", "tree"))
    words = "evaluate", model, sides / "test.parquet", "--candidate-pairs", among, "--quadruplets", 200
    quadruplets = cli(*words, "--json").json["quadruplets"]
    pairs, triplet = quadruplets["tasks"]
    assert (pairs["candidates"], quadruplets["relations"]) == (4, 2)
    assert 1 <= pairs["metrics"]["rank"] <= 4
    assert set(pairs["metrics"]) == {"p@1", "MAP", "rank"}  # of four pairs the first five are all
    assert triplet["candidates"] > 4
    assert "left out: not among the given pairs of labels" in cli(*words).err


def test_pictures_alone_are_evaluated_without_quadruplets(cli: Any, model: Path, sides: Path, tmp_path: Path) -> None:
    trees = tmp_path / "trees.parquet"
    rows = pq.read_table(sides / "test.parquet").to_pylist()
    pq.write_table(pa.Table.from_pylist([row for row in rows if row["labels"] == ["tree"]]), trees)
    result = cli("evaluate", model, trees)
    assert result.code == 0
    assert "no quadruplets: no relation has two different pictures in the data" in result.err
    assert "p@1" in result.out
    assert "pictures alone" not in result.out
    evaluation = cli("evaluate", model, trees, "--json").json
    assert evaluation["metrics"]["MAP"] > 0
    assert (evaluation["quadruplets"]["sampled"], evaluation["quadruplets"]["tasks"]) == (0, [])
    assert "quadruplets" not in cli("evaluate", model, sides / "test.parquet", "--quadruplets", 0, "--json").json


def test_large_pair_tables_are_ranked_only_on_request(
    cli: Any, model: Path, sides: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_parts, "_MAX_RANKED_PAIRS", 2000)
    result = cli("evaluate", model, sides / "test.parquet", "--json")
    assert "quadruplets" not in result.json
    assert "take long: to rank them, give --quadruplets N" in result.err
    monkeypatch.setattr(object_parts, "_MAX_RANKED_PAIRS", 150 * len(wsabie.load(model).model.vocabulary_) ** 2)
    assert cli("evaluate", model, sides / "test.parquet", "--json").json["quadruplets"]["sampled"] == 150


def test_bad_pair_options_give_one_sentence(
    cli: Any, model: Path, sides: Path, rows: Path, lists: Path, tmp_path: Path
) -> None:
    plain, space, test = tmp_path / "plain", tmp_path / "space", sides / "test.parquet"
    assert cli("train", rows, "--model", plain, "--epochs", 1, "--dim", 4).code == 0
    assert cli("train", lists / "lists.toml", "--model", space, "--epochs", 1, "--dim", 4).code == 0
    empty, parts = tmp_path / "empty.tsv", sides / "parts.tsv"
    empty.write_text("")
    strangers = write_pairs(tmp_path / "strangers.tsv", ("moon", "crater"), ("face", "crater"))
    foreign_pairs, few_labels = write_pairs(tmp_path / "others.tsv", ("car", "tree")), tmp_path / "some.txt"
    few_labels.write_text("face\ntree\n")
    for arguments, sentence in (
        ((model, test, "--relations", strangers), "all 2 pairs of"),
        ((model, test, "--relations", empty), "holds no pairs"),
        ((model, test, "--relations", tmp_path / "none.tsv"), "none.tsv"),
        ((model, test, "--candidate-pairs", strangers), "all 2 pairs of"),
        ((model, test, "--candidate-pairs", foreign_pairs), "is among the given pairs of labels"),
        ((model, test, "--relations", parts, "--candidates", few_labels), "--relations is about pairs of all labels"),
        (
            (plain, rows, "--relations", parts, "--allow-overlap"),
            "is not a model of objects and parts, which --relations",
        ),
        ((plain, rows, "--quadruplets", 5), "leave --quadruplets out"),
        ((space, lists / "lists.toml", "--candidate-pairs", parts), "leave --candidate-pairs out"),
    ):
        lost = cli("evaluate", *arguments)
        assert (lost.code, lost.out) == (1, "")
        assert sentence in lost.err.splitlines()[-1]
    among = cli("evaluate", model, test, "--candidates", few_labels)
    assert among.code == 0
    assert "pairs of labels are not ranked with --candidates" in among.err
    assert cli("evaluate", model, test, "--quadruplets", -1).code == 2


# ---- whole pictures


def test_whole_pictures_are_read_as_in_training(cli: Any, cars: Path, tmp_path: Path) -> None:
    relations = write_pairs(tmp_path / "parts.tsv", ("car", "wheel"), ("car", "hood"), ("car", "front_bumper"))
    out = tmp_path / "model"
    words = "--items", "boxes", "--image-label", "car", "--kind", "parts", "--relations", relations, *QUICK
    assert cli("train", cars / "trainingset", "--model", out, *words).code == 0
    facts = cli("info", out, "--json").json
    assert (facts["items"], facts["image_label"]) == ("boxes", "car")
    evaluation = cli("evaluate", out, cars / "testset", "--json").json
    regions = len(wsabie.open_source(cars / "testset"))
    assert evaluation["rows"] + evaluation["rows_without_positives"] == regions + 10
    pairs = evaluation["quadruplets"]["tasks"][0]
    assert (evaluation["quadruplets"]["relations"], pairs["relations"]) == (3, "all")
    assert pairs["metrics"]["rank"] < pairs["candidates"] / 4
    annotated = cli("annotate", out, cars / "testset", "--json").json["results"]
    assert len([row for row in annotated if "#" not in row["id"]]) == 10
    refused = cli("evaluate", out, cars / "trainingset")
    assert "is what the model was trained on" in refused.err  # and is known before features are extracted
    assert "extracting features" not in refused.err
    pictures = cli("annotate", out, cars / "testset" / "JPEGImages", "--json").json["results"]
    assert len(pictures) == 10  # what has no regions is read as it is


def write_voc(coco: Path, folder: Path) -> Path:
    """The same pictures and boxes in the form of Pascal VOC, whose edges are whole numbers from 1."""
    shutil.copytree(coco / "JPEGImages", folder / "JPEGImages")
    (folder / "Annotations").mkdir()
    for picture, items in groupby(wsabie.open_source(coco), key=lambda item: item.group):
        objects = ""
        for item in items:
            x_min, top, right, bottom = map(round, item.content.region.box)
            edges = {"xmin": x_min + 1, "ymin": top + 1, "xmax": right, "ymax": bottom}
            box = "".join(f"<{name}>{edge}</{name}>" for name, edge in edges.items())
            objects += f"<object><name>{item.labels[0]}</name><bndbox>{box}</bndbox></object>"
        text = f"<annotation><filename>{picture}</filename>{objects}</annotation>"
        (folder / "Annotations" / f"{Path(picture).stem}.xml").write_text(text)
    return folder


def test_pascal_voc_is_evaluated_as_coco(cli: Any, cars: Path, tmp_path: Path) -> None:
    train, test = (write_voc(cars / side, tmp_path / side) for side in ("trainingset", "testset"))
    relations = write_pairs(tmp_path / "parts.tsv", ("car", "wheel"), ("car", "hood"), ("car", "front_bumper"))
    out = tmp_path / "model"
    words = "--items", "boxes", "--image-label", "car", "--kind", "parts", "--relations", relations, *QUICK
    result = cli("train", train, "--model", out, *words)
    assert result.code == 0, result.err
    evaluation, same = (cli("evaluate", out, data, "--json").json for data in (test, cars / "testset"))
    assert (evaluation["rows"], evaluation["labels"]) == (same["rows"], same["labels"])
    pairs = evaluation["quadruplets"]["tasks"][0]
    assert pairs["metrics"]["rank"] < pairs["candidates"] / 4
    assert evaluation["metrics"]["MAP"] == pytest.approx(
        same["metrics"]["MAP"], abs=0.03
    )  # boxes differ by their rounding
