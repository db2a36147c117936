"""The tasks that defaults are judged on, each as three sides of rows and labels."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.visterm_task import load
from wsabie.core.execution import Executor, SerialExecutor
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.demos import MIN_PICTURES, create_visual_words, extract_sample, open_sample_images

NAMES = ("sample", "corel5k", "S", "M")


class Side(NamedTuple):
    """Rows with their labels: integers, or a matrix (n, n_labels)."""

    X: Any
    Y: Any


class Sides(NamedTuple):
    """Training, validation and test side."""

    fit: Side
    valid: Side
    test: Side


@cache
def sides(name: str, data: Path | None = None) -> Sides:
    """A task by name; "corel5k" needs the folder of Mulan's sparse ARFF files."""
    if name == "sample":
        task = build_comparison_task(*extract_part("all", SerialExecutor()), min_rows=MIN_PICTURES)
        assert task.valid is not None
        return Sides(*(Side(rows.X, rows.Y) for rows in (task.train, task.valid, task.test)))
    if name == "corel5k":
        return _corel5k(data)
    task_ = load(name)
    cuts = (slice(0, task_.n_fit), slice(task_.n_fit, task_.n_train), slice(task_.n_train, None))
    return Sides(*(Side(task_.X[cut], task_.y[cut]) for cut in cuts))


def extract_part(part: str, run: Executor) -> tuple[FeatureTable, FeatureTable, FeatureTable]:
    """A part of the sample collection, split by group with seed 0, as visual words learned from its training side."""
    rows, parts = extract_sample(open_sample_images(part), create_visual_words(), executor=run)
    return rows.take(parts.train), rows.take(parts.valid), rows.take(parts.test)


def _corel5k(folder: Path | None) -> Sides:
    """The published test rows; every tenth training row is validation."""
    if folder is None or not folder.is_dir():
        raise SystemExit("corel5k needs --data FOLDER with Corel5k-train-sparse.arff and Corel5k-test-sparse.arff")
    train, test = (open_source(folder / f"Corel5k-{side}-sparse.arff") for side in ("train", "test"))
    assert isinstance(train, FeatureTable)
    assert isinstance(test, FeatureTable)
    tenth = np.arange(len(train)) % 10 == 9
    return Sides(Side(train.X[~tenth], train.Y[~tenth]), Side(train.X[tenth], train.Y[tenth]), Side(test.X, test.Y))
