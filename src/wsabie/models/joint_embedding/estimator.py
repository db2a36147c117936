"""The low-rank WSABIE model: f_y(x) = s(W_y, V x), trained with the WARP loss (Weston et al. 2010)."""

from copy import copy
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, Literal, Self
from zlib import crc32

import numpy as np

from wsabie.core.arrays import Float32, count_rows
from wsabie.core.errors import require
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.protocols import TrainableTables
from wsabie.models.base.hyperparameters import resolve_init_scale
from wsabie.models.base.label_model import PointTransformer
from wsabie.models.base.parameter_defaults import has_ridge_start
from wsabie.models.base.ridge_start import place_at_ridge
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.joint_embedding.drift import BatchReport
from wsabie.models.joint_embedding.replay import ReplayBuffer, Size, average_weights, check_size, refit_new_labels
from wsabie.models.joint_embedding.updates import UpdatableModel
from wsabie.models.joint_embedding.warm_start import build_warm_space, place_new_labels
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import Count, check_array, read_config
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.trainer import Trainer
from wsabie.training.training_data import TrainingData
from wsabie.vocabulary.word_vectors import WordVectors, compute_target_vectors, list_label_terms


@dataclass(frozen=True)
class ReplayConfig:
    """The part of a folder's config that a model with `replay` has."""

    stream_rows: Count
    stream: list[BatchReport]


@dataclass(eq=False, repr=False)
class Wsabie(PointTransformer, UpdatableModel):
    """Annotation by joint embedding: rows and labels are points of one space, near labels annotate a row.

    Parameters
    ----------
    dim : int, default 100
        Number of dimensions of the space; more of them tell more labels apart and take more memory.
    epochs : int or "auto", default "auto"
        Number of passes over all (row, label) pairs; "auto" takes 10 to 30, fewer where there are more pairs.
    learning_rate : float, {"V": float, "W": float} or "auto", default "auto"
        Size of the first steps, for both tables or for each (V: features, W: labels); a number turns init="auto" into
        "random".
    similarity : {"dot", "euclidean", "cosine"}, default "dot"
        Score of a row and a label: inner product, negative Euclidean distance, or cosine.
    scaling : {"auto", "tfidf", None}, default "auto"
        Scaling of the rows, learned by `fit` and stored with the model; None takes them as they are (see Notes).
    max_norm : float, "auto" or None, default "auto"
        Longest vector in both tables, against overfitting; None means no limit.
    loss : {"warp", "auc", "owpc", "k-os"}, default "warp"
        Ranking loss (see Notes); "warp" is best for the top of the list.
    threads : int or None, default None
        Number of threads; None uses every core that this process may use.
    seed : int, default 0
        Start of the random numbers; the same seed gives the same model.
    replay : int, "auto" or None, default None
        Number of rows that the model keeps and trains on again in `partial_fit`, so that it does not forget; "auto"
        keeps as many as 4 MB hold.
    patience : int or None, default None
        Number of epochs without a better validation figure before training stops, in the second half of the schedule;
        None runs all epochs, because the last ones, at the lowest rate, help most.
    label_bias : bool, default False
        True learns a constant per label that is added to its scores.
    init : {"auto", "random", "ridge"}, default "auto"
        Points that training starts from: random ones, or a ridge regression of the labels on the rows; "auto" is the
        regression where it helps (see Notes).
    init_model : Wsabie or None, default None
        Fitted model of the same `dim` and `similarity` whose points training starts from; it is not saved.
    init_labels : WordVectors or None, default None
        Word vectors of `dim` dimensions that labels start from, which helps labels with few rows; they are not saved.
    init_scale : float, {"V": float, "W": float} or None, default None
        Standard deviation of the random numbers that the tables start from; None is 1/sqrt(dim).
    deterministic : bool, default True
        True gives the same bits for any number of threads; False is Hogwild, which locks nothing.
    schedule : {"linear", "constant"}, default "linear"
        Fall of the learning rate over the epochs, and with shards over the blocks of each.
    l2 : float or {"V": float, "W": float}, default 0
        L2 regularisation: every step shrinks the vectors that it moves by l2 * learning rate.
    margin : float, default 1.0
        Distance by which a right label has to score above a wrong one.
    surrogate : {"hinge", "logistic"}, default "hinge"
        Loss of a pair of labels y and v: max(0, margin - f_y + f_v), or log(1 + exp(f_v - f_y)).
    rank_weight : {"precision", "mean_rank", "top1"} or array, default "precision"
        Weights of ranks, whose running sum is L: 1/j, constant, first rank only, or any non-increasing numbers.
    rank_estimator : "auto", "draws", "exact" or int, default "auto"
        Estimate of the rank of a right label: by the number of draws, by all labels, or by so many random ones; "auto"
        is "draws" where the sampler is uniform and the surrogate hinge, otherwise 100 labels.
    max_sampled : int, "auto" or None, default "auto"
        Most negatives drawn in search of one that violates the margin; "auto" is at most 1,000, None is all.
    sampler : str or mapping, default "uniform"
        Sampler of negatives (see Notes); a mapping gives its options, such as {"name": "frequency", "power": 0.75}.
    order_statistic : (k, n), n chances or None, default None
        For "k-os": the k-th highest of n drawn positives, or the highest, second ... with these chances; None is
        (5, 10).
    pair_weighting : {"mean", "pairs"}, default "mean"
        Weight of a (row, label) pair: 1 / labels of the row, or 1.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Label names and numbers; a number never changes.
    history_ : list of EpochStats
    settings_ : dict
        Settings of training, every "auto" resolved.
    space_ : JointSpace
    replay_buffer_ : ReplayBuffer or None
        Rows that `replay` keeps.
    batch_reports_ : list of BatchReport
        With `replay`: evaluation of the rows of each `partial_fit` before training on them, and drift.
    n_features_in_ : int

    Notes
    -----
    Losses. "warp" weighs a violation by L(estimated rank), which favours the top of the list (Weston, Bengio and
    Usunier 2010, section 3). "auc" draws one negative per pair without weight (PAMIR's loss; section 6.3). "owpc"
    scores every label at every step and moves all that violate (section 6.4): it is exact, slow and uses one thread,
    and max_sampled does not matter. "k-os" is "warp" for one of a few drawn positives of the row, chosen by the rank of
    its score (Weston, Yee and Weiss, RecSys 2013).

    Scaling. "auto": non-negative sparse rows become log(1 + x) at unit length, or as by "tfidf" if they have 1.5 labels
    or more and training begins at a ridge regression. Dense rows are centred, divided by the
    deviation of each column (by one number if all columns have one unit), and get a constant feature and unit length.
    Signed sparse rows stay. "tfidf": the same, but log(1 + x) * idf.

    Samplers. "uniform"; "frequency": chance = training rows of the label ^ power; "adaptive": labels that rank high for
    this row (Guo et al. 2018); "full-sort": the same by sorting all labels for every draw.

    Start. "ridge" is the best map of `dim` dimensions by ridge regression (Mukherjee and Zhu 2011), which training then
    moves by smaller steps. "auto" takes it for "warp" with hinges and inner products or cosines, if neither
    `learning_rate` nor another start is given. With `init_model` features and labels of the same name begin where that
    model has them, and other labels at the mean of their rows. With `init_labels` labels without a word vector begin at
    random.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> X = sp.csr_matrix(np.kron(np.eye(3), np.ones((20, 4))))
    >>> Y = np.repeat(["red", "green", "blue"], 20)
    >>> model = Wsabie(dim=8, epochs=30, threads=1).fit(X, Y)
    >>> [top[0][0] for top in model.annotate(X[[0, 20, 40]], k=1)]
    ['red', 'green', 'blue']
    """

    kind = "wsabie"
    reads_shards = True
    dim: int = 100
    _: KW_ONLY
    replay: Size = None
    init: Literal["auto", "random", "ridge"] = "auto"
    init_model: "Wsabie | None" = None
    init_labels: WordVectors | None = None
    space_: JointSpace = field(init=False)

    # ---- training

    def _train(self, trainer: Trainer, rows: TrainingRows) -> list[EpochStats]:
        buffer = self._select_buffer(rows)
        if not rows.is_update:
            self.batch_reports_ = []
            self._place_start(trainer, rows)
        initial_space = None if buffer is None else self.space_.copy()
        history = super()._train(trainer, rows)
        if self.replay is None:
            self.replay_buffer_ = None
            return history
        memory = buffer
        for inputs, targets in rows.iterate_parts(self.scaling_):
            if memory is None:
                memory = ReplayBuffer.empty(inputs, self.space_.n_features, targets)
            memory = memory.add_rows(inputs, targets, rows.weights, self.replay, self.seed)
        if rows.is_update and buffer is None and memory is not None:
            memory = self._count_earlier_rows(memory)
        self.replay_buffer_ = memory
        if buffer is not None and initial_space is not None and memory is not None:
            average_weights(self.space_, initial_space, buffer, memory)
            refit_new_labels(self.space_, buffer, memory, rows, self.pair_weighting, trainer)
        return history

    def _place_start(self, trainer: Trainer, rows: TrainingRows) -> None:
        """Move the points that training starts from to where the rows say."""
        if self.init_model is not None:
            place_new_labels(self, self.init_model, rows.iterate_parts(self.scaling_))
        elif has_ridge_start(self._list_parameters()):
            settings = trainer.settings
            with KernelThreads(settings.threads) as threads:
                place_at_ridge(self.space_, rows, self.scaling_, settings.margin, threads.split, settings.seed)

    def _prepare_run(self, rows: TrainingRows) -> tuple[TrainableTables, TrainingData]:
        buffer = self._select_buffer(rows)
        if buffer is None:
            return super()._prepare_run(rows)
        return self.space_, buffer.build_data(rows, self.pair_weighting, self.seed)

    def _build_space(self, n_features: int) -> JointSpace:
        if self.init_model is not None:
            return build_warm_space(self, self.init_model, n_features)
        std = resolve_init_scale(self.init_scale, self.dim)
        rng = np.random.default_rng([self.seed, 0])
        space = JointSpace.random(n_features, len(self.vocabulary_), self.dim, self.similarity, rng, std)
        if self.init_labels is not None:
            vectors = compute_target_vectors(list_label_terms(list(self.vocabulary_)), self.init_labels)
            space.labels[vectors.positions, : self.dim] = vectors.table
        return space

    def _list_initial_state(self) -> list[Any]:
        tables_before = [] if self.init_labels is None else [self.space_.labels]
        if self.init_model is not None:
            tables_before += self.space_.list_arrays().values()
        return [crc32(np.ascontiguousarray(table).data) for table in tables_before]

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        require(
            self.init_model is not self, "init_model is this model itself; give another one, or go on with partial_fit"
        )
        super().check_parameters()
        check_size(self.replay)
        if self.init_model is not None:
            require(self.init_labels is None, "init_model and init_labels both say where labels begin; leave one out")
            _check_init_model(self, self.init_model)
        if self.init_labels is None:
            return
        problem = "init_labels are word vectors as wsabie.read_word_vectors reads them"
        require(isinstance(self.init_labels, WordVectors), problem)
        require(
            self.init_labels.dim == self.dim,
            f"init_labels have {self.init_labels.dim} dimensions and dim is {self.dim}; set dim={self.init_labels.dim}",
        )

    def _dump_config(self) -> dict[str, Any]:
        config = super()._dump_config()
        parameters = config["parameters"]
        parameters |= {name: getattr(self.space_, name) for name in ("dim", "similarity") if name in parameters}
        config["parameters"] = parameters | dict.fromkeys(parameters.keys() & {"init_labels", "init_model"})
        if self.replay_buffer_ is not None:
            reports = [asdict(report) for report in self.batch_reports_]
            config |= {"stream_rows": self.replay_buffer_.n_seen, "stream": reports}
        return config

    def _dump_tensors(self) -> dict[str, Any]:
        features = self.space_.features[:, : self.space_.dim]
        buffer = {} if self.replay_buffer_ is None else self.replay_buffer_.tensors()
        arrays = {"features": features, "labels": self.label_vectors, "bias": self.space_.bias, **buffer}
        return {**super()._dump_tensors(), **arrays}

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        n_features = len(check_array(state.tensors, "features", "float32", (None, None)))  # older folders lack it
        return super().from_state(replace(state, config={"n_features": n_features, **state.config}))

    def _restore_tensors(self, config: dict[str, Any], tensors: dict[str, Any]) -> None:
        super()._restore_tensors(config, tensors)
        d, n_labels, dim = self.n_features_in_ + self.scaling_.n_added, len(self.vocabulary_), self.dim
        V = check_array(tensors, "features", "float32", (d, dim))
        W = check_array(tensors, "labels", "float32 float16", (n_labels, dim))
        bias = check_array(tensors, "bias", "float32", (n_labels,))
        self.space_ = JointSpace(dim, self.similarity, tables.pad_rows(V), W, bias)
        if "stream_rows" in config:
            replay = read_config(ReplayConfig, config)
            self.replay_buffer_ = ReplayBuffer.from_tensors(tensors, replay.stream_rows, d, n_labels)
            self.batch_reports_ = replay.stream

    # ---- use

    def transform(self, X: Any) -> Float32:
        """Return the points of rows, V x of the scaled row (Weston et al. 2010, eq. 2).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        (n, dim) float32

        Raises
        ------
        InputError
            Another width than the model's, or values that are not finite.

        Examples
        --------
        >>> import numpy as np
        >>> Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2]).transform(np.eye(3)[:2]).shape
        (2, 4)
        """
        checked = self._check_rows(X)
        inputs = self.scaling_(checked)
        with self._start_threads(count_rows(inputs)) as threads:
            return np.ascontiguousarray(self.space_.compute_points(inputs, threads.split)[:, : self.space_.dim])

    @property
    def label_vectors(self) -> Float32:
        """Points of labels, W (Weston et al. 2010, eq. 2), (n_labels, dim) float32; a view.

        They are float16 after `to_float16`. Scores have `space_.bias` added, which `partial_fit` with a buffer may
        change.
        """
        self._check_fitted()
        return self.space_.labels[:, : self.space_.dim]

    # ---- storage

    def to_float16(self) -> Self:
        """Return the same model with label points in float16, which take half the bytes on disk and in memory.

        Each coordinate is rounded to 11 bits. Scores are sums of products in float32 as before, and `partial_fit`
        continues in float32 from the rounded points.

        Raises
        ------
        InputError
            A coordinate is beyond 65,504, the largest float16.

        Examples
        --------
        >>> import numpy as np
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2])
        >>> model.to_float16().label_vectors.dtype
        dtype('float16')
        """
        with np.errstate(over="ignore"):
            labels: Any = self.label_vectors.astype(np.float16)
        require(bool(np.isfinite(labels).all()), "the labels lie too far out for float16; keep the model as it is")
        half = copy(self)
        half.space_ = replace(self.space_, labels=labels)
        return half

    def facts(self) -> dict[str, Any]:
        """Return sizes and figures of the model, JSON-able; "bytes_of_points" counts both tables.

        Returns
        -------
        dict
        """
        n_labels, n_retired = len(self.vocabulary_), len(self.vocabulary_.retired_ids())
        buffer, reports = self.replay_buffer_, self.batch_reports_
        return {
            **super().facts(),
            **({"labels": n_labels - n_retired, "labels_merged_or_removed": n_retired} if n_retired else {}),
            **({} if buffer is None else {"buffer_rows": len(buffer), "stream_rows": buffer.n_seen}),
            **({"batches": len(reports), "last_batch": reports[-1].as_dict()} if reports else {}),
            "dimensions": self.space_.dim,
            "similarity": self.space_.similarity,
            "bytes_of_points": self.space_.nbytes,
            **({} if (index := self._index()) is None else {"index": index.facts()}),
        }

    # ---- checks

    def __sklearn_clone__(self) -> Self:
        from sklearn.base import clone

        if getattr(self, "init_model", None) is None:
            estimator: Self = super().__sklearn_clone__()
            return estimator
        parameters = self.get_params(deep=False) | {"init_model": None}  # a clone would be unfitted
        clones = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**{**clones, "init_model": self.init_model})


def _check_init_model(model: Wsabie, start: Any) -> None:
    """Raise InputError for an object that no model can start from."""
    is_usable = isinstance(start, Wsabie) and hasattr(start, "space_")
    require(is_usable, f"init_model is {type(start).__name__}; give a fitted Wsabie, such as wsabie.load(FOLDER).model")
    for name in ("dim", "similarity"):
        value, start_value = getattr(model, name), getattr(start.space_, name)
        problem = f"init_model has {name}={start_value!r} and this model {value!r}; set {name}={start_value!r}"
        require(value == start_value, problem)
