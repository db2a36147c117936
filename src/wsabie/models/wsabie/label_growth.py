"""Preparation of a trained space for further training: writable memory, and points of new labels."""

from collections.abc import Iterable

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base.feature_matrix import Inputs


def copy_for_training(
    space: JointSpace,
    n_labels: int,
    rows: Iterable[tuple[Inputs, Matrix]],
    seed: int,
    unseen: Int64 | None = None,
) -> JointSpace:
    """Return a copy of the space with `n_labels` labels in padded memory.

    New labels are at the mean of their rows. For dot and cosine they get the mean length of the old labels with a
    point, which merged and removed labels lack.

    Parameters
    ----------
    space : JointSpace
    n_labels : int
        At least as many as the space has.
    rows : iterable of (inputs, targets)
        Scaled rows and their labels, csr_matrix (n, n_labels), all at once or some at a time.
    seed : int
        Seed of the points of labels without a row.
    unseen : (n,) int64 or None
        Numbers of labels of the space that had no row so far; they are treated as new.
    """
    old, space = space.n_labels, space.copy()
    unseen = np.zeros(0, np.int64) if unseen is None else unseen
    fresh = np.append(unseen, np.arange(old, n_labels))
    if not len(fresh):
        return space
    old_labels = np.delete(space.labels, unseen, axis=0)
    norms = np.sqrt(np.einsum("ij,ij->i", old_labels, old_labels))
    norm = float(norms[norms > 0].mean()) if norms.any() else 1.0
    space = space.with_more_labels(n_labels - old, np.random.default_rng([seed, 2, old]))
    sums, counts = np.zeros_like(space.labels[fresh]), np.zeros(len(fresh), np.float32)
    for inputs, targets in rows:
        members = (targets[:, fresh] > 0).T.astype(np.float32)
        sums += members @ space.points(inputs)
        counts += np.asarray(members.sum(axis=1)).ravel()
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    has_rows = lengths > 0
    scale = 1 / counts[has_rows] if space.similarity == "euclidean" else norm / lengths[has_rows]
    space.labels[fresh[has_rows]] = sums[has_rows] * scale[:, None]
    return space
