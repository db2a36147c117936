"""Rows written as shards for tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from toy_tasks import toy
from wsabie.io.data_sources import open_row_stream
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import InMemoryStream
from wsabie.io.shards.sharded_table import ShardedFeatureTable, open_shards
from wsabie.storage.rejects import Rejects
from wsabie.workflows.shard_runs import ShardOptions
from wsabie.workflows.shard_writer import write_shards


def in_shards(
    source: FeatureTable | Path, folder: Path, rejects: Rejects | None = None, **shard_options: Any
) -> ShardedFeatureTable:
    """The rows, or those of a file, as shards."""
    rejects = Rejects() if rejects is None else rejects
    stream = (
        InMemoryStream(Path("made-up"), source)
        if isinstance(source, FeatureTable)
        else open_row_stream(source, rejects)
    )
    write_shards(stream, folder, ShardOptions(**shard_options), rejects=rejects)
    return open_shards(folder)


def toy_rows(n: int = 600, *, dense: bool = False, by_label: bool = False, seed: int = 0) -> FeatureTable:
    """The toy task as rows with two labels each, in the order of their first label where that is asked for."""
    X, Y, answer = toy(n, dense=dense, seed=seed)
    rows = FeatureTable(X, Y, [f"label {y}" for y in range(Y.shape[1])], [f"row-{i}" for i in range(n)])
    return rows.take(np.argsort(answer[:, 0], kind="stable")) if by_label else rows


def by_id(rows: FeatureTable) -> FeatureTable:
    """The same rows in the order of their ids."""
    return rows.take(np.argsort(np.array(rows.ids)))


def same(first: FeatureTable, second: FeatureTable) -> bool:
    """Return True if two tables are the same, bit for bit, whatever the order of the rows."""
    a, b = by_id(first), by_id(second)
    words = all(
        getattr(a, name) == getattr(b, name)
        for name in (
            "ids",
            "groups",
            "times",
            "label_names",
            "feature_names",
            "extractor_fingerprint",
            "counts",
            "augment",
        )
    )
    return words and _equal(a.X, b.X) and _equal(a.Y, b.Y)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    a, b = a.tocsr().sorted_indices(), b.tocsr().sorted_indices()
    return a.shape == b.shape and all(
        np.array_equal(getattr(a, part), getattr(b, part)) for part in ("indptr", "indices", "data")
    )


def shuffled(rows: FeatureTable, seed: int = 0) -> FeatureTable:
    """The same rows in another order."""
    return rows.take(np.random.default_rng(seed).permutation(len(rows)))


def signed(rows: FeatureTable) -> FeatureTable:
    """The same rows with every third label denied."""
    Y = sp.csr_matrix(rows.Y, copy=True)
    Y.data[::3] = -1
    return replace(rows, Y=Y)


def content(folder: Path) -> dict[str, bytes]:
    """Every file by its name."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
