"""Columns in files: what is read of them, and that it is what was written."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from wsabie.storage import columns
from wsabie.storage.columns import Columns, Lists, expect, expected, map_columns, starts_of, write_columns

COLUMNS = Columns(
    {"id": np.arange(40_000, dtype=np.uint64)},
    {"x": Lists(starts_of([200] * 40_000).astype(np.uint32), {"indices": np.arange(8_000_000, dtype=np.uint32)})},
)


def test_what_is_expected_is_what_was_written(tmp_path: Path) -> None:
    write_columns(tmp_path / "rows", COLUMNS, {})
    found = map_columns(tmp_path / "rows", scattered=True)[0]
    written, mapped = (columns.lists["x"].parts["indices"] for columns in (COLUMNS, found))
    for some in (slice(0, 0), slice(0, 1), slice(1023, 1025), slice(5, 7_999_999), slice(7_999_999, None), slice(None)):
        assert np.array_equal(expect(mapped[some]), written[some])
        assert expect(written[some]).base is written  # in memory: nothing to be read
    assert np.array_equal(expect(found.numbers["id"][3:9]), np.arange(3, 9))


def read_so_far() -> int:
    """Bytes that this process had fetched from the disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes")).split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="what is read from the disk is told by Linux alone")
def test_a_few_rows_cost_their_own_bytes(tmp_path: Path) -> None:
    """However far ahead the system would read by itself."""
    write_columns(tmp_path / "rows", COLUMNS, {})
    found = map_columns(tmp_path / "rows", scattered=True)[0]
    with (tmp_path / "rows").open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = read_so_far()
    assert found.numbers["id"][20_000] == 20_000
    if read_so_far() == before:
        pytest.skip("temporary files lie in memory here: nothing is read from a disk")
    before = read_so_far()
    assert found.lists["x"].parts["indices"][1_000_000] == 1_000_000
    assert read_so_far() - before < 1 << 16
    some = expect(found.lists["x"].parts["indices"][4_000_000:4_020_000])
    assert some.sum() == sum(range(4_000_000, 4_020_000))
    assert read_so_far() - before < 4 * some.nbytes


@pytest.mark.parametrize("ahead", [0, 1, 3, 100])
def test_the_next_slices_are_asked_for_while_one_is_in_use(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(columns, "expect", lambda array: asked.append(int(array[0])))
    slices = [[np.array([2 * i]), np.array([2 * i + 1])] for i in range(10)]
    for used, (even, odd) in enumerate(expected(slices, ahead)):
        assert (even[0], odd[0]) == (2 * used, 2 * used + 1)
        assert asked == list(range(min(2 * (used + ahead + 1), 20)))
    assert used == 9
