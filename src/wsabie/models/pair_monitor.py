"""Validation of objects and parts during training: how far up the true pair of labels stands ([P] 6.2, "selection")."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.labels.quadruplets import Drawn
from wsabie.models.inputs import Inputs, row_ranges, take_rows
from wsabie.models.monitor import ValidationMap, scores_of
from wsabie.search.label_pairs import LabelPairs
from wsabie.space.joint import JointSpace
from wsabie.space.parts import PartsSpace
from wsabie.training.threads import Threads

PAIRS = "pairs"
"""The figure's name: share of all other pairs of labels that stand below the true one, a mean rank upside down."""

MOST_PAIRS = 1 << 22
"""Pairs of labels that a true pair is ranked among; of more than these some are drawn."""
_DRAWN = 1 << 18


class PairMonitor(ValidationMap):
    """A `ValidationMap` of pictures, and `PAIRS` of drawn quadruplets beside it.

    Parameters
    ----------
    pictures : ValidationMap
        Its rows, and its figure where that decides.
    inputs : Csr or (n, n_features) float32
        Scaled rows that the quadruplets are of.
    quadruplets : Drawn
    pairs_of : callable
        Makes of a PartsSpace what scores pairs of labels.
    decides : bool
        `PAIRS` chooses the epoch, and not the figure of the pictures.
    """

    def __init__(
        self,
        pictures: ValidationMap,
        inputs: Inputs,
        quadruplets: Drawn,
        pairs_of: Callable[[PartsSpace], LabelPairs],
        *,
        decides: bool,
    ) -> None:
        super().__init__(pictures.inputs, pictures.Y, pictures.threads, None, pictures.metric)
        self.objects, self.parts = (take_rows(inputs, rows) for rows in (quadruplets.objects, quadruplets.parts))
        self.quadruplets, self.pairs_of, self.decides = quadruplets, pairs_of, decides

    def figures(self, space: Any) -> dict[str, float]:
        """By name; the one that decides first."""
        if isinstance(space, JointSpace):
            return super().figures(space)
        of_pictures, of_pairs = super().figures(space.things), {PAIRS: self._above(space)}
        return of_pairs | of_pictures if self.decides else of_pictures | of_pairs

    def rehearse(self, space: Any) -> None:
        """Nothing: a figure takes no longer than an epoch, and compiles what it needs."""

    def _above(self, space: PartsSpace) -> float:
        n, n_labels, pairs = len(self.quadruplets.objects), space.n_labels, self.pairs_of(space)
        couples = self._couples(n_labels, pairs.n_pairs) if n_labels**2 > MOST_PAIRS else None
        ranks: list[Int64] = []
        with Threads(self.threads) as threads:
            for lo, hi in row_ranges(n, 2 * n_labels):
                a, b = (self._scores(space, inputs, lo, hi, threads) for inputs in (self.objects, self.parts))
                labels = self.quadruplets.object_labels[lo:hi], self.quadruplets.part_labels[lo:hi]
                ranks.append(pairs.ranks(a, b, *labels, couples=couples))
        among = pairs.n_pairs if couples is None else len(couples)
        return float(1 - (np.concatenate(ranks).mean() - 1) / max(among - 1, 1))

    def _couples(self, n_labels: int, n_pairs: int) -> Int64:
        """Drawn pairs of labels, and the true ones; of a label with itself only where all of these are candidates."""
        drawn = np.random.default_rng(0).integers(n_labels, size=(_DRAWN, 2))
        if n_pairs < n_labels**2:
            drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        true = np.stack([self.quadruplets.object_labels, self.quadruplets.part_labels], 1)
        return np.unique(np.concatenate([drawn, true]), axis=0)

    def _scores(self, space: PartsSpace, inputs: Inputs, lo: int, hi: int, threads: Threads) -> Float32:
        return scores_of(space.things, take_rows(inputs, np.arange(lo, hi)), threads)
