"""DeViSE: a linear map of rows into the space of word vectors, which ranks labels without rows too."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from wsabie.core.arrays import Array, Float32, Float64, Matrix, count_rows
from wsabie.core.errors import NotCalibratedError
from wsabie.core.json_conversion import JsonObject
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace, SimilarityName
from wsabie.models.base.feature_matrix import FeatureMatrix
from wsabie.models.base.hyperparameters import resolve_init_scale
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.trained_model import TrainedModel
from wsabie.models.base.validation_monitor import MAX_ROWS, ValidationMonitor
from wsabie.models.word_vector_ranker import WordVectorRanker
from wsabie.storage.schema_validation import check_array
from wsabie.training.rank_losses import RankWeight


@dataclass(kw_only=True, eq=False, repr=False)
class Devise(WordVectorRanker, TrainedModel):
    """Linear map from rows to word vectors of their labels, with a ranking loss (Frome et al. 2013).

    The word vectors stay fixed. The loss is the paper's: hinges of margin .1 between inner products with vectors of
    unit length, one random violator a step, without rank weight. Negatives are labels of the training rows. A label
    without rows can be ranked if it has a vector: name it in `labels`, or add it later with `add_labels`.

    Parameters
    ----------
    vectors : WordVectors
        Word vectors (`wsabie.read_word_vectors`). They are not saved with the model, except the terms of its labels.
    knowledge : KnowledgeGraph or None
        Gives the terms of a label: the names of its concept. None: the terms are the parts between commas.
    labels : sequence of str
        Further labels without rows.
    use : {"first", "random", "mean"}, default "first"
        Target in training: the vector of the label's first term, of a random one, or the mean (Frome et al. 2013, A.2).
    expand : {"all", "random"}, default "all"
        In a prediction a term stands for all labels that it may mean, or for a random one.
    terms_per_label : int, default 4
        The nearest `terms_per_label` * k terms give a list of k labels.
    scaling : {"auto", "tfidf", None}, default "auto"
        See `Wsabie`.
    margin : float, default 0.1
    rank_weight : default "top1"
        See `Wsabie`; "top1" gives all violators the same weight.
    max_norm, init_scale
        Settings of the map's rows, see `Wsabie`.
    loss, epochs, learning_rate, schedule, max_sampled, sampler, rank_estimator, surrogate, order_statistic, l2, \
pair_weighting
        See `Wsabie`.
    patience, threads, deterministic, seed
        See `Wsabie`.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Labels of the rows, then `labels`, then added ones.
    terms_ : TermTable
        Terms with their vectors, and the labels that each may mean.
    missing_ : list of str
        Labels without a vector; they are never predicted.
    space_, scaling_, history_, settings_, n_features_in_
        See `Wsabie`; the space's labels are those of training.

    Examples
    --------
    >>> from wsabie import WordVectors
    >>> words = WordVectors(["red", "green", "lime"], np.array([[1, 0, 0], [0, 1, 0], [0, 0.9, 0.4]], np.float32))
    >>> X = np.repeat(np.eye(3), 10, axis=0)[:20]
    >>> model = Devise(words, labels=["lime"], epochs=20, threads=1).fit(X, ["red"] * 10 + ["green"] * 10)
    >>> [top[0][0] for top in model.annotate(X[[0, 10]], k=1)]
    ['red', 'green']
    >>> [top[0][0] for top in model.annotate(X[[0, 10]], k=1, candidates=["red", "lime"])]
    ['red', 'lime']
    """

    kind = "devise"
    margin: float = 0.1
    rank_weight: RankWeight = "top1"
    similarity: SimilarityName = field(init=False, default="dot")
    label_bias: bool = field(init=False, default=False)
    space_: JointSpace = field(init=False)

    # ---- training

    def _open_rows(self, X: Matrix, Y: Labels, label_names: Sequence[str] | None) -> tuple[FeatureMatrix, Matrix]:
        """Return checked rows, and the columns of their labels that have a vector."""
        inputs, targets = super()._open_rows(X, Y, label_names)
        self._targets, self._target_ids = self._collect_targets(targets)
        return inputs, targets[:, self._target_ids]

    def _build_space(self, n_features: int) -> JointSpace:
        n, dim = self._targets.shape
        std = resolve_init_scale(self.init_scale, dim)
        V = tables.draw_gaussian(n_features, dim, std["V"], np.random.default_rng([self.seed, 0]))
        W = tables.pad_rows(self._targets)
        return JointSpace(dim, "dot", V, W, np.zeros(n, np.float32), frozen=(False, True))

    def _list_initial_state(self) -> list[object]:
        return [zlib.crc32(self._targets.tobytes())]

    def _build_monitor(
        self, X: Matrix, Y: Labels, max_rows: int | None = MAX_ROWS, input_name: str = "X", metric: str = "MAP"
    ) -> ValidationMonitor:
        """Build the monitor of the labels that training ranks."""
        inputs = self.scaling_(self._check_rows(X, input_name))
        truth = self._build_truth(Y, count_rows(inputs))[:, self._target_ids]
        return ValidationMonitor(inputs, truth, self._n_threads, max_rows, metric)

    def _fit_calibration(self, monitor: ValidationMonitor) -> None:
        return None

    @property
    def predict_proba(self) -> Callable[[Matrix], Float64]:
        """Not available, because a score is a cosine with a word.

        Raises
        ------
        NotCalibratedError
        """
        fact = "scores of a devise model are cosines with words"
        raise NotCalibratedError(f"{fact}; train another kind for probabilities")

    # ---- use

    def _compute_points(self, inputs: FeatureMatrix) -> Float32:
        scaled = self.scaling_(inputs)
        with self._start_threads(count_rows(scaled)) as threads:
            return np.ascontiguousarray(self.space_.compute_points(scaled, threads.split)[:, : self.space_.dim])

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs: the map and the terms."""
        scaling = sum(array.nbytes for array in self.scaling_.tensors().values())
        return int(4 * self.space_.dim * (self.space_.n_features + len(self.terms_.names)) + scaling)

    # ---- storage

    def _dump_tensors(self) -> dict[str, Array]:
        features = self.space_.features[:, : self.space_.dim]
        return {**super()._dump_tensors(), "features": features, "trained_label_ids": self._target_ids}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        dim, n_labels = self.terms_.table.shape[1], len(self.vocabulary_)
        V = check_array(tensors, "features", "float32", (self.n_features_in_ + self.scaling_.n_added, dim))
        V, none = tables.pad_rows(V), np.zeros((0, dim), np.float32)
        self._target_ids = check_array(tensors, "trained_label_ids", "int64", (None,), upper_bound=n_labels)
        self.space_ = JointSpace(dim, "dot", V, none, np.zeros(0, np.float32), frozen=(False, True))
