"""Rows that are not rows are refused when they are made."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable

X, Y = np.eye(2, dtype=np.float32), csr_matrix(np.eye(2, dtype=np.int8))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((None, Y, ["a", "b"], ["1", "2"]), "X is NoneType, and neither a sparse matrix nor an array"),
        ((X, None, ["a", "b"], ["1", "2"]), "Y is NoneType, and neither a sparse matrix nor an array"),
        ((X[0], Y, ["a", "b"], ["1", "2"]), r"X has 1 dimension\(s\)"),
        (([[1], [1, 2]], Y, ["a", "b"], ["1", "2"]), "X has rows of different lengths"),
        ((X, Y, None, ["1", "2"]), "label_names is NoneType; give a list of texts"),
        ((X, Y, ["a", "b"], None), "ids is NoneType; give a list of texts"),
        ((X, Y, ["a"], ["1", "2"]), "rows have 2 ids and 1 label names, but X has 2 rows and Y 2 rows of 2 labels"),
        ((X[:1], Y, ["a", "b"], ["1", "2"]), "rows have 2 ids and 2 label names, but X has 1 rows"),
    ],
)
def test_inconsistent_tables_are_refused(parts: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        FeatureTable(*parts)


def test_dense_labels_become_sparse() -> None:
    rows = FeatureTable([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]], ["a", "b"], ["1", "2"])  # type: ignore[arg-type]
    assert (rows.X[1].tolist(), rows.take([1]).Y.toarray().tolist()) == ([0.0, 1.0], [[0, 1]])
