"""Runs of the fourth paper's protocol: rows are ids, one label of each is held out ([V])."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT
from wsabie.evaluation.evaluate import Evaluation, evaluate_scores
from wsabie.models.inputs import row_ranges
from wsabie.studies.entrants import Entrant
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.models import available
from wsabie.studies.reproduce.record import Cell, Findings, Found, Record, Setting


def evaluation_without(model: Any, X: Any, Y: Any, known: Any, ks: Sequence[int]) -> Evaluation:
    """Judge a model on labels Y; the labels that it was told (`known`) are no candidates of their row."""
    blocks = ((lo, model.scores(X[lo:hi])) for lo, hi in row_ranges(X.shape[0], Y.shape[1]))
    return evaluate_scores(blocks, Y, ks=ks, exclude=known)


def leave_one_out(record: Record, setting: Setting) -> Findings:
    """One label of every row is held out and ranked among those that the row was not trained with; rows are ids.

    The protocol of [V]: a row is known by its number alone (a free vector each), features play no part.
    """
    from scipy.sparse import identity

    taking_part, missing = available(record.entries, setting)
    train, held = held_out_pairs(setting.given, setting.seed)
    X = identity(train.shape[0], np.float32, format="csr")
    rows = []
    for entrant in taking_part:
        model, seconds = _fitted_on_ids(entrant, X, train, setting)
        found = evaluation_without(model, X, held, train, (5, 10))
        figures: dict[str, Cell] = {**found.means, "train s": seconds, "train h": seconds / 3600}
        rows.append(Found(entrant.name, entrant.title, figures, dict(found.per_row)))
    pairs = (
        f"{train.nnz:,} training pairs and {held.nnz:,} held out, {train.shape[0]:,} rows, {train.shape[1]:,} labels."
    )
    return Findings(rows, missing, notes=[pairs])


def draws_of_updates(record: Record, setting: Setting) -> Findings:
    """Negatives drawn per update, epoch by epoch, on rows that are ids ([V] Figure 1)."""
    from scipy.sparse import identity

    taking_part, missing = available(record.entries, setting)
    train, _ = held_out_pairs(setting.given, setting.seed)
    X = identity(train.shape[0], np.float32, format="csr")
    rows = []
    for entrant in taking_part:
        model, _ = _fitted_on_ids(entrant, X, train, setting)
        for stats in getattr(model, "history_", []):
            draws = stats.mean_draws / max(stats.violation_rate, 1e-12)
            figures: dict[str, Cell] = {
                "epoch": stats.epoch + 1,
                "draws per update": draws,
                "updates per visit": stats.violation_rate,
            }
            rows.append(Found(f"{entrant.name}, epoch {stats.epoch + 1}", entrant.title, figures))
    note = f"{train.nnz:,} training pairs, {train.shape[0]:,} rows, {train.shape[1]:,} labels; no limit on the draws."
    return Findings(rows, missing, notes=[note])


def step_costs(record: Record, setting: Setting) -> Findings:
    """Multiplications of one step by the paper's formulas ([V] Table 3), T as it is in the last epoch here."""
    found = draws_of_updates(record, setting)
    last = found.rows[-1].figures["draws per update"]
    T, k = (float(last) if isinstance(last, (int, float)) else float("nan")), 100
    costs = {"VSE-ens": 2 * k, "WARP": T * k, "Opt-AUC": float(k)}
    rows = [Found(name, "by the formula", {"multiplications": value}) for name, value in costs.items()]
    return Findings(rows, found.missing, notes=[*found.notes, f"k = {k}, T = {T:.1f} in the last epoch."])


def _fitted_on_ids(entrant: Entrant, X: Any, Y: Any, setting: Setting) -> tuple[Any, float]:
    model = entrant.build(**entrant.options[0])
    started = time.perf_counter()
    progress = SILENT if entrant.quick else setting.progress
    model.fit(X, Y, label_names=[str(y) for y in range(Y.shape[1])], progress=progress)
    return model, time.perf_counter() - started


def held_out_pairs(data: Data, seed: int) -> tuple[Any, Any]:
    """(training labels, held-out labels) as CSR matrices: one label of every row with two or more is held out.

    Rows with fewer, and labels that no training pair is left of, are dropped.

    Raises
    ------
    InputError
        No row has two labels.
    """
    from scipy.sparse import csr_matrix, vstack

    Y = (vstack([data.train.Y, data.valid.Y, data.test.Y]).tocsr() > 0).astype(np.int8)
    Y = Y[np.flatnonzero(Y.getnnz(axis=1) >= 2)]
    if not Y.shape[0]:
        raise InputError(
            f"every row of {data.name} has one label, and this table holds one of several out; give data with more "
            f"labels "
            "per row, such as --data sample"
        )
    rng = np.random.default_rng(seed)
    at = Y.indptr[:-1] + rng.integers(0, np.diff(Y.indptr))
    n = len(at)
    held = csr_matrix((np.ones(n, np.int8), Y.indices[at], np.arange(n + 1)), shape=Y.shape)
    train = (Y - held).tocsr()
    train.eliminate_zeros()
    kept = np.flatnonzero(train.getnnz(axis=0))
    return train[:, kept], held[:, kept]
