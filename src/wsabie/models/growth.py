"""A trained space made ready for more training: memory of its own, and places for labels that it did not know."""

from collections.abc import Iterable

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.models.inputs import Inputs
from wsabie.space.joint import JointSpace


def trainable(
    space: JointSpace,
    n_labels: int,
    rows: Iterable[tuple[Inputs, Matrix]],
    seed: int,
    unseen: Int64 | None = None,
) -> JointSpace:
    """The space in padded memory of its own, with `n_labels` labels: new ones at the mean of their rows' points.

    Where length is no part of the similarity's meaning, they get the mean length of the old labels that have a point
    (merged and removed ones do not).

    Parameters
    ----------
    space : JointSpace
    n_labels : int
        At least as many as the space has.
    rows : iterable of (inputs, targets)
        Scaled rows and their labels, csr_matrix (n, n_labels), all at once or some at a time.
    seed : int
        Of the points of labels without a row.
    unseen : (n,) int64 or None
        Numbers of labels of the space that no row had so far, which are as new.
    """
    old, space = space.n_labels, space.copy()
    unseen = np.zeros(0, np.int64) if unseen is None else unseen
    fresh = np.append(unseen, np.arange(old, n_labels))
    if not len(fresh):
        return space
    known = np.delete(space.labels, unseen, axis=0)
    norms = np.sqrt(np.einsum("ij,ij->i", known, known))
    norm = float(norms[norms > 0].mean()) if norms.any() else 1.0
    space = space.with_more_labels(n_labels - old, np.random.default_rng([seed, 2, old]))
    sums, counts = np.zeros_like(space.labels[fresh]), np.zeros(len(fresh), np.float32)
    for inputs, targets in rows:
        members = (targets[:, fresh] > 0).T.astype(np.float32)
        sums += members @ space.points(inputs)
        counts += np.asarray(members.sum(axis=1)).ravel()
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    seen = lengths > 0
    scale = 1 / counts[seen] if space.similarity == "euclidean" else norm / lengths[seen]
    space.labels[fresh[seen]] = sums[seen] * scale[:, None]
    return space
