"""Search of labels by their points, exactly or through an index."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from wsabie.core.arrays import Float32, Int64
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base.trained_model import TrainedModel

if TYPE_CHECKING:
    from wsabie.search.exact_index import ExactIndex
    from wsabie.search.label_index import LabelSearchIndex


class LabelSearch(TrainedModel):
    """Base of `Wsabie` that ranks labels by their points."""

    space_: JointSpace
    threads: int | None
    _caches: tuple[str, ...] = ("_searched", "_approximate")

    @abstractmethod
    def transform(self, X: Any) -> Float32:
        """Return the points of rows."""

    def rank(
        self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None, exact: bool = False
    ) -> tuple[Int64, Float32]:
        """Return the k best labels of each row; an index of the labels may miss some, but scores are exact.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are no candidates for a row (non-zero entries), for instance those it already has.
        candidates : list of label names or numbers, or None
            Only these labels.
        exact : bool
            Ignore an index (`wsabie.models.index_files.index_labels`); without one every search is exact.

        Returns
        -------
        ids : (n, k) int64, best first, equal scores by label number; -1 where there are fewer than k candidates
        scores : (n, k) float32, -inf where ids is -1

        Raises
        ------
        InputError
            Another width than the model's, values that are not finite, k below 1, or a candidate that is no label.

        Examples
        --------
        >>> import numpy as np
        >>> from wsabie.models.wsabie.estimator import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2])
        >>> ids, scores = model.rank(np.eye(3), k=2, candidates=[0, 1])
        >>> ids.shape, scores.dtype
        ((3, 2), dtype('float32'))
        """
        points = self.transform(X)
        candidate_ids = None if candidates is None else self._label_ids(candidates)
        index = (None if exact else self._index()) or self.exact_index()
        return index.top_k(points, k, exclude=exclude, candidates=candidate_ids, threads=self.threads)

    def use_index(self, index: "LabelSearchIndex") -> None:
        """Search the labels by an index of them (`wsabie.models.index_files`), until they change."""
        self._approximate = index

    def _index(self) -> "LabelSearchIndex | None":
        """Return the index of the current labels, if there is one."""
        index: LabelSearchIndex | None = self.__dict__.get("_approximate")
        return index if index is not None and index.exact is self.exact_index() else None

    def exact_index(self) -> "ExactIndex":
        """Return the exact search index of the labels, built once for a fitted space."""
        from wsabie.search.exact_index import ExactIndex

        searched: tuple[JointSpace, ExactIndex] | None = self.__dict__.get("_searched")
        if searched is None or searched[0] is not self.space_:
            label_bias, retired_ids = self.space_.bias.copy(), self.vocabulary_.retired()
            label_bias[retired_ids] = 0  # large values would widen the bounds of rounding errors
            bias, similarity = label_bias if label_bias.any() else None, self.space_.similarity
            searched = self.space_, ExactIndex(self.label_vectors, bias=bias, similarity=similarity, gone=retired_ids)
            self._searched = searched
        return searched[1]
