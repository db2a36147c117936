"""`wsabie annotate --min-precision`: labels of a promised precision, or none."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

pytest.importorskip("sqlalchemy", reason="collections need SQLAlchemy")

from wsabie.collection.registry.thresholds import HoldoutSuggestions, save_holdout_suggestions
from wsabie.models.annotators import Annotator

Cli = Callable[..., Any]
_COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}


@pytest.fixture
def photos(cli: Cli, tmp_path: Path) -> Path:
    """A collection with a model: 36 pictures of three colours."""
    folder = tmp_path / "photos"
    for number in range(36):
        name = list(_COLOURS)[number % 3]
        picture = Image.new("RGB", (32, 24), _COLOURS[name])
        picture.paste((200, 200, number * 5), (number % 20, 5, number % 20 + 10, 15))
        (folder / name).mkdir(parents=True, exist_ok=True)
        picture.save(folder / name / f"{number:02}.png")
    assert cli("collection", "init", folder, "--tags", "folders").code == 0
    learning = ("--features", "colour", "--dim", "8", "--epochs", "30", "--threads", "1")
    assert cli("collection", "train", folder, *learning).code == 0
    return folder


@pytest.fixture
def model(photos: Path) -> Path:
    """Its model, whose suggestions of "red" were right on 100 held-out pictures of 100, and of other labels on none."""
    [model_folder] = (photos / ".wsabie/models").iterdir()
    annotator = Annotator.load(model_folder)
    red = annotator.facts["label_ids"][list(annotator.model.vocabulary_).index("red")]
    every = np.repeat(annotator.facts["label_ids"], 100).astype(np.int64)
    save_holdout_suggestions(
        model_folder, HoldoutSuggestions(every, np.zeros(len(every)), (every == red).astype(np.int64))
    )
    return model_folder


def test_min_precision_keeps_precise_labels_or_reports_no_fit(
    cli: Cli, photos: Path, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "some").mkdir()
    for name in ("red/00.png", "green/01.png"):
        shutil.copy(photos / name, tmp_path / "some")
    command = ("annotate", model, tmp_path / "some", "-k", 1, "--min-precision")
    result = cli(*command, 0.9)  # (.02 / 3)^(1/100) = .951: three labels are tested
    assert [line.split(" ")[0] for line in result.out.splitlines()] == ["00.png\tred", "01.png\tred"], result.err
    assert cli(*command, 0.99).out == "00.png\t(no tag fits)\n01.png\t(no tag fits)\n"
    for precision, expected, fits in ((0.9, [["red"]] * 2, True), (0.99, [[]] * 2, False)):
        results = cli(*command, precision, "--json").json["results"]
        assert [[name for name, _ in row["labels"]] for row in results] == expected
        assert [row["no_tag_fits"] for row in results] == [not fits] * 2
        report = cli(*command, precision, "--out", tmp_path / "out.jsonl", "--json").json
        assert (report["rows"], report["no_tag_fits"]) == (2, 0 if fits else 2)
        lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [[row["id"], row["labels"]] for row in lines] == [[row["id"], row["labels"]] for row in results]
        assert cli(*command, precision, "--out", tmp_path / "out.parquet").code == 0
        assert pq.read_table(tmp_path / "out.parquet")["labels"].to_pylist() == expected
        assert cli(*command, precision, "--out", tmp_path / "out.tsv").code == 0
        assert len((tmp_path / "out.tsv").read_text().splitlines()) == (3 if fits else 1)
    assert "of 2 rows, 2 of which no tag fits" in cli(*command, 0.99, "--out", tmp_path / "out.tsv").out
    assert "no_tag_fits" not in cli("annotate", model, tmp_path / "some", "--json").json["results"][0]
    (tmp_path / "names").write_text("green\n")
    among = cli(*command, 0.9, "--candidates", tmp_path / "names", "--json").json["results"]
    assert [row["no_tag_fits"] for row in among] == [True, True]


def test_unevaluated_suggestions_are_refused(cli: Cli, model: Path, rows: Path, tmp_path: Path) -> None:
    for wrong in ("1.5", "nan", "high"):
        assert cli("annotate", model, rows, "--min-precision", wrong).code == 2, wrong
    assert "a precision of 0 cannot be" in cli("annotate", model, rows, "--min-precision", 0).err
    shutil.rmtree(model / "holdout")
    assert cli("train", rows, "--model", tmp_path / "plain", "--epochs", "1").code == 0
    for folder in (model, tmp_path / "plain"):
        for more in ((), ("--out", tmp_path / "out.tsv")):
            failed = cli("annotate", folder, rows, "--min-precision", "0.9", *more)
            assert failed.code == 1
            assert f"it is unknown how often the labels of {folder} are right" in " ".join(failed.err.split())
            assert "let it learn: wsabie collection train DIR" in " ".join(failed.err.split())
