"""What ensembles bring on held-out rows: `python -m benchmarks.ensembles TASK [--data FOLDER] [--out FILE]`.

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

from benchmarks.machine import machine, told
from benchmarks.memory import grown_by
from benchmarks.tasks import NAMES, Sides, sides
from wsabie.evaluation.calibration import fit_calibration, sample_pairs
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.ensemble import Ensemble
from wsabie.models.wsabie.estimator import Wsabie

SHOWN = ("MAP", "p@1", "p@10")
Block = Callable[[int, int], Any]


def figures(block: Block, Y: Any, rows: int = 256) -> dict[str, float]:
    """Means over rows of labels Y, whose scores come by blocks."""
    n = Y.shape[0]
    blocks = ((lo, np.ascontiguousarray(block(lo, min(lo + rows, n)), np.float32)) for lo in range(0, n, rows))
    means = evaluate_scores(blocks, Y, ks=(1, 10)).means
    return {name: means[name] for name in SHOWN}


def show(title: str, found: dict[str, float], beside: float | None = None) -> None:
    gain = "" if beside is None else f" ({100 * (found['MAP'] / beside - 1):+.1f} %)"
    shown = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
    print(f"{title:<28} {shown}{gain}", flush=True)


def parts(model: Ensemble, X: Any) -> tuple[Any, Any]:
    """Points of rows and of labels, a member at a time: (members, rows, dim) each."""
    n = len(model.members_)
    cut = (np.split(table, n, axis=1) for table in (model.transform(X), model.label_vectors))
    return tuple(np.stack(list(each)) for each in cut)  # type: ignore[return-value]


def of_first(n: int, points: Any, labels: Any) -> Block:
    """Scores of the ensemble of the first n members."""
    return lambda lo, hi: sum(points[m, lo:hi] @ labels[m].T for m in range(n))


def scales(model: Ensemble, given: Sides, n: int = 3) -> dict[str, Any]:
    """The mean of the scores of n members, each brought to one scale in several ways."""
    points, labels = parts(model, given.test.X)
    judged, _ = parts(model, given.valid.X)
    spreads = [member.spread for member in model.members_]
    cuts = range(0, len(judged[0]), 256)
    platt = []
    for m in range(n):
        blocks = ((lo, judged[m, lo : lo + 256] @ labels[m].T) for lo in cuts)
        platt.append(fit_calibration(sample_pairs(blocks, given.valid.Y)))

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
    found = {}
    for name, way in ways.items():

        def block(lo: int, hi: int, way: Callable[[Any, int], Any] = way) -> Any:
            return sum(way(points[m, lo:hi] @ labels[m].T, m) for m in range(n))

        found[name] = figures(block, given.test.Y)
        show(f"  {name}", found[name])
    return found


def single(options: dict[str, Any], given: Sides, seed: int = 0) -> dict[str, float]:
    started = time.perf_counter()
    model = Wsabie(**options, seed=seed).fit(*given.fit, validation=given.valid)
    seconds = time.perf_counter() - started
    return {**figures(lambda lo, hi: model.scores(given.test.X[lo:hi]), given.test.Y), "seconds": seconds}


def study(given: Sides, most: int, kinds: list[str], with_scales: bool) -> dict[str, Any]:
    """All figures of a task."""
    found: dict[str, Any] = {}
    one, epochs = None, 0
    for by in kinds:
        model = Ensemble(n=most, by=by).fit(*given.fit, validation=given.valid)  # type: ignore[arg-type]
        points, labels = parts(model, given.test.X)
        epochs = epochs or model.settings_["epochs"]
        alone = [figures(of_first(1, points[m:], labels[m:]), given.test.Y)["MAP"] for m in range(most)]
        one = one or float(np.mean(alone))
        members = [{**member._asdict(), "test_map": value} for member, value in zip(model.members_, alone, strict=True)]
        found[by] = {"members": members}
        print(f"by {by}: members alone MAP {np.mean(alone):.4f} ({min(alone):.4f} to {max(alone):.4f})")
        for n in (n for n in (2, 3, 10) if n <= most):
            found[by][str(n)] = figures(of_first(n, points, labels), given.test.Y)
            show(f"  {n} members", found[by][str(n)], one)
        if with_scales and by != "rows":
            found[by]["scales"] = scales(model, given)
    for title, options in (("3 times the dimensions", {"dim": 300}), ("3 times the epochs", {"epochs": 3 * epochs})):
        found[title] = single(options, given)
        show(title, found[title], one)
    return found


def memory() -> dict[str, Any]:
    """Growth of the resident set, for models of 10,000 features and 16,000 labels."""
    rng = np.random.default_rng(0)
    X = random_rows(2000, 10_000, 0.01, "csr", np.float32, random_state=0)
    y = rng.integers(0, 16_000, 2000)
    y[0] = 15_999
    Ensemble(Wsabie(epochs=1), n=2).fit(X[:64], np.arange(64))  # compilation is not training
    found = {}
    for n in (1, 10):
        grown, model = grown_by(lambda n=n: Ensemble(Wsabie(epochs=1), n=n).fit(X, y, validation=(X[:100], y[:100])))
        found[str(n)] = {"grown": grown, "model": model.joined_.space_.nbytes}
        print(f"{n} members: {grown / 1e6:,.0f} MB more at the peak, model of {found[str(n)]['model'] / 1e6:,.0f} MB")
        del model
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[*NAMES, "memory"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--most", type=int, default=10, help="members to train (default: 10)")
    parser.add_argument("--by", default="seed,rows,columns")
    parser.add_argument("--scales", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    asked = parser.parse_args()
    print(told())
    if asked.task == "memory":
        found = memory()
    else:
        found = study(sides(asked.task, asked.data), asked.most, asked.by.split(","), asked.scales)
    if asked.out:
        result = {"schema": 1, "machine": machine(), "task": asked.task, "figures": found}
        asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
