"""Gain of the adaptive sampler by property of generated tasks; run by `python -m benchmarks.samplers study`.

Labels are points near parents, rows are points, and a row carries the labels that a softmax over all of them, with a
Zipf popularity, gives first. Rows are ids (one label of each is to be found) or 30 words of 2,000 (new rows are
annotated). One number changes at a time.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, identity

from benchmarks.ledger import Ledger
from benchmarks.negatives import COMMON, EvaluationSet, Task, run
from wsabie.evaluation.splits import hold_out_labels

LATENT, WORDS, WORDS_PER_ROW = 20, 2_000, 30
N_ROWS, N_JUDGED = 6_000, 1_000
EPOCHS = 12
RATES = (0.03, 0.12)
WARP_RATES = (0.005, 0.02)
"""Steps of WARP are weighted by the rank, up to 9 here."""
RULES: dict[str, dict[str, Any]] = {
    "WARP": {},
    "uniform AUC": {"loss": "auc"},
    "adaptive .01": {"loss": "auc", "sampler": {"name": "adaptive", "rank_scale": 0.01}},
    "adaptive .1": {"loss": "auc", "sampler": {"name": "adaptive", "rank_scale": 0.1}},
}


class World(NamedTuple):
    """One generated task."""

    n_labels: int = 4_000
    per_row: int = 8
    skew: float = 0.7


WORLDS = (
    World(),
    World(n_labels=1_000),
    World(n_labels=16_000),
    World(per_row=3),
    World(per_row=24),
    World(skew=0.0),
    World(skew=1.2),
)


def study(out: Path | None) -> dict[str, Any]:
    """Every rule on every task, two constant learning rates each, so that a curve can be read anywhere."""
    ledger = Ledger((out or Path("benchmarks/.cache/samplers-study.json")).with_suffix(".jsonl"))
    results = {}
    for kind in ("ids", "features"):
        for world in WORLDS:
            name = f"{kind} {world.n_labels} labels, {world.per_row} a row, skew {world.skew:g}"
            results[name] = _compare_rules(name, _lines(name, kind, world, ledger))
    return results


def _lines(name: str, kind: str, world: World, ledger: Ledger) -> list[dict[str, Any]]:
    task = None
    for rule, changes in RULES.items():
        for rate in WARP_RATES if rule == "WARP" else RATES:
            params = {**COMMON, **changes, **_setting(kind, rate)}
            request = {"task": name, "system": rule, "kind": "trial", "params": params}
            if ledger.get(**request) is None:
                task = task or generate_task(kind, world)
                ledger.add({**request, **run(task, params)[0]})
    return [line for line in ledger.lines.values() if line["task"] == name]


def _setting(kind: str, rate: float) -> dict[str, Any]:
    ratio = 5.0 if kind == "ids" else 1.0
    return {"learning_rate": {"V": rate * ratio, "W": rate}, "schedule": "constant", "max_norm": 1.5, "epochs": EPOCHS}


def _compare_rules(name: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """MAP after all epochs, and in the seconds that uniform AUC took for them: the better rate of each rule."""
    budget = min(line["curve"][-1][0] for line in lines if line["system"] == "uniform AUC")
    figures: dict[str, Any] = {"seconds": budget}
    for rule in RULES:
        curves = [line["curve"] for line in lines if line["system"] == rule and line["curve"]]
        figures[rule] = {
            "epochs": max(m for curve in curves for _, m in curve),
            "time": max((m for curve in curves for s, m in curve if s <= budget), default=0.0),
            "draws": float(np.mean([line["draws"] for line in lines if line["system"] == rule and line["curve"]])),
            "us_per_pair": min(line["us_per_pair"] for line in lines if line["system"] == rule and line["curve"]),
        }
    text = ", ".join(
        f"{rule} {at['epochs']:.3f} / {at['time']:.3f}" for rule, at in figures.items() if rule != "seconds"
    )
    print(f"{name:<48} (all epochs / equal time) {text}", flush=True)
    return figures


def generate_task(kind: str, world: World) -> Task:
    """The task of a world, from its own seed."""
    rng = np.random.default_rng([world.n_labels, world.per_row, int(10 * world.skew)])
    parents = rng.standard_normal((max(4, world.n_labels // 20), LATENT))
    labels = 0.7 * parents[rng.integers(len(parents), size=world.n_labels)]
    labels += 0.7 * rng.standard_normal(labels.shape)
    popularity = -world.skew * np.log(np.arange(world.n_labels) + 10.0)
    n = N_ROWS + (0 if kind == "ids" else N_JUDGED)
    points = rng.standard_normal((n, LATENT))
    Y = _draw_matrix(points, labels, popularity, world.per_row, rng)
    if kind == "ids":
        split = hold_out_labels(Y)
        X, rows = identity(n, dtype=np.float32, format="csr"), np.arange(0, n, n // N_JUDGED)
        evaluation_set = EvaluationSet(X[rows], split.test[rows], split.train[rows])
        return Task(X, split.train, split.train, evaluation_set, evaluation_set)
    words = rng.standard_normal((WORDS, LATENT))
    X = _draw_matrix(points, words, -np.log(np.arange(WORDS) + 50.0), WORDS_PER_ROW, rng).astype(np.float32)
    evaluation_set = EvaluationSet(X[N_ROWS:], Y[N_ROWS:], None)
    return Task(X[:N_ROWS], Y[:N_ROWS], None, evaluation_set, evaluation_set)


def _draw_matrix(points: Any, labels: Any, bias: Any, k: int, rng: np.random.Generator) -> csr_matrix:
    """k things of each point, without replacement, from the softmax of point . thing + bias (Gumbel's trick)."""
    columns = np.empty((len(points), k), np.int32)
    for lo in range(0, len(points), 500):
        heights = (points[lo : lo + 500] @ labels.T + bias).astype(np.float32)
        heights -= np.log(np.maximum(rng.standard_exponential(heights.shape, dtype=np.float32), np.float32(1e-30)))
        columns[lo : lo + 500] = np.sort(np.argpartition(-heights, k, axis=1)[:, :k], axis=1)
    n = len(points)
    return csr_matrix((np.ones(n * k, np.int8), columns.ravel(), np.arange(n + 1) * k), (n, len(labels)))
