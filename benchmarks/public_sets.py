"""Public multi-label sets: our estimators, Omikuji, and the Extreme Classification repository's published figures.

`python -m benchmarks.public_sets SET --data FOLDER`; `SETS` lists the sets and their files. Omikuji runs in an
environment of its own (`benchmarks/peers/README.md`). Systems that have a space get the same number of trials;
validation is the last tenth of the training rows, shuffled by seed 0, and nDCG@10 chooses. The first setting (defaults;
of Omikuji Bonsai) and the chosen one are then trained on all training rows with each seed, and rank the test rows.
Differences are those of the mean of a row over seeds, with 95 % intervals of the paired bootstrap over test rows.
"""

import argparse
import gzip
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from benchmarks.machine import machine
from benchmarks.peers import environments
from benchmarks.peers.protocol import ask
from benchmarks.peers.spaces import SPACES, STARTS, Space, draw_setting, log_integer, log_uniform, one_of, uniform
from wsabie.core.arrays import Float64, Matrix
from wsabie.core.label_lists import count_label_rows
from wsabie.evaluation.bootstrap import paired_bootstrap
from wsabie.evaluation.metrics import compute_propensities
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable

RESULTS = Path(__file__).resolve().parent / "results"
OURS = ("AutoRanker, defaults", "Wsabie, defaults")
KS = (1, 3, 5, 10)
METRICS = ("p@1", "ndcg@10", "MAP")
"""Metrics whose differences have an interval."""
TIMEOUT = 900.0


def _read_table(file: Path) -> tuple[Matrix, Matrix]:
    table = open_source(file)
    if not isinstance(table, FeatureTable):
        raise SystemExit(f"{file} holds no rows of features")
    return table.X.tocsr(), csr_matrix(table.Y > 0)


def _read_documents(file: Path) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Read texts and their subjects; a tenth is the test, and words are those of two training documents or more."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import MultiLabelBinarizer

    with gzip.open(file, "rt") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines]
    texts, subjects = zip(*((text, names.split()) for text, names in pairs if names.split()), strict=True)
    Y = csr_matrix(MultiLabelBinarizer(sparse_output=True).fit_transform(subjects))
    order = np.random.default_rng(0).permutation(len(texts))
    test, train = np.split(order, [len(texts) // 10])
    words = CountVectorizer(min_df=2, max_df=0.5).fit([texts[row] for row in train])
    train_X, test_X = (words.transform([texts[row] for row in rows]).astype(np.float32) for rows in (train, test))
    return train_X, Y[train], test_X, Y[test]


class PublicSet(NamedTuple):
    """Files of the training and test rows, or of documents, and published P@1, P@3, P@5 in percent (None: unknown)."""

    files: tuple[str, ...]
    published: dict[str, tuple[float, float | None, float | None]]

    def read(self, data: Path) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return rows and labels for training, and those of the test."""
        if len(self.files) == 1:
            return _read_documents(data / self.files[0])
        train, test = (_read_table(data / file) for file in self.files)
        return *train, *test


SETS = {
    "corel5k": PublicSet(("Corel5k-train-sparse.arff", "Corel5k-test-sparse.arff"), {}),
    "subjects_gnd": PublicSet(("tib-core-dev-en.tsv.gz",), {}),
    "subjects_tib": PublicSet(("dev-en.tsv.gz",), {}),
    "bibtex": PublicSet(
        ("bibtex-train.arff.gz", "bibtex-test.arff.gz"),
        {
            "SLEEC": (65.08, 39.64, 28.87),
            "Parabel": (64.53, None, None),
            "FastXML": (63.42, None, None),
            "1-vs-All": (62.62, 39.09, 28.79),
            "WSABIE": (54.78, 32.39, 23.98),
        },
    ),
}


class System(NamedTuple):
    """Environment and adapter, the setting to start with, the space of the others (empty: no trials), its title.

    A system that draws nothing has one run. One for few labels, or for many, is left out of the other sets.
    """

    environment: str
    start: dict[str, Any]
    space: Space
    title: str = "defaults"
    is_random: bool = True
    is_for: Callable[[int], bool] = lambda n_labels: True


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
    "Wsabie300": System(
        "estimators", {"estimator": "Wsabie", "dim": 300}, {}, "300 dimensions", is_for=lambda n_labels: n_labels > 1000
    ),
    "Fusion": System("estimators", {"estimator": "Fusion"}, {}, is_for=lambda n_labels: n_labels <= 1000),
    "AutoRanker": System("estimators", {"estimator": "AutoRanker"}, {}),
    "NearestMean": System(
        "estimators", {"estimator": "NearestMean"}, {"scaling": one_of("tfidf", "auto", None)}, is_random=False
    ),
    "Ridge": System("estimators", {"estimator": "Ridge"}, {"penalty": log_uniform(0.5, 30.0)}, is_random=False),
    "KernelRidge": System(
        "estimators",
        {"estimator": "KernelRidge"},
        {"penalty": log_uniform(0.1, 10.0), "gamma": log_uniform(0.2, 3.0)},
        is_random=False,
    ),
    "NearestNeighbours": System(
        "estimators", {"estimator": "NearestNeighbours", "k": 50}, {"k": log_integer(5, 200)}, "k=50", is_random=False
    ),
    "OneVsRest": System(
        "estimators",
        {"estimator": "OneVsRest"},
        {"C": log_uniform(0.3, 30.0)},
        is_random=False,
        is_for=lambda n_labels: n_labels <= 1000,
    ),
    "Omikuji": System("omikuji", STARTS["omikuji"], SPACES["omikuji"], "Bonsai"),
}


class RunError(Exception):
    """A system that failed or took too long."""


class Study:
    """Runs of a set, in the files of a temporary folder."""

    def __init__(self, name: str, data: Path, folder: Path, threads: int) -> None:
        train_X, train_Y, test_X, test_Y = SETS[name].read(data)
        self.n_train, self.n = train_X.shape[0], train_X.shape[0] + test_X.shape[0]
        order = np.random.default_rng(0).permutation(self.n_train)
        self.X, self.Y = vstack([train_X[order], test_X]).tocsr(), vstack([train_Y[order], test_Y]).tocsr()
        self.propensities = compute_propensities(count_label_rows(train_Y), self.n_train)
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
        """Return the trial with the best nDCG@10 on validation rows, and its setting."""
        system = SYSTEMS[name]
        settings = [system.start]
        settings += [system.start | draw_setting(system.space, name, trial) for trial in range(1, trials)]
        n_fit = self.n_train - self.n_train // 10
        figures = []
        for trial, params in enumerate(settings):
            try:
                evaluation, _ = self.run(name, params, (0, n_fit), (n_fit, self.n_train))
            except RunError as error:  # Omikuji panics at some settings
                print(error, flush=True)
                figures.append(-1.0)
                continue
            figures.append(evaluation.means["ndcg@10"])
            print(f"{name} trial {trial}: nDCG@10 {figures[-1]:.4f} {params}", flush=True)
        best = int(np.argmax(figures))
        return best, settings[best]

    def run(
        self, name: str, params: dict[str, Any], fit: tuple[int, int], judged: tuple[int, int], seed: int = 0
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
            "seed": seed,
            "scores": str(scores_file),
        }
        environment = SYSTEMS[name].environment
        answer = ask(environment, environments.interpreter(environment), job, TIMEOUT)
        if answer.status != "ok" or answer.best is None:
            raise RunError(f"{name} {params}: {answer.status}, {answer.message[-200:]}")
        Y = self.Y[judged[0] : judged[1]]
        evaluation = evaluate_scores([(0, np.load(scores_file))], Y, ks=KS, propensities=self.propensities)
        return evaluation, _summarize(answer.best, answer.notes)


COSTS = ("train_s", "cpu_s", "peak_mb", "model_mb")


def _summarize(figures: dict[str, Any], notes: dict[str, Any]) -> dict[str, Any]:
    """Return times and sizes of a run."""
    summary = {"train_s": figures["spent_s"], "cpu_s": figures["spent_cpu_s"], "peak_mb": figures["peak_rss"] / 1e6}
    return summary | {"model_mb": notes["model_bytes"] / 1e6, "notes": notes}


def measure_set(
    name: str, study: Study, trials: int, seeds: int, names: Sequence[str] = tuple(SYSTEMS)
) -> dict[str, Any]:
    """Train and evaluate systems; schema 2."""
    figures: dict[str, dict[str, Float64]] = {}
    systems: dict[str, dict[str, Any]] = {}
    train, test = (0, study.n_train), (study.n_train, study.n)
    for system, facts in SYSTEMS.items():
        if system not in names or not facts.is_for(study.Y.shape[1]):
            continue
        environments.ensure(facts.environment)
        settings = {f"{facts.start.get('estimator', system)}, {facts.title}": (0, facts.start)}
        if facts.space and trials > 1:
            settings[f"{system}, best setting"] = study.choose_setting(system, trials)
        for title, (trial, params) in settings.items():
            try:
                runs = [study.run(system, params, train, test, seed) for seed in range(seeds if facts.is_random else 1)]
            except RunError as error:
                print(error, flush=True)
                continue
            evaluations, costs = zip(*runs, strict=True)
            figures[title] = {
                metric: np.mean([evaluation.per_row[metric] for evaluation in evaluations], axis=0)
                for metric in METRICS
            }
            metrics = {key: np.array([evaluation.means[key] for evaluation in evaluations]) for key in runs[0][0].means}
            systems[title] = {
                "trial": trial,
                "params": params,
                "runs": len(runs),
                "kinds": [cost["notes"].get("kind", system) for cost in costs],
                "metrics": {key: float(values.mean()) for key, values in metrics.items()},
                "deviations": {key: float(values.std()) for key, values in metrics.items()},
                **{key: float(np.median([cost[key] for cost in costs])) for key in COSTS},
            }
            print(title, {key: round(value, 4) for key, value in systems[title]["metrics"].items()}, flush=True)
    for ours in [title for title in OURS if title in systems]:
        for title in systems.keys() - {ours}:
            systems[title][f"{ours} minus it"] = {
                metric: paired_bootstrap(figures[ours][metric], figures[title][metric])._asdict() for metric in METRICS
            }
    sizes = {"train": study.n_train, "test": study.n - study.n_train, "labels": study.Y.shape[1]}
    return {
        "schema": 2,
        "set": name,
        **sizes,
        "features": study.X.shape[1],
        "trials": trials,
        "seeds": seeds,
        "commit": _find_commit(),
        "machine": machine(study.threads),
        "systems": systems,
        "published": SETS[name].published,
    }


def _find_commit() -> str:
    root = Path(__file__).resolve().parents[1]
    command = ["git", "log", "-1", "--format=%h", "--", "src/wsabie"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def format_markdown(result: dict[str, Any]) -> str:
    """Format the table of a set for the documentation."""
    metrics = [*(f"{name}@{k}" for name in ("p", "psp", "ndcg") for k in (1, 3, 5)), "ndcg@10", "MAP"]
    metrics.remove("ndcg@1")  # P@1
    headers = [name.replace("p@", "P@").replace("psP", "PSP").replace("ndcg", "nDCG") for name in metrics]
    headers = ["system", *headers, *(f"{ours.split(',')[0]} minus it" for ours in OURS)]
    headers += ["CPU s", "peak MB", "model MB"]
    lines = [f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}"]
    for title, system in result["systems"].items():
        cells = [title, *(f"{100 * system['metrics'][metric]:.1f}" for metric in metrics)]
        cells += [_format_gap(system.get(f"{ours} minus it")) for ours in OURS]
        cells += [f"{system[fact]:.1f}" for fact in ("cpu_s", "peak_mb", "model_mb")]
        lines.append(f"| {' | '.join(cells)} |")
    for title, figures in result["published"].items():
        cells = ["" if value is None else f"{value:.1f}" for value in figures]
        cells += [""] * (len(headers) - 4)
        lines.append(f"| {title}, published | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _format_gap(differences: dict[str, dict[str, float]] | None) -> str:
    """Format a difference in nDCG@10 with its interval, in percent."""
    if differences is None:
        return ""
    mean, low, high = (100 * differences["ndcg@10"][key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=20, help="settings tried per system (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of a chosen setting (default: %(default)s)")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="(default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        study = Study(options.set, options.data, Path(folder), options.threads)
        result = measure_set(options.set, study, options.trials, options.seeds, options.systems)
    stem = options.results / f"public-{options.set}"
    stem.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    stem.with_suffix(".md").write_text(format_markdown(result))
    print(format_markdown(result))


if __name__ == "__main__":
    main()
