"""Labels for two pictures together, for one beside the other's label, and labels that go with a label ([P] 6.2)."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.base.validation import require, whole_number
from wsabie.models.wsabie import Wsabie
from wsabie.search.label_pairs import LabelPairs
from wsabie.space.parts import PartsSpace

Side = Literal["object", "part"]


class PartLabels(Wsabie):
    """Base of a model that knows labels by pictures and by each other; `Parts` documents its parameters.

    Attributes
    ----------
    relations_ : (m, 2) int64
    words_ : (n_labels, padded dim) float32
    """

    reads_shards = False
    relations: Sequence[tuple[str, str]]
    relation: str
    relation_weight: float
    label_scores: Literal["learned", "known", "none"]
    score_weight: float
    known_score: float
    picture_weight: float
    same: bool
    tables: Literal["unshared", "shared"]
    relations_: Int64
    words_: Float32
    _made_ready = (*Wsabie._made_ready, "_paired")

    def _ids_of_relations(self) -> Int64:
        """Those between two labels of the vocabulary, as numbers, each once."""
        require(
            _are_pairs(self.relations) and len(self.relations) > 0,
            "relations must be a list of pairs (object label, part label)",
        )
        named = [tuple(map(str, pair)) for pair in self.relations]  # numbers are the names of numbered labels
        known = [name for pair in named if all(end in self.vocabulary_ for end in pair) for name in pair]
        ids = self.vocabulary_.ids(known).reshape(-1, 2)
        return np.unique(ids[ids[:, 0] != ids[:, 1]], axis=0)

    def _pairs_in(self, space: PartsSpace) -> LabelPairs:
        """The labels of a space made ready to be ranked in pairs."""
        return LabelPairs(space.words[:, : self.dim], self._scoring_weight(), *self._known(), same=self.same)

    def _scoring_weight(self) -> float:
        if self.label_scores != "learned":
            return 0.0
        return float(self.score_weight)

    def _known(self) -> tuple[Int64 | None, float]:
        """Couples with a score of their own, and that score."""
        if self.label_scores != "known":
            return None, 0.0
        return self._ids_of_relations(), float(self.known_score)

    def rank_pairs(self, objects: Any, parts: Any, k: int = 10, *, couples: Any = None) -> tuple[Int64, Int64, Float32]:
        """The k best pairs of labels for pairs of pictures: part-object labelling ([P] 6.2), exactly.

        Parameters
        ----------
        objects, parts : sparse matrix or array, (n, n_features)
            Pictures of objects, and of a part of each.
        k : int
        couples : list of (object label, part label) or None
            Only these pairs; None = all, of which no table is made.

        Returns
        -------
        objects, parts : (n, k) int64
            Label numbers, best first; -1 where there are fewer than k pairs.
        scores : (n, k) float32

        Raises
        ------
        InputError
            Rows of another width, or not as many of parts as of objects; an unknown label.

        Examples
        --------
        >>> from wsabie import Parts
        >>> X = np.eye(4, dtype=np.float32)
        >>> model = Parts([(0, 1), (2, 3)], dim=8, epochs=60, relation_weight=1, threads=1).fit(X, [0, 1, 2, 3])
        >>> objects, parts, scores = model.rank_pairs(X[[0, 2]], X[[1, 3]], k=2)
        >>> objects[:, 0].tolist(), parts[:, 0].tolist(), scores.shape
        ([0, 2], [1, 3], (2, 2))
        """
        on_objects, on_parts = self._scores_of_two(objects, parts)
        chosen = None if couples is None else self._couples(couples)
        top: tuple[Int64, Int64, Float32] = self._pairs().top(
            on_objects, on_parts, whole_number(k, "k"), couples=chosen
        )
        return top

    def annotate_pairs(
        self, objects: Any, parts: Any, k: int = 10, *, couples: Any = None
    ) -> list[list[tuple[tuple[str, str], float]]]:
        """As `rank_pairs`, by name: for each pair of pictures ((object label, part label), score), best first."""
        self._check_fitted()
        names = list(self.vocabulary_)
        k = min(whole_number(k, "k"), len(names) ** 2)
        return [
            [((names[o], names[p]), float(s)) for o, p, s in zip(*row, strict=True) if o >= 0]
            for row in zip(*self.rank_pairs(objects, parts, k, couples=couples), strict=True)
        ]

    def ranks_of_pairs(
        self, objects: Any, parts: Any, object_labels: Any, part_labels: Any, *, couples: Any = None
    ) -> Int64:
        """At which rank the given pair of labels stands for each pair of pictures, (n,) int64, from 1.

        Parameters and errors are those of `rank_pairs`; labels are names or numbers, one of each for every row.
        """
        on_objects, on_parts = self._scores_of_two(objects, parts)
        labels = [self._label_ids(list(given)) for given in (object_labels, part_labels)]
        n = len(on_objects)
        require(all(len(given) == n for given in labels), f"there are {n} pairs of pictures; give two labels for each")
        chosen = None if couples is None else self._couples(couples)
        ranks: Int64 = self._pairs().ranks(on_objects, on_parts, *labels, couples=chosen)
        return ranks

    def scores_given(self, X: Any, others: Any, side: Side = "object") -> Float32:
        """Scores of all labels for pictures next to which a label is known: the "triplet" task ([P] 6.2).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        others : list of label names or numbers, (n,)
            The label of the other picture of each; it is no candidate itself (-inf), unless `same`.
        side : {"object", "part"}
            What X shows; the other labels are of the other side.

        Returns
        -------
        (n, n_labels) float32

        Raises
        ------
        InputError
            As `scores`; an unknown label, or not as many as there are rows.
        """
        require(side in ("object", "part"), f"side is {side!r}; choose one of object, part")
        scores, other = self.scores(X), self._label_ids(list(others))
        n = len(scores)
        require(len(other) == n, f"there are {n} rows and {len(other)} other labels; give one for each row")
        weight, (known, offset) = np.float32(self._scoring_weight()), self._known()
        if weight:
            scores += weight * self._between(other)
        if known is not None:
            for one, two in known[:, :: 1 if side == "object" else -1]:
                scores[other == two, one] += np.float32(offset)
        if not self.same:
            scores[np.arange(n), other] = -np.inf
        return scores

    def annotate_given(self, X: Any, others: Any, side: Side = "object", k: int = 10) -> list[list[tuple[str, float]]]:
        """The k best labels of each picture, given the label of the other one; parameters are those of `scores_given`.

        Examples
        --------
        >>> from wsabie import Parts
        >>> X = np.eye(4, dtype=np.float32)
        >>> model = Parts([("car", "wheel"), ("house", "door")], dim=8, epochs=60, relation_weight=1, threads=1)
        >>> model = model.fit(X, ["car", "wheel", "house", "door"])
        >>> model.annotate_given(X[3:], ["house"], side="part", k=1)[0][0][0]
        'door'
        """
        scores, names = self.scores_given(X, others, side), list(self.vocabulary_)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : min(whole_number(k, "k"), len(names) - (not self.same))]
        return [[(names[y], float(row[y])) for y in top] for row, top in zip(scores, best, strict=True)]

    def rank_pictures(self, X: Any, candidates: Any, k: int = 10, *, labels: Any = None) -> tuple[Int64, Float32]:
        """The k candidates that go best with each picture, as the picture of a part or of an object of it.

        A candidate J scores (V J) . (U_L + s V I), with s = `picture_weight`; what of f_q does not touch J is left out.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
            The pictures I that ask.
        candidates : sparse matrix or array, (m, n_features)
            J
        k : int
        labels : list of label names or numbers, (n,), or None
            L, what the candidates are to show; None: the picture alone asks, and since one map V serves both ends,
            pictures like itself come first.

        Returns
        -------
        rows : (n, k) int64
            Of `candidates`, best first; -1 where there are fewer than k.
        scores : (n, k) float32

        Raises
        ------
        InputError
            As `scores`; an unknown label, not as many as there are rows, or nothing to ask by.

        Examples
        --------
        >>> from wsabie import Parts
        >>> X = np.eye(4, dtype=np.float32)
        >>> model = Parts([("car", "wheel"), ("house", "door")], dim=8, epochs=60, picture_weight=1, threads=1)
        >>> model = model.fit(X, ["car", "wheel", "house", "door"])
        >>> model.rank_pictures(X[[0, 2]], X[[1, 3]], k=1)[0].ravel().tolist()
        [0, 1]
        """
        from wsabie.search.exact import ExactIndex

        require(labels is not None or self.picture_weight > 0, "picture_weight is 0; say which labels are asked for")
        queries = np.float32(self.picture_weight) * self.transform(X)
        if labels is not None:
            asked, n = self._label_ids(list(labels)), len(queries)
            require(len(asked) == n, f"there are {n} rows and {len(asked)} labels; give one for each row")
            queries = queries + self.label_vectors[asked]
        return ExactIndex(self.transform(candidates)).top_k(queries, k, threads=self.threads)

    def related(self, label: str | int, k: int = 10, *, side: Side | None = None) -> list[tuple[str, float]]:
        """The k labels that go best with a label, by f_L ([P] 6.6), best first.

        Parameters
        ----------
        label : str or int
        k : int
        side : {"object", "part"} or None
            Only labels that are objects, or parts, in a relation that training used. f_L itself has no direction.

        Returns
        -------
        list of (label, f_L)
            With tables of their own only labels in a relation that training used, and for no others: nothing was
            learned of what the rest is to other labels.

        Raises
        ------
        InputError
            An unknown label.
        """
        self._check_fitted()
        require(side in (None, "object", "part"), f"side is {side!r}; choose one of object, part, None")
        (own,) = self._label_ids([label])
        scores = self._between(np.array([own]))[0]
        ends = np.unique(self.relations_ if side is None else self.relations_[:, int(side == "part")])
        if self.tables == "unshared" and own not in self.relations_:
            return []
        if self.tables == "shared" and side is None:
            ends = np.arange(len(scores))
        others = ends[ends != own]
        best = others[np.argsort(-scores[others], kind="stable")][: whole_number(k, "k")]
        return [(name, float(scores[y])) for name, y in zip(self.vocabulary_.names(best), best, strict=True)]

    def _between(self, labels: Int64) -> Float32:
        """f_L of some labels and all, (n, n_labels), summed in a fixed order."""
        from wsabie.kernels.similarity import Dot
        from wsabie.search.dense import all_scores

        words = np.ascontiguousarray(self.words_[:, : self.dim])
        with self._threads(len(labels)) as threads:
            found: Float32 = all_scores(Dot(words, np.zeros(len(words), np.float32)), words[labels], threads=threads.n)
        return found

    def _pairs(self) -> LabelPairs:
        """The labels made ready to be ranked in pairs, once for fitted tables and a way to score."""
        known, offset = self._known()
        scoring = self._scoring_weight(), offset, self.same, None if known is None else known.tobytes()
        kept: tuple[Float32, tuple[Any, ...], LabelPairs] | None = self.__dict__.get("_paired")
        if kept is None or kept[0] is not self.words_ or kept[1] != scoring:
            space = PartsSpace(self.space_, self.words_, float(self.relation_weight))
            kept = self._paired = self.words_, scoring, self._pairs_in(space)
        return kept[2]

    def _scores_of_two(self, objects: Any, parts: Any) -> tuple[Float32, Float32]:
        on_objects, on_parts = self.scores(objects), self.scores(parts)
        n = len(on_objects), len(on_parts)
        require(n[0] == n[1], f"there are {n[0]} rows of objects and {n[1]} of parts; give a part for each object")
        return on_objects, on_parts

    def _couples(self, couples: Any) -> Int64:
        couples = couples.tolist() if isinstance(couples, np.ndarray) else couples
        require(_are_pairs(couples), "couples must be a list of pairs (object label, part label)")
        return self._label_ids([label for couple in couples for label in couple]).reshape(-1, 2)


def _are_pairs(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and all(isinstance(one, (list, tuple)) and len(one) == 2 for one in given)
