"""Parquet: rows of features in and out, and pictures."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.formats import parquet
from wsabie.io.formats.parquet import write_parquet_images
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.formats.parquet_tables import open_parquet_table
from wsabie.io.records import FeatureTable, Item, ItemList
from wsabie.storage.rejects import Rejects

FULL = FeatureTable(
    csr_matrix(np.array([[0, 1.5, 0], [2, 0, 3], [0, 0, 0]], np.float32)),
    csr_matrix(np.array([[1, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], np.int8)),
    ["b", "a", "c", "unused"],
    ["x", "y", "z"],
    groups=["g", "g", "h"],
    times=["2020-01-01", "", "2021"],
    counts=True,
    feature_names=["red", "green", "blue"],
    extractor_fingerprint="0f",
    augment=2,
)


def are_equal(a: FeatureTable, b: FeatureTable) -> bool:
    """Equal to the last bit: arrays with their types, names and everything beside."""
    plain = ("label_names", "ids", "groups", "times", "counts", "feature_names", "extractor_fingerprint", "augment")
    return (
        type(a.X) is type(b.X)
        and a.X.dtype == b.X.dtype
        and a.X.shape == b.X.shape
        and a.Y.shape == b.Y.shape
        and np.array_equal(*(r.X if isinstance(r.X, np.ndarray) else r.X.toarray() for r in (a, b)))
        and np.array_equal(a.Y.toarray(), b.Y.toarray())
        and all(getattr(a, name) == getattr(b, name) for name in plain)
        and compute_fingerprint(a) == compute_fingerprint(b)
    )


@pytest.mark.parametrize(
    "rows",
    [
        FULL,
        replace(FULL, X=FULL.X.toarray()),
        replace(FULL, groups=None, times=None, counts=False, feature_names=None, extractor_fingerprint=None, augment=0),
        replace(FULL, Y=abs(FULL.Y)),
    ],
)
def test_rows_are_read_back_exactly(tmp_path, rows):
    write_parquet_rows(rows, tmp_path / "rows.parquet")
    assert are_equal(open_source(tmp_path / "rows.parquet"), rows)


values = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(
    data=st.lists(st.lists(values, min_size=3, max_size=3), min_size=1, max_size=6),
    labels=st.data(),
    dense=st.booleans(),
)
def test_any_rows_are_read_back_exactly(tmp_path_factory, data, labels, dense):
    X = np.array(data, np.float32)
    n = len(data)
    Y = labels.draw(st.lists(st.lists(st.sampled_from([-1, 0, 1]), min_size=2, max_size=2), min_size=n, max_size=n))
    ids = labels.draw(st.lists(st.text(max_size=3), min_size=n, max_size=n, unique=True))
    rows = FeatureTable(X if dense else csr_matrix(X), csr_matrix(np.array(Y, np.int8)), ["é", "犬"], ids)
    path = tmp_path_factory.mktemp("rows") / "r.parquet"
    write_parquet_rows(rows, path)
    assert are_equal(open_source(path), rows)


def test_blocks_and_shards_are_one_table(tmp_path):
    n = 10_000
    rng = np.random.default_rng(0)
    X = csr_matrix((rng.random((n, 7)) * (rng.random((n, 7)) < 0.3)).astype(np.float32))
    Y = csr_matrix((rng.random((n, 5)) < 0.4).astype(np.int8))
    rows = FeatureTable(X, Y, list("abcde"), [f"r{i}" for i in range(n)])
    write_parquet_rows(rows, tmp_path / "whole.parquet")
    assert are_equal(open_source(tmp_path / "whole.parquet"), rows)
    for part in range(3):
        write_parquet_rows(
            rows.take(range(part * 4000, min(n, (part + 1) * 4000))), tmp_path / "shards" / f"{part}.parquet"
        )
    assert are_equal(open_source(tmp_path / "shards"), rows)


def test_inconsistent_shards_are_refused(tmp_path):
    write_parquet_rows(FULL, tmp_path / "1.parquet")
    write_parquet_rows(replace(FULL, label_names=["b", "a", "c", "d"]), tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2\.parquet has other columns or other notes than 1\.parquet"):
        open_source(tmp_path)


def test_table_without_rows_is_refused(tmp_path):
    path = table(tmp_path, labels=pa.array([], pa.list_(pa.string())))
    with pytest.raises(InputError, match=r"t\.parquet holds no rows"):
        open_source(path)


def table(tmp_path, name="t.parquet", metadata=None, **columns):
    arrow_table = pa.table(columns)
    pq.write_table(arrow_table.replace_schema_metadata(metadata) if metadata else arrow_table, tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("content", [{"indices": [[0]], "values": [[1.0]]}, {"path": ["a.png"]}])
def test_shards_with_mixed_label_types_are_refused(tmp_path, content):
    """Numbers as texts and as numbers would become the same names, and class 7 another label than "seven"."""
    table(tmp_path, "1.parquet", label=["seven"], **content)
    table(tmp_path, "2.parquet", label=[7], **content)
    with pytest.raises(InputError, match=r"2.parquet row 1: column 'label' holds the number 7 but the text 'seven' at"):
        open_source(tmp_path)


def test_tables_of_other_programs_are_read(tmp_path):
    path = table(tmp_path, indices=[[4, 1], [0]], values=[[1.0, 2.0], [3.0]], label=["sea", None], split=["a", "b"])
    rows = open_source(path)
    assert rows.X.toarray().tolist() == [[0, 2, 0, 0, 1], [3, 0, 0, 0, 0]]
    assert rows.label_names == ["sea"]
    assert rows.Y.toarray().tolist() == [[1], [0]]
    assert rows.ids == ["1", "2"]
    assert open_source(path, n_features=9).X.shape == (2, 9)
    assert open_source(path, split="b").ids == ["2"]
    dense = table(tmp_path, features=[[1.0, 2.0], [3.0, 4.0]], tags=["b|a", "a"])
    assert open_source(dense).X.tolist() == [[1, 2], [3, 4]]
    assert open_source(dense).Y.toarray().tolist() == [[1, 1], [1, 0]]
    assert open_source(table(tmp_path, features=[[1, 2]]), labels_from="none").Y.shape == (1, 0)


def test_broken_rows_are_skipped_counted_and_listed(tmp_path):
    broken = {
        "indices of another length": ([1, 2], [1.0], "i1"),
        "nan": ([1], [float("nan")], "i2"),
        "too large for float32": ([1], [1e39], "i3"),
        "missing number": ([1], [None], "i4"),
        "negative": ([1], [-1.0], "i5"),
        "twice": ([1, 0, 1], [1.0, 1.0, 1.0], "i6"),
        "no such feature": ([-1], [1.0], "i7"),
        "missing index": ([None], [1.0], "i8"),
        "again": ([1], [1.0], "good"),
    }
    good = ([1], [1.0], "good")
    cells = [good, *broken.values(), ([], [], "empty"), (None, None, "null")]
    indices, values, ids = (list(column) for column in zip(*cells, strict=True))
    path = table(tmp_path, indices=indices, values=values, id=ids, labels=[["a"]] * len(ids))
    rejects = Rejects()
    rows = open_source(path, counts=True, rejects=rejects)
    assert rows.ids == ["good", "empty", "null"]
    assert rejects.counts == {
        "indices and values of different lengths": 1,
        "value that is not finite": 3,
        "negative count": 1,
        "feature given twice": 1,
        "feature number out of range": 2,
        "duplicate id": 1,
    }
    assert rejects.listed[0][0].endswith("t.parquet row 2")
    with pytest.raises(InputError, match=r"t\.parquet row 2: indices and values of different lengths"):
        open_source(path, rejects=Rejects(strict=True))


def test_broken_dense_rows_are_listed(tmp_path):
    cells = [[1.0, 2.0], [1.0], None, [1.0, float("inf")], [-1.0, 2.0]]
    path = table(tmp_path, features=cells, labels=[["a"]] * 5)
    rejects = Rejects()
    assert open_source(path, counts=True, rejects=rejects).ids == ["1"]
    assert rejects.counts == {"wrong number of features": 2, "value that is not finite": 1, "negative count": 1}


def test_label_both_stated_and_denied_is_listed(tmp_path):
    path = table(tmp_path, features=[[1.0], [2.0]], labels=[["a"], ["a"]], negatives=[["a"], ["b"]])
    rejects = Rejects()
    rows = open_source(path, rejects=rejects)
    assert rows.Y.toarray().tolist() == [[1, -1]]
    assert rejects.counts == {"label both stated and denied": 1}


def make_note(**changes):
    sound = {"schema": 1, "n_features": 2, "counts": False, "label_names": ["a"], "feature_names": None}
    return {"wsabie": json.dumps(sound | changes)}


@pytest.mark.parametrize(
    ("columns", "metadata", "sentence"),
    [
        ({"indices": [[2]], "values": [[1.0]]}, make_note(), r"row 1 has feature 2 but the file promises 2 features"),
        ({"features": [[1.0]]}, make_note(), r"no rows are left .* wrong number of features"),
        ({"features": [["a"]]}, None, r"column 'features' of type list.*which is not a list of numbers"),
        ({"features": [1.0]}, None, r"which is not a list of numbers"),
        ({"indices": [[0]]}, None, r"has neither pictures .* nor features"),
        ({"features": [[1.0]]}, {"wsabie": "{"}, r"damaged notes under the key 'wsabie'"),
        ({"features": [[1.0]]}, make_note(n_features=-1), r"damaged notes"),
        ({"features": [[1.0]]}, make_note(label_names=["a", "a"]), r"damaged notes"),
        ({"features": [[1.0]]}, make_note(feature_names=["x"]), r"damaged notes"),
        ({"features": [[1.0]]}, make_note(extractor_fingerprint=7), r"damaged notes"),
        ({"features": [[1.0]]}, make_note(augment=-1), r"damaged notes"),
        ({"features": [[1.0]]}, make_note(augment="2"), r"damaged notes"),
        ({"features": [[1.0]]}, make_note(schema=2), r"damaged notes"),
    ],
)
def test_invalid_tables_are_refused(tmp_path, columns, metadata, sentence):
    path = table(tmp_path, metadata=metadata, labels=[["a"]], **columns)
    with pytest.raises(InputError, match=sentence):
        open_source(path)


def test_missing_label_column_is_reported(tmp_path):
    path = table(tmp_path, features=[[1.0]], other=["a"])
    with pytest.raises(InputError, match=r"no column 'labels' or .* \(it has 'features', 'other'\)"):
        open_source(path)
    with pytest.raises(InputError, match=r"has no column 'mine'; it has 'features', 'other'"):
        open_source(path, label_column="mine")
    with pytest.raises(InputError, match=r"has no column 'split'"):
        open_source(path, split="train")
    assert open_source(path, label_column="other").label_names == ["a"]


def test_pictures_are_streamed_repeatedly(tmp_path):
    n = 200
    path = table(
        tmp_path,
        image=[b"pixels %d" % i for i in range(n)],
        labels=[["a", "b  c"]] * n,
        id=[f"p{i}" for i in range(n)],
        group=["g"] * n,
        time=["2020"] * n,
        split=["train", "test"] * (n // 2),
    )
    source = open_source(path)
    assert len(source) == n
    pictures = list(source)
    assert pictures == list(source)
    assert pictures[131] == ("p131", b"pixels 131", ("a", "b c"), "g", "2020")
    assert [p.id for p in open_source(path, split="test")] == [f"p{i}" for i in range(1, n, 2)]
    assert {p.labels for p in open_source(path, labels_from="none")} == {()}


def test_hugging_face_format_is_read(tmp_path):
    features = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    path = table(
        tmp_path,
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
        image=[{"bytes": b"1", "path": None}, {"bytes": b"2", "path": "x.png"}, {"bytes": None, "path": "no.png"}],
        label=[1, 0, 7],
    )
    rejects = Rejects()
    source = open_source(path, rejects=rejects)
    assert [(p.id, p.content, p.labels) for p in source] == [("1", b"1", ("dog",)), ("2", b"2", ("cat",))]
    assert rejects.counts == {"label number out of range": 1}


def test_paths_lead_only_to_files_beside_the_table(tmp_path, picture):
    folder = tmp_path / "inner"
    picture(folder / "sub" / "a.png")
    picture(tmp_path / "outside.png")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    paths = ["sub/a.png", "../outside.png", "link.png", "gone.png", str(tmp_path / "outside.png"), None]
    rejects = Rejects()
    source = open_source(table(folder, path=paths, labels=[["a"]] * 6), rejects=rejects)
    assert [(p.id, p.content) for p in source] == [("sub/a.png", folder / "sub" / "a.png")]
    assert rejects.counts == {"labels without a picture": 5}
    structs = [{"bytes": None, "path": p} for p in paths]
    source = open_source(table(folder, image=structs, labels=[["a"]] * 6))
    assert [p.content for p in source] == [folder / "sub" / "a.png", *[b""] * 5]


def test_pictures_without_labels_and_duplicate_ids_are_listed(tmp_path):
    path = table(tmp_path, image=[b"1", b"2", b"3", None], label=["a", "", "a", "b"], id=["x", "y", "x", "z"])
    rejects = Rejects()
    source = open_source(path, rejects=rejects)
    assert [(p.id, p.content) for p in source] == [("x", b"1"), ("z", b"")]
    assert rejects.counts == {"picture without labels": 1, "duplicate id": 1}
    assert len(source) == 2
    list(source)
    assert len(rejects) == 2  # reading the pictures lists nothing again
    with pytest.raises(InputError, match=r"no labelled pictures are left"):
        open_source(table(tmp_path, image=[b"1"], labels=[[]]))


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    write_parquet_rows(FULL, tmp_path / "r.parquet")
    old_content = (tmp_path / "r.parquet").read_bytes()
    monkeypatch.setattr(FeatureTable, "take", lambda self, index: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_parquet_rows(FULL, tmp_path / "r.parquet")
    assert (tmp_path / "r.parquet").read_bytes() == old_content
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"]


@settings(deadline=None, max_examples=60)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
def test_damaged_files_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, at, byte, cut):
    path = tmp_path_factory.mktemp("damaged") / "r.parquet"
    write_parquet_rows(FULL, path)
    content = bytearray(path.read_bytes())
    at %= len(content)
    content[at] = byte
    path.write_bytes(content[:at] if cut else content)
    rows = result_or_sentence(open_source, path)
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows)


@settings(deadline=None)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
def test_damaged_pictures_give_items_or_one_sentence(tmp_path_factory, result_or_sentence, at, byte, cut):
    folder = tmp_path_factory.mktemp("damaged")
    structs = [{"bytes": b"1", "path": "a.png"}, {"bytes": None, "path": "b.png"}, None]
    path = table(folder, image=structs, labels=[["a"], ["b"], ["a", "b"]], id=["x", "y", "z"], group=["g", None, "h"])
    content = bytearray(path.read_bytes())
    at %= len(content)
    content[at] = byte
    path.write_bytes(content[:at] if cut else content)
    source = result_or_sentence(open_source, path)
    if source is not None and not isinstance(source, FeatureTable):
        pictures = result_or_sentence(list, source)
        assert pictures is None or len(pictures) == len(source)


cells = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["../a.png", "/a", "a.png", "\0", "x" * 300]))


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=4),
    form=st.sampled_from(["image", "path"]),
)
def test_any_texts_beside_pictures_give_items_or_one_sentence(tmp_path_factory, result_or_sentence, rows, form):
    names, ids, labels, groups = map(list, zip(*rows, strict=True))
    pictures = [{"bytes": None, "path": name} for name in names] if form == "image" else names
    path = table(tmp_path_factory.mktemp("any"), **{form: pictures}, id=ids, tags=labels, group=groups)
    source = result_or_sentence(open_source, path, rejects=Rejects())
    if source is not None:
        items = list(source)
        assert len(items) == len(source) == len({picture.id for picture in items}) > 0
        assert all(picture.labels for picture in items)


def test_pictures_are_read_back_exactly(tmp_path, picture, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP_BYTES", 90)
    file = picture(tmp_path / "a.png")
    pictures = [
        Item("x", file, ("sky;sea", "犬"), "g", None),
        *(Item(f"y{n}", b"%d" % n * 30, ("1",), None, "2020") for n in range(9)),
    ]
    write_parquet_images(ItemList(tmp_path, pictures), tmp_path / "p.parquet")
    assert list(open_source(tmp_path / "p.parquet")) == [pictures[0]._replace(content=file.read_bytes()), *pictures[1:]]
    assert pq.read_metadata(tmp_path / "p.parquet").num_row_groups > 2
    file.unlink()
    with pytest.raises(InputError, match=r"there is no file or folder .*a\.png"):
        write_parquet_images(ItemList(tmp_path, pictures), tmp_path / "q.parquet")
    assert not (tmp_path / "q.parquet").exists()


def test_tensor_columns_are_read_as_dense_rows(tmp_path):
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(4, dtype=np.float32).reshape(2, 2))
    path = table(tmp_path, features=tensors, labels=[["a"], ["b"]])
    assert open_source(path).X.tolist() == [[0, 1], [2, 3]]


def test_skipped_rows_keep_row_numbers(tmp_path):
    """Whole groups of rows, and files, are passed over unread."""
    for name, n in (("a", 10), ("b", 5)):
        pq.write_table(pa.table({"id": [f"{name}{i}" for i in range(1, n + 1)]}), tmp_path / f"{name}.parquet", 3)
    table = open_parquet_table(tmp_path)

    def list_places(skip):
        batches = table.iterate_batches(["id"], 2, skip)
        ids = ((batch, enumerate(batch.get_column("id"))) for batch in batches)
        return [(batch.format_position(row), row_id) for batch, rows in ids for row, row_id in rows]

    assert list_places(0)[11] == (f"{tmp_path / 'b.parquet'} row 2", "b2")
    for skip in range(16):
        assert list_places(skip) == list_places(0)[skip:]
