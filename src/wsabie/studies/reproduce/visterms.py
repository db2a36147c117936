"""Seeded tasks with the statistics of the first paper's ImageNet experiment, to measure speed and quality on.

Weston, Bengio and Usunier (2010), Table 1 and section 7.1: pictures as histograms over a dictionary of 10,000
visual words, 245 of them non-zero on average, one true label out of 15,952. The pictures are not public; the
tasks here have the same shape and a known generator, so that the best possible figure is known too:

- A label is a point of R^50 near one of `labels / 20` parents, so that labels have siblings.
- A picture is its label's point plus noise (`NOISE`), and draws about 292 words (log-normal). Half of these
  come from a background that says nothing, half from a softmax over words, which are points of R^50 with a
  Zipf bias.
- Label frequencies follow a Zipf law; each label has at least one training picture.

| task     | training rows | test rows |  labels |
|----------|---------------|-----------|---------|
| tiny     |         3,000 |       500 |     100 |
| S        |        50,000 |     5,000 |   1,000 |
| M        |       200,000 |    10,000 |  16,000 |
| imagenet |       160,000 |    10,000 |  15,952 |
| web      |       330,000 |    10,000 | 109,444 |

The last two have the numbers of labels of the paper's collections, which have 2,518,604 and 9,861,293 training rows;
`sized("imagenet:500000")` asks for another number of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.errors import InputError
from wsabie.storage.atomic import replacing

N_WORDS = 10_000
LATENT = 50
NOISE = 1.7
BACKGROUND = 0.5
WORD_ZIPF, LABEL_ZIPF = 1.0, 0.7
TOKENS = 292
SEED = 2011_07_16
_BLOCK = 1000
_MOST_ROWS = 10_000_000


@dataclass(frozen=True)
class Size:
    """How large a task is."""

    train: int
    test: int
    labels: int
    words: int = N_WORDS


SIZES = {
    "tiny": Size(3_000, 500, 100),
    "S": Size(50_000, 5_000, 1_000),
    "M": Size(200_000, 10_000, 16_000),
    "imagenet": Size(160_000, 10_000, 15_952),
    "web": Size(330_000, 10_000, 109_444),
}


def sized(name: str) -> Size:
    """The size of a task by its name, or by its name and another number of training rows.

    Raises
    ------
    InputError
        There is no such task, or fewer rows than labels are asked for.

    Examples
    --------
    >>> sized("S").train, sized("imagenet:50000").train
    (50000, 50000)
    """
    known, _, rows = name.partition(":")
    if known not in SIZES:
        raise InputError(f"there is no visual-word task {known!r}; choose from {', '.join(SIZES)}")
    size = SIZES[known]
    if not rows:
        return size
    if not rows.isdecimal() or not size.labels <= int(rows) <= _MOST_ROWS:
        raise InputError(
            f"{rows!r} is no number of training rows from {size.labels} (one for each label) to {_MOST_ROWS}"
        )
    return replace(size, train=int(rows))


class Task(NamedTuple):
    """Rows of word counts and their labels: the first `n_train` rows for training, the rest for the test."""

    X: Any  # csr_matrix (n, n_words) float32, counts
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
    words: Any  # (n_words, LATENT) float32
    bias: Any  # (n_words,) float32, log frequency of words
    popularity: Any  # (n_labels,) float64, probability of labels
    parents: Any  # (n_labels,) int64: labels with one parent are siblings


def generate(name: str) -> tuple[Task, World]:
    """Make the task anew, with the truth that made it; names are those of `sized`."""
    return made(sized(name))


def made(size: Size) -> tuple[Task, World]:
    """A task of this size, with the truth that made it."""
    import scipy.sparse as sp

    rng = np.random.default_rng(SEED + size.labels)
    world = _world(size, rng)
    y = _true_labels(size, world.popularity, rng)
    lengths, words, counts = [], [], []
    for start in range(0, len(y), _BLOCK):
        for found, times in _pictures(world, y[start : start + _BLOCK], rng):
            lengths.append(len(found))
            words.append(found.astype(np.int32))
            counts.append(times.astype(np.float32))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_matrix((np.concatenate(counts), np.concatenate(words), indptr), shape=(len(y), size.words))
    return Task(X, y, size.train, size.labels), world


def _world(size: Size, rng: np.random.Generator) -> World:
    n_labels, n_words = size.labels, size.words
    points = _normal(rng, max(4, n_labels // 20))
    parents = rng.integers(0, len(points), n_labels)
    labels = 0.7 * points[parents] + 0.7 * _normal(rng, n_labels)
    words = (rng.standard_normal((n_words, LATENT)) / np.sqrt(LATENT)).astype(np.float32)
    falling = (-WORD_ZIPF * np.log(np.arange(n_words) + 50.0)).astype(np.float32)
    popularity = (np.arange(n_labels) + 10.0) ** -LABEL_ZIPF
    return World(labels, words, falling[rng.permutation(n_words)], popularity / popularity.sum(), parents)


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
    """(n, n_words) float32: the chance that the next word of a picture at this point is each of them."""
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


def world_of(size: Size) -> World:
    """The truth behind a task of this size, without its pictures."""
    return _world(size, np.random.default_rng(SEED + size.labels))


def save(task: Task, file: Path) -> None:
    """Write a task, atomically."""
    X = task.X
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": task.y}
    with replacing(file) as draft, draft.open("wb") as stream:
        np.savez(stream, n_train=task.n_train, n_labels=task.n_labels, n_words=X.shape[1], **arrays)


def read(file: Path) -> Task:
    """A saved task."""
    import scipy.sparse as sp

    with np.load(file) as stored:
        parts = {key: stored[key] for key in stored.files}
    shape = (len(parts["indptr"]) - 1, int(parts.get("n_words", N_WORDS)))
    X = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    return Task(X, parts["y"], int(parts["n_train"]), int(parts["n_labels"]))
