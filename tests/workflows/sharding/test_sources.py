"""Sources of shards: Parquet, text and rows in memory are read as by `open_source`."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shard_files import in_shards, same, signed, toy_rows
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_row_stream, open_source
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.storage.rejects import Rejects
from wsabie.workflows import shard_runs, shard_writer
from wsabie.workflows.shard_runs import ShardOptions


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.usefixtures("small_runs")
def test_parquet_is_read_as_in_memory(tmp_path: Path, dense: bool) -> None:
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
def test_text_is_read_as_in_memory(tmp_path: Path, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (200,))
    lines = [f"{(7 * i) % 23},{i % 5 + 11} {i % 4}:{i}.5 8:3" for i in range(120)]
    (tmp_path / "rows.txt").write_text(head + "\n".join(lines) + "\n")
    table = in_shards(tmp_path / "rows.txt", tmp_path / "shards", rows=50).load()
    assert same(table, open_source(tmp_path / "rows.txt"))


def test_truncated_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("3 9 30\n1 2:1\n2 3:1\n")
    with pytest.raises(InputError, match="holds 2 rows but its header promises 3"):
        in_shards(tmp_path / "rows.txt", tmp_path / "shards")


def test_other_formats_are_read_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "tags.tsv").write_text("".join(f"item{i}\ttag{i % 3}\n" for i in range(9)))
    assert same(in_shards(tmp_path / "tags.tsv", tmp_path / "shards").load(), open_source(tmp_path / "tags.tsv"))


@pytest.mark.data
def test_real_rows_are_read_back(tmp_path: Path, data_dir: Path) -> None:
    file = data_dir / "corel5k_mulan" / "Corel5k-train-sparse.arff"
    shards = in_shards(file, tmp_path / "shards", rows=1000)
    assert shards.shards.facts["values"] == "uint8"
    assert same(shards.load(), open_source(file))
    assert same(open_source(tmp_path / "shards"), open_source(file))


@pytest.mark.usefixtures("small_runs")
def test_repeated_ids_are_rejected_anywhere(tmp_path: Path) -> None:
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
def test_progress_excludes_repeated_rows(tmp_path: Path) -> None:
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
def test_repeated_rows_add_no_labels_or_features(tmp_path: Path, near: bool) -> None:
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
def test_ids_with_equal_keys_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_repeated_id_of_another_file_is_rejected_as_in_memory(tmp_path: Path) -> None:
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
