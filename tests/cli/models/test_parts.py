"""Objects and their parts through the commands: training, pairs of labels, location in pictures."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import wsabie
from wsabie.cli.main import run
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.models.object_parts.ranker import ObjectParts
from wsabie.workflows.object_parts import find_parts

QUICK = ("--n-words", 60, "--size", 96, "--dim", 16, "--threads", 1, "--epochs", 10)


@pytest.fixture(scope="module")
def relations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("told") / "parts.tsv"
    parts = ("wheel", "hood", "front_bumper", "back_bumper", "front_glass", "left_mirror", "right_mirror")
    file.write_text("".join(f"car\t{part}\n" for part in parts))
    return file


@pytest.fixture(scope="module")
def model(cars: Path, relations: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts model of whole cars and boxes in them."""
    folder = tmp_path_factory.mktemp("models") / "parts"
    words = ["wsabie", "train", cars / "trainingset", "--kind", "parts", "--relations", relations, "--items", "boxes"]
    words += ["--image-label", "car", "--model", folder, *QUICK]
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr("sys.argv", [*map(str, words)])
        run()
    assert (folder / "config.json").exists(), "training failed"
    return folder


@pytest.fixture
def marked_picture(cars: Path) -> tuple[Path, list[tuple[str, str]]]:
    """A picture that training did not see, and (label, box) of its parts."""
    source = list(open_source(cars / "testset"))
    picture = source[0].group
    boxes = [
        (item.labels[0], f"{box.left},{box.top},{box.width},{box.height}")
        for item in source
        if item.group == picture and (box := item.content.region.box)
    ]
    return cars / "testset" / "JPEGImages" / str(picture), boxes


def test_car_and_part_are_labelled_together(cli: Any, model: Path, marked_picture: tuple[Path, Any]) -> None:
    picture, boxes = marked_picture
    options = [word for _, box in boxes for word in ("--region", box)]
    results = cli("parts", model, picture, *options, "-k", "3", "--json").json["results"]
    assert [row["where"] for row in results[::3]] == [box for _, box in boxes]
    assert len(results) == 3 * len(boxes)
    assert "car" in {row["object"] for row in results}
    assert all(row["object"] != row["part"] for row in results)
    x, y, w, h = map(float, boxes[0][1].split(","))
    corners = f"{x},{y},{x + w},{y},{x + w},{y + h},{x},{y + h}"
    polygon = cli("parts", model, picture, "--region", corners, "-k", "3", "--json").json["results"]
    assert [row["part"] for row in polygon] == [row["part"] for row in results[:3]]
    result = cli("parts", model, picture, "--region", boxes[0][1], "-k", "2")
    assert "object" in result.out
    assert results[0]["part"] in result.out


def test_stated_object_ranks_only_parts(
    cli: Any, model: Path, relations: Path, marked_picture: tuple[Path, Any]
) -> None:
    picture, boxes = marked_picture
    results = cli("parts", model, picture, "--region", boxes[0][1], "--object", "car", "--json").json["results"]
    assert {row["object"] for row in results} == {"car"}
    parts = {line.split("\t")[1] for line in relations.read_text().splitlines()}
    among = cli(
        "parts",
        model,
        picture,
        "--part",
        picture,
        "--object",
        "car",
        "--candidate-pairs",
        relations,
        "-k",
        "9",
        "--json",
    )
    assert {row["part"] for row in among.json["results"]} == parts
    assert {row["where"] for row in among.json["results"]} == {str(picture)}
    every = cli("parts", model, picture, "--part", picture, "--candidate-pairs", relations, "-k", "9", "--json").json[
        "results"
    ]
    assert {(row["object"], row["part"]) for row in every} == {("car", part) for part in parts}


def test_parts_are_located_in_a_picture_and_drawn(
    cli: Any, model: Path, marked_picture: tuple[Path, Any], tmp_path: Path
) -> None:
    picture, _ = marked_picture
    out = tmp_path / "marked.png"
    results = cli("parts", model, picture, "--out", out, "-k", "4", "--json").json["results"]
    assert {row["object"] for row in results} == {"car"}
    assert len({row["part"] for row in results}) == 4
    assert [row["score"] for row in results] == sorted((row["score"] for row in results), reverse=True)
    with Image.open(out) as drawing, Image.open(picture) as plain:
        assert max(drawing.size) == min(900, max(plain.size))
        assert {(179, 38, 30), (11, 87, 208)} <= {colour for _, colour in drawing.getcolors(1 << 24)}


def test_unlabelled_pictures_are_searched(cli: Any, model: Path, cars: Path) -> None:
    report = cli("search", model, "car", "--in", cars / "testset" / "JPEGImages", "-k", "3", "--json").json
    groups = report["groups"]
    assert groups[0]["labels"] == ["car"]
    assert len(groups[0]["matches"]) == 3
    assert {group["labels"][0] for group in groups[1:]} <= {"wheel", "hood", "front_bumper", "back_bumper",
                                                            "front_glass", "left_mirror", "right_mirror"}  # fmt: skip


def test_bad_queries_give_one_sentence(
    cli: Any, model: Path, relations: Path, marked_picture: tuple[Path, Any], rows: Path, tmp_path: Path
) -> None:
    picture, boxes = marked_picture
    plain, strange = tmp_path / "plain", tmp_path / "strange.tsv"
    strange.write_text("car\twhel\n")
    assert cli("train", rows, "--model", plain, "--epochs", "1", "--dim", "4").code == 0
    for arguments, message in (
        ((model, tmp_path / "none.jpg"), "there is no file"),
        ((model, picture, "--object", "bicycle"), "there is no label 'bicycle'"),
        ((model, picture, "--region", "1,2,3"), "region '1,2,3' has 3 numbers; give X,Y,W,H"),
        ((model, picture, "--region", "1,2,3,x"), "is not a list of numbers"),
        ((model, picture, "--region", "20,20,40,7"), "shows 40 x 7 pixels of"),
        ((model, picture, "--region", "50%,50%,0.5%,9%"), "give one of 8 or more a side"),
        (
            (model, picture, "--region", boxes[0][1], "--candidate-pairs", strange),
            f"{strange}: there is no label 'whel'; did you",
        ),
        ((model, picture, "--region", "5000,5000,9,9"), "outside the picture"),
        ((model, picture, "--candidate-pairs", relations), "leave --candidate-pairs out"),
        ((model, picture, "--region", boxes[0][1], "--object", "hood", "--candidate-pairs", relations), "no pair of"),
        ((model, picture, "--out", tmp_path / "a.jpg"), "a.jpg does not end so; give a name that ends in .png"),
        ((model, picture, "--part", relations), "parts.tsv"),
        ((plain, picture), "is not a model of objects and parts"),
    ):
        result = cli("parts", *arguments)
        assert (result.code, result.out) == (1, "")
        assert message in result.err.splitlines()[-1]


def test_region_with_many_corners_is_drawn(
    cli: Any, model: Path, marked_picture: tuple[Path, Any], tmp_path: Path
) -> None:
    picture, _ = marked_picture
    corners = ",".join(f"{10 + i % 90},{20 + i * 7 % 80}" for i in range(300))
    result = cli(
        "parts", model, picture, "--region", corners, "--part", picture, "-k", "1", "--out", tmp_path / "a.png"
    )
    assert (result.code, (tmp_path / "a.png").is_file()) == (0, True)
    assert "the picture with 1 part marked" in result.err


def test_relation_score_counts_in_part_search(model: Path, marked_picture: tuple[Path, Any]) -> None:
    picture, _ = marked_picture
    loaded = wsabie.load(model)
    scores = {match.label: match.score for match in find_parts(loaded, picture, "car", k=99)}
    related = dict(loaded.model.related("car", k=99))
    loaded.model.label_scores = "none"
    unrelated_scores = {match.label: match.score for match in find_parts(loaded, picture, "car", k=99)}
    assert scores == pytest.approx({part: score + related[part] for part, score in unrelated_scores.items()}, abs=1e-4)
    assert scores != pytest.approx(unrelated_scores, abs=1e-2)


def test_only_part_is_refused_as_an_object(cli: Any, model: Path, marked_picture: tuple[Path, Any]) -> None:
    picture, _ = marked_picture
    loaded = wsabie.load(model)
    loaded.model.relations_ = loaded.model.vocabulary_.ids(["car", "wheel"]).reshape(1, 2)
    assert [part.label for part in find_parts(loaded, picture, "car")] == ["wheel"]
    with pytest.raises(InputError, match="wheel is the only part that the model knows"):
        find_parts(loaded, picture, "wheel")


def test_lines_without_a_pair_are_reported(
    cli: Any, model: Path, marked_picture: tuple[Path, Any], tmp_path: Path
) -> None:
    picture, boxes = marked_picture
    among = tmp_path / "among.tsv"
    among.write_text("car\twheel\nno pair\n")
    result = cli("parts", model, picture, "--region", boxes[0][1], "--candidate-pairs", among)
    assert result.code == 0
    assert f"1 line of {among} left out: {among}:2 for line without two or three columns" in result.err


def test_rows_with_related_labels_train_object_parts(cli: Any, rows: Path, tmp_path: Path) -> None:
    pairs_file = tmp_path / "told.tsv"
    pairs_file.write_text("0\t1\n1\t2\n0\t7\n")
    out = tmp_path / "m"
    words = ("train", rows, "--kind", "parts", "--model", out, "--dim", 8, "--relations")
    result = cli(*words, pairs_file, "--json")
    assert (result.code, result.json["system"]) == (0, "parts")
    errors = cli(*words, pairs_file).err
    assert "1 relation left out, such as 0 and 7: each needs two pictures" in errors
    loaded = wsabie.load(out)
    assert isinstance(loaded.model, ObjectParts)
    assert loaded.model.relations_.tolist() == [[0, 1], [1, 2]]
    assert cli("evaluate", out, rows, "--allow-overlap", "--json").json["metrics"]["MAP"] > 0.9
    assert json.loads((out / "config.json").read_text())["kind"] == "annotator"
    config = tmp_path / "parts.toml"
    config.write_text('tables = "shared"\nrelation_weight = 0.5\n')
    assert cli(*words, pairs_file, "--config", config).code == 0
    assert wsabie.load(out).model.tables == "shared"
    by_pairs = cli(*words, pairs_file, "--metric", "pairs")
    assert by_pairs.code == 0, by_pairs.err
    history = [stats.validation_metrics for stats in wsabie.load(out).model.history_]
    assert all(next(iter(figures)) == "pairs" for figures in history)
    best = max(range(len(history)), key=lambda epoch: history[epoch]["pairs"])
    assert f"epoch {best + 1} of {len(history)}, validation MAP {history[best]['MAP']:.3f}" in by_pairs.out
    pairs_file.write_text("0\t1\n0\tx1\n")
    assert "there is no label 'x1'; did you mean '1'?" in cli(*words, pairs_file, "--epochs", 1).err
    cli(*words, f"part-of={pairs_file}", "--epochs", 1)
    assert (wsabie.load(out).model.relation, wsabie.load(out).model.relations) == (
        "has-part",
        [["1", "0"], ["x1", "0"]],
    )
    pairs_file.rename(equal := tmp_path / "a=b.tsv")  # a file of that name, and no relation
    cli(*words, equal, "--epochs", 1)
    assert (wsabie.load(out).model.relation, wsabie.load(out).model.relations[0]) == ("has-part", ["0", "1"])
    pairs_file.write_text("3\t4\n")
    (vectors := tmp_path / "words.vec").write_text("1 2\nsea 1 0\n")
    number = tmp_path / "number.toml"
    number.write_text("relations = 3\n")
    for arguments, sentence in (
        (("--kind", "parts"), "give --relations FILE"),
        (("--relations", pairs_file), "choose --kind parts"),
        (
            ("--kind", "parts", "--relations", pairs_file),
            "two pictures; the first is ('3', '4'): there is no label '3'",
        ),
        (("--vectors", vectors, "--dim", 3), "has vectors of 2 dimensions and --dim is 3; leave --dim out"),
        (("--kind", "parts", "--relations", rows), "rows.txt"),
        (
            ("--kind", "parts", "--relations", f"={pairs_file}"),
            "is neither FILE nor RELATION=FILE, such as is-a=kinds.tsv",
        ),
        (("--kind", "parts", "--relations", "is-a="), "is neither FILE nor RELATION=FILE, such as is-a=kinds.tsv"),
        (("--kind", "parts", "--relations", "is-a=nowhere.tsv"), "nowhere.tsv"),
        (
            ("--kind", "parts", "--relations", f" ={pairs_file}"),
            "relation is ' '; choose a name of one line, such as is-a",
        ),
        (("--kind", "parts", "--config", number), "relations must be a list of pairs"),
        (("--image-label", "car"), "has no regions"),
        (("--kind", "parts", "--relations", pairs_file, "--ensemble", "2"), "parts makes no ensembles"),
        (("--metric", "pairs"), "no epoch can be chosen by 'pairs'; choose MAP"),
        (("--metric", "p@1", "--hold-out", 0), "rows that are set aside"),
        (("--metric", "p@1", "--ensemble", 2), "chosen by MAP alone"),
        (("--metric", "p@1", "--kind", "nearest"), "--metric is about epochs"),
    ):
        lost = cli("train", rows, "--model", tmp_path / "n", *arguments)
        assert lost.code == 1
        assert sentence in lost.err.splitlines()[-1]
        assert not (tmp_path / "n").exists()
