"""Answers and time of exported models: `python -m benchmarks.exports TASK [--data FOLDER] [--out FILE]`.

corel5k (--data FOLDER with Mulan's sparse ARFF files), dense (the same rows as dense ones), drawings (those of the
sample collection, as 3,000 visual words), sample, S, M: the tasks of benchmarks/tasks.py. The model with its defaults
and one classifier per label, each exported to ONNX with tables of float32 and of int8. The test rows are ranked in ONNX
Runtime on one thread, and beside it by the model itself: figures, bytes of the file, microseconds a row, the largest
gap between scores, and rows whose first label is another.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine, machine
from benchmarks.tasks import Side, Sides, extract_part, sides
from wsabie.core.execution import SerialExecutor
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.exporters.export_formats import export
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.one_vs_rest import ModelTooLargeError, OneVsRest
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.demos import MIN_PICTURES

TASKS = ("corel5k", "dense", "drawings", "sample", "S", "M")
MINUTES = 2.0  # by the estimate: the classifiers are a second example, not the point
_BLOCK = 256


def task_of(name: str, data: Path | None) -> Sides:
    if name == "drawings":
        task = build_comparison_task(*extract_part("drawings", SerialExecutor()), min_rows=MIN_PICTURES)
        assert task.valid is not None
        return Sides(*(Side(rows.X, rows.Y) for rows in (task.train, task.valid, task.test)))
    task_sides = sides("corel5k" if name == "dense" else name, data)
    return Sides(*(Side(side.X.toarray(), side.Y) for side in task_sides)) if name == "dense" else task_sides


def pad_rows(X: Any) -> dict[str, Any]:
    """Rows as a graph takes them (docs/how-to/export.md)."""
    if isinstance(X, np.ndarray):
        return {"rows": X.astype(np.float32)}
    lengths = np.diff(X.indptr)
    inside = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]
    indices, values = np.zeros(inside.shape, np.int64), np.zeros(inside.shape, np.float32)
    indices[inside], values[inside] = X.indices, X.data
    return {"indices": indices, "values": values}


def runner(model: Any, file: Path, k: int, int8: bool) -> Callable[[Any], tuple[Any, Any]]:
    """Rows to (ids, scores), by ONNX Runtime on one thread."""
    from onnxruntime import InferenceSession, SessionOptions

    export(model, file, "onnx", k=k, int8=int8)
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda X: tuple(session.run(["ids", "scores"], pad_rows(X)))


def time_ranking(rank: Callable[[Any], Any], X: Any, n: int = 3) -> float:
    """Microseconds a row, of blocks of rows and their ten best labels; the best of three passes."""
    times = []
    for _ in range(n):
        started = time.perf_counter()
        for lo in range(0, X.shape[0], _BLOCK):
            rank(X[lo : lo + _BLOCK])
        times.append(time.perf_counter() - started)
    return 1e6 * min(times) / X.shape[0]


def all_scores(rank: Callable[[Any], Any], X: Any, n_labels: int) -> Any:
    """Scores of every label, from lists of all of them."""
    out = np.empty((X.shape[0], n_labels), np.float32)
    for lo in range(0, len(out), _BLOCK):
        ids, scores = rank(X[lo : lo + _BLOCK])
        np.put_along_axis(out[lo : lo + _BLOCK], ids, scores, axis=1)
    return out


def compute_metrics(scores: Any, Y: Any) -> dict[str, float]:
    means = evaluate_scores([(0, scores)], Y, ks=(1,)).means
    return {"MAP": means["MAP"], "p@1": means["p@1"]}


def measure_formats(model: Any, test: Side) -> dict[str, Any]:
    """Figures of the model itself, and of what it is exported to."""
    n_labels, model_scores = len(model.vocabulary_), model.scores(test.X)
    Y = model._build_truth(test.Y, test.X.shape[0])
    model.threads = 1
    figures_by_format = {
        "model": {**compute_metrics(model_scores, Y), "microseconds": time_ranking(lambda X: model.rank(X, 10), test.X)}
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, int8 in (("onnx", False), ("int8", True)):
            file = Path(folder) / f"{name}.onnx"
            scores = all_scores(runner(model, Path(folder) / f"{name}-all.onnx", n_labels, int8), test.X, n_labels)
            rank = runner(model, file, 10, int8)
            figures_by_format[name] = {
                **compute_metrics(scores, Y),
                "microseconds": time_ranking(rank, test.X),
                "bytes": file.stat().st_size,
                "largest_gap": float(np.abs(scores - model_scores).max()),
                "another_first": float((scores.argmax(axis=1) != model_scores.argmax(axis=1)).mean()),
            }
    return figures_by_format


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    print(describe_machine())
    task_sides = task_of(options.task, options.data)
    figures_by_model = {}
    for name, model in (("wsabie", Wsabie(threads=1)), ("one-vs-rest", OneVsRest(threads=1, max_minutes=MINUTES))):
        more = {"validation": tuple(task_sides.valid)} if name == "wsabie" else {}
        try:
            model.fit(task_sides.fit.X, task_sides.fit.Y, **more)
        except ModelTooLargeError as error:
            print(f"{name}: {error}")
            continue
        figures_by_model[name] = measure_formats(model, task_sides.test)
        for file_format, figures in figures_by_model[name].items():
            print(f"{name:<12} {file_format:<6}", ", ".join(f"{k} {v:.6g}" for k, v in figures.items()), flush=True)
    if options.out:
        options.out.write_text(
            json.dumps({"schema": 1, "machine": machine(1), "task": options.task, **figures_by_model}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
