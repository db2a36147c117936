"""Codebook of visual words: k-means centres of descriptors, assigned by one BLAS product."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wsabie.core.arrays import Float32, Int32, Int64
from wsabie.core.errors import require
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.core.machine import count_available_cores
from wsabie.core.validation import build_incidence

_TILE = 1 << 22  # scores held at once (16 MB): more would leave the processor's cache
_TILES_PER_TASK = 8  # tiles of one task
_TOLERANCE = 1e-3  # k-means stops when a pass lowers the error by less than this share


@dataclass(frozen=True)
class Codebook:
    """Codebook of visual words.

    Attributes
    ----------
    centres : (n_words, n_bins) float32
    """

    centres: Float32

    def __len__(self) -> int:
        return len(self.centres)

    @cached_property
    def _product(self) -> Float32:
        """Matrix (n_bins + 1, n_words) of x.c - |c|^2 / 2, largest for the nearest centre c."""
        centres = np.asarray(self.centres, np.float32)
        half = np.einsum("td,td->t", centres, centres) / 2
        return np.ascontiguousarray(np.vstack([centres.T, -half]), np.float32)

    def assign(self, blocks: Float32) -> Int32:
        """Return the word of each block, ties to the lower one.

        Parameters
        ----------
        blocks : (n, n_bins) float32

        Returns
        -------
        ndarray, (n,), int32

        Examples
        --------
        >>> Codebook(np.eye(3, dtype=np.float32)).assign(np.array([[0, 0.9, 0.1]], np.float32))
        array([1], dtype=int32)
        """
        return self._assign_with_scores(blocks)[0]

    @property
    def _tile_size(self) -> int:
        """Number of blocks in a tile."""
        return max(1, _TILE // len(self))

    def _assign_with_scores(self, blocks: Float32) -> tuple[Int32, Float32]:
        """Return (word, x.c - |c|^2 / 2) of each block."""
        size = self._tile_size
        scores = np.empty((min(size, len(blocks)), len(self)), np.float32)
        words, best = np.empty(len(blocks), np.int32), np.empty(len(blocks), np.float32)
        for start in range(0, len(blocks), size):
            part = blocks[start : start + size]
            tile = scores[: len(part)]
            np.dot(np.column_stack([part, np.ones(len(part), np.float32)]), self._product, out=tile)
            nearest = tile.argmax(axis=1)
            words[start : start + size] = nearest
            best[start : start + size] = tile[np.arange(len(part)), nearest]
        return words, best


def suggest_codebook_size(n_distinct: int) -> int:
    """Return a tenth of the distinct blocks of a sample, at most 10,000, as the number of words.

    Examples
    --------
    >>> suggest_codebook_size(2_345), suggest_codebook_size(300_000)
    (234, 10000)
    """
    return max(1, min(10_000, n_distinct // 10))


def learn_codebook(
    blocks: Float32,
    n_words: int | None,
    *,
    passes: int = 5,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Codebook:
    """Learn a codebook by k-means (Lloyd) over a sample of blocks.

    Equal blocks count once, so that white paper or sky does not take many words. The first centres are distinct blocks
    drawn at random. The result depends on the sample and the seed alone: the tiles of a pass are always the same, each
    is multiplied by one thread, and their results are added in order.

    Parameters
    ----------
    blocks : (n, n_bins) float32
    n_words : int or None
        None: `suggest_codebook_size` of the distinct blocks.
    passes : int
        Passes over the sample at most; it stops when a pass lowers the error by less than 0.1 %.
    seed : int
    executor : Executor or None
        Finds the nearest centres if its workers are running; otherwise threads of this process do.
    progress : Progress

    Raises
    ------
    InputError
        Fewer distinct blocks than words.

    Examples
    --------
    >>> corners = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)
    >>> learn_codebook(corners, 4).assign(corners[::5]).tolist() == [0, 1, 2, 3]
    False
    >>> sorted(learn_codebook(corners, 4).assign(corners[::5]).tolist())
    [0, 1, 2, 3]
    """
    distinct = np.unique(np.ascontiguousarray(blocks, np.float32), axis=0)
    n_words = suggest_codebook_size(len(distinct)) if n_words is None else n_words
    problem = f"the sample has {len(distinct):,} distinct blocks, fewer than the {n_words:,} visual words asked for"
    require(len(distinct) >= n_words, f"{problem}; ask for fewer words or give more pictures")
    sample = distinct[np.random.default_rng(seed).permutation(len(distinct))]
    lengths = float(np.einsum("nd,nd->", sample, sample, dtype=np.float64))
    centres, error = sample[:n_words].copy(), np.inf
    with progress.stage("learning words", passes, "passes") as stage:
        for _ in range(passes):
            words, best = _assign_in_parallel(Codebook(centres), sample, executor)
            last_error, error = error, lengths - 2 * float(best.sum(dtype=np.float64))
            stage.advance(1, error=error / len(sample))
            centres = _compute_means(sample, words, centres)
            if last_error - error < _TOLERANCE * error:
                break
    return Codebook(centres)


def _assign_in_parallel(codebook: Codebook, sample: Float32, executor: Executor | None) -> tuple[Int32, Float32]:
    """Run `_assign_with_scores` on a sample, its parts on all cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    size = _TILES_PER_TASK * codebook._tile_size
    parts = [sample[start : start + size] for start in range(0, len(sample), size)]
    if executor is not None and executor.has_persistent_workers:
        results = list(executor.map_with(Codebook._assign_with_scores, codebook, parts))
    else:
        with threadpool_limits(1), ThreadPoolExecutor(count_available_cores()) as pool:
            results = list(pool.map(codebook._assign_with_scores, parts))
    words, best = zip(*results, strict=True)
    return np.concatenate(words), np.concatenate(best)


def _compute_means(sample: Float32, words: Int32, centres: Float32) -> Float32:
    """Return the mean block of each word; a word without blocks keeps its centre."""
    members = build_incidence(words, np.arange(len(sample)), (len(centres), len(sample)))
    counts: Int64 = np.bincount(words, minlength=len(centres))
    means = (members @ sample) / np.maximum(counts, 1)[:, None].astype(np.float32)
    return np.where(counts[:, None] > 0, means, centres).astype(np.float32)
