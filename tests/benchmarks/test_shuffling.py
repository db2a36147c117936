"""Training on shards learns as training in memory does, from a source sorted by label, epoch by epoch."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.shuffling import curves, difference, sort_by_label
from benchmarks.tasks import sides


@pytest.mark.data
def test_the_learning_curve_is_that_of_full_shuffling(tmp_path: Path, data_dir: Path) -> None:
    """Means of five seeds differ by less than chance; in the order of the source they lie far apart."""
    task = sides("corel5k", data_dir / "corel5k_mulan")
    figures = curves(sort_by_label(*task.fit), tuple(task.valid), tmp_path, seeds=5, dim=32, epochs=5)
    assert np.array(figures["in memory"]).shape == (5, 5)
    for epoch in range(5):
        gap, _ = difference(figures, "shards", lambda a, e=epoch: a[:, e])
        assert abs(gap) < 0.02, (epoch, gap)
    gap, half = difference(figures, "shards", lambda a: a.mean(1))
    assert abs(gap) < 0.006 + half, (gap, half)
    assert half < 0.012
    in_order, _ = difference(figures, "in the order of the source", lambda a: a.mean(1))
    assert in_order < -0.1  # what this test would see if rows were not dealt at random
