"""A collection in a model's terms."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from wsabie.core.errors import InputError
from wsabie.io.alignment import align_table, move_columns
from wsabie.io.records import FeatureTable


def make_rows(X, Y, labels, features=None):
    X = X if isinstance(X, np.ndarray) else csr_matrix(X, dtype=np.float32)
    return FeatureTable(
        X, csr_matrix(Y, dtype=np.int8), labels, [str(i) for i in range(X.shape[0])], feature_names=features
    )


def test_labels_are_reordered_and_unknown_ones_counted():
    rows = make_rows(np.eye(3, dtype=np.float32), [[1, -1, 0], [0, 1, 1], [1, 0, 0]], ["cat", "dog", "elk"])
    aligned = align_table(rows, label_names=["dog", "ape", "cat"])
    assert aligned.rows.Y.toarray().tolist() == [[-1, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert aligned.rows.label_names == ["dog", "ape", "cat"]
    assert (aligned.unknown_labels, aligned.unknown_pairs) == (["elk"], 1)
    assert aligned.rows.ids == rows.ids


def test_labels_are_matched_in_normal_form():
    rows = make_rows([[1.0]], [[1]], ["K\u00f6ln"])
    assert align_table(rows, label_names=[" Ko\u0308ln"]).unknown_labels == []


def test_sparse_features_are_matched_by_name():
    rows = make_rows([[1, 2, 3]], [[1]], ["a"], ["x", "y", "z"])
    aligned = align_table(rows, feature_names=["z", "new", "x"])
    assert aligned.rows.X.toarray().tolist() == [[3, 0, 1]]
    assert aligned.unknown_features == 1
    assert aligned.rows.feature_names == ["z", "new", "x"]


def test_missing_dense_features_are_refused():
    rows = make_rows(np.array([[1, 2, 3]], np.float32), [[1]], ["a"], ["x", "y", "z"])
    aligned = align_table(rows, feature_names=["z", "x"])
    assert aligned.rows.X.tolist() == [[3, 1]]
    assert aligned.unknown_features == 1
    with pytest.raises(InputError, match="lacks 1 of the model's 2 features, the first is 'new'"):
        align_table(rows, feature_names=["x", "new"])


def test_other_widths_and_foreign_features_are_refused():
    rows = make_rows([[1, 2, 3]], [[1]], ["a"], ["x", "y", "z"])
    with pytest.raises(InputError, match="has 3 features but the model takes 4"):
        align_table(rows, n_features=4)
    with pytest.raises(InputError, match="has 3 features but the model takes 2"):
        align_table(make_rows([[1, 2, 3]], [[1]], ["a"]), feature_names=["x", "y"])
    with pytest.raises(InputError, match="none of the model's 1 features"):
        align_table(rows, feature_names=["w"])


def test_rows_of_open_width_are_cut_or_padded():
    rows = replace(make_rows([[1, 0, 3], [0, 2, 4]], [[1], [1]], ["a"]), open_width=True)
    aligned = align_table(rows, n_features=2)
    assert (aligned.rows.X.toarray().tolist(), aligned.unknown_features) == ([[1, 0], [0, 2]], 2)
    widened = align_table(rows, n_features=4)
    assert (widened.rows.X.toarray().tolist(), widened.unknown_features) == ([[1, 0, 3, 0], [0, 2, 4, 0]], 0)
    with pytest.raises(InputError, match="has 3 features but the model takes 2"):
        align_table(replace(rows, X=rows.X.toarray()), n_features=2)
    with pytest.raises(InputError, match="has 3 features but the model takes 2"):
        align_table(rows, n_features=2, extractor_fingerprint="terms of pictures")


def test_rows_of_another_dictionary_are_refused():
    rows = replace(make_rows([[1.0, 2.0]], [[1]], ["cat"]), extractor_fingerprint="a")
    with pytest.raises(InputError, match="another extractor than the training data"):
        align_table(rows, n_features=2, extractor_fingerprint="b")
    assert align_table(rows, n_features=2, extractor_fingerprint="a").rows.extractor_fingerprint == "a"
    assert align_table(rows, n_features=2).unknown_features == 0  # an older model does not know its dictionary
    assert (
        align_table(replace(rows, extractor_fingerprint=None), n_features=2, extractor_fingerprint="b").unknown_features
        == 0
    )


def test_equal_names_leave_the_table_unchanged():
    rows = make_rows([[1, 2]], [[1]], ["a"], ["x", "y"])
    assert align_table(rows).rows is rows
    assert align_table(rows, feature_names=["x", "y"], label_names=["a"]).rows.X is rows.X


@given(order=st.permutations(range(7)), dropped=st.sets(st.integers(0, 3)))
def test_sparse_and_dense_columns_move_alike(order, dropped):
    columns = np.array([-1 if j in dropped else order[j] for j in range(4)], np.int32)
    M = csr_matrix(random_array((5, 4), density=0.5, rng=np.random.default_rng(0)))
    expected = np.zeros((5, 7))
    expected[:, columns[columns >= 0]] = M.toarray()[:, columns >= 0]
    moved = move_columns(M, columns, 7)
    assert np.array_equal(moved.toarray(), expected)
    assert moved.has_sorted_indices
