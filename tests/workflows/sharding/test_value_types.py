"""Types of stored values, and sides of a split of shards."""

import pickle
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

from shard_files import by_id, content, in_shards, shuffled, toy_rows
from wsabie.core.errors import InputError
from wsabie.core.execution import SerialExecutor
from wsabie.io.alignment import align_table
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import InMemoryStream
from wsabie.storage.rejects import Rejects
from wsabie.workflows import shard_runs, shard_value_types, shard_writer
from wsabie.workflows.shard_runs import ShardOptions


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


def test_float16_values_are_within_one_part_in_2048(tmp_path: Path) -> None:
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
    for small in shard_value_types.list_types(exact_values, "exact"):
        assert np.array_equal(exact_values.astype(small).astype(np.float32), exact_values)


def make_rows(values: list[list[float]]) -> FeatureTable:
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
def test_value_type_is_independent_of_row_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[list[float]], precision: str, stored: str, dense: bool
) -> None:
    monkeypatch.setattr("wsabie.io.row_streams._ROWS_AT_ONCE", 20)
    rows = make_rows(values)
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
    rows = make_rows([[65535.0], [65530.0]])
    assert in_shards(rows, tmp_path / "whole", values="half").shards.facts["values"] == "uint16"
    with pytest.raises(InputError, match=r"values above 65,504 beside others that are negative or no whole numbers"):
        in_shards(make_rows([[65535.0], [0.5]]), tmp_path / "both", values="half")


def test_groups_stay_together_for_any_ids(tmp_path: Path) -> None:
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
def test_rows_without_a_group_are_independent(tmp_path: Path, has_ids: bool) -> None:
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


def test_open_width_is_kept_in_shards(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("".join(f"{i % 3} {i % 7}:1\n" for i in range(60)))
    table = in_shards(tmp_path / "rows.txt", tmp_path / "out").load()
    for width in (5, 9):
        aligned = align_table(table, n_features=width)
        assert (aligned.rows.X.shape[1], aligned.unknown_features) == (width, 16 if width == 5 else 0)
    headed = in_shards(toy_rows(60), tmp_path / "headed").load()
    with pytest.raises(InputError, match="features but the model takes 99"):
        align_table(headed, n_features=99)


@pytest.mark.usefixtures("small_runs")
def test_dense_row_of_another_width_is_rejected_anywhere(tmp_path: Path) -> None:
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


def test_shard_cutter_is_pickled_after_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
