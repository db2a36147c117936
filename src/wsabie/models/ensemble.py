"""Several models whose scores are added up (slides: 2, 3 and 10): one space of more dimensions.

With inner products a weighted sum of scores is an inner product too. Put the points of a row that the members see side
by side, and those of a label:

    sum_m c_m (V_m x) . W_m,y  =  [r_1 V_1 x ... r_n V_n x] . [r_1 W_1,y ... r_n W_n,y],     r_m = sqrt(c_m)

So a member that is done is a block of columns in the two tables of one space, and what a space is good for (exact top
k, neighbours, explanations, probabilities) knows nothing of members.
"""

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin, clone

from wsabie.base.arrays import Float32, Float64, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores
from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import check_features, require, whole_number
from wsabie.models.base import LabelModel
from wsabie.models.inputs import as_matrix, n_rows, row_ranges
from wsabie.models.members import Member, column_sets, row_weights
from wsabie.models.monitor import MAX_ROWS, ValidationMap
from wsabie.models.parameters import check_run
from wsabie.models.scaling import RowScaling
from wsabie.models.wsabie import Wsabie
from wsabie.space import tables
from wsabie.space.joint import JointSpace
from wsabie.storage.folder import Parts
from wsabie.storage.schema import check_parameters, read_config
from wsabie.training.stats import EpochStats

By = Literal["seed", "rows", "columns"]
BY: tuple[By, ...] = ("seed", "rows", "columns")
KINDS = ("wsabie", "wsabie-auc", "owpc-sgd", "vse-ens", "opt-auc")
"""The kinds of `wsabie.models.systems` that ensembles are made of."""
_JUDGED = 256
"""Training rows that the spread of a member's scores is taken from."""


class _Part(NamedTuple):
    """Scaled rows as a member sees them: some of the columns, times a number that gives them back their length."""

    columns: Any  # their numbers, or a slice of all
    factor: np.float32

    def of(self, rows: Matrix) -> Matrix:
        return rows if isinstance(self.columns, slice) else rows[:, self.columns] * self.factor


@dataclass(frozen=True)
class EnsembleConfig:
    """The part of a folder's config that tells of members."""

    parameters: dict[str, Any]
    label_names: list[str]
    joined: dict[str, Any]
    members: list[Member]
    history: list[EpochStats]
    validation_map: float | None


class Ensemble(TransformerMixin, LabelModel):  # type: ignore[misc]
    """Models that differ by chance, by rows or by columns; the score is the mean of theirs, put on one scale.

    Rows are scaled once. Members are trained one after the other and only their tables are kept, so that memory is
    that of one training and of the model that is saved. The scores of a member are divided by their own spread, the
    standard deviation over labels, averaged over training rows.

    Parameters
    ----------
    estimator : Wsabie or None
        How a member is made, with similarity "dot"; None is `Wsabie()`. Its own seed and threads do not count.
    n : int, default 3
        Members ([W]: 2, 3 and 10).
    by : {"seed", "rows", "columns"}, default "seed"
        What sets members apart, beside their seeds: nothing; a draw of as many rows with replacement (bagging); the
        columns that they see.
    columns : sequence of sets of columns, float or None
        For "columns": numbers or masks, used in turn where there are more members than sets; or the share of the
        columns that each member draws; None is .7.
    threads : int or None
        None uses every core that this process may use.
    seed : int, default 0
        Member m is trained with seed + m.

    Attributes
    ----------
    joined_ : Wsabie
        All members as one model of n * dim dimensions.
    members_ : list of Member
    history_ : list of EpochStats
        Of all members, one after the other.
    validation_map_ : float or None
        Of the ensemble, on the validation rows that chose the members' epochs (2,000 of them at most).

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
    joined_: Wsabie
    members_: list[Member]
    history_: list[EpochStats]
    validation_map_: float | None

    def __init__(
        self,
        estimator: Wsabie | None = None,
        *,
        n: int = 3,
        by: By = "seed",
        columns: Sequence[Any] | float | None = None,
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n = n
        self.by: By = by
        self.columns = columns
        self.threads = threads
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
        """Train the members one after the other.

        Parameters
        ----------
        X, Y, sample_weight, label_names, fingerprint, progress, on_epoch
            As in `Wsabie.fit`.
        validation : (X, Y) or None
            Rows that choose the epoch of each member.
        checkpoint : path or None
            Folder for the states of training, one folder in it for each member.
        resume : bool
            Go on from `checkpoint`; members that are done there are not trained again.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the sentence says where.
        DivergenceError
            As in `Wsabie.fit`; this model is as it was.
        """
        self.check_parameters()
        fitted = copy(self)
        rows, targets = fitted._begun(X, Y, label_names)
        judged = None if validation is None else fitted._validation(validation)
        for m, part in enumerate(fitted._parts(rows)):
            started = time.perf_counter()
            model = self._member(m).fit(
                part.of(rows),
                targets,
                label_names=list(fitted.vocabulary_),
                validation=None if judged is None else (part.of(judged[0]), judged[1]),
                sample_weight=sample_weight
                if self.by != "rows"
                else row_weights(sample_weight, rows.shape[0], self.seed, m),
                checkpoint=None if checkpoint is None else Path(checkpoint) / f"member-{m}",
                resume=resume,
                fingerprint=fingerprint,
                progress=progress,
                on_epoch=on_epoch,
            )
            spread = _spread(model, part, rows)
            fitted._take(model, part, spread)
            fitted.members_.append(Member.of(model, spread, time.perf_counter() - started))
            fitted.history_ += model.history_
        if judged is not None:
            fitted._judge(*judged)
        self.__dict__.update(fitted.__dict__)
        return self

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        whole_number(self.n, "n")
        require(self.by in BY, f"by is {self.by!r}; choose one of {', '.join(BY)}")
        check_run(self.threads, self.seed)
        base = self._member(0)
        base.check_parameters()
        require(
            base.similarity == "dot",
            f'an ensemble adds up inner products, but its models have similarity {base.similarity!r}; choose "dot"',
        )
        require(
            self.columns is None or self.by == "columns",
            f'columns are given, but members differ by {self.by}; choose by="columns"',
        )

    @property
    def _base(self) -> Wsabie:
        base = Wsabie() if self.estimator is None else self.estimator
        if not isinstance(base, Wsabie) or base.kind != Wsabie.kind:
            raise InputError(
                f"an ensemble is made of Wsabie models, not of {type(base).__name__}; give a Wsabie (on the command "
                f"line --kind {', '.join(KINDS)})"
            )
        return base

    def _member(self, m: int) -> Wsabie:
        """An unfitted member; its rows come scaled."""
        made: Wsabie = clone(self._base).set_params(rows=None, threads=self.threads, seed=self.seed + m)
        return made

    def _begun(self, X: Any, Y: Any, label_names: Sequence[str] | None) -> tuple[Matrix, Matrix]:
        """Set up the model of all members, its tables empty; training rows, scaled, and their labels."""
        inputs, targets = self._opened(X, Y, label_names)
        joined, d = clone(self._base), self.n_features_in_
        joined.set_params(dim=self.n * joined.dim, threads=self.threads, seed=self.seed)
        joined.vocabulary_, joined.n_features_in_ = self.vocabulary_, d
        joined.feature_names_in_ = self.feature_names_in_
        joined.scaling_ = RowScaling.learned(inputs, d, joined.rows, constant=True)
        width = d + joined.scaling_.n_added
        V, W = (tables.zeros(size, joined.dim) for size in (width, len(self.vocabulary_)))
        joined.space_ = JointSpace(joined.dim, "dot", V, W, np.zeros(len(W), np.float32))
        joined.history_, joined.settings_, joined.calibration_ = [], {}, None
        self.joined_, self.members_, self.history_, self.validation_map_ = joined, [], [], None
        return as_matrix(joined.scaling_(inputs), width), targets

    def _validation(self, given: Any) -> tuple[Matrix, Matrix]:
        require(isinstance(given, (tuple, list)) and len(given) == 2, "validation must be a pair (X, Y)")
        inputs = check_features(given[0], n_features=self.n_features_in_, what="validation X", who="Ensemble")
        width = self.n_features_in_ + self.joined_.scaling_.n_added
        return as_matrix(self.joined_.scaling_(inputs), width), self._truth(given[1], n_rows(inputs))

    def _parts(self, rows: Matrix) -> list[_Part]:
        if self.by != "columns":
            return [_Part(slice(None), np.float32(1))] * self.n
        sets = column_sets(self.columns, self.n_features_in_, self.n, self.seed)
        added = np.arange(self.n_features_in_, rows.shape[1])  # the constant of dense rows is everybody's
        sets = [np.append(columns, added) for columns in sets]
        squares = _squares(rows)
        lengths = [squares[columns].sum() for columns in sets]
        return [
            _Part(columns, np.float32(np.sqrt(squares.sum() / length) if length else 1))
            for columns, length in zip(sets, lengths, strict=True)
        ]

    def _take(self, model: Wsabie, part: _Part, spread: float) -> None:
        """Put the tables of a member that is done in their place, so that its scores count as they should."""
        joined, own, m = self.joined_, model.space_, len(self.members_)
        block, root = slice(m * own.dim, (m + 1) * own.dim), np.float32(1 / np.sqrt(self.n * spread))
        joined.space_.features[part.columns, block] = own.features[:, : own.dim] * (root * part.factor)
        joined.space_.labels[:, block] = own.labels[:, : own.dim] * root
        joined.space_.bias += own.bias * root**2
        joined.settings_ = model.settings_

    def _judge(self, rows: Matrix, truth: Matrix) -> None:
        monitor = ValidationMap(check_features(rows), truth, self.threads or available_cores(), MAX_ROWS)
        self.validation_map_ = monitor(self.joined_.space_)
        self.joined_.calibration_ = self.joined_._calibrated(monitor)

    # ---- use

    def transform(self, X: Any) -> Float32:
        """Points of rows, those of the members side by side: (n, members * dim) float32; see `Wsabie.transform`."""
        return self._whole().transform(X)

    @property
    def label_vectors(self) -> Float32:
        """Points of labels, (n_labels, members * dim) float32; a view."""
        return self._whole().label_vectors

    def rank(
        self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None, exact: bool = False
    ) -> tuple[Int64, Float32]:
        """The k best labels of each row by the mean score; see `Wsabie.rank`."""
        return self._whole().rank(X, k, exclude=exclude, candidates=candidates, exact=exact)

    def scores(self, X: Any) -> Float32:
        """All mean scores, (n, n_labels) float32; see `Wsabie.scores`."""
        return self._whole().scores(X)

    @property
    def predict_proba(self) -> Callable[[Any], Float64]:
        """predict_proba(X): probability that each label is right; see `Wsabie.predict_proba`."""
        return self._whole().predict_proba

    def neighbours(self, label: str | int, k: int = 10) -> list[tuple[str, float]]:
        """The k labels nearest to a label in all members' spaces together; see `Wsabie.neighbours`."""
        return self._whole().neighbours(label, k)

    def score(self, X: Any, Y: Any) -> float:
        """Mean average precision on rows with labels; see `Wsabie.score`."""
        return self._whole().score(X, Y)

    def _whole(self) -> Wsabie:
        self._check_fitted()
        self.joined_.threads = self.threads
        return self.joined_

    # ---- storage

    def facts(self) -> dict[str, Any]:
        """Sizes and figures, JSON-able: those of `Wsabie.facts`, and of the members."""
        members = [asdict(member) for member in self.members_]
        about = {"models": len(members), "by": self.by, "epochs": len(self.history_)}
        seconds = sum(member.seconds for member in self.members_)
        figures = {"validation_map": self.validation_map_, "fit_seconds": seconds, "members": members}
        return {**self._whole().facts(), **about, **figures}

    @property
    def settings_(self) -> dict[str, Any]:
        """What the training of the last member used, every "auto" resolved."""
        return self._whole().settings_

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        joined = self._whole().to_parts()
        base = None if self.estimator is None else {**self.estimator.get_params(), "init_labels": None}
        own = {**self.get_params(deep=False), "columns": _listed(self.columns), "estimator": base}
        config = {
            "parameters": plain(own),
            "label_names": joined.config.pop("label_names"),
            "joined": joined.config,
            "members": [asdict(member) for member in self.members_],
            "history": [stats.as_dict() for stats in self.history_],
            "validation_map": self.validation_map_,
        }
        return Parts(self.kind, config, joined.nested("joined"))

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; its label table stays memory-mapped."""
        config = parts.config
        fields = read_config(EnsembleConfig, config)
        inner = {**fields.joined, "label_names": fields.label_names}
        check_parameters(cls, {**fields.parameters, "estimator": None})
        base = fields.parameters["estimator"]
        model = cls(**{**fields.parameters, "estimator": None if base is None else Wsabie(**base)})
        model.check_parameters()
        model.joined_ = Wsabie.from_parts(parts.under("joined", Wsabie.kind, inner))
        model.vocabulary_, model.n_features_in_ = model.joined_.vocabulary_, model.joined_.n_features_in_
        model.feature_names_in_ = model.joined_.feature_names_in_
        model.members_ = fields.members
        model.history_, model.validation_map_ = fields.history, fields.validation_map
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _spread(model: Wsabie, part: _Part, rows: Matrix) -> float:
    """Standard deviation of a member's scores over labels, averaged over some training rows."""
    some = rows[np.linspace(0, rows.shape[0] - 1, min(_JUDGED, rows.shape[0])).astype(int)]
    found = [
        model.scores(part.of(some[lo:hi])).std(1, dtype=np.float64)
        for lo, hi in row_ranges(some.shape[0], len(model.vocabulary_))
    ]
    return max(float(np.concatenate(found).mean()), 1e-12)


def _squares(rows: Matrix) -> Float64:
    """Sum of squares of each column."""
    if not hasattr(rows, "tocsr"):
        return np.asarray(np.einsum("ij,ij->j", rows, rows, dtype=np.float64), np.float64)
    return np.bincount(rows.indices, rows.data.astype(np.float64) ** 2, minlength=rows.shape[1]).astype(np.float64)


def _listed(columns: Any) -> Any:
    if columns is None or isinstance(columns, (float, int)):
        return columns
    return [np.asarray(found).tolist() for found in columns]
