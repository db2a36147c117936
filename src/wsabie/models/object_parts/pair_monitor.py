"""Validation of objects and parts during training, by the rank of true pairs of labels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.parts_space import PartsSpace
from wsabie.models.base.feature_matrix import Inputs, iterate_row_ranges, take_rows
from wsabie.models.base.validation_monitor import ValidationMonitor, compute_scores
from wsabie.search.label_pairs import LabelPairIndex
from wsabie.training.kernel_threads import KernelThreads
from wsabie.vocabulary.label_quadruplets import QuadrupletBatch

PAIRS = "pairs"
"""Name of the figure: mean share of other pairs of labels that rank below the true one."""

MOST_PAIRS = 1 << 22
"""Most pairs of labels that a true pair is ranked among; of more pairs a sample is drawn."""
_SAMPLED_PAIRS = 1 << 18


class PairMonitor(ValidationMonitor):
    """A `ValidationMonitor` of pictures with the additional figure `PAIRS` of drawn quadruplets.

    Parameters
    ----------
    pictures : ValidationMonitor
        Monitor with the rows and the metric of single pictures.
    inputs : Csr or (n, n_features) float32
        Scaled rows of the quadruplets.
    quadruplets : QuadrupletBatch
    pairs_of : callable
        Builds the index that scores pairs of labels from a PartsSpace.
    decides : bool
        `PAIRS` chooses the epoch, instead of the figure of the pictures.
    """

    def __init__(
        self,
        pictures: ValidationMonitor,
        inputs: Inputs,
        quadruplets: QuadrupletBatch,
        pairs_of: Callable[[PartsSpace], LabelPairIndex],
        *,
        decides: bool,
    ) -> None:
        super().__init__(pictures.inputs, pictures.Y, pictures.threads, None, pictures.metric)
        self.objects, self.parts = (take_rows(inputs, rows) for rows in (quadruplets.objects, quadruplets.parts))
        self.quadruplets, self.pairs_of, self.decides = quadruplets, pairs_of, decides

    def figures(self, space: Any) -> dict[str, float]:
        """Return figures by name; the one that chooses the epoch comes first."""
        if isinstance(space, JointSpace):
            return super().figures(space)
        of_pictures, of_pairs = super().figures(space.things), {PAIRS: self._measure_pairs(space)}
        return of_pairs | of_pictures if self.decides else of_pictures | of_pairs

    def rehearse(self, space: Any) -> None:
        """Do nothing: a figure is faster than an epoch and compiles its kernels itself."""

    def _measure_pairs(self, space: PartsSpace) -> float:
        n, n_labels, pairs = len(self.quadruplets.objects), space.n_labels, self.pairs_of(space)
        couples = self._couples(n_labels, pairs.n_pairs) if n_labels**2 > MOST_PAIRS else None
        ranks: list[Int64] = []
        with KernelThreads(self.threads) as threads:
            for lo, hi in iterate_row_ranges(n, 2 * n_labels):
                a, b = (self._scores(space, inputs, lo, hi, threads) for inputs in (self.objects, self.parts))
                labels = self.quadruplets.object_labels[lo:hi], self.quadruplets.part_labels[lo:hi]
                ranks.append(pairs.ranks(a, b, *labels, couples=couples))
        among = pairs.n_pairs if couples is None else len(couples)
        return float(1 - (np.concatenate(ranks).mean() - 1) / max(among - 1, 1))

    def _couples(self, n_labels: int, n_pairs: int) -> Int64:
        """Draw pairs of labels and add the true ones; a label with itself only if these are candidates."""
        couples = np.random.default_rng(0).integers(n_labels, size=(_SAMPLED_PAIRS, 2))
        if n_pairs < n_labels**2:
            couples = couples[couples[:, 0] != couples[:, 1]]
        true = np.stack([self.quadruplets.object_labels, self.quadruplets.part_labels], 1)
        return np.unique(np.concatenate([couples, true]), axis=0)

    def _scores(self, space: PartsSpace, inputs: Inputs, lo: int, hi: int, threads: KernelThreads) -> Float32:
        return compute_scores(space.things, take_rows(inputs, np.arange(lo, hi)), threads)
