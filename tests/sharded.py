"""Rows written as shards for tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from toys import toy
from wsabie.sources.records import Rows
from wsabie.sources.row_stream import open_stream
from wsabie.sources.sharded import ShardedRows, open_shards
from wsabie.sources.streamed import WholeStream
from wsabie.storage.rejects import Rejects
from wsabie.studies.shard_runs import Wanted
from wsabie.studies.sharding import write_shards


def in_shards(source: Rows | Path, folder: Path, rejects: Rejects | None = None, **wanted: Any) -> ShardedRows:
    """The rows, or those of a file, as shards."""
    rejects = Rejects() if rejects is None else rejects
    stream = WholeStream(Path("made-up"), source) if isinstance(source, Rows) else open_stream(source, rejects)
    write_shards(stream, folder, Wanted(**wanted), rejects=rejects)
    return open_shards(folder)


def toy_rows(n: int = 600, *, dense: bool = False, by_label: bool = False, seed: int = 0) -> Rows:
    """The toy task as rows with two labels each, in the order of their first label where that is asked for."""
    X, Y, answer = toy(n, dense=dense, seed=seed)
    rows = Rows(X, Y, [f"label {y}" for y in range(Y.shape[1])], [f"row-{i}" for i in range(n)])
    return rows.take(np.argsort(answer[:, 0], kind="stable")) if by_label else rows


def by_id(rows: Rows) -> Rows:
    """The same rows in the order of their ids."""
    return rows.take(np.argsort(np.array(rows.ids)))


def same(one: Rows, other: Rows) -> bool:
    """Whether two collections are the same, bit for bit, whatever the order of the rows."""
    a, b = by_id(one), by_id(other)
    words = all(
        getattr(a, name) == getattr(b, name)
        for name in ("ids", "groups", "times", "label_names", "feature_names", "dictionary", "counts", "augment")
    )
    return words and _equal(a.X, b.X) and _equal(a.Y, b.Y)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    a, b = a.tocsr().sorted_indices(), b.tocsr().sorted_indices()
    return a.shape == b.shape and all(
        np.array_equal(getattr(a, part), getattr(b, part)) for part in ("indptr", "indices", "data")
    )


def shuffled(rows: Rows, seed: int = 0) -> Rows:
    """The same rows in another order."""
    return rows.take(np.random.default_rng(seed).permutation(len(rows)))


def signed(rows: Rows) -> Rows:
    """The same rows with every third label denied."""
    Y = sp.csr_matrix(rows.Y, copy=True)
    Y.data[::3] = -1
    return replace(rows, Y=Y)


def content(folder: Path) -> dict[str, bytes]:
    """Every file by its name."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
