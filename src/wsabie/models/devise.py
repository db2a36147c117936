"""DeViSE: a linear map of rows into the space of given word vectors, where labels never seen can be ranked too."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Float64, Matrix
from wsabie.base.errors import UncalibratedError
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.terms import Expand, Use
from wsabie.labels.vectors import Vectors
from wsabie.models import defaults
from wsabie.models.inputs import Inputs, n_rows
from wsabie.models.meanings import MeaningRanker
from wsabie.models.monitor import ValidationMap
from wsabie.models.parameters import PerTable, per_table, resolve
from wsabie.models.scaling import Rows
from wsabie.models.trained import TrainedModel
from wsabie.space import tables
from wsabie.space.joint import JointSpace
from wsabie.storage.folder import Parts
from wsabie.storage.schema import check_array
from wsabie.training.losses import LossName, RankWeight, Surrogate
from wsabie.training.settings import Schedule, Settings
from wsabie.training.targets import Positives


class Devise(MeaningRanker, TrainedModel):
    """A linear map from rows to the word vectors of their labels, trained with a ranking loss (Frome and others, 2013).

    The vectors stay where they are. The loss is the paper's: hinges of margin .1 between inner products with vectors
    of unit length, one random violator a step, not weighted by its rank. Negatives are labels that rows have. A label
    that no row has needs a vector alone to be ranked: name it in `labels`, or add it later with `add_labels`.

    Parameters
    ----------
    vectors : Vectors
        Word vectors (`wsabie.read_vectors`). Not saved with the model; the terms of its labels are.
    knowledge : Knowledge or None
        Which terms a label has: the names of the concept that it means. None: what stands between its commas.
    labels : sequence of str
        Further labels, that no row has.
    use : {"first", "random", "mean"}, default "first"
        The target in training: the vector of the label's first term, of a random one, or the mean ([D] A.2).
    expand : {"all", "random"}, default "all"
        In a prediction a term stands for all labels that it may mean, or for a random one of them.
    terms_per_label : int, default 4
        The nearest `terms_per_label` * k terms make a list of k labels.
    rows : {"auto", "tfidf", None}, default "auto"
        As for `Wsabie`.
    margin : float, default 0.1
    rank_weight : default "top1"
        As for `Wsabie`; "top1" weighs all violators alike.
    max_norm, init_scale
        Of the map's rows; as for `Wsabie`.
    loss, epochs, learning_rate, schedule, max_trials, sampler, rank_from, surrogate, order_statistic, l2, positives
        As for `Wsabie`.
    patience, threads, deterministic, seed
        As for `Wsabie`.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Labels of the rows, then `labels`, then those added.
    terms_ : TermTable
        Terms with their vectors, and which labels each may mean.
    missing_ : list of str
        Labels without a vector; they are never predicted.
    space_, scaling_, history_, settings_, n_features_in_
        As for `Wsabie`; the space's labels are those of training.

    Examples
    --------
    >>> words = Vectors(["red", "green", "lime"], np.array([[1, 0, 0], [0, 1, 0], [0, 0.9, 0.4]], np.float32))
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
        vectors: Vectors | None = None,
        *,
        knowledge: Knowledge | None = None,
        labels: Sequence[str] = (),
        use: Use = "first",
        expand: Expand = "all",
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
        """Rows, and the labels among theirs that have a vector, which training numbers anew."""
        inputs, targets = super()._opened(X, Y, label_names)
        self._targets, self._seen = self._meant_in(targets)
        return inputs, targets[:, self._seen]

    def _resolved(self, shape: defaults.Shape) -> Settings:
        return resolve({**self.get_params(), "label_bias": False}, shape)

    def _new_space(self, n_features: int) -> JointSpace:
        n, dim = self._targets.shape
        std = per_table(self.init_scale if self.init_scale is not None else "auto", dim**-0.5, "init_scale")
        V = tables.gaussian(n_features, dim, std["V"], np.random.default_rng([self.seed, 0]))
        W = tables.padded(self._targets)
        return JointSpace(dim, "dot", V, W, np.zeros(n, np.float32), given=(False, True))

    def _identity(self, settings: Settings, data: list[Any]) -> dict[str, Any]:
        return super()._identity(settings, [*data, zlib.crc32(self._targets.tobytes())])

    def _monitor(
        self, X: Any, Y: Any, threads: int, max_rows: int | None, what: str = "validation X", metric: str = "MAP"
    ) -> ValidationMap:
        inputs = self.scaling_(self._checked(X, what))
        return ValidationMap(inputs, self._truth(Y, n_rows(inputs))[:, self._seen], threads, max_rows, metric)

    def _calibrated(self, monitor: ValidationMap) -> None:
        return None

    @property
    def predict_proba(self) -> Callable[[Any], Float64]:
        """There are none: a score is a cosine with a word.

        Raises
        ------
        UncalibratedError
        """
        raise UncalibratedError("scores of a devise model are cosines with words; train another kind for probabilities")

    # ---- use

    def _points(self, inputs: Inputs) -> Float32:
        scaled = self.scaling_(inputs)
        with self._threads(n_rows(scaled)) as threads:
            return np.ascontiguousarray(self.space_.points(scaled, threads.split)[:, : self.space_.dim])

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs: the map, and the terms."""
        scaling = sum(array.nbytes for array in self.scaling_.tensors().values())
        return int(4 * self.space_.dim * (self.space_.n_features + len(self.terms_.names)) + scaling)

    # ---- storage

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        more_config, more_tensors = self._trained_config()
        tensors = {"features": self.space_.features[:, : self.space_.dim], "seen": self._seen, **self._term_tensors()}
        return Parts(self.kind, {**self._described(), **more_config}, tensors | more_tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; the terms stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restored(config)
        model._restore_trained(config, t)
        model._restore_terms(config, t)
        dim = model.terms_.table.shape[1]
        V = check_array(t, "features", "float32", (model.n_features_in_ + model.scaling_.n_added, dim))
        V, none = tables.padded(V), np.zeros((0, dim), np.float32)
        model._seen = check_array(t, "seen", "int64", (None,), below=len(model.vocabulary_))
        model.space_ = JointSpace(dim, "dot", V, none, np.zeros(0, np.float32), given=(False, True))
        return model
