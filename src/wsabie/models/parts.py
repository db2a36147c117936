"""Objects and their parts: labels for pictures, and for pictures whose labels are related ([P] sections 3, 4.3, 6.2).

f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p) + s f_II(I_o, I_p)
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.plain import plain
from wsabie.base.validation import require
from wsabie.labels.names import Vocabulary, normalise, unknown_label
from wsabie.labels.quadruplets import Quadruplets, count_quadruplets
from wsabie.labels.vectors import Vectors
from wsabie.models.inputs import Inputs, n_rows
from wsabie.models.monitor import ValidationMap
from wsabie.models.pair_monitor import MOST_PAIRS, PAIRS, PairMonitor
from wsabie.models.parameters import PerTable
from wsabie.models.part_labels import PartLabels
from wsabie.models.scaling import Rows
from wsabie.space import tables
from wsabie.space.parts import PartsSpace
from wsabie.storage.folder import Parts as Folder
from wsabie.storage.schema import check_array
from wsabie.training.losses import RankWeight
from wsabie.training.parts import QuadrupletVisits
from wsabie.training.settings import Schedule, Settings
from wsabie.training.targets import Positives
from wsabie.training.trainer import Blocks

Auto = Literal["auto"]

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


class Parts(PartLabels):
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
    relation : str, default "has-part"
        What the first of a pair is to the second ("is-a": taxi, car). Nothing is learned from it; search says it.
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
    metrics = (PAIRS,)

    def __init__(
        self,
        relations: Sequence[tuple[str, str]] = (),
        dim: int = 100,
        *,
        relation: str = "has-part",
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
        self.relation = relation
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
        named = isinstance(self.relation, str) and self.relation.isprintable() and bool(self.relation.strip())
        require(named, f"relation is {self.relation!r}; choose a name of one line, such as is-a")
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

    def check_labels(self, Y: Matrix, label_names: Sequence[str]) -> None:
        """Refuse labels of pictures that no relation joins, before these are described; InputError.

        Y is (n, n_labels), in the order of the names.
        """
        told = copy(self)
        told.vocabulary_ = Vocabulary(label_names)
        told._told(Y)

    def _told(self, targets: Matrix) -> Int64:
        """The relations that have a quadruplet, as numbers."""
        ids = self._ids_of_relations()
        ids = ids[count_quadruplets(targets, ids) > 0] if len(ids) else ids
        if not len(ids):
            first, names = tuple(map(str, self.relations[0])), list(self.vocabulary_)
            missing = next((name for name in first if name not in self.vocabulary_), None)
            because = "which no two pictures have" if missing is None else unknown_label(missing, names)
            raise InputError(
                f"none of the {len(self.relations)} relations is between labels of two pictures; the first is {first}: "
                f"{because}"
            )
        return ids

    def _monitor(
        self, X: Any, Y: Any, threads: int, max_rows: int | None, what: str = "validation X", metric: str = "MAP"
    ) -> ValidationMap:
        """Without quadruplets among the validation rows there are figures of pictures."""
        pictures = super()._monitor(X, Y, threads, max_rows, what, "MAP" if metric == PAIRS else metric)
        truth = self._truth(Y, n_rows(self._checked(X, what)))
        relations = self._ids_of_relations()
        relations = relations[count_quadruplets(truth, relations) > 0] if len(relations) else relations
        costly = len(self.vocabulary_) ** 2 > MOST_PAIRS and metric != PAIRS  # slower than the epochs, and only shown
        if not len(relations) or max_rows is None or costly:
            told = f"no relation has two pictures in {what}, so that no epoch can be chosen by {PAIRS!r}; choose MAP"
            require(metric != PAIRS, told)
            return pictures
        drawn = Quadruplets(truth, relations).sample(max_rows, np.random.default_rng([self.seed, 4]))
        inputs = self.scaling_(self._checked(X, what))
        return PairMonitor(pictures, inputs, drawn, self._pairs_in, decides=metric == PAIRS)

    def unused(self) -> list[tuple[str, str]]:
        """Relations that training left out, because there are no two pictures of their labels."""
        self._check_fitted()
        names = list(self.vocabulary_)
        used = {(names[one], names[other]) for one, other in self.relations_}
        told = dict.fromkeys(tuple(map(normalise, map(str, pair))) for pair in self.relations)
        return [(one, other) for one, other in told if (one, other) not in used]

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
        labels, t = model.space_.labels, parts.tensors
        model.relations_ = check_array(t, "relations", "int64 int32", (None, 2), below=len(labels)).astype(np.int64)
        model.words_ = labels if model.tables == "shared" else check_array(t, "words", "float32", labels.shape)
        return model
