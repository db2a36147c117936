"""Old and new labels of a model while labels are added: `python -m benchmarks.streams TASK [--data FOLDER]`.

corel5k (--data FOLDER with Mulan's sparse ARFF files), S, M: the tasks of benchmarks/tasks.py. A fifth of the labels,
drawn again for every seed, is held back: the model is fitted on the rows that have none of them, and then learns the
others in 10 steps with `partial_fit`. A row comes in the step of its last label. Afterwards, on the test rows:

old    MAP of the labels of the start, ranked among themselves, against the model before the first step
open   the same ranked among all labels, against a model fitted on all rows at once
new    MAP of the labels that were added, ranked among all labels but the row's other true ones, against that model
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix, vstack

from benchmarks.machine import describe_machine, machine, verdict
from benchmarks.tasks import Side, sides
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.joint_embedding.estimator import Wsabie

STEPS = 10
SHARE = 0.2
MOST_LOST, LEAST_LEARNED = -0.02, 0.9
ANCHOR = 0.3
MOST_TEST = 3000
EPOCHS = 10


class Stream(NamedTuple):
    """Rows in the order in which they come, and what is judged.

    Attributes
    ----------
    train, test : Side
        Labels as a matrix.
    step : (n_train,) int
        0: before the first step.
    old, new, live : int arrays
        Labels of the start, those that are added, and both.
    """

    train: Side
    test: Side
    step: Any
    old: Any
    new: Any
    live: Any


def stream(task: str, data: Path | None, rows: int | None, seed: int) -> Stream:
    """The rows of a task, a fifth of whose labels come later."""
    fit, valid, test = (Side(side.X, _matrix(side.Y)) for side in sides(task, data))
    n_labels = max(side.Y.shape[1] for side in (fit, valid, test))
    for side in (fit, valid, test):
        side.Y.resize(side.Y.shape[0], n_labels)
    X, Y = vstack([fit.X, valid.X]).tocsr()[:rows], vstack([fit.Y, valid.Y]).tocsr()[:rows]
    rng = np.random.default_rng([seed, 11])
    live = np.flatnonzero(np.asarray((Y > 0).sum(axis=0)).ravel())
    late_labels = rng.permutation(live)[: round(SHARE * len(live))]
    step_of = np.zeros(n_labels, np.int64)
    for number, labels_of_step in enumerate(np.array_split(late_labels, STEPS)):
        step_of[labels_of_step] = number + 1
    step, pairs = np.zeros(Y.shape[0], np.int64), Y.tocoo()
    np.maximum.at(step, pairs.row, step_of[pairs.col])
    has_first_rows = np.asarray((Y[step == 0] > 0).sum(axis=0)).ravel() > 0
    old = np.flatnonzero(has_first_rows & (step_of == 0))
    return Stream(Side(X, Y), Side(test.X[:MOST_TEST], test.Y[:MOST_TEST]), step, old, np.sort(late_labels), live)


def _matrix(Y: Any) -> Any:
    if np.ndim(Y) != 1:
        return csr_matrix(Y)
    return csr_matrix((np.ones(len(Y), np.int8), Y, np.arange(len(Y) + 1)), (len(Y), int(Y.max()) + 1))


def name_labels(Y: Any) -> list[list[str]]:
    """Names of the labels of every row."""
    return [[str(label) for label in Y.indices[lo:hi]] for lo, hi in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


def compute_map(model: Any, test: Side, labels: Any, among: Any) -> float:
    """MAP of some labels among others; true labels that are not wanted are not candidates."""
    positives = test.Y[:, labels]
    rows = np.flatnonzero(np.diff((positives > 0).tocsr().indptr))
    among = among[[str(label) in model.vocabulary_ for label in among]]
    scores = model.scores(test.X[rows])[:, model.vocabulary_.ids(map(str, among))]
    truth, is_wanted = test.Y[rows][:, among], np.isin(among, labels)
    pairs = truth.tocoo()
    hidden = ~is_wanted[pairs.col]
    scores[pairs.row[hidden], pairs.col[hidden]] = -1e9
    places = pairs.row[~hidden], pairs.col[~hidden]
    truth = csr_matrix((np.ones(len(places[0]), np.int8), places), truth.shape)
    return float(evaluate_scores([(0, np.ascontiguousarray(scores))], truth).means["MAP"])


Learn = Callable[[Any, Any, Any], None]


def continue_fit(model: Any, X: Any, Y: Any) -> None:
    model.partial_fit(X, Y, epochs=EPOCHS)


def continue_with_anchor(model: Any, X: Any, Y: Any) -> None:
    """After every epoch the old points go a part of the way back to where they were."""
    tables_before = {name: table.copy() for name, table in model.space_.list_arrays().items() if name != "bias"}
    for _ in range(EPOCHS):
        model.partial_fit(X, Y, epochs=1)
        for name, table in model.space_.list_arrays().items():
            if name in tables_before:
                table[: len(tables_before[name])] += ANCHOR * (tables_before[name] - table[: len(tables_before[name])])


def free(model: Any, X: Any, Y: Any) -> None:
    """Old points are not held to where they were, and the rate is a quarter, as without a buffer."""
    model.set_params(
        learning_rate={"V": model.settings_["feature_rate"] / 4, "W": model.settings_["learning_rate"] / 4}
    )
    with without("hold", "seat"):
        model.partial_fit(X, Y, epochs=EPOCHS)


def held_only(model: Any, X: Any, Y: Any) -> None:
    """Old points are held, and new labels stay where they came to beside too few old rows."""
    with without("seat"):
        model.partial_fit(X, Y, epochs=EPOCHS)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Parts of what follows the training beside a buffer are left out."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(patch(f"wsabie.models.joint_embedding.estimator.{name}"))
        yield


def ways(n_rows: int) -> dict[str, tuple[dict[str, Any], Learn]]:
    """Compared ways: parameters that are set after the first fit, and the update of a step."""
    return {
        "nothing": ({}, continue_fit),
        "a quarter of the rate": ({"learning_rate": "quarter"}, continue_fit),
        "V frozen": ({"learning_rate": "frozen"}, continue_fit),
        f"anchored ({ANCHOR:g} back an epoch)": ({}, continue_with_anchor),
        "replay of a tenth": ({"replay": n_rows // 10}, continue_fit),
        "replay, points free": ({"replay": "auto"}, free),
        "replay, points held": ({"replay": "auto"}, held_only),
        "replay": ({"replay": "auto"}, continue_fit),
    }


def run(task: Stream, seed: int, only: list[str] | None) -> dict[str, Any]:
    """The figures of a seed: before, of one fit on everything, and of each way after every step."""
    train, test, first = task.train, task.test, task.step == 0
    result: dict[str, Any] = {"seed": seed, "rows": int(first.sum()), "of": len(first)}
    began = time.perf_counter()
    full_model = Wsabie(seed=seed).fit(train.X, name_labels(train.Y))
    result["full"] = {**figures(full_model, task), "seconds": time.perf_counter() - began}
    base = Wsabie(seed=seed, replay="auto").fit(train.X[first], name_labels(train.Y[first]))
    result["before"] = {"old": compute_map(base, test, task.old, task.old)}
    tenth = Wsabie(seed=seed, replay=len(first) // 10).fit(train.X[first], name_labels(train.Y[first]))
    rates = {"V": base.settings_["feature_rate"], "W": base.settings_["learning_rate"]}
    for way, (changes, learn) in ways(len(first)).items():
        if only and way not in only:
            continue
        model = deepcopy(tenth if changes.get("replay") == len(first) // 10 else base)
        model.set_params(replay=changes.get("replay"))
        quarter, frozen = {name: rate / 4 for name, rate in rates.items()}, {**rates, "V": 1e-9}
        rate = {"quarter": quarter, "frozen": frozen, None: "auto"}[changes.get("learning_rate")]
        model.set_params(learning_rate=rate)
        began, curve = time.perf_counter(), []
        for step in range(1, STEPS + 1):
            now = task.step == step
            learn(model, train.X[now], name_labels(train.Y[now]))
            curve.append(compute_map(model, test, task.old, task.old))
        seconds = time.perf_counter() - began
        result[way] = {**figures(model, task), "curve": curve, "seconds": seconds}
        if model.replay_buffer_ is not None and changes.get("replay"):
            result[way] |= {"kept": len(model.replay_buffer_), "bytes": model.replay_buffer_.nbytes}
        print(f"  seed {seed} {way:<28} {shares(result, way)}", flush=True)
    return result


def figures(model: Any, task: Stream) -> dict[str, float]:
    """MAP by what is asked."""
    label_sets = {"old": (task.old, task.old), "open": (task.old, task.live), "new": (task.new, task.live)}
    return {name: compute_map(model, task.test, *each) for name, each in label_sets.items()}


def shares(result: dict[str, Any], way: str) -> dict[str, float]:
    """Old labels against the start, and what a fit on everything reaches."""
    ours, full = result[way], result["full"]
    return {
        "old": round(ours["old"] / result["before"]["old"] - 1, 4),
        "open": round(ours["open"] / full["open"], 4),
        "new": round(ours["new"] / full["new"], 4),
    }


def interval(values: list[float]) -> dict[str, float]:
    """The mean over seeds and its 95 % interval by Student's law."""
    from scipy.stats import t

    n = len(values)
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return {"mean": float(np.mean(values)), "low": float(np.mean(values)) - half, "high": float(np.mean(values)) + half}


def _format_interval(value: dict[str, float]) -> str:
    return f"{100 * value['mean']:.1f} % [{100 * value['low']:.1f}, {100 * value['high']:.1f}]"


def draw_curves(runs: list[dict[str, Any]], file: Path) -> None:
    """Draw the old labels' MAP after every step, mean of the seeds, as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    for way in [name for name, value in runs[0].items() if isinstance(value, dict) and "curve" in value]:
        curves = [
            [1.0, *(value / run_result["before"]["old"] for value in run_result[way]["curve"])] for run_result in runs
        ]
        axes.plot(range(STEPS + 1), np.mean(curves, axis=0), marker=".", label=way)
    axes.set(xlabel="steps", ylabel="MAP of the old labels, share of before", title="Labels added in ten steps")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    with mpl.rc_context({"svg.hashsalt": "wsabie"}):
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["corel5k", "S", "M", "sample"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, help="only so many training rows")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", action="append", help="this way (default: all)")
    parser.add_argument("--draw", type=Path, help="draw the old labels' curve to this SVG file")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    print(describe_machine())
    runs = [
        run(stream(options.task, options.data, options.rows, seed), seed, options.only) for seed in range(options.seeds)
    ]
    summary: dict[str, Any] = {}
    for way in [name for name in runs[0] if name not in ("seed", "rows", "of", "full", "before")]:
        each = [shares(entry, way) for entry in runs]
        summary[way] = {name: interval([entry[name] for entry in each]) for name in each[0]}
        took = np.mean([entry[way]["seconds"] / entry["full"]["seconds"] for entry in runs])
        text = "  ".join(f"{name} {_format_interval(value)}" for name, value in summary[way].items())
        print(f"{way:<28} {text}  time / full fit {took:.2f}")
    if "replay" in summary:
        old_labels, new_labels = summary["replay"]["old"]["mean"], summary["replay"]["new"]["mean"]
        print(
            f"replay: old labels {verdict(old_labels, least=MOST_LOST)}, "
            f"new labels {verdict(new_labels, least=LEAST_LEARNED)}"
        )
    if options.draw:
        draw_curves(runs, options.draw)
    if options.out:
        content = {"schema": 1, "machine": machine(), "task": options.task, "summary": summary, "runs": runs}
        options.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
