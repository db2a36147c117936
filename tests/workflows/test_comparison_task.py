"""Labels of a comparison, and the counts beside it."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.core.errors import InputError
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.records import FeatureTable
from wsabie.workflows.compare.comparison_task import build_comparison_task

NAMES = ["twice", "once", "never", "refused"]


def make_rows(Y: list[list[int]], prefix: str) -> FeatureTable:
    return FeatureTable(
        np.ones((len(Y), 3), np.float32),
        sp.csr_matrix(np.array(Y, np.int8)),
        NAMES,
        [f"{prefix}{i}" for i in range(len(Y))],
    )


TRAIN = make_rows([[1, 1, 0, -1], [1, 0, 0, -1]], "train")
TEST = make_rows([[1, 1, 1, 0], [0, 0, 1, 1], [0, 1, 0, 0]], "test")


def test_labels_without_a_training_row_are_dropped_and_counted() -> None:
    task = build_comparison_task(TRAIN, None, TEST)
    assert task.train.label_names == task.test.label_names == ["twice", "once"]
    assert task.test.Y.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert task.counts.tolist() == [2, 1]
    facts = task.facts
    assert (facts.labels, facts.labels_dropped, facts.train_pairs) == (2, 2, 3)
    assert (facts.test_pairs, facts.test_pairs_known, facts.test_rows_unlabelled) == (6, 3, 1)
    assert facts.coverage == 3 / 6
    assert facts.as_dict()["coverage"] == 0.5


def test_higher_limit_keeps_fewer_labels() -> None:
    task = build_comparison_task(TRAIN, TEST.take([2]), TEST.take([0, 1]), min_rows=2)
    assert task.train.label_names == ["twice"]
    assert (task.valid, task.facts.valid_rows) == (None, 0)  # its label was the other one
    assert task.facts.test_rows_unlabelled == 1
    task = build_comparison_task(TRAIN, TEST.take([0]), TEST.take([1]), min_rows=2)
    assert task.valid is not None
    assert task.valid.Y.shape == (1, 1)
    with pytest.raises(InputError, match="no label has 3 training rows"):
        build_comparison_task(TRAIN, None, TEST, min_rows=3)


def test_fingerprints_are_those_of_the_given_rows() -> None:
    task = build_comparison_task(TRAIN, None, TEST)
    assert task.facts.fingerprint == {"train": compute_fingerprint(TRAIN), "test": compute_fingerprint(TEST)}


def test_inconsistent_sides_are_refused() -> None:
    with pytest.raises(InputError, match="2 test rows are training rows too"):
        build_comparison_task(TRAIN, None, replace(TEST, ids=["train0", "train1", "x"]))
    assert (
        build_comparison_task(TRAIN, None, replace(TEST, ids=["train0", "b", "c"]), allow_overlap=True).facts.test_rows
        == 3
    )
    with pytest.raises(InputError, match="the test rows have 2 features and the training rows 3"):
        build_comparison_task(TRAIN, None, replace(TEST, X=TEST.X[:, :2]))
    with pytest.raises(InputError, match="number their labels differently"):
        build_comparison_task(TRAIN, replace(TEST, label_names=NAMES[::-1]), TEST)
