"""A space's points, copies and growth."""

from dataclasses import replace

import numpy as np
import pytest
from numba import typeof

from strategies import DIM, random_space, sparse_rows
from wsabie.core.validation import check_features
from wsabie.embedding.joint_space import SIMILARITIES, JointSpace
from wsabie.kernels.embedding import similarity
from wsabie.training.kernel_threads import KernelThreads


@pytest.fixture
def space() -> JointSpace:
    return random_space(9, 7, "dot", np.random.default_rng(2))


def test_points_are_the_sums_of_feature_rows(space: JointSpace) -> None:
    X = sparse_rows(30, 9, 0.5, np.random.default_rng(0))
    expected = X.toarray().astype(float) @ space.features.astype(float)
    for inputs in (check_features(X), check_features(X.toarray())):
        np.testing.assert_allclose(space.compute_points(inputs), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_points_have_the_same_bits_for_any_number_of_threads(space: JointSpace, threads: int) -> None:
    inputs = check_features(sparse_rows(500, 9, 0.5, np.random.default_rng(0)))
    with KernelThreads(threads) as pool:
        assert np.array_equal(space.compute_points(inputs, pool.split), space.compute_points(inputs))


def test_width_and_points_do_not_need_padded_labels(space: JointSpace) -> None:
    """A loaded model maps its label table from a file without padding."""
    bare = JointSpace(DIM, "dot", space.features, np.ascontiguousarray(space.labels[:, :DIM]), space.bias)
    inputs = check_features(np.eye(9, dtype=np.float32))
    assert bare.width == space.width == (None, None)
    assert np.array_equal(bare.compute_points(inputs), space.compute_points(inputs))


@pytest.mark.parametrize("name", ["dot", "euclidean", "cosine"])
def test_the_type_of_the_labels_carries_the_similarity(name: str) -> None:
    space = random_space(2, 3, name, np.random.default_rng(0))  # type: ignore[arg-type]
    labels = space.label_arrays()
    assert type(labels) is {"dot": similarity.Dot, "euclidean": similarity.Euclidean, "cosine": similarity.Cosine}[name]
    assert labels.table is space.labels


def test_a_copy_shares_no_memory_and_assign_takes_it_back(space: JointSpace) -> None:
    copied = space.copy()
    for name in ("features", "labels", "bias"):
        assert np.array_equal(getattr(copied, name), getattr(space, name))
        assert not np.shares_memory(getattr(copied, name), getattr(space, name))
    copied.features += 1
    copied.bias += 1
    assert not np.array_equal(copied.features, space.features)
    space.assign(copied)
    assert np.array_equal(copied.features, space.features)
    assert np.array_equal(copied.bias, space.bias)


def test_more_labels_keep_the_numbers_of_the_old_ones(space: JointSpace) -> None:
    space.bias[:] = 3
    more = space.with_more_labels(4, np.random.default_rng(1))
    assert more.n_labels == 11
    assert np.array_equal(more.labels[:7], space.labels)
    assert more.bias.tolist() == [3] * 7 + [0] * 4
    assert 0.1 < more.labels[7:, :DIM].std() / DIM**-0.5 < 2
    assert more.features is space.features


def test_sizes(space: JointSpace) -> None:
    assert (space.n_features, space.n_labels) == (9, 7)
    assert space.nbytes == 4 * (20 * (9 + 7) + 7)


@pytest.mark.parametrize("dense", [False, True])
def test_read_only_rows_do_not_compile_every_kernel_anew(space: JointSpace, dense: bool) -> None:
    """Tables are read-only, like those of numpy.load(mmap_mode="r") or Arrow."""
    from wsabie.kernels.embedding.towers import encode_rows

    X = sparse_rows(20, 9, 0.5, np.random.default_rng(0))
    inputs = check_features(X.toarray() if dense else X)
    expected = space.compute_points(inputs)
    compiled = len(encode_rows.signatures)
    for array in [inputs] if dense else inputs:
        array.setflags(write=False)  # type: ignore[union-attr]
    assert np.array_equal(space.compute_points(inputs), expected)
    assert len(encode_rows.signatures) == compiled


@pytest.mark.parametrize("name", SIMILARITIES)
def test_a_read_only_label_table_does_not_either(name: str) -> None:
    """A model whose dimensions need no padding is mapped from its folder."""
    writable = JointSpace.random(9, 7, 16, name, np.random.default_rng(0))  # type: ignore[arg-type]
    mapped = replace(writable, labels=writable.labels.copy(), bias=writable.bias.copy())
    for array in (mapped.labels, mapped.bias):
        array.setflags(write=False)
    assert typeof(mapped.label_arrays()) == typeof(writable.label_arrays())
    assert np.shares_memory(mapped.label_arrays().table, mapped.labels)
