"""Annotation by a nearest neighbour that is not always found (Weston et al. 2010, section 6.4)."""

from dataclasses import replace
from typing import Any

import numpy as np

from papers.record import FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.model_tables import build_task, compare_entries, format_label_density
from wsabie.io.records import get_groups
from wsabie.models.nearest_neighbours import NearestNeighbours

_MAX_NEIGHBOURS = 100
"""Neighbours that count; further ones have a weight below 1e-4."""


def measure_neighbour_search(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Measure annotation by one neighbour that is found always, half of the time, and so on.

    See Weston et al. 2010, section 6.4. The neighbours are exact. Their random loss is summed, not sampled: with a
    chance c for each, neighbour j is the found one with probability c (1 - c)^(j - 1). A neighbour with several labels
    gives any of them first.
    """
    data = setting.required_data
    task = build_task(data)
    model = NearestNeighbours(k=1).fit(task.train.X, task.train.Y, label_names=task.train.label_names)
    with setting.progress.stage("exact neighbours", len(task.test), "rows") as stage:
        ids, _ = model.neighbours(task.test.X, min(_MAX_NEIGHBOURS, len(task.train)))
        stage.advance(len(task.test))
    hits = _compute_hit_chances(ids, task.train.Y, task.test.Y)
    labelled_rows = np.flatnonzero((task.test.Y > 0).getnnz(axis=1))
    rows = []
    exact = [entry for entry in record.entries if entry.entrant == "nearest"]
    for entry in exact:
        weights = _compute_find_chances(entry.parameters, ids.shape[1])
        values = (hits @ weights)[labelled_rows]
        rows.append(
            FindingRow(entry.row, "exact neighbours, lost at random", {"p@1": float(values.mean())}, {"p@1": values})
        )
    trees = compare_entries(
        replace(record, entries=tuple(entry for entry in record.entries if entry not in exact)), setting
    )
    note = format_label_density(task.facts.train_rows, task.facts.labels)
    return RunFindings([*rows, *trees.rows], trees.missing, notes=[note], groups=get_groups(task.test, labelled_rows))


def _compute_hit_chances(ids: Any, train: Any, test: Any) -> Any:
    """Return (n, k): the chance that a random label of neighbour j is one of the row's."""
    train, test = (train > 0).astype(np.float32).tocsr(), (test > 0).astype(np.float32).tocsr()
    sizes = np.maximum(np.asarray(train.sum(axis=1)).ravel(), 1)
    chances = np.empty(ids.shape)
    for neighbour in range(ids.shape[1]):
        common = np.asarray(train[ids[:, neighbour]].multiply(test).sum(axis=1)).ravel()
        chances[:, neighbour] = common / sizes[ids[:, neighbour]]
    return chances


def _compute_find_chances(chances: Any, k: int) -> Any:
    """Return the probability that neighbour 1 .. k is the found one; the last takes the remainder."""
    each = np.full(k, float(chances["rest"]))
    each[0], each[-1] = float(chances["first"]), 1.0
    return each * np.concatenate([[1.0], np.cumprod(1 - each[:-1])])
