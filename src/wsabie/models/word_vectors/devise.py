"""DeViSE: a linear map of rows into the space of word vectors, which ranks labels without rows too."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from wsabie.core.arrays import Float32, Float64, Matrix
from wsabie.core.errors import NotCalibratedError
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base import auto_defaults
from wsabie.models.base.feature_matrix import Inputs, count_rows
from wsabie.models.base.hyperparameters import PerTable, resolve_per_table, resolve_settings
from wsabie.models.base.row_scaling import Rows
from wsabie.models.base.trained_model import TrainedModel
from wsabie.models.base.validation_monitor import ValidationMonitor
from wsabie.models.word_vectors.word_vector_ranker import WordVectorRanker
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_array
from wsabie.training.losses import LossName, RankWeight, Surrogate
from wsabie.training.settings import Schedule, TrainingSettings
from wsabie.training.targets import Positives
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.label_terms import TermExpansion, TermSelection
from wsabie.vocabulary.word_vectors import WordVectors


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
    rows : {"auto", "tfidf", None}, default "auto"
        See `Wsabie`.
    margin : float, default 0.1
    rank_weight : default "top1"
        See `Wsabie`; "top1" gives all violators the same weight.
    max_norm, init_scale
        Settings of the map's rows, see `Wsabie`.
    loss, epochs, learning_rate, schedule, max_trials, sampler, rank_from, surrogate, order_statistic, l2, positives
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
    >>> words = WordVectors(["red", "green", "lime"], np.array([[1, 0, 0], [0, 1, 0], [0, 0.9, 0.4]], np.float32))
    >>> X = np.repeat(np.eye(3), 10, axis=0)[:20]
    >>> model = Devise(words, labels=["lime"], epochs=20, threads=1).fit(X, ["red"] * 10 + ["green"] * 10)
    >>> [top[0][0] for top in model.annotate(X[[0, 10]], k=1)]
    ['red', 'green']
    >>> [top[0][0] for top in model.annotate(X[[0, 10]], k=1, candidates=["red", "lime"])]
    ['red', 'lime']
    """

    kind = "devise"
    space_: JointSpace

    def __init__(
        self,
        vectors: WordVectors | None = None,
        *,
        knowledge: KnowledgeGraph | None = None,
        labels: Sequence[str] = (),
        use: TermSelection = "first",
        expand: TermExpansion = "all",
        terms_per_label: int = 4,
        loss: LossName = "warp",
        rows: Rows = "auto",
        max_norm: float | Literal["auto"] | None = "auto",
        epochs: int | Literal["auto"] = "auto",
        learning_rate: PerTable = "auto",
        schedule: Schedule = "linear",
        margin: float = 0.1,
        rank_weight: RankWeight = "top1",
        max_trials: int | Literal["auto"] | None = "auto",
        sampler: str | Mapping[str, Any] = "uniform",
        rank_from: Literal["auto", "draws", "exact"] | int = "auto",
        surrogate: Surrogate = "hinge",
        order_statistic: Sequence[int] | Sequence[float] | None = None,
        l2: float | Mapping[str, float] = 0.0,
        positives: Positives = "mean",
        init_scale: float | None = None,
        patience: int | None = None,
        threads: int | None = None,
        deterministic: bool = True,
        seed: int = 0,
    ) -> None:
        self.vectors = vectors
        self.knowledge = knowledge
        self.labels = labels
        self.use = use
        self.expand = expand
        self.terms_per_label = terms_per_label
        self.loss = loss
        self.rows = rows
        self.max_norm = max_norm
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.margin = margin
        self.rank_weight = rank_weight
        self.max_trials = max_trials
        self.sampler = sampler
        self.rank_from = rank_from
        self.surrogate = surrogate
        self.order_statistic = order_statistic
        self.l2 = l2
        self.positives = positives
        self.init_scale = init_scale
        self.patience = patience
        self.threads = threads
        self.deterministic = deterministic
        self.seed = seed

    # ---- training

    def _opened(self, X: Any, Y: Any, label_names: Sequence[str] | None) -> tuple[Inputs, Matrix]:
        """Return checked rows, and the columns of their labels that have a vector."""
        inputs, targets = super()._opened(X, Y, label_names)
        self._targets, self._target_ids = self._collect_targets(targets)
        return inputs, targets[:, self._target_ids]

    def _resolved(self, shape: auto_defaults.TrainingShape) -> TrainingSettings:
        return resolve_settings({**self.get_params(), "label_bias": False}, shape)

    def _new_space(self, n_features: int) -> JointSpace:
        n, dim = self._targets.shape
        std = resolve_per_table(self.init_scale if self.init_scale is not None else "auto", dim**-0.5, "init_scale")
        V = tables.draw_gaussian(n_features, dim, std["V"], np.random.default_rng([self.seed, 0]))
        W = tables.pad_rows(self._targets)
        return JointSpace(dim, "dot", V, W, np.zeros(n, np.float32), given=(False, True))

    def _identity(self, settings: TrainingSettings, data: list[Any]) -> dict[str, Any]:
        return super()._identity(settings, [*data, zlib.crc32(self._targets.tobytes())])

    def _monitor(
        self, X: Any, Y: Any, threads: int, max_rows: int | None, input_name: str = "validation X", metric: str = "MAP"
    ) -> ValidationMonitor:
        inputs = self.scaling_(self._checked(X, input_name))
        return ValidationMonitor(
            inputs, self._truth(Y, count_rows(inputs))[:, self._target_ids], threads, max_rows, metric
        )

    def _calibrated(self, monitor: ValidationMonitor) -> None:
        return None

    @property
    def predict_proba(self) -> Callable[[Any], Float64]:
        """Not available, because a score is a cosine with a word.

        Raises
        ------
        NotCalibratedError
        """
        raise NotCalibratedError(
            "scores of a devise model are cosines with words; train another kind for probabilities"
        )

    # ---- use

    def _points(self, inputs: Inputs) -> Float32:
        scaled = self.scaling_(inputs)
        with self._threads(count_rows(scaled)) as threads:
            return np.ascontiguousarray(self.space_.points(scaled, threads.split)[:, : self.space_.dim])

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs: the map and the terms."""
        scaling = sum(array.nbytes for array in self.scaling_.tensors().values())
        return int(4 * self.space_.dim * (self.space_.n_features + len(self.terms_.names)) + scaling)

    # ---- storage

    def to_parts(self) -> ModelState:
        """Return the model as JSON-able config and named arrays."""
        more_config, more_tensors = self._trained_config()
        tensors = {
            "features": self.space_.features[:, : self.space_.dim],
            "seen": self._target_ids,
            **self._term_tensors(),
        }
        return ModelState(self.kind, {**self._dump_config(), **more_config}, tensors | more_tensors)

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Restore the model from its parts; the terms stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restore(config)
        model._restore_trained(config, t)
        model._restore_terms(config, t)
        dim = model.terms_.table.shape[1]
        V = check_array(t, "features", "float32", (model.n_features_in_ + model.scaling_.n_added, dim))
        V, none = tables.pad_rows(V), np.zeros((0, dim), np.float32)
        model._target_ids = check_array(t, "seen", "int64", (None,), below=len(model.vocabulary_))
        model.space_ = JointSpace(dim, "dot", V, none, np.zeros(0, np.float32), given=(False, True))
        return model
