"""Objects and their parts: labels for pictures, and for pictures whose labels are related ([P] sections 3, 4.3, 6.2).

f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p) + s f_II(I_o, I_p)
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.plain import plain
from wsabie.base.validation import require, whole_number
from wsabie.labels.names import normalise
from wsabie.labels.quadruplets import Quadruplets, count_quadruplets
from wsabie.labels.vectors import Vectors
from wsabie.models.inputs import Inputs, n_rows
from wsabie.models.monitor import ValidationMap
from wsabie.models.pair_monitor import MOST_PAIRS, PAIRS, PairMonitor
from wsabie.models.parameters import PerTable
from wsabie.models.scaling import Rows
from wsabie.models.wsabie import Wsabie
from wsabie.search.label_pairs import LabelPairs
from wsabie.space import tables
from wsabie.space.parts import PartsSpace
from wsabie.storage.folder import Parts as Folder
from wsabie.training.losses import RankWeight
from wsabie.training.parts import QuadrupletVisits
from wsabie.training.settings import Schedule, Settings
from wsabie.training.targets import Positives
from wsabie.training.trainer import Blocks

Auto = Literal["auto"]
Side = Literal["object", "part"]

_FIXED: dict[str, Any] = {
    "similarity": "dot",
    "sampler": "uniform",
    "rank_from": "auto",
    "surrogate": "hinge",
    "order_statistic": None,
    "label_bias": False,
}
"""Parameters of `Wsabie` that quadruplets leave no choice of: a query folds from two ends for inner products alone."""

_LARGEST = 1e30
"""Of weights and scores, so that sums of them are float32 too."""


class Parts(Wsabie):
    """Pictures, labels and a relation between labels in one space: a car and its wheel are labelled together.

    Training needs no picture of an object with its parts marked. Pictures of cars, other pictures of wheels, and the
    list that says wheels are parts of cars make quadruplets (object picture, its label, part picture, its label); one
    of the two labels is ranked against all others, given the rest ([P] section 4.3, "proxy supervision"). Any other
    relation does as well: kinds of things, who is married to whom.

    By itself a picture is annotated as by `Wsabie`. Labels that are in no relation are learned as there.

    Parameters
    ----------
    relations : sequence of (object label, part label)
        By name; those with a label that has no pictures are left out (`relations_` has the others).
    dim : int, default 100
    tables : {"unshared", "shared"}, default "unshared"
        A vector per label for pictures and one for other labels, or the same for both ([P] 6.2).
    relation_weight : float, default .1
        r in training. What a label means to others is then learned mostly where pictures do not tell.
    label_scores : {"learned", "known", "none"}, default "learned"
        What speaks for two labels together when pictures are labelled: r f_L ("Image-Word" in [P]); `known_score`
        for the relations that training was told of, whatever was learned ("IO"); nothing ("Image").
    score_weight : float, default 1
        r in scoring. [P] has 1 in training and .1 in scoring, which is worse wherever we tried.
    known_score : float, default 100
    picture_weight : float, default 0
        s: above 0, the two pictures of a quadruplet have an edge of their own, f_II(I_o, I_p) = (V I_o) . (V I_p) ([P]
        section 3 leaves it out). When a label is ranked it is the same for all candidates and falls out. So an epoch
        also ranks a picture: the part's, given its label, the object's picture and label, and the other way round;
        `rank_pictures` uses it. Proxy supervision draws the two pictures apart, so that the edge learns which labels'
        pictures go together, and no more than that. Needs `deterministic`.
    same : bool, default False
        Whether a label may be ranked beside itself, as its own part; [P] ranks all pairs.
    loss, rows, max_norm, epochs, learning_rate, schedule, margin, rank_weight, max_trials, l2, positives, init_scale, \
init_labels, patience, threads, deterministic, seed
        As of `Wsabie`. An epoch visits every annotated pair of picture and label once, with a relation drawn anew.
        As in [P]: `rank_weight="top1"` and `max_trials` 10 or 100 (their gamma), `max_norm=1`.

    Attributes
    ----------
    relations_ : (m, 2) int64
        Label numbers of the relations that training used.
    words_ : (n_labels, padded dim) float32
        W: the labels as they are to each other. With shared tables those of `space_`.

    Examples
    --------
    >>> X = np.eye(4, dtype=np.float32)
    >>> model = Parts([("car", "wheel"), ("house", "door")], dim=8, epochs=60, relation_weight=1, threads=1)
    >>> model = model.fit(X, ["car", "wheel", "house", "door"])
    >>> model.annotate_pairs(X[:1], X[1:2], k=1)[0][0][0]
    ('car', 'wheel')
    >>> model.related("house", k=1)[0][0]
    'door'
    """

    kind = "parts"
    relations_: Int64
    words_: Float32

    def __init__(
        self,
        relations: Sequence[tuple[str, str]] = (),
        dim: int = 100,
        *,
        tables: Literal["unshared", "shared"] = "unshared",
        relation_weight: float = 0.1,
        label_scores: Literal["learned", "known", "none"] = "learned",
        score_weight: float = 1.0,
        known_score: float = 100.0,
        picture_weight: float = 0.0,
        same: bool = False,
        loss: Literal["warp", "auc"] = "warp",
        rows: Rows = "auto",
        max_norm: float | Auto | None = "auto",
        epochs: int | Auto = "auto",
        learning_rate: PerTable = "auto",
        schedule: Schedule = "linear",
        margin: float = 1.0,
        rank_weight: RankWeight = "precision",
        max_trials: int | Auto | None = "auto",
        l2: float | dict[str, float] = 0.0,
        positives: Positives = "mean",
        init_scale: float | dict[str, float] | None = None,
        init_labels: Vectors | None = None,
        patience: int | None = None,
        threads: int | None = None,
        deterministic: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(
            dim, loss=loss, rows=rows, max_norm=max_norm, epochs=epochs, learning_rate=learning_rate,
            schedule=schedule, margin=margin, rank_weight=rank_weight, max_trials=max_trials, l2=l2,
            positives=positives, init_scale=init_scale, init_labels=init_labels, patience=patience, threads=threads,
            deterministic=deterministic, seed=seed,
        )  # fmt: skip
        self.relations = relations
        self.tables = tables
        self.relation_weight = relation_weight
        self.label_scores = label_scores
        self.score_weight = score_weight
        self.known_score = known_score
        self.picture_weight = picture_weight
        self.same = same

    # ---- training

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        for name, choices in (("tables", ("unshared", "shared")), ("label_scores", ("learned", "known", "none")),
                              ("loss", ("warp", "auc")), ("same", (False, True))):  # fmt: skip
            value = getattr(self, name)
            require(value in choices, f"{name} is {value!r}; choose one of {', '.join(map(str, choices))}")
        for name in ("relation_weight", "score_weight", "known_score", "picture_weight"):
            value = getattr(self, name)
            usable = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            require(usable and abs(value) < _LARGEST, f"{name} is {value!r}; choose a number below {_LARGEST:g}")
        told = f"picture_weight is {self.picture_weight!r}; choose a number from 0, and above 0 deterministic training"
        require(self.picture_weight == 0 or (self.picture_weight > 0 and self.deterministic), told)
        super().check_parameters()

    def _parameters(self) -> dict[str, Any]:
        return {**_FIXED, **self.get_params()}

    def _identity(self, settings: Settings, data: list[Any]) -> dict[str, Any]:
        told = [self.tables, self.relation_weight, self.picture_weight, [list(pair) for pair in self.relations]]
        return super()._identity(settings, [*data, *plain(told)])

    def _visited(self, inputs: Inputs, targets: Matrix, weights: Float32 | None, more: bool) -> tuple[Blocks, int]:
        self.relations_ = self._ids_of_relations() if more else self._told(targets)
        seed = self.seed + (len(self.history_) if more else 0)
        visits = QuadrupletVisits(
            inputs, targets, self.relations_, weights, self.positives, seed, strict=not more,
            picture_weight=self.picture_weight,
        )  # fmt: skip
        return visits, visits.n_pairs

    def _moved(self, more: bool) -> PartsSpace:
        words, old = None, len(self.words_) if more else 0
        if self.tables == "unshared":
            rng = np.random.default_rng([self.seed, 3, old])
            words = tables.gaussian(len(self.vocabulary_), self.dim, self.dim**-0.5, rng)
            words[:old, : self.dim] = self.words_[:, : self.dim] if more else 0
        space = PartsSpace.of(self.space_, words, float(self.relation_weight))
        self.words_ = space.words
        return space

    def _told(self, targets: Matrix) -> Int64:
        """The relations that have a quadruplet, as numbers."""
        ids = self._ids_of_relations()
        ids = ids[count_quadruplets(targets, ids) > 0] if len(ids) else ids
        require(
            len(ids) > 0,
            f"none of the {len(self.relations)} relations is between labels of two pictures; "
            f"the first is {tuple(self.relations[0])}, the first labels are {', '.join(list(self.vocabulary_)[:5])}",
        )
        return ids

    def _monitor(
        self, X: Any, Y: Any, threads: int, max_rows: int | None, what: str = "validation X", metric: str = "MAP"
    ) -> ValidationMap:
        """`metric` may be "pairs" too; without quadruplets among the validation rows there are figures of pictures."""
        pictures = super()._monitor(X, Y, threads, max_rows, what, "MAP" if metric == PAIRS else metric)
        truth = self._truth(Y, n_rows(self._checked(X, what)))
        relations = self._ids_of_relations()
        relations = relations[count_quadruplets(truth, relations) > 0] if len(relations) else relations
        costly = (
            len(self.vocabulary_) ** 2 > MOST_PAIRS and metric != PAIRS
        )  # only looked at, and slower than the epochs
        if not len(relations) or max_rows is None or costly:
            told = f"no relation has two pictures in {what}, so that no epoch can be chosen by {PAIRS!r}; choose MAP"
            require(metric != PAIRS, told)
            return pictures
        drawn = Quadruplets(truth, relations).sample(max_rows, np.random.default_rng([self.seed, 4]))
        inputs = self.scaling_(self._checked(X, what))
        return PairMonitor(pictures, inputs, drawn, self._pairs_in, decides=metric == PAIRS)

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

    def unused(self) -> list[tuple[str, str]]:
        """Relations that training left out, because there are no two pictures of their labels."""
        self._check_fitted()
        names = list(self.vocabulary_)
        used = {(names[one], names[other]) for one, other in self.relations_}
        told = dict.fromkeys(tuple(map(normalise, map(str, pair))) for pair in self.relations)
        return [(one, other) for one, other in told if (one, other) not in used]

    # ---- use

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
        return self._pairs_in(PartsSpace(self.space_, self.words_, float(self.relation_weight)))

    def _scores_of_two(self, objects: Any, parts: Any) -> tuple[Float32, Float32]:
        on_objects, on_parts = self.scores(objects), self.scores(parts)
        n = len(on_objects), len(on_parts)
        require(n[0] == n[1], f"there are {n[0]} rows of objects and {n[1]} of parts; give a part for each object")
        return on_objects, on_parts

    def _couples(self, couples: Any) -> Int64:
        couples = couples.tolist() if isinstance(couples, np.ndarray) else couples
        require(_are_pairs(couples), "couples must be a list of pairs (object label, part label)")
        return self._label_ids([label for couple in couples for label in couple]).reshape(-1, 2)

    # ---- storage

    def facts(self) -> dict[str, Any]:
        """Sizes and figures that tell what the model is, JSON-able; "relations" are those that training used."""
        return {**super().facts(), "tables_of_labels": self.tables, "relations": len(self.relations_)}

    def to_parts(self) -> Folder:
        """What the model is made of: JSON-able config and named arrays."""
        made = super().to_parts()
        tensors = {**made.tensors, "relations": self.relations_}
        if self.tables == "unshared":
            tensors["words"] = self.words_[:, : self.dim]
        del made.config["parameters"]["similarity"]
        return replace(made, tensors=tensors)

    @classmethod
    def from_parts(cls, parts: Folder) -> Self:
        """The model that `to_parts` described; label tables stay memory-mapped."""
        model: Self = super().from_parts(parts)
        model.relations_ = np.asarray(parts.tensors["relations"], np.int64)
        model.words_ = model.space_.labels if model.tables == "shared" else parts.tensors["words"]
        if model.words_.shape != model.space_.labels.shape or model.relations_.shape[1:] != (2,):
            raise ValueError("the sizes of words or relations do not agree with the rest")
        if len(model.relations_) and not 0 <= model.relations_.min() <= model.relations_.max() < len(model.words_):
            raise ValueError("relations holds a label that there is not")
        return model


def _are_pairs(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and all(isinstance(one, (list, tuple)) and len(one) == 2 for one in given)
