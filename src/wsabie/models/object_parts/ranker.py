"""Objects and their parts: labels of pictures and of related pairs of pictures (Mesnil et al. 2014).

f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p) + s f_II(I_o, I_p)
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from wsabie.core.arrays import Array, Int64, Matrix, count_rows
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.relation_spaces import PartsSpace
from wsabie.models.base.feature_matrix import FeatureMatrix, iterate_row_ranges, slice_rows, take_rows
from wsabie.models.base.hyperparameters import is_finite_number
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.base.validation_monitor import MAX_ROWS, ValidationMonitor, compute_scores
from wsabie.models.object_parts.pair_ranker import PairRanker
from wsabie.search.label_pairs import LabelPairIndex
from wsabie.storage.schema_validation import check_array
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.quadruplet_visits import QuadrupletVisits
from wsabie.training.training_data import TrainingData
from wsabie.vocabulary.label_names import Vocabulary, normalise_label_name
from wsabie.vocabulary.label_quadruplets import QuadrupletBatch, Quadruplets, count_quadruplets
from wsabie.vocabulary.name_suggestions import format_unknown_label

PAIRS = "pairs"
"""Name of the figure: mean share of other pairs of labels that rank below the true one."""

MAX_PAIRS = 1 << 22
"""Most pairs of labels that a true pair is ranked among; of more pairs a sample is drawn."""
_SAMPLED_PAIRS = 1 << 18
_MAX_PARAMETER = 1e30
"""Limit on weights and scores, so that their sums are float32 too."""


class PairMonitor(ValidationMonitor):
    """A `ValidationMonitor` of pictures with the additional figure `PAIRS` of drawn quadruplets.

    Parameters
    ----------
    pictures : ValidationMonitor
        Monitor with the rows and the metric of single pictures.
    inputs : Csr or (n, n_features) float32
        Scaled rows of the quadruplets.
    quadruplets : QuadrupletBatch
    build_index : callable
        Builds the index that scores pairs of labels from a PartsSpace.
    decides : bool
        `PAIRS` chooses the epoch, instead of the figure of the pictures.
    """

    def __init__(
        self,
        pictures: ValidationMonitor,
        inputs: FeatureMatrix,
        quadruplets: QuadrupletBatch,
        build_index: Callable[[PartsSpace], LabelPairIndex],
        *,
        decides: bool,
    ) -> None:
        super().__init__(pictures.inputs, pictures.Y, pictures.threads, None, pictures.metric)
        self.objects, self.parts = (take_rows(inputs, rows) for rows in (quadruplets.objects, quadruplets.parts))
        self.quadruplets, self.build_index, self.decides = quadruplets, build_index, decides

    def figures(self, space: Any) -> dict[str, float]:
        """Return figures by name; the one that chooses the epoch comes first."""
        if isinstance(space, JointSpace):
            return super().figures(space)
        picture_figures, pair_figures = super().figures(space.items), {PAIRS: self._measure_pairs(space)}
        return pair_figures | picture_figures if self.decides else picture_figures | pair_figures

    def warm_up(self, space: Any) -> None:
        """Do nothing: a figure is faster than an epoch and compiles its kernels itself."""

    def _measure_pairs(self, space: PartsSpace) -> float:
        n, n_labels, pairs = len(self.quadruplets.objects), space.n_labels, self.build_index(space)
        couples = self._draw_couples(n_labels, pairs.n_pairs) if n_labels**2 > MAX_PAIRS else None
        ranks: list[Int64] = []
        with KernelThreads(self.threads) as threads:
            for lo, hi in iterate_row_ranges(n, 2 * n_labels):
                a, b = (
                    compute_scores(space.items, slice_rows(inputs, lo, hi), threads)
                    for inputs in (self.objects, self.parts)
                )
                labels = self.quadruplets.object_labels[lo:hi], self.quadruplets.part_labels[lo:hi]
                ranks.append(pairs.counts(a, b, *labels, couples=couples).ranks)
        n_candidates = pairs.n_pairs if couples is None else len(couples)
        return float(1 - (np.concatenate(ranks).mean() - 1) / max(n_candidates - 1, 1))

    def _draw_couples(self, n_labels: int, n_pairs: int) -> Int64:
        """Draw pairs of labels and add the true ones; a label with itself only if these are candidates."""
        couples = np.random.default_rng(0).integers(n_labels, size=(_SAMPLED_PAIRS, 2))
        if n_pairs < n_labels**2:
            couples = couples[couples[:, 0] != couples[:, 1]]
        true = np.stack([self.quadruplets.object_labels, self.quadruplets.part_labels], 1)
        return np.unique(np.concatenate([couples, true]), axis=0)


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
    loss, scaling, max_norm, epochs, learning_rate, schedule, margin, rank_weight, max_sampled, l2, pair_weighting, \
init_scale, init_labels, patience, threads, deterministic, seed
        See `Wsabie`. An epoch visits every annotated pair of picture and label once, with a newly drawn relation. The
        paper has `rank_weight="top1"`, `max_sampled` 10 or 100 (its gamma) and `max_norm=1`.

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
    _own_limits = ("relation_weight", "score_weight", "known_score", "picture_weight")

    # ---- training

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        for name in self._own_limits:
            is_usable = is_finite_number(value := getattr(self, name)) and abs(value) < _MAX_PARAMETER
            require(is_usable, f"{name} is {value!r}; choose a number below {_MAX_PARAMETER:g}")
        is_name = isinstance(self.relation, str) and self.relation.isprintable() and bool(self.relation.strip())
        require(is_name, f"relation is {self.relation!r}; choose a name of one line, such as is-a")
        message = (
            f"picture_weight is {self.picture_weight!r}; choose a number from 0, and above 0 deterministic training"
        )
        require(self.picture_weight == 0 or (self.picture_weight > 0 and self.deterministic), message)
        super().check_parameters()

    def _list_initial_state(self) -> list[object]:
        pairs = [list(pair) for pair in self.relations]
        return [*super()._list_initial_state(), self.tables, self.relation_weight, self.picture_weight, pairs]

    def _prepare_run(self, rows: TrainingRows) -> tuple[PartsSpace, TrainingData]:
        self.relations_ = self._find_relation_ids() if rows.is_update else self._find_usable_relations(rows.targets)
        seed = self.seed + (len(self.history_) if rows.is_update else 0)
        data = QuadrupletVisits(
            rows.inputs, rows.targets, self.relations_, rows.weights, self.pair_weighting, seed,
            strict=not rows.is_update, picture_weight=self.picture_weight,
        )  # fmt: skip
        words = self.space_.labels
        if self.tables == "unshared":
            n_old = len(self.words_) if rows.is_update else 0
            rng = np.random.default_rng([self.seed, 3, n_old])
            words = tables.draw_gaussian(len(self.vocabulary_), self.dim, self.dim**-0.5, rng)
            words[:n_old, : self.dim] = self.words_[:, : self.dim] if n_old else 0
        self.words_ = words
        return PartsSpace(self.space_, words, float(self.relation_weight)), data

    def check_labels(self, Y: Matrix, label_names: Sequence[str]) -> None:
        """Raise InputError if no relation joins labels of two pictures; called before features are extracted.

        Parameters
        ----------
        Y : sparse matrix, (n, n_labels)
        label_names : sequence of str
            In the order of the columns of Y.

        Raises
        ------
        InputError
            Training would have no quadruplet.
        """
        probe = copy(self)
        probe.vocabulary_ = Vocabulary(label_names)
        probe._find_usable_relations(Y)

    def _find_usable_relations(self, targets: Matrix) -> Int64:
        """Return the relations that have a quadruplet, as label numbers."""
        ids = self._find_relation_ids()
        ids = ids[count_quadruplets(targets, ids) > 0] if len(ids) else ids
        if not len(ids):
            first, names = tuple(map(str, self.relations[0])), list(self.vocabulary_)
            missing = next((name for name in first if name not in self.vocabulary_), None)
            because = "which no two pictures have" if missing is None else format_unknown_label(missing, names)
            fact = f"none of the {len(self.relations)} relations is between labels of two pictures"
            raise InputError(f"{fact}; the first is {first}: {because}")
        return ids

    def _build_monitor(
        self, X: Matrix, Y: Labels, max_rows: int | None = MAX_ROWS, input_name: str = "X", metric: str = "MAP"
    ) -> ValidationMonitor:
        """Build a monitor of pairs, or of pictures if the validation rows have no quadruplet."""
        pictures = super()._build_monitor(X, Y, max_rows, input_name, "MAP" if metric == PAIRS else metric)
        inputs = self._check_rows(X, input_name)
        truth = self._build_truth(Y, count_rows(inputs))
        relations = self._find_relation_ids()
        relations = relations[count_quadruplets(truth, relations) > 0] if len(relations) else relations
        # slower than the epochs, and would only be shown
        costly = len(self.vocabulary_) ** 2 > MAX_PAIRS and metric != PAIRS
        if not len(relations) or max_rows is None or costly:
            message = (
                f"no relation has two pictures in {input_name}, so that no epoch can be chosen by {PAIRS!r}; choose MAP"
            )
            require(metric != PAIRS, message)
            return pictures
        quadruplets = Quadruplets(truth, relations).sample(max_rows, np.random.default_rng([self.seed, 4]))
        rows = self.scaling_(inputs)
        return PairMonitor(pictures, rows, quadruplets, self._build_pair_index, decides=metric == PAIRS)

    def list_unused_relations(self) -> list[tuple[str, str]]:
        """Return relations that training left out because no two pictures have their labels.

        Returns
        -------
        list of (object label, part label)
        """
        self._check_fitted()
        names = list(self.vocabulary_)
        trained = {(names[object_label], names[part_label]) for object_label, part_label in self.relations_}
        texts = ((str(object_label), str(part_label)) for object_label, part_label in self.relations)
        relations = dict.fromkeys((normalise_label_name(first), normalise_label_name(last)) for first, last in texts)
        return [pair for pair in relations if pair not in trained]

    # ---- storage

    def facts(self) -> JsonObject:
        """Return sizes and figures of the model, JSON-able; "relations" are those that training used.

        Returns
        -------
        dict
        """
        return {**super().facts(), "tables_of_labels": self.tables, "relations": len(self.relations_)}

    def _dump_tensors(self) -> dict[str, Array]:
        words = {"words": self.words_[:, : self.dim]} if self.tables == "unshared" else {}
        return {**super()._dump_tensors(), "relations": self.relations_, **words}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        labels = self.space_.labels
        relations = check_array(tensors, "relations", "int64 int32", (None, 2), upper_bound=len(labels))
        self.relations_ = relations.astype(np.int64)
        is_shared = self.tables == "shared"
        self.words_ = labels if is_shared else check_array(tensors, "words", "float32", labels.shape)
