"""Baseline that gives every row the most frequent labels (Weston et al. 2010, section 6.1)."""

import numpy as np

from wsabie.core.arrays import Array, Float32, Matrix
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.models.base.feature_matrix import FeatureMatrix, count_rows
from wsabie.models.base.label_matrix import count_label_rows
from wsabie.models.base.score_ranker import OneStepRanker
from wsabie.storage.schema_validation import check_array


class Popularity(OneStepRanker):
    """Baseline that ranks labels by the share of training rows that have them, for every row alike.

    Features of rows do not matter, only their number.

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

    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        self.share_ = (count_label_rows(targets) / count_rows(inputs)).astype(np.float32)

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        return np.tile(self.share_, (count_rows(inputs), 1))

    def _dump_tensors(self) -> dict[str, Array]:
        return {"share": self.share_}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        self.share_ = np.asarray(check_array(tensors, "share", "float32", (len(self.vocabulary_),)))
