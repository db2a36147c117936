"""Gain of ensembles on held-out rows: `python -m benchmarks.ensembles TASK [--data FOLDER] [--out FILE]`.

sample, corel5k (--data FOLDER with Mulan's sparse ARFF files), S, M: the tasks of benchmarks/tasks.py. Ten members that
differ by seed, by rows (bags) and by columns; the first 1, 2, 3 and 10 of them on the test rows, and beside them one
model of three times the dimensions and one of three times the epochs. The validation rows choose every epoch. With
--scales: ways to put the members' scores on one scale, for the members by seed and by columns.

`python -m benchmarks.ensembles memory`: growth of the resident set in training 1 and 10 members of a model of 10 MB.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import random as random_rows

from benchmarks.machine import describe_machine, machine
from benchmarks.memory import measure_growth
from benchmarks.tasks import NAMES, Sides, sides
from wsabie.evaluation.calibration import fit_calibration, sample_pairs
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.ensemble import Ensemble
from wsabie.models.joint_embedding.estimator import Wsabie

METRICS = ("MAP", "p@1", "p@10")
Block = Callable[[int, int], Any]


def figures(block: Block, Y: Any, rows: int = 256) -> dict[str, float]:
    """Means over rows of labels Y, whose scores come by blocks."""
    n = Y.shape[0]
    blocks = ((lo, np.ascontiguousarray(block(lo, min(lo + rows, n)), np.float32)) for lo in range(0, n, rows))
    means = evaluate_scores(blocks, Y, ks=(1, 10)).means
    return {name: means[name] for name in METRICS}


def show(title: str, means: dict[str, float], baseline: float | None = None) -> None:
    gain = "" if baseline is None else f" ({100 * (means['MAP'] / baseline - 1):+.1f} %)"
    text = ", ".join(f"{name} {value:.4f}" for name, value in means.items())
    print(f"{title:<28} {text}{gain}", flush=True)


def parts(model: Ensemble, X: Any) -> tuple[Any, Any]:
    """Points of rows and of labels, a member at a time: (members, rows, dim) each."""
    n = len(model.members_)
    cut = (np.split(table, n, axis=1) for table in (model.transform(X), model.label_vectors))
    return tuple(np.stack(list(each)) for each in cut)  # type: ignore[return-value]


def of_first(n: int, points: Any, labels: Any) -> Block:
    """Scores of the ensemble of the first n members."""
    return lambda lo, hi: sum(points[m, lo:hi] @ labels[m].T for m in range(n))


def scales(model: Ensemble, data: Sides, n: int = 3) -> dict[str, Any]:
    """The mean of the scores of n members, each brought to one scale in several ways."""
    points, labels = parts(model, data.test.X)
    valid_points, _ = parts(model, data.valid.X)
    spreads = [member.spread for member in model.members_]
    cuts = range(0, len(valid_points[0]), 256)
    platt = []
    for m in range(n):
        blocks = ((lo, valid_points[m, lo : lo + 256] @ labels[m].T) for lo in cuts)
        platt.append(fit_calibration(sample_pairs(blocks, data.valid.Y)))

    def standard(scores: Any) -> Any:
        return (scores - scores.mean(1, keepdims=True)) / np.maximum(scores.std(1, keepdims=True), 1e-9)

    def shares(scores: Any) -> Any:
        powers = np.exp((scores - scores.max(1, keepdims=True)) / scores.std())
        return powers / powers.sum(1, keepdims=True)

    ways: dict[str, Callable[[Any, int], Any]] = {
        "one spread per member": lambda scores, m: scores,
        "none": lambda scores, m: scores * spreads[m],
        "z-score per row": lambda scores, m: standard(scores),
        "softmax": lambda scores, m: shares(scores),
        "Platt probability": lambda scores, m: platt[m].predict_proba(scores),
    }
    results = {}
    for name, way in ways.items():

        def block(lo: int, hi: int, way: Callable[[Any, int], Any] = way) -> Any:
            return sum(way(points[m, lo:hi] @ labels[m].T, m) for m in range(n))

        results[name] = figures(block, data.test.Y)
        show(f"  {name}", results[name])
    return results


def single(options: dict[str, Any], data: Sides, seed: int = 0) -> dict[str, float]:
    started = time.perf_counter()
    model = Wsabie(**options, seed=seed).fit(*data.fit, validation=data.valid)
    seconds = time.perf_counter() - started
    return {**figures(lambda lo, hi: model.scores(data.test.X[lo:hi]), data.test.Y), "seconds": seconds}


def study(data: Sides, most: int, kinds: list[str], with_scales: bool) -> dict[str, Any]:
    """All figures of a task."""
    results: dict[str, Any] = {}
    single_map, epochs = None, 0
    for by in kinds:
        model = Ensemble(n=most, by=by).fit(*data.fit, validation=data.valid)  # type: ignore[arg-type]
        points, labels = parts(model, data.test.X)
        epochs = epochs or model.settings_["epochs"]
        member_maps = [figures(of_first(1, points[m:], labels[m:]), data.test.Y)["MAP"] for m in range(most)]
        single_map = single_map or float(np.mean(member_maps))
        members = [
            {**member._asdict(), "test_map": value} for member, value in zip(model.members_, member_maps, strict=True)
        ]
        results[by] = {"members": members}
        print(
            f"by {by}: members alone MAP {np.mean(member_maps):.4f} ({min(member_maps):.4f} to {max(member_maps):.4f})"
        )
        for n in (n for n in (2, 3, 10) if n <= most):
            results[by][str(n)] = figures(of_first(n, points, labels), data.test.Y)
            show(f"  {n} members", results[by][str(n)], single_map)
        if with_scales and by != "rows":
            results[by]["scales"] = scales(model, data)
    for title, options in (("3 times the dimensions", {"dim": 300}), ("3 times the epochs", {"epochs": 3 * epochs})):
        results[title] = single(options, data)
        show(title, results[title], single_map)
    return results


def memory() -> dict[str, Any]:
    """Growth of the resident set, for models of 10,000 features and 16,000 labels."""
    rng = np.random.default_rng(0)
    X = random_rows(2000, 10_000, 0.01, "csr", np.float32, random_state=0)
    y = rng.integers(0, 16_000, 2000)
    y[0] = 15_999
    Ensemble(Wsabie(epochs=1), n=2).fit(X[:64], np.arange(64))  # compilation is not training
    sizes = {}
    for n in (1, 10):
        grown, model = measure_growth(
            lambda n=n: Ensemble(Wsabie(epochs=1), n=n).fit(X, y, validation=(X[:100], y[:100]))
        )
        sizes[str(n)] = {"grown": grown, "model": model.joined_.space_.nbytes}
        print(f"{n} members: {grown / 1e6:,.0f} MB more at the peak, model of {sizes[str(n)]['model'] / 1e6:,.0f} MB")
        del model
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[*NAMES, "memory"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--most", type=int, default=10, help="members to train (default: 10)")
    parser.add_argument("--by", default="seed,rows,columns")
    parser.add_argument("--scales", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    print(describe_machine())
    if options.task == "memory":
        results = memory()
    else:
        results = study(sides(options.task, options.data), options.most, options.by.split(","), options.scales)
    if options.out:
        result = {"schema": 1, "machine": machine(), "task": options.task, "figures": results}
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
