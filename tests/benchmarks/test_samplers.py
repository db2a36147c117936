"""The measurements of samplers: the generated tasks, a run with its curve, envelopes and times."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, identity

from benchmarks.negatives import SYSTEMS, EvaluationSet, Task, envelope, run, setting, times, with_sampler
from benchmarks.sampler_study import N_JUDGED, N_ROWS, World, generate_task


@pytest.mark.parametrize("kind", ["ids", "features"])
def test_a_generated_task_has_the_sizes_of_its_world(kind: str) -> None:
    task = generate_task(kind, World(n_labels=200, per_row=3, skew=1.0))
    assert task.X.shape[0] == task.Y.shape[0] == N_ROWS
    assert task.valid.Y.shape == (N_JUDGED, 200)
    if kind == "ids":
        assert set(np.diff(task.Y.indptr)) == {2}
        assert not task.valid.exclude.multiply(task.valid.Y).nnz
    else:
        assert set(np.diff(task.Y.indptr)) == {3}
    counts = np.bincount(task.Y.indices, minlength=200)
    assert counts[:20].sum() > 2 * counts[-20:].sum()


def test_only_adaptive_systems_take_the_scale_of_ranks() -> None:
    for system in SYSTEMS:
        params = with_sampler(system, setting(3, ids=True))
        assert "rank_scale" not in params
        assert ("sampler" in params) == (system in ("VSE-ens", "hybrid"))


def test_a_run_gives_a_curve_of_every_epoch() -> None:
    n, labels = 60, 6
    X = identity(n, dtype=np.float32, format="csr")
    Y = csr_matrix(np.eye(labels, dtype=np.int8)[np.arange(n) % labels])
    task = Task(X, Y, None, EvaluationSet(X, Y, None), EvaluationSet(X, Y, None))
    figures, model = run(task, {**with_sampler("WARP", setting(0, ids=True)), "dim": 20})
    assert len(figures["curve"]) == len(model.history_)  # fewer than asked for: it stops when nothing rises
    seconds = [s for s, _ in figures["curve"]]
    assert seconds == sorted(seconds)
    assert figures["MAP"] > 0.9


def test_an_envelope_is_the_best_of_all_runs_by_then() -> None:
    lines = [{"curve": [[1.0, 0.1], [3.0, 0.3]]}, {"curve": [[2.0, 0.05], [4.0, 0.2]]}, {"curve": []}]
    assert envelope(lines) == [[1.0, 0.1], [3.0, 0.3]]


def test_times_are_to_shares_of_the_best_of_warp() -> None:
    shares = times({"WARP": [[1.0, 0.1], [3.0, 0.2]], "other": [[0.5, 0.17]]}, levels=(0.8, 1.0))
    assert shares == {"0.8": {"WARP": 3.0, "other": 0.5}, "1": {"WARP": 3.0, "other": None}}
