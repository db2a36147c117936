"""Kernel PCA against scikit-learn's, by landmarks, on awkward rows, and saved."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.reference.histogram_intersection import intersect_rows

from wsabie.core.errors import InputError, ModelFolderError
from wsabie.features.kernel_pca import KernelPca
from wsabie.features.nystroem import ApproximationLoss, choose_landmarks, factor_kernel, measure_loss, prepare_csr
from wsabie.storage.model_folder import ModelState


@pytest.fixture(scope="module")
def rows() -> sp.csr_matrix:
    """300 rows of 80 features around ten centres."""
    rng = np.random.default_rng(0)
    centres = np.where(rng.random((10, 80)) < 0.2, 4.0, 0.2)
    return sp.csr_matrix(rng.poisson(centres[rng.integers(0, 10, 300)]).astype(np.float32))


def test_components_of_all_rows_equal_those_of_scikit_learn(rows):
    from sklearn.decomposition import KernelPCA

    train, new = rows[:250], rows[250:]
    K, K_new = (intersect_rows(X.toarray(), train.toarray()) for X in (train, new))
    theirs = KernelPCA(12, kernel="precomputed", eigen_solver="dense").fit(K)
    ours = KernelPca(12).fit(train)
    assert ours.n_landmarks_ == 250
    for X, expected in ((train, theirs.transform(K)), (new, theirs.transform(K_new))):
        projected = ours.transform(X)
        signs = np.sign((projected * expected).sum(axis=0))
        np.testing.assert_allclose(projected * signs, expected, atol=1e-3)
    np.testing.assert_allclose(ours.variances_, theirs.eigenvalues_ / 250, rtol=1e-5)


def test_all_components_keep_all_distances(rows):
    pca = KernelPca(300).fit(rows)
    points = pca.transform(rows).astype(float)
    K = intersect_rows(rows.toarray(), rows.toarray())
    squared = K.diagonal()[:, None] + K.diagonal() - 2 * K
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, squared, atol=0.02)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-3)
    assert pca.n_components_ == 299  # centred: one dimension less than rows
    assert pca.report_.components.error < 1e-4
    assert not pca.report_.has_holdout


@pytest.mark.parametrize("choice", ["k-means++", "uniform"])
def test_more_landmarks_lose_less_on_held_out_rows(rows, choice):
    reports = [KernelPca(10, m, choice=choice).fit(rows).report_ for m in (10, 40, 160)]
    assert all(
        report.has_holdout and report.rows == (300 - m) // 4 for report, m in zip(reports, (10, 40, 160), strict=True)
    )
    errors = [report.landmarks.error for report in reports]
    assert errors[0] > errors[1] > errors[2]
    shares = [report.landmarks.explained for report in reports]
    assert 0 < shares[0] < shares[1] < shares[2] < 1
    assert all(report.components.error >= report.landmarks.error - 1e-6 for report in reports)


def test_report_states_the_error_of_its_rows(rows):
    K = intersect_rows(rows.toarray(), rows.toarray())
    rng = np.random.default_rng(1)
    F = rng.standard_normal((300, 3))
    H = np.eye(300) - 1 / 300
    residual, centred = H @ (K - F @ F.T) @ H, H @ K @ H
    pairs = ~np.eye(300, dtype=bool)
    loss = measure_loss(K, F)
    assert loss.error == pytest.approx(np.linalg.norm(residual[pairs]) / np.linalg.norm(centred[pairs]))
    assert loss.explained == pytest.approx(1 - np.trace(residual) / np.trace(centred))
    assert measure_loss(np.ones((4, 4)), np.ones((4, 2))) == ApproximationLoss(0.0, 1.0)


def test_landmarks_are_far_from_each_other():
    X = sp.csr_matrix(np.vstack([np.tile([9, 0, 0], (97, 1)), [[0, 9, 0], [0, 0, 9], [0, 0, 0]]]).astype(np.float32))
    for seed in range(5):
        landmarks = choose_landmarks(X, 50, "k-means++", np.random.default_rng(seed))
        assert {97, 98} < set(landmarks.tolist())
        assert len(landmarks) in (3, 4)  # the empty row is far from the others, if it is not the last that is left


def test_redundant_landmarks_are_dropped():
    F = np.random.default_rng(0).standard_normal((6, 3))
    K = np.vstack([F, F]) @ np.vstack([F, F]).T
    L, pivots = factor_kernel(K.copy())
    assert len(pivots) == 3
    np.testing.assert_allclose(L @ L.T, K[np.ix_(pivots, pivots)], atol=1e-9)


def test_fewer_dimensions_than_components_are_counted(rows):
    few = sp.vstack([rows[:5]] * 8).tocsr()
    pca = KernelPca(20).fit(few)
    assert (pca.n_components_, pca.n_landmarks_) == (4, 5)
    np.testing.assert_array_equal(pca.transform(few)[:5], pca.transform(few)[35:])


def test_threads_neighbours_and_row_form_change_no_bit(rows):
    pca = KernelPca(9, 60).fit(rows, threads=1)
    again = KernelPca(9, 60).fit(rows, threads=2)
    projected = pca.transform(rows, threads=2)
    assert projected.dtype == np.float32
    np.testing.assert_array_equal(projected, again.transform(rows))
    np.testing.assert_array_equal(projected[41:44], pca.transform(rows[41:44], threads=1))
    np.testing.assert_array_equal(projected, pca.transform(rows.toarray()))
    np.testing.assert_array_equal(projected, pca.transform_rows(prepare_csr(rows)))
    assert (KernelPca(9, 60, seed=1).fit(rows).transform(rows) != projected).any()


def test_loaded_map_gives_the_same_bits(rows, tmp_path):
    pca = KernelPca(9, 60).fit(rows)
    pca.feature_names, pca.extractor_fingerprint = [f"word {j}" for j in range(80)], "abc"
    pca.save(tmp_path / "map")
    loaded = KernelPca.load(tmp_path / "map")
    np.testing.assert_array_equal(loaded.transform(rows), pca.transform(rows))
    assert (loaded.fingerprint(), loaded.report_) == (pca.fingerprint(), pca.report_)
    assert (loaded.feature_names, loaded.extractor_fingerprint) == (pca.feature_names, "abc")
    assert isinstance(loaded.components_.base, np.memmap) or isinstance(loaded.components_, np.memmap)
    assert pca.n_bytes == loaded.n_bytes


def test_foreign_and_damaged_folders_are_refused(rows):
    state = KernelPca(3, 20).fit(rows).to_state()
    with pytest.raises(ModelFolderError, match="no map"):
        KernelPca.from_state(ModelState("wsabie", {}, {}))
    far = state.tensors["landmarks/indices"].copy()
    far[0] = 10**6  # a kernel would write there
    for broken in ({"landmarks/indices": far}, {"bias": np.zeros(2, np.float32)}, {"components": np.zeros((3, 20))}):
        with pytest.raises(ModelFolderError, match="damaged"):
            KernelPca.from_state(ModelState(state.kind, state.config, {**state.tensors, **broken}))
    with pytest.raises(ModelFolderError, match="damaged"):
        KernelPca.from_state(ModelState(state.kind, {"parameters": {}}, state.tensors))


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"n_components": 4}, np.eye(3), "4 components are asked for, but 3 rows have no more than 3"),
        ({"n_components": 4, "n_landmarks": 2}, np.eye(9), "2 landmarks have no more than 2"),
        ({"n_components": 0}, np.eye(3), "n_components is 0"),
        ({"n_landmarks": 0.5}, np.eye(3), "n_landmarks is 0.5"),
        ({"kernel": "rbf"}, np.eye(3), "kernel is 'rbf'"),
        ({"choice": "best"}, np.eye(3), "choice is 'best'"),
        ({"seed": -1}, np.eye(3), "seed is -1"),
        ({"n_components": 1}, [[1, 0], [0, -2]], "row 1 holds -2 in column 1"),
        ({"n_components": 1}, np.zeros((3, 2)), "all rows are empty"),
        ({"n_components": 1}, np.ones((3, 2)), "all rows are alike"),
        ({"n_components": 1}, [[1, np.nan]], "NaN"),
    ],
)
def test_bad_options_give_one_sentence(options, X, message):
    with pytest.raises(InputError, match=message) as error:
        KernelPca(**{"n_components": 2, **options}).fit(X)
    assert "\n" not in str(error.value)


def test_other_widths_and_unfitted_maps_are_refused(rows):
    with pytest.raises(InputError, match="expecting 80 features"):
        KernelPca(3, 20).fit(rows).transform(rows[:, :70])
    with pytest.raises(InputError, match="not fitted yet"):
        KernelPca().transform(rows)


def test_empty_rows_and_unknown_features_are_accepted(rows):
    pca = KernelPca(3, 20).fit(rows)
    points = pca.transform(sp.csr_matrix((2, 80), dtype=np.float32))
    np.testing.assert_array_equal(points, np.tile(pca.bias_, (2, 1)))
