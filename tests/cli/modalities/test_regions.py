"""From boxes and polygons in pictures to labels for a region, through the commands."""

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

import wsabie
from wsabie.cli.main import run
from wsabie.io.data_sources import open_source
from wsabie.models.annotators import Annotator

QUICK = ("--n-words", 60, "--size", 96, "--dim", 16, "--threads", 1)


@pytest.fixture(scope="module")
def parts_model(cars: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_model(cars, tmp_path_factory.mktemp("models") / "parts")


def train_model(cars: Path, folder: Path, *more: object) -> Path:
    words = ["wsabie", "train", cars / "trainingset", "--model", folder, *QUICK, *more]
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr("sys.argv", [*map(str, words)])
        run()
    assert (folder / "config.json").exists(), "training failed"
    return folder


def test_parts_of_cars_are_learned(cli: Any, cars: Path, parts_model: Path) -> None:
    """Well above what the most frequent parts alone reach, on pictures that were not seen."""
    mean_average_precision = cli("evaluate", parts_model, cars / "testset", "--json").json["metrics"]["MAP"]
    label_counts = Counter(item.labels[0] for item in open_source(cars / "trainingset"))
    rank = {label: place for place, (label, _) in enumerate(label_counts.most_common(), start=1)}
    frequent = [1 / rank[item.labels[0]] for item in open_source(cars / "testset")]
    assert mean_average_precision > sum(frequent) / len(frequent) + 0.1


def test_region_rows_are_split_by_picture(cli: Any, cars: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    assert cli("features", "images", cars / "testset", "--out", out, *QUICK[:4], "--threads", 1).code == 0
    rows = pq.read_table(out, columns=["id", "labels", "group"]).to_pylist()
    assert all(row["id"].startswith(f"{row['group']}#") and len(row["labels"]) == 1 for row in rows)
    assert cli("split", out, "--out", tmp_path / "sides").code == 0
    sides = [
        {row["group"] for row in pq.read_table(file, columns=["group"]).to_pylist()}
        for file in (tmp_path / "sides").glob("*.parquet")
    ]
    assert len(sides) > 1
    assert sum(map(len, sides)) == len(set().union(*sides)) == 10


def test_regions_need_feature_extraction_before_a_split(cli: Any, cars: Path, tmp_path: Path) -> None:
    result = cli("split", cars / "testset", "--out", tmp_path / "sides")
    assert result.code == 1
    assert "extract features first: wsabie features images" in result.err


def test_collection_of_regions_is_annotated_by_region(cli: Any, cars: Path, parts_model: Path) -> None:
    annotation = cli("annotate", parts_model, cars / "testset", "--json").json
    assert len(annotation["results"]) > 50
    assert all("#" in result["id"] for result in annotation["results"])


def test_region_of_a_picture_is_annotated(cli: Any, cars: Path, parts_model: Path) -> None:
    picture = next((cars / "testset" / "JPEGImages").iterdir())
    with Image.open(picture) as image:
        width, height = image.size
    pixels = f"0,0,{width // 2},{height}"
    result = cli("annotate", parts_model, picture, "--region", pixels, "--region", "0,0,9,0,9,9", "-k", 3, "--json")
    half, triangle = result.json["results"]
    assert (half["id"], triangle["id"]) == (f"{picture.name}#{pixels}", f"{picture.name}#0,0,9,0,9,9")
    python = Annotator.load(parts_model).annotate_region(picture, pixels, k=3)
    assert [[name, round(score, 6)] for name, score in python] == half["labels"]
    expected = cli("annotate", parts_model, picture, "-k", 3, "--json").json["results"][0]["labels"]
    result = cli("annotate", parts_model, picture, "--region", "0%,0%,100%,100%", "-k", 3, "--json")
    assert result.json["results"][0]["labels"] == expected


def test_heat_map_of_a_region_is_drawn(cli: Any, cars: Path, parts_model: Path, tmp_path: Path) -> None:
    picture = next((cars / "testset" / "JPEGImages").iterdir())
    result = cli("annotate", parts_model, picture, "--region", "10,10,120,60", "--explain", tmp_path / "heat")
    assert result.code == 0
    (file,) = (tmp_path / "heat").iterdir()
    with Image.open(file) as drawing:
        assert drawing.size == (120, 60)


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ("90000,10,50,50", "lies outside: the picture has"),
        ("1,2,0,4", "has no area"),
        ("1,2,3", "has 3 numbers; give X,Y,W,H"),
        ("1%,2,3,4", "mixes per cent and pixels"),
    ],
)
def test_bad_regions_give_one_sentence(cli: Any, cars: Path, parts_model: Path, region: str, message: str) -> None:
    picture = next((cars / "testset" / "JPEGImages").iterdir())
    answer = cli("annotate", parts_model, picture, "--region", region)
    assert answer.code == 1
    assert message in answer.err
    with pytest.raises(
        Exception, match=message.replace("lies outside", "region outside the picture .*has").split(":")[0]
    ):
        Annotator.load(parts_model).annotate_region(picture, region)


def test_whole_pictures_take_the_labels_of_their_regions(cli: Any, cars: Path, rows: Path, tmp_path: Path) -> None:
    """The model remembers its kind of items, and reads other data in the same way."""
    model = train_model(cars, tmp_path / "pictures", "--items", "pictures")
    assert cli("info", model, "--json").json["items"] == "pictures"
    assert cli("evaluate", model, cars / "testset", "--json").json["rows"] == 10
    names = sorted(file.name for file in (cars / "testset" / "JPEGImages").iterdir())
    assert sorted(row["id"] for row in cli("annotate", model, cars / "testset", "--json").json["results"]) == names
    label = next(iter(wsabie.load(model).model.vocabulary_))
    matches = cli("search", model, label, "--in", cars / "testset", "-k", 3, "--json").json["groups"][0]["matches"]
    assert {row["id"] for row in matches} <= set(names)
    result = cli("train", rows, "--model", tmp_path / "rows", "--items", "boxes")
    assert (result.code, "is neither; leave --items out" in result.err) == (1, True)


def test_region_option_needs_pictures(cli: Any, rows: Path, cars: Path, parts_model: Path, tmp_path: Path) -> None:
    assert cli("train", rows, "--model", tmp_path / "rows", "--epochs", 1).code == 0
    answer = cli("annotate", tmp_path / "rows", rows, "--region", "1,2,3,4")
    assert "--region is for pictures, and this input is rows of features" in answer.err
    answer = cli("annotate", parts_model, cars / "testset", "--region", "1,2,30,40")
    assert (answer.code, "holds regions already" in answer.err) == (1, True)
    answer = cli("annotate", parts_model, "--text", "a car", "--region", "1,2,30,40")
    assert (answer.code, "--text has none" in answer.err) == (1, True)
