"""Learning curves of training on shards and in memory: `python -m benchmarks.shuffling TASK [--data FOLDER]`.

Both begin with the same tables; in memory every epoch visits all pairs in a random order, from shards it visits blocks
of chunks that lie everywhere in the file, each block in a random order. The source is sorted by label, the hard case.
Blocks are so small that an epoch has as many as one of the paper's Web collection (75), and chunks are a 64th of a
block (there a 512th). Prints the validation MAP of every epoch, as the mean over seeds, and the difference to training
in memory with its interval over seeds, paired; beside it that of training in memory on the same rows in another order,
which is what chance alone makes; and what becomes of blocks in the order of the source. `--draw FILE` draws the curves.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.tasks import sides
from wsabie.core.execution import SILENT
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import InMemoryStream
from wsabie.io.shards.sharded_table import ShardedFeatureTable, open_shards
from wsabie.models.base import training_rows
from wsabie.models.base.feature_matrix import slice_rows
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.training.training_data import RowBlock, TrainingData, build_targets
from wsabie.workflows.charts.chart_files import render_svg
from wsabie.workflows.charts.svg_charts import ChartAxis, ChartSeries, LineChart
from wsabie.workflows.shard_runs import ShardOptions
from wsabie.workflows.shard_writer import write_shards

BLOCKS, CHUNKS = 75, 64
TASKS = {"corel5k": 20, "S": 10, "tiny": 20}
"""Epochs of each task."""


class InOrder(Wsabie):
    """Trained on blocks of rows as they come."""

    def _prepare_run(self, rows: TrainingRows) -> tuple[Any, TrainingData]:
        inputs, targets = rows.inputs, rows.targets
        blocks, first, size = [], 0, -(-targets.shape[0] // BLOCKS)
        for lo in range(0, targets.shape[0], size):
            hi = min(lo + size, targets.shape[0])
            blocks.append(RowBlock(slice_rows(inputs, lo, hi), build_targets(targets[lo:hi], None, "mean", first)))
            first += len(blocks[-1].targets.labels)
        return self.space_, TrainingData(blocks)


def sort_by_label(X: Any, Y: Any) -> FeatureTable:
    """Rows in the order of their first label."""
    from scipy.sparse import csr_matrix

    if getattr(Y, "ndim", 2) == 1:
        Y = csr_matrix((np.ones(len(Y), np.int8), Y, np.arange(len(Y) + 1)))
    Y = csr_matrix(Y)
    n = X.shape[0]
    first = [int(Y.indices[lo]) if hi > lo else -1 for lo, hi in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]
    rows = FeatureTable(X, Y, [str(y) for y in range(Y.shape[1])], [str(i) for i in range(n)])
    return rows.take(np.argsort(first, kind="stable"))


@contextmanager
def small_blocks(n: int) -> Iterator[None]:
    """Use as many blocks as a large collection has."""
    sizes_before = training_rows.ROWS_PER_BLOCK, training_rows.CHUNK
    size = -(-n // BLOCKS)
    training_rows.ROWS_PER_BLOCK, training_rows.CHUNK = size, max(1, size // CHUNKS)
    try:
        yield
    finally:
        training_rows.ROWS_PER_BLOCK, training_rows.CHUNK = sizes_before


def curves(
    rows: FeatureTable, valid: tuple[Any, Any], folder: Path, seeds: int, **options: Any
) -> dict[str, list[list[float]]]:
    """Validation MAP by epoch, of every way and seed; rows are sorted by label."""
    write_shards(
        InMemoryStream(folder, rows), folder / "shards", ShardOptions(rows=max(1, len(rows) // 9)), progress=SILENT
    )
    shards = open_shards(folder / "shards")
    reordered = rows.take(np.random.default_rng(1).permutation(len(rows)))
    ways: dict[str, Callable[[int], Wsabie]] = {
        "in memory": lambda seed: fit_rows(Wsabie, rows, valid, seed, **options),
        "in memory, other order": lambda seed: fit_rows(Wsabie, reordered, valid, seed, **options),
        "shards": lambda seed: fit_shards(shards, valid, seed, **options),
        "in the order of the source": lambda seed: fit_rows(InOrder, rows, valid, seed, **options),
    }
    return {name: [[s.validation for s in make(seed).history_] for seed in range(seeds)] for name, make in ways.items()}


def fit_rows(kind: type[Wsabie], rows: FeatureTable, valid: tuple[Any, Any], seed: int, **options: Any) -> Wsabie:
    model = kind(seed=seed, init="random", **options)
    return model.fit(rows.X, rows.Y, label_names=rows.label_names, validation=valid)


def fit_shards(shards: ShardedFeatureTable, valid: tuple[Any, Any], seed: int, **options: Any) -> Wsabie:
    with small_blocks(len(shards.shards)):
        return Wsabie(seed=seed, init="random", **options).fit(shards, validation=valid)


def difference(
    curves_by_order: dict[str, list[list[float]]], way: str, of: Callable[[Any], Any]
) -> tuple[float, float]:
    """Mean of a way less that of training in memory, paired by seeds, and half of its 95 % interval (Student's t)."""
    from scipy.stats import t

    gaps = of(np.array(curves_by_order[way])) - of(np.array(curves_by_order["in memory"]))
    half = t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return float(gaps.mean()), float(half)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--data", type=Path, help="folder with Corel5k's ARFF files")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--draw", type=Path, help="SVG to write")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    task = sides(options.task, options.data)
    rows = sort_by_label(*task.fit)
    epochs = options.epochs or TASKS[options.task]
    with tempfile.TemporaryDirectory() as folder:
        curves_by_order = curves(rows, tuple(task.valid), Path(folder), options.seeds, dim=50, epochs=epochs)
    means = {name: np.mean(curve, 0) for name, curve in curves_by_order.items()}
    if options.draw:
        at = list(range(1, epochs + 1))
        lines = [ChartSeries(name, at, mean.tolist(), style=i) for i, (name, mean) in enumerate(means.items())]
        chart = LineChart(options.task, lines, ChartAxis("epoch"), ChartAxis("validation MAP"))
        options.draw.write_text(render_svg([chart]), encoding="utf-8")
    if options.json:
        print(json.dumps({"task": options.task, "rows": len(rows), "seeds": options.seeds, "curves": curves_by_order}))
        return
    print(describe_machine())
    print(f"{options.task}: {len(rows):,} rows sorted by label, {BLOCKS} blocks, {options.seeds} seeds")
    for name, mean in means.items():
        print(f"  {name:<28}" + " ".join(f"{value:.3f}" for value in mean))
    for title, of in (("mean of all epochs", lambda a: a.mean(1)), ("last epoch", lambda a: a[:, -1])):
        print(f"less in memory, {title}:")
        for name in list(curves_by_order)[1:]:
            gap, half = difference(curves_by_order, name, of)
            print(f"  {name:<28}{gap:+.4f} +- {half:.4f}")


if __name__ == "__main__":
    main()
