"""Spoken digits, many recordings and few, known speakers and new ones: `python -m benchmarks.digits FOLDER`.

FOLDER is the Free Spoken Digit Dataset. Known speakers: takes 0 to 4 of every digit and speaker are the test, its own
split; training has 45 other takes of each, or 5 or 2 of them, drawn by the seed. New speakers: each of the six is
left out wholly in turn, and all 500 recordings of him are the test. Words of sound are learned from the training
recordings alone (for new speakers once for each who is left out).

Every entrant chooses one number among three on a validation part of the training recordings (a fifth of every digit and
speaker, half of two; for new speakers all of one of the others), by the mean reciprocal rank, and is then trained on
all of them: C of the linear classifiers, the epochs of ours. All see the same rows, log(1 + count) at unit
length; "mfcc,sai" are the two rows side by side, each at unit length. "Features at .3" begin at .3 of the length of
labels (`init_scale`), and not as long as these.

Bars, p@1: a space above one-versus-rest by hinge loss, and not below logistic regression; one space of all tasks not
below a space for each, on the mean of the tasks; both features not below `mfcc`. "Not below" and "above" allow a
standard error of the difference: over seeds, or over the speakers left out.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack, load_npz, save_npz

from benchmarks.machine import describe_machine, machine
from wsabie.core.arrays import Csr
from wsabie.features.extractors.audio_words import MfccWords, SaiWords
from wsabie.io.datasets.spoken_digits import read_spoken_digits_attributes
from wsabie.io.records import Item, ItemList
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.storage.rejects import Rejects

FEATURES = ("mfcc", "sai", "mfcc,sai")
FEW = (2, 5, 45)
THREADS = 1
"""Rows are few; the figures do not depend on it."""
SHORT = {"V": 0.3 * Wsabie().dim ** -0.5}
TASKS = ("digit", "speaker")
KINDS = (*TASKS, "accent")
"""What is said of a recording; all speakers are men who speak English."""

LabelsByTask = dict[str, np.ndarray]
"""For each kind of name (digit, speaker, accent) the names of some recordings."""
Learner = Callable[[float, int], Any]
"""An unfitted model from the number that was chosen, and a seed."""
Scale = dict[str, float] | None
"""`init_scale`."""
Predict = Callable[[csr_matrix], dict[str, np.ndarray]]
"""For each task the names of rows, best first, (n, n_names)."""


class Part(NamedTuple):
    """Rows of recordings, and what is said of them."""

    X: csr_matrix
    labels: LabelsByTask

    def take(self, rows: np.ndarray) -> "Part":
        return Part(self.X[rows], {kind: names[rows] for kind, names in self.labels.items()})


class Task(NamedTuple):
    """Training part, its validation rows, and the test part."""

    train: Part
    valid: np.ndarray
    test: Part
    tasks: tuple[str, ...]
    seed: int


def fit_each_task(learner: Learner, part: Part, tasks: tuple[str, ...], value: float, seed: int) -> Predict:
    """A model of each task."""
    fitted = {name: learner(value, seed).fit(part.X, part.labels[name].tolist()) for name in tasks}
    return lambda X: {name: _rank_labels(model, X) for name, model in fitted.items()}


def _rank_labels(model: Any, X: csr_matrix) -> np.ndarray:
    if not hasattr(model, "vocabulary_"):  # scikit-learn's
        return np.asarray(model.classes_)[np.argsort(-model.decision_function(X), axis=1, kind="stable")]
    ids, _ = model.rank(X, k=len(model.vocabulary_))
    return np.array(list(model.vocabulary_))[ids]


def hinge(value: float, seed: int) -> Any:
    return OneVsRest(value, learner="hinge", scaling=None, seed=seed, threads=THREADS)


def logistic(value: float, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=value, max_iter=2000)


def wsabie(value: float, seed: int, scale: Scale = None) -> Any:
    return Wsabie(scaling=None, epochs=int(value), init_scale=scale, seed=seed, threads=THREADS)


def fit_one_space(part: Part, tasks: tuple[str, ...], value: float, seed: int, scale: Scale = None) -> Predict:
    """One space of recordings and all kinds of names."""
    ids = [str(i) for i in range(part.X.shape[0])]
    recordings = EntityKind("recording", part.X, ids, scaling=None)
    relations = [Relation(recordings, kind, list(zip(ids, part.labels[kind].tolist(), strict=True))) for kind in KINDS]
    space = Space(epochs=int(value), init_scale=scale, seed=seed, threads=THREADS).fit(relations)
    names = {name: np.array(space.entity_names(name)) for name in tasks}
    return lambda X: {
        name: labels[space.rank("recording", name, X, k=len(labels))[0]] for name, labels in names.items()
    }


class Entrant(NamedTuple):
    """A method, and what it may choose from; the first where all are as good."""

    title: str
    choices: tuple[float, ...]
    fit: Any


EPOCHS = (30, 10, 100)
ENTRANTS = (
    Entrant("one-versus-rest, hinge", (1, 0.1, 10), partial(fit_each_task, hinge)),
    Entrant("logistic regression", (10, 1, 100), partial(fit_each_task, logistic)),
    Entrant("Wsabie for each task", EPOCHS, partial(fit_each_task, wsabie)),
    Entrant("Wsabie, features at .3", EPOCHS, partial(fit_each_task, partial(wsabie, scale=SHORT))),
    Entrant("one space", EPOCHS, fit_one_space),
    Entrant("one space, features at .3", EPOCHS, partial(fit_one_space, scale=SHORT)),
)
HINGE, LOGISTIC, EACH, EACH_SHORT, ONE_SPACE, ONE_SHORT = (entrant.title for entrant in ENTRANTS)


def reciprocal_rank(names: np.ndarray, truth: np.ndarray) -> float:
    return float((1 / (1 + (names == truth[:, None]).argmax(axis=1))).mean())


def evaluate_entrant(entrant: Entrant, task: Task) -> dict[str, Any]:
    """Return the value that an entrant chose, and its p@1 of each task."""
    fit = np.setdiff1d(np.arange(task.train.X.shape[0]), task.valid)
    training, validation = task.train.take(fit), task.train.take(task.valid)
    values = []
    for value in entrant.choices if len(entrant.choices) > 1 else ():
        predictions = entrant.fit(training, task.tasks, value, task.seed)(validation.X)
        values.append(np.mean([reciprocal_rank(predictions[name], validation.labels[name]) for name in task.tasks]))
    best_value = entrant.choices[int(np.argmax(values)) if values else 0]
    predictions = entrant.fit(task.train, task.tasks, best_value, task.seed)(task.test.X)
    figures = {name: float((predictions[name][:, 0] == task.test.labels[name]).mean()) for name in task.tasks}
    return {"chosen": best_value, **figures}


class Digits:
    """The recordings, and what is said of them."""

    def __init__(self, folder: Path, keep: Path | None) -> None:
        related = read_spoken_digits_attributes(folder, rejects=Rejects())
        self.folder, self.keep = folder, keep
        self.ids = np.array(related.ids)
        self.test = np.array([related.splits[name] == "test" for name in related.ids])
        self.labels = {kind: np.array([dict(related.pairs[kind])[name] for name in related.ids]) for kind in KINDS}

    def cells(self) -> np.ndarray:
        """A number for each digit of each speaker."""
        return np.unique([f"{d} {s}" for d, s in zip(self.labels["digit"], self.labels["speaker"], strict=True)],
                         return_inverse=True)[1]  # fmt: skip

    def build_known_speaker_tasks(self, takes: int, seed: int) -> dict[str, Task]:
        """So many takes of every digit and speaker, and the published test; a task for each description."""
        rng, train, validation = np.random.default_rng([seed, takes]), list[int](), list[int]()
        cells = self.cells()
        for cell in np.unique(cells):
            sampled = rng.permutation(np.flatnonzero((cells == cell) & ~self.test))[:takes].tolist()
            train, validation = train + sampled, validation + sampled[: max(1, takes // 5)]
        parts = self.extract_parts(np.array(train), np.flatnonzero(self.test), f"known-{takes}-{seed}", seed)
        valid = np.flatnonzero(np.isin(train, validation))
        return {name: Task(part[0], valid, part[1], TASKS, seed) for name, part in parts.items()}

    def new(self, speaker: str, seed: int) -> dict[str, Task]:
        """One speaker left out; the seed says which of the others is the validation part."""
        is_left_out = self.labels["speaker"] == speaker
        train = np.flatnonzero(~is_left_out & ~self.test)
        parts = self.extract_parts(train, np.flatnonzero(is_left_out), f"new-{speaker}", seed)
        speakers = self.labels["speaker"][train]
        other_speakers = np.unique(speakers)
        valid = np.flatnonzero(speakers == other_speakers[seed % len(other_speakers)])
        return {name: Task(part[0], valid, part[1], ("digit",), seed) for name, part in parts.items()}

    def extract_parts(
        self, train: np.ndarray, test: np.ndarray, called: str, seed: int
    ) -> dict[str, tuple[Part, Part]]:
        """Rows of both sides by name of the feature, with words of the first."""
        rows_by_feature = {}
        for kind in (MfccWords, SaiWords):
            files = [self.keep / f"{called}-{kind.name}-{side}.npz" for side in ("train", "test")] if self.keep else []
            if files and all(file.is_file() for file in files):
                rows_by_feature[kind.name] = [load_npz(file) for file in files]
                continue
            words = kind(seed=seed).fit(self.items(train))
            rows_by_feature[kind.name] = [unit_logs(words.transform(self.items(rows)).X) for rows in (train, test)]
            for file, rows in zip(files, rows_by_feature[kind.name], strict=False):
                save_npz(file, rows)
        rows_by_feature["mfcc,sai"] = [
            hstack(pair).tocsr() / np.sqrt(2) for pair in zip(*rows_by_feature.values(), strict=True)
        ]
        labels = [{kind: names[rows] for kind, names in self.labels.items()} for rows in (train, test)]
        return {name: (Part(rows[0], labels[0]), Part(rows[1], labels[1])) for name, rows in rows_by_feature.items()}

    def items(self, rows: np.ndarray) -> ItemList:
        return ItemList(self.folder, [Item(name, self.folder / name, ()) for name in self.ids[rows]], "sounds")


def unit_logs(X: csr_matrix) -> csr_matrix:
    """Rows as a model scales counts."""
    rows = Csr(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float32))
    scaled = RowScaling.fit(rows, X.shape[1], "auto")(rows)
    return csr_matrix((scaled.data, X.indices, X.indptr), X.shape)


Runs = dict[str, dict[str, list[dict[str, Any]]]]
"""For each description and entrant the runs of a condition: seed, speaker left out, what was chosen, p@1 by task."""


def known_speakers(digits: Digits, takes: int, n_seeds: int) -> Runs:
    return gather_runs((seed, "", digits.build_known_speaker_tasks(takes, seed)) for seed in range(n_seeds))


def new_speakers(digits: Digits) -> Runs:
    speakers = map(str, np.unique(digits.labels["speaker"]))
    return gather_runs((seed, speaker, digits.new(speaker, seed)) for seed, speaker in enumerate(speakers))


def gather_runs(task_sets: Iterable[tuple[int, str, dict[str, Task]]]) -> Runs:
    """Every entrant on every task: its seed, the speaker left out, and a task for each description."""
    runs: Runs = {name: {entrant.title: [] for entrant in ENTRANTS} for name in FEATURES}
    for seed, speaker, tasks in task_sets:
        for name, task in tasks.items():
            for entrant in ENTRANTS:
                runs[name][entrant.title].append({"seed": seed, "left_out": speaker, **evaluate_entrant(entrant, task)})
    return runs


def figures(runs: list[dict[str, Any]], task: str) -> np.ndarray:
    """p@1 of each run; "mean" is that of both tasks."""
    return np.array([np.mean([run[name] for name in (TASKS if task == "mean" else (task,))]) for run in runs])


def error(values: np.ndarray) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def against(ours: np.ndarray, theirs: np.ndarray) -> str:
    """The difference, its standard error, and in a word which side of it."""
    gap = ours - theirs
    mean, se = float(gap.mean()), error(gap)
    word = "level" if abs(mean) <= se + 1e-9 else "above" if mean > 0 else "BELOW"
    return f"{word} ({mean:+.4f} se {se:.4f})"


def show(condition: str, runs_by_feature: Runs, tasks: tuple[str, ...]) -> dict[str, str]:
    """Print the table of a condition and what came of the bars, which are returned."""
    columns = [(name, task) for name in FEATURES for task in tasks]
    print(f"\n{condition}: p@1 (standard error)")
    print(" " * 25 + "".join(f"{name + ' ' + task:>18}" for name, task in columns))
    for entrant in ENTRANTS:
        cells = [figures(runs_by_feature[name][entrant.title], task) for name, task in columns]
        print(f" {entrant.title:<24}" + "".join(f"{cell.mean():>11.3f} ({error(cell):.3f})" for cell in cells))
    verdicts = {}
    for name, task in columns:
        runs = runs_by_feature[name]
        for title in (EACH, EACH_SHORT, ONE_SPACE, ONE_SHORT):
            ours = figures(runs[title], task)
            for baseline in (HINGE, LOGISTIC):
                verdicts[f"{name}, {task}: {title} / {baseline}"] = against(ours, figures(runs[baseline], task))
        for pair in ((EACH_SHORT, EACH), (ONE_SHORT, ONE_SPACE)):
            verdicts[f"{name}, {task}: {pair[0]} / {pair[1]}"] = against(
                *(figures(runs[system], task) for system in pair)
            )
    for name in FEATURES:
        task = "mean" if len(tasks) > 1 else tasks[0]
        for pair in ((ONE_SPACE, EACH), (ONE_SHORT, EACH_SHORT)):
            pair_figures = (figures(runs_by_feature[name][title], task) for title in pair)
            verdicts[f"{name}, {task}: {pair[0]} / {pair[1]}"] = against(*pair_figures)
    for task in tasks:
        pair_figures = (figures(runs_by_feature[name][EACH], task) for name in ("mfcc,sai", "mfcc"))
        verdicts[f"{EACH}, {task}: mfcc,sai / mfcc"] = against(*pair_figures)
    for comparison, word in verdicts.items():
        print(f"   {comparison}: {word}")
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", help="one condition: 2, 5 or 45 takes of known speakers, or new")
    parser.add_argument("--keep", type=Path, help="keep rows in this folder, and take them from there")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    print(describe_machine())
    digits = Digits(options.folder, options.keep)
    result: dict[str, Any] = {"schema": 1, "machine": machine(THREADS), "conditions": {}}
    for condition in [options.only] if options.only else [*map(str, FEW), "new"]:
        started = time.perf_counter()
        if condition == "new":
            title, tasks, runs = "new speakers", ("digit",), new_speakers(digits)
        else:
            title, tasks = f"known speakers, {condition} takes", TASKS
            runs = known_speakers(digits, int(condition), options.seeds)
        verdicts = show(title, runs, tasks)
        print(f"   {time.perf_counter() - started:,.0f} s", flush=True)
        result["conditions"][title] = {"runs": runs, "verdicts": verdicts}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
