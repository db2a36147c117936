"""The dictionary of visual terms: k-means centres of block descriptors, and the nearest centre by one BLAS product."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wsabie.base.arrays import Float32, Int32, Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.machine import available_cores
from wsabie.base.progress import SILENT, Progress

_TILE = 1 << 22  # scores held at once (16 MB): more would leave the processor's cache
_TOGETHER = 8  # tiles that are handed out together
_SETTLED = 1e-3  # k-means stops when a pass lowers the error by less than this share


@dataclass(frozen=True)
class Dictionary:
    """Visual terms.

    Attributes
    ----------
    centres : (n_terms, n_bins) float32
    """

    centres: Float32

    def __len__(self) -> int:
        return len(self.centres)

    @cached_property
    def _product(self) -> Float32:
        """(n_bins + 1, n_terms): the nearest centre has the largest x.c - |c|^2 / 2, the last row takes a 1."""
        centres = np.asarray(self.centres, np.float32)
        half = np.einsum("td,td->t", centres, centres) / 2
        return np.ascontiguousarray(np.vstack([centres.T, -half]), np.float32)

    def assign(self, blocks: Float32) -> Int32:
        """The term of each block, ties to the lower one.

        Parameters
        ----------
        blocks : (n, n_bins) float32

        Returns
        -------
        ndarray, (n,), int32

        Examples
        --------
        >>> Dictionary(np.eye(3, dtype=np.float32)).assign(np.array([[0, 0.9, 0.1]], np.float32))
        array([1], dtype=int32)
        """
        return self._nearest(blocks)[0]

    @property
    def _rows(self) -> int:
        """Blocks of a tile."""
        return max(1, _TILE // len(self))

    def _nearest(self, blocks: Float32) -> tuple[Int32, Float32]:
        """(term, x.c - |c|^2 / 2) of each block."""
        rows = self._rows
        scores = np.empty((min(rows, len(blocks)), len(self)), np.float32)
        terms, best = np.empty(len(blocks), np.int32), np.empty(len(blocks), np.float32)
        for start in range(0, len(blocks), rows):
            part = blocks[start : start + rows]
            tile = scores[: len(part)]
            np.dot(_with_one(part), self._product, out=tile)
            chosen = tile.argmax(axis=1)
            terms[start : start + rows] = chosen
            best[start : start + rows] = tile[np.arange(len(part)), chosen]
        return terms, best


def _with_one(blocks: Float32) -> Float32:
    out = np.ones((len(blocks), blocks.shape[1] + 1), np.float32)
    out[:, :-1] = blocks
    return out


def suggested_terms(n_distinct: int) -> int:
    """The number of terms for a sample with that many distinct blocks: a tenth of them, at most 10,000.

    Examples
    --------
    >>> suggested_terms(2_345), suggested_terms(300_000)
    (234, 10000)
    """
    return max(1, min(10_000, n_distinct // 10))


def learn_dictionary(
    blocks: Float32,
    n_terms: int | None,
    *,
    passes: int = 5,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> Dictionary:
    """k-means (Lloyd) over a sample of blocks.

    Equal blocks count once, so that white paper or sky does not take many terms; the first centres are distinct
    blocks drawn at random. The result depends on the sample and the seed alone, wherever it is computed: the tiles of a
    pass are always the same, each is multiplied by one thread, and what they find is added up in their order.

    Parameters
    ----------
    blocks : (n, n_bins) float32
    n_terms : int or None
        None: `suggested_terms` of the distinct blocks.
    passes : int
        Passes over the sample at most; it stops when a pass lowers the error by less than 0.1 %.
    seed : int
    executor : Executor or None
        Where the nearest centres are looked for, if its workers are standing; otherwise threads of this process.
    progress : Progress

    Raises
    ------
    InputError
        Fewer distinct blocks than terms.

    Examples
    --------
    >>> corners = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)
    >>> learn_dictionary(corners, 4).assign(corners[::5]).tolist() == [0, 1, 2, 3]
    False
    >>> sorted(learn_dictionary(corners, 4).assign(corners[::5]).tolist())
    [0, 1, 2, 3]
    """
    distinct = np.unique(np.ascontiguousarray(blocks, np.float32), axis=0)
    n_terms = suggested_terms(len(distinct)) if n_terms is None else n_terms
    if len(distinct) < n_terms:
        raise InputError(
            f"the sample has {len(distinct):,} distinct blocks, fewer than the {n_terms:,} visual terms asked for; "
            "ask for fewer terms or give more pictures"
        )
    sample = distinct[np.random.default_rng(seed).permutation(len(distinct))]
    lengths = float(np.einsum("nd,nd->", sample, sample, dtype=np.float64))
    centres, error = sample[:n_terms].copy(), np.inf
    with progress.stage("learning terms", passes, "passes") as stage:
        for _ in range(passes):
            terms, best = _nearest_of_all(Dictionary(centres), sample, executor)
            before, error = error, lengths - 2 * float(best.sum(dtype=np.float64))
            stage.advance(1, error=error / len(sample))
            centres = _means(sample, terms, centres)
            if before - error < _SETTLED * error:
                break
    return Dictionary(centres)


def _nearest_of_all(dictionary: Dictionary, sample: Float32, executor: Executor | None) -> tuple[Int32, Float32]:
    """`_nearest` of a sample, its parts on all cores."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    rows = _TOGETHER * dictionary._rows
    parts = [sample[start : start + rows] for start in range(0, len(sample), rows)]
    if executor is not None and executor.standing:
        found = list(executor.map_with(Dictionary._nearest, dictionary, parts))
    else:
        with threadpool_limits(1), ThreadPoolExecutor(available_cores()) as pool:
            found = list(pool.map(dictionary._nearest, parts))
    terms, best = zip(*found, strict=True)
    return np.concatenate(terms), np.concatenate(best)


def _means(sample: Float32, terms: Int32, centres: Float32) -> Float32:
    """The mean block of each term; a term without blocks stays where it is."""
    from scipy.sparse import csr_matrix

    n = len(sample)
    members = csr_matrix((np.ones(n, np.float32), (terms, np.arange(n))), (len(centres), n))
    counts: Int64 = np.bincount(terms, minlength=len(centres))
    means = (members @ sample) / np.maximum(counts, 1)[:, None].astype(np.float32)
    return np.where(counts[:, None] > 0, means, centres).astype(np.float32)
