"""Columns in files: what is read of them, and that it is what was written."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from shard_files import in_shards
from wsabie.io.records import FeatureTable
from wsabie.io.shards.shard_folder import format_shard_name
from wsabie.storage import column_files
from wsabie.storage.column_files import (
    ColumnTable,
    ListColumn,
    compute_offsets,
    map_columns,
    prefetch_array,
    prefetch_slices,
    write_columns,
)

COLUMNS = ColumnTable(
    {"id": np.arange(40_000, dtype=np.uint64)},
    {
        "x": ListColumn(
            compute_offsets([200] * 40_000).astype(np.uint32), {"indices": np.arange(8_000_000, dtype=np.uint32)}
        )
    },
)


def test_prefetched_columns_equal_the_written_ones(tmp_path: Path) -> None:
    write_columns(tmp_path / "rows", COLUMNS, {})
    mapped_columns = map_columns(tmp_path / "rows", scattered=True)[0]
    written, mapped = (columns.lists["x"].parts["indices"] for columns in (COLUMNS, mapped_columns))
    for rows in (slice(0, 0), slice(0, 1), slice(1023, 1025), slice(5, 7_999_999), slice(7_999_999, None), slice(None)):
        assert np.array_equal(prefetch_array(mapped[rows]), written[rows])
        assert prefetch_array(written[rows]).base is written  # in memory: nothing to be read
    assert np.array_equal(prefetch_array(mapped_columns.numbers["id"][3:9]), np.arange(3, 9))


def read_so_far() -> int:
    """Bytes that this process had fetched from the disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes")).split()[1])


def cold(file: Path) -> Path:
    """The file, of which nothing is in memory; skips where it lies in memory altogether."""
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # the page that is read next, and no more
        bytes_before = read_so_far()
        os.pread(stream.fileno(), 1, file.stat().st_size // 2)
    if read_so_far() == bytes_before:
        pytest.skip("temporary files lie in memory here: nothing is read from a disk")
    return file


linux = pytest.mark.skipif(sys.platform != "linux", reason="what is read from the disk is told by Linux alone")


@linux
def test_a_few_rows_cost_their_own_bytes(tmp_path: Path) -> None:
    """However far ahead the system would read by itself."""
    write_columns(tmp_path / "rows", COLUMNS, {})
    columns = map_columns(cold(tmp_path / "rows"), scattered=True)[0]
    bytes_before = read_so_far()
    assert columns.lists["x"].parts["indices"][1_000_000] == 1_000_000
    assert read_so_far() - bytes_before < 1 << 16
    values = prefetch_array(columns.lists["x"].parts["indices"][6_000_000:6_020_000])
    assert values.sum() == sum(range(6_000_000, 6_020_000))
    assert read_so_far() - bytes_before < 4 * values.nbytes


@linux
def test_chunks_of_shards_cost_their_own_bytes(tmp_path: Path) -> None:
    X = sp.csr_matrix(np.random.default_rng(0).integers(0, 9, (40_000, 300)).astype(np.float32))
    rows = in_shards(
        FeatureTable(X, sp.csr_matrix(np.ones((40_000, 1), np.int8)), ["a"], [str(i) for i in range(40_000)]),
        tmp_path / "shards",
    )
    rows.read_spans([(0, 1)])  # the shard is open
    cold(tmp_path / "shards" / format_shard_name(0, 1))
    bytes_before = read_so_far()
    span_rows = rows.read_spans([(5_000, 5_256), (15_000, 15_256), (35_000, 35_256)])[0]
    assert span_rows.indices.nbytes // 2 <= read_so_far() - bytes_before < 2 * span_rows.indices.nbytes


@pytest.mark.parametrize("n_prefetched", [0, 1, 3, 100])
def test_the_next_slices_are_asked_for_while_one_is_in_use(n_prefetched: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prefetched: list[int] = []
    monkeypatch.setattr(column_files, "prefetch_array", lambda array: prefetched.append(int(array[0])))
    slices = [[np.array([2 * i]), np.array([2 * i + 1])] for i in range(10)]
    for used, (even, odd) in enumerate(prefetch_slices(slices, n_prefetched)):
        assert (even[0], odd[0]) == (2 * used, 2 * used + 1)
        assert prefetched == list(range(min(2 * (used + n_prefetched + 1), 20)))
    assert used == 9
