"""Several models whose scores are added up (Bengio 2012: 2, 3 and 10): one space of more dimensions.

With inner products a weighted sum of scores is an inner product too. Concatenate the points of a row in all members,
and those of a label:

    sum_m c_m (V_m x) . W_m,y  =  [r_1 V_1 x ... r_n V_n x] . [r_1 W_1,y ... r_n W_n,y],     r_m = sqrt(c_m)

So a trained member is a block of columns in the two tables of one space, and nothing else knows about members.
"""

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from wsabie.core.arrays import Array, Float32, Float64, Int64, Matrix, count_rows
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.validation import check_sample_weights
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base.feature_matrix import convert_to_matrix, iterate_row_ranges
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.label_model import Candidates, Exclusion, LabelModel, PointTransformer, Ranking
from wsabie.models.base.trained_model import FitOptions
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.base.validation_monitor import ValidationMonitor
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_parameters, read_config
from wsabie.training.epoch_stats import EpochStats

ColumnSets: TypeAlias = Sequence[npt.ArrayLike] | float | None
"""Sets of columns by numbers or masks, the share that each member draws, or None."""
SHARE = 0.7  # of the columns, which each member draws by default
By = Literal["seed", "rows", "columns"]
KINDS = ("wsabie", "wsabie-auc", "owpc-sgd", "vse-ens", "opt-auc")
"""Kinds of `wsabie.models.estimator_specs` that can be members of an ensemble."""
_SPREAD_ROWS = 256  # training rows that measure the spread of a member's scores


@dataclass(frozen=True)
class EnsembleMember:
    """One model of an ensemble.

    Attributes
    ----------
    seed : int
    columns : int
        Number of columns that it sees.
    spread : float
        Standard deviation of its scores over labels, averaged over training rows.
    epochs : int
    validation_map : float or None
        Figure of its best epoch.
    seconds : float
        Duration of its training.
    """

    seed: int
    columns: int
    spread: float
    epochs: int
    validation_map: float | None
    seconds: float


def draw_column_sets(columns: ColumnSets, n_columns: int, n: int, seed: int) -> list[Int64]:
    """Return the columns that each of n members sees, ascending.

    Parameters
    ----------
    columns : sequence of column numbers or masks, float or None
        Sets that are used in turn, or the share that each member draws (None: `SHARE`).
    n_columns, n, seed : int

    Raises
    ------
    InputError
        A set is empty or names a missing column, or there are more sets than members.

    Examples
    --------
    >>> [columns.tolist() for columns in draw_column_sets([[0, 1], [2]], 3, 3, 0)]
    [[0, 1], [2], [0, 1]]
    >>> [len(columns) for columns in draw_column_sets(0.5, 10, 2, 0)]
    [5, 5]
    """
    if columns is None or isinstance(columns, (float, int)):
        share = SHARE if columns is None else float(columns)
        require(0 < share <= 1, f"columns is {columns!r}; choose a share above 0 and up to 1, or sets of columns")
        size = max(1, round(share * n_columns))
        return [np.sort(_build_member_rng(seed, m).choice(n_columns, size, replace=False)) for m in range(n)]
    sets = [_convert_to_numbers(column_set, n_columns) for column_set in columns]
    problem = f"there are {len(sets)} sets of columns for {n} members; give from 1 to {n} sets, or more members"
    require(0 < len(sets) <= n, problem)
    return [sets[m % len(sets)] for m in range(n)]


def draw_row_weights(sample_weight: npt.ArrayLike | None, n_rows: int, seed: int, member: int) -> Float32:
    """Return the weight of each row times the number of its draws; there are as many draws as rows."""
    draws = _build_member_rng(seed, member).integers(0, n_rows, n_rows)
    counts = np.bincount(draws, minlength=n_rows).astype(np.float32)
    return counts if sample_weight is None else counts * check_sample_weights(sample_weight, n_rows)


def _build_member_rng(seed: int, member: int) -> np.random.Generator:
    return np.random.default_rng([seed, 2, member])


def _convert_to_numbers(column_set: object, n_columns: int) -> Int64:
    numbers = np.asarray(column_set)
    if numbers.dtype == bool:
        require(numbers.shape == (n_columns,), f"a mask of columns has {numbers.size} entries; give {n_columns}")
        numbers = np.flatnonzero(numbers)
    is_usable = numbers.ndim == 1 and numbers.size > 0 and np.issubdtype(numbers.dtype, np.integer)
    require(is_usable, "a set of columns is empty or holds no whole numbers; give column numbers, or a mask")
    low, high = int(numbers.min()), int(numbers.max())
    problem = f"there is no column {low if low < 0 else high}; the {n_columns:,} columns are numbered from 0"
    require(low >= 0 and high < n_columns, problem)
    return np.unique(numbers).astype(np.int64)


def group_columns(names: Sequence[str]) -> list[Int64]:
    """Group columns by the part of their names before the first ":"; no groups if there is only one.

    Examples
    --------
    >>> [block.tolist() for block in group_columns(["colour:0", "colour:1", "hog:0"])]
    [[0, 1], [2]]
    >>> group_columns(["sea", "sky"])
    []
    """
    if not all(":" in name for name in names):
        return []
    prefixes = np.array([name.partition(":")[0] for name in names])
    unique_prefixes = list(dict.fromkeys(prefixes.tolist()))
    return [np.flatnonzero(prefixes == prefix) for prefix in unique_prefixes] if len(unique_prefixes) > 1 else []


class _Part(NamedTuple):
    """The columns of scaled rows that a member sees, and a factor that restores the length of rows."""

    columns: Int64 | slice  # their numbers, or a slice of all
    factor: np.float32

    def select(self, rows: Matrix) -> Matrix:
        return rows if isinstance(self.columns, slice) else rows[:, self.columns] * self.factor


@dataclass(frozen=True)
class EnsembleConfig:
    """The part of a folder's config about members."""

    parameters: JsonObject
    label_names: list[str]
    joined: JsonObject
    members: list[EnsembleMember]
    history: list[EpochStats]
    validation_map: float | None


@dataclass(eq=False, repr=False)
class Ensemble(PointTransformer, LabelModel):
    """Mean of the scores of several models, which differ by seed, rows or columns.

    Rows are scaled once. Members are trained one after the other and only their tables are kept, so memory holds one
    training and the saved model. The scores of a member are divided by their spread: the standard deviation over
    labels, averaged over training rows.

    Parameters
    ----------
    estimator : Wsabie or None
        Unfitted member with similarity "dot"; None is `Wsabie()`. Its own seed and threads are ignored.
    n : int, default 3
        Members (Weston et al. 2010: 2, 3 and 10).
    by : {"seed", "rows", "columns"}, default "seed"
        Difference between members beside their seeds: none; a draw of as many rows with replacement (bagging); the
        columns that they see.
    columns : sequence of sets of columns, float or None
        For "columns": numbers or masks, used in turn if there are more members than sets; or the share of the
        columns that each member draws; None is .7.
    threads : int or None
        None uses every core that this process may use.
    seed : int, default 0
        Member m is trained with seed + m.

    Attributes
    ----------
    joined_ : Wsabie
        All members as one model of n * dim dimensions.
    members_ : list of EnsembleMember
    history_ : list of EpochStats
        Epochs of all members, one member after the other.
    validation_map_ : float or None
        Mean average precision of the ensemble on the validation rows that chose the members' epochs (at most 2,000).

    Examples
    --------
    >>> import numpy as np
    >>> model = Ensemble(Wsabie(dim=4), n=2, threads=1).fit(np.eye(3), ["red", "green", "blue"])
    >>> model.transform(np.eye(3)).shape, model.label_vectors.shape
    ((3, 8), (3, 8))
    >>> model.annotate(np.eye(3)[:1], k=1)[0][0][0]
    'red'
    """

    kind = "ensemble"
    estimator: Wsabie | None = None
    _: KW_ONLY
    n: int = 3
    by: By = "seed"
    columns: ColumnSets = None
    threads: int | None = None
    seed: int = 0
    joined_: Wsabie = field(init=False)
    members_: list[EnsembleMember] = field(init=False)
    history_: list[EpochStats] = field(init=False)
    validation_map_: float | None = field(init=False)

    # ---- training

    def fit(
        self,
        X: Matrix,
        Y: Labels,
        *,
        validation: tuple[Matrix, Labels] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        label_names: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Train the members one after the other.

        Parameters
        ----------
        X, Y, sample_weight, label_names, fingerprint, progress, on_epoch
            See `Wsabie.fit`.
        validation : (X, Y) or None
            Rows that choose the epoch of each member.
        checkpoint : path or None
            Folder for the states of training, with a folder for each member.
        resume : bool
            Continue from `checkpoint`; members that are complete there are not trained again.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the message says where.
        DivergenceError
            See `Wsabie.fit`; this model is unchanged.
        """
        self.check_parameters()
        fitted = copy(self)
        rows, targets = fitted._start_joined_model(X, Y, label_names)
        monitor = None
        if validation is not None:
            require(isinstance(validation, (tuple, list)) and len(validation) == 2, "validation must be a pair (X, Y)")
            inputs = fitted._check_rows(validation[0], "validation X")
            truth = fitted._build_truth(validation[1], count_rows(inputs))
            monitor = ValidationMonitor(fitted.joined_.scaling_(inputs), truth, fitted.joined_._n_threads)
        for m, part in enumerate(fitted._list_parts(rows)):
            start, weights = time.perf_counter(), sample_weight
            if self.by == "rows":
                weights = draw_row_weights(sample_weight, rows.shape[0], self.seed, m)
            validation_rows = None
            if monitor is not None:
                validation_rows = part.select(convert_to_matrix(monitor.inputs, rows.shape[1])), monitor.Y
            model = self._build_member(m).fit(
                part.select(rows),
                targets,
                label_names=list(fitted.vocabulary_),
                validation=validation_rows,
                sample_weight=weights,
                checkpoint=None if checkpoint is None else Path(checkpoint) / f"member-{m}",
                **options,
            )
            spread = _measure_spread(model, part, rows)
            fitted._add_member(model, part, spread)
            best = max((stats.validation for stats in model.history_ if stats.validation is not None), default=None)
            sizes, seconds = (model.n_features_in_, spread, len(model.history_)), time.perf_counter() - start
            fitted.members_.append(EnsembleMember(model.seed, *sizes, best, seconds))
            fitted.history_ += model.history_
        if monitor is not None:
            fitted.validation_map_ = monitor(fitted.joined_.space_)
            fitted.joined_.calibration_ = fitted.joined_._fit_calibration(monitor)
        self.__dict__.update(fitted.__dict__)
        return self

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        base = self._build_member(0)
        base.check_parameters()
        require(
            base.similarity == "dot",
            f'an ensemble adds up inner products, but its models have similarity {base.similarity!r}; choose "dot"',
        )
        problem = f'columns are given, but members differ by {self.by}; choose by="columns"'
        require(self.columns is None or self.by == "columns", problem)

    @property
    def _base(self) -> Wsabie:
        base = Wsabie() if self.estimator is None else self.estimator
        if not isinstance(base, Wsabie) or base.kind != Wsabie.kind:
            fact = f"an ensemble is made of Wsabie models, not of {type(base).__name__}"
            raise InputError(f"{fact}; give a Wsabie (`kind` {', '.join(KINDS)})")
        return base

    def _build_member(self, m: int) -> Wsabie:
        """Return an unfitted member, which gets scaled rows."""
        member: Wsabie = clone(self._base).set_params(scaling=None, threads=self.threads, seed=self.seed + m)
        return member

    def _start_joined_model(self, X: Matrix, Y: Labels, label_names: Sequence[str] | None) -> tuple[Matrix, Matrix]:
        """Set up the joined model with empty tables; return scaled training rows and their labels."""
        inputs, targets = self._open_rows(X, Y, label_names)
        joined, d = clone(self._base), self.n_features_in_
        joined.set_params(dim=self.n * joined.dim, threads=self.threads, seed=self.seed)
        joined._copy_schema(self)
        joined.scaling_ = joined._fit_scaling(TrainingRows(inputs, targets))
        width = d + joined.scaling_.n_added
        V, W = (tables.allocate_zeros(size, joined.dim) for size in (width, len(self.vocabulary_)))
        joined.space_ = JointSpace(joined.dim, "dot", V, W, np.zeros(len(W), np.float32))
        joined.history_, joined.settings_, joined.calibration_ = [], {}, None
        self.joined_, self.members_, self.history_, self.validation_map_ = joined, [], [], None
        return convert_to_matrix(joined.scaling_(inputs), width), targets

    def _list_parts(self, rows: Matrix) -> list[_Part]:
        if self.by != "columns":
            return [_Part(slice(None), np.float32(1))] * self.n
        sets = draw_column_sets(self.columns, self.n_features_in_, self.n, self.seed)
        added = np.arange(self.n_features_in_, rows.shape[1])  # all members see the constant of dense rows
        sets = [np.append(columns, added) for columns in sets]
        squares = _sum_squares(rows)
        lengths = [squares[columns].sum() for columns in sets]
        return [
            _Part(columns, np.float32(np.sqrt(squares.sum() / length) if length else 1))
            for columns, length in zip(sets, lengths, strict=True)
        ]

    def _add_member(self, model: Wsabie, part: _Part, spread: float) -> None:
        """Copy the tables of a trained member into the joined model, with the weight of its scores."""
        joined, space, m = self.joined_, model.space_, len(self.members_)
        block, root = slice(m * space.dim, (m + 1) * space.dim), np.float32(1 / np.sqrt(self.n * spread))
        joined.space_.features[part.columns, block] = space.features[:, : space.dim] * (root * part.factor)
        joined.space_.labels[:, block] = space.labels[:, : space.dim] * root
        joined.space_.bias += space.bias * root**2
        joined.settings_ = model.settings_

    # ---- use

    def transform(self, X: Matrix) -> Float32:
        """Return the concatenated points of rows; see `Wsabie.transform`.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        (n, members * dim) float32
        """
        return self._get_joined_model().transform(X)

    @property
    def label_vectors(self) -> Float32:
        """Points of labels, (n_labels, members * dim) float32; a view."""
        return self._get_joined_model().label_vectors

    def rank(
        self, X: Matrix, k: int = 10, *, exclude: Exclusion = None, candidates: Candidates = None, exact: bool = False
    ) -> Ranking:
        """Return the k best labels of each row by the mean score; see `Wsabie.rank`.

        Parameters
        ----------
        X, k, exclude, candidates, exact
            See `Wsabie.rank`.

        Returns
        -------
        ids : (n, k) int64
        scores : (n, k) float32
        """
        return self._get_joined_model().rank(X, k, exclude=exclude, candidates=candidates, exact=exact)

    def scores(self, X: Matrix) -> Float32:
        return self._get_joined_model().scores(X)

    @property
    def predict_proba(self) -> Callable[[Matrix], Float64]:
        """predict_proba(X): probability that each label is right; see `Wsabie.predict_proba`."""
        return self._get_joined_model().predict_proba

    def score(self, X: Matrix, Y: Labels) -> float:
        """Return the mean average precision on rows with labels, 0 to 1.

        Parameters
        ----------
        X, Y
            See `Wsabie.score`.

        Returns
        -------
        float
        """
        return self._get_joined_model().score(X, Y)

    def _get_joined_model(self) -> Wsabie:
        self._check_fitted()
        self.joined_.threads = self.threads
        return self.joined_

    # ---- storage

    def facts(self) -> JsonObject:
        """Return sizes and figures, JSON-able: those of `Wsabie.facts` and of the members.

        Returns
        -------
        dict
        """
        members = [asdict(member) for member in self.members_]
        about = {"models": len(members), "by": self.by, "epochs": len(self.history_)}
        seconds = sum(member.seconds for member in self.members_)
        figures = {"validation_map": self.validation_map_, "fit_seconds": seconds, "members": members}
        return {**self._get_joined_model().facts(), **about, **figures}

    @property
    def settings_(self) -> JsonObject:
        """Settings of the last member's training, every "auto" resolved."""
        return self._get_joined_model().settings_

    def to_state(self) -> ModelState:
        joined = self._get_joined_model().to_state()
        base = None if self.estimator is None else {**self.estimator.get_params(), "init_labels": None}
        columns = self.columns
        if columns is not None and not isinstance(columns, (float, int)):
            columns = [np.asarray(column_set).tolist() for column_set in columns]
        parameters = {**self.get_params(deep=False), "columns": columns, "estimator": base}
        config = {
            "parameters": to_json_value(parameters),
            "label_names": joined.config.pop("label_names"),
            "joined": joined.config,
            "members": [asdict(member) for member in self.members_],
            "history": [stats.as_dict() for stats in self.history_],
            "validation_map": self.validation_map_,
        }
        return ModelState(self.kind, config, joined.add_prefix("joined"))

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        fields = read_config(EnsembleConfig, state.config)
        joined_config = {**fields.joined, "label_names": fields.label_names}
        check_parameters(cls, {**fields.parameters, "estimator": None})
        base = fields.parameters["estimator"]
        model = cls(**{**fields.parameters, "estimator": None if base is None else Wsabie(**base)})
        model.check_parameters()
        model.joined_ = Wsabie.from_state(state.select_prefix("joined", Wsabie.kind, joined_config))
        model._copy_schema(model.joined_)
        model.members_ = fields.members
        model.history_, model.validation_map_ = fields.history, fields.validation_map
        return model


def _measure_spread(model: Wsabie, part: _Part, rows: Matrix) -> float:
    """Return the standard deviation of a member's scores over labels, averaged over some training rows."""
    sample = rows[np.linspace(0, rows.shape[0] - 1, min(_SPREAD_ROWS, rows.shape[0])).astype(int)]
    ranges = iterate_row_ranges(sample.shape[0], len(model.vocabulary_))
    deviations = [model.scores(part.select(sample[lo:hi])).std(1, dtype=np.float64) for lo, hi in ranges]
    return max(float(np.concatenate(deviations).mean()), 1e-12)


def _sum_squares(rows: Matrix) -> Float64:
    """Return the sum of squares of each column."""
    if hasattr(rows, "tocsr"):
        squares: Array = np.bincount(rows.indices, rows.data.astype(np.float64) ** 2, minlength=rows.shape[1])
    else:
        squares = np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    return np.asarray(squares, np.float64)
