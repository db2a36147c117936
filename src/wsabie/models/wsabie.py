"""The low-rank WSABIE model: f_y(x) = s(W_y, V x), trained with the WARP loss ([W] eq. 2 and Algorithm 1)."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import TransformerMixin

from wsabie.base.arrays import Float32, Float64, Int64, Matrix
from wsabie.base.errors import UncalibratedError
from wsabie.base.machine import available_cores, versions
from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require, whole_number
from wsabie.evaluation.calibration import Calibration, fit_calibration, sample_pairs
from wsabie.labels.names import Vocabulary
from wsabie.models import defaults
from wsabie.models.base import LabelModel
from wsabie.models.growth import trainable
from wsabie.models.inputs import Inputs, n_rows
from wsabie.models.labelling import label_matrix
from wsabie.models.monitor import MAX_ROWS, ValidationMap
from wsabie.models.parameters import PerTable, check_parameters, checksum, continued, per_table, resolve
from wsabie.models.scaling import Rows, RowScaling
from wsabie.space import tables
from wsabie.space.joint import JointSpace, SimilarityName
from wsabie.storage.folder import Parts
from wsabie.training.checkpoints import Checkpoints
from wsabie.training.losses import LossName, RankWeight
from wsabie.training.settings import Schedule, Settings
from wsabie.training.stats import EpochStats
from wsabie.training.targets import Positives, row_blocks
from wsabie.training.threads import Threads
from wsabie.training.trainer import Trainer

if TYPE_CHECKING:
    from wsabie.search.exact import ExactIndex

Auto = Literal["auto"]


class Wsabie(TransformerMixin, LabelModel):  # type: ignore[misc]
    """Annotation by joint embedding: rows and labels are points of one space, and near labels are the annotation.

    Parameters
    ----------
    dim : int, default 100
        Dimensions of the space ([W] Table 5).
    loss : {"warp", "auc"}, default "warp"
        "warp" weighs a violation by L(estimated rank), which serves the top of the list; "auc" draws one negative per
        pair and weighs nothing (PAMIR's loss; [W] section 6.3).
    similarity : {"dot", "euclidean", "cosine"}, default "dot"
        Inner product, negative Euclidean distance, cosine.
    rows : {"auto", "tfidf", None}, default "auto"
        Scaling of rows, stored with the model. "auto": non-negative sparse rows become log(1 + x) at unit length, dense
        rows are standardised, signed sparse rows stay. "tfidf": the same, but log(1 + x) * idf. None: as given.
    max_norm : float, "auto" or None
        Rows of both tables are projected to this norm ([W] section 2; the papers' C = 1); None leaves them free.
    epochs : int or "auto"
        Passes over all (row, label) pairs.
    learning_rate : float, {"V": float, "W": float} or "auto"
        Step of the first epoch, for both tables or each (V: features, W: labels).
    schedule : {"linear", "constant"}, default "linear"
        How the step falls with the epochs.
    margin : float, default 1.0
    rank_weight : {"precision", "mean_rank", "top1"} or array, default "precision"
        Weights whose running sum is L: 1/j, constant, first rank only, or any non-increasing numbers.
    max_trials : int, "auto" or None
        Negatives drawn in search of a violator: "auto" at most 1,000, None as many as there are (Algorithm 1).
    positives : {"mean", "pairs"}, default "mean"
        Weight of a pair: 1 / labels of the row, or 1.
    label_bias : bool, default False
        Learn a bias per label.
    init_scale : float, {"V": float, "W": float} or None
        Standard deviation of the first tables; None is 1/sqrt(dim).
    patience : int or None, default 5
        With validation rows: epochs without a better figure before training stops, in the second half of the schedule.
        The best epoch's model is kept.
    threads : int or None
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
    space_: JointSpace
    scaling_: RowScaling
    calibration_: Calibration | None
    history_: list[EpochStats]
    settings_: dict[str, Any]

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
        positives: Positives = "mean",
        label_bias: bool = False,
        init_scale: float | Mapping[str, float] | None = None,
        patience: int | None = 5,
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
        self.positives = positives
        self.label_bias = label_bias
        self.init_scale = init_scale
        self.patience = patience
        self.threads = threads
        self.deterministic = deterministic
        self.seed = seed

    # ---- training

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        validation: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        fingerprint: str = "",
        progress: Progress = SILENT,
        on_epoch: Callable[[EpochStats], None] | None = None,
    ) -> Self:
        """Train from nothing (or, with `resume`, from the checkpoint).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : (n,) integers or names; (n, n_labels) sparse of 1 (true) and -1 (explicit negative); or lists of names
        validation : (X, Y) or None
            Rows that choose the epoch; without them the last epoch is kept.
        sample_weight : (n,) or None
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        checkpoint : path or None
            Folder for the state of training, saved after epochs.
        resume : bool
            Go on from `checkpoint` if it is there.
        fingerprint : str
            Identifies the data in the checkpoint.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the sentence says where.
        DivergenceError
            Training produced numbers that are not finite.
        """
        check_parameters(self.get_params())
        fitted = copy(self)  # a fit that fails leaves this model as it was
        inputs, targets = fitted._opened(X, Y, label_names)
        n_features = fitted.n_features_in_
        settings = resolve(self.get_params(), _shape(targets))
        fitted.settings_ = plain(asdict(settings))
        fitted.space_ = fitted._new_space(n_features)
        fitted.scaling_ = RowScaling.learned(inputs, n_features, self.rows)
        monitor = None
        if validation is not None:
            require(isinstance(validation, (tuple, list)) and len(validation) == 2, "validation must be a pair (X, Y)")
            monitor = fitted._monitor(*validation, settings.threads, MAX_ROWS)
        checkpoints = None
        if checkpoint is not None:
            judged = None if monitor is None else checksum(monitor.inputs, monitor.Y, None)
            data = [fingerprint, checksum(inputs, targets, sample_weight), judged]
            checkpoints = Checkpoints(checkpoint, fitted._identity(settings, data), resume=resume)
        inputs = fitted.scaling_(inputs)
        trainer = Trainer(settings, monitor=monitor, on_epoch=on_epoch, checkpoints=checkpoints, progress=progress)
        fitted.history_ = fitted._train(trainer, inputs, targets, sample_weight)
        fitted.calibration_ = None if monitor is None else fitted._calibrated(monitor)
        fitted.__dict__.pop("_searched", None)
        self.__dict__.pop("_searched", None)
        self.__dict__.update(fitted.__dict__)
        return self

    def partial_fit(self, X: Any, Y: Any, *, sample_weight: Any = None, epochs: int = 5) -> Self:
        """Go on training with more rows; labels that the model lacks are added and get the next numbers.

        A new label starts at the mean of its rows' points. The learning rate is a quarter of `fit`'s and
        constant. On a model that was never fitted this is `fit` with `epochs` epochs. Probabilities need a new `fit`.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
        sample_weight : (n,) float or None
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
        check_parameters({**self.get_params(), "epochs": epochs})
        if not hasattr(self, "space_"):
            fresh = self.get_params()["epochs"]
            try:
                self.set_params(epochs=epochs).fit(X, Y, sample_weight=sample_weight)
            finally:
                self.set_params(epochs=fresh)
            return self
        inputs = self._checked(X)
        fitted, before = copy(self), len(self.history_)
        fitted.vocabulary_ = Vocabulary(self.vocabulary_)
        targets = label_matrix(Y, n_rows(inputs), fitted.vocabulary_, grow=True, named=not self.vocabulary_.numbered)
        inputs = self.scaling_(inputs)
        fitted.space_ = trainable(self.space_, len(fitted.vocabulary_), inputs, targets, self.seed)
        shape = _shape(targets)
        settings = continued(self.get_params(), self.settings_, shape, epochs, self.seed + before)
        trainer = Trainer(settings)
        history = fitted._train(trainer, inputs, targets, sample_weight)
        fitted.history_ = [*self.history_, *(replace(s, epoch=before + s.epoch) for s in history)]
        fitted.calibration_ = None
        fitted.__dict__.pop("_searched", None)
        self.__dict__.pop("_searched", None)
        self.__dict__.update(fitted.__dict__)
        return self

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        check_parameters(self.get_params())

    def _identity(self, settings: Settings, data: list[Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be gone on from; threads change nothing and may differ."""
        parameters = {name: getattr(self, name) for name in ("dim", "similarity", "rows", "positives", "init_scale")}
        shape = [self.n_features_in_, len(self.vocabulary_)]
        identity = {**asdict(settings), **parameters, "shape": shape, "data": data}
        del identity["threads"]
        same: dict[str, Any] = plain(identity)
        return same

    def _train(self, trainer: Trainer, inputs: Inputs, targets: Matrix, sample_weight: Any) -> list[EpochStats]:
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, np.float32)
            require(
                weights.shape == (targets.shape[0],)
                and bool(np.isfinite(weights).all())
                and bool((weights >= 0).all()),
                f"sample_weight must be {targets.shape[0]} finite non-negative numbers, one per row",
            )
            require(bool(weights.any()), "sample_weight is zero for every row; give at least one row a weight")
        (block,) = row_blocks(inputs, targets, weights, self.positives)
        return trainer.train(self.space_, lambda: [block], len(block.targets.labels))

    def _new_space(self, n_features: int) -> JointSpace:
        std = per_table(self.init_scale if self.init_scale is not None else "auto", self.dim**-0.5, "init_scale")
        rng = np.random.default_rng([self.seed, 0])
        return JointSpace.random(n_features, len(self.vocabulary_), self.dim, self.similarity, rng, std)

    def _monitor(self, X: Any, Y: Any, threads: int, max_rows: int | None, what: str = "validation X") -> ValidationMap:
        inputs = self._checked(X, what)
        inputs = self.scaling_(inputs)
        return ValidationMap(inputs, self._truth(Y, n_rows(inputs)), threads, max_rows)

    def _calibrated(self, monitor: ValidationMap) -> Calibration | None:
        """A sigmoid per label from the validation rows; None when they hold no right label, or no wrong one."""
        if not 0 < monitor.Y.nnz < np.prod(monitor.Y.shape):
            return None
        blocks = ((lo, self._block_scores(points)) for lo, points in monitor.blocks_of_points(self.space_))
        return fit_calibration(sample_pairs(blocks, monitor.Y, seed=self.seed), n_labels=len(self.vocabulary_))

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
        inputs = self._checked(X)
        inputs = self.scaling_(inputs)
        with Threads(1 if n_rows(inputs) < 256 else self.threads or available_cores()) as threads:
            return np.ascontiguousarray(self.space_.points(inputs, threads.split)[:, : self.space_.dim])

    @property
    def label_vectors(self) -> Float32:
        """Points of labels, W ([W] eq. 2): (n_labels, dim) float32, in the order of `vocabulary_`; a view."""
        self._check_fitted()
        return self.space_.labels[:, : self.space_.dim]

    def rank(self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None) -> tuple[Int64, Float32]:
        """The k best labels of each row.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are no candidates for a row (non-zero entries), for instance those it already has.
        candidates : list of label names or numbers, or None
            Only these labels.

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
        return self._index().top_k(points, k, exclude=exclude, candidates=chosen, threads=self.threads)

    def _index(self) -> "ExactIndex":
        """The labels made ready for searches, once for a fitted space."""
        from wsabie.search.exact import ExactIndex

        searched: tuple[JointSpace, ExactIndex] | None = self.__dict__.get("_searched")
        if searched is None or searched[0] is not self.space_:
            bias = self.space_.bias if self.space_.bias.any() else None
            searched = self.space_, ExactIndex(self.label_vectors, bias=bias, similarity=self.space_.similarity)
            self._searched = searched
        return searched[1]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_searched"}

    def scores(self, X: Any) -> Float32:
        """All scores f_y(x), (n, n_labels) float32: meant for blocks of rows.

        Examples
        --------
        >>> import numpy as np
        >>> Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2]).scores(np.eye(3)[:2]).shape
        (2, 3)
        """
        return self._block_scores(self.transform(X))

    def _block_scores(self, points: Float32) -> Float32:
        from wsabie.search.dense import all_scores

        labels = self.space_.label_arrays()
        padded = np.zeros((len(points), labels.table.shape[1]), np.float32)
        padded[:, : self.space_.dim] = points
        return all_scores(labels, padded, threads=self.threads or available_cores())

    @property
    def predict_proba(self) -> Callable[[Any], Float64]:
        """predict_proba(X): probability that each label is right, (n, n_labels): meant for blocks of rows.

        A sigmoid of the score with an offset per label, fitted on the validation rows of `fit` (Platt scaling).

        Raises
        ------
        UncalibratedError
            The model was fitted without validation rows.
        """
        self._check_fitted()
        if self.calibration_ is None:
            raise UncalibratedError("probabilities need validation rows; fit with validation=(X, Y)")
        return self._probabilities

    def _probabilities(self, X: Any) -> Float64:
        fitted: Calibration = self.calibration_  # type: ignore[assignment]  # checked by the property
        return fitted.predict_proba(self.scores(X))

    def neighbours(self, label: str | int, k: int = 10) -> list[tuple[str, float]]:
        """The k labels nearest to a label by cosine, with their cosines ([W] Table 4).

        Parameters
        ----------
        label : str or int
            Its name, or its number.
        k : int
            More than there are other labels is taken as all of them.

        Returns
        -------
        list of (name, cosine), nearest first

        Raises
        ------
        InputError
            An unknown label; the sentence names the closest ones.

        Examples
        --------
        >>> import numpy as np
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
        >>> sorted(name for name, cosine in model.neighbours("red", k=2))
        ['blue', 'green']
        """
        from wsabie.search.neighbours import neighbours_of_labels

        self._check_fitted()
        k = min(whole_number(k, "k"), len(self.vocabulary_))
        ids, cosines = neighbours_of_labels(self.label_vectors, self._label_ids([label]), k)
        known = ids[0] >= 0  # fewer labels than k leave places empty
        return list(zip(self.vocabulary_.names(ids[0][known]), cosines[0][known].tolist(), strict=True))

    def score(self, X: Any, Y: Any) -> float:
        """Mean average precision on rows with labels (rows without labels do not count), between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2]).score(np.eye(3), [0, 1, 2])
        1.0
        """
        self._check_fitted()
        return self._monitor(X, Y, self.threads or available_cores(), None, "X")(self.space_)

    # ---- storage

    def facts(self) -> dict[str, Any]:
        """Sizes and figures that tell what the model is, JSON-able; "bytes_of_points" are those of both tables."""
        figures = [stats.validation for stats in self.history_ if stats.validation is not None]
        return {
            **super().facts(),
            "dimensions": self.space_.dim,
            "similarity": self.space_.similarity,
            "bytes_of_points": self.space_.nbytes,
            "epochs": len(self.history_),
            "validation_map": max(figures, default=None),
        }

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        self._check_fitted()
        tensors = {
            "features": self.space_.features[:, : self.space_.dim],
            "labels": self.label_vectors,
            "bias": self.space_.bias,
            **self.scaling_.tensors(),
        }
        config = {
            "parameters": plain({**self.get_params(), "dim": self.space_.dim, "similarity": self.space_.similarity}),
            "settings": self.settings_,
            "label_names": list(self.vocabulary_),
            "scaling": self.scaling_.method,
            "calibration": None,
            "history": [stats.as_dict() for stats in self.history_],
            "versions": versions(),
        }
        if self.calibration_ is not None and self.calibration_.label_offsets is not None:
            config["calibration"] = [self.calibration_.slope, self.calibration_.offset]
            tensors["calibration/offsets"] = self.calibration_.label_offsets
        return Parts(self.kind, config, tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; the label table stays memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls(**config["parameters"])
        model.vocabulary_ = Vocabulary(config["label_names"])
        model.history_ = [EpochStats(**stats) for stats in config["history"]]
        model.calibration_ = None
        if config["calibration"] is not None:
            slope, offset = config["calibration"]
            model.calibration_ = Calibration(slope, offset, t["calibration/offsets"])
        model.settings_ = config["settings"]
        model.n_features_in_ = len(t["features"])
        model.scaling_ = RowScaling.restored(config["scaling"], t, model.n_features_in_)
        model._check_shapes(t)
        model.space_ = JointSpace(model.dim, model.similarity, tables.padded(t["features"]), t["labels"], t["bias"])
        return model

    def _check_shapes(self, tensors: Mapping[str, Any]) -> None:
        d, n_labels = self.n_features_in_, len(self.vocabulary_)
        sizes = {"features": (d, self.dim), "labels": (n_labels, self.dim), "bias": (n_labels,)}
        sizes |= {} if self.calibration_ is None else {"calibration/offsets": (n_labels,)}
        wrong = [name for name, shape in sizes.items() if tensors[name].shape != shape]
        if wrong:
            raise ValueError(f"the sizes of {', '.join(wrong)} do not agree with the rest")

    # ---- checks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _shape(targets: Matrix) -> defaults.Shape:
    """What "auto" is a function of; explicit negatives are no pairs."""
    rows, n_labels = targets.shape
    return defaults.Shape(rows, int((targets.data > 0).sum()), n_labels)
