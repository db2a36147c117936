"""Quadruplets one of whose pictures is ranked: the things of the edge f_II between pictures, drawn for an epoch.

    f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p) + s f_II(I_o, I_p)

When a label is ranked, f_II is the same for all of its candidates and falls out. When picture I_p is ranked, what is
left is (V I') . (U_Lp + s V I_o): `wsabie.kernels.beside` with a label of weight 1, against a pool of pictures. The s
is multiplied into the rows that ask, which gives the right gradient, too: V (s I_o) moves V by s I_o.
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Csr, Float32, Int64, Matrix
from wsabie.labels.quadruplets import pictures_of
from wsabie.space.protocol import Inputs, Sides
from wsabie.space.shared import Ends
from wsabie.training.samplers import PAIRS_PER_BLOCK
from wsabie.training.targets import RowBlock, build_targets

NEGATIVES = 256
"""Pictures that are encoded for a block of quadruplets, to draw negatives from."""
MOST_KNOWN = 1 << 24
"""Pictures that are no negatives, summed over an epoch's quadruplets; some are left out where there are more."""
_TURNS, _MOST_BLOCKS = 32, 8


class PictureVisits:
    """The quadruplets of a collection whose other picture is ranked.

    Parameters
    ----------
    inputs : Csr or (n, n_features) float32
        Scaled rows.
    Y : csr_matrix (n, n_labels)
    weights : (n,) float32
        What a quadruplet of a picture weighs.
    picture_weight : float
        s
    """

    def __init__(self, inputs: Inputs, Y: Matrix, weights: Float32, picture_weight: float) -> None:
        self.asking, self.weights = _times(inputs, picture_weight), weights
        self.pictures = pictures_of(Y)
        self.n = Y.shape[0]
        of = np.repeat(np.arange(Y.shape[1]), np.diff(self.pictures.indptr))
        self._keys = of * self.n + self.pictures.rows  # sorted
        self.ends = Ends("labels", "things", "labels"), Ends("pictures", "things", "things", inputs, NEGATIVES)
        self.turn = max(1, min(_MOST_BLOCKS, len(of) // (PAIRS_PER_BLOCK * _TURNS * 2)))

    def beside(self, labels: RowBlock) -> RowBlock:
        """A block that ranks labels, as it is visited in turns with one that ranks pictures."""
        return labels._replace(ends=self.ends[0], turn=self.turn)

    def __call__(self, who: Int64, other: Int64, rng: np.random.Generator) -> RowBlock:
        """A block for pictures and labels that a picture is asked for beside them, one of which is drawn.

        All pictures of the label are known, and so is the asking picture: none of them is a violator.
        """
        from scipy.sparse import csr_matrix

        kept = self._kept(who, other, rng)
        who, other = who[kept], other[kept]
        n, ones = len(who), np.ones(len(who), np.int8)
        drawn, each = self._drawn(who, other, rng), np.arange(n + 1)
        Y = csr_matrix((ones, drawn, each), (n, self.n))
        indptr, rows, _ = self.pictures
        of_labels = csr_matrix((np.ones(len(rows), np.int8), rows, indptr), (len(indptr) - 1, self.n))
        known = of_labels[other] + csr_matrix((ones, who, each), (n, self.n))
        made = build_targets(Y, self.weights[who], "pairs", hidden=known)
        who32 = who.astype(np.int32)
        sides = Sides(self.asking, who32, who32[made.rows], other.astype(np.int32))
        return RowBlock(sides, made, self.ends[1], 1.0, self.turn)

    def _kept(self, who: Int64, other: Int64, rng: np.random.Generator) -> Int64:
        """Examples for which there is another picture, as many as `MOST_KNOWN` leaves room for."""
        sizes = np.diff(self.pictures.indptr)[other]
        kept = rng.permutation(np.flatnonzero(sizes - self._own(who, other)[1] > 0))
        return np.sort(kept[np.cumsum(sizes[kept] + 1) <= MOST_KNOWN])

    def _own(self, who: Int64, other: Int64) -> tuple[Int64, Any]:
        """Where each picture stands, or would stand, among those of the label; and whether it does."""
        keys = other * self.n + who
        at = np.searchsorted(self._keys, keys)
        return at, self._keys[np.minimum(at, len(self._keys) - 1)] == keys

    def _drawn(self, who: Int64, other: Int64, rng: np.random.Generator) -> Int64:
        """For each label one of its pictures, other than the one that asks, all equally likely."""
        (place, own), starts = self._own(who, other), self.pictures.indptr
        choices = starts[other + 1] - starts[other] - own
        at = starts[other] + np.minimum((rng.random(len(who)) * choices).astype(np.int64), choices - 1)
        drawn: Int64 = self.pictures.rows[at + (own & (at >= place))]
        return drawn


def _times(inputs: Any, factor: float) -> Any:
    """Rows times a number."""
    if isinstance(inputs, Csr):
        return inputs._replace(data=inputs.data * np.float32(factor))
    return inputs * np.float32(factor)
