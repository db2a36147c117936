"""Small runs, and rows as shards."""

from pathlib import Path

import pytest

from shard_files import in_shards, toy_rows
from wsabie.workflows import shard_runs, shard_writer


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a hundred rows and parts of fifty, so that few rows have many; keys are looked at as few at a time."""
    monkeypatch.setattr(shard_runs, "ROWS_PER_RUN", 100)
    monkeypatch.setattr(shard_writer, "_KEYS_AT_ONCE", 100)
    monkeypatch.setattr("wsabie.io.row_streams._ROWS_AT_ONCE", 50)
    monkeypatch.setattr("wsabie.io.formats.parquet_rows._BATCH", 50)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Six shards of 100 rows."""
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    return tmp_path / "out"
