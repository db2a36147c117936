"""What a nearest neighbour is worth when it is not always found ([W] section 6.4)."""

from dataclasses import replace
from typing import Any

import numpy as np

from wsabie.models.nearest import NearestNeighbours
from wsabie.sources.records import groups_of
from wsabie.studies.reproduce.models import compared, density, task_of
from wsabie.studies.reproduce.record import Findings, Found, Record, Setting

_LOST = 100
"""Neighbours that are looked at: what lies behind them has a weight below 1e-4."""


def neighbour_luck(record: Record, setting: Setting) -> Findings:
    """What one neighbour is worth when the true one is found always, half of the time, and so on ([W] section 6.4).

    The neighbours are exact; losing them at random is not drawn but summed: with a chance c for each, neighbour j is
    the one that is found with probability c (1 - c)^(j - 1). A neighbour with several labels says any of them first.
    """
    data = setting.given
    task = task_of(data)
    model = NearestNeighbours(k=1).fit(task.train.X, task.train.Y, label_names=task.train.label_names)
    with setting.progress.stage("exact neighbours", len(task.test), "rows") as stage:
        ids, _ = model.neighbours(task.test.X, min(_LOST, len(task.train)))
        stage.advance(len(task.test))
    hits = _hits(ids, task.train.Y, task.test.Y)
    judged = np.flatnonzero((task.test.Y > 0).getnnz(axis=1))
    rows = []
    exact = [entry for entry in record.entries if entry.entrant == "nearest"]
    for entry in exact:
        weights = _found_at(entry.parameters, ids.shape[1])
        values = (hits @ weights)[judged]
        rows.append(
            Found(entry.row, "exact neighbours, lost at random", {"p@1": float(values.mean())}, {"p@1": values})
        )
    trees = compared(replace(record, entries=tuple(entry for entry in record.entries if entry not in exact)), setting)
    note = density(task.facts.train_rows, task.facts.labels)
    return Findings([*rows, *trees.rows], trees.missing, notes=[note], groups=groups_of(task.test, judged))


def _hits(ids: Any, train: Any, test: Any) -> Any:
    """(n, k): the chance that a label of neighbour j, taken at random, is one of the row's."""
    train, test = (train > 0).astype(np.float32).tocsr(), (test > 0).astype(np.float32).tocsr()
    sizes = np.maximum(np.asarray(train.sum(axis=1)).ravel(), 1)
    found = np.empty(ids.shape)
    for j in range(ids.shape[1]):
        common = np.asarray(train[ids[:, j]].multiply(test).sum(axis=1)).ravel()
        found[:, j] = common / sizes[ids[:, j]]
    return found


def _found_at(chances: Any, k: int) -> Any:
    """The probability that neighbour 1 .. k is the one that is found; what is left goes to the last."""
    each = np.full(k, float(chances["rest"]))
    each[0], each[-1] = float(chances["first"]), 1.0
    return each * np.concatenate([[1.0], np.cumprod(1 - each[:-1])])
