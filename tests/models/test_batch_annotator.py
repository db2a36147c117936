"""Annotation of Arrow tables in batches, compared with `wsabie annotate`."""

import json
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_info, threadpool_limits

import wsabie
from wsabie.core.errors import InputError, ModelFolderError, UnknownLabelError
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.io.data_sources import open_source
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.records import FeatureTable, Item, ItemList
from wsabie.models.annotators import Annotator
from wsabie.models.batch_annotator import BatchAnnotator
from wsabie.samples import get_sample_path
from wsabie.workflows.batch_inference import annotate_to_file


class Trained(NamedTuple):
    folder: Path
    pictures: ItemList
    rows: FeatureTable


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model of 90 emoji, by visual words."""
    source = open_source(get_sample_path("emoji"))
    pictures = ItemList(source.path, list(source)[400:490], "pictures")
    extractor = wsabie.VisualWords(n_words=60).fit(pictures)
    rows = extractor.transform(pictures)
    model = wsabie.Wsabie(dim=16, epochs=5, threads=1).fit(rows.X, rows.Y, label_names=rows.label_names)
    folder = tmp_path_factory.mktemp("emoji") / "model"
    Annotator(model, extractor).save(folder)
    return Trained(folder, pictures, rows)


def annotate_to_parquet(trained: Trained, block: Any, file: Path, k: int) -> dict[str, list[Any]]:
    """Return the columns that `wsabie annotate --out` writes for the block."""
    annotate_to_file(file, Annotator.load(trained.folder), [block], k)
    columns: dict[str, list[Any]] = pq.read_table(file).to_pydict()
    return columns


def test_pictures_are_annotated_as_by_the_command(trained: Trained, tmp_path: Path) -> None:
    content = [item.content for item in trained.pictures.items]
    expected = annotate_to_parquet(trained, trained.pictures, tmp_path / "out.parquet", 3)
    broken = [*content[:7], b"no picture", None, *content[9:]]
    annotated = BatchAnnotator(trained.folder, 3)(
        pa.table({"id": [item.id for item in trained.pictures], "image": broken})
    )
    assert annotated.column_names == ["id", "image", "predicted_labels", "predicted_scores", "rejected"]
    reasons = annotated["rejected"].to_pylist()
    assert [i for i, reason in enumerate(reasons) if reason] == [7, 8]
    assert "picture" in reasons[7]
    assert reasons[8] == "empty"
    for name, column in (("labels", "predicted_labels"), ("scores", "predicted_scores")):
        values = annotated[column].to_pylist()
        assert values[7:9] == [None, None]
        assert values[:7] + values[9:] == expected[name][:7] + expected[name][9:]


def test_paths_and_structs_are_pictures(trained: Trained, tmp_path: Path) -> None:
    content = trained.pictures.items[0].content
    (tmp_path / "a.webp").write_bytes(content)  # type: ignore[arg-type]
    annotate, answers = BatchAnnotator(trained.folder), []
    for cell in (content, str(tmp_path / "a.webp"), {"bytes": content, "path": None}, {"bytes": None, "path": "b"}):
        answers.append(annotate(pa.table({"img": [cell]})).to_pylist()[0])
    assert answers[0]["predicted_labels"] == answers[1]["predicted_labels"] == answers[2]["predicted_labels"]
    assert answers[3]["predicted_labels"] is None
    assert answers[3]["rejected"]


def add_note(table: pa.Table, **facts: Any) -> pa.Table:
    """The table with a note such as `write_parquet_rows` leaves."""
    note = {"schema": 1, "counts": False, "label_names": [], **facts}
    return table.replace_schema_metadata({"wsabie": json.dumps(note)})


@pytest.fixture(scope="module")
def by_rows(trained: Trained) -> Trained:
    """A model of rows, without a feature extractor."""
    folder = trained.folder.with_name("rows")
    Annotator(Annotator.load(trained.folder).model).save(folder)
    return trained._replace(folder=folder)


def test_row_batches_may_be_cut_anywhere(by_rows: Trained, tmp_path: Path) -> None:
    write_parquet_rows(by_rows.rows, tmp_path / "rows.parquet")
    table, annotate = pq.read_table(tmp_path / "rows.parquet"), BatchAnnotator(by_rows.folder, 4)
    plain = FeatureTable(by_rows.rows.X, by_rows.rows.Y, by_rows.rows.label_names, by_rows.rows.ids)
    expected = annotate_to_parquet(by_rows, plain, tmp_path / "out.parquet", 4)
    parts = [annotate(table.slice(lo, size)) for lo, size in ((0, 1), (1, 0), (1, 50), (51, 39))]
    chunked = pa.concat_tables([table.slice(0, 30), table.slice(30)])
    for annotated in (annotate(table), pa.concat_tables(parts), annotate(chunked)):
        assert annotated["predicted_labels"].to_pylist() == expected["labels"]
        assert annotated["predicted_scores"].to_pylist() == expected["scores"]
        assert annotated["labels"] == table["labels"]
        assert annotated["rejected"].null_count == 90


def test_dense_rows_are_annotated_and_unusable_ones_reported(trained: Trained, tmp_path: Path) -> None:
    dense, names = trained.rows.X.toarray(), trained.rows.label_names
    model = wsabie.Wsabie(dim=16, epochs=5, threads=1).fit(dense, trained.rows.Y, label_names=names)
    model.save(tmp_path / "model")
    table = pa.table({"features": [[1.0], *dense[:3].tolist(), [np.nan, *dense[4, 1:]]]})
    candidate_names = names[:5]
    annotated = BatchAnnotator(tmp_path / "model", 2, candidates=candidate_names)(table)
    expected = [[name for name, _ in row] for row in model.annotate(dense[:3], 2, candidates=candidate_names)]
    assert annotated["predicted_labels"].to_pylist() == [None, *expected, None]
    assert annotated["rejected"].to_pylist() == [
        "wrong number of features",
        None,
        None,
        None,
        "value that is not finite",
    ]
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(dense[:3]))
    again = BatchAnnotator(tmp_path / "model", 2, candidates=candidate_names)(pa.table({"features": tensors}))
    assert again["predicted_labels"].to_pylist() == expected
    assert BatchAnnotator(tmp_path / "model")(table.slice(0, 0)).num_columns == 4


def test_features_are_matched_by_name(tmp_path: Path) -> None:
    X = csr_matrix(np.eye(3, dtype=np.float32))
    rows = FeatureTable(
        X, csr_matrix(np.eye(3, dtype=np.int8)), ["a", "b", "c"], ["0", "1", "2"], feature_names=["x", "y", "z"]
    )
    model = wsabie.Wsabie(dim=4, epochs=20, threads=1).fit(rows.X, rows.Y, label_names=rows.label_names)
    Annotator(model, None, ["z", "y", "x"]).save(tmp_path / "model")
    write_parquet_rows(rows, tmp_path / "rows.parquet")
    annotated = BatchAnnotator(tmp_path / "model", 1)(pq.read_table(tmp_path / "rows.parquet"))
    assert annotated["predicted_labels"].to_pylist() == [["c"], ["b"], ["a"]]


def test_annotator_is_pickled_without_the_model(by_rows: Trained) -> None:
    annotate = BatchAnnotator(by_rows.folder, 2)
    table = pa.table({"indices": [[1, 5], [0]], "values": [[2.0, 1.0], [3.0]]})
    expected = annotate(table)
    content = pickle.dumps(annotate)
    assert len(content) < 1000
    assert pickle.loads(content)(table) == expected  # noqa: S301


def test_unusable_tables_are_refused(trained: Trained, by_rows: Trained, tmp_path: Path) -> None:
    for model, message in (
        (trained, "wants pictures in a column image or img or picture"),
        (by_rows, "wants a column"),
    ):
        with pytest.raises(InputError, match=f"{message}.*; the batch has 'text'"):
            BatchAnnotator(model.folder)(pa.table({"text": ["a"]}))
    model = add_note(pa.table({"indices": [[70]], "values": [[1.0]]}), n_features=71)
    with pytest.raises(InputError, match="the data has 71 features but the model takes 60"):
        BatchAnnotator(by_rows.folder)(model)
    with pytest.raises(InputError, match="which is not a list of numbers"):
        BatchAnnotator(by_rows.folder)(pa.table({"indices": ["a"], "values": [[1.0]]}))
    kinds = wsabie.EntityKind("thing", np.eye(2, dtype=np.float32), ["a", "b"], scaling=None)
    space = wsabie.Space(dim=4, epochs=1, threads=1).fit([wsabie.Relation(kinds, "name", [("a", "x"), ("b", "y")])])
    space.save(tmp_path / "space")
    for name, content in (("space", "'space'"), ("gone", "no model")):
        with pytest.raises(ModelFolderError, match=f"{name} holds {content}, and batches need a model of labels"):
            BatchAnnotator(tmp_path / name)
    for options in ({"k": 0}, {"threads": 0}):
        with pytest.raises(InputError, match=f"{next(iter(options))} is 0; choose a whole number above 0"):
            BatchAnnotator(by_rows.folder, **options)


@pytest.mark.parametrize("batch", [{"features": [[1.0, 0.0]]}, np.eye(2), [[1.0, 0.0]]])
def test_other_types_than_arrow_tables_are_refused(by_rows: Trained, batch: Any) -> None:
    with pytest.raises(InputError, match=f"the batch is {type(batch).__name__}; give a pyarrow.Table"):
        BatchAnnotator(by_rows.folder)(batch)


def test_existing_output_column_is_refused(by_rows: Trained) -> None:
    annotate = BatchAnnotator(by_rows.folder, 2)
    annotated = annotate(pa.table({"indices": [[1]], "values": [[2.0]]}))
    for name in ("predicted_labels", "predicted_scores", "rejected"):
        with pytest.raises(InputError, match=f"has a column '{name}' already; rename or drop it"):
            annotate(annotated.select(["indices", "values", name]))


@pytest.mark.parametrize("noting", [False, True])
def test_unusable_sparse_rows_are_reported_one_by_one(by_rows: Trained, noting: bool) -> None:
    indices = pa.array([[1, 5], [70], None, [1], [], [2**32 - 1]], pa.list_(pa.uint32()))
    values = pa.array([[2.0, 1.0], [1.0], [1.0], None, [], [1.0]], pa.list_(pa.float32()))
    table = pa.table({"indices": indices, "values": values})
    annotated = BatchAnnotator(by_rows.folder, 2)(add_note(table, n_features=60) if noting else table)
    beyond = "feature number out of range"
    assert annotated["rejected"].to_pylist() == [None, beyond, "empty", "empty", None, beyond]
    model = Annotator.load(by_rows.folder).model
    X = csr_matrix(([2.0, 1.0], [1, 5], [0, 2, 2]), (2, 60), dtype=np.float32)
    expected = [[name for name, _ in row] for row in model.annotate(X, 2)]
    assert annotated["predicted_labels"].to_pylist() == [expected[0], None, None, None, expected[1], None]


def test_negative_counts_are_reported(tmp_path: Path) -> None:
    X = csr_matrix(np.eye(2, dtype=np.float32))
    wsabie.Wsabie(dim=4, epochs=2, threads=1, scaling=None).fit(X, ["a", "b"]).save(tmp_path / "model")
    table, annotate = pa.table({"indices": [[1], [1]], "values": [[2.0], [-2.0]]}), BatchAnnotator(tmp_path / "model")
    for counts, reason in ((True, "negative count"), (False, None)):
        annotated = annotate(add_note(table, n_features=2, counts=counts))
        assert annotated["rejected"].to_pylist() == [None, reason]


def test_record_batch_returns_a_record_batch(by_rows: Trained) -> None:
    annotate = BatchAnnotator(by_rows.folder, 2)
    table = add_note(pa.table({"indices": [[1, 5], [0], [99]], "values": [[2.0, 1.0], [3.0], [1.0]]}), n_features=60)
    batches = list(map(annotate, table.to_batches(max_chunksize=2)))  # as an engine maps them
    assert [type(part) for part in batches] == [pa.RecordBatch, pa.RecordBatch]
    assert pa.Table.from_batches(batches) == annotate(table)
    assert batches[0].schema.metadata == table.schema.metadata


def test_documents_are_annotated_as_by_the_command(tmp_path: Path) -> None:
    texts = ["the red rose", "the green grass", "a red rose", "a green leaf"]
    notes = ItemList(Path("notes"), [Item(str(i), text.encode(), ()) for i, text in enumerate(texts)], "documents")
    bag = BagOfWords(min_count=1).fit(notes)
    model = wsabie.Wsabie(dim=4, epochs=20, threads=1).fit(bag.transform(notes).X, ["red", "green"] * 2)
    of_notes = Trained(tmp_path / "model", notes, bag.transform(notes))
    Annotator(model, bag).save(of_notes.folder)
    expected = annotate_to_parquet(of_notes, notes, tmp_path / "out.parquet", 2)
    annotate = BatchAnnotator(of_notes.folder, 2)
    annotated = annotate(pa.table({"text": [*texts, "", None, "..."]}))
    assert annotated["predicted_labels"].to_pylist() == [*expected["labels"], None, None, None]
    assert annotated["predicted_scores"].to_pylist() == [*expected["scores"], None, None, None]
    assert annotated["rejected"].to_pylist() == [*[None] * 4, "empty", "empty", "no words"]
    coded = pa.table({"text": pa.array(texts).dictionary_encode()})
    assert annotate(coded)["predicted_labels"].to_pylist() == expected["labels"]
    for column in ([{"path": "the red rose"}], [7], [["the"]]):
        with pytest.raises(InputError, match=r"wants documents in a column text \(texts\); the batch has 'text' of"):
            annotate(pa.table({"text": column}))


def test_batch_without_usable_rows_is_annotated_as_empty(trained: Trained, by_rows: Trained) -> None:
    types = [pa.list_(pa.string()), pa.list_(pa.float32()), pa.string()]
    sparse = {"indices": pa.array([[-1], [70]]), "values": pa.array([[1.0], [1.0]])}
    for folder, columns in ((trained.folder, {"image": pa.array([b"none", None])}), (by_rows.folder, sparse)):
        annotate, table = BatchAnnotator(folder), pa.table(columns)
        annotated = annotate(table)
        assert annotated["predicted_labels"].null_count == annotated["predicted_scores"].null_count == 2
        assert annotated["rejected"].null_count == 0
        assert annotate(pa.table({"image": pa.nulls(2), **columns}))["rejected"].null_count == 0
        nothing = annotate(table.slice(0, 0))
        assert nothing.num_rows == 0
        assert nothing.schema.types[-3:] == annotated.schema.types[-3:] == types


def test_column_of_another_type_is_no_picture(trained: Trained) -> None:
    annotate = BatchAnnotator(trained.folder)
    for column in ([7], [{"name": "a.png"}], [{"bytes": [1]}], [[b"a"]]):
        with pytest.raises(InputError, match=r"wants pictures in .*bytes of files, or paths.*; the batch has 'img' of"):
            annotate(pa.table({"img": column}))


def test_candidates_limit_the_labels(by_rows: Trained) -> None:
    table, names = pa.table({"indices": [[1]], "values": [[2.0]]}), by_rows.rows.label_names
    annotated = BatchAnnotator(by_rows.folder, 10, candidates=names[:2])(table)
    assert sorted(annotated["predicted_labels"].to_pylist()[0]) == sorted(names[:2])
    assert BatchAnnotator(by_rows.folder, 10, candidates=[])(table)["predicted_labels"].to_pylist() == [[]]
    with pytest.raises(UnknownLabelError, match="there is no label 'no such label'"):
        BatchAnnotator(by_rows.folder, candidates=["no such label"])(table)


def test_model_folder_is_opened_once(by_rows: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(by_rows.folder.parent)
    annotate = BatchAnnotator(by_rows.folder.name, 2)
    monkeypatch.chdir(tmp_path)
    assert annotate(pa.table({"indices": [[1]], "values": [[2.0]]}))["rejected"].to_pylist() == [None]


def test_blas_runs_with_one_thread(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def watched(*arguments: Any, **options: Any) -> Any:
        thread_counts.extend(threads())
        return describe(*arguments, **options)

    thread_counts: list[int] = []
    describe = Annotator.rows
    monkeypatch.setattr(Annotator, "rows", watched)
    with threadpool_limits(2, "blas"):
        BatchAnnotator(trained.folder)(pa.table({"image": [trained.pictures.items[0].content]}))
        assert set(threads()) == {2}
    assert set(thread_counts) == {1}
