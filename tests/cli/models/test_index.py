"""`wsabie index`: building, use, staleness, damage, and missing faiss."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from wsabie.samples import get_sample_path
from wsabie.storage.model_folder import open_model_folder

pytest.importorskip("faiss", reason="faiss is not installed")

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def emoji(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few hundred emoji with all their labels, some thousands."""
    file = tmp_path_factory.mktemp("emoji") / "emoji.parquet"
    pq.write_table(pq.read_table(get_sample_path("emoji")).slice(0, 300), file)
    return file


@pytest.fixture
def model(cli: Cli, emoji: Path, tmp_path: Path) -> Path:
    """Model of the emoji, trained once."""
    cached_model = emoji.with_name("model")
    if not cached_model.exists():
        train_model(cli, emoji, cached_model)
    shutil.copytree(cached_model, tmp_path / "model")
    return tmp_path / "model"


def train_model(cli: Cli, emoji: Path, model: Path, seed: int = 0) -> None:
    result = cli("train", emoji, "--model", model, "--dim", 16, "--epochs", 3, "--features", "colour", "--seed", seed)
    assert result.code == 0, result.err


def test_index_is_built_reported_and_used(cli: Cli, emoji: Path, model: Path) -> None:
    exact = cli("annotate", model, emoji, "-k", 5, "--json").json["results"]
    result = cli("index", model, "--queries", emoji, "--recall", 0.9, "--json")
    assert result.code == 0, result.err
    report = result.json
    assert report["kind"] == "ivf"
    assert report["measured_on"] == "150 of 300 rows"
    assert report["recall@10"] > 0.8
    assert [row["effort"] for row in report["curve"]][:4] == [1, 2, 3, 4]
    about = cli("info", model, "--json").json
    assert about["index"]["recall@10"] == report["recall@10"]
    assert "recall@10" in cli("info", model).out
    results = cli("annotate", model, emoji, "-k", 5, "--json").json["results"]
    assert cli("annotate", model, emoji, "-k", 5, "--exact", "--json").json["results"] == exact
    shared_counts = [
        len({name for name, _ in a["labels"]} & {name for name, _ in b["labels"]})
        for a, b in zip(results, exact, strict=True)
    ]
    assert sum(shared_counts) > 0.8 * 5 * len(exact)
    exact_scores = {(row["id"], name): score for row in exact for name, score in row["labels"]}
    shared = [(row["id"], n, s) for row in results for n, s in row["labels"] if (row["id"], n) in exact_scores]
    assert all(exact_scores[place, name] == score for place, name, score in shared)
    hnsw = cli("index", model, "--kind", "hnsw")
    assert "was asked for" in hnsw.out
    assert cli("info", model, "--json").json["index"]["kind"] == "hnsw"


def test_int8_index_is_exact_and_needs_no_faiss(
    cli: Cli, emoji: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = cli("annotate", model, emoji, "-k", 5, "--json").json["results"]
    monkeypatch.setitem(sys.modules, "faiss", None)
    report = cli("index", model, "--kind", "int8", "--queries", emoji, "--json").json
    assert (report["kind"], report["recall@10"], len(report["curve"])) == ("int8", 1, 1)
    assert report["measured_on"] == "300 rows"
    assert cli("annotate", model, emoji, "-k", 5, "--json").json["results"] == exact
    assert cli("info", model, "--json").json["index"]["kind"] == "int8"
    output = cli("index", model, "--kind", "int8").out
    assert "the same answer as of an exact search" in output
    assert "labels scored" in output
    train_model(cli, emoji, model, seed=1)
    result = cli("annotate", model, emoji, "--json")
    assert result.err.count("was made of other labels than the model has, so labels are searched exactly") == 1


def test_label_tree_is_built_saved_and_used(
    cli: Cli, emoji: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = cli("annotate", model, emoji, "-k", 5, "--json").json["results"]
    monkeypatch.setitem(sys.modules, "faiss", None)
    report = cli("index", model, "--kind", "tree", "--queries", emoji, "--recall", 0.6, "--json").json
    assert report["kind"] == "tree"
    assert report["measured_on"] == "150 of 300 rows"
    assert report["recall@10"] > 0.5
    assert cli("info", model, "--json").json["index"] == {
        key: value for key, value in report.items() if key not in ("schema", "model", "target_recall", "curve")
    }
    result = cli("annotate", model, emoji, "-k", 5, "--json")
    assert "exactly" not in result.err
    assert cli("annotate", model, emoji, "-k", 5, "--exact", "--json").json["results"] == exact
    assert sum(a["labels"][0] == b["labels"][0] for a, b in zip(result.json["results"], exact, strict=True)) > 150


def test_index_is_rebuilt_when_labels_change(
    cli: Cli, emoji: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renamed labels are where they were; merged and learned ones are not, and the index is made again."""
    names = [name for name, _ in cli("annotate", model, emoji, "-k", 3, "--json").json["results"][0]["labels"]]
    assert cli("index", model, "--kind", "int8").code == 0
    renamed = cli("edit", model, "rename", names[0], "another name")
    assert (renamed.code, "made again" in renamed.err) == (0, False)
    merged = cli("edit", model, "merge", "another name", names[1])
    assert "the index of its labels (int8) was made again: recall@10 1.000" in merged.err
    result = cli("update", model, emoji, "--without-replay", "--epochs", 1)
    assert (result.code, result.err.count("was made again")) == (0, 1), result.err
    annotation = cli("annotate", model, emoji, "-k", 5, "--json")
    assert "searched exactly" not in annotation.err
    assert annotation.json["results"] == cli("annotate", model, emoji, "-k", 5, "--exact", "--json").json["results"]
    monkeypatch.setitem(sys.modules, "faiss", None)
    shutil.rmtree(model / "index")
    assert "made again" not in cli("edit", model, "remove", names[2]).err


def test_rebuilt_index_keeps_the_requested_recall(cli: Cli, emoji: Path, model: Path) -> None:
    names = [name for name, _ in cli("annotate", model, emoji, "-k", 3, "--json").json["results"][0]["labels"]]
    assert cli("index", model, "--kind", "tree", "--recall", 0.3).code == 0
    assert "was made again" in cli("edit", model, "merge", *names[:2]).err
    assert open_model_folder(model / "index").config["target_recall"] == 0.3


def test_index_of_other_labels_is_ignored(cli: Cli, emoji: Path, model: Path) -> None:
    assert cli("index", model).code == 0
    train_model(cli, emoji, model, seed=1)
    result = cli("annotate", model, emoji, "--json")
    assert result.code == 0
    assert result.err.count("was made of other labels than the model has, so labels are searched exactly") == 1
    assert "wsabie index" in result.err
    assert "index" not in cli("info", model, "--json").json


@pytest.mark.parametrize("damage", ["cut", "other", "gone", "config"])
def test_damaged_index_is_ignored(cli: Cli, emoji: Path, model: Path, damage: str) -> None:
    exact = cli("annotate", model, emoji, "--json").json["results"]
    assert cli("index", model).code == 0
    (tensor,) = (model / "index" / "tensors").iterdir()
    content = tensor.read_bytes()
    if damage == "cut":
        tensor.write_bytes(content[: len(content) // 2])
    elif damage == "other":
        tensor.write_bytes(content[:-100] + bytes(100))
    elif damage == "gone":
        tensor.unlink()
    else:
        (model / "index" / "config.json").write_text("{")
    result = cli("annotate", model, emoji, "--json")
    assert result.code == 0
    assert result.json["results"] == exact
    assert result.err.count("labels are searched exactly") == 1
    assert cli("index", model).code == 0
    assert "exactly" not in cli("info", model).err


def test_missing_faiss_falls_back_to_exact_search(
    cli: Cli, emoji: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("index", model).code == 0
    monkeypatch.setitem(sys.modules, "faiss", None)
    result = cli("index", model)
    assert result.code == 1
    assert "pip install 'wsabie[ann]'" in result.err
    assert "Traceback" not in result.err
    result = cli("annotate", model, emoji, "--json")
    assert result.code == 0
    assert "labels are searched exactly" in result.err


def test_models_that_need_no_index_are_refused_without_faiss(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal comes before faiss is imported and before data are read."""
    assert cli("train", rows, "--model", tmp_path / "small", "--dim", 4).code == 0
    assert cli("train", rows, "--model", tmp_path / "popularity", "--kind", "popularity").code == 0
    monkeypatch.setitem(sys.modules, "faiss", None)
    for name, sentence in (
        ("small", "an index of 3 labels saves no time, one of 1,000 does"),
        ("popularity", "only models whose"),
    ):
        result = cli("index", tmp_path / name, "--queries", tmp_path / "none")
        assert (result.code, result.err.count("\n")) == (1, 1)
        assert sentence in result.err
        assert "faiss" not in result.err


def test_bad_index_options_are_refused(cli: Cli, model: Path, rows: Path, tmp_path: Path) -> None:
    assert cli("index", model, "--recall", 2).code == 2
    assert cli("index", model, "--kind", "lsh").code == 2
    for words in ((tmp_path / "none",), (model, "--queries", rows), (model, "--queries", tmp_path / "none")):
        result = cli("index", *words)
        assert result.code == 1
        assert "Traceback" not in result.err
    assert not (model / "index").exists()
    small = tmp_path / "small"
    assert cli("train", rows, "--model", small, "--dim", 4).code == 0
    assert "search exactly" in cli("index", small).err
    popularity = tmp_path / "popularity"
    assert cli("train", rows, "--model", popularity, "--kind", "popularity").code == 0
    assert "only models whose labels are points" in cli("index", popularity).err
