"""Exports of every kind and similarity, compared with the model itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wsabie
from export_checks import assert_same, fed, opened, predicted, ranked
from wsabie.models.exporters import onnx_model
from wsabie.models.exporters.export_formats import FORMATS, OPTIONS, export
from wsabie.models.exporters.onnx_model import quantise_rows
from wsabie.models.exporters.portable_model import build_portable_model
from wsabie.storage.model_folder import open_model_folder

pytest.importorskip("onnx", reason="onnx writes the graphs")
RNG = np.random.default_rng(0)
WORDS = wsabie.WordVectors([f"w{i}" for i in range(14)], RNG.normal(size=(14, 6)).astype(np.float32))
ROWS: dict[str, Any] = {"counts": "tfidf", "one unit": None, "units": "auto"}
NAMES = [f"w{i}" for i in range(9)]


def rows(kind: str, n: int = 120) -> tuple[Any, list[str]]:
    """Rows of nine labels: counts with an empty row, columns of one unit, columns of many."""
    labels = np.arange(n) % 9
    X = RNG.poisson(0.4 + 3 * (np.arange(12) == labels[:, None]))
    if kind == "counts":
        X[5] = 0
        return sp.csr_matrix(X), [NAMES[y] for y in labels]
    scale = 10.0 ** np.arange(-3, 9) if kind == "units" else 1
    return (X + RNG.normal(size=X.shape)) * scale, [NAMES[y] for y in labels]


def fit_model(kind: str, data: str) -> tuple[Any, Any]:
    few = {"epochs": 3, "threads": 1}
    factories = {
        "dot": lambda: wsabie.Wsabie(dim=7, label_bias=True, **few),
        "euclidean": lambda: wsabie.Wsabie(dim=7, similarity="euclidean", **few),
        "cosine": lambda: wsabie.Wsabie(dim=7, similarity="cosine", label_bias=True, **few),
        "rows": lambda: wsabie.Wsabie(dim=7, scaling=ROWS[data], **few),
        "ensemble": lambda: wsabie.Ensemble(wsabie.Wsabie(dim=4, epochs=3), n=2, threads=1),
        "linear": lambda: wsabie.LinearRanker(label_bias=True, **few),
        "one-vs-rest": lambda: wsabie.OneVsRest(threads=1),
        "nearest-mean": lambda: wsabie.NearestMean(scaling="auto"),
        "ridge": lambda: wsabie.Ridge(),
        "softmax": lambda: wsabie.Softmax(),
        "devise": lambda: wsabie.Devise(WORDS, labels=["w9", "w10, w3", "w11,w12", "nowhere"], **few),
        "conse": lambda: wsabie.Conse(WORDS, labels=["w9", "w10, w3", "nowhere"], top=3, threads=1),
    }
    X, labels = rows(data)
    return factories[kind]().fit(X, labels), X


KINDS = ("dot", "euclidean", "cosine", "rows", "ensemble", "linear", "one-vs-rest", "nearest-mean", "ridge", "softmax",
         "devise", "conse")  # fmt: skip


@pytest.mark.parametrize("data", ["counts", "one unit", "units"])
@pytest.mark.parametrize("kind", KINDS)
def test_exports_answer_as_the_model(kind: str, data: str, tmp_path: Path) -> None:
    model, X = fit_model(kind, data)
    export(model, tmp_path / "m.onnx", "onnx", k=4)
    assert_same(model, X, ranked(tmp_path / "m.onnx", X))
    export(model, tmp_path / "all.onnx", "onnx", k=100)
    every = ranked(tmp_path / "all.onnx", X)
    assert every[0].shape == (120, len(model.vocabulary_))
    assert_same(model, X, every)
    export(model, tmp_path / "plain", "numpy")
    assert_same(model, X, predicted(tmp_path / "plain", X, 100))


@pytest.mark.parametrize("data", ["counts", "units"])
@pytest.mark.parametrize("kind", KINDS)
def test_int8_export_is_smaller_and_nearly_equal(kind: str, data: str, tmp_path: Path) -> None:
    model, X = fit_model(kind, data)
    export(model, tmp_path / "m.onnx", "onnx", int8=True, k=3)
    ids, scores = ranked(tmp_path / "m.onnx", X)
    exact_scores = model.scores(X)
    spread = np.ptp(exact_scores[np.isfinite(exact_scores)])
    gaps = np.abs(np.take_along_axis(exact_scores, ids, axis=1) - scores)
    assert np.quantile(gaps, 0.99 if kind != "conse" else 0.9) < 0.03 * spread  # another class may come among its best
    assert (np.abs(scores - model.rank(X, 3)[1]) > 0).any()


def make_fusion(data: str, members: list[Any]) -> tuple[Any, Any]:
    """A fusion with these members, all of which count."""
    X, labels = rows(data)
    model = wsabie.Fusion(members, threads=1).fit(X, labels)
    model.members_ = [member.fit(X, labels) for member in members]
    model.weights_ = np.linspace(1, 0.3, len(members))
    return model, X


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("data", ["counts", "one unit", "units"])
def test_fusion_is_exported_as_one_graph(data: str, int8: bool, tmp_path: Path) -> None:
    few = {"epochs": 3, "threads": 1}
    members = [wsabie.Wsabie(dim=7, label_bias=True, **few), wsabie.LinearRanker(**few), wsabie.NearestMean()]
    model, X = make_fusion(data, [*members, wsabie.Ridge(), wsabie.Wsabie(dim=5, similarity="euclidean", **few)])
    export(model, tmp_path / "m.onnx", k=100, int8=int8)
    ids, scores = ranked(tmp_path / "m.onnx", X)
    if not int8:
        assert_same(model, X, (ids, scores))
    exact = np.take_along_axis(model.scores(X), ids, axis=1)
    assert np.quantile(np.abs(exact - scores), 0.99) < (0.03 if int8 else 1e-5) * np.ptp(exact)


def test_ridge_of_many_counts_is_one_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("wsabie.models.ridge.MAX_EXACT_FEATURES", 0)
    X, labels = rows("counts")
    model = wsabie.Ridge(directions=5).fit(X, labels)
    assert model.directions_.shape == (12, 5)
    export(model, tmp_path / "m.onnx")
    assert_same(model, X, ranked(tmp_path / "m.onnx", X))


def test_unexportable_fusion_is_refused(tmp_path: Path) -> None:
    neighbours, _ = make_fusion("counts", [wsabie.NearestMean(), wsabie.NearestNeighbours()])
    mixed, _ = make_fusion("counts", [wsabie.NearestMean(), wsabie.NearestMean(scaling=None)])
    for model, message in (
        (neighbours, "^the member nearest of this fusion does not come down to tables; train a fusion without it, or"),
        (mixed, "^members of this fusion take rows of counts and rows as they are; give all the same scaling$"),
    ):
        with pytest.raises(wsabie.InputError, match=message):
            export(model, tmp_path / "m.onnx")
    with pytest.raises(wsabie.InputError, match="a model of kind fusion does not come down to two tables"):
        export(mixed, tmp_path / "plain", "numpy")


def test_exported_rows_are_independent(tmp_path: Path) -> None:
    model, X = fit_model("dot", "counts")
    export(model, tmp_path / "m.onnx", "onnx", int8=True)
    session = opened(tmp_path / "m.onnx")
    single = session.run(["scores"], fed(X[7]))[0]
    assert single[0] == pytest.approx(session.run(["scores"], fed(X))[0][7], abs=1e-6)
    (points,) = session.run(["points"], fed(X))
    assert points.shape == (120, 7)
    assert np.abs(points - model.transform(X)).max() < 0.05


@pytest.mark.parametrize("int8", [False, True])
def test_padding_is_ignored_but_the_last_feature_counts(int8: bool, tmp_path: Path) -> None:
    model, X = fit_model("rows", "counts")
    export(model, tmp_path / "m.onnx", int8=int8)
    session, feed = opened(tmp_path / "m.onnx"), fed(X)
    nothing = feed["values"] == 0
    assert nothing.any()
    for index in range(12):
        padded = {**feed, "indices": np.where(nothing, index, feed["indices"])}
        for mine, theirs in zip(session.run(None, padded), session.run(None, feed), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(Exception, match="idx=12 must be within the inclusive range"):
        session.run(None, {**feed, "indices": np.where(nothing, 12, feed["indices"])})


def test_constant_columns_are_centred(tmp_path: Path) -> None:
    model = wsabie.OneVsRest(threads=1).fit(np.full((6, 3), 5.0), ["a", "b", "c"] * 2)
    model.coef_[:] = RNG.normal(size=(3, 3))
    assert (model.scaling_.method, model.scaling_.weight.tolist()) == ("standard", [1, 1, 1])
    X = RNG.normal(5, size=(8, 3))
    for form in ("onnx", "numpy"):
        export(model, tmp_path / form, form)
    assert_same(model, X, ranked(tmp_path / "onnx", X))
    assert_same(model, X, predicted(tmp_path / "numpy", X, 3))


def test_small_values_keep_their_precision(tmp_path: Path) -> None:
    X, labels = rows("counts")
    model = wsabie.Wsabie(dim=4, epochs=2, threads=1).fit(X, labels)
    tiny = sp.csr_matrix(X[:9] * 1e-7)
    export(model, tmp_path / "m.onnx")
    assert_same(model, tiny, ranked(tmp_path / "m.onnx", tiny), within=1e-5)


def test_rows_of_zeros_are_exported(tmp_path: Path) -> None:
    model, X = fit_model("dot", "counts")
    zeros = sp.csr_matrix((np.zeros(3), ([0, 0, 1], [2, 7, 4])), (3, 12))
    assert zeros.nnz == 3
    mixed = sp.vstack([zeros, X[:3]], "csr")
    for form, name in (("onnx", "m.onnx"), ("numpy", "plain")):
        export(model, tmp_path / name, form)
    for ranking in (ranked(tmp_path / "m.onnx", mixed), predicted(tmp_path / "plain", mixed, 4)):
        assert_same(model, mixed, ranking)


def test_tiny_points_have_bounded_cosines(tmp_path: Path) -> None:
    """Points shorter than a thousandth have cosines below 1 in the model and in the export."""
    model, X = fit_model("cosine", "one unit")
    model.space_.features *= np.float32(1e-4)
    assert (np.linalg.norm(model.transform(X), axis=1) < 1e-3).all()
    for form, name in (("onnx", "m.onnx"), ("numpy", "plain")):
        export(model, tmp_path / name, form)
    for ranking in (ranked(tmp_path / "m.onnx", X), predicted(tmp_path / "plain", X, 4)):
        assert_same(model, X, ranking)


@pytest.mark.parametrize("kind", ["dot", "euclidean", "cosine"])
def test_int8_scores_are_those_of_rounded_points(kind: str, tmp_path: Path) -> None:
    model, X = fit_model(kind, "one unit")
    export(model, tmp_path / "m.onnx", int8=True, k=9)
    ids, scores, points = opened(tmp_path / "m.onnx").run(["ids", "scores", "points"], fed(X))
    table = model.label_vectors / (1 if kind != "cosine" else np.linalg.norm(model.label_vectors, axis=1)[:, None])
    integers, steps = quantise_rows(table)
    labels = integers * steps[:, None]
    if kind == "euclidean":
        expected = -np.linalg.norm(points[:, None] - labels, axis=2)
    else:
        length = 1 if kind == "dot" else np.linalg.norm(points, axis=1)[:, None]
        expected = points @ labels.T / length + model.space_.bias
    assert np.abs(np.take_along_axis(expected, ids, axis=1) - scores).max() < 1e-4


def test_distances_far_from_the_origin_keep_their_precision(tmp_path: Path) -> None:
    model, X = fit_model("euclidean", "units")
    model.space_.labels[:, :7] += 40
    model.space_.features[-1, :7] += 40 / model.scaling_.weight[-1]
    model.space_ = model.space_.copy()
    assert build_portable_model(model).centre is not None
    for form, name in (("onnx", "m.onnx"), ("numpy", "plain")):
        export(model, tmp_path / name, form)
    for ranking in (ranked(tmp_path / "m.onnx", X), predicted(tmp_path / "plain", X, 4)):
        assert np.abs(ranking[1] - model.rank(X, ranking[1].shape[1])[1]).max() < 1e-4


def split_export_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are lowered so that tables and names need a second file."""
    for name, size in (("MAX_FILE_BYTES", 100), ("_SMALL", 50), ("MAX_INLINE_BYTES", 10)):
        monkeypatch.setattr(onnx_model, name, size)


def test_large_tables_are_written_beside_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split_export_files(monkeypatch)
    model, X = fit_model("dot", "counts")
    files = [file.name for file in export(model, tmp_path / "m.onnx")]
    assert files == ["m.onnx.labels.txt", "m.onnx.data", "m.onnx"]
    assert_same(model, X, ranked(tmp_path / "m.onnx", X))
    assert (tmp_path / "m.onnx.labels.txt").read_text().splitlines() == NAMES
    with pytest.raises(wsabie.InputError, match=r"there is something at .*m.onnx already"):
        export(model, tmp_path / "m.onnx")


def test_leftovers_of_a_killed_export_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it had come to: drafts, or some of the files but the graph."""
    split_export_files(monkeypatch)
    model, X = fit_model("dot", "counts")
    stale_file = tmp_path / f".m.onnx.data.{16 * 'a'}.tmp"
    for file in (stale_file, tmp_path / "m.onnx.labels.txt", tmp_path / "m.onnx.data"):
        file.write_text("half of something")
    export(model, tmp_path / "m.onnx")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data", "m.onnx.labels.txt"]
    assert_same(model, X, ranked(tmp_path / "m.onnx", X))


@pytest.mark.parametrize("blocked", ["m.onnx.labels.txt", "m.onnx.data"])
def test_folder_in_place_of_a_file_stops_the_export(
    blocked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split_export_files(monkeypatch)
    (tmp_path / blocked).mkdir()
    with pytest.raises(wsabie.InputError, match=rf"there is something at .*{blocked} already"):
        export(fit_model("dot", "counts")[0], tmp_path / "m.onnx")
    assert [file.name for file in tmp_path.iterdir()] == [blocked]


def test_exported_file_documents_its_numbers(tmp_path: Path) -> None:
    model, _ = fit_model("dot", "counts")
    export(wsabie.Annotator(model, feature_names=[f"f{i}" for i in range(12)]), tmp_path / "m.onnx")
    about = opened(tmp_path / "m.onnx").get_modelmeta()
    metadata = about.custom_metadata_map
    assert json.loads(metadata["labels"]) == NAMES
    assert json.loads(metadata["features"])[11] == "f11"
    assert (metadata["kind"], metadata["rows"], metadata["int8"], about.producer_name) == (
        "wsabie",
        "sparse",
        "false",
        "wsabie",
    )


@pytest.mark.parametrize(
    ("model", "form", "options", "sentence"),
    [
        ("nearest", "onnx", {}, "a model of kind nearest does not come down to two tables; export one of wsabie,"),
        ("dot", "pmml", {}, "there is no format 'pmml'; choose one of onnx, numpy, huggingface, half"),
        ("dot", "numpy", {"int8": True}, "int8 says tables of bytes, of onnx; the format numpy has none"),
        ("dot", "half", {"license": "mit"}, "license says which license the output has, of onnx and huggingface; the"),
        ("dot", "onnx", {"with_encoder": True}, "the model takes rows of features, which are not those of one"),
        ("dot", "onnx", {"colour": 1}, "colour is not an option; the format onnx has none, so leave it out"),
        ("dot", "onnx", {"k": 0}, "k is 0; choose a whole number above 0"),
        ("dot", "huggingface", {"license": "a\nb: c"}, "is not an identifier; give one such as apache-2.0"),
        ("random", "onnx", {}, "terms mean a random one of their labels cannot be exported"),
        ("space", "onnx", {}, "has no labels to rank"),
        ("unfitted", "numpy", {}, "is not fitted yet"),
    ],
)
def test_unsupported_exports_are_refused(
    model: str, form: str, options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    X, labels = rows("counts")
    exported: Any = {
        "nearest": lambda: wsabie.NearestNeighbours().fit(X, labels),
        "random": lambda: wsabie.Devise(WORDS, expand="random", epochs=1, threads=1).fit(X, labels),
        "space": lambda: wsabie.Space(),
        "unfitted": wsabie.Wsabie,
    }.get(model, lambda: fit_model("dot", "counts")[0])()
    with pytest.raises((wsabie.WsabieError, ValueError)) as raised:
        export(exported, tmp_path / "out", form, **options)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_every_format_is_written(tmp_path: Path) -> None:
    model, _ = fit_model("dot", "counts")
    for form in FORMATS:
        files = export(model, tmp_path / form, form)
        assert files
        assert all(file.is_file() for file in files)
        with pytest.raises(wsabie.InputError, match=r"there is something at .* already; give a new name"):
            export(model, tmp_path / form, form)


@pytest.mark.parametrize("data", ["counts", "units"])
def test_published_exports_contain_no_training_rows(data: str, tmp_path: Path) -> None:
    """The buffer of a model stays in memory, and in a folder for one's own use."""
    X, labels = rows(data)
    model = wsabie.Wsabie(dim=7, epochs=3, threads=1, replay=50).fit(X, labels).partial_fit(X[:9], labels[:9])
    state = model.to_state()
    for form in ("huggingface", "half"):
        export(model, tmp_path / form, form)
    parts_after_export = model.to_state()
    assert (model.replay, len(model.batch_reports_), parts_after_export.config) == (50, 1, state.config)
    assert all(np.array_equal(array, state.tensors[name]) for name, array in parts_after_export.tensors.items())
    tensor_names = {form: open_model_folder(tmp_path / form).tensors.keys() for form in ("huggingface", "half")}
    replay_names = {f"model/{name}" for name in state.tensors if name.startswith("replay/")}
    assert replay_names
    assert tensor_names["half"] - tensor_names["huggingface"] == replay_names
    bare, half = (wsabie.load(tmp_path / form).model for form in ("huggingface", "half"))
    assert (bare.replay_buffer_, bare.replay, len(bare.batch_reports_), len(half.replay_buffer_)) == (None, None, 0, 50)
    for mine, theirs in zip(bare.rank(X, 5), model.rank(X, 5), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    plain = wsabie.Wsabie(dim=7, epochs=3, threads=1).fit(X, labels)
    plain.space_, plain.history_ = model.space_, model.history_
    for loaded in (bare, plain):  # it goes on as one that never had a buffer
        loaded.partial_fit(X[9:20], ["new"] * 11).partial_fit(X[9:20], labels[9:20])
    assert np.array_equal(bare.space_.labels, plain.space_.labels)
    assert len(bare.set_params(replay=50).fill_replay_buffer(X, labels).replay_buffer_) == 50


def test_exported_ensemble_contains_no_replay_buffer(tmp_path: Path) -> None:
    X, labels = rows("counts")
    many = wsabie.Ensemble(wsabie.Wsabie(dim=4, epochs=2, replay=50), n=2, threads=1).fit(X, labels)
    export(many, tmp_path / "card", "huggingface")
    assert not [name for name in open_model_folder(tmp_path / "card").tensors if "replay" in name]
    assert_same(many, X, wsabie.load(tmp_path / "card").model.rank(X, 5))


def test_help_names_every_format_and_option() -> None:
    import typer

    from wsabie.cli.main import app

    commands: Any = typer.main.get_command(app)
    help_texts = {parameter.name: parameter.help for parameter in commands.commands["export"].params}
    assert all(f"{name}: {exporter.summary}" in help_texts["form"] for name, exporter in FORMATS.items())
    assert {name for exporter in FORMATS.values() for name in exporter.options} == set(OPTIONS) <= set(help_texts)


def test_merged_labels_are_never_returned(tmp_path: Path) -> None:
    model, X = fit_model("dot", "counts")
    model.merge_labels(NAMES[0], [NAMES[1]])
    for form, name in (("onnx", "m.onnx"), ("numpy", "plain")):
        export(model.to_float16(), tmp_path / name, form)
    assert_same(model.to_float16(), X, ranked(tmp_path / "m.onnx", X))
    assert_same(model.to_float16(), X, predicted(tmp_path / "plain", X, 9))
    assert 1 not in ranked(tmp_path / "m.onnx", X)[0]
    assert (tmp_path / "plain" / "labels.txt").read_text().splitlines() == [NAMES[0], "", *NAMES[2:]]
    assert "\n8 labels, " in (tmp_path / "plain" / "README.md").read_text()
