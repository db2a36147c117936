"""Runs of the fourth paper's protocol: rows are ids, one label of each is held out ([V])."""

from dataclasses import replace
from typing import Any

import numpy as np

from wsabie.base.progress import SILENT
from wsabie.sources.records import Rows
from wsabie.studies.entrants import Entrant, Options
from wsabie.studies.fitting import evaluated
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.judged import Trained, trained
from wsabie.studies.reproduce.models import available
from wsabie.studies.reproduce.record import Cell, Findings, Found, Record, Setting
from wsabie.studies.splitting import split_labels

_JUDGES = 0.1
"""Share of the rows that lose a second label, by which settings and epochs are chosen."""

EPOCHS = 60
"""Of every model, unless told otherwise; the best one is kept."""

IMPROVE = "Improve"
_FEW = 64

Sides = dict[str, Rows]


def leave_one_out(record: Record, setting: Setting) -> Findings:
    """One label of every row is held out and ranked among those that the row was not trained with; rows are ids.

    The protocol of [V]: a row is known by its number alone (a free vector each), features play no part. Setting and
    epoch of each model are those with the highest MAP of a second held-out label of some rows.
    """
    setting = replace(setting, parameters={"epochs": EPOCHS, **setting.parameters})
    taking_part, missing = available(record, setting)
    sides = sides_of(setting.given, setting.seed)
    rows, notes = [], [_told(sides)]
    for entrant in taking_part:
        best, chosen = _best(entrant, sides, setting)
        found = _judged(best.model, sides["test"], sides["train"])
        figures: dict[str, Cell] = {**found.means, "epoch": best.epoch, "train s": best.seconds}
        figures["train h"] = best.seconds / 3600
        rows.append(Found(entrant.name, entrant.title, figures, dict(found.per_row)))
        notes.append(_choice(entrant.name, best, chosen))
    return Findings([*rows, *_improvement(record, rows)], missing, notes=notes)


def _improvement(record: Record, rows: list[Found]) -> list[Found]:
    """What VSE-ens gains over WARP, in per cent, as the paper has it below its figures."""
    found = {row.row: row.figures for row in rows}
    if not {"VSE-ens", "WARP"} <= set(found) or not any(IMPROVE in p.rows for p in record.published):
        return []
    ratios = {name: float(found["VSE-ens"][name] or 0) / float(found["WARP"][name] or 1) for name in record.shown}
    return [Found(IMPROVE, "VSE-ens over WARP", {name: f"{ratio - 1:.2%}" for name, ratio in ratios.items()})]


def draws_of_updates(record: Record, setting: Setting) -> Findings:
    """Negatives drawn per update, epoch by epoch, on rows that are ids ([V] Figure 1)."""
    taking_part, missing = available(record, setting)
    sides = sides_of(setting.given, setting.seed)
    rows = []
    for entrant in taking_part:
        found = trained(entrant.build(**entrant.options[0]), sides["train"], None, setting.progress)
        for stats in found.model.history_:
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
    """All rows with labels as ids: "train", and what "test" and "valid" hold out, a label of a row each.

    Rows with one label lose none; they are trained on. Without rows of three labels there is no "valid". Labels that
    no training pair is left of are dropped.

    Raises
    ------
    InputError
        No row has two labels.
    """
    from scipy.sparse import identity, vstack

    Y = (vstack([data.train.Y, data.valid.Y, data.test.Y]).tocsr() > 0).astype(np.int8)
    Y = Y[:, np.flatnonzero(Y.getnnz(axis=0) >= max(data.min_rows, 1))]
    Y = Y[np.flatnonzero(Y.getnnz(axis=1))]
    X = identity(Y.shape[0], np.float32, format="csr")
    rows = Rows(X, Y, [str(y) for y in range(Y.shape[1])], [str(i) for i in range(Y.shape[0])])
    valid = _JUDGES if (Y.getnnz(axis=1) >= 3).any() else 0.0
    sides = split_labels(rows, valid=valid, test=1.0, seed=seed)
    kept = np.flatnonzero(sides["train"].Y.getnnz(axis=0))
    known = {name: side.with_labels(kept) for name, side in sides.items()}  # some hold out what no row is left with
    return {name: side.take(np.flatnonzero(side.Y.getnnz(axis=1))) for name, side in known.items()}


def _best(entrant: Entrant, sides: Sides, setting: Setting) -> tuple[Trained, Options]:
    """The model of the best option and epoch by the second held-out label, and the option."""
    train, valid = sides["train"], sides.get("valid")
    with setting.progress.stage("compiling (once)", None, ""):  # a pass over a few rows, which no time is taken of
        few = train.take(range(min(_FEW, len(train))))
        trained(entrant.build(**{**entrant.options[0], "epochs": 1}), few, None, SILENT)
    options = entrant.options if valid is not None else entrant.options[:1]
    runs = ((trained(entrant.build(**option), train, valid, setting.progress), option) for option in options)
    return max(runs, key=lambda run: run[0].figure)


def _judged(model: Any, held: Rows, train: Rows) -> Any:
    """Figures of the labels that were held out; those of training are no candidates of their row."""
    at = [int(name) for name in held.ids]
    return evaluated(model, held, (5, 10), "judging by held-out labels", exclude=train.Y[at])


def _choice(name: str, best: Trained, chosen: Options) -> str:
    """What was chosen, in words."""
    values = [f"{parameter} = {_short(value)}" for parameter, value in chosen.items()]
    last = " (the last)" if best.epoch == len(best.model.history_) else ""
    return f"{name}: {', '.join([*values, f'epoch {best.epoch}{last}'])}, {best.seconds:.3g} s of training until then."


def _told(sides: Sides) -> str:
    train = sides["train"]
    counts = f"{train.Y.nnz:,} training pairs and {sides['test'].Y.nnz:,} held out"
    return f"{counts}, {len(train):,} rows, {len(train.label_names):,} labels."


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
