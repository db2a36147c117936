"""`wsabie export`: real collections from data to other programs, or one sentence."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabie
from export_checks import WITHOUT, assert_labels, assert_same, opened, predicted, rank_pictures, ranked
from full_disk import disk as disk
from full_disk import fill
from wsabie.models.exporters import onnx_model
from wsabie.models.exporters.export_formats import FORMATS
from wsabie.samples import get_photo_folder
from wsabie.storage.model_folder import open_model_folder

pytest.importorskip("onnx", reason="onnx writes the graphs")
Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def corel(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A model of Corel5k's training rows, trained through the command, and the test rows in its terms."""
    folder = tmp_path_factory.mktemp("corel")
    train, test = (data_dir / "corel5k_mulan" / f"Corel5k-{side}-sparse.arff" for side in ("train", "test"))
    words = ("train", train, "--model", folder / "m", "--epochs", 6, "--threads", 1)
    process = subprocess.run([sys.executable, "-m", "wsabie", *map(str, words)], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return folder / "m", wsabie.load(folder / "m").rows(wsabie.open_source(test)).rows


def test_exported_corel5k_model_ranks_as_the_original(cli: Cli, corel: tuple[Path, Any], tmp_path: Path) -> None:
    model, test = corel
    wsabie_model = wsabie.load(model).model
    report = cli("export", model, tmp_path / "m.onnx", "--as", "onnx", "--json").json
    assert (report["labels"], report["features"], report["extractor_left_out"]) == (374, 499, False)
    assert report["files"] == {str(tmp_path / "m.onnx"): (tmp_path / "m.onnx").stat().st_size}
    ranking = ranked(tmp_path / "m.onnx", test.X)
    assert ranking[0].shape == (500, 10)
    assert_same(wsabie_model, test.X, ranking)
    assert "374 labels, 499 features" in cli("export", model, tmp_path / "plain", "--as", "numpy").out
    assert_same(wsabie_model, test.X, predicted(tmp_path / "plain", test.X, 10))


def test_fusion_is_exported_as_one_onnx_graph(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    train, test = (data_dir / "corel5k_mulan" / f"Corel5k-{side}-sparse.arff" for side in ("train", "test"))
    rows = wsabie.open_source(train)
    members = [wsabie.Wsabie(epochs=5), wsabie.LinearRanker(epochs=5), wsabie.NearestMean(), wsabie.Ridge()]
    model = wsabie.Fusion(members, hold_out=0.1, threads=1).fit(rows.X, rows.Y, label_names=rows.label_names)
    assert len(model.members_) > 1
    model.save(tmp_path / "m")
    assert cli("export", tmp_path / "m", tmp_path / "m.onnx", "--as", "onnx", "-k", 5).code == 0
    assert_same(model, wsabie.open_source(test).X, ranked(tmp_path / "m.onnx", wsabie.open_source(test).X))


def test_photos_get_the_labels_that_annotate_gives(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")
    photos, model = get_photo_folder(), tmp_path / "model"
    trained = cli("train", photos, "--model", model, "--features", "lite0", "--epochs", 3, "--threads", 1)
    assert trained.code == 0, trained.err
    result = cli("export", model, tmp_path / "m.onnx", "--as", "onnx", "--with-encoder", "-k", 3, "--json")
    assert result.code == 0, result.err
    assert not result.json["extractor_left_out"]
    shown = cli("export", model, tmp_path / "again.onnx", "--as", "onnx", "--with-encoder")
    assert "labels, pictures as input, " in shown.out
    pictures = sorted(photos.rglob("*.jpg"))[::9]
    facts, ids, scores = rank_pictures(tmp_path / "m.onnx", pictures)
    assert (facts["license"], facts["rows"]) == ("Apache-2.0", "pictures")
    annotator = wsabie.load(model)
    expected = [[(name, score) for name, score in row] for row in annotator.annotate(pictures, 3)]
    assert_labels(facts, ids, scores, expected)


def test_int8_export_keeps_metrics_within_a_hundredth(cli: Cli, corel: tuple[Path, Any], tmp_path: Path) -> None:
    model, test = corel
    figures, sizes = {}, {}
    for name, more in (("whole", ()), ("bytes", ("--int8",))):
        file = tmp_path / f"{name}.onnx"
        assert cli("export", model, file, "--as", "onnx", "-k", 374, *more).code == 0
        ids, scores = ranked(file, test.X)
        every = np.empty((500, 374), np.float32)
        np.put_along_axis(every, ids, scores, axis=1)
        figures[name] = wsabie.evaluate_scores([(0, every)], test.Y, ks=(1,)).means
        sizes[name] = file.stat().st_size
    assert sizes["bytes"] < 0.35 * sizes["whole"]
    for metric in ("MAP", "p@1"):
        assert figures["bytes"][metric] == pytest.approx(figures["whole"][metric], abs=0.01)
    assert figures["bytes"] != figures["whole"]


def test_half_precision_export_halves_label_bytes_and_keeps_rankings(
    cli: Cli, corel: tuple[Path, Any], tmp_path: Path
) -> None:
    model, test = corel
    assert "the model folder with labels in float16" in cli("export", model, tmp_path / "half", "--as", "half").out
    single, half = wsabie.load(model).model, wsabie.load(tmp_path / "half").model
    assert half.label_vectors.nbytes == single.label_vectors.nbytes / 2
    (ids, scores), (own_ids, own_scores) = half.rank(test.X, 1), single.rank(test.X, 1)
    assert (ids == own_ids).mean() > 0.98
    assert 0 < np.abs(scores - own_scores).max() < 0.01
    assert half.score(test.X, test.Y) == pytest.approx(single.score(test.X, test.Y), abs=0.001)
    refused = cli("export", tmp_path / "half", tmp_path / "half" / "again", "--as", "half")
    assert "would lie in the model folder" in refused.err


def test_exported_example_prints_names(cli: Cli, corel: tuple[Path, Any], tmp_path: Path) -> None:
    """In a process that has NumPy alone, on rows in a text file."""
    model, test = corel
    cli("export", model, tmp_path / "plain", "--as", "numpy")
    lines = [" ".join(f"{j}:{v:g}" for j, v in zip(row.indices, row.data, strict=True)) for row in test.X.tocsr()[:5]]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    code = f"{WITHOUT}import runpy; sys.argv = ['predict.py', 'rows.txt', '3']; "
    code += f"runpy.run_path({str(tmp_path / 'plain' / 'predict.py')!r}, run_name='__main__')"
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    expected = wsabie.load(model).model.annotate(test.X[:5], k=3)
    assert process.stdout.splitlines() == ["\t".join(f"{name} {score:.4f}" for name, score in row) for row in expected]
    labelled = ["5 499 374", *(f"{'0,3' if i % 2 else '7'} {line}  # {i}" for i, line in enumerate(lines))]
    (tmp_path / "rows.txt").write_text("\n".join(labelled) + "\n")
    again = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (again.stdout, again.stderr) == (process.stdout, "")
    for wrong in ("1:2:3", "a:1", "9999:1"):
        (tmp_path / "rows.txt").write_text(f"{wrong}\n")
        refused = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
        assert refused.stderr.endswith("; the README.md beside this file says how rows are written\n")
    assert len((tmp_path / "plain" / "predict.py").read_text().splitlines()) < 50


def test_picture_model_is_exported_with_or_without_its_extractor(
    cli: Cli, model: Path, pictures: Path, tmp_path: Path
) -> None:
    result = cli("export", model, tmp_path / "m.onnx", "--as", "onnx")
    assert result.code == 0, result.err
    assert "the feature extractor of pictures is not exported: rows are those that it makes" in result.err
    annotator = wsabie.load(model)
    X = annotator.rows(wsabie.open_source(pictures)).rows.X
    assert_same(annotator.model, X, ranked(tmp_path / "m.onnx", X))
    assert opened(tmp_path / "m.onnx").get_modelmeta().custom_metadata_map["rows"] == "sparse"
    assert cli("export", model, tmp_path / "card", "--as", "huggingface", "--license", "CC-BY-4.0").code == 0
    new = pictures / "007.webp"
    words = ("-k", 3, "--json")
    original, two = (cli("annotate", folder, new, *words).json["results"] for folder in (model, tmp_path / "card"))
    assert original == two


def test_model_card_states_facts_without_local_paths(cli: Cli, model: Path, pictures: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the card")
    card = tmp_path / "emoji: \U0001f600's"
    assert cli("export", model, card, "--as", "huggingface", "--license", "CC-BY-4.0").code == 0
    text = (card / "README.md").read_text(encoding="utf-8")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    card_header = yaml.safe_load(head)
    assert (card_header["license"], card_header["library_name"], card_header["pipeline_tag"]) == (
        "cc-by-4.0",
        "wsabie",
        "image-classification",
    )
    (result,) = card_header["model-index"][0]["results"]
    assert card_header["model-index"][0]["name"] == card.name
    about = cli("info", model, "--json").json
    assert result["metrics"][0]["value"] == pytest.approx(about["validation_map"], abs=1e-4)
    assert f"{about['validation_map']:.4f}" in body
    assert result["dataset"]["name"] == pictures.name
    for section in ("Intended use", "How to load", "Model", "Training data", "Figures"):
        assert f"\n## {section}\n" in body
    for file in (card / "README.md", card / "config.json"):
        assert str(pictures.parent) not in file.read_text(encoding="utf-8")
    assert str(pictures) in (model / "config.json").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", body, re.DOTALL)
    code = code.replace('"FOLDER"', repr(str(card))).replace('"NEW"', repr(str(pictures)))
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def test_huggingface_hub_reads_the_model_card(cli: Cli, model: Path, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub reads the card as the Hub does")
    from safetensors.numpy import load_file

    cli("export", model, tmp_path / "emoji-tags", "--as", "huggingface")
    card = hub.ModelCard.load(tmp_path / "emoji-tags" / "README.md")
    assert (card.data.license, card.data.model_name, card.data.library_name) == ("unknown", "emoji-tags", "wsabie")
    (result,) = card.data.eval_results
    assert (result.task_type, result.metric_type) == ("image-classification", "mean_average_precision")
    for file in (tmp_path / "emoji-tags" / "tensors").iterdir():
        assert load_file(file)["tensor"] is not None


def test_replay_rows_are_not_exported(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """A published model needs the training data for an update, as any model without a buffer."""
    model, card, half = (tmp_path / name for name in ("m", "card", "half"))
    assert cli("train", rows, "--model", model, "--epochs", 2, "--threads", 1, "--replay", 40).code == 0
    result = cli("export", model, card, "--as", "huggingface")
    assert (result.code, result.err) == (0, "40 training rows of the replay buffer left out\n")
    assert cli("export", model, half, "--as", "half").err == ""
    folders = (model, card, half)
    model_tensors, bare, card_tensors = (
        {tensor for tensor in open_model_folder(folder).tensors if "replay" in tensor} for folder in folders
    )
    assert model_tensors == card_tensors != bare == set()
    n_buffer_rows = [cli("info", folder, "--json").json.get("buffer_rows") for folder in folders]
    assert n_buffer_rows == [40, None, 40]
    for more in ((), ("--replay", 40)):
        refused = cli("update", card, rows, *more)
        assert refused.code == 1
        assert "keeps no rows of its training, so that it would forget old labels" in refused.err.replace("\n", " ")
    new = tmp_path / "new.txt"
    new.write_text("3 9 3\n" + "".join(f"{label} {label}:7 {label + 3}:2\n" for label in range(3)))
    assert cli("update", card, new, "--remember", rows, "--threads", 1).code == 0
    assert cli("update", half, new, "--threads", 1).code == 0


def test_model_without_metrics_gets_a_card(cli: Cli, rows: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the card")
    assert cli("train", rows, "--model", tmp_path / "m", "--kind", "nearest").code == 0
    assert cli("export", tmp_path / "m", tmp_path / "card", "--as", "huggingface").code == 0
    text = (tmp_path / "card" / "README.md").read_text()
    card_header = yaml.safe_load(text.split("---\n")[1])
    assert "model-index" not in card_header
    assert card_header["license"] == "unknown"
    assert "None are known: no rows were held out, or the model was changed since." in text
    assert type(wsabie.load(tmp_path / "card").model).__name__ == "NearestNeighbours"


def test_bad_exports_give_one_sentence(cli: Cli, rows: Path, lists: Path, tmp_path: Path) -> None:
    for name, kind in (("m", "wsabie"), ("n", "popularity")):
        assert cli("train", rows, "--model", tmp_path / name, "--kind", kind).code == 0
    assert cli("train", lists / "lists.toml", "--model", tmp_path / "s", "--epochs", 1).code == 0
    (tmp_path / "there").mkdir()
    out, m = tmp_path / "out", tmp_path / "m"
    for words, sentence in (
        ((m, out, "--as", "pmml"), "there is no format 'pmml'; choose one of onnx, numpy, huggingface, half"),
        ((m, tmp_path / "there", "--as", "numpy"), "there already; give a new name, or move it away"),
        ((m, rows, "--as", "onnx"), "rows.txt already; give a new name, or move it away"),
        ((m, m / "x.onnx", "--as", "onnx"), "would lie in the model folder"),
        ((m, rows / "x.onnx", "--as", "onnx"), "choose a folder that you may write to"),
        ((m, out, "--as", "numpy", "--int8"), "int8 says tables of bytes, of onnx"),
        ((m, out, "--as", "huggingface", "-k", 3), "k says how many labels a graph gives, of onnx"),
        ((tmp_path / "n", out, "--as", "onnx"), "a model of kind popularity does not come down to two tables"),
        ((tmp_path / "s", out, "--as", "huggingface"), "is a space of several kinds of entities; export a model that"),
        ((tmp_path / "none", out, "--as", "onnx"), "there is no model at"),
    ):
        result = cli("export", *words)
        assert (result.code, result.out) == (1, ""), words
        assert sentence in result.err.replace("\n", " "), result.err
        assert "Traceback" not in result.err
        assert not out.exists()
    assert sorted(path.name for path in tmp_path.glob(".*")) == []
    assert cli("export", m, out).code == 2


def test_missing_onnx_is_reported_only_for_onnx_exports(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("train", rows, "--model", tmp_path / "m", "--epochs", 1)
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = cli("export", tmp_path / "m", tmp_path / "m.onnx", "--as", "onnx")
    assert result.code == 1
    assert "run: pip install 'wsabie[onnx]'" in result.err
    assert cli("export", tmp_path / "m", tmp_path / "plain", "--as", "numpy").code == 0


@pytest.fixture
def wordy(tmp_path: Path) -> Path:
    """A model whose names of labels and features take some kilobytes."""
    names = [f"{'name ' * 40}{i}" for i in range(40)]
    model = wsabie.Wsabie(dim=64, epochs=1, threads=1).fit(np.eye(40), names)
    wsabie.Annotator(model, feature_names=names).save(tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("n_free_blocks", [0, 1, 3, 6])
def test_failed_export_leaves_no_files_on_a_full_disk(
    cli: Cli, wordy: Path, disk: Path, form: str, n_free_blocks: int
) -> None:
    """With room for some pages; later the same command ends."""
    filler = fill(disk, n_free_blocks * 4096)
    command = ("export", wordy, disk / "out", "--as", form)
    refused = cli(*command)
    assert refused.code == 1
    assert f"cannot write {disk / 'out'}" in refused.err
    assert "the disk is full; free some space and run the same command again" in refused.err
    assert [file.name for file in disk.iterdir()] == ["filler"]
    filler.unlink()
    assert cli(*command).code == 0


@pytest.mark.parametrize("written", [0, 1, 2, 3])
def test_full_disk_leaves_none_of_several_files(
    cli: Cli, wordy: Path, tmp_path: Path, disk: Path, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them has no room; with some room made, the same command writes all."""
    for name, size in (("MAX_FILE_BYTES", 100), ("_SMALL", 50), ("MAX_INLINE_BYTES", 10)):
        monkeypatch.setattr(onnx_model, name, size)
    command = ("export", wordy, disk / "m.onnx", "--as", "onnx")
    sizes = cli(*command[:2], tmp_path / "m.onnx", *command[3:], "--json").json["files"]
    assert [Path(file).name for file in sizes] == ["m.onnx.labels.txt", "m.onnx.features.txt", "m.onnx.data", "m.onnx"]
    filler = fill(disk, sum(-(-size // 4096) * 4096 for size in [*sizes.values()][:written]))
    refused = cli(*command)
    assert refused.code == 1
    assert f"cannot write {disk / Path([*sizes][written]).name}: the disk is full; free some space" in refused.err
    assert [file.name for file in disk.iterdir()] == ["filler"]
    filler.unlink()
    assert cli(*command).code == 0
    for file in sizes:
        assert (disk / Path(file).name).read_bytes() == Path(file).read_bytes()
