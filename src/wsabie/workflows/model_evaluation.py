"""Evaluation of a model on rows, block by block, here or by workers that open the model themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from wsabie.core.arrays import Int64, Matrix
from wsabie.core.execution import SILENT, Executor, Progress, SerialExecutor
from wsabie.evaluation.score_evaluation import BlockFigures, Evaluation, EvaluationAccumulator
from wsabie.io.records import FeatureTable
from wsabie.models.base.feature_matrix import iterate_row_ranges
from wsabie.models.base.label_model import LabelModel


def evaluate_model(
    model: LabelModel,
    rows: FeatureTable,
    ks: Sequence[int],
    stage: str,
    progress: Progress = SILENT,
    *,
    label_ids: Int64 | None = None,
    workers: tuple[Executor, Path] | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate a model on rows by block, in bounded memory; `options` are those of `evaluate_scores`.

    With `label_ids` the label columns of `rows` are these labels of the model. `workers` is an executor whose workers
    open the model in a folder and evaluate the blocks.
    """
    accumulator = EvaluationAccumulator(rows.Y, rows.Y.shape[1], ks, **options)
    executor, folder = workers or (SerialExecutor(), None)
    evaluation = _BlockEvaluation(model if folder is None else None, folder, accumulator, label_ids)
    blocks = ((lo, rows.X[lo:hi]) for lo, hi in iterate_row_ranges(len(rows), rows.Y.shape[1]))
    with progress.stage(stage, len(rows), "rows") as bar:
        for block in executor.map_with(_BlockEvaluation.evaluate, evaluation, blocks):
            accumulator.add(block)
            bar.advance(block.hi - block.lo)
    return accumulator.result()


@dataclass
class WorkerModel:
    """A model for workers: without `local_model` each opens that of the folder, to work on one thread."""

    local_model: LabelModel | None
    folder: Path | None

    @cached_property
    def model(self) -> Any:
        from wsabie.models.annotators import Annotator
        from wsabie.models.loader import load

        if self.local_model is not None or self.folder is None:
            return self.local_model
        model = load(self.folder)
        model = model.model if isinstance(model, Annotator) else model
        model.threads = 1
        return model


@dataclass
class _BlockEvaluation(WorkerModel):
    """Evaluation of blocks of rows."""

    accumulator: EvaluationAccumulator
    label_ids: Int64 | None

    def evaluate(self, block: tuple[int, Matrix]) -> BlockFigures:
        lo, X = block
        scores = self.model.scores(X)
        return self.accumulator.measure(lo, scores if self.label_ids is None else scores[:, self.label_ids])
