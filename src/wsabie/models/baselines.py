"""Baselines: the most frequent labels of all rows, and the mean of each label's rows."""

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import normalize

from wsabie.core.arrays import Array, Float32, Matrix, count_rows
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.core.label_lists import count_label_rows
from wsabie.models.base import feature_matrix
from wsabie.models.base.feature_matrix import FeatureMatrix
from wsabie.models.base.row_scaling import Scaling, scale_to_unit
from wsabie.models.base.score_ranker import OneStepRanker, ScaledRanker
from wsabie.storage.schema_validation import check_array


@dataclass(eq=False, repr=False)
class NearestMean(ScaledRanker):
    """Score of a label: the cosine of a row with the mean of the training rows that have the label.

    Rocchio (1971) gave the method for documents. It needs one pass, and labels with one or two rows are as good as
    their rows. Labels without a row score 0.

    Parameters
    ----------
    scaling : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows before means and cosines are computed, see `Wsabie`; dense rows get no constant feature.

    Attributes
    ----------
    scaling_ : RowScaling
    means_ : csr_matrix (n_features, n_labels) or ndarray (n_labels, n_features), float32
        The means at unit length.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.8, 0.2], [0.0, 1.0]])
    >>> model = NearestMean(scaling=None).fit(X, [["red"], ["red", "warm"], ["blue"]])
    >>> [(name, round(score, 2)) for name, score in model.annotate([[1.0, 0.0]], k=2)[0]]
    [('red', 0.99), ('warm', 0.97)]
    """

    kind = "nearest-mean"

    scaling: Scaling = "tfidf"

    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        rows = feature_matrix.convert_to_matrix(scale_to_unit(inputs), self.n_features_in_)
        sums = (targets > 0).astype(np.float32).T @ rows
        self.means_ = feature_matrix.index_by_feature(normalize(sums).astype(np.float32))

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        return feature_matrix.multiply_rows(scale_to_unit(self.scaling_(inputs)), self.means_, len(self.vocabulary_))

    def _dump_tensors(self) -> dict[str, Array]:
        return {**super()._dump_tensors(), **feature_matrix.dump_matrix("means", self.means_)}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        self.means_ = feature_matrix.restore_table("means", tensors, (len(self.vocabulary_), self.n_features_in_))


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
