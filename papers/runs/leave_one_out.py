"""Runs of the leave-one-out protocol of Guo et al. 2018: rows are ids, one label of each is held out."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from papers.datasets import PaperData
from papers.record import Cell, FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.model_tables import list_available_entrants
from wsabie.core.errors import DivergenceError
from wsabie.core.execution import SILENT, Progress
from wsabie.evaluation.metrics import average_precision
from wsabie.evaluation.positive_ranks import rank_embeddings
from wsabie.io.records import FeatureTable
from wsabie.models.base.validation_monitor import MAX_ROWS
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.workflows.batch_inference import evaluate_model
from wsabie.workflows.compare.entrants import Entrant, Options
from wsabie.workflows.data_splits import split_labels


class BestEpochModel(NamedTuple):
    """A model after its best epoch.

    Attributes
    ----------
    model : Wsabie
    epoch : int
        From 1; the last one without held-out labels.
    seconds : float
        Of training until then, without compilation and validation.
    figure : float
        MAP of the validation labels; 0 without them.
    """

    model: Wsabie
    epoch: int
    seconds: float
    figure: float


def train_to_best_epoch(
    model: Wsabie, train: FeatureTable, validation: FeatureTable | None, progress: Progress
) -> BestEpochModel:
    """Fit a model, and return its best epoch.

    Parameters
    ----------
    model : Wsabie
        With its parameters, not fitted yet.
    train : FeatureTable
    validation : FeatureTable or None
        Some training rows with one further label each, for validation; their ids are numbers of training rows.
    progress : Progress
    """
    fit_arguments: dict[str, Any] = {}
    if validation is not None:
        validation_rows = validation.take(range(0, len(validation), 1 + len(validation) // MAX_ROWS))
        model = _HoldoutEstimator(**model.get_params()).excluding(train.Y[[int(name) for name in validation_rows.ids]])
        fit_arguments = {"validation": (validation_rows.X, validation_rows.Y)}
    model.fit(train.X, train.Y, label_names=train.label_names, progress=progress, **fit_arguments)
    figures = [stats.validation or 0.0 for stats in model.history_]
    best = len(figures) - 1 if validation is None else int(np.argmax(figures))
    return BestEpochModel(model, best + 1, sum(stats.seconds for stats in model.history_[: best + 1]), figures[best])


class _HeldOutMap(NamedTuple):
    """Monitor of the MAP of held-out labels among labels that their rows were not trained with."""

    inputs: Any
    Y: Any
    exclude: Any
    threads: int

    def figures(self, space: Any) -> dict[str, float]:
        points = space.compute_points(self.inputs)
        ranks = rank_embeddings(space.label_arrays(), points, self.Y, exclude=self.exclude, threads=self.threads)
        return {"MAP": float(average_precision(ranks).mean())}


class _HoldoutEstimator(Wsabie):
    """Estimator with such a monitor; it gives no probabilities."""

    exclude: Any

    def excluding(self, exclude: Any) -> Self:
        self.exclude = exclude
        return self

    def _build_monitor(self, X: Any, Y: Any, *arguments: Any, **options: Any) -> Any:
        return _HeldOutMap(self.scaling_(self._check_rows(X)), Y, self.exclude, self._n_threads)

    def _fit_calibration(self, monitor: Any) -> None:
        return None


_VALIDATION_SHARE = 0.1
"""Share of the rows that lose a second label, which chooses settings and epochs."""

EPOCHS = 60
"""Default epochs of every model, of which the best one counts."""

SEEDS = 5
"""Default splits and trainings of every model."""

IMPROVE = "Improve"
_WARM_UP_ROWS = 64

Sides = dict[str, FeatureTable]


def run_leave_one_out(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Hold out a label of every row, and rank it among labels that the row was not trained with.

    The protocol of Guo et al. 2018: a row is known by its number alone (a free vector each), without features. The
    setting of a model has the highest MAP of a second held-out label of some rows, with the first seed. Each seed holds
    out other labels, and its epoch has the highest such MAP. Figures are means over the seeds.
    """
    setting = replace(setting, parameters={"epochs": EPOCHS, **setting.parameters})
    seeds = range(setting.seed, setting.seed + (setting.seeds or SEEDS))
    sides_by_seed = [split_label_holdout(setting.required_data, seed) for seed in seeds]
    entrants_by_seed = [list_available_entrants(record, replace(setting, seed=seed)) for seed in seeds]
    rows, notes = [], [f"{len(seeds)} seeds, of which the first chooses the settings. {_count_pairs(sides_by_seed[0])}"]
    for entrants in zip(*(entrants for entrants, _ in entrants_by_seed), strict=True):
        entrant, trainings, options = entrants[0], list[BestEpochModel](), entrants[0].options
        evaluations = []
        for of_seed, sides in zip(entrants, sides_by_seed, strict=True):
            best, option = _train_best(replace(of_seed, options=options), sides, setting)
            trainings.append(best)
            evaluations.append(_evaluate_held_out(best.model, sides["test"], sides["train"]))
            options = (option,)
        rows.append(_average_seeds(entrant, trainings, evaluations))
        notes.append(_format_choice(entrant.name, trainings, options[0]))
    groups = [name for sides in sides_by_seed for name in sides["test"].ids]
    missing = entrants_by_seed[0][1]
    return RunFindings([*rows, *_compute_improvement(record, rows)], missing, notes=notes, groups=groups)


def _average_seeds(entrant: Entrant, trainings: Sequence[BestEpochModel], evaluations: Sequence[Any]) -> FindingRow:
    """Return the means over seeds; values of single rows stand one seed after the other."""
    seconds = float(np.mean([training.seconds for training in trainings]))
    figures: dict[str, Cell] = {
        name: float(np.mean([evaluation.means[name] for evaluation in evaluations])) for name in evaluations[0].means
    }
    figures |= {"epoch": float(np.mean([training.epoch for training in trainings]))}
    figures |= {"train s": seconds, "train h": seconds / 3600}
    per_row = {
        name: np.concatenate([evaluation.per_row[name] for evaluation in evaluations])
        for name in evaluations[0].per_row
    }
    return FindingRow(entrant.name, entrant.title, figures, per_row)


def _compute_improvement(record: PaperRecord, rows: list[FindingRow]) -> list[FindingRow]:
    """Return the gain of VSE-ens over WARP, in per cent, as in the last row of the paper."""
    figures_by_row = {row.row: row.figures for row in rows}
    if not {"VSE-ens", "WARP"} <= set(figures_by_row) or not any(
        IMPROVE in published.rows for published in record.published
    ):
        return []
    ratios = {
        name: float(figures_by_row["VSE-ens"][name] or 0) / float(figures_by_row["WARP"][name] or 1)
        for name in record.table_columns
    }
    return [FindingRow(IMPROVE, "VSE-ens over WARP", {name: f"{ratio - 1:.2%}" for name, ratio in ratios.items()})]


def count_draws(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Count negatives drawn per visit of a pair, epoch by epoch, on rows that are ids (Guo et al. 2018, Figure 1)."""
    entrants, missing = list_available_entrants(record, setting)
    sides = split_label_holdout(setting.required_data, setting.seed)
    rows = []
    for entrant in entrants:
        best_model = train_to_best_epoch(entrant.build(**entrant.options[0]), sides["train"], None, setting.progress)
        for stats in best_model.model.history_:
            figures: dict[str, Cell] = {
                "epoch": stats.epoch + 1,
                "draws per visit": stats.mean_draws,
                "updates per visit": stats.violation_rate,
            }
            rows.append(FindingRow(f"{entrant.name}, epoch {stats.epoch + 1}", entrant.title, figures))
    return RunFindings(rows, missing, notes=[_count_pairs(sides), "There is no limit on the draws."])


def compute_step_costs(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Compute the multiplications of a step (Guo et al. 2018, Table 3), with T of the last epoch here."""
    findings = count_draws(record, setting)
    last = findings.rows[-1].figures["draws per visit"]
    T, k = (float(last) if isinstance(last, (int, float)) else float("nan")), 100
    costs = {"VSE-ens": 2 * k, "WARP": T * k, "Opt-AUC": float(k)}
    rows = [FindingRow(name, "by the formula", {"multiplications": value}) for name, value in costs.items()]
    return RunFindings(rows, findings.missing, notes=[*findings.notes, f"k = {k}, T = {T:.1f} in the last epoch."])


def split_label_holdout(data: PaperData, seed: int) -> Sides:
    """Return all labelled rows as ids: "train", and the held-out labels of "test" and "valid".

    Rows with one label lose none; they are trained on. Without rows of three labels there is no "valid". Labels without
    a training pair are dropped.

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
    rows = FeatureTable(X, Y, [str(y) for y in range(Y.shape[1])], [str(i) for i in range(Y.shape[0])])
    valid = _VALIDATION_SHARE if (Y.getnnz(axis=1) >= 3).any() else 0.0
    sides = split_labels(rows, valid=valid, test=1.0, seed=seed)
    trained_labels = np.flatnonzero(sides["train"].Y.getnnz(axis=0))
    trained_sides = {
        name: side.with_labels(trained_labels) for name, side in sides.items()
    }  # a held-out label may have lost all its rows
    return {name: side.take(np.flatnonzero(side.Y.getnnz(axis=1))) for name, side in trained_sides.items()}


def _train_best(entrant: Entrant, sides: Sides, setting: RunSettings) -> tuple[BestEpochModel, Options]:
    """Return the model of the best option and epoch by the second held-out label, and the option."""
    train, valid = sides["train"], sides.get("valid")
    with setting.progress.stage("compiling (once)", None, ""):  # a pass over a few rows, which is not timed
        small = train.take(range(min(_WARM_UP_ROWS, len(train))))
        train_to_best_epoch(entrant.build(**{**entrant.options[0], "epochs": 1}), small, None, SILENT)
    runs: list[tuple[BestEpochModel, Options]] = []
    for option in entrant.options if valid is not None else entrant.options[:1]:
        with suppress(DivergenceError):  # too large a rate without a norm limit
            runs.append((train_to_best_epoch(entrant.build(**option), train, valid, setting.progress), option))
    return max(runs, key=lambda run: run[0].figure)


def _evaluate_held_out(model: Any, test: FeatureTable, train: FeatureTable) -> Any:
    """Evaluate the held-out labels; training labels are not candidates of their row."""
    row_ids = [int(name) for name in test.ids]
    return evaluate_model(model, test, (5, 10), "judging by held-out labels", exclude=train.Y[row_ids])


def _format_choice(name: str, trainings: Sequence[BestEpochModel], option: Options) -> str:
    """Describe the chosen option in words."""
    values = ", ".join(f"{parameter} = {_format_value(value)}" for parameter, value in option.items())
    epochs = ", ".join(str(training.epoch) for training in trainings)
    seconds = np.mean([training.seconds for training in trainings])
    n_epochs = len(trainings[0].model.history_)
    return f"{name}: {values}; epochs {epochs} of {n_epochs}, {seconds:.3g} s of training until then."


def _count_pairs(sides: Sides) -> str:
    train = sides["train"]
    counts = f"{train.Y.nnz:,} training pairs and {sides['test'].Y.nnz:,} held out"
    return f"{counts}, {len(train):,} rows, {len(train.label_names):,} labels."


def _format_value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
