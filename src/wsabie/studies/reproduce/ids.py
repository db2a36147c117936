"""Runs of the fourth paper's protocol: rows are ids, one label of each is held out ([V])."""

import time
from typing import Any

import numpy as np

from wsabie.base.progress import SILENT
from wsabie.sources.records import Rows
from wsabie.studies.entrants import Entrant, Options
from wsabie.studies.fitting import evaluated
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.models import available
from wsabie.studies.reproduce.record import Cell, Findings, Found, Record, Setting
from wsabie.studies.splitting import split_labels

_JUDGES = 0.1
"""Share of the rows that lose a second label, by which settings are chosen."""

Sides = dict[str, Rows]


def leave_one_out(record: Record, setting: Setting) -> Findings:
    """One label of every row is held out and ranked among those that the row was not trained with; rows are ids.

    The protocol of [V]: a row is known by its number alone (a free vector each), features play no part. Settings are
    chosen by the MAP of a second held-out label of some rows.
    """
    taking_part, missing = available(record, setting)
    sides = sides_of(setting.given, setting.seed)
    rows, notes = [], [_told(sides)]
    for entrant in taking_part:
        model, seconds, chosen = _best(entrant, sides, setting)
        found = _judged(model, sides, "test", (5, 10))
        figures: dict[str, Cell] = {**found.means, "train s": seconds, "train h": seconds / 3600}
        rows.append(Found(entrant.name, entrant.title, figures, dict(found.per_row)))
        if chosen:
            notes.append(f"{entrant.name}: {', '.join(f'{name} = {_short(value)}' for name, value in chosen.items())}.")
    return Findings(rows, missing, notes=notes)


def draws_of_updates(record: Record, setting: Setting) -> Findings:
    """Negatives drawn per update, epoch by epoch, on rows that are ids ([V] Figure 1)."""
    taking_part, missing = available(record, setting)
    sides = sides_of(setting.given, setting.seed)
    rows = []
    for entrant in taking_part:
        model, _ = _fitted(entrant, entrant.options[0], sides["train"], setting)
        for stats in getattr(model, "history_", []):
            draws = stats.mean_draws / max(stats.violation_rate, 1e-12)
            figures: dict[str, Cell] = {
                "epoch": stats.epoch + 1,
                "draws per update": draws,
                "updates per visit": stats.violation_rate,
            }
            rows.append(Found(f"{entrant.name}, epoch {stats.epoch + 1}", entrant.title, figures))
    return Findings(rows, missing, notes=[_told(sides), "There is no limit on the draws."])


def step_costs(record: Record, setting: Setting) -> Findings:
    """Multiplications of one step by the paper's formulas ([V] Table 3), T as it is in the last epoch here."""
    found = draws_of_updates(record, setting)
    last = found.rows[-1].figures["draws per update"]
    T, k = (float(last) if isinstance(last, (int, float)) else float("nan")), 100
    costs = {"VSE-ens": 2 * k, "WARP": T * k, "Opt-AUC": float(k)}
    rows = [Found(name, "by the formula", {"multiplications": value}) for name, value in costs.items()]
    return Findings(rows, found.missing, notes=[*found.notes, f"k = {k}, T = {T:.1f} in the last epoch."])


def sides_of(data: Data, seed: int) -> Sides:
    """All rows with two labels or more as ids: "train", and what "test" and "valid" hold out, a label of a row each.

    Without rows of three labels there is no "valid".

    Labels that no training pair is left of are dropped.

    Raises
    ------
    InputError
        No row has two labels.
    """
    from scipy.sparse import identity, vstack

    Y = (vstack([data.train.Y, data.valid.Y, data.test.Y]).tocsr() > 0).astype(np.int8)
    Y = Y[:, np.flatnonzero(Y.getnnz(axis=0) >= max(data.min_rows, 1))]
    Y = Y[np.flatnonzero(Y.getnnz(axis=1) >= 2)]
    X = identity(Y.shape[0], np.float32, format="csr")
    rows = Rows(X, Y, [str(y) for y in range(Y.shape[1])], [str(i) for i in range(Y.shape[0])])
    valid = _JUDGES if (Y.getnnz(axis=1) >= 3).any() else 0.0
    sides = split_labels(rows, valid=valid, test=1.0, seed=seed)
    kept = np.flatnonzero(sides["train"].Y.getnnz(axis=0))
    return {name: side.with_labels(kept) for name, side in sides.items()}


def _best(entrant: Entrant, sides: Sides, setting: Setting) -> tuple[Any, float, Options]:
    """The model of the best option by the second held-out label, its seconds of training, and the option."""
    if len(entrant.options) == 1 or "valid" not in sides:
        return *_fitted(entrant, entrant.options[0], sides["train"], setting), {}
    best, highest = (None, 0.0, entrant.options[0]), -np.inf
    for option in entrant.options:
        model, seconds = _fitted(entrant, option, sides["train"], setting)
        figure = _judged(model, sides, "valid", (10,)).means["MAP"]
        if figure > highest:
            best, highest = (model, seconds, option), figure
    return best


def _fitted(entrant: Entrant, option: Options, train: Rows, setting: Setting) -> tuple[Any, float]:
    model = entrant.build(**option)
    started = time.perf_counter()
    progress = SILENT if entrant.quick else setting.progress
    model.fit(train.X, train.Y, label_names=train.label_names, progress=progress)
    return model, time.perf_counter() - started


def _judged(model: Any, sides: Sides, side: str, ks: tuple[int, ...]) -> Any:
    """Figures of the labels that a side holds out; those of training are no candidates of their row."""
    held, train = sides[side], sides["train"]
    at = [int(name) for name in held.ids]
    return evaluated(model, held, ks, f"judging by {side} labels", exclude=train.Y[at])


def _told(sides: Sides) -> str:
    train = sides["train"]
    counts = f"{train.Y.nnz:,} training pairs and {sides['test'].Y.nnz:,} held out"
    return f"{counts}, {len(train):,} rows, {len(train.label_names):,} labels."


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
