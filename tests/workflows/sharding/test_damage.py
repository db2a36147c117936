"""Damaged shards are refused, whichever byte is wrong."""

import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from shard_files import in_shards, same, toy_rows
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.shards.shard_folder import format_shard_name
from wsabie.io.shards.sharded_table import open_shards
from wsabie.storage.column_files import ColumnTable, ListColumn, map_columns, write_columns


def test_damaged_or_missing_files_are_detected(shards: Path) -> None:
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
def test_writing_again_detects_damage(shards: Path, name: str, damage: str) -> None:
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
    assert set(shards.read_statistics()) == {"rows_of_label", *(("mean", "deviation") if dense else ("rows_above_0",))}
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
        shards.read_statistics()


@given(st.data())
def test_changed_bytes_keep_kernels_within_their_arrays(tmp_path_factory: Any, data: Any) -> None:
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


def test_features_of_a_row_are_written_in_order(tmp_path: Path) -> None:
    rows = toy_rows(50)
    reverse_indices = sp.csr_matrix((rows.X.data[::-1], rows.X.indices[::-1], rows.X.indptr[-1] - rows.X.indptr[::-1]))
    rows = replace(rows, X=sp.csr_matrix(reverse_indices, shape=rows.X.shape))
    assert not rows.X.has_sorted_indices
    assert same(in_shards(rows, tmp_path / "out").load(), rows)


def test_unsorted_features_are_refused(shards: Path) -> None:
    """The owner of a range of features finds its own in a row by bisection."""
    reverse_indices(shards / format_shard_name(0, 6))
    with pytest.raises(InputError, match="damaged"):
        open_shards(shards).read_spans([(0, 1)])


def reverse_indices(file: Path) -> None:
    """Turn the features of a shard round."""
    original, indices = file.read_bytes(), map_columns(file)[0].lists["x"].parts["indices"].copy()
    assert original.count(indices.tobytes()) == 1
    file.write_bytes(original.replace(indices.tobytes(), indices[::-1].tobytes()))


def test_labels_are_checked_without_features(shards: Path) -> None:
    reverse_indices(shards / format_shard_name(2, 6))
    rows = open_shards(shards)
    assert rows.compute_label_statistics().pairs == 1200
    starts = rows.shards.starts.tolist()
    assert len(rows.read_spans([(0, starts[2]), (starts[3], 600)])[1].indptr) == 601 - (starts[3] - starts[2])
    for spans in ([(0, 600)], [(starts[2], starts[3])], [(590, 600), (starts[2] + 5, starts[2] + 9)]):
        with pytest.raises(InputError, match=rf"{format_shard_name(2, 6)} is damaged"):
            rows.read_spans(spans)


@pytest.mark.parametrize("feature", [30, 31, 65535])
def test_feature_out_of_range_is_refused_with_its_place(shards: Path, feature: int) -> None:
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


def test_checked_shards_are_not_checked_again_in_a_copy(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_shards_with_missing_row_files_are_reported(shards: Path) -> None:
    for file in shards.glob("rows-*"):
        file.unlink()
    for opened in (open_shards, open_source):
        with pytest.raises(InputError, match=r"rows-00000-of-00006\.safetensors is missing; restore it from a copy"):
            opened(shards)


def test_missing_manifest_is_reported(shards: Path) -> None:
    (shards / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"manifest.json is missing; restore it from a copy, or delete the folder"):
        open_shards(shards)


def test_changed_manifest_is_refused(shards: Path) -> None:
    manifest = shards / "manifest.json"
    text = manifest.read_text()
    damaged_texts = text.replace('"rows": 600', '"rows": 601'), text.replace('"version": 1', '"version": 9')
    for changed in (*damaged_texts, text[:-5], "[]"):
        manifest.write_text(changed)
        with pytest.raises(InputError, match=r"damaged|not a list of shards|format 9"):
            open_shards(shards)


@pytest.mark.parametrize("file_kind", ["shards", "other_files"])
def test_manifest_leads_to_no_other_folder(shards: Path, file_kind: str) -> None:
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


def test_dense_rows_of_another_width_are_refused(tmp_path: Path) -> None:
    in_shards(toy_rows(60, dense=True), tmp_path / "out")
    change_manifest(tmp_path / "out", '"features": 30', '"features": 31')
    with pytest.raises(InputError, match=r"rows-00000-of-00001\.safetensors is damaged"):
        open_shards(tmp_path / "out").read_spans([(0, 1)])


def test_empty_sources_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("1 2:1e99\n")
    with pytest.raises(InputError, match="no rows are left"):
        in_shards(tmp_path / "rows.txt", tmp_path / "out")
    (tmp_path / "rows.txt").write_text("2:1\n")
    with pytest.raises(InputError, match="has a label"):
        in_shards(tmp_path / "rows.txt", tmp_path / "other")
