"""Exact k nearest neighbours: the labels of the training rows that look most like a row ([W] section 6.3)."""

from typing import Any, Self

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.models.inputs import Inputs, matrix_from, matrix_tensors
from wsabie.models.neighbours import NeighbourVotes, arrays_of, by_feature, nearest_rows
from wsabie.models.scaling import Rows, RowScaling
from wsabie.storage.folder import Parts
from wsabie.storage.schema import PositiveCount, read_config


class NearestNeighbours(NeighbourVotes):
    """The k training rows of highest cosine vote for their labels, each with its cosine.

    A label's score is the sum of the cosines of those neighbours that carry it (negative cosines do not
    vote). Equal cosines are decided by the order of the training rows. Nothing is approximated: a block of
    rows is compared with all training rows in one product, in memory of (rows of the block) x (training
    rows).

    Parameters
    ----------
    k : int, default 10
        Neighbours that vote; all training rows when there are fewer.
    rows : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows before the cosine is taken, as in `Wsabie`; dense rows get no constant feature.

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

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        config = {**self._described(), "scaling": self.scaling_.method, "train_rows": self.targets_.shape[0]}
        matrices = matrix_tensors("train", self.train_) | matrix_tensors("targets", self.targets_)
        return Parts(self.kind, config, matrices | self.scaling_.tensors())

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; the training rows stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restored(config)
        width, rows = model.n_features_in_, read_config(PositiveCount, config["train_rows"])
        model.scaling_ = RowScaling.restored(config["scaling"], t, width)
        model.train_ = matrix_from("train", t, (rows, width) if "train" in t else (width, rows))
        model.targets_ = matrix_from("targets", t, (rows, len(model.vocabulary_)))
        return model

    def _keep(self, train: Matrix) -> None:
        self.train_ = by_feature(train)

    def _arrays(self) -> list[Any]:
        return arrays_of(self.train_)

    def _nearest(self, inputs: Inputs, k: int) -> tuple[Int64, Float32]:
        return nearest_rows(self._unit(inputs), self.train_, self.targets_.shape[0], k)
