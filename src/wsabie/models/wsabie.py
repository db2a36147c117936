"""The low-rank WSABIE model: f_y(x) = s(W_y, V x), trained with the WARP loss ([W] eq. 2 and Algorithm 1)."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self
from zlib import crc32

import numpy as np
from sklearn.base import TransformerMixin

from wsabie.base.arrays import Float32, Int64
from wsabie.base.validation import require, sample_weights
from wsabie.labels.terms import target_vectors, terms_of
from wsabie.labels.vectors import Vectors
from wsabie.models import defaults
from wsabie.models.growth import trainable
from wsabie.models.inputs import n_rows
from wsabie.models.label_edits import LabelEdits
from wsabie.models.labelling import in_columns_of, label_matrix
from wsabie.models.parameters import PerTable, check_parameters, continued, first_scale, resolve
from wsabie.models.replay import Memory, Size, check_size, hold, remembered, seat
from wsabie.models.scaling import Rows
from wsabie.models.stream import MOST_KEPT, Arrival, arrival, moved
from wsabie.models.streamed import scaled_parts
from wsabie.models.trained import TrainedModel, shape_of
from wsabie.models.warm import begun, check_start, place_others
from wsabie.space import tables
from wsabie.space.joint import JointSpace, SimilarityName
from wsabie.storage.folder import Parts
from wsabie.storage.schema import Count, check_array, read_config
from wsabie.training.losses import LossName, RankWeight, Surrogate
from wsabie.training.settings import Schedule, Settings
from wsabie.training.stats import EpochStats
from wsabie.training.targets import Positives
from wsabie.training.trainer import Blocks, Trainer

if TYPE_CHECKING:
    from wsabie.search.exact import ExactIndex
    from wsabie.search.measured import MeasuredIndex

Auto = Literal["auto"]


@dataclass(frozen=True)
class ReplayConfig:
    """The part of a folder's config that a model with `replay` has."""

    replayed: Count
    stream: list[Arrival]


class Wsabie(TransformerMixin, LabelEdits, TrainedModel):  # type: ignore[misc]
    """Annotation by joint embedding: rows and labels are points of one space, and near labels are the annotation.

    Parameters
    ----------
    dim : int, default 100
        Dimensions of the space ([W] Table 5).
    loss : {"warp", "auc", "owpc", "k-os"}, default "warp"
        "warp" weighs a violation by L(estimated rank), which serves the top of the list; "auc" draws one negative per
        pair and weighs nothing (PAMIR's loss; [W] section 6.3); "owpc" scores every label at every step and moves all
        that violate ([W] section 6.4: exact and slow, one thread; nothing is drawn, so max_trials does not count);
        "k-os" is "warp" for one of a few drawn positives of the row, chosen by the place of its score (Weston, Yee and
        Weiss, RecSys 2013).
    similarity : {"dot", "euclidean", "cosine"}, default "dot"
        Inner product, negative Euclidean distance, cosine.
    rows : {"auto", "tfidf", None}, default "auto"
        Scaling of rows, stored with the model. "auto": non-negative sparse rows become log(1 + x) at unit length; dense
        rows are centred, each column is divided by its deviation if they are of different units (all by one number if
        not), and a constant feature is put behind them, at unit length; signed sparse rows stay. "tfidf": the same, but
        log(1 + x) * idf. None: as given.
    max_norm : float, "auto" or None, default "auto"
        Rows of both tables are projected to this norm ([W] section 2; the papers' C = 1); None leaves them free.
    epochs : int or "auto", default "auto"
        Passes over all (row, label) pairs.
    learning_rate : float, {"V": float, "W": float} or "auto", default "auto"
        Step of the first epoch, for both tables or each (V: features, W: labels).
    schedule : {"linear", "constant"}, default "linear"
        How the step falls with the epochs, and over shards with the blocks of each.
    margin : float, default 1.0
    rank_weight : {"precision", "mean_rank", "top1"} or array, default "precision"
        Weights whose running sum is L: 1/j, constant, first rank only, or any non-increasing numbers.
    max_trials : int, "auto" or None, default "auto"
        Negatives drawn in search of a violator: "auto" at most 1,000, None as many as there are (Algorithm 1).
    sampler : str or mapping, default "uniform"
        Where negatives come from: "uniform", "frequency" (chance = training rows of the label ^ power), "adaptive"
        ([V]: labels that rank high for this row), "full-sort" (the same by sorting all labels for every draw); options
        in a mapping, {"name": "frequency", "power": 0.75} (`wsabie.training.samplers.Sampler`).
    rank_from : "auto", "draws", "exact" or int, default "auto"
        What estimates the rank: the number of draws (uniform sampler and hinge only), all labels, or a uniform sample
        of so many. "auto": the draws, and 100 labels where they tell nothing.
    surrogate : {"hinge", "logistic"}, default "hinge"
        Loss of a pair of labels: max(0, margin - f_y + f_v), or log(1 + exp(f_v - f_y)).
    order_statistic : (k, n), n chances or None, default None
        For "k-os": the k-th highest of n drawn positives, or the highest, second ... with these chances; None: (5, 10).
    l2 : float or {"V": float, "W": float}, default 0
        L2 regularisation: every step takes l2 * learning rate of the rows that it moves.
    positives : {"mean", "pairs"}, default "mean"
        Weight of a pair: 1 / labels of the row, or 1.
    label_bias : bool, default False
        Learn a bias per label.
    init_scale : float, {"V": float, "W": float} or None, default None
        Standard deviation of the first tables; None is 1/sqrt(dim).
    init_labels : Vectors or None, default None
        Word vectors, of as many dimensions as `dim`, that label vectors begin with, at unit length: a label with few
        rows has a meaning, and one with many gets its own. Labels without a word vector begin as all do. Not saved.
    init : Wsabie or None, default None
        A fitted model whose space this one begins with: its map of the same features, its points of labels of the same
        name; other labels begin at the mean of their rows. `dim` and `similarity` must agree. Not saved.
    replay : int, "auto" or None, default None
        Rows that the model keeps with it and sees again in `partial_fit`, so that it keeps what it knew; "auto": as
        many as 4 MB hold. None: none (`wsabie.models.replay`).
    patience : int or None, default None
        With validation rows: epochs without a better figure before training stops, in the second half of the schedule.
        None runs all epochs: the last ones, at the lowest rate, bring most. The best epoch's model is kept.
    threads : int or None, default None
        None uses every core that this process may use.
    deterministic : bool, default True
        The same bits for any number of threads (block-synchronous updates); False is Hogwild.
    seed : int, default 0

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Label names and numbers; a number never changes.
    history_ : list of EpochStats
    settings_ : dict
        What training used, every "auto" resolved.
    space_ : JointSpace
    memory_ : Memory or None
        What `replay` keeps.
    stream_ : list of Arrival
        With `replay`: how each `partial_fit`'s rows did before they were learnt, and whether they have drifted.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> X = sp.csr_matrix(np.kron(np.eye(3), np.ones((20, 4))))
    >>> Y = [["red"], ["green"], ["blue"]] * 1
    >>> model = Wsabie(dim=8, epochs=30, threads=1).fit(X, [y for y in Y for _ in range(20)])
    >>> [top[0][0] for top in model.annotate(X[[0, 20, 40]], k=1)]
    ['red', 'green', 'blue']
    """

    kind = "wsabie"
    reads_shards = True
    space_: JointSpace
    memory_: Memory | None = None
    stream_: Sequence[Arrival] = ()
    _made_ready: tuple[str, ...] = ("_searched", "_approximate")

    def __init__(
        self,
        dim: int = 100,
        *,
        loss: LossName = "warp",
        similarity: SimilarityName = "dot",
        rows: Rows = "auto",
        max_norm: float | Auto | None = "auto",
        epochs: int | Auto = "auto",
        learning_rate: PerTable = "auto",
        schedule: Schedule = "linear",
        margin: float = 1.0,
        rank_weight: RankWeight = "precision",
        max_trials: int | Auto | None = "auto",
        sampler: str | Mapping[str, Any] = "uniform",
        rank_from: Literal["auto", "draws", "exact"] | int = "auto",
        surrogate: Surrogate = "hinge",
        order_statistic: Sequence[int] | Sequence[float] | None = None,
        l2: float | Mapping[str, float] = 0.0,
        positives: Positives = "mean",
        label_bias: bool = False,
        init_scale: float | Mapping[str, float] | None = None,
        init_labels: Vectors | None = None,
        init: "Wsabie | None" = None,
        replay: Size = None,
        patience: int | None = None,
        threads: int | None = None,
        deterministic: bool = True,
        seed: int = 0,
    ) -> None:
        self.dim = dim
        self.loss = loss
        self.similarity = similarity
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
        self.label_bias = label_bias
        self.init_scale = init_scale
        self.init_labels = init_labels
        self.init = init
        self.replay = replay
        self.patience = patience
        self.threads = threads
        self.deterministic = deterministic
        self.seed = seed

    # ---- training

    def partial_fit(
        self,
        X: Any,
        Y: Any,
        *,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        epochs: int = 5,
    ) -> Self:
        """Go on training with more rows; labels that the model lacks are added and get the next numbers.

        A new label starts at the mean of its rows' points. The learning rate is a quarter of `fit`'s and constant.
        With a buffer (`replay`) old rows are among the new ones in every epoch, the rate begins as `fit`'s and falls
        to 0, and at the end old points go back towards where they were and new labels find their place among them
        (`wsabie.models.replay`). On a model that was never fitted this is `fit` with `epochs` epochs. Probabilities
        need `calibrate`.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
        sample_weight : (n,) float or None
        label_names : list of str or None
            Names of the columns of Y, in any order, where it is a matrix; those that the model lacks are added.
        epochs : int

        Raises
        ------
        InputError
            As `fit`; or words as labels of a model whose labels are numbers.
        DivergenceError
            The model is as it was.

        Examples
        --------
        >>> import numpy as np
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
        >>> list(model.partial_fit(np.eye(3)[:1], ["crimson"]).vocabulary_)
        ['red', 'green', 'blue', 'crimson']
        """
        check_parameters({**self._parameters(), "epochs": epochs})
        check_size(self.replay)
        if not hasattr(self, "space_"):
            fresh = self.get_params()["epochs"]
            try:
                self.set_params(epochs=epochs).fit(X, Y, sample_weight=sample_weight, label_names=label_names)
            finally:
                self.set_params(epochs=fresh)
            return self
        inputs = self._checked(X)
        fitted, before = copy(self), len(self.history_)
        fitted.vocabulary_ = self.vocabulary_.copy()
        named = label_names is not None or not self.vocabulary_.numbered
        if label_names is not None:
            Y = in_columns_of(fitted.vocabulary_, Y, label_names)
        targets = label_matrix(Y, n_rows(inputs), fitted.vocabulary_, grow=True, named=named)
        inputs = self.scaling_(inputs)
        seen = None if self.replay is None else arrival(self, inputs, targets, self.stream_)
        buffer = self._replayed(True)
        unseen = None if buffer is None else np.flatnonzero(buffer.seen == 0)
        fitted.space_ = trainable(self.space_, len(fitted.vocabulary_), [(inputs, targets)], self.seed, unseen)
        shape = shape_of(targets)
        settings = continued(self._parameters(), self.settings_, shape, epochs, self.seed + before, buffer is not None)
        trainer = Trainer(settings)
        history = fitted._train(trainer, inputs, targets, sample_weight, more=True)
        fitted.history_ = [*self.history_, *(replace(s, epoch=before + s.epoch) for s in history)]
        fitted.calibration_ = None
        if seen is not None:
            way = moved(self.label_vectors, fitted.label_vectors)
            fitted.stream_ = [*self.stream_, replace(seen, moved=way)][-MOST_KEPT:]
        self._take(fitted)
        return self

    def remember(self, X: Any, Y: Any, *, sample_weight: Any = None) -> Self:
        """Fill the buffer with rows that the model was trained on before it had one (`replay` says how many).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
            Labels that the model lacks do not count.
        sample_weight : (n,) float or None

        Raises
        ------
        InputError
            `replay` is None, or data that cannot be used.

        Examples
        --------
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]).set_params(replay=2)
        >>> len(model.remember(np.eye(3), ["red", "green", "blue"]).memory_)
        2
        """
        check_size(self.replay)
        require(self.replay is not None, "the model keeps no rows; set replay to how many it should keep")
        inputs = self._checked(X)
        targets = self._truth(Y, n_rows(inputs))
        n, weights = self.space_.n_features, None
        if sample_weight is not None:
            weights = sample_weights(sample_weight, n_rows(inputs))
        memory = remembered(None, self.scaling_(inputs), n, targets, weights, self.replay, self.seed)
        self.memory_ = self._of_trained(memory)
        return self

    def _of_trained(self, memory: Memory) -> Memory:
        """A first buffer of a model that had rows before: labels that the buffer's rows lack had some of those."""
        seen = np.maximum(memory.seen, 1)
        seen[self.vocabulary_.retired()] = 0
        return replace(memory, seen=seen)

    def _replayed(self, more: bool) -> Memory | None:
        """The buffer that training sees again."""
        return self.memory_ if more and self.replay is not None else None

    def _train(
        self, trainer: Trainer, inputs: Any, targets: Any, sample_weight: Any, *, more: bool = False
    ) -> list[EpochStats]:
        before = self._replayed(more)
        if not more:
            self.stream_ = []
            if self.init is not None:
                place_others(self, self.init, scaled_parts(inputs, targets, self.scaling_))
        began = None if before is None else self.space_.copy()
        history = super()._train(trainer, inputs, targets, sample_weight, more=more)
        if self.replay is None:
            self.memory_ = None
            return history
        n, memory = self.space_.n_features, before
        for some, theirs in scaled_parts(inputs, targets, self.scaling_):
            memory = remembered(memory, some, n, theirs, sample_weight, self.replay, self.seed)
        self.memory_ = self._of_trained(memory) if more and before is None and memory is not None else memory
        if before is not None and began is not None and memory is not None:
            hold(self.space_, began, before, memory)
            seat(self.space_, before, memory, inputs, targets, sample_weight, self.positives, trainer)
        return history

    def _visited(self, inputs: Any, targets: Any, weights: Float32 | None, more: bool) -> tuple[Blocks, int]:
        before = self._replayed(more)
        if before is None:
            return super()._visited(inputs, targets, weights, more)
        return before.beside(inputs, targets, weights, self.positives, self.seed)

    def _resolved(self, shape: defaults.Shape) -> Settings:
        return resolve(self._parameters(), shape)

    def _new_space(self, n_features: int) -> JointSpace:
        if self.init is not None:
            return begun(self, self.init, n_features)
        std = first_scale(self.init_scale, self.dim)
        rng = np.random.default_rng([self.seed, 0])
        space = JointSpace.random(n_features, len(self.vocabulary_), self.dim, self.similarity, rng, std)
        if self.init_labels is not None:
            found = target_vectors(terms_of(list(self.vocabulary_)), self.init_labels)
            space.labels[found.places, : self.dim] = found.table
        return space

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        require(self.init is not self, "init is this model itself; give another one, or go on with partial_fit")
        super().check_parameters()
        check_size(self.replay)
        if self.init is not None:
            require(self.init_labels is None, "init and init_labels both say where labels begin; leave one out")
            check_start(self, self.init)
        if self.init_labels is None:
            return
        require(isinstance(self.init_labels, Vectors), "init_labels are word vectors as wsabie.read_vectors reads them")
        require(
            self.init_labels.dim == self.dim,
            f"init_labels have {self.init_labels.dim} dimensions and dim is {self.dim}; set dim={self.init_labels.dim}",
        )

    def _identity(self, settings: Settings, data: list[Any]) -> dict[str, Any]:
        told = [] if self.init_labels is None else [crc32(np.ascontiguousarray(self.space_.labels).data)]
        if self.init is not None:
            told += [crc32(np.ascontiguousarray(table).data) for table in self.space_.arrays().values()]
        return super()._identity(settings, [*data, *told])

    def _described(self) -> dict[str, Any]:
        config = super()._described()
        known = {name: value for name, value in config["parameters"].items() if not name.startswith("init__")}
        config["parameters"] = known | dict.fromkeys(known.keys() & {"init_labels", "init"})
        return config

    # ---- use

    def transform(self, X: Any) -> Float32:
        """Points of rows: V x of the scaled row ([W] eq. 2), (n, dim) float32, not projected.

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
        checked = self._checked(X)
        inputs = self.scaling_(checked)
        with self._threads(n_rows(inputs)) as threads:
            return np.ascontiguousarray(self.space_.points(inputs, threads.split)[:, : self.space_.dim])

    @property
    def label_vectors(self) -> Float32:
        """Points of labels, W ([W] eq. 2): (n_labels, dim) float32, in the order of `vocabulary_`; a view.

        float16 of a model that was `halved`. Scores have `space_.bias` added, which may be other than 0 after
        `partial_fit` with a buffer, too.
        """
        self._check_fitted()
        return self.space_.labels[:, : self.space_.dim]

    def rank(
        self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None, exact: bool = False
    ) -> tuple[Int64, Float32]:
        """The k best labels of each row; about these, with their exact scores, where an index was made of the labels.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are no candidates for a row (non-zero entries), for instance those it already has.
        candidates : list of label names or numbers, or None
            Only these labels.
        exact : bool
            Pass an index by (`wsabie.models.indexed.index_labels`); without one every search is exact.

        Returns
        -------
        ids : (n, k) int64, best first, equal scores by label number; -1 where there are fewer than k candidates
        scores : (n, k) float32, -inf where ids is -1

        Raises
        ------
        InputError
            Another width than the model's, values that are not finite, k below 1, or a candidate that is no label.

        Examples
        --------
        >>> import numpy as np
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2])
        >>> ids, scores = model.rank(np.eye(3), k=2, candidates=[0, 1])
        >>> ids.shape, scores.dtype
        ((3, 2), dtype('float32'))
        """
        points = self.transform(X)
        chosen = None if candidates is None else self._label_ids(candidates)
        index = (None if exact else self._index()) or self.exact_index()
        return index.top_k(points, k, exclude=exclude, candidates=chosen, threads=self.threads)

    def use_index(self, index: "MeasuredIndex") -> None:
        """Search the labels by an index of them (`wsabie.models.indexed`), until they change."""
        self._approximate = index

    def _index(self) -> "MeasuredIndex | None":
        """The index that was made of the labels as they are now, if there is one."""
        index: MeasuredIndex | None = self.__dict__.get("_approximate")
        return index if index is not None and index.exact is self.exact_index() else None

    def exact_index(self) -> "ExactIndex":
        """The labels made ready for searches, once for a fitted space."""
        from wsabie.search.exact import ExactIndex

        searched: tuple[JointSpace, ExactIndex] | None = self.__dict__.get("_searched")
        if searched is None or searched[0] is not self.space_:
            own, gone = self.space_.bias.copy(), self.vocabulary_.retired()
            own[gone] = 0  # they would widen what rounding can reach
            bias, similarity = own if own.any() else None, self.space_.similarity
            searched = self.space_, ExactIndex(self.label_vectors, bias=bias, similarity=similarity, gone=gone)
            self._searched = searched
        return searched[1]

    # ---- storage

    def halved(self) -> Self:
        """The same model with the points of its labels in float16: half the bytes on disk, in memory and to be read.

        Each coordinate is rounded to 11 bits, once; scores are sums of products in float32 as before. `partial_fit`
        goes on in float32, from the rounded points.

        Raises
        ------
        InputError
            A coordinate lies beyond 65,504, the largest half.

        Examples
        --------
        >>> import numpy as np
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2])
        >>> model.halved().label_vectors.dtype
        dtype('float16')
        """
        with np.errstate(over="ignore"):
            labels: Any = self.label_vectors.astype(np.float16)
        require(bool(np.isfinite(labels).all()), "the labels lie too far out for float16; keep the model as it is")
        half = copy(self)
        half.space_ = replace(self.space_, labels=labels)
        return half

    def facts(self) -> dict[str, Any]:
        """Sizes and figures that tell what the model is, JSON-able; "bytes_of_points" are those of both tables."""
        gone, memory = len(self.vocabulary_.retired()), self.memory_
        return {
            **super().facts(),
            **({"labels": len(self.vocabulary_) - gone, "labels_merged_or_removed": gone} if gone else {}),
            **({} if memory is None else {"rows_replayed": len(memory), "rows_seen": memory.n_seen}),
            **({"arrivals": len(self.stream_), "last_arrival": self.stream_[-1].as_dict()} if self.stream_ else {}),
            "dimensions": self.space_.dim,
            "similarity": self.space_.similarity,
            "bytes_of_points": self.space_.nbytes,
            **({} if (index := self._index()) is None else {"index": index.facts()}),
        }

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        config = self._described()
        tensors = {
            "features": self.space_.features[:, : self.space_.dim],
            "labels": self.label_vectors,
            "bias": self.space_.bias,
        }
        config["parameters"] |= {"dim": self.space_.dim, "similarity": self.space_.similarity}
        more_config, more_tensors = self._trained_config()
        if self.memory_ is not None:
            more_config["replayed"] = self.memory_.n_seen
            more_config["stream"] = [asdict(one) for one in self.stream_]
            more_tensors |= self.memory_.tensors()
        return Parts(self.kind, config | more_config, tensors | more_tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; the label table stays memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restored({"n_features": len(check_array(t, "features", "float32", (None, None))), **config})
        model._restore_trained(config, t)
        d, n_labels, dim = model.n_features_in_ + model.scaling_.n_added, len(model.vocabulary_), model.dim
        V = check_array(t, "features", "float32", (d, dim))
        W, bias = (
            check_array(t, "labels", "float32 float16", (n_labels, dim)),
            check_array(t, "bias", "float32", (n_labels,)),
        )
        model.space_ = JointSpace(dim, model.similarity, tables.padded(V), W, bias)
        if "replayed" in config:
            replay = read_config(ReplayConfig, config)
            model.memory_ = Memory.restored(t, replay.replayed, d, n_labels)
            model.stream_ = replay.stream
        return model

    # ---- checks

    def __sklearn_clone__(self) -> Self:
        from sklearn.base import _clone_parametrized, clone

        if getattr(self, "init", None) is None:
            own: Self = _clone_parametrized(self)
            return own
        rest = {name: clone(value, safe=False) for name, value in self.get_params(deep=False).items() if name != "init"}
        return type(self)(**rest, init=self.init)  # fitted, or it would be no beginning

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
