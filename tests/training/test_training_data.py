"""Label matrices as the kernels visit them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.warp import list_positives as known_to

from strategies import label_rows, seeds
from wsabie.training.training_data import build_targets


@given(seeds, st.integers(1, 12), st.integers(1, 60), st.sampled_from([0.0, 0.2, 0.9]))
def test_every_pair_is_visited_once_with_its_row(seed: int, n: int, n_labels: int, rate: float) -> None:
    Y = label_rows(n, n_labels, rate, 0.2, np.random.default_rng(seed))
    t = build_targets(Y, None, "mean")
    pairs = [
        (int(row), int(t.labels[p]), float(t.weights[p]))
        for visit, row in enumerate(t.rows)
        for p in range(t.starts[visit], t.starts[visit + 1])
    ]
    dense = Y.toarray()
    counts = (dense > 0).sum(1)
    expected = [(i, j, float(np.float32(1 / counts[i]))) for i, j in np.argwhere(dense > 0)]
    assert pairs == expected
    sizes = np.diff(t.starts)
    assert ((sizes >= 1) & (sizes <= 8)).all()
    for i in range(n):
        lo, hi = t.indptr[i], t.indptr[i + 1]
        assert t.indices[lo:hi].tolist() == np.flatnonzero(dense[i] > 0).tolist()
        lo, hi = t.explicit_indptr[i], t.explicit_indptr[i + 1]
        assert t.explicit_negatives[lo:hi].tolist() == np.flatnonzero(dense[i] < 0).tolist()


def test_visits_of_a_row_are_as_equal_as_they_can_be() -> None:
    t = build_targets(sp.csr_matrix(np.ones((1, 17), np.int8)), None, "mean")
    assert np.diff(t.starts).tolist() == [5, 6, 6]


@pytest.mark.parametrize(("positives", "expected"), [("mean", [2, 2 / 3, 2 / 3, 2 / 3]), ("pairs", [2, 2, 2, 2])])
def test_weights(positives: str, expected: list[float]) -> None:
    """Convention 3: sample weight over the number of the row's labels, or as given."""
    Y = sp.csr_matrix(np.array([[1, 0, -1], [1, 1, 1], [0, 0, 0]], np.int8))
    t = build_targets(Y, np.float32([2, 2, 9]), positives)  # type: ignore[arg-type]
    assert t.weights == pytest.approx(expected)


@given(seeds, st.integers(1, 12))
def test_what_is_hidden_is_known_beside_the_labels_and_is_no_pair(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    Y = label_rows(n, n, 0.3, 0.2, rng)
    hidden = sp.csr_matrix(np.diag(rng.integers(-1, 2, n)).astype(np.int8))
    plain, t = build_targets(Y, None, "mean"), build_targets(Y, None, "mean", hidden=hidden)
    for name in ("rows", "starts", "labels", "weights", "explicit_indptr", "explicit_negatives"):
        assert np.array_equal(getattr(t, name), getattr(plain, name))
    for i in range(n):
        assert known_to(t, i) == known_to(plain, i) | ({i} if hidden[i, i] else set())
        hidden_ids = t.indices[t.indptr[i] : t.indptr[i + 1]]
        assert (np.diff(hidden_ids) > 0).all()


def test_hidden_lists_have_the_types_of_others() -> None:
    Y = sp.csr_matrix(np.eye(3, dtype=np.int8))
    t, plain = build_targets(Y, None, "mean", hidden=sp.identity(3, np.int8, "csr")), build_targets(Y, None, "mean")
    assert [np.asarray(a).dtype for a in t] == [np.asarray(a).dtype for a in plain]


def test_types_are_those_the_kernels_are_compiled_for() -> None:
    t = build_targets(sp.csr_matrix(np.eye(3, dtype=np.int8)), None, "mean")
    kinds = {name: array.dtype.name for name, array in t._asdict().items() if name not in ("first_pair", "n_labels")}
    assert kinds == {
        "rows": "int32",
        "starts": "int64",
        "labels": "int32",
        "weights": "float32",
        "indptr": "int64",
        "indices": "int32",
        "masks": "uint64",
        "mask_starts": "int64",
        "explicit_indptr": "int64",
        "explicit_negatives": "int32",
    }
