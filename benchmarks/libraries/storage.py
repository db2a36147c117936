"""Rows on disk that training reads in blocks, single tensors, and files that are replaced whole."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.libraries.measure import Work, compare
from wsabie.collection.db.sqlite_file import copy_file
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import InMemoryStream
from wsabie.io.shards.shard_folder import ShardEntry, ShardNames, open_shard_folder
from wsabie.storage.atomic_files import write_bytes
from wsabie.storage.column_files import ColumnTable, ListColumn, map_columns, write_columns
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder
from wsabie.storage.schema_validation import parse_json
from wsabie.workflows.shard_runs import ShardOptions
from wsabie.workflows.shard_writer import write_shards

ROWS, FEATURES, NONZEROS, BLOCK, GROUP = 40_000, 10_000, 100, 64, 1024
ITEMS, SHARDS = 100_000, 1_000


@dataclass(frozen=True)
class ShardDocument:
    """Entries and names of shards, as their manifest has them."""

    entries: list[ShardEntry]
    names: ShardNames


def run(folder: Path) -> None:
    """Write made-up rows in each form and read 200 blocks at random places."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permuted(np.tile(np.arange(FEATURES), (200, 1)), axis=1)[:, :NONZEROS], axis=1)
    indices = np.tile(columns, (ROWS // 200, 1)).astype(np.int32)
    values = rng.integers(1, 200, indices.shape).astype(np.float32)
    _compare_blocks(folder, indices, values)
    _compare_tensors(folder, values)
    _compare_files(folder)
    _compare_backups(folder)
    _compare_schemas()


def _compare_blocks(folder: Path, indices: Any, values: Any) -> None:
    rng = np.random.default_rng(1)
    starts = rng.integers(0, ROWS - BLOCK, 200).tolist()
    offsets = np.arange(0, ROWS * NONZEROS + 1, NONZEROS)

    def ours() -> Work:
        X = csr_matrix((values.ravel(), indices.ravel(), offsets), shape=(ROWS, FEATURES))
        Y = csr_matrix((np.ones(ROWS), np.arange(ROWS) % 1000, np.arange(ROWS + 1)), shape=(ROWS, 1000))
        table = FeatureTable(X, Y, [f"label {n}" for n in range(1000)], [str(n) for n in range(ROWS)])
        write_shards(InMemoryStream(folder, table), folder / "shards", ShardOptions())
        shards = open_shard_folder(folder / "shards")
        return lambda: sum(np.asarray(shards.read_spans([(start, start + BLOCK)]).X.data).sum() for start in starts)

    def arrow() -> Work:
        import pyarrow as pa
        from pyarrow import parquet

        lists = [
            pa.ListArray.from_arrays(offsets.astype(np.int32), flat)
            for flat in (indices.ravel().astype(np.uint16), values.ravel().astype(np.uint8))
        ]
        path = folder / "rows.parquet"
        parquet.write_table(pa.table(lists, ["indices", "values"]), path, row_group_size=GROUP)

        def work() -> float:
            file, total = parquet.ParquetFile(path, memory_map=True), 0.0
            for start in starts:
                groups = range(start // GROUP, (start + BLOCK - 1) // GROUP + 1)
                rows = file.read_row_groups(list(groups)).slice(start % GROUP, BLOCK)
                _ = rows["indices"].combine_chunks().flatten().to_numpy()
                total += float(rows["values"].combine_chunks().flatten().to_numpy().astype(np.float32).sum())
            return total

        return work

    def zarr() -> Work:
        import zarr as library

        group = library.open_group(folder / "rows.zarr", mode="w")
        for name, array in (("indices", indices.astype(np.uint16)), ("values", values.astype(np.uint8))):
            group.create_array(name, data=array.ravel(), chunks=(GROUP * NONZEROS,))

        def work() -> float:
            stored, total = library.open_group(folder / "rows.zarr", mode="r"), 0.0
            for start in starts:
                part = slice(start * NONZEROS, (start + BLOCK) * NONZEROS)
                _ = stored["indices"][part]
                total += float(stored["values"][part].astype(np.float32).sum())
            return total

        return work

    title = f"200 blocks of {BLOCK} rows at random places among {ROWS:,} rows of {NONZEROS} non-zeros"
    entrants = {"ours": ours, "pyarrow Parquet": arrow, "zarr": zarr}
    sizes = {"ours": "shards", "pyarrow Parquet": "rows.parquet", "zarr": "rows.zarr"}
    compare(title, entrants, lambda total: f"sum {total:,.0f}")
    for name, file in sizes.items():
        path = folder / file
        files = [path] if path.is_file() else [inner for inner in path.rglob("*") if inner.is_file()]
        print(f"  {name}: {sum(inner.stat().st_size for inner in files) / 1e6:.1f} MB on disk, {len(files)} files")


def _compare_tensors(folder: Path, values: Any) -> None:
    tensors = {"W": values, "V": values[:1000]}

    def ours() -> Work:
        path = folder / "model"
        save_model_folder(path, ModelState("kind", {}, tensors))
        return lambda: open_model_folder(path, verify=False).tensors["V"].sum()

    def safetensors() -> Work:
        from safetensors import safe_open
        from safetensors.numpy import save_file

        path = folder / "model.safetensors"
        save_file(tensors, path)

        def work() -> Any:
            with safe_open(path, "np") as file:
                return [file.get_tensor(name) for name in ("W", "V")][1].sum()

        return work

    size = sum(tensor.nbytes for tensor in tensors.values()) / 1e6
    title = f"open {size:.0f} MB of tensors and read a tenth of them"
    compare(title, {"ours, mapped": ours, "safetensors safe_open": safetensors}, str)
    path = folder / "columns.safetensors"
    starts = np.arange(0, values.size + 1, NONZEROS)
    lists = {"x": ListColumn(starts, {"values": values.ravel()})}

    def write_ours() -> Work:
        return lambda: write_columns(path, ColumnTable({"id": np.arange(ROWS)}, lists), {})[:8]

    def write_library() -> Work:
        from safetensors.numpy import save_file

        def work() -> str:
            save_file({"id": np.arange(ROWS), "starts": starts, "values": values}, folder / "columns")
            return "neither flushed nor checksummed"

        return work

    compare("write the same with SHA-256 and flush", {"ours": write_ours, "safetensors": write_library}, str)
    assert len(map_columns(path)[0]) == ROWS


def _compare_files(folder: Path) -> None:
    content = os.urandom(100_000)

    def ours() -> Work:
        def work() -> int:
            for number in range(10):
                write_bytes(folder / f"{number}.bin", content)
            return number

        return work

    def atomicwrites() -> Work:
        from atomicwrites import atomic_write

        def work() -> int:
            for number in range(10):
                with atomic_write(folder / f"{number}.bin", mode="wb", overwrite=True) as out:
                    out.write(content)
            return number

        return work

    compare("replace 10 files of 100 KB", {"ours": ours, "atomicwrites": atomicwrites})


def _compare_backups(folder: Path) -> None:
    source, target = folder / "source.db", folder / "copy.db"
    with closing(sqlite3.connect(source)) as database, database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, path TEXT UNIQUE, hash TEXT)")
        rows = ((f"folder {n // 100}/picture {n}.jpg", f"{n * 2654435761 % (1 << 128):032x}") for n in range(ITEMS))
        database.executemany("INSERT INTO items (path, hash) VALUES (?, ?)", rows)

    def copy(write: Work) -> Work:
        def work() -> str:
            target.write_bytes(b"")
            write()
            return f"{target.stat().st_size / 1e6:.1f} MB"

        return work

    def vacuum() -> None:
        with closing(sqlite3.connect(source)) as database:
            database.execute("VACUUM INTO ?", (str(target),))

    entrants = {"ours": lambda: copy(lambda: copy_file(source, target)), "SQLite VACUUM INTO": lambda: copy(vacuum)}
    compare(f"a copy of a database of {ITEMS:,} rows", entrants, str)


def _compare_schemas() -> None:
    entry: dict[str, object] = {
        "file": "rows.safetensors",
        "rows": 64,
        "nonzeros": 6400,
        "bytes": 9,
        "sha256": "0" * 64,
    }
    names = {"label_names": ["sea"], "feature_names": None}
    content = json.dumps({"entries": [entry] * SHARDS, "names": names}).encode()

    def ours() -> Work:
        return lambda: parse_json(ShardDocument, content, "shards.json", "")

    def pydantic() -> Work:
        from pydantic import TypeAdapter

        adapter = TypeAdapter(ShardDocument)
        return lambda: adapter.validate_json(content, strict=True)

    compare(f"read and check {SHARDS:,} entries of shards", {"ours": ours, "pydantic": pydantic})
