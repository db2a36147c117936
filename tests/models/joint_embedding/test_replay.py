"""The replay buffer: sampling, weights of earlier rows, and retention of old labels."""

from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_rows

import wsabie
from wsabie.core.arrays import Csr
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.core.validation import check_features
from wsabie.embedding.joint_space import JointSpace
from wsabie.io.formats.mulan import read_mulan
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.joint_embedding import replay
from wsabie.models.joint_embedding.drift import measure_movement
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.joint_embedding.replay import ReplayBuffer, average_weights, refit_new_labels
from wsabie.models.joint_embedding.warm_start import copy_for_training
from wsabie.storage.rejects import Rejects
from wsabie.training.trainer import Trainer

WORDS = 60


def make_topic_rows(n: int, labels: range, seed: int, own_words: int = 3) -> tuple[csr_matrix, list[str]]:
    """Rows with some of the six words of a label's own, and common ones."""
    rng = np.random.default_rng(seed)
    topic_of_row = rng.choice(np.array(labels), n)
    X = np.zeros((n, WORDS), np.float32)
    for i, label in enumerate(topic_of_row):
        words = np.append(
            6 * label % 48 + rng.choice(6, own_words, replace=False), 48 + rng.choice(12, 4, replace=False)
        )
        X[i, words] = rng.integers(1, 4, len(words))
    return csr_matrix(X), [f"label {label}" for label in topic_of_row]


def make_buffer(counts: list[int], size: int, seed: int = 0) -> ReplayBuffer:
    """A buffer that has seen so many rows of each label; the rows say which of them they are."""
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    Y = csr_matrix((np.ones(len(y), np.int8), y, np.arange(len(y) + 1)), (len(y), len(counts)))
    X = np.arange(len(y), dtype=np.float32)[:, None] / 1024
    return ReplayBuffer.empty(X, 1, Y).add_rows(X, Y, None, size, seed)


def model(**changes: Any) -> Wsabie:
    return Wsabie(**{"dim": 16, "epochs": 10, "threads": 1, "replay": 200, **changes})


def test_rare_labels_stay_in_the_buffer() -> None:
    """By the law of the tickets n (1 - exp(-t / sqrt(n))) of n rows are kept: 200, 38 and 2.5 with t = 2.0."""
    mean_counts = np.mean(
        [np.bincount(make_buffer([10_000, 400, 4], 244, s).Y.indices, minlength=3) for s in range(20)], axis=0
    )
    expected = [n * (1 - np.exp(-2.03 / n**0.5)) for n in (10_000, 400, 4)]
    assert mean_counts == pytest.approx(expected, rel=0.15)


def test_replayed_rows_keep_the_old_proportions() -> None:
    memory = make_buffer([20_000, 2_000], 4000)
    shares = []
    for epoch in range(30):
        row_ids = memory._sample_rows(10, np.random.default_rng(epoch))
        assert len(row_ids) == replay.MIN_REPLAYED
        shares.append((memory.Y[row_ids].indices == 0).mean())
    in_buffer = (memory.Y.indices == 0).mean()
    assert in_buffer < 0.82
    assert in_buffer + 0.05 < np.mean(shares) < 20 / 22 + 0.01


def test_streamed_buffer_samples_as_evenly_as_one_batch() -> None:
    """Rows of 10 pieces of one law: each piece keeps a tenth within 4 standard deviations."""
    Y = csr_matrix(np.ones((1000, 1), np.int8))
    memory = ReplayBuffer.empty(np.zeros((0, 1), np.float32), 1, Y)
    for piece in range(10):
        memory = memory.add_rows(np.full((1000, 1), piece, np.float32), Y, None, 500, 3)
    assert (memory.n_seen, memory.label_counts.tolist(), memory.feature_counts.tolist()) == (10_000, [10_000], [10_000])
    counts = np.bincount(memory.rows[:, 0].astype(int), minlength=10)
    assert counts.sum() == 500
    assert abs(counts - 50).max() < 4 * 50**0.5


def test_buffer_rows_take_half_the_bytes() -> None:
    X = random_rows(300, 70_000, 0.001, "csr", np.float32, random_state=0)
    checked = check_features(X)
    assert isinstance(checked, Csr)
    Y = csr_matrix((np.ones(300, np.int8), np.zeros(300, int), np.arange(301)), (300, 1))
    low = checked._replace(indices=checked.indices % 60_000)
    narrow = ReplayBuffer.empty(low, 70_000, Y).add_rows(low, Y, None, 100, 0)
    wide = ReplayBuffer.empty(checked, 70_000, Y).add_rows(checked, Y, None, 100, 0)
    assert narrow.rows.indices.dtype == np.uint16
    assert wide.rows.indices.dtype == np.uint32
    merged_buffer = narrow.add_rows(checked, Y, None, 1000, 0)  # indices of two sizes together
    assert merged_buffer.rows.indices.dtype == np.uint32
    assert len(merged_buffer) == 400
    opened = merged_buffer._decode_rows(np.arange(400))
    assert (opened.indices.dtype, opened.data.dtype) == (np.int32, np.float32)
    assert np.array_equal(opened.indices[opened.indptr[100] :], checked.indices)
    assert np.allclose(opened.data[opened.indptr[100] :], checked.data, rtol=1e-3)


def test_auto_size_is_a_few_megabytes() -> None:
    X = random_rows(20_000, 5_000, 0.02, "csr", np.float32, random_state=0)
    Y = csr_matrix((np.ones(20_000, np.int8), np.arange(20_000) % 7, np.arange(20_001)), (20_000, 7))
    checked = check_features(X)
    memory = ReplayBuffer.empty(checked, 5_000, Y).add_rows(checked, Y, None, "auto", 0)
    assert len(memory) < 20_000
    assert 0.8 * replay.AUTO_BUFFER_BYTES < memory.nbytes < 1.1 * replay.AUTO_BUFFER_BYTES


def test_old_points_are_averaged_by_row_counts() -> None:
    """12 rows before, 1 since: (12 * 2 + 4 * 1 * 10) / (12 + 4) = 4; a new label stays, one without rows goes back."""
    space, began = (
        JointSpace(16, "dot", *(np.full(shape, v, np.float32) for shape in ((2, 16), (3, 16), (3,)))) for v in (10, 2)
    )
    nothing = np.zeros(0, np.float32)
    none = csr_matrix((0, 3), dtype=np.int8)
    old_buffer = ReplayBuffer(
        np.zeros((0, 2), np.float16), none, nothing, nothing, np.array([12, 5]), np.array([12, 0]), 17
    )
    new_buffer = ReplayBuffer(
        np.zeros((0, 2), np.float16), none, nothing, nothing, np.array([13, 5, 3]), np.array([13, 4]), 21
    )
    average_weights(space, began, old_buffer, new_buffer)
    assert space.labels[:, 0].tolist() == space.bias.tolist() == [4, 2, 10]
    assert space.features[:, 0].tolist() == [4, 10]


def test_old_labels_are_kept_and_new_ones_learned() -> None:
    X, y = make_topic_rows(600, range(6), 0, 1)
    extra, new = make_topic_rows(200, range(6, 8), 1, 1)
    tested, truth = make_topic_rows(300, range(6), 2, 1)
    later, later_truth = make_topic_rows(100, range(6, 8), 3, 1)
    replaying, bare = model().fit(X, y), model(replay=None).fit(X, y)
    old_score = replaying.score(tested, truth)
    for learner in (replaying, bare):
        learner.partial_fit(extra, new, epochs=10)
    assert replaying.score(tested, truth) > 0.98 * old_score
    assert replaying.score(later, later_truth) > 0.9
    assert bare.score(tested, truth) < 0.95 * replaying.score(tested, truth)


def refit_labels(lengths: list[float]) -> tuple[JointSpace, ReplayBuffer, ReplayBuffer]:
    """Labels on one axis, rows at 1: 0 and 1 are known, 2 and 3 new; and the buffer before and after 2 of 12 pairs."""
    labels = np.zeros((4, 16), np.float32)
    labels[:, 0] = lengths
    space = JointSpace(16, "dot", np.eye(1, 16, dtype=np.float32), labels, np.zeros(4, np.float32))
    Y = csr_matrix(np.eye(4, dtype=np.int8)[[0] * 5 + [1] * 5 + [2, 3]])
    weights = np.ones(12, np.float32)
    old_buffer = ReplayBuffer(
        np.ones((10, 1), np.float16), Y[:10, :2], weights[:10], weights[:10], np.array([5, 5]), np.array([10]), 10
    )
    new_buffer = ReplayBuffer(
        np.ones((12, 1), np.float16), Y, weights, weights, np.array([5, 5, 1, 1]), np.array([12]), 12
    )
    return space, old_buffer, new_buffer


def test_nothing_is_refitted_without_new_labels() -> None:
    X, y = make_topic_rows(200, range(6), 0)
    extra, labels = make_topic_rows(40, range(6), 1)
    fitted = model().fit(X, y).merge_labels("label 0", ["label 5"])
    with patch("wsabie.models.joint_embedding.replay.Trainer") as trainer:
        fitted.partial_fit(extra, labels)
    assert not trainer.called


def test_labels_missing_from_the_buffer_are_not_new() -> None:
    """They were trained before: only what comes with the new rows is seated."""
    X, y = make_topic_rows(400, range(6), 0)
    is_early = np.isin(y, ["label 0", "label 1"])
    fitted = (
        Wsabie(dim=16, epochs=5, threads=1)
        .fit(X, y)
        .set_params(replay=50)
        .fill_replay_buffer(X[is_early], np.array(y)[is_early])
    )
    with patch("wsabie.models.joint_embedding.replay.Trainer") as trainer:
        fitted.partial_fit(*make_topic_rows(40, range(2, 4), 1))
    assert not trainer.called


def test_weights_of_new_rows_may_be_a_list() -> None:
    X, y = make_topic_rows(200, range(6), 0)
    extra, new = make_topic_rows(3, range(6, 7), 1)
    lists, arrays = (
        model().fit(X, y).partial_fit(extra, new, sample_weight=w) for w in ([1, 2, 1], np.array([1, 2, 1]))
    )
    assert np.array_equal(lists.space_.labels, arrays.space_.labels)


def test_invalid_weights_leave_the_buffer_unchanged() -> None:
    X, y = make_topic_rows(20, range(3), 0)
    fitted = model().fit(X, y)
    with pytest.raises(InputError, match="sample_weight must be 20 finite non-negative numbers"):
        fitted.fill_replay_buffer(X, y, sample_weight=np.full(20, np.nan))


def test_only_new_labels_are_refitted() -> None:
    space, old_buffer, new_buffer = refit_labels([0.5, 0.4, 3, 3])
    began, trainer = space.copy(), Trainer(model()._resolve_settings(TrainingShape(2, 2, 4)))
    Y = csr_matrix(np.eye(4, dtype=np.int8)[2:])
    refit_new_labels(space, old_buffer, new_buffer, TrainingRows(np.ones((2, 1), np.float32), Y), "mean", trainer)
    assert np.array_equal(space.features, began.features)
    assert np.array_equal(space.labels[:2], began.labels[:2])
    assert (space.labels[2:, 0] < began.labels[2:, 0]).all(), "ten rows in twelve push them back"


def test_mean_point_covers_all_rows() -> None:
    """Rows of a rare label are kept oftener, and count less for it: label 1 is in a tenth of 10,000 rows."""
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1], [9000, 1000]))
    Y = csr_matrix((np.ones(10_000, np.int8), labels, np.arange(10_001)), (10_000, 2))
    X = labels[:, None].astype(np.float32)
    buffer = ReplayBuffer.empty(X, 1, Y).add_rows(X, Y, None, 2000, 0)
    assert buffer.rows.mean() > 0.2
    assert buffer.estimate_mean(np.asarray(buffer.rows, np.float32))[0] == pytest.approx(0.1, abs=0.03)


def test_new_labels_work_without_remaining_old_ones() -> None:
    """All labels that had rows are removed; to what is left nothing is old."""
    X, y = make_topic_rows(200, range(2), 0)
    names = [f"label {i}" for i in range(3)]
    truth = csr_matrix(np.array(y)[:, None] == np.array(names), dtype=np.int8)
    fitted = model().fit(X, truth, label_names=names).remove_labels(names[:2])
    fitted.partial_fit(*make_topic_rows(40, range(2, 4), 1))
    assert np.isfinite(fitted.space_.labels).all()
    assert not fitted.space_.bias[2:].any()


def test_new_rows_count_more_only_for_inner_products() -> None:
    """Only inner products train labels around the mean of all rows."""
    X, y = make_topic_rows(400, range(6), 0)
    extra, new = make_topic_rows(40, range(6, 8), 1)
    weighed = {}
    for similarity in ("dot", "euclidean"):
        fitted = model(similarity=similarity).fit(X, y)
        with patch.object(
            ReplayBuffer, "build_point_data", autospec=True, side_effect=ReplayBuffer.build_point_data
        ) as mocked:
            fitted.partial_fit(extra, new)
        weighed[similarity] = mocked.call_args.args[-1]
    assert weighed == {"dot": replay.REFIT_FACTOR, "euclidean": 1}


def compute_mean_scores(space: JointSpace, memory: ReplayBuffer) -> Any:
    """The mean score of each label among all rows that went by, as the buffer tells."""
    centre = memory.estimate_mean(space.compute_points(memory._decode_rows()))
    return space.labels.astype(np.float64) @ centre + space.bias


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
@pytest.mark.parametrize("label_bias", [False, True])
def test_new_label_has_the_mean_score_of_an_old_one(similarity: str, label_bias: bool) -> None:
    """Inner products alone have a mean score, from which a bias that is learned may move."""
    X, y = make_topic_rows(600, range(6), 0, 1)
    extra, new = make_topic_rows(60, range(6, 8), 1, 1)
    fitted = model(similarity=similarity, label_bias=label_bias).fit(X, y)
    buffer = fitted.replay_buffer_
    fitted.partial_fit(extra, new, epochs=10)
    assert buffer is not None
    assert bool(fitted.space_.bias.any()) == (label_bias or similarity == "dot")
    level = compute_mean_scores(fitted.space_, buffer)
    if similarity == "dot" and not label_bias:
        few = fitted.replay_buffer_.label_counts[6:].max()
        assert (few < fitted.replay_buffer_.label_counts[:6]).all(), "so that the octave of the rarest old labels tells"
        rarest = np.log2(fitted.replay_buffer_.label_counts[:6]).astype(int)
        expected = level[:6][rarest == rarest.min()].mean()
        assert np.allclose(level[6:], expected, atol=1e-5)


def test_renamed_topic_stands_beside_the_old_label() -> None:
    """Rows of a topic come again under another name: it stands beside the old one, whose rows do not push it back."""
    X, y = make_topic_rows(600, range(6), 0, 1)
    extra, _ = make_topic_rows(100, [2], 1, 1)
    fitted = model().fit(X, y).partial_fit(extra, ["thema 2"] * 100, epochs=10)
    tested, _ = make_topic_rows(100, [2], 2, 1)
    best = [{name for name, _ in row} for row in fitted.annotate(tested, k=2)]
    assert np.mean([names_of_row == {"label 2", "thema 2"} for names_of_row in best]) > 0.9
    other_rows, _ = make_topic_rows(300, [0, 1, 3, 4, 5], 3, 1)
    assert np.mean([row[0][0] == "thema 2" for row in fitted.annotate(other_rows, k=1)]) < 0.02


@pytest.mark.data
def test_new_labels_do_not_displace_old_ones(data_dir: Path) -> None:
    """Corel5k, a fifth of the labels later, few rows kept: pictures that have none of them seldom get one first."""
    train, test = (
        read_mulan(data_dir / "corel5k_mulan" / f"Corel5k-{side}-sparse.arff", rejects=Rejects())
        for side in ("train", "test")
    )
    late = np.random.default_rng(1).permutation(train.Y.shape[1])[::5]
    comes, old = train.Y[:, late].sum(axis=1).A1 > 0, test.Y[:, late].sum(axis=1).A1 == 0
    names = np.array([[train.label_names[y] for y in row.indices] for row in train.Y], object)
    first = Wsabie(replay=450, threads=1).fit(train.X[~comes], list(names[~comes]))
    new = [name for name in (train.label_names[y] for y in late) if name not in first.vocabulary_]

    def crowded() -> float:
        updated = deepcopy(first).partial_fit(train.X[comes], list(names[comes]), epochs=10)
        learned_names = [name for name in new if name in updated.vocabulary_]
        return float(np.isin(updated.rank(test.X[old], k=1)[0], updated.vocabulary_.ids(learned_names)).mean())

    corrected = crowded()
    with patch("wsabie.models.joint_embedding.estimator.refit_new_labels"):
        assert corrected < 0.8 * crowded()


def test_threads_change_no_bit() -> None:
    X, y = make_topic_rows(400, range(6), 0)
    extra, new = make_topic_rows(60, range(5, 8), 1)
    single_threaded, two = (model(threads=n).fit(X, y).partial_fit(extra, new) for n in (1, 2))
    assert np.array_equal(single_threaded.space_.labels, two.space_.labels)
    assert np.array_equal(single_threaded.space_.features, two.space_.features)
    for name, array in single_threaded.to_state().tensors.items():
        assert np.array_equal(array, two.to_state().tensors[name]), name


@pytest.mark.parametrize("dense", [False, True])
def test_loaded_model_continues_as_the_saved_one(tmp_path: Path, dense: bool) -> None:
    X, y = make_topic_rows(400, range(6), 0)
    extra, new = make_topic_rows(60, range(5, 8), 1)
    X, extra = (X.toarray(), extra.toarray()) if dense else (X, extra)
    first = model().fit(X, y)
    first.save(tmp_path / "m")
    loaded = wsabie.load(tmp_path / "m")
    assert loaded.get_params()["replay"] == 200
    for current in (first, loaded):
        current.partial_fit(extra, new).partial_fit(extra[:20], new[:20])
    for name, array in first.to_state().tensors.items():
        assert np.array_equal(array, loaded.to_state().tensors[name]), name


def test_model_without_a_buffer_saves_none(tmp_path: Path) -> None:
    X, y = make_topic_rows(200, range(6), 0)
    plain, replaying = Wsabie(dim=16, epochs=3, threads=1).fit(X, y), model(epochs=3).fit(X, y)
    assert np.array_equal(plain.space_.labels, replaying.space_.labels)
    assert not [name for name in plain.to_state().tensors if name.startswith("replay")]
    assert replaying.replay_buffer_ is not None
    assert replaying.set_params(replay=None).fit(X, y).replay_buffer_ is None


def test_damaged_buffer_is_refused(tmp_path: Path) -> None:
    X, y = make_topic_rows(100, range(6), 0)
    first = model(epochs=2).fit(X, y)
    assert first.replay_buffer_ is not None
    first.replay_buffer_.rows.indices[3] = WORDS + 5  # a feature that is not there
    first.save(tmp_path / "m")
    with pytest.raises((ModelFolderError, ValueError)):
        wsabie.load(tmp_path / "m")


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "much", 10**9])
def test_invalid_buffer_sizes_are_refused(size: Any) -> None:
    with pytest.raises(InputError, match="replay is"):
        model(replay=size).fit(np.eye(3), [0, 1, 2])


def test_late_buffer_takes_no_old_label_for_new() -> None:
    """None of its rows has the labels of the first training."""
    X, y = make_topic_rows(400, range(6), 0)
    fitted = model(replay=None).fit(X, y).set_params(replay=200)
    fitted.partial_fit(*make_topic_rows(40, range(6, 8), 1))
    assert (fitted.replay_buffer_.label_counts > 0).all()
    old_vectors = fitted.label_vectors[:6].copy()
    fitted.partial_fit(*make_topic_rows(30, range(6), 2), epochs=1)
    assert measure_movement(old_vectors, fitted.label_vectors) < 0.3


def test_label_named_before_its_first_row_is_new() -> None:
    """Names are given with the first rows, as a stream's are; what comes of it is what comes of names given later."""
    names = [f"label {y}" for y in range(8)]
    X, y = make_topic_rows(400, range(6), 0)
    extra, new = make_topic_rows(40, range(6, 8), 1)

    def truth(of: list[str], among: list[str]) -> csr_matrix:
        return csr_matrix(np.array(of)[:, None] == np.array(among), dtype=np.int8)

    declared, later = (
        model()
        .fit(X, truth(y, names_at_start), label_names=names_at_start)
        .partial_fit(extra, truth(new, names), label_names=names)
        for names_at_start in (names, names[:6])
    )
    queries, answer = make_topic_rows(200, range(6, 8), 2)
    (declared_model, score), (_, later_score) = (
        (current, current.score(queries, answer)) for current in (declared, later)
    )
    assert declared_model.vocabulary_.ids(names).tolist() == list(range(8))
    assert score == pytest.approx(later_score, abs=0.03)


def test_new_label_has_the_usual_length() -> None:
    X, y = make_topic_rows(400, range(8), 0)
    merged = model(epochs=3).fit(X, y)
    merged.merge_labels("label 0", [f"label {i}" for i in range(1, 6)])
    living = np.linalg.norm(merged.label_vectors[merged.vocabulary_.ids([f"label {i}" for i in (0, 6, 7)])], axis=1)
    targets = csr_matrix((np.ones(400, np.int8), (np.arange(400), np.full(400, 8))), (400, 9))
    space = copy_for_training(merged.space_, 9, [(merged.scaling_(merged._check_rows(X)), targets)], seed=0)
    assert np.linalg.norm(space.labels[8]) == pytest.approx(living.mean(), rel=1e-5)
