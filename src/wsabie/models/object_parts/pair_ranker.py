"""Rankings of labels and pictures by a model of objects and parts (Mesnil et al. 2014, section 6.2)."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from wsabie.core.arrays import Array, Float32, Float64, Int64, Matrix
from wsabie.core.errors import require
from wsabie.core.validation import check_positive_integer
from wsabie.embedding.joint_space import SimilarityName
from wsabie.embedding.relation_spaces import PartsSpace
from wsabie.evaluation.quadruplets import compute_rank_metrics
from wsabie.models.base.feature_matrix import iterate_row_ranges
from wsabie.models.base.label_model import LabelScores
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.search.dense_scores import compute_all_scores
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_pairs import LabelPairIndex
from wsabie.training.rank_losses import Surrogate
from wsabie.vocabulary.label_quadruplets import QuadrupletBatch, convert_pairs_to_ids
from wsabie.vocabulary.word_vectors import WordVectors

Side = Literal["object", "part"]
LabelSequence: TypeAlias = Sequence[str | int] | Array
"""Labels by names or numbers, one for each row."""
Couples: TypeAlias = Sequence[tuple[str | int, str | int]] | Int64
"""Pairs (object label, part label)."""
KS = (1, 10)
Values = dict[str, Float64]
"""Results of `compute_rank_metrics`: a value per row for each metric."""


@dataclass(eq=False, repr=False)
class PairRanker(Wsabie):
    """Base of `ObjectParts`, which documents the parameters, with its rankings.

    Attributes
    ----------
    relations_ : (m, 2) int64
    words_ : (n_labels, padded dim) float32
    """

    reads_shards = False
    relations: Sequence[tuple[str, str]] = ()
    _: KW_ONLY
    dim: int = 100
    relation: str = "has-part"
    tables: Literal["unshared", "shared"] = "unshared"
    relation_weight: float = 0.1
    label_scores: Literal["learned", "known", "none"] = "learned"
    score_weight: float = 1.0
    known_score: float = 100.0
    picture_weight: float = 0.0
    same: bool = False
    loss: Literal["warp", "auc"] = "warp"
    init_labels: WordVectors | None = None
    replay: None = field(init=False, default=None)
    init: Literal["random"] = field(init=False, default="random")
    init_model: None = field(init=False, default=None)
    similarity: SimilarityName = field(init=False, default="dot")
    sampler: str = field(init=False, default="uniform")
    rank_estimator: Literal["auto"] = field(init=False, default="auto")
    surrogate: Surrogate = field(init=False, default="hinge")
    order_statistic: None = field(init=False, default=None)
    label_bias: bool = field(init=False, default=False)
    relations_: Int64 = field(init=False)
    words_: Float32 = field(init=False)
    _caches = (*Wsabie._caches, "_paired")

    def _find_relation_ids(self) -> Int64:
        """Return the relations between labels of the vocabulary, as label numbers, each once."""
        problem = "relations must be a list of pairs (object label, part label)"
        require(_are_pairs(self.relations) and len(self.relations) > 0, problem)
        name_pairs = [(str(first), str(last)) for first, last in self.relations]  # names may be numbers
        return np.unique(convert_pairs_to_ids(name_pairs, self.vocabulary_).ids, axis=0)

    def _build_pair_index(self, space: PartsSpace) -> LabelPairIndex:
        """Build the index that ranks pairs of labels of a space."""
        words = space.words[:, : self.dim]
        return LabelPairIndex(words, self._get_score_weight(), *self._find_scored_couples(), same=self.same)

    def _get_score_weight(self) -> float:
        return float(self.score_weight) if self.label_scores == "learned" else 0.0

    def _find_scored_couples(self) -> tuple[Int64 | None, float]:
        """Return couples with a constant score, and that score."""
        return (self._find_relation_ids(), float(self.known_score)) if self.label_scores == "known" else (None, 0.0)

    def rank_pairs(
        self, objects: Matrix, parts: Matrix, k: int = 10, *, couples: Couples | None = None
    ) -> tuple[Int64, Int64, Float32]:
        """Return the k best pairs of labels for pairs of pictures, exactly (Mesnil et al. 2014, section 6.2).

        Parameters
        ----------
        objects, parts : sparse matrix or array, (n, n_features)
            Pictures of objects, and of a part of each.
        k : int
        couples : list of (object label, part label) or None
            Only these pairs; None: all pairs, without a table of them.

        Returns
        -------
        objects, parts : (n, k) int64
            Label numbers, best first; -1 where there are fewer than k pairs.
        scores : (n, k) float32

        Raises
        ------
        InputError
            Rows of another width, different numbers of objects and parts, or an unknown label.

        Examples
        --------
        >>> from wsabie import ObjectParts
        >>> X = np.eye(4, dtype=np.float32)
        >>> model = ObjectParts([(0, 1), (2, 3)], dim=8, epochs=60, relation_weight=1, threads=1).fit(X, [0, 1, 2, 3])
        >>> objects, parts, scores = model.rank_pairs(X[[0, 2]], X[[1, 3]], k=2)
        >>> objects[:, 0].tolist(), parts[:, 0].tolist(), scores.shape
        ([0, 2], [1, 3], (2, 2))
        """
        on_objects, on_parts = self._score_sides(objects, parts)
        couple_ids = None if couples is None else self._find_couple_ids(couples)
        return self._get_pair_index().top(on_objects, on_parts, check_positive_integer(k, "k"), couples=couple_ids)

    def annotate_pairs(
        self, objects: Matrix, parts: Matrix, k: int = 10, *, couples: Couples | None = None
    ) -> list[list[tuple[tuple[str, str], float]]]:
        """Return the best pairs of label names, with their scores, for each pair of pictures.

        Parameters
        ----------
        objects, parts, k, couples
            See `rank_pairs`.

        Returns
        -------
        list of list of ((object label, part label), score)
            A list for every pair of pictures, best first.

        Raises
        ------
        InputError
            As `rank_pairs`.
        """
        self._check_fitted()
        names = list(self.vocabulary_)
        k = min(check_positive_integer(k, "k"), len(names) ** 2)
        return [
            [((names[o], names[p]), float(s)) for o, p, s in zip(*row, strict=True) if o >= 0]
            for row in zip(*self.rank_pairs(objects, parts, k, couples=couples), strict=True)
        ]

    def ranks_of_pairs(
        self,
        objects: Matrix,
        parts: Matrix,
        object_labels: LabelSequence,
        part_labels: LabelSequence,
        *,
        couples: Couples | None = None,
    ) -> Int64:
        """Return the rank of the given pair of labels for each pair of pictures.

        Parameters
        ----------
        objects, parts : sparse matrix or array, (n, n_features)
            Pictures of objects, and of a part of each.
        object_labels, part_labels : list of label names or numbers, (n,)
        couples : list of (object label, part label) or None
            Only these pairs are ranked; None: all pairs.

        Returns
        -------
        (n,) int64
            From 1.

        Raises
        ------
        InputError
            As `rank_pairs`, or other numbers of labels than of pictures.
        """
        on_objects, on_parts = self._score_sides(objects, parts)
        labels = [self._find_label_ids(list(side_labels)) for side_labels in (object_labels, part_labels)]
        n = len(on_objects)
        problem = f"there are {n} pairs of pictures; give two labels for each"
        require(all(len(side_labels) == n for side_labels in labels), problem)
        couple_ids = None if couples is None else self._find_couple_ids(couples)
        return self._get_pair_index().counts(on_objects, on_parts, *labels, couples=couple_ids).ranks

    def scores_given(self, X: Matrix, other_labels: LabelSequence, side: Side = "object") -> Float32:
        """Return scores of all labels for pictures, given the label of a related picture ("triplet" task).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        other_labels : list of label names or numbers, (n,)
            Label of the related picture of each; it is not a candidate itself (-inf), unless `same`.
        side : {"object", "part"}
            Side that X shows; the other labels are of the other side.

        Returns
        -------
        (n, n_labels) float32

        Raises
        ------
        InputError
            See `scores`; an unknown label, or different numbers of labels and rows.
        """
        require(side in ("object", "part"), f"side is {side!r}; choose one of object, part")
        scores, other_ids = self.scores(X), self._find_label_ids(list(other_labels))
        n = len(scores)
        require(len(other_ids) == n, f"there are {n} rows and {len(other_ids)} other labels; give one for each row")
        weight, (known_couples, offset) = np.float32(self._get_score_weight()), self._find_scored_couples()
        if weight:
            scores += weight * self._score_label_pairs(other_ids)
        if known_couples is not None:
            for label_id, other_id in known_couples[:, :: 1 if side == "object" else -1]:
                scores[other_ids == other_id, label_id] += np.float32(offset)
        if not self.same:
            scores[np.arange(n), other_ids] = -np.inf
        return scores

    def annotate_given(
        self, X: Matrix, other_labels: LabelSequence, side: Side = "object", k: int = 10
    ) -> list[LabelScores]:
        """Return the k best labels of each picture, given the label of the related one; see `scores_given`.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        other_labels, side
            See `scores_given`.
        k : int, default 10

        Returns
        -------
        list of list of (name, score)
            A list for every picture, best first.

        Raises
        ------
        InputError
            As `scores_given`, or k below 1.

        Examples
        --------
        >>> from wsabie import ObjectParts
        >>> X = np.eye(4, dtype=np.float32)
        >>> model = ObjectParts([("car", "wheel"), ("house", "door")], dim=8, epochs=60, relation_weight=1, threads=1)
        >>> model = model.fit(X, ["car", "wheel", "house", "door"])
        >>> model.annotate_given(X[3:], ["house"], side="part", k=1)[0][0][0]
        'door'
        """
        scores, names = self.scores_given(X, other_labels, side), list(self.vocabulary_)
        k = min(check_positive_integer(k, "k"), len(names) - (not self.same))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [[(names[y], float(row[y])) for y in top] for row, top in zip(scores, best, strict=True)]

    def rank_pictures(
        self, X: Matrix, candidates: Matrix, k: int = 10, *, labels: LabelSequence | None = None
    ) -> tuple[Int64, Float32]:
        """Return the k candidates that go best with each picture, as the picture of its part or of its object.

        A candidate J scores (V J) . (U_L + s V I), with s = `picture_weight`; terms of f_q without J are left out.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
            The query pictures I.
        candidates : sparse matrix or array, (m, n_features)
            J
        k : int
        labels : list of label names or numbers, (n,), or None
            Labels L that the candidates shall show; None: the picture alone is the query, and because both sides share
            the map V, similar pictures come first.

        Returns
        -------
        rows : (n, k) int64
            Rows of `candidates`, best first; -1 where there are fewer than k.
        scores : (n, k) float32

        Raises
        ------
        InputError
            See `scores`; an unknown label, different numbers of labels and rows, or neither labels nor a picture
            weight.

        Examples
        --------
        >>> from wsabie import ObjectParts
        >>> X = np.eye(4, dtype=np.float32)
        >>> model = ObjectParts([("car", "wheel"), ("house", "door")], dim=8, epochs=60, picture_weight=1, threads=1)
        >>> model = model.fit(X, ["car", "wheel", "house", "door"])
        >>> model.rank_pictures(X[[0, 2]], X[[1, 3]], k=1)[0].ravel().tolist()
        [0, 1]
        """
        require(labels is not None or self.picture_weight > 0, "picture_weight is 0; say which labels are asked for")
        queries = np.float32(self.picture_weight) * self.transform(X)
        if labels is not None:
            label_ids, n = self._find_label_ids(list(labels)), len(queries)
            require(len(label_ids) == n, f"there are {n} rows and {len(label_ids)} labels; give one for each row")
            queries = queries + self.label_vectors[label_ids]
        return ExactIndex(self.transform(candidates)).top_k(queries, k, threads=self.threads)

    def related(self, label: str | int, k: int = 10, *, side: Side | None = None) -> LabelScores:
        """Return the k labels that go best with a label, by f_L (Mesnil et al. 2014, section 6.6), best first.

        Parameters
        ----------
        label : str or int
        k : int
        side : {"object", "part"} or None
            Only labels that are objects, or parts, in a relation that training used. f_L itself has no direction.

        Returns
        -------
        list of (label, f_L)
            With unshared tables only labels in a relation that training used, and only for such a label, because
            nothing was learned about relations of other labels.

        Raises
        ------
        InputError
            An unknown label.
        """
        self._check_fitted()
        require(side in (None, "object", "part"), f"side is {side!r}; choose one of object, part, None")
        (label_id,) = self._find_label_ids([label])
        scores = self._score_label_pairs(np.array([label_id]))[0]
        ends = np.unique(self.relations_ if side is None else self.relations_[:, int(side == "part")])
        if self.tables == "unshared" and label_id not in self.relations_:
            return []
        if self.tables == "shared" and side is None:
            ends = np.arange(len(scores))
        candidates = ends[ends != label_id]
        best = candidates[np.argsort(-scores[candidates], kind="stable")][: check_positive_integer(k, "k")]
        return [(name, float(scores[y])) for name, y in zip(self.vocabulary_.names(best), best, strict=True)]

    def _score_label_pairs(self, labels: Int64) -> Float32:
        """Return f_L of some labels and all labels, (n, n_labels), summed in a fixed order."""
        from wsabie.kernels.embedding.similarity import Dot

        words = np.ascontiguousarray(self.words_[:, : self.dim])
        with self._start_threads(len(labels)) as threads:
            return compute_all_scores(Dot(words, np.zeros(len(words), np.float32)), words[labels], threads=threads.n)

    def _get_pair_index(self) -> LabelPairIndex:
        """Return the index that ranks pairs of labels, built once for fitted tables and scoring parameters."""
        known_couples, offset = self._find_scored_couples()
        couples = None if known_couples is None else known_couples.tobytes()
        scoring = self._get_score_weight(), offset, self.same, couples
        space = PartsSpace(self.space_, self.words_, float(self.relation_weight))
        return self._build_once("_paired", self.words_, lambda: self._build_pair_index(space), scoring)

    def _score_sides(self, objects: Matrix, parts: Matrix) -> tuple[Float32, Float32]:
        on_objects, on_parts = self.scores(objects), self.scores(parts)
        n = len(on_objects), len(on_parts)
        require(n[0] == n[1], f"there are {n[0]} rows of objects and {n[1]} of parts; give a part for each object")
        return on_objects, on_parts

    def _find_couple_ids(self, couples: Couples) -> Int64:
        couples = couples.tolist() if isinstance(couples, np.ndarray) else couples
        require(_are_pairs(couples), "couples must be a list of pairs (object label, part label)")
        return self._find_label_ids([label for couple in couples for label in couple]).reshape(-1, 2)


def _are_pairs(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value)


class QuadrupletTest(NamedTuple):
    """Drawn quadruplets and their rows."""

    quadruplets: QuadrupletBatch
    X: Matrix

    @property
    def pictures(self) -> list[tuple[Int64, Array, Array, Side]]:
        """Row numbers, their labels, the labels of the related pictures, and the side: objects, then parts."""
        objects, object_labels, parts, part_labels = self.quadruplets
        return [(objects, object_labels, part_labels, "object"), (parts, part_labels, object_labels, "part")]

    @property
    def relations(self) -> list[str]:
        """The relation of each quadruplet."""
        return [f"{a} {b}" for a, b in zip(self.quadruplets.object_labels, self.quadruplets.part_labels, strict=True)]


def compute_label_metrics(scores: Float32, labels: Array, ks: Sequence[int] = KS) -> Values:
    """Return the metrics of each row's label among all labels.

    Examples
    --------
    >>> compute_label_metrics(np.array([[3.0, 2, 1]]), [1])["MAP"].tolist()
    [0.5]
    """
    true_scores = scores[np.arange(len(scores)), labels][:, None]
    n_tied = (scores == true_scores).sum(axis=1) - 1
    return compute_rank_metrics(1 + (scores > true_scores).sum(axis=1), ks, tied=n_tied)


def evaluate_labels(
    test: QuadrupletTest, scores: Callable[..., Float32], n_labels: int, ks: Sequence[int] = KS
) -> Values:
    """Return the metrics of all pictures, objects first; `scores` takes row numbers, labels and the side."""
    blocks = []
    for rows, labels, other_labels, side in test.pictures:
        for lo, hi in iterate_row_ranges(len(rows), 2 * n_labels):
            blocks.append(compute_label_metrics(scores(rows[lo:hi], other_labels[lo:hi], side), labels[lo:hi], ks))
    return {metric: np.concatenate([values[metric] for values in blocks]) for metric in blocks[0]}


def evaluate_triplets(test: QuadrupletTest, model: PairRanker, ks: Sequence[int] = KS) -> Values:
    """Return the metrics of each picture's label, given the label of the related picture, objects first."""

    def compute_scores(rows: Int64, other_labels: Array, side: Side) -> Float32:
        return model.scores_given(test.X[rows], other_labels, side)

    return evaluate_labels(test, compute_scores, len(model.vocabulary_), ks)


def evaluate_pairs(
    test: QuadrupletTest,
    model: PairRanker,
    couples: Couples | None = None,
    ks: Sequence[int] = KS,
    on_block: Callable[[int], object] = lambda n: None,
) -> Values:
    """Return the metrics of the true pair of labels of each quadruplet, among all pairs or the couples.

    `on_block` is called with the number of quadruplets of each block that is done.
    """
    objects, object_labels, parts, part_labels = test.quadruplets
    ranks = []
    for lo, hi in iterate_row_ranges(len(objects), 2 * len(model.vocabulary_)):
        block = test.X[objects[lo:hi]], test.X[parts[lo:hi]], object_labels[lo:hi], part_labels[lo:hi]
        ranks.append(model.ranks_of_pairs(*block, couples=couples))
        on_block(hi - lo)
    return compute_rank_metrics(np.concatenate(ranks), ks)
