"""Quality by CPU time of losses that differ in their negatives; run by `python -m benchmarks.samplers`."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, identity

from benchmarks.ledger import Ledger
from benchmarks.quality import read_tags
from benchmarks.visterm_task import load
from wsabie.core.errors import DivergenceError
from wsabie.embedding.protocols import EmbeddingSpace
from wsabie.evaluation.metrics import average_precision
from wsabie.evaluation.positive_ranks import rank_embeddings
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.evaluation.splits import hold_out_labels
from wsabie.models.joint_embedding.estimator import Wsabie


class EvaluationSet(NamedTuple):
    """Rows, what is to be found, and what is not a candidate."""

    X: Any
    Y: Any
    exclude: Any


class Task(NamedTuple):
    """Training rows, validation set and test set."""

    X: Any
    Y: Any
    exclude: Any  # labels of the training rows when rows are judged that were trained on
    valid: EvaluationSet
    test: EvaluationSet


def mirflickr(data: Path, least: int = 5, n_valid: int = 2000) -> Task:
    """Protocol of Guo et al. 2018: of each picture with two labels one is the test, of 2,000 others one chooses."""
    tags = read_tags(data, least)
    split = hold_out_labels(tags)
    enough = int((np.diff(split.train.indptr) >= 2).sum())
    again = hold_out_labels(split.train, share=min(1.0, n_valid / enough), seed=1)
    X = identity(tags.shape[0], dtype=np.float32, format="csr")
    return Task(
        X,
        again.train,
        again.train,
        _build_evaluation_set(X, again, again.train),
        _build_evaluation_set(X, split, split.train),
    )


def _build_evaluation_set(X: Any, split: Any, exclude: Any) -> EvaluationSet:
    rows = np.flatnonzero(np.diff(split.test.indptr))
    return EvaluationSet(X[rows], split.test[rows], exclude[rows])


def visterms(name: str, rows: int, n_valid: int = 1000) -> Task:
    """The first rows of a generated visual-word task."""
    task = load(name)
    Y = csr_matrix((np.ones(len(task.y), np.int8), task.y, np.arange(len(task.y) + 1)), (len(task.y), task.n_labels))
    valid, test = (slice(lo, lo + n) for lo, n in ((task.n_fit, n_valid), (task.n_train, 5000)))
    return Task(
        task.X[:rows],
        Y[:rows],
        None,
        EvaluationSet(task.X[valid], Y[valid], None),
        EvaluationSet(task.X[test], Y[test], None),
    )


class Watch:
    """A monitor that keeps the CPU seconds of every epoch apart from its own, and MAP after it."""

    def __init__(self, evaluation_set: EvaluationSet | None, scaled: Any = None) -> None:
        self.evaluation_set, self.scaled = evaluation_set, scaled
        self.seconds: list[float] = []
        self.paused_at = time.process_time()

    def figures(self, space: EmbeddingSpace) -> Mapping[str, float]:
        """MAP of the judged rows; without rows nothing but the time."""
        self.seconds.append(time.process_time() - self.paused_at)
        validation = {"MAP": 0.0 if self.evaluation_set is None else self._map(space)}
        self.paused_at = time.process_time()
        return validation

    def warm_up(self, space: EmbeddingSpace) -> None:
        """Restart the clock after compilation."""
        self.paused_at = time.process_time()

    def _map(self, space: Any) -> float:
        ranks = rank_embeddings(
            space.label_arrays(),
            space.compute_points(self.scaled),
            self.evaluation_set.Y,
            exclude=self.evaluation_set.exclude,
            threads=1,
        )
        return float(average_precision(ranks).mean())


class Watched(Wsabie):
    """The estimator, judged after every epoch by a `Watch`."""

    watch: Watch

    def _build_monitor(self, X: Any, *arguments: Any, **options: Any) -> Any:
        self.watch.scaled = self.scaling_(self._check_rows(X))
        self.watch.paused_at = time.process_time()
        return self.watch

    def _fit_calibration(self, monitor: Any) -> None:
        return None


SYSTEMS: dict[str, dict[str, Any]] = {
    "WARP": {},
    "VSE-ens": {"loss": "auc", "sampler": "adaptive"},
    "hinge AUC": {"loss": "auc"},
    "Opt-AUC": {"loss": "auc", "surrogate": "logistic"},
    "hybrid": {"sampler": "adaptive"},
}
ABLATION: dict[str, dict[str, Any]] = {
    "WARP": {},
    "WARP, weight 1": {"rank_weight": "top1"},
    "hybrid": {"sampler": "adaptive"},
    "hybrid, weight 1": {"sampler": "adaptive", "rank_weight": "top1", "rank_estimator": 1},
    "hinge AUC, weight L(rank)": {"max_sampled": 1, "rank_estimator": 100},
    "hinge AUC": {"loss": "auc"},
    "VSE-ens, weight L(rank)": {"max_sampled": 1, "sampler": "adaptive"},
    "VSE-ens": {"loss": "auc", "sampler": "adaptive"},
}
"""Search for a violator or one draw, uniform or adaptive, with the weight of the rank or without."""
COMMON = {"threads": 1, "deterministic": False, "pair_weighting": "pairs"}
PRINTED_EPOCHS = 100
HYBRID_TRIALS = {"mirflickr": 2, "M": 0, "paper": 0, "ablation": 2}
"""Where it takes too long for all trials."""
METRICS = ("p@5", "recall@5", "p@10", "recall@10", "MAP", "AUC")


IDS = (
    # step of V and of W, max_norm, epochs, rank_scale
    (0.1, 0.02, 1.5, 16, 0.01),
    (0.3, 0.06, 1.5, 16, 0.03),
    (1.0, 0.1, 1.5, 16, 0.01),
    (1.0, 0.3, 1.5, 16, 0.03),
    (3.0, 0.3, 1.5, 16, 0.003),
    (1.0, 0.1, 1.0, 16, 0.1),
    (0.03, 0.02, 1.5, 16, 0.03),
    (1.0, 0.1, 2.5, 32, 0.03),
    (1.0, 0.3, 2.5, 32, 0.01),
)
FEATURES = ((0.03, 0.03, 1.5, 8, 0.01), (0.1, 0.1, 1.5, 8, 0.003), (0.3, 0.1, 1.5, 8, 0.001), (0.3, 0.3, 2.0, 8, 0.01))
"""Settings of the trials, the same for every system. AUC's steps are not weighted by the rank, so that they may be
larger than WARP's; the row of an id moves for its own pairs alone.
"""


def setting(trial: int, ids: bool) -> dict[str, Any]:
    """The settings of a trial."""
    rows, labels, norm, epochs, scale = (IDS if ids else FEATURES)[trial]
    return {"learning_rate": {"V": rows, "W": labels}, "max_norm": norm, "epochs": epochs, "rank_scale": scale}


def get_paper_setting(trial: int) -> dict[str, Any]:
    """Settings of Guo et al. 2018: ranges of the constant rate and of l2 (VSE-ens keeps .01), and its start."""
    rate, l2 = ((0.01, 0.01), (0.03, 0.01), (0.1, 0.01), (0.1, 0.001))[trial % 4]
    scale = (0.01, 0.001, 0.1, 1.0)[trial % 4]
    return {
        "learning_rate": rate, "l2": l2, "max_norm": None, "schedule": "constant", "init_scale": 0.1,
        "epochs": PRINTED_EPOCHS, "patience": None, "rank_scale": scale,
    }  # fmt: skip


def with_sampler(system: str, params: dict[str, Any]) -> dict[str, Any]:
    """A trial's settings as the system takes them."""
    params = {**COMMON, **{**SYSTEMS, **ABLATION}[system], **params}
    scale = params.pop("rank_scale")
    return {**params, "sampler": {"name": "adaptive", "rank_scale": scale}} if "sampler" in params else params


def run(task: Task, params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Seconds of CPU and validation MAP after every epoch, and the model."""
    model = Watched(**params)
    model.watch = Watch(task.valid)
    try:
        model.fit(task.X, task.Y, validation=(task.valid.X, task.valid.Y))
    except DivergenceError:
        return {"curve": [], "MAP": 0.0}, None
    seconds, maps = np.cumsum(model.watch.seconds), [s.validation or 0.0 for s in model.history_]
    curve = [[round(float(s), 3), round(m, 5)] for s, m in zip(seconds, maps, strict=True)]
    last = model.history_[-1]
    return {
        "curve": curve,
        "MAP": max(maps),
        "draws": last.mean_draws,
        "steps": last.violation_rate,
        "us_per_pair": last.seconds and model.watch.seconds[-1] / last.pairs * 1e6,
    }, model


def figures_of(model: Any, evaluation_set: EvaluationSet) -> dict[str, float]:
    """All figures of the test."""
    blocks = ((lo, model.scores(evaluation_set.X[lo : lo + 256])) for lo in range(0, evaluation_set.X.shape[0], 256))
    means = evaluate_scores(blocks, evaluation_set.Y, ks=(5, 10), exclude=evaluation_set.exclude).means
    return {name: float(means[name]) for name in METRICS}


def measure(task_name: str, data: Path | None, trials: int, out: Path | None) -> dict[str, Any]:
    """Trials of every system by turns, the best of each once more, the times to WARP's quality."""
    ledger = Ledger((out or Path(f"benchmarks/.cache/samplers-{task_name}.json")).with_suffix(".jsonl"))
    ids = data is not None and task_name != "M"
    task = mirflickr(data, 5) if ids else visterms("M", 20_000)
    systems = ABLATION if task_name == "ablation" else SYSTEMS
    for trial in range(min(trials, 4 if task_name == "paper" else len(IDS if ids else FEATURES))):
        for system in systems:
            params = get_paper_setting(trial) if task_name == "paper" else setting(trial, ids)
            if task_name == "paper" and system == "VSE-ens":
                params |= {"learning_rate": 0.01, "l2": 0.01}
            if system.startswith("hybrid") and trial >= HYBRID_TRIALS.get(task_name, trials):
                continue
            if ledger.get(task=task_name, system=system, kind="trial", trial=trial, params=params) is None:
                outcome, _ = run(task, with_sampler(system, params))
                ledger.add(
                    {"task": task_name, "system": system, "kind": "trial", "trial": trial, "params": params, **outcome}
                )
                print(
                    f"trial {trial} {system:<10} MAP {outcome['MAP']:.4f} {outcome['curve'][-1:]} {params}", flush=True
                )
    systems_run = [system for system in systems if ledger.of(task_name, system)]
    finals = {system: _final(task, task_name, system, ledger) for system in systems_run}
    finals["WARP, defaults"] = _defaults(task, task_name, ledger)
    curves = {system: envelope(ledger.of(task_name, system)) for system in systems_run}
    return {"finals": finals, "envelopes": curves, "times": times(curves)}


def _defaults(task: Task, task_name: str, ledger: Ledger) -> dict[str, Any]:
    """Return the ledger line of the defaults on one thread."""
    request = {"task": task_name, "system": "WARP, defaults", "kind": "final", "params": {"threads": 1}}
    line = ledger.get(**request)
    if line is None:
        outcome, model = run(task, request["params"])
        line = ledger.add({**request, **outcome, "test": figures_of(model, task.test)})
    print("defaults  ", ", ".join(f"{name} {value:.4f}" for name, value in line["test"].items()), line["curve"][-1])
    return line


def _final(task: Task, task_name: str, system: str, ledger: Ledger) -> dict[str, Any]:
    """The trial with the best validation MAP once more, and its test figures."""
    best = max((line for line in ledger.of(task_name, system) if line["kind"] == "trial"), key=lambda line: line["MAP"])
    request = {"task": task_name, "system": system, "kind": "final", "params": best["params"]}
    final_line = ledger.get(**request)
    if final_line is None:
        outcome, model = run(task, with_sampler(system, best["params"]))
        final_line = ledger.add({**request, **outcome, "test": figures_of(model, task.test)})
    print(
        f"{system:<10}", ", ".join(f"{name} {value:.4f}" for name, value in final_line["test"].items()), best["params"]
    )
    return final_line


def envelope(lines: list[dict[str, Any]]) -> list[list[float]]:
    """The best MAP that any run had reached by so many seconds."""
    points, best = sorted(point for line in lines for point in line["curve"]), 0.0
    curve = []
    for seconds, value in points:
        if value > best:
            curve.append([seconds, value])
            best = value
    return curve


def times(curves: dict[str, list[list[float]]], levels: tuple[float, ...] = (0.8, 0.9, 0.95, 0.99, 1.0)) -> Any:
    """Seconds in which each system reaches shares of WARP's best MAP; None where it never does."""
    highest = curves["WARP"][-1][1]
    times_by_level = {}
    for level in levels:
        first = {
            system: next((s for s, value in curve if value >= level * highest), None)
            for system, curve in curves.items()
        }
        times_by_level[f"{level:g}"] = first
        print(f"{level:.0%} of WARP's MAP", ", ".join(f"{name} {value}" for name, value in first.items()))
    return times_by_level


def chart(curves: dict[str, list[list[float]]], title: str, file: Path) -> None:
    """The envelopes as SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, curve in curves.items():
        seconds, values = zip(*curve, strict=True)
        axes.step(seconds, values, where="post", marker=".", label=name, linewidth=2 if name == "WARP" else 1)
    axes.set(xscale="log", xlabel="CPU seconds of training, one thread", ylabel="validation MAP", title=title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    with mpl.rc_context({"svg.hashsalt": "wsabie"}):
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
