"""Seeded tasks with the statistics of the first paper's ImageNet experiment, for speed and quality.

Weston et al. 2010, Table 1 and section 7.1: images as histograms over a dictionary of 10,000
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
`parse_task_size("imagenet:500000")` gives another number of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import replace_file

N_WORDS = 10_000
LATENT = 50
NOISE = 1.7
BACKGROUND = 0.5
WORD_ZIPF, LABEL_ZIPF = 1.0, 0.7
TOKENS = 292
SEED = 2011_07_16
_BLOCK = 1000
_MAX_ROWS = 10_000_000


@dataclass(frozen=True)
class ImageTaskSize:
    """The size of a task."""

    train: int
    test: int
    labels: int
    words: int = N_WORDS


SIZES = {
    "tiny": ImageTaskSize(3_000, 500, 100),
    "S": ImageTaskSize(50_000, 5_000, 1_000),
    "M": ImageTaskSize(200_000, 10_000, 16_000),
    "imagenet": ImageTaskSize(160_000, 10_000, 15_952),
    "web": ImageTaskSize(330_000, 10_000, 109_444),
}


def parse_task_size(name: str) -> ImageTaskSize:
    """Return the size of a task by its name, or by its name and another number of training rows.

    Raises
    ------
    InputError
        There is no such task, or the rows are fewer than the labels.

    Examples
    --------
    >>> parse_task_size("S").train, parse_task_size("imagenet:50000").train
    (50000, 50000)
    """
    size_name, _, rows = name.partition(":")
    if size_name not in SIZES:
        raise InputError(f"there is no visual-word task {size_name!r}; choose from {', '.join(SIZES)}")
    size = SIZES[size_name]
    if not rows:
        return size
    if not rows.isdecimal() or not size.labels <= int(rows) <= _MAX_ROWS:
        raise InputError(
            f"{rows!r} is not a number of training rows from {size.labels} (one for each label) to {_MAX_ROWS}"
        )
    return replace(size, train=int(rows))


class ImageTask(NamedTuple):
    """Rows of word counts and their labels: `n_train` rows for training, then those for the test."""

    X: Any  # csr_matrix (n, n_words) float32, counts
    y: Any  # (n,) int32
    n_train: int
    n_labels: int

    @property
    def n_fit(self) -> int:
        """Number of training rows before the validation rows, which are the last tenth."""
        return int(0.9 * self.n_train)


class ImageTaskTruth(NamedTuple):
    """The truth that generated a task."""

    labels: Any  # (n_labels, LATENT) float32
    words: Any  # (n_words, LATENT) float32
    bias: Any  # (n_words,) float32, log frequency of words
    popularity: Any  # (n_labels,) float64, probability of labels
    parents: Any  # (n_labels,) int64: labels with one parent are siblings


def generate_with_truth(name: str) -> tuple[ImageTask, ImageTaskTruth]:
    """Generate the task with its truth; names are those of `parse_task_size`."""
    return generate_task(parse_task_size(name))


def generate_task(size: ImageTaskSize) -> tuple[ImageTask, ImageTaskTruth]:
    """Generate a task of this size, with its truth."""
    import scipy.sparse as sp

    rng = np.random.default_rng(SEED + size.labels)
    truth = _generate_truth(size, rng)
    y = _draw_labels(size, truth.popularity, rng)
    lengths, words, counts = [], [], []
    for start in range(0, len(y), _BLOCK):
        for word_ids, word_counts in _draw_images(truth, y[start : start + _BLOCK], rng):
            lengths.append(len(word_ids))
            words.append(word_ids.astype(np.int32))
            counts.append(word_counts.astype(np.float32))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_matrix((np.concatenate(counts), np.concatenate(words), indptr), shape=(len(y), size.words))
    return ImageTask(X, y, size.train, size.labels), truth


def _generate_truth(size: ImageTaskSize, rng: np.random.Generator) -> ImageTaskTruth:
    n_labels, n_words = size.labels, size.words
    points = _draw_normal(rng, max(4, n_labels // 20))
    parents = rng.integers(0, len(points), n_labels)
    labels = 0.7 * points[parents] + 0.7 * _draw_normal(rng, n_labels)
    words = (rng.standard_normal((n_words, LATENT)) / np.sqrt(LATENT)).astype(np.float32)
    falling = (-WORD_ZIPF * np.log(np.arange(n_words) + 50.0)).astype(np.float32)
    popularity = (np.arange(n_labels) + 10.0) ** -LABEL_ZIPF
    return ImageTaskTruth(labels, words, falling[rng.permutation(n_words)], popularity / popularity.sum(), parents)


def _draw_normal(rng: np.random.Generator, n: int) -> Any:
    return rng.standard_normal((n, LATENT)).astype(np.float32)


def _draw_labels(size: ImageTaskSize, popularity: Any, rng: np.random.Generator) -> Any:
    """Return shuffled training labels, with every label among them; then test labels."""
    frequent_labels = rng.choice(size.labels, size.train - size.labels, p=popularity)
    train = np.concatenate([np.arange(size.labels), frequent_labels])
    rng.shuffle(train)
    test = rng.choice(size.labels, size.test, p=popularity)
    return np.concatenate([train, test]).astype(np.int32)


def _draw_images(truth: ImageTaskTruth, y: Any, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Yield the words of each image with their counts."""
    chances = _compute_word_chances(truth, truth.labels[y] + NOISE * _draw_normal(rng, len(y)))
    cumulative_chances = np.cumsum(chances, axis=1, dtype=np.float64)
    tokens = np.clip(rng.lognormal(np.log(TOKENS), 0.25, len(y)), 60, 1200).astype(int)
    for cumulative, n_tokens in zip(cumulative_chances, tokens, strict=True):
        word_ids = np.searchsorted(cumulative, rng.random(n_tokens) * cumulative[-1])
        yield np.unique(word_ids, return_counts=True)


def _compute_word_chances(truth: ImageTaskTruth, points: Any) -> Any:
    """Return (n, n_words) float32: probabilities of the next word of images at these points."""
    chances = points @ truth.words.T + truth.bias
    chances -= chances.max(1, keepdims=True)
    np.exp(chances, out=chances)
    chances /= chances.sum(1, keepdims=True)
    background = np.exp(truth.bias)
    background /= background.sum()
    chances *= 1 - BACKGROUND
    chances += BACKGROUND * background
    return chances


def compute_noise_free_figures(task: ImageTask, truth: ImageTaskTruth, rows: int = 2000) -> dict[str, float]:
    """Return test p@1, hit@10 and MRR of the generator's own log-likelihood under noise-free labels."""
    first = slice(task.n_train, task.n_train + rows)
    X, y = task.X[first], task.y[first]
    scores = np.empty((len(y), task.n_labels), np.float32)
    for start in range(0, task.n_labels, _BLOCK):
        log_chances = np.log(_compute_word_chances(truth, truth.labels[start : start + _BLOCK]))
        scores[:, start : start + _BLOCK] = X @ log_chances.T
    scores += np.log(truth.popularity).astype(np.float32)
    ranks = 1 + (scores > scores[np.arange(len(y)), y][:, None]).sum(1)
    figures = {"p@1": ranks == 1, "hit@10": ranks <= 10, "MRR": 1 / ranks}
    return {f"noise_free_{name}": round(float(np.mean(values)), 4) for name, values in figures.items()}


def compute_task_figures(task: ImageTask) -> dict[str, float]:
    """Return statistics of the task."""
    per_row, per_label = np.diff(task.X.indptr), np.bincount(task.y[: task.n_train], minlength=task.n_labels)
    return {
        "nonzeros_mean": round(float(per_row.mean()), 2),
        "nonzeros_std": round(float(per_row.std()), 2),
        "tokens_mean": round(float(task.X.sum() / len(task.y)), 2),
        "rows_per_label_min": int(per_label.min()),
        "rows_per_label_median": float(np.median(per_label)),
        "rows_per_label_max": int(per_label.max()),
    }


def build_truth(size: ImageTaskSize) -> ImageTaskTruth:
    """Return the truth of a task of this size, without its images."""
    return _generate_truth(size, np.random.default_rng(SEED + size.labels))


def save_task(task: ImageTask, file: Path) -> None:
    """Write a task, atomically."""
    X = task.X
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": task.y}
    with replace_file(file) as draft, draft.open("wb") as stream:
        np.savez(stream, n_train=task.n_train, n_labels=task.n_labels, n_words=X.shape[1], **arrays)


def read_task(file: Path) -> ImageTask:
    """Read a saved task."""
    import scipy.sparse as sp

    with np.load(file) as stored:
        parts = {key: stored[key] for key in stored.files}
    shape = (len(parts["indptr"]) - 1, int(parts.get("n_words", N_WORDS)))
    X = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    return ImageTask(X, parts["y"], int(parts["n_train"]), int(parts["n_labels"]))
