"""Seeded tasks with the statistics of the first paper's ImageNet experiment, to measure speed and quality on.

Weston, Bengio and Usunier (2010), Table 1 and section 7.1: pictures as histograms over a dictionary of 10,000
visual words, 245 of them non-zero on average, one true label out of 15,952. The pictures are not public; the
tasks here have the same shape and a known generator, so that the best possible figure is known too:

- A label is a point of R^50 near one of `labels / 20` parents, so that labels have siblings.
- A picture is its label's point plus noise (`NOISE`), and draws about 292 words (log-normal). Half of these
  come from a background that says nothing, half from a softmax over words, which are points of R^50 with a
  Zipf bias.
- Label frequencies follow a Zipf law; each label has at least one training picture.

| task | training rows | test rows | labels |
|------|---------------|-----------|--------|
| tiny |         3,000 |       500 |    100 |
| S    |        50,000 |     5,000 |  1,000 |
| M    |       200,000 |    10,000 | 16,000 |

`python -m benchmarks.visterm_task S` writes the task to `benchmarks/.cache/` (S takes about 20 s, M a few
minutes) and prints its figures as JSON, with those of a scorer that knows the noise-free generator.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

CACHE = Path(__file__).resolve().parent / ".cache"
N_WORDS = 10_000
LATENT = 50
NOISE = 1.7
BACKGROUND = 0.5
WORD_ZIPF, LABEL_ZIPF = 1.0, 0.7
TOKENS = 292
SEED = 2011_07_16
_BLOCK = 1000


@dataclass(frozen=True)
class Size:
    """How large a task is."""

    train: int
    test: int
    labels: int


SIZES = {"tiny": Size(3_000, 500, 100), "S": Size(50_000, 5_000, 1_000), "M": Size(200_000, 10_000, 16_000)}


class Task(NamedTuple):
    """Rows of word counts and their labels: the first `n_train` rows for training, the rest for the test."""

    X: Any  # csr_matrix (n, N_WORDS) float32, counts
    y: Any  # (n,) int32
    n_train: int
    n_labels: int

    @property
    def n_fit(self) -> int:
        """Training rows before the validation rows, which are the last tenth."""
        return int(0.9 * self.n_train)


class World(NamedTuple):
    """The truth behind a task."""

    labels: Any  # (n_labels, LATENT) float32
    words: Any  # (N_WORDS, LATENT) float32
    bias: Any  # (N_WORDS,) float32, log frequency of words
    popularity: Any  # (n_labels,) float64, probability of labels


def load(name: str, cache: Path = CACHE) -> Task:
    """The task of that name, from `cache`, where it is put when it is not there yet."""
    file = cache / f"{name}.npz"
    if not file.exists():
        _save(generate(name)[0], file)
    with np.load(file) as stored:
        parts = {key: stored[key] for key in stored.files}
    shape = (len(parts["indptr"]) - 1, N_WORDS)
    X = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    return Task(X, parts["y"], int(parts["n_train"]), int(parts["n_labels"]))


def generate(name: str) -> tuple[Task, World]:
    """Make the task anew, with the truth that made it."""
    size = SIZES[name]
    rng = np.random.default_rng(SEED + size.labels)
    world = _world(size.labels, rng)
    y = _true_labels(size, world.popularity, rng)
    lengths, words, counts = [], [], []
    for start in range(0, len(y), _BLOCK):
        for found, times in _pictures(world, y[start : start + _BLOCK], rng):
            lengths.append(len(found))
            words.append(found.astype(np.int32))
            counts.append(times.astype(np.float32))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_matrix((np.concatenate(counts), np.concatenate(words), indptr), shape=(len(y), N_WORDS))
    return Task(X, y, size.train, size.labels), world


def _world(n_labels: int, rng: np.random.Generator) -> World:
    parents = _normal(rng, max(4, n_labels // 20))
    own_parent = parents[rng.integers(0, len(parents), n_labels)]
    labels = 0.7 * own_parent + 0.7 * _normal(rng, n_labels)
    words = (rng.standard_normal((N_WORDS, LATENT)) / np.sqrt(LATENT)).astype(np.float32)
    falling = (-WORD_ZIPF * np.log(np.arange(N_WORDS) + 50.0)).astype(np.float32)
    popularity = (np.arange(n_labels) + 10.0) ** -LABEL_ZIPF
    return World(labels, words, falling[rng.permutation(N_WORDS)], popularity / popularity.sum())


def _normal(rng: np.random.Generator, n: int) -> Any:
    return rng.standard_normal((n, LATENT)).astype(np.float32)


def _true_labels(size: Size, popularity: Any, rng: np.random.Generator) -> Any:
    """Training labels, shuffled, every label among them; then test labels."""
    drawn = rng.choice(size.labels, size.train - size.labels, p=popularity)
    train = np.concatenate([np.arange(size.labels), drawn])
    rng.shuffle(train)
    test = rng.choice(size.labels, size.test, p=popularity)
    return np.concatenate([train, test]).astype(np.int32)


def _pictures(world: World, y: Any, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """The words of each picture with their counts."""
    chances = _word_chances(world, world.labels[y] + NOISE * _normal(rng, len(y)))
    ladders = np.cumsum(chances, axis=1, dtype=np.float64)
    tokens = np.clip(rng.lognormal(np.log(TOKENS), 0.25, len(y)), 60, 1200).astype(int)
    for ladder, n in zip(ladders, tokens, strict=True):
        drawn = np.searchsorted(ladder, rng.random(n) * ladder[-1])
        yield np.unique(drawn, return_counts=True)


def _word_chances(world: World, points: Any) -> Any:
    """(n, N_WORDS) float32: the chance that the next word of a picture at this point is each of them."""
    chances = points @ world.words.T + world.bias
    chances -= chances.max(1, keepdims=True)
    np.exp(chances, out=chances)
    chances /= chances.sum(1, keepdims=True)
    background = np.exp(world.bias)
    background /= background.sum()
    chances *= 1 - BACKGROUND
    chances += BACKGROUND * background
    return chances


def noise_free_figures(task: Task, world: World, rows: int = 2000) -> dict[str, float]:
    """Test p@1, hit@10 and MRR of the log-likelihood under noise-free labels, which knows the generator."""
    first = slice(task.n_train, task.n_train + rows)
    X, y = task.X[first], task.y[first]
    scores = np.empty((len(y), task.n_labels), np.float32)
    for start in range(0, task.n_labels, _BLOCK):
        log_chances = np.log(_word_chances(world, world.labels[start : start + _BLOCK]))
        scores[:, start : start + _BLOCK] = X @ log_chances.T
    scores += np.log(world.popularity).astype(np.float32)
    ranks = 1 + (scores > scores[np.arange(len(y)), y][:, None]).sum(1)
    figures = {"p@1": ranks == 1, "hit@10": ranks <= 10, "MRR": 1 / ranks}
    return {f"noise_free_{name}": round(float(np.mean(values)), 4) for name, values in figures.items()}


def figures(task: Task) -> dict[str, float]:
    """What the task looks like, in numbers."""
    per_row, per_label = np.diff(task.X.indptr), np.bincount(task.y[: task.n_train], minlength=task.n_labels)
    return {
        "nonzeros_mean": round(float(per_row.mean()), 2),
        "nonzeros_std": round(float(per_row.std()), 2),
        "tokens_mean": round(float(task.X.sum() / len(task.y)), 2),
        "rows_per_label_min": int(per_label.min()),
        "rows_per_label_median": float(np.median(per_label)),
        "rows_per_label_max": int(per_label.max()),
    }


def _save(task: Task, file: Path) -> None:
    """Write to a temporary name, then rename, so that a half-written task is never read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(suffix=".npz", dir=file.parent)
    os.close(handle)
    X = task.X
    try:
        np.savez(
            draft,
            data=X.data,
            indices=X.indices,
            indptr=X.indptr,
            y=task.y,
            n_train=task.n_train,
            n_labels=task.n_labels,
        )
        Path(draft).replace(file)
    finally:
        Path(draft).unlink(missing_ok=True)


def main() -> None:
    """Write tasks and print their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("task", nargs="+", choices=SIZES)
    parser.add_argument("--out", type=Path, default=CACHE, help="folder (default: %(default)s)")
    chosen = parser.parse_args()
    for name in chosen.task:
        task, world = generate(name)
        _save(task, chosen.out / f"{name}.npz")
        known = {"task": name, **asdict(SIZES[name]), **figures(task), **noise_free_figures(task, world)}
        sys.stdout.write(json.dumps(known) + "\n")


if __name__ == "__main__":
    main()
