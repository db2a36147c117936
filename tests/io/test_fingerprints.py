"""The short name of a collection's content."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_matrix

from wsabie.core.errors import InputError
from wsabie.io.fingerprints import MAX_ROW_HASHES, compute_fingerprint, compute_row_hashes, count_known_rows
from wsabie.io.records import FeatureTable, Item, ItemList

X = csr_matrix(np.array([[0, 1, 2], [3, 0, 0]], np.float32))
ROWS = FeatureTable(X, csr_matrix(np.array([[1, 0], [1, 1]], np.int8)), ["a", "b"], ["x", "y"])
PICTURES = ItemList(Path("p"), [Item("1", b"pixels", ("cat",)), Item("2", b"more", ("cat", "dog"))])


def test_fingerprint_is_stable():
    assert compute_fingerprint(ROWS) == "b07bd873c3b3b502"
    assert compute_fingerprint(PICTURES) == "904b13de84a87d6a"


def test_fingerprint_ignores_types_and_memory_order():
    wide = csr_matrix((X.data.astype(np.float64), X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    assert compute_fingerprint(replace(ROWS, X=wide)) == compute_fingerprint(ROWS)
    turned = csr_matrix((X.data[[1, 0, 2]], X.indices[[1, 0, 2]], X.indptr), X.shape)
    assert compute_fingerprint(replace(ROWS, X=turned)) == compute_fingerprint(ROWS)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ROWS, X=2 * X),
        replace(ROWS, X=X.toarray()),
        replace(ROWS, X=csr_matrix((X.data, X.indices, X.indptr), (2, 4))),
        replace(ROWS, Y=ROWS.Y[::-1]),
        replace(ROWS, label_names=["a", "c"]),
        replace(ROWS, ids=["x", "z"]),
        replace(ROWS, groups=["g", "g"]),
        replace(ROWS, times=["t", "t"]),
        replace(ROWS, counts=True),
        replace(ROWS, feature_names=["p", "q", "r"]),
    ],
)
def test_fingerprint_changes_with_content(changed):
    assert compute_fingerprint(changed) != compute_fingerprint(ROWS)


def test_fingerprint_uses_picture_content_and_not_paths(tmp_path):
    (tmp_path / "a.png").write_bytes(b"pixels")
    (tmp_path / "b.png").write_bytes(b"pixels")
    first, second = PICTURES.items
    for place in (tmp_path / "a.png", tmp_path / "b.png"):
        assert compute_fingerprint(ItemList(tmp_path, [first._replace(content=place), second])) == compute_fingerprint(
            PICTURES
        )
    for changed in (first._replace(content=b"other"), first._replace(id="3"), first._replace(labels=("dog",))):
        assert compute_fingerprint(ItemList(tmp_path, [changed, second])) != compute_fingerprint(PICTURES)
    large = [Item("1", b"x" * 65_536 + tail, ()) for tail in (b"a", b"b")]
    assert compute_fingerprint(ItemList(tmp_path, large[:1])) == compute_fingerprint(ItemList(tmp_path, large[1:]))
    with pytest.raises(InputError, match="there is no file"):
        compute_fingerprint(ItemList(tmp_path, [first._replace(content=tmp_path / "gone.png")]))


def make_rows(n: int, seed: int = 0) -> FeatureTable:
    rng = np.random.default_rng(seed)
    X = random_matrix(n, 40, 0.2, "csr", np.float32, rng)
    return FeatureTable(X, csr_matrix((n, 1), dtype=np.int8), ["a"], [f"row {i}" for i in range(n)])


@pytest.mark.parametrize("dense", [False, True])
def test_known_rows_are_counted_in_any_order(dense):
    rows = make_rows(500)
    rows = replace(rows, X=rows.X.toarray()) if dense else rows
    marks = compute_row_hashes(rows)
    assert count_known_rows(rows.take(np.arange(500)[::-2]), marks) == (250, 250)
    other_rows = make_rows(500, seed=1)
    other_rows = replace(other_rows, X=other_rows.X.toarray()) if dense else other_rows
    assert count_known_rows(other_rows, marks)[0] < 5  # rows without a value are alike
    assert count_known_rows(replace(rows, ids=[f"{i}" for i in range(500)]), marks) == (0, 500)


def test_marks_of_many_rows_are_sampled():
    rows = make_rows(3 * MAX_ROW_HASHES)
    marks = compute_row_hashes(rows)
    assert len(marks) == MAX_ROW_HASHES
    assert count_known_rows(rows, marks) == (MAX_ROW_HASHES, MAX_ROW_HASHES)
    n_known, looked_at = count_known_rows(rows.take(np.arange(MAX_ROW_HASHES)), marks)
    assert n_known == looked_at
    assert looked_at == pytest.approx(MAX_ROW_HASHES / 3, rel=0.1)
    assert count_known_rows(replace(rows, X=rows.X[::-1]), marks)[0] < 0.01 * MAX_ROW_HASHES


def test_row_marks_are_stable():
    assert compute_row_hashes(ROWS).tolist() == [10150012415940836932, 18148140998873043452]
    turned = csr_matrix((X.data[[1, 0, 2]], X.indices[[1, 0, 2]], X.indptr), X.shape)
    assert compute_row_hashes(replace(ROWS, X=turned)).tolist() == compute_row_hashes(ROWS).tolist()
    assert count_known_rows(ROWS, np.zeros(0, np.uint64)) == (0, 2)
