"""Estimated training times: every default member has one, which grows with the data."""

import numpy as np
import pytest
import scipy.sparse as sp

import wsabie
from wsabie.models.stacking.auto_ranker import DataSize, estimate_seconds
from wsabie.models.stacking.fusion import build_members


def measure(n: int, n_labels: int, n_features: int, is_sparse: bool) -> DataSize:
    X = np.ones((n, n_features), np.float32)
    targets = sp.csr_matrix((np.ones(n), (np.arange(n), np.arange(n) % n_labels)), shape=(n, n_labels))
    return DataSize.measure(sp.csr_matrix(X) if is_sparse else X, targets)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_more_rows_cost_more(is_sparse: bool) -> None:
    few, many = (measure(n, 10, 20, is_sparse) for n in (100, 2000))
    for member in [*build_members(None, 1, 0, 1), wsabie.OneVsRest()]:
        assert 0 < estimate_seconds(member, few) < estimate_seconds(member, many)


def test_more_labels_cost_more() -> None:
    few, many = (measure(2000, n_labels, 20, True) for n_labels in (10, 1000))
    for member in (wsabie.Wsabie(), wsabie.LinearRanker(), wsabie.Ridge(), wsabie.OneVsRest()):
        assert estimate_seconds(member, few) < estimate_seconds(member, many)


def test_wide_sparse_rows_are_estimated_by_directions() -> None:
    exact, wide = (measure(3000, 10, n_features, True) for n_features in (2048, 2049))
    assert estimate_seconds(wsabie.Ridge(), wide) != pytest.approx(estimate_seconds(wsabie.Ridge(), exact), rel=0.01)


def test_one_vs_rest_of_much_memory_is_never_cheap() -> None:
    size = measure(100, 10, 20, False)._replace(label_rows=np.ones(2_000_000, np.int64))
    assert estimate_seconds(wsabie.OneVsRest(), size) == np.inf
