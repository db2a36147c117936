"""Rows to shards and back: any rows come back, in an order that does not depend on the source."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from shard_files import in_shards, same, shuffled, signed, toy_rows
from wsabie.io.records import FeatureTable
from wsabie.io.shards.shard_folder import count_values
from wsabie.storage.column_files import ColumnTable, write_columns
from wsabie.vocabulary.label_names import normalise_label_name
from wsabie.workflows import shard_runs, shard_writer

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
def test_any_rows_are_read_back(tmp_path_factory: Any, rows: FeatureTable, size: int) -> None:
    folder = tmp_path_factory.mktemp("any") / "shards"
    assert same(in_shards(rows, folder, rows=size).load(), rows)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.usefixtures("small_runs")
def test_row_order_is_independent_of_the_source(tmp_path: Path, dense: bool) -> None:
    rows = toy_rows(dense=dense, by_label=True)
    ordered, reordered = in_shards(rows, tmp_path / "a", rows=100), in_shards(shuffled(rows), tmp_path / "b", rows=100)
    files = [path.name for path in sorted((tmp_path / "a").glob("rows-*"))]
    assert len(files) == 6
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    assert ordered.shards.fingerprint == reordered.shards.fingerprint
    first = ordered.load().Y.indices[::2]  # of a row's two labels the first
    assert abs(np.corrcoef(first, np.arange(len(first)))[0, 1]) < 3 / len(first) ** 0.5
    assert len(set(first[:60].tolist())) == 6  # every group in a tenth of the rows


def test_another_seed_gives_another_order(tmp_path: Path) -> None:
    first, second = (in_shards(toy_rows(), tmp_path / str(seed), seed=seed).load() for seed in (0, 1))
    assert first.ids != second.ids
    assert same(first, second)


def test_rows_keep_their_numbers_in_shards_of_any_size(tmp_path: Path) -> None:
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
