"""Exact k nearest neighbours: labels of the most similar rows (Weston et al. 2010, section 6.3)."""

from typing import Any, Self

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.models.base.feature_matrix import Inputs, dump_matrix, restore_matrix
from wsabie.models.base.row_scaling import Rows, RowScaling
from wsabie.models.neighbours.neighbour_votes import (
    NeighbourVotes,
    find_nearest_rows,
    index_by_feature,
    list_matrix_arrays,
)
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import PositiveCount, read_config


class NearestNeighbours(NeighbourVotes):
    """Exact nearest neighbours: the k most similar training rows vote for their labels with their cosine.

    A label's score is the sum of the cosines of the neighbours that have it (negative cosines do not vote). Training
    rows with equal cosines keep their order. A block of rows is compared with all training rows in one product, which
    takes memory for (rows of the block) x (training rows) scores.

    Parameters
    ----------
    k : int, default 10
        Neighbours that vote; all training rows if there are fewer.
    rows : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows before the cosine is computed, see `Wsabie`; dense rows get no constant feature.

    Attributes
    ----------
    scaling_ : RowScaling
    train_ : csr_matrix (n_features, n_train) or ndarray (n_train, n_features), float32
        The training rows at unit length.
    targets_ : csr_matrix (n_train, n_labels), float32
        1 for a label of the row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> model = NearestNeighbours(k=2, rows=None).fit(X, [["red"], ["red", "warm"], ["blue"]])
    >>> [(name, round(score, 2)) for name, score in model.annotate([[1.0, 0.0]], k=2)[0]]
    [('red', 1.99), ('warm', 0.99)]
    """

    kind = "nearest"

    def __init__(self, k: int = 10, *, rows: Rows = "tfidf") -> None:
        self.k = k
        self.rows = rows

    def to_parts(self) -> ModelState:
        """Return the model as JSON-able config and named arrays."""
        config = {**self._dump_config(), "scaling": self.scaling_.method, "train_rows": self.targets_.shape[0]}
        matrices = dump_matrix("train", self.train_) | dump_matrix("targets", self.targets_)
        return ModelState(self.kind, config, matrices | self.scaling_.tensors())

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Restore the model from its parts; the training rows stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restore(config)
        width, rows = model.n_features_in_, read_config(PositiveCount, config["train_rows"])
        model.scaling_ = RowScaling.restored(config["scaling"], t, width)
        model.train_ = restore_matrix("train", t, (rows, width) if "train" in t else (width, rows))
        model.targets_ = restore_matrix("targets", t, (rows, len(model.vocabulary_)))
        return model

    def _keep(self, train: Matrix) -> None:
        self.train_ = index_by_feature(train)

    def _arrays(self) -> list[Any]:
        return list_matrix_arrays(self.train_)

    def _nearest(self, inputs: Inputs, k: int) -> tuple[Int64, Float32]:
        return find_nearest_rows(self._unit(inputs), self.train_, self.targets_.shape[0], k)
