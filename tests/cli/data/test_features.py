"""Every image extractor through the commands: rows, a model, annotations."""

import json
import shutil
import wave
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wsabie.cli import shared_options
from wsabie.core.execution import ProcessExecutor
from wsabie.io.data_sources import open_source
from wsabie.samples import get_sample_path

Cli = Callable[..., Any]
QUICK = ("--dim", 8, "--epochs", 2, "--threads", 1)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """An ONNX file: the mean colour of every eighth of the picture, each way."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("AveragePool", ["pixels"], ["small"], kernel_shape=[8, 8], strides=[8, 8]),
        helper.make_node("Flatten", ["small"], ["out"]),
    ]
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 64, 64])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "encoder", [pixels], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 drawings of the sample as files with metadata.csv."""
    folder = tmp_path_factory.mktemp("drawings")
    table = pq.read_table(get_sample_path("drawings"), columns=["image", "labels"]).slice(0, 60).to_pylist()
    lines = ["file_name,labels"]
    for number, row in enumerate(table):
        (folder / f"{number:03d}.webp").write_bytes(row["image"])
        lines.append(f'{number:03d}.webp,"{";".join(row["labels"])}"')
    (folder / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_network_features_train_a_model_that_annotates(cli: Cli, pictures: Path, network: Path, tmp_path: Path) -> None:
    """Several descriptions and a network side by side, in the model that is trained and in the rows that it takes."""
    model, extractor = tmp_path / "model", f"visual-words,colour,hog,onnx:{network}"
    feature_options = ("--features", extractor, "--n-words", 64, "--size", 64, "--normalise", "unit")
    trained = cli("train", pictures, "--model", model, *feature_options, *QUICK)
    assert trained.code == 0, trained.err
    network.unlink()  # the model has it
    about = cli("info", model, "--json").json
    settings = {"extractor": extractor, "size": 64, "normalise": "unit", "output": None}
    assert {name: about.get(name) for name in (*settings, "crop")} == {**settings, "crop": None}
    assert f"visual-words,colour,hog,onnx:{network}" in cli("info", model).out
    result = cli("annotate", model, pictures / "000.webp", "-k", 3, "--threads", 1, "--json")
    assert result.code == 0, result.err
    assert len(result.json["results"][0]["labels"]) == 3
    explained = cli("annotate", model, pictures / "000.webp", "--explain", tmp_path / "heat", "--threads", 1)
    assert explained.code == 0, explained.err
    assert len(list((tmp_path / "heat").glob("*.png"))) == 1
    rows = tmp_path / "rows.parquet"
    again = cli("features", "images", pictures, "--extractor", model, "--out", rows, "--threads", 1)
    assert again.code == 0, again.err
    assert "(visual-words,colour,hog,onnx)" in again.out.replace("\n", "")
    same = cli("annotate", model, rows, "-k", 3, "--threads", 1, "--json")
    assert same.json["results"][0]["labels"] == result.json["results"][0]["labels"]
    new = tmp_path / "new"
    new.mkdir()
    (new / "a.webp").write_bytes((pictures / "000.webp").read_bytes())
    assert cli("features", "images", new, "--extractor", model, "--out", rows, "--threads", 1).code == 0
    unlabelled = cli("annotate", model, rows, "-k", 3, "--threads", 1, "--json")
    assert unlabelled.json["results"][0]["labels"] == result.json["results"][0]["labels"]
    wrong = cli("features", "images", pictures, "--extractor", model, "--out", rows, "--size", 32)
    assert wrong.code == 1
    assert "made with visual-words size 64 and not 32, colour size 64 and not 32" in wrong.err


def test_items_without_labels_become_rows(cli: Cli, drawings: Path, tmp_path: Path) -> None:
    """Of pictures in a folder, alone and in Parquet, and of a sound; what cannot be read is listed."""
    new = tmp_path / "new"
    new.mkdir()
    for name in ("000.webp", "001.webp"):
        (new / name).write_bytes((drawings / name).read_bytes())
    pq.write_table(pa.table({"image": [(drawings / "002.webp").read_bytes()]}), tmp_path / "new.parquet")
    noise = np.random.default_rng(0).integers(-9000, 9000, 16000).astype("<i2")
    with wave.open(str(tmp_path / "new.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(noise.tobytes())
    pictures = ("--features", "hog", "--size", 32)
    for name, kind, n_rows, options in (
        ("new", "images", 2, (*pictures, "--strict")),
        ("new/000.webp", "images", 1, pictures),
        ("new.parquet", "images", 1, pictures),
        ("new.wav", "audio", 1, ("--features", "mfcc", "--n-words", 2)),
    ):
        out = tmp_path / f"{name}.rows".replace("/", "-")
        result = cli("features", kind, tmp_path / name, "--out", out, "--threads", 1, *options)
        assert result.code == 0, result.err
        assert f"{name} has no labels" in result.err.replace("\n", "")
        assert pq.read_table(out)["labels"].to_pylist() == [[]] * n_rows
    (new / "broken.webp").write_bytes(b"RIFF")
    listed = cli("features", "images", new, "--out", tmp_path / "rows", "--rejects", tmp_path / "rejects", *pictures)
    assert listed.code == 0, listed.err
    assert [json.loads(line)["where"] for line in (tmp_path / "rejects").read_text().splitlines()] == ["broken.webp"]


def test_unreadable_table_is_reported(cli: Cli, drawings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.webp").write_bytes((drawings / "000.webp").read_bytes())
    (folder / "metadata.csv").write_text("file_name,colour\na.webp,red\n")
    result = cli("features", "images", folder, "--out", tmp_path / "rows.parquet")
    assert result.code == 1
    assert "has no column" in result.err


def test_network_features_are_dense(cli: Cli, pictures: Path, network: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    (tmp_path / "rows.parquet.extractor" / "tensors").mkdir(parents=True)  # as a stopped save leaves it
    result = cli("features", "onnx", network, pictures, "--out", out, "--threads", 1)
    assert result.code == 0, result.err
    assert pq.read_schema(out).names[-1] == "features"
    rows = open_source(out)
    assert isinstance(rows.X, np.ndarray)
    assert rows.X.shape == (120, 3 * 64)
    assert cli("train", out, "--model", tmp_path / "model", *QUICK).code == 0
    saved = tmp_path / "rows.parquet.extractor"
    for more in (("--features", f"onnx:{network}"), ("--normalise", "imagenet"), ()):
        again = cli("features", "images", pictures, "--out", out, "--extractor", saved, "--threads", 1, *more)
        assert again.code == 0, again.err
    mismatch = cli("features", "onnx", network, pictures, "--out", out, "--normalise", "clip", "--threads", 1)
    assert mismatch.code == 1
    assert "was made with normalise imagenet and not clip" in mismatch.err


def test_collection_distinguishes_networks_and_their_options(
    cli: Cli, drawings: Path, network: Path, tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy")
    import onnx

    other = tmp_path / "other.onnx"
    content = onnx.load(network)
    content.producer_name = "another"
    onnx.save(content, other)
    photos = Path(shutil.copytree(drawings, tmp_path / "photos"))
    assert cli("collection", "init", photos).code == 0

    def train(*options: object) -> str:
        result = cli("collection", "train", photos, "--accept-worse", "--json", *QUICK, *options)
        assert result.code == 0, result.err
        fingerprint: str = result.json["facts"]["extractor"]
        return fingerprint

    first = train("--features", f"onnx:{network}", "--output", "out")
    second = train("--features", f"onnx:{other}")
    third = train("--features", f"onnx:{other}", "--normalise", "unit", "--onnx-output", "out", "--crop", 0.5)
    assert len({first, second, third}) == 3
    assert train("--from-scratch") == third
    assert train("--features", f"onnx:{other}") == second
    assert train("--features", f"onnx:{other}", "--seed", 3) == second


def test_kernel_pca_components_train_a_model_of_drawings(cli: Cli, drawings: Path, tmp_path: Path) -> None:
    """The model does what `features images` and `features kpca` do by hand, and takes pictures."""
    model, extractor = tmp_path / "model", "visual-words,colour,textons,hog"
    small = ("--features", extractor, "--n-words", 60, "--size", 48, "--threads", 1)
    trained = cli("train", drawings, "--model", model, *small, "--components", 12, "--dim", 8, "--epochs", 2)
    assert trained.code == 0, trained.err
    assert "learning components from 60 landmarks takes about" in trained.err
    assert f"12 components of {extractor}: on 60 rows of the map's own" in trained.err
    raw, mapped, ours = (tmp_path / f"{name}.parquet" for name in ("raw", "mapped", "ours"))
    assert cli("features", "images", drawings, "--out", raw, *small, "--balance", "mass").code == 0
    assert cli("features", "kpca", raw, "--out", mapped, "--dim", 12, "--threads", 1).code == 0
    again = cli("features", "images", drawings, "--extractor", model, "--out", ours, "--components", 12, "--json")
    assert again.code == 0, again.err
    assert (again.json["components"], again.json["evaluated_rows"], again.json["holdout"]) == (12, 60, False)
    np.testing.assert_array_equal(open_source(ours).X, open_source(mapped).X)
    result = cli("annotate", model, drawings, "-k", 3, "--threads", 1, "--json")
    assert result.code == 0, result.err
    assert [row["labels"] for row in result.json["results"]] == [
        row["labels"] for row in cli("annotate", model, ours, "-k", 3, "--threads", 1, "--json").json["results"]
    ]
    mismatch = cli("features", "images", drawings, "--extractor", model, "--out", ours, "--components", 11)
    assert "was made with n_components 12 and not 11" in mismatch.err
    row = next(iter(sorted(drawings.glob("*.*"))))
    explained = cli("annotate", model, row, "--explain", tmp_path / "heat", "--threads", 1)
    assert explained.code == 0, explained.err
    assert len(list((tmp_path / "heat").glob("*.png"))) == 1


def test_components_work_in_comparisons_and_for_one_extractor(cli: Cli, drawings: Path, tmp_path: Path) -> None:
    small = ("--features", "hog", "--size", 32, "--components", 5, "--landmarks", 20, "--threads", 1)
    result = cli("compare", drawings, *small, "--models", "wsabie,popularity", "--json")
    assert result.code == 0, result.err
    assert "5 components of hog" in result.err
    out = tmp_path / "rows.parquet"
    written = cli("features", "images", drawings, "--out", out, *small)
    assert written.code == 0, written.err
    assert "60 rows of 5 features (components of hog)" in written.out.replace("\n", " ")
    assert pq.read_schema(out).names[-1] == "features"
    without = cli("features", "images", drawings, "--out", out, *small[:4], "--threads", 1)
    assert without.code == 1
    assert "was made with n_components 5 and not without; use it with --extractor" in without.err


def test_components_need_nonnegative_features(cli: Cli, drawings: Path, network: Path, tmp_path: Path) -> None:
    command = ("features", "onnx", network, drawings, "--out", tmp_path / "rows.parquet", "--threads", 1)
    refused = cli(*command, "--components", 5)
    assert refused.code == 1
    assert "onnx gives 000.webp negative values, and the intersection kernel compares histograms" in refused.err
    assert cli(*command, "--components", 5, "--normalise", "unit").code == 0


def test_worker_processes_extract_the_same_features(
    cli: Cli, drawings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("features", "images", drawings, "--features", "colour", "--size", 64, "--threads", 2, "--out")
    assert cli(*words, tmp_path / "here.parquet").code == 0
    pool = Mock(side_effect=partial(ProcessExecutor, local_seconds=0))
    monkeypatch.setattr(shared_options, "ProcessExecutor", pool)
    assert cli(*words, tmp_path / "there.parquet").code == 0
    assert pool.called
    in_process, in_workers = (pq.read_table(tmp_path / name) for name in ("here.parquet", "there.parquet"))
    assert in_process.num_rows == 60
    assert in_process.equals(in_workers)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("images", "PICTURES", "--components", 121), "121 components are asked for, but 120 pictures have no more"),
        (("images", "PICTURES", "--landmarks", 9), "landmarks are those of kernel components"),
        (
            ("kpca", "PICTURES", "--components", 9),
            "--components cannot be used here: it is for pictures, sounds or documents, and kpca takes rows",
        ),
        (("images", "PICTURES", "--features", "colors"), "no features called 'colors'; did you mean 'colour'?"),
        (("images", "PICTURES", "--features", "hog", "--n-words", 9), "words is not an option of hog; leave it out"),
        (("images", "PICTURES", "--features", "onnx:gone.onnx"), "there is no ONNX file at gone.onnx"),
        (("images", "PICTURES", "PICTURES"), "2 paths are given; give one"),
        (("onnx", "PICTURES"), "after onnx come the ONNX file and the pictures, in this order: wsabie features onnx M"),
        (("onnx", "PICTURES", "net.onnx"), "after onnx come the ONNX file and the pictures, in this order"),
        (("onnx", "pictures.parquet", "net.onnx"), "after onnx come the ONNX file and the pictures, in this order"),
    ],
)
def test_bad_arguments_give_one_sentence(cli: Cli, pictures: Path, tmp_path: Path, words: Any, sentence: str) -> None:
    words = [pictures if word == "PICTURES" else word for word in words]
    result = cli("features", *words, "--out", tmp_path / "rows.parquet")
    assert result.code == 1
    assert sentence in result.err
    assert not (tmp_path / "rows.parquet").exists()
