"""Baseline that gives every row the most frequent labels (Weston et al. 2010, section 6.1)."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.progress import SILENT, Progress
from wsabie.models.base.feature_matrix import Inputs, count_rows
from wsabie.models.base.score_ranker import ScoreRanker
from wsabie.storage.schema_validation import check_array


class Popularity(ScoreRanker):
    """Baseline that ranks labels by the share of training rows that have them, for every row alike.

    Attributes
    ----------
    share_ : (n_labels,) float32
        Rows with the label / rows.

    Examples
    --------
    >>> model = Popularity().fit(np.zeros((3, 2)), [["sky", "sea"], ["sky"], ["sand"]])
    >>> [name for name, score in model.annotate(np.zeros((1, 2)), k=2)[0]]
    ['sky', 'sea']
    """

    kind = "popularity"

    def fit(self, X: Any, Y: Any, *, label_names: Sequence[str] | None = None, progress: Progress = SILENT) -> Self:
        """Count labels.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
            Only its width is used.
        Y : (n,) integers or names; (n, n_labels) sparse matrix of 1 and -1; or lists of names
            Explicit negatives (-1) do not count.
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        progress : Progress
            Unused, because this takes no time.

        Raises
        ------
        InputError
            Data that cannot be used; the message says where.
        """
        inputs, targets = self._open_rows(X, Y, label_names)
        counts = np.bincount(targets.indices[targets.data > 0], minlength=targets.shape[1])
        self.share_ = (counts / count_rows(inputs)).astype(np.float32)
        return self

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.share_.nbytes)

    def _scores(self, inputs: Inputs) -> Float32:
        return np.tile(self.share_, (count_rows(inputs), 1))

    def _dump_tensors(self) -> dict[str, Any]:
        return {"share": self.share_}

    def _restore_tensors(self, config: dict[str, Any], tensors: dict[str, Any]) -> None:
        self.share_ = np.asarray(check_array(tensors, "share", "float32", (len(self.vocabulary_),)))
