"""Public multi-label sets of the Extreme Classification repository: our estimators, Omikuji, and published figures.

`python -m benchmarks.public_sets bibtex --data FOLDER` (Mulan's `bibtex-train.arff.gz`, `bibtex-test.arff.gz` and
`bibtex.xml`). Omikuji runs in an environment of its own (`benchmarks/peers/README.md`). Systems that have a space get
the same number of trials; validation is the last tenth of the training rows, shuffled by seed 0, and nDCG@5 chooses.
The first setting (defaults; of Omikuji Bonsai) and the chosen one are then trained on all training rows; the test is
read once.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import vstack

from benchmarks.machine import machine
from benchmarks.peers import environments
from benchmarks.peers.protocol import ask
from benchmarks.peers.spaces import SPACES, STARTS, Space, draw_setting, log_integer, log_uniform, one_of, uniform
from wsabie.evaluation.bootstrap import paired_bootstrap
from wsabie.evaluation.metrics import compute_propensities
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable, count_labels

RESULTS = Path(__file__).resolve().parent / "results"
PEER = "Omikuji, best setting"
KS = (1, 3, 5)
TIMEOUT = 600.0


class PublicSet(NamedTuple):
    """Files of the training and test rows, and the page's figures: P@1, P@3, P@5 in percent, None where not known."""

    files: tuple[str, str]
    published: dict[str, tuple[float, float | None, float | None]]


SETS = {
    "bibtex": PublicSet(
        ("bibtex-train.arff.gz", "bibtex-test.arff.gz"),
        {
            "SLEEC": (65.08, 39.64, 28.87),
            "Parabel": (64.53, None, None),
            "FastXML": (63.42, None, None),
            "1-vs-All": (62.62, 39.09, 28.79),
            "WSABIE": (54.78, 32.39, 23.98),
        },
    )
}


class System(NamedTuple):
    """Environment and adapter, the setting to start with, the space of the others (empty: no trials), its title."""

    environment: str
    start: dict[str, Any]
    space: Space
    title: str = "defaults"


SYSTEMS = {
    "Wsabie": System(
        "estimators",
        {"estimator": "Wsabie"},
        {
            "init": one_of("ridge"),
            "learning_rate": log_uniform(0.001, 0.01),
            "margin": uniform(0.5, 1.5),
            "label_bias": one_of(False, True),
            "epochs": log_integer(5, 60),
        },
    ),
    "Fusion": System("estimators", {"estimator": "Fusion"}, {}),
    "AutoRanker": System("estimators", {"estimator": "AutoRanker"}, {}),
    "OneVsRest": System("estimators", {"estimator": "OneVsRest"}, {"C": log_uniform(0.3, 30.0)}),
    "Omikuji": System("omikuji", STARTS["omikuji"], SPACES["omikuji"], "Bonsai"),
}


class Study:
    """Runs of a set, in the files of a temporary folder."""

    def __init__(self, name: str, data: Path, folder: Path, threads: int) -> None:
        train, test = (_read_table(data / file) for file in SETS[name].files)
        order = np.random.default_rng(0).permutation(len(train))
        self.X, self.Y = vstack([train.X[order], test.X]).tocsr(), vstack([train.Y[order] > 0, test.Y > 0]).tocsr()
        self.n_train, self.n = len(train), len(train) + len(test)
        self.propensities = compute_propensities(count_labels(train), len(train))
        self.folder, self.threads = folder, threads
        np.savez(
            folder / "rows.npz",
            data=self.X.data,
            indices=self.X.indices,
            indptr=self.X.indptr,
            label_indices=self.Y.indices,
            label_indptr=self.Y.indptr,
            n_labels=self.Y.shape[1],
        )

    def choose_setting(self, name: str, trials: int) -> tuple[int, dict[str, Any]]:
        """Return the trial with the best nDCG@5 on validation rows, and its setting."""
        system = SYSTEMS[name]
        settings = [system.start]
        settings += [system.start | draw_setting(system.space, name, trial) for trial in range(1, trials)]
        n_fit = self.n_train - self.n_train // 10
        figures = []
        for trial, params in enumerate(settings):
            evaluation, _ = self.run(name, params, (0, n_fit), (n_fit, self.n_train))
            figures.append(evaluation.means["ndcg@5"])
            print(f"{name} trial {trial}: nDCG@5 {figures[-1]:.4f} {params}", flush=True)
        best = int(np.argmax(figures))
        return best, settings[best]

    def run(
        self, name: str, params: dict[str, Any], fit: tuple[int, int], judged: tuple[int, int]
    ) -> tuple[Evaluation, dict[str, Any]]:
        """Train on the rows of `fit`, and evaluate those of `judged`."""
        scores_file = self.folder / "scores.npy"
        job = {
            "task": "public",
            "data": str(self.folder / "rows.npz"),
            "mode": "final",
            "params": params,
            "epochs": None,
            "fit_rows": [*fit, 1],
            "judge_rows": [*judged, 1],
            "threads": self.threads,
            "seed": 0,
            "scores": str(scores_file),
        }
        environment = SYSTEMS[name].environment
        answer = ask(environment, environments.interpreter(environment), job, TIMEOUT)
        if answer.status != "ok" or answer.best is None:
            raise SystemExit(f"{name} {params}: {answer.status}, {answer.message}")
        Y = self.Y[judged[0] : judged[1]]
        evaluation = evaluate_scores([(0, np.load(scores_file))], Y, ks=KS, propensities=self.propensities)
        return evaluation, _summarize(answer.best, answer.notes)


def _summarize(figures: dict[str, Any], notes: dict[str, Any]) -> dict[str, Any]:
    """Return times and sizes of a run."""
    summary = {"train_s": figures["spent_s"], "cpu_s": figures["spent_cpu_s"], "peak_mb": figures["peak_rss"] / 1e6}
    return summary | {"model_mb": notes["model_bytes"] / 1e6, "notes": notes}


def _read_table(file: Path) -> FeatureTable:
    table = open_source(file)
    if not isinstance(table, FeatureTable):
        raise SystemExit(f"{file} holds no rows of features")
    return table


def measure_set(name: str, study: Study, trials: int) -> dict[str, Any]:
    """Train and evaluate all systems; schema 1."""
    evaluations: dict[str, Evaluation] = {}
    systems: dict[str, dict[str, Any]] = {}
    train, test = (0, study.n_train), (study.n_train, study.n)
    for system, facts in SYSTEMS.items():
        environments.ensure(facts.environment)
        settings = {f"{system}, {facts.title}": (0, facts.start)}
        if facts.space:
            settings[f"{system}, best setting"] = study.choose_setting(system, trials)
        for title, (trial, params) in settings.items():
            evaluations[title], costs = study.run(system, params, train, test)
            systems[title] = {"trial": trial, "params": params, "metrics": evaluations[title].means, **costs}
            print(title, {key: round(value, 4) for key, value in evaluations[title].means.items()}, flush=True)
    for title, evaluation in evaluations.items():
        gap = paired_bootstrap(evaluation.per_row["ndcg@5"], evaluations[PEER].per_row["ndcg@5"])
        systems[title]["ndcg@5_minus_peer"] = gap._asdict()
    sizes = {"train": study.n_train, "test": study.n - study.n_train, "labels": study.Y.shape[1]}
    return {
        "schema": 1,
        "set": name,
        **sizes,
        "features": study.X.shape[1],
        "trials": trials,
        "machine": machine(study.threads),
        "systems": systems,
        "published": SETS[name].published,
    }


def format_markdown(result: dict[str, Any]) -> str:
    """Format the table of a set for the documentation."""
    metrics = [f"{kind}@{k}" for kind in ("p", "ndcg", "psp") for k in KS if (kind, k) != ("ndcg", 1)]  # p@1 again
    headers = [name.replace("p@", "P@").replace("psP", "PSP").replace("ndcg", "nDCG") for name in metrics]
    headers = ["system", *headers, "nDCG@5 minus Omikuji's best", "train s", "CPU s", "peak MB", "model MB"]
    lines = [f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}"]
    for title, system in result["systems"].items():
        gap = system["ndcg@5_minus_peer"]
        interval = f"{100 * gap['mean']:+.1f} ({100 * gap['low']:+.1f} to {100 * gap['high']:+.1f})"
        cells = [title, *(f"{100 * system['metrics'][metric]:.1f}" for metric in metrics)]
        cells += ["" if title == PEER else interval]
        cells += [f"{system[fact]:.1f}" for fact in ("train_s", "cpu_s", "peak_mb", "model_mb")]
        lines.append(f"| {' | '.join(cells)} |")
    for title, figures in result["published"].items():
        cells = ["" if value is None else f"{value:.1f}" for value in figures]
        cells += [""] * (len(headers) - 4)
        lines.append(f"| {title}, published | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=20, help="settings tried per system (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        study = Study(options.set, options.data, Path(folder), options.threads)
        result = measure_set(options.set, study, options.trials)
    stem = options.results / f"public-{options.set}"
    stem.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    stem.with_suffix(".md").write_text(format_markdown(result))
    print(format_markdown(result))


if __name__ == "__main__":
    main()
