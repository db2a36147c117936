"""The generated tasks: sizes, statistics, the same arrays each time."""

import zlib

import numpy as np
import pytest

from benchmarks import visterm_task


@pytest.fixture(scope="module")
def task_and_world():
    return visterm_task.generate_with_truth("tiny")


def test_sizes(task_and_world):
    task, world = task_and_world
    assert task.X.shape == (3_500, visterm_task.N_WORDS)
    assert (task.n_train, task.n_labels, task.n_fit) == (3_000, 100, 2_700)
    assert task.y.shape == (3_500,)
    assert task.y.dtype == np.int32
    assert (task.X.data.dtype, task.X.indices.dtype) == (np.float32, np.int32)
    assert world.labels.shape == (100, visterm_task.LATENT)


def test_true_labels_are_those_of_every_other_run(task_and_world):
    # They depend on the generator of random numbers alone; words also on the rounding of a matrix product.
    assert zlib.crc32(task_and_world[0].y.tobytes()) == 132435713


def test_every_label_has_a_training_row(task_and_world):
    task, _ = task_and_world
    assert np.bincount(task.y[: task.n_train], minlength=100).min() >= 1


def test_statistics_of_the_paper(task_and_world):
    figures = visterm_task.compute_task_figures(task_and_world[0])
    assert figures["nonzeros_mean"] == pytest.approx(245.22, abs=0.02)
    assert figures["tokens_mean"] == pytest.approx(301.82, abs=0.02)
    assert figures["rows_per_label_max"] == 93


def test_rows_hold_sorted_distinct_words_and_whole_counts(task_and_world):
    X = task_and_world[0].X
    row_starts = np.zeros(X.nnz + 1, bool)
    row_starts[X.indptr] = True
    assert np.all(np.diff(X.indices)[~row_starts[1 : X.nnz]] > 0)
    assert np.all(X.data >= 1)
    assert np.all(X.data == np.round(X.data))


def test_the_generator_itself_ranks_well(task_and_world):
    assert visterm_task.compute_noise_free_figures(*task_and_world)["noise_free_MRR"] == pytest.approx(
        0.7213, abs=0.002
    )


def test_cache_returns_the_same_arrays(task_and_world, tmp_path, monkeypatch):
    monkeypatch.setattr(visterm_task, "generate_with_truth", lambda name: task_and_world)
    fresh = visterm_task.load("tiny", tmp_path)
    monkeypatch.delattr(visterm_task, "generate_with_truth")
    again = visterm_task.load("tiny", tmp_path)
    for task in (fresh, again):
        assert (task.X != task_and_world[0].X).nnz == 0
        assert np.array_equal(task.y, task_and_world[0].y)
        assert task[2:] == task_and_world[0][2:]
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.npz"]
