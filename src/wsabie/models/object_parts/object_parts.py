"""Objects and their parts: labels of pictures and of related pairs of pictures (Mesnil et al. 2014).

f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p) + s f_II(I_o, I_p)
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import to_json_value
from wsabie.core.validation import require
from wsabie.embedding import tables
from wsabie.embedding.parts_space import PartsSpace
from wsabie.models.base.feature_matrix import Inputs, count_rows
from wsabie.models.base.hyperparameters import PerTable
from wsabie.models.base.row_scaling import Rows
from wsabie.models.base.validation_monitor import ValidationMonitor
from wsabie.models.object_parts.pair_monitor import MOST_PAIRS, PAIRS, PairMonitor
from wsabie.models.object_parts.pair_ranker import PairRanker
from wsabie.storage.model_folder import ModelState as Folder
from wsabie.storage.schema_validation import check_array
from wsabie.training.losses import RankWeight
from wsabie.training.quadruplet_visits import QuadrupletVisits
from wsabie.training.settings import Schedule, TrainingSettings
from wsabie.training.targets import Positives
from wsabie.training.trainer import Blocks
from wsabie.vocabulary.label_names import Vocabulary, format_unknown_label, normalise_label_name
from wsabie.vocabulary.label_quadruplets import Quadruplets, count_quadruplets
from wsabie.vocabulary.word_vectors import WordVectors

Auto = Literal["auto"]

_FIXED: dict[str, Any] = {
    "similarity": "dot",
    "sampler": "uniform",
    "rank_from": "auto",
    "surrogate": "hinge",
    "order_statistic": None,
    "label_bias": False,
}
"""Fixed parameters of `Wsabie`: queries of quadruplets need inner products."""

_LARGEST = 1e30
"""Limit on weights and scores, so that their sums are float32 too."""


class ObjectParts(PairRanker):
    """Joint embedding of pictures, labels and a relation of labels, which labels a car and its wheel.

    Training needs no pictures with marked parts. Pictures of cars, other pictures of wheels, and the relation "wheels
    are parts of cars" form quadruplets (object picture, its label, part picture, its label). One of the two labels is
    ranked against all others, given the other three (Mesnil et al. 2014, section 4.3, "proxy supervision"). Other
    relations work too, such as kinds of objects or marriages.

    A single picture is annotated as by `Wsabie`, which also trains labels without a relation.

    Parameters
    ----------
    relations : sequence of (object label, part label)
        Pairs of names; pairs with a label that has no pictures are left out (`relations_` has the others).
    relation : str, default "has-part"
        Relation of the first label to the second ("is-a": taxi, car). Search shows it; training ignores it.
    dim : int, default 100
    tables : {"unshared", "shared"}, default "unshared"
        Separate label vectors for pictures and for other labels, or the same for both (section 6.2).
    relation_weight : float, default .1
        r in training. With a small r, label-label scores are learned mostly where pictures do not decide.
    label_scores : {"learned", "known", "none"}, default "learned"
        Score of two labels together when pictures are labelled: r f_L ("Image-Word" in the paper); `known_score` for
        pairs in the training relations, whatever was learned ("IO"); nothing ("Image").
    score_weight : float, default 1
        r in scoring. The paper has 1 in training and .1 in scoring, which was worse in all our experiments.
    known_score : float, default 100
    picture_weight : float, default 0
        s: above 0, the two pictures of a quadruplet have a score f_II(I_o, I_p) = (V I_o) . (V I_p), which the paper
        leaves out (section 3). It is the same for all labels that are ranked, so an epoch also ranks pictures: the
        part's, given its label and the object's picture and label, and vice versa. `rank_pictures` uses it. Proxy
        supervision draws the two pictures independently, so the score only learns which labels' pictures go together.
        Needs `deterministic`.
    same : bool, default False
        Allow a label as its own part; the paper ranks all pairs.
    loss, rows, max_norm, epochs, learning_rate, schedule, margin, rank_weight, max_trials, l2, positives, init_scale, \
init_labels, patience, threads, deterministic, seed
        See `Wsabie`. An epoch visits every annotated pair of picture and label once, with a newly drawn relation. The
        paper has `rank_weight="top1"`, `max_trials` 10 or 100 (its gamma) and `max_norm=1`.

    Attributes
    ----------
    relations_ : (m, 2) int64
        Label numbers of the relations that training used.
    words_ : (n_labels, padded dim) float32
        W: label vectors for other labels. With shared tables they are those of `space_`.

    Examples
    --------
    >>> X = np.eye(4, dtype=np.float32)
    >>> model = ObjectParts([("car", "wheel"), ("house", "door")], dim=8, epochs=60, relation_weight=1, threads=1)
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
        init_labels: WordVectors | None = None,
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
        """Raise InputError for parameters that no training can use."""
        for name, choices in (("tables", ("unshared", "shared")), ("label_scores", ("learned", "known", "none")),
                              ("loss", ("warp", "auc")), ("same", (False, True))):  # fmt: skip
            value = getattr(self, name)
            require(value in choices, f"{name} is {value!r}; choose one of {', '.join(map(str, choices))}")
        for name in ("relation_weight", "score_weight", "known_score", "picture_weight"):
            value = getattr(self, name)
            usable = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            require(usable and abs(value) < _LARGEST, f"{name} is {value!r}; choose a number below {_LARGEST:g}")
        is_name = isinstance(self.relation, str) and self.relation.isprintable() and bool(self.relation.strip())
        require(is_name, f"relation is {self.relation!r}; choose a name of one line, such as is-a")
        message = (
            f"picture_weight is {self.picture_weight!r}; choose a number from 0, and above 0 deterministic training"
        )
        require(self.picture_weight == 0 or (self.picture_weight > 0 and self.deterministic), message)
        super().check_parameters()

    def _parameters(self) -> dict[str, Any]:
        return {**_FIXED, **self.get_params()}

    def _identity(self, settings: TrainingSettings, data: list[Any]) -> dict[str, Any]:
        relation_data = [
            self.tables,
            self.relation_weight,
            self.picture_weight,
            [list(pair) for pair in self.relations],
        ]
        return super()._identity(settings, [*data, *to_json_value(relation_data)])

    def _visited(self, inputs: Inputs, targets: Matrix, weights: Float32 | None, more: bool) -> tuple[Blocks, int]:
        self.relations_ = self._ids_of_relations() if more else self._find_usable_relations(targets)
        seed = self.seed + (len(self.history_) if more else 0)
        visits = QuadrupletVisits(
            inputs, targets, self.relations_, weights, self.positives, seed, strict=not more,
            picture_weight=self.picture_weight,
        )  # fmt: skip
        return visits, visits.n_pairs

    def _trainable_space(self, more: bool) -> PartsSpace:
        words, old = None, len(self.words_) if more else 0
        if self.tables == "unshared":
            rng = np.random.default_rng([self.seed, 3, old])
            words = tables.draw_gaussian(len(self.vocabulary_), self.dim, self.dim**-0.5, rng)
            words[:old, : self.dim] = self.words_[:, : self.dim] if more else 0
        space = PartsSpace.of(self.space_, words, float(self.relation_weight))
        self.words_ = space.words
        return space

    def check_labels(self, Y: Matrix, label_names: Sequence[str]) -> None:
        """Raise InputError if no relation joins labels of two pictures; called before features are extracted.

        Y is (n, n_labels), in the order of the names.
        """
        probe = copy(self)
        probe.vocabulary_ = Vocabulary(label_names)
        probe._find_usable_relations(Y)

    def _find_usable_relations(self, targets: Matrix) -> Int64:
        """Return the relations that have a quadruplet, as label numbers."""
        ids = self._ids_of_relations()
        ids = ids[count_quadruplets(targets, ids) > 0] if len(ids) else ids
        if not len(ids):
            first, names = tuple(map(str, self.relations[0])), list(self.vocabulary_)
            missing = next((name for name in first if name not in self.vocabulary_), None)
            because = "which no two pictures have" if missing is None else format_unknown_label(missing, names)
            raise InputError(
                f"none of the {len(self.relations)} relations is between labels of two pictures; the first is {first}: "
                f"{because}"
            )
        return ids

    def _monitor(
        self, X: Any, Y: Any, threads: int, max_rows: int | None, input_name: str = "validation X", metric: str = "MAP"
    ) -> ValidationMonitor:
        """Return a monitor of pairs, or of pictures if the validation rows have no quadruplet."""
        pictures = super()._monitor(X, Y, threads, max_rows, input_name, "MAP" if metric == PAIRS else metric)
        truth = self._truth(Y, count_rows(self._checked(X, input_name)))
        relations = self._ids_of_relations()
        relations = relations[count_quadruplets(truth, relations) > 0] if len(relations) else relations
        costly = (
            len(self.vocabulary_) ** 2 > MOST_PAIRS and metric != PAIRS
        )  # slower than the epochs, and would only be shown
        if not len(relations) or max_rows is None or costly:
            message = (
                f"no relation has two pictures in {input_name}, so that no epoch can be chosen by {PAIRS!r}; choose MAP"
            )
            require(metric != PAIRS, message)
            return pictures
        quadruplets = Quadruplets(truth, relations).sample(max_rows, np.random.default_rng([self.seed, 4]))
        inputs = self.scaling_(self._checked(X, input_name))
        return PairMonitor(pictures, inputs, quadruplets, self._pairs_in, decides=metric == PAIRS)

    def unused(self) -> list[tuple[str, str]]:
        """Return relations that training left out because no two pictures have their labels."""
        self._check_fitted()
        names = list(self.vocabulary_)
        used = {(names[object_label], names[part_label]) for object_label, part_label in self.relations_}
        relations = dict.fromkeys(tuple(map(normalise_label_name, map(str, pair))) for pair in self.relations)
        return [
            (object_label, part_label)
            for object_label, part_label in relations
            if (object_label, part_label) not in used
        ]

    # ---- storage

    def facts(self) -> dict[str, Any]:
        """Return sizes and figures of the model, JSON-able; "relations" are those that training used."""
        return {**super().facts(), "tables_of_labels": self.tables, "relations": len(self.relations_)}

    def to_parts(self) -> Folder:
        """Return the model as JSON-able config and named arrays."""
        state = super().to_parts()
        tensors = {**state.tensors, "relations": self.relations_}
        if self.tables == "unshared":
            tensors["words"] = self.words_[:, : self.dim]
        del state.config["parameters"]["similarity"]
        return replace(state, tensors=tensors)

    @classmethod
    def from_parts(cls, parts: Folder) -> Self:
        """Restore the model from its parts; label tables stay memory-mapped."""
        model: Self = super().from_parts(parts)
        labels, t = model.space_.labels, parts.tensors
        model.relations_ = check_array(t, "relations", "int64 int32", (None, 2), below=len(labels)).astype(np.int64)
        model.words_ = labels if model.tables == "shared" else check_array(t, "words", "float32", labels.shape)
        return model
