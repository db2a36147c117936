"""Rows to shards and back: nothing is lost, the order is that of no source, and a stopped run goes on."""

import hashlib
import json
import os
import pickle
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from shard_files import by_id, content, in_shards, same, shuffled, signed, toy_rows
from wsabie.core.errors import InputError
from wsabie.core.executors import SerialExecutor
from wsabie.io.alignment import align_table
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.recognition import open_row_stream, open_source
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import InMemoryStream, StreamPart
from wsabie.io.shards import shard_folder
from wsabie.io.shards.shard_folder import count_values, format_shard_name
from wsabie.io.shards.sharded_table import open_shards
from wsabie.storage.column_files import ColumnTable, ListColumn, map_columns, write_columns
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name
from wsabie.workflows import shard_runs, shard_writer
from wsabie.workflows.shard_runs import ShardOptions, SortedRuns


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a hundred rows and parts of fifty, so that few rows have many; keys are looked at as few at a time."""
    monkeypatch.setattr(shard_runs, "ROWS_PER_RUN", 100)
    monkeypatch.setattr(shard_writer, "_KEYS_AT_ONCE", 100)
    monkeypatch.setattr("wsabie.io.row_streams._ROWS_AT_ONCE", 50)
    monkeypatch.setattr("wsabie.io.formats.parquet_rows._BATCH", 50)


words = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=4)


@st.composite
def collections(draw: Any) -> FeatureTable:
    """Rows of any kind: sparse or dense, with groups, times, denied labels, values of all sizes, or without."""
    n, d, n_labels = draw(st.integers(1, 12)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1.0, 255.0, 7e4, 1e-3]))
    X = np.round(rng.random((n, d)) * scale, draw(st.sampled_from([0, 3]))) * (rng.random((n, d)) < 0.6)
    X = X.astype(np.float32) * np.float32(draw(st.sampled_from([1, -1])))
    low = draw(st.sampled_from([0, -1]))
    signs = rng.integers(low, 2, (n, n_labels)).astype(np.int8)
    signs[0, 0] = 1
    Y = sp.csr_matrix(signs)
    names = [f"{word} {i}" for i, word in enumerate(draw(st.lists(words, min_size=n_labels, max_size=n_labels)))]
    names = [normalise_label_name(name) for name in names]
    ids = [f"{i}-{word}" for i, word in enumerate(draw(st.lists(words, min_size=n, max_size=n)))]
    groups = draw(st.none() | st.lists(words, min_size=n, max_size=n))
    dense = draw(st.booleans())
    return FeatureTable(
        X if dense else sp.csr_matrix(X), Y, names, ids, groups, None, False, None, draw(st.none() | words)
    )


@given(collections(), st.integers(1, 8))
def test_whatever_rows_are_they_come_back(tmp_path_factory: Any, rows: FeatureTable, size: int) -> None:
    folder = tmp_path_factory.mktemp("any") / "shards"
    assert same(in_shards(rows, folder, rows=size).load(), rows)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.usefixtures("small_runs")
def test_the_order_is_that_of_no_source(tmp_path: Path, dense: bool) -> None:
    rows = toy_rows(dense=dense, by_label=True)
    ordered, reordered = in_shards(rows, tmp_path / "a", rows=100), in_shards(shuffled(rows), tmp_path / "b", rows=100)
    files = [path.name for path in sorted((tmp_path / "a").glob("rows-*"))]
    assert len(files) == 6
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    assert ordered.shards.fingerprint == reordered.shards.fingerprint
    first = ordered.load().Y.indices[::2]  # of a row's two labels the first
    assert abs(np.corrcoef(first, np.arange(len(first)))[0, 1]) < 3 / len(first) ** 0.5
    assert len(set(first[:60].tolist())) == 6  # every group in a tenth of the rows


def test_another_seed_is_another_order(tmp_path: Path) -> None:
    first, second = (in_shards(toy_rows(), tmp_path / str(seed), seed=seed).load() for seed in (0, 1))
    assert first.ids != second.ids
    assert same(first, second)


def test_rows_have_the_same_numbers_in_shards_of_any_size(tmp_path: Path) -> None:
    large, small = (in_shards(signed(toy_rows()), tmp_path / str(size), rows=size) for size in (600, 70))
    assert (len(large.shards.files), len(small.shards.files)) == (1, 9)
    assert large.load().ids == small.load().ids
    for span in ((0, 600), (65, 75), (599, 600)):
        (X, Y), (Z, W) = large.read_spans([span]), small.read_spans([span])
        assert all(np.array_equal(a, b) for a, b in zip(X, Z, strict=True))
        assert (Y != W).nnz == 0


@pytest.mark.usefixtures("small_runs")
def test_long_rows_make_short_runs_and_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, lengths = toy_rows(), list[int]()
    monkeypatch.setattr(shard_runs, "NONZEROS_PER_RUN", rows.X.nnz // 9)
    monkeypatch.setattr(shard_writer, "NONZEROS_PER_SHARD", rows.X.nnz // 4)

    def noted(file: Path, columns: ColumnTable, note: Any) -> None:
        lengths.append(count_values(columns))
        write_columns(file, columns, note)

    monkeypatch.setattr(shard_runs, "write_columns", noted)
    source = in_shards(rows, tmp_path / "out")
    assert max(lengths) <= rows.X.nnz // 9
    assert sum(lengths) == rows.X.nnz
    assert len(source.shards.files) == -(-rows.X.nnz // (rows.X.nnz // 4))


# ---- sources


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.usefixtures("small_runs")
def test_parquet_is_read_as_it_is_in_memory(tmp_path: Path, dense: bool) -> None:
    groups = [f"g{i // 3}" for i in range(600)]
    rows = replace(signed(toy_rows(dense=dense)), groups=groups, times=["2020-01-01"] * 600, feature_names=None)
    write_parquet_rows(rows, tmp_path / "rows.parquet")
    assert same(in_shards(tmp_path / "rows.parquet", tmp_path / "shards", rows=90).load(), rows)


@pytest.mark.usefixtures("small_runs")
def test_foreign_parquet_numbers_labels_as_in_memory(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    labels = [["zebra"], ["ant", "zebra"], ["ant"], ["mouse"]] * 60
    rows = {"indices": [[i % 7, 9] for i in range(240)], "values": [[1.5, 2.0]] * 240, "labels": labels}
    write_table(pa.table(rows), tmp_path / "rows.parquet", row_group_size=70)
    sharded = in_shards(tmp_path / "rows.parquet", tmp_path / "shards").load()
    expected = open_source(tmp_path / "rows.parquet")
    assert sharded.label_names == ["ant", "mouse", "zebra"]
    assert same(sharded, expected)


@pytest.mark.parametrize("head", ["", "120 9 30\n"])
def test_text_is_read_as_it_is_in_memory(tmp_path: Path, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (200,))
    lines = [f"{(7 * i) % 23},{i % 5 + 11} {i % 4}:{i}.5 8:3" for i in range(120)]
    (tmp_path / "rows.txt").write_text(head + "\n".join(lines) + "\n")
    table = in_shards(tmp_path / "rows.txt", tmp_path / "shards", rows=50).load()
    assert same(table, open_source(tmp_path / "rows.txt"))


def test_text_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("3 9 30\n1 2:1\n2 3:1\n")
    with pytest.raises(InputError, match="holds 2 rows but its header promises 3"):
        in_shards(tmp_path / "rows.txt", tmp_path / "shards")


def test_other_forms_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "tags.tsv").write_text("".join(f"item{i}\ttag{i % 3}\n" for i in range(9)))
    assert same(in_shards(tmp_path / "tags.tsv", tmp_path / "shards").load(), open_source(tmp_path / "tags.tsv"))


@pytest.mark.data
def test_real_rows_come_back(tmp_path: Path, data_dir: Path) -> None:
    file = data_dir / "corel5k_mulan" / "Corel5k-train-sparse.arff"
    shards = in_shards(file, tmp_path / "shards", rows=1000)
    assert shards.shards.facts["values"] == "uint8"
    assert same(shards.load(), open_source(file))
    assert same(open_source(tmp_path / "shards"), open_source(file))


@pytest.mark.usefixtures("small_runs")
def test_ids_that_come_again_are_rejected_wherever_they_are(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    ids = [f"row-{i % 150}" for i in range(240)]
    rows = {"id": ids, "indices": [[i % 7] for i in range(240)], "values": [[float(i)] for i in range(240)]}
    write_table(pa.table(rows | {"labels": [["a"], ["b"]] * 120}), tmp_path / "rows.parquet")
    rejects, expected_rejects = Rejects(), Rejects()
    sharded = in_shards(tmp_path / "rows.parquet", tmp_path / "shards", rejects, rows=40).load()
    assert same(sharded, open_source(tmp_path / "rows.parquet", rejects=expected_rejects))
    assert rejects.counts == expected_rejects.counts == {"duplicate id": 90}
    assert rejects.listed == expected_rejects.listed  # in the order of the source
    with pytest.raises(InputError, match=r"row 151: duplicate id \(row-0\)"):
        in_shards(tmp_path / "rows.parquet", tmp_path / "strict", Rejects(strict=True), rows=40)


@pytest.mark.usefixtures("small_runs")
def test_progress_counts_no_rows_that_came_again(tmp_path: Path) -> None:
    ids = [f"row-{i % 150}" for i in range(240)]
    rows = {"id": ids, "features": [[float(i)] for i in range(240)], "labels": [["a"], ["b"]] * 120}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    stages: dict[str, list[int | None]] = {}

    class RecordingProgress:
        @contextmanager
        def stage(self, name: str, total: int | None, unit: str) -> Any:
            self.counts = stages.setdefault(name, [total, 0])
            yield self

        def advance(self, n: int = 1, **figures: float) -> None:
            self.counts[1] = (self.counts[1] or 0) + n

    stream = open_row_stream(tmp_path / "rows.parquet", Rejects())
    shard_writer.write_shards(stream, tmp_path / "out", ShardOptions(rows=40), progress=RecordingProgress())
    assert stages == {"reading rows.parquet": [None, 240], "writing shards": [150, 150]}


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("near", [True, False])
def test_what_only_a_repeated_row_has_is_not_there(tmp_path: Path, near: bool) -> None:
    """A label, and the width; both stay where another row has them."""
    ids, labels = [f"row-{i}" for i in range(240)], [["x", "z"], ["y"]] * 120
    indices = [[i % 7] for i in range(240)]
    for place, label, feature in ((130, "only here", 90), (131, "here too", 12)):
        ids[place], labels[place], indices[place] = ids[place - (3 if near else 120)], [label], [feature]
    labels[200], indices[201] = ["here too"], [12]
    rows = {"id": ids, "indices": indices, "values": [[float(i % 5)] for i in range(240)], "labels": labels}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    sharded = in_shards(tmp_path / "rows.parquet", tmp_path / "shards", rows=40).load()
    expected = open_source(tmp_path / "rows.parquet")
    assert (sharded.label_names, sharded.X.shape[1]) == (["here too", "x", "y", "z"], 13)
    assert same(sharded, expected)


@pytest.mark.usefixtures("small_runs")
def test_ids_of_one_key_are_not_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        shard_runs, "_hash_words", lambda words, _: np.array([len(word) for word in words], np.uint64) << 60
    )
    ids = ["a", *(f"row-{i}" for i in range(120)), "b", "cc", "cc"]
    rows = {"id": ids, "features": [[float(i)] for i in range(124)], "labels": [["x"], ["y"]] * 62}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    sharded = in_shards(tmp_path / "rows.parquet", tmp_path / "shards", rows=40).load()
    assert same(sharded, open_source(tmp_path / "rows.parquet"))
    assert len(sharded) == 123


@pytest.mark.usefixtures("small_runs")
def test_an_id_that_came_in_another_file_is_told_as_from_memory(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    ids = [f"row-{i}" for i in range(120)]
    ids[70], ids[71], ids[119] = "row-69", "row-3", "row-0"  # near, far, and the last one
    for part, (lo, hi) in enumerate([(0, 60), (60, 69), (69, 120)]):
        rows = {"id": ids[lo:hi], "features": [[float(i)] for i in range(lo, hi)], "labels": [["a"]] * (hi - lo)}
        pq.write_table(pa.table(rows), tmp_path / "t" / f"part-{part}.parquet")
    rejects, expected_rejects = Rejects(), Rejects()
    in_shards(tmp_path / "t", tmp_path / "shards", rejects, rows=40)
    open_source(tmp_path / "t", rejects=expected_rejects)
    places = [f"{tmp_path / 't' / 'part-2.parquet'} row {row}" for row in (2, 3, 51)]
    assert (
        sorted(where for where, *_ in rejects.listed)
        == sorted(where for where, *_ in expected_rejects.listed)
        == places
    )


# ---- values


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([0, 1, 255], "uint8"),
        ([1, 256], "uint16"),
        ([-1, 2], "float16"),
        ([0.5, 1024], "float16"),
        ([0.1], "float32"),
        ([70000], "float32"),
    ],
)
def test_values_are_exact_in_the_smallest_type(tmp_path: Path, values: list[float], stored: str) -> None:
    rows = toy_rows(len(values))
    X = sp.csr_matrix(np.array(values, np.float32)[:, None])
    shards = in_shards(replace(rows, X=X), tmp_path / "shards")
    assert shards.shards.facts["values"] == stored
    assert np.array_equal(by_id(shards.load()).X.toarray().ravel(), np.array(values, np.float32))


def test_half_values_are_within_one_part_in_2048(tmp_path: Path) -> None:
    rows = toy_rows()
    X = rows.X.copy()
    X.data = np.random.default_rng(0).lognormal(0, 2, X.nnz).astype(np.float32)
    shards = in_shards(replace(rows, X=X), tmp_path / "shards", values="half")
    stored = by_id(shards.load()).X
    exact = by_id(replace(rows, X=X)).X
    assert shards.shards.facts["values"] == "float16"
    assert (abs(stored.data - exact.data) <= exact.data / 2048).all()
    X.data[3] = 1e-6
    with pytest.raises(InputError, match="1e-06, which float16 cannot hold"):
        in_shards(replace(rows, X=X), tmp_path / "other", values="half")


@given(st.lists(st.integers(0, 70000) | st.floats(-7e4, 7e4, width=32), min_size=1, max_size=8))
@settings(max_examples=200)
def test_small_types_lose_nothing(values: list[float]) -> None:
    exact_values = np.array(values, np.float32)
    for small in shard_runs.list_types(exact_values, "exact"):
        assert np.array_equal(exact_values.astype(small).astype(np.float32), exact_values)


def of_values(values: list[list[float]]) -> FeatureTable:
    """A row for each list of values."""
    X = np.zeros((len(values), max(map(len, values))), np.float32)
    for row, row_values in zip(X, values, strict=True):
        row[: len(row_values)] = row_values
    return replace(toy_rows(len(values)), X=sp.csr_matrix(X))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(
    ("values", "precision", "stored"),
    [
        ([[300.0]] * 20 + [[0.5]] * 20, "exact", "float16"),
        ([[300.0]] * 20 + [[0.5]] * 20, "half", "float16"),
        ([[2049.0]] * 20 + [[0.5]] * 20, "exact", "float32"),
        ([[2049.0]] * 20 + [[0.5]] * 20, "half", "float16"),
        ([[3.0]] * 20 + [[1.0 - 2.0**-20]] * 20, "half", "float16"),  # which float16 rounds to 1
        ([[1.0, 2.0]] * 20 + [[]] * 20, "exact", "uint8"),
        ([[]] * 20 + [[1.0, 256.0]] * 20, "half", "uint16"),
    ],
)
def test_the_type_of_values_is_the_same_however_rows_were_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[list[float]], precision: str, stored: str, dense: bool
) -> None:
    monkeypatch.setattr("wsabie.io.row_streams._ROWS_AT_ONCE", 20)
    rows = of_values(values)
    rows = replace(rows, X=rows.X.toarray()) if dense else rows
    written = []
    for order, size in ((rows, 20), (rows, 40), (rows, 1000), (shuffled(rows), 20), (shuffled(rows), 1000)):
        monkeypatch.setattr(shard_runs, "ROWS_PER_RUN", size)
        folder = tmp_path / str(len(written))
        shards = in_shards(order, folder, rows=10, values=precision)
        assert shards.shards.facts["values"] == stored
        written.append({name: bytes_ for name, bytes_ in content(folder).items() if name.startswith("rows-")})
    assert all(files == written[0] for files in written)


@pytest.mark.parametrize("size", [1, 2])
def test_values_that_float16_cannot_hold_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Whole numbers by themselves are held by another type."""
    monkeypatch.setattr("wsabie.io.row_streams._ROWS_AT_ONCE", 1)
    monkeypatch.setattr(shard_runs, "ROWS_PER_RUN", size)
    rows = of_values([[65535.0], [65530.0]])
    assert in_shards(rows, tmp_path / "whole", values="half").shards.facts["values"] == "uint16"
    with pytest.raises(InputError, match=r"values above 65,504 beside others that are negative or no whole numbers"):
        in_shards(of_values([[65535.0], [0.5]]), tmp_path / "both", values="half")


def test_groups_stay_together_whatever_ids_are(tmp_path: Path) -> None:
    """Also where rows have no ids of their own; and sides of a side, too."""
    rows = replace(toy_rows(600), groups=[f"g{i % 60}" for i in range(600)])
    write_parquet_rows(rows, tmp_path / "with.parquet")
    table = pq.read_table(tmp_path / "with.parquet")
    pq.write_table(table.drop_columns(["id"]), tmp_path / "without.parquet")
    for name in ("with", "without"):
        training, test = in_shards(tmp_path / f"{name}.parquet", tmp_path / name).split_holdout(0.3)
        sides = [*training.split_holdout(0.4), test]
        groups = [set(side.load().groups or ()) for side in sides]
        assert all(groups)
        assert sum(map(len, groups)) == len(set.union(*groups)) == 60


@pytest.mark.parametrize("has_ids", [True, False])
def test_rows_without_a_group_are_each_by_themselves(tmp_path: Path, has_ids: bool) -> None:
    rows = replace(toy_rows(), groups=[""] * 600)
    if not has_ids:
        write_parquet_rows(rows, tmp_path / "rows.parquet")
        table = pq.read_table(tmp_path / "rows.parquet").drop_columns(["id"])
        pq.write_table(table, tmp_path / "rows.parquet")
    _, valid = in_shards(rows if has_ids else tmp_path / "rows.parquet", tmp_path / "out").split_holdout(0.3)
    assert 130 < len(valid.load()) < 230


@pytest.mark.parametrize("form", ["rows", "parquet"])
def test_views_of_one_picture_are_on_one_side(tmp_path: Path, form: str) -> None:
    ids = [f"{i // 4}.png" + (f"#{i % 4}" if i % 4 else "") for i in range(600)]
    rows = replace(toy_rows(), ids=ids, augment=3)
    write_parquet_rows(rows, tmp_path / "rows.parquet")
    training, valid = in_shards(rows if form == "rows" else tmp_path / "rows.parquet", tmp_path / "out").split_holdout(
        0.4
    )
    sides = [{name.partition("#")[0] for name in side.load().ids} for side in (training, valid)]
    assert not sides[0] & sides[1]
    assert len(sides[0]) + len(sides[1]) == 150
    assert 0.25 < len(sides[1]) / 150 < 0.55


def test_rows_that_do_not_tell_their_width_do_not_in_shards(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("".join(f"{i % 3} {i % 7}:1\n" for i in range(60)))
    table = in_shards(tmp_path / "rows.txt", tmp_path / "out").load()
    for width in (5, 9):
        aligned = align_table(table, n_features=width)
        assert (aligned.rows.X.shape[1], aligned.unknown_features) == (width, 16 if width == 5 else 0)
    headed = in_shards(toy_rows(60), tmp_path / "headed").load()
    with pytest.raises(InputError, match="features but the model takes 99"):
        align_table(headed, n_features=99)


@pytest.mark.usefixtures("small_runs")
def test_a_dense_row_of_another_width_is_rejected_wherever_it_is(tmp_path: Path) -> None:
    for place in (0, 49, 50):
        lists = [[0.5, float(i), 1.0] for i in range(120)]
        lists[place] = [1.0, 2.0]
        columns = {"features": lists, "labels": [[f"l{i % 3}"] for i in range(120)]}
        schema = pa.schema([("features", pa.list_(pa.float32())), ("labels", pa.list_(pa.string()))])
        pq.write_table(pa.table(columns, schema=schema), tmp_path / f"{place}.parquet")
        rejects = Rejects()
        if place:
            assert len(in_shards(tmp_path / f"{place}.parquet", tmp_path / str(place), rejects).load()) == 119
            assert [row for row, *_ in rejects.listed] == [f"{tmp_path / f'{place}.parquet'} row {place + 1}"]
        else:  # the first row tells the width
            assert len(in_shards(tmp_path / "0.parquet", tmp_path / "0", rejects).load()) == 1


def test_what_cuts_shards_travels_when_it_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of processes works in this one first."""
    cuts = []

    class RecordingExecutor(SerialExecutor):
        def map_with(self, work: Any, shared: Any, items: Any) -> Any:
            cuts.append(shared)
            return super().map_with(work, shared, items)

    rows = toy_rows(60)
    shard_writer.write_shards(
        InMemoryStream(tmp_path, rows), tmp_path / "out", ShardOptions(), executor=RecordingExecutor()
    )
    assert cuts[0].open_run is not None
    assert pickle.loads(pickle.dumps(cuts[0])).n_shards == 1  # noqa: S301 - of our own making


# ---- stopped runs

KILLED = """
    import sys
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from wsabie.workflows import shard_runs
    from wsabie.io.formats import parquet_rows
    shard_runs.ROWS_PER_RUN, parquet_rows._STREAM_BATCH = 100, 50
    before, left = Path.replace, {writes}
    def replace(self, target):
        global left
        if left == 0:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return before(self, target)
    Path.replace = replace
    from shard_files import in_shards
    in_shards(Path({file!r}), Path({out!r}), rows=100)
"""


@pytest.mark.parametrize("writes", [1, 4, 5, 12, 13, 15, 18, 20, 22])
@pytest.mark.usefixtures("small_runs")
def test_a_killed_conversion_goes_on_and_writes_the_same(tmp_path: Path, writes: int) -> None:
    file, out = tmp_path / "rows.parquet", tmp_path / "out"
    write_parquet_rows(toy_rows(by_label=True), file)
    code = KILLED.format(tests=str(Path(__file__).parents[1]), writes=writes, file=str(file), out=str(out))
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr.decode()
    with pytest.raises(InputError, match="not finished; run the same `wsabie shards` command again"):
        open_shards(out)
    names_before = {name for name in content(out) if name.startswith(("run-", "rows-"))}
    assert len(names_before) == min(writes - 1, 18)
    rewritten = []
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("r*-*.safetensors")}
    in_shards(file, out, rows=100)
    rewritten = [path for path, stamp in stamps.items() if path.exists() and path.stat().st_mtime_ns != stamp]
    assert not rewritten  # what was whole is not written again
    in_shards(file, tmp_path / "whole", rows=100)
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.usefixtures("small_runs")
def test_what_a_stopped_run_rejected_is_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i % 3} 1:{i}" if i % 10 else f"{i % 3} 1:nan" for i in range(400)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (400,))
    first, second = Rejects(), Rejects()
    monkeypatch.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        in_shards(tmp_path / "rows.txt", tmp_path / "out", first)
    monkeypatch.undo()
    in_shards(tmp_path / "rows.txt", tmp_path / "out", second)
    assert first.listed == second.listed
    assert len(second) == 40


def test_what_a_source_that_is_read_whole_rejects_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tags.tsv").write_text("".join(f"item{i}\ttag{i % 3}\n" for i in range(9)) + "item9\titem0\tx\ty\n")
    first, second = Rejects(), Rejects()
    with monkeypatch.context() as patched:
        patched.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            in_shards(tmp_path / "tags.tsv", tmp_path / "out", first)
    assert len(first.listed) == 1
    in_shards(tmp_path / "tags.tsv", tmp_path / "out", second)
    assert (second.listed, second.counts) == (first.listed, first.counts)
    third = Rejects()
    in_shards(tmp_path / "tags.tsv", tmp_path / "out", third)
    assert (third.listed, third.counts) == (first.listed, first.counts)


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("last", [1, 2, 3])
def test_what_was_rejected_is_counted_once_wherever_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """Between two runs the first part of the next one was read, and its rejects were told."""
    lines = [f"{i % 3} 1:{i}" if i % 10 else f"{i % 3} 1:nan" for i in range(400)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (400,))
    add, runs = SortedRuns._add_run, []

    def stop(self: Any, *arguments: Any) -> None:
        add(self, *arguments)
        runs.append(None)
        if len(runs) == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SortedRuns, "_add_run", stop)
        with pytest.raises(KeyboardInterrupt):
            in_shards(tmp_path / "rows.txt", tmp_path / "out")
    rejects = Rejects()
    in_shards(tmp_path / "rows.txt", tmp_path / "out", rejects)
    assert len(rejects) == len({where for where, *_ in rejects.listed}) == 40


def test_finished_shards_are_left_as_they_are_and_those_of_others_are_not_replaced(tmp_path: Path) -> None:
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    times_before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == times_before
    for rows, size in ((toy_rows(), 50), (toy_rows(60), 100)):
        with pytest.raises(InputError, match=r"holds shards of other data, .*or with other options"):
            in_shards(rows, tmp_path / "out", rows=size)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(InputError, match=r"holds 'thesis\.txt', which is not of this command's making"):
        in_shards(toy_rows(), tmp_path / "mine")


@pytest.mark.usefixtures("small_runs")
def test_finished_shards_tell_what_was_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of every run and ids that came again, all counted; of the list no more than there was."""
    ids = [f"row-{i % 150}" for i in range(240)]
    rows = {
        "id": ids,
        "indices": [[i % 7] for i in range(240)],
    }
    rows["values"] = [[float("nan") if i % 100 == 3 else 1.0] for i in range(240)]
    pq.write_table(pa.table(rows | {"labels": [["a"], ["b"]] * 120}), tmp_path / "rows.parquet")
    first, second = Rejects(most=20), Rejects(most=20)
    in_shards(tmp_path / "rows.parquet", tmp_path / "out", first, rows=40)
    in_shards(tmp_path / "rows.parquet", tmp_path / "out", second, rows=40)
    assert len(first) > len(first.listed) == 20
    assert len(first.counts) == 2
    assert (second.listed, second.counts) == (first.listed, first.counts)


@pytest.mark.parametrize(
    "content_left", [None, "", "[]", "{}", '{"counts": {}, "rejected": [1]}', '{"counts": 1, "rejected": []}']
)
def test_a_list_of_rejects_that_is_lost_is_told(tmp_path: Path, content_left: str | None) -> None:
    in_shards(toy_rows(), tmp_path / "out")
    (tmp_path / "out" / "rejected.json").unlink()
    if content_left is not None:
        (tmp_path / "out" / "rejected.json").write_text(content_left)
    assert len(open_shards(tmp_path / "out").shards) == 600
    with pytest.raises(InputError, match=r"rejected\.json, the list of what was rejected, is missing or damaged"):
        in_shards(toy_rows(), tmp_path / "out")


def test_unfinished_work_of_others_is_not_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_folder, "write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        in_shards(toy_rows(60), tmp_path / "out", rows=100)
    monkeypatch.undo()
    with pytest.raises(InputError, match="holds unfinished shards of made-up, of other data or with other options"):
        in_shards(toy_rows(60), tmp_path / "out", rows=50)
    with pytest.raises(InputError, match=r"made-up has changed since the unfinished .* begun; delete .*/out to begin"):
        in_shards(toy_rows(), tmp_path / "out", rows=100)
    assert same(in_shards(toy_rows(60), tmp_path / "out", rows=100).load(), toy_rows(60))


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program still adds rows to the file."""
    file, write = tmp_path / "rows.txt", SortedRuns.write

    def grow_source(self: SortedRuns, *arguments: Any) -> None:
        write(self, *arguments)
        with file.open("a") as more:
            more.write("1 4:1\n")

    file.write_text("1 2:1\n2 3:1\n")
    with monkeypatch.context() as patch:
        patch.setattr(SortedRuns, "write", grow_source)
        with pytest.raises(InputError, match=r"rows\.txt has changed while it was read; delete .*/out and give"):
            in_shards(file, tmp_path / "out")


def test_a_source_that_was_corrected_is_begun_anew_where_nothing_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, right = tmp_path / "rows.txt", "3 9 30\n1 2:1\n2 3:1\n1 4:1\n"
    file.write_text(right[:-6])
    with pytest.raises(InputError, match="holds 2 rows but its header promises 3"):
        in_shards(file, tmp_path / "out")
    file.write_text(right)
    with pytest.raises(InputError, match=r"holds unfinished shards of .*, of other data or with other options"):
        in_shards(file, tmp_path / "out", rows=2)
    monkeypatch.chdir(tmp_path)
    assert same(in_shards(Path("rows.txt"), tmp_path / "out").load(), open_source(file))


@pytest.mark.usefixtures("small_runs")
def test_a_source_that_was_corrected_costs_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (400,))
    file, lines = tmp_path / "rows.txt", [f"{i % 3} 1:{i + 1}" for i in range(400)]
    file.write_text("\n".join(["401 9 30", *lines]) + "\n")
    with pytest.raises(InputError, match="holds 400 rows but its header promises 401"):
        in_shards(file, tmp_path / "out")
    runs = sorted((tmp_path / "out" / "unfinished").glob("run-*.safetensors"))
    assert runs
    file.write_text("\n".join(["400 9 30", *lines]) + "\n")
    with pytest.raises(InputError, match=r"rows\.txt has changed since"):
        in_shards(file, tmp_path / "out")
    assert sorted((tmp_path / "out" / "unfinished").glob("run-*.safetensors")) == runs


@pytest.mark.usefixtures("small_runs")
def test_two_conversions_into_one_folder_are_kept_apart(tmp_path: Path) -> None:
    class Another(InMemoryStream):
        """A source beside which a second command begins."""

        def parts(self, skip: int = 0) -> Iterator[StreamPart]:
            with pytest.raises(InputError, match="another command is changing"):
                in_shards(toy_rows(), tmp_path / "out", rows=100)
            return super().parts(skip)

    shard_writer.write_shards(InMemoryStream(Path("made-up"), toy_rows()), tmp_path / "whole", ShardOptions(rows=100))
    shard_writer.write_shards(Another(Path("made-up"), toy_rows()), tmp_path / "out", ShardOptions(rows=100))
    assert len(open_shards(tmp_path / "out").shards) == 600


@pytest.mark.parametrize("file_name", ["rows-00000-of-00001.safetensors", "names.json"])
def test_files_that_nothing_tells_of_are_not_thrown_away(tmp_path: Path, file_name: str) -> None:
    (tmp_path / file_name).write_text("mine")
    with pytest.raises(InputError, match=rf"holds {file_name}, but no manifest\.json that says what it is of; restore"):
        in_shards(toy_rows(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [file_name]
    assert (tmp_path / file_name).read_text() == "mine"


def test_a_conversion_that_was_stopped_before_it_began_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "run-00000.safetensors").write_text("of what?")
    assert same(in_shards(toy_rows(), tmp_path).load(), toy_rows())


@pytest.mark.parametrize("content_", ["0123", "{", "{}", "[]", "\0", '{"source": "x"}'])
def test_unfinished_work_that_cannot_be_told_is_refused(tmp_path: Path, content_: str) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "work.json").write_text(content_)
    with pytest.raises(InputError, match="holds unfinished shards of what cannot be told"):
        in_shards(toy_rows(), tmp_path)


@pytest.mark.usefixtures("small_runs")
def test_more_runs_than_files_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_runs, "MOST_OPEN", 4)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 20, limits[1]))
    try:
        source = in_shards(toy_rows(4000), tmp_path / "out", rows=2000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert same(source.load(), toy_rows(4000))


@pytest.mark.usefixtures("small_runs")
def test_a_run_that_is_opened_again_is_not_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs beyond the limit of open files are opened again for every shard."""
    monkeypatch.setattr(shard_runs, "MOST_OPEN", 4)
    opened: list[bool] = []

    def mapped(path: Path, *, check: bool = True, **more: Any) -> Any:
        columns = map_columns(path, check=check, **more)
        if path.name.startswith("run-"):
            assert columns[1] == {}  # nothing to parse but where columns lie
            opened.append(check)
        return columns

    monkeypatch.setattr(shard_runs, "map_columns", mapped)
    with monkeypatch.context() as patched:
        patched.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            in_shards(toy_rows(4000), tmp_path / "out", rows=400)
    assert not opened
    source = in_shards(toy_rows(4000), tmp_path / "out", rows=400)
    assert sum(opened) == 40  # those of the stopped run, once
    assert len(opened) > 40 * 10
    assert same(source.load(), toy_rows(4000))


@pytest.mark.parametrize("note", [None, "{"])
@pytest.mark.usefixtures("small_runs")
def test_a_run_without_its_note_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: str | None
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            in_shards(toy_rows(), tmp_path / "out", rows=100)
    file = tmp_path / "out" / "unfinished" / "run-00002.json"
    file.unlink()
    if note is not None:
        file.write_text(note)
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    in_shards(toy_rows(), tmp_path / "whole", rows=100)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize(
    "name", ["unfinished/run-00002.json", "unfinished/run-00002.safetensors", format_shard_name(1, 6)]
)
def test_what_may_not_be_read_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shard_folder, "write_manifest", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            in_shards(toy_rows(), tmp_path / "out", rows=100)
    contents_before = content(tmp_path / "out")

    def refusing(opened: Any) -> Any:
        def refused(path: Any, *arguments: Any, **more: Any) -> Any:
            if path == tmp_path / "out" / name:
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, *arguments, **more)

        return refused

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refusing(os.open))
        patched.setattr(Path, "open", refusing(Path.open))
        with pytest.raises(InputError, match=rf"cannot read .*{name}: Permission denied; check its permissions"):
            in_shards(toy_rows(), tmp_path / "out", rows=100)
    assert content(tmp_path / "out") == contents_before


@pytest.mark.usefixtures("small_runs")
def test_what_a_stopped_run_skipped_is_not_taken_over_with_strict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{i % 3} 1:{i}" if i % 10 else f"{i % 3} 1:nan" for i in range(400)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        in_shards(tmp_path / "rows.txt", tmp_path / "out")
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"rows\.txt:1: value that is not finite .*; run without --strict to skip it"):
        in_shards(tmp_path / "rows.txt", tmp_path / "out", Rejects(strict=True))


# ---- damage


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    return tmp_path / "out"


def test_damage_is_found(shards: Path) -> None:
    open_shards(shards).shards.verify()
    for name in (format_shard_name(2, 6), "statistics.safetensors", "names.json"):
        original = (shards / name).read_bytes()
        for content_, message in ((original[:-1], "bytes where"), (original[:-3] + b"\0\1\2", "damaged")):
            (shards / name).write_bytes(content_)
            with pytest.raises(InputError, match=message):
                open_shards(shards).shards.verify()
        (shards / name).unlink()
        with pytest.raises(InputError, match=f"{name} is missing"):
            open_shards(shards)
        (shards / name).write_bytes(original)
    open_shards(shards).shards.verify()


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
@pytest.mark.parametrize("name", [format_shard_name(2, 6), "statistics.safetensors", "names.json"])
def test_damage_is_found_by_the_command_that_wrote_it(shards: Path, name: str, damage: str) -> None:
    original = (shards / name).read_bytes()
    in_shards(toy_rows(), shards, rows=100)
    (shards / name).write_bytes(original[:-1] if damage == "cut" else original[:-3] + b"\0\1\2")
    if damage == "missing":
        (shards / name).unlink()
    with pytest.raises(InputError, match=rf"{name} .*; restore it from a copy, or delete .*/out and give the command"):
        in_shards(toy_rows(), shards, rows=100)


@pytest.mark.parametrize(
    ("dense", "name"), [(False, "rows_above_0"), (True, "deviation"), (True, "mean"), (False, "rows_of_label")]
)
@pytest.mark.parametrize("change", ["name", "length"])
def test_statistics_of_other_columns_are_refused(tmp_path: Path, dense: bool, name: str, change: str) -> None:
    """The file keeps its size, which is all that opening the folder checks."""
    shards = in_shards(toy_rows(dense=dense), tmp_path / "out").shards
    assert set(shards.statistics()) == {"rows_of_label", *(("mean", "deviation") if dense else ("rows_above_0",))}
    file = tmp_path / "out" / "statistics.safetensors"
    if change == "name":
        file.write_bytes(file.read_bytes().replace(name.encode(), name[::-1].encode()))
    else:
        columns = {
            key: ListColumn(
                starts - starts.clip(0, name in parts), {part: flat[name in parts :] for part, flat in parts.items()}
            )
            for key, (starts, parts) in map_columns(file)[0].lists.items()
        }  # one entry less
        write_columns(file, ColumnTable({}, columns), {})
    with pytest.raises(InputError, match=r"statistics\.safetensors is damaged"):
        shards.statistics()


@given(st.data())
def test_no_byte_of_a_shard_takes_a_kernel_out_of_its_arrays(tmp_path_factory: Any, data: Any) -> None:
    """A changed file of the right size is refused in one sentence, or its numbers are still in range."""
    folder = tmp_path_factory.mktemp("any") / "shards"
    in_shards(toy_rows(40), folder)
    file = folder / format_shard_name(0, 1)
    bytes_ = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        bytes_[data.draw(st.integers(0, len(bytes_) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes_)
    try:
        X, Y = open_shards(folder).read_spans([(0, 40)])
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert X.indptr[0] == 0
        assert (np.diff(X.indptr) >= 0).all()
        assert X.indptr[-1] == len(X.indices) == len(X.data)
        assert not len(X.indices) or 0 <= X.indices.min() <= X.indices.max() < 30
        assert not Y.nnz or 0 <= Y.indices.min() <= Y.indices.max() < 12


def test_rows_are_written_with_their_features_in_order(tmp_path: Path) -> None:
    rows = toy_rows(50)
    turned = sp.csr_matrix((rows.X.data[::-1], rows.X.indices[::-1], rows.X.indptr[-1] - rows.X.indptr[::-1]))
    rows = replace(rows, X=sp.csr_matrix(turned, shape=rows.X.shape))
    assert not rows.X.has_sorted_indices
    assert same(in_shards(rows, tmp_path / "out").load(), rows)


def test_rows_whose_features_do_not_ascend_are_refused(shards: Path) -> None:
    """The owner of a range of features finds its own in a row by bisection."""
    turned(shards / format_shard_name(0, 6))
    with pytest.raises(InputError, match="damaged"):
        open_shards(shards).read_spans([(0, 1)])


def turned(file: Path) -> None:
    """Turn the features of a shard round."""
    original, indices = file.read_bytes(), map_columns(file)[0].lists["x"].parts["indices"].copy()
    assert original.count(indices.tobytes()) == 1
    file.write_bytes(original.replace(indices.tobytes(), indices[::-1].tobytes()))


def test_labels_are_looked_at_without_features(shards: Path) -> None:
    turned(shards / format_shard_name(2, 6))
    rows = open_shards(shards)
    assert rows.compute_label_statistics().pairs == 1200
    starts = rows.shards.starts.tolist()
    assert len(rows.read_spans([(0, starts[2]), (starts[3], 600)])[1].indptr) == 601 - (starts[3] - starts[2])
    for spans in ([(0, 600)], [(starts[2], starts[3])], [(590, 600), (starts[2] + 5, starts[2] + 9)]):
        with pytest.raises(InputError, match=rf"{format_shard_name(2, 6)} is damaged"):
            rows.read_spans(spans)


@pytest.mark.parametrize("feature", [30, 31, 65535])
def test_a_feature_out_of_range_is_refused_where_it_is(shards: Path, feature: int) -> None:
    file = shards / format_shard_name(4, 6)
    x = map_columns(file)[0].lists["x"]
    at = int(x.starts[8]) - 1  # the last one of row 7
    indices = x.parts["indices"].copy()
    original, stored_bytes = file.read_bytes(), indices.tobytes()
    indices[at] = feature
    file.write_bytes(original.replace(stored_bytes, indices.tobytes()))
    rows = open_shards(shards)
    first = int(rows.shards.starts[4])
    rows.read_spans([(0, first + 7), (first + 8, 600)])
    with pytest.raises(InputError, match=rf"{format_shard_name(4, 6)} is damaged"):
        rows.read_spans([(first + 7, first + 8)])


def test_what_was_looked_at_is_not_looked_at_again_elsewhere(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in other processes, nor from another folder than the one where a relative path was opened."""
    monkeypatch.chdir(shards.parent)
    rows = open_shards("out")
    rows.compute_label_statistics()
    sent = pickle.dumps(rows)
    monkeypatch.chdir("/")
    checks: list[int] = []
    monkeypatch.setattr(type(rows.shards), "_check", lambda *_: checks.append(1))
    copy = pickle.loads(sent)  # noqa: S301 - of our own making
    assert copy.read_spans([(0, 600)])[1].nnz == 1200
    assert not checks
    open_shards(shards).read_spans([(0, 600)])
    assert len(checks) == 6


def test_shards_without_their_rows_are_known_as_such(shards: Path) -> None:
    for file in shards.glob("rows-*"):
        file.unlink()
    for opened in (open_shards, open_source):
        with pytest.raises(InputError, match=r"rows-00000-of-00006\.safetensors is missing; restore it from a copy"):
            opened(shards)


def test_a_manifest_that_is_missing_is_told(shards: Path) -> None:
    (shards / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"manifest.json is missing; restore it from a copy, or delete the folder"):
        open_shards(shards)


def test_a_manifest_that_was_changed_is_refused(shards: Path) -> None:
    manifest = shards / "manifest.json"
    text = manifest.read_text()
    damaged_texts = text.replace('"rows": 600', '"rows": 601'), text.replace('"version": 1', '"version": 9')
    for changed in (*damaged_texts, text[:-5], "[]"):
        manifest.write_text(changed)
        with pytest.raises(InputError, match=r"damaged|no list of shards|format 9"):
            open_shards(shards)


@pytest.mark.parametrize("file_kind", ["shards", "other_files"])
def test_a_manifest_does_not_lead_to_other_folders(shards: Path, file_kind: str) -> None:
    """Although the file is there, of the right size, and the manifest's checksum is right."""
    name = format_shard_name(5, 6) if file_kind == "shards" else "names.json"
    (shards / name).rename(shards.parent / name)
    change_manifest(shards, f'"{name}"', f'"../{name}"')
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        open_shards(shards)


def change_manifest(folder: Path, old: str, new: str) -> None:
    """Replace something in a manifest, whose checksum is right again."""
    manifest = json.loads((folder / "manifest.json").read_text().replace(old, new))
    del manifest["sha256"]
    body = json.dumps(manifest, indent=1, ensure_ascii=False).encode()[1:]
    (folder / "manifest.json").write_bytes(f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode() + body)


def test_dense_rows_of_another_width_than_the_manifest_tells_are_refused(tmp_path: Path) -> None:
    in_shards(toy_rows(60, dense=True), tmp_path / "out")
    change_manifest(tmp_path / "out", '"features": 30', '"features": 31')
    with pytest.raises(InputError, match=r"rows-00000-of-00001\.safetensors is damaged"):
        open_shards(tmp_path / "out").read_spans([(0, 1)])


def test_nothing_to_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("1 2:1e99\n")
    with pytest.raises(InputError, match="no rows are left"):
        in_shards(tmp_path / "rows.txt", tmp_path / "out")
    (tmp_path / "rows.txt").write_text("2:1\n")
    with pytest.raises(InputError, match="has a label"):
        in_shards(tmp_path / "rows.txt", tmp_path / "other")
