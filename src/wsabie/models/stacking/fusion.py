"""Several kinds of models whose scores are added with weights from rows that they did not learn from.

A low-rank model joins labels by what they have in common, and class means and neighbours know a label with two rows as
well as its rows. Stacking (Wolpert 1992) gives each the weight with which it helps.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from wsabie.core.arrays import Float32, Float64, Matrix
from wsabie.core.errors import UnsuitableModelError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.features.base.feature_extractor import NestedConfig
from wsabie.models.base.feature_matrix import FeatureMatrix, convert_to_matrix
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.score_ranker import ScoreRanker
from wsabie.models.baselines import NearestMean
from wsabie.models.estimator_specs import find_name
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.models.loader import find_model_class
from wsabie.models.nearest_neighbours import NearestNeighbours
from wsabie.models.ridge import Ridge
from wsabie.models.stacking.fusion_weights import search_weights
from wsabie.models.stacking.holdout_scores import Fold, HoldoutModel, HoldoutScores, score_fold
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import read_config

MAX_WEIGHTS = 25_000_000
"""Most weights of a `LinearRanker` (labels times features) that is a default member."""


@dataclass(frozen=True)
class FusionConfig:
    """The part of a folder's config about members."""

    members: list[NestedConfig]
    weights: list[float]
    validation_ndcg: float


def build_members(
    estimators: Sequence[LabelModel] | None, threads: int | None, seed: int, n_weights: int
) -> list[LabelModel]:
    """Return unfitted members with these threads and seeds, as far as they take them; None: default ones."""
    if estimators is None:
        linear = [LinearRanker()] if n_weights <= MAX_WEIGHTS else []
        neighbours = NearestNeighbours(50, power="auto")
        members: list[Any] = [Wsabie(), *linear, NearestMean(), Ridge(tau=0.5), neighbours]
    else:
        members = [clone(estimator) for estimator in estimators]
    for member in members:
        names = member.get_params(deep=False)
        member.set_params(**{name: value for name, value in (("threads", threads), ("seed", seed)) if name in names})
    return members


@dataclass(eq=False, repr=False)
class Fusion(HoldoutModel, ScoreRanker):
    """Weighted sum of the scores of several models, which learn apart.

    Members learn from a part of the rows, and the weights with the best nDCG@k on the other rows are found. These are a
    tenth of the rows, at most 2,000; of fewer than 5,000 rows each fifth in turn. Members with a weight above 0 then
    learn from all rows. So training takes twice (six times) as long as that of all members.

    Parameters
    ----------
    members : list of estimators or None
        Not yet fitted; None: `Wsabie()`, `NearestMean()`, `Ridge(tau=0.5)`, `NearestNeighbours(50, power="auto")`, and
        `LinearRanker()` where its weights take at most 100 MB.
    k : int, default 10
        Length of the lists whose nDCG chooses the weights.
    hold_out : float or None, default None
        Share of the rows that is held out, once; None: as above.
    threads : int or None
        Threads of members that have this parameter.
    seed : int, default 0
        Seed of the held-out rows, and of members that have a seed.

    Attributes
    ----------
    members_ : list of fitted estimators
        Members with a weight above 0. A loaded model knows only these.
    weights_ : (n_members,) float64
        Weights of their scores.
    validation_ndcg_ : float
        nDCG@k on the held-out rows, by which the weights were chosen.

    Examples
    --------
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = Fusion([NearestMean(), NearestNeighbours()], threads=1)
    >>> model.fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10).annotate(X[[0]], k=1)[0][0][0]
    'red'
    """

    kind = "fusion"

    members: Sequence[LabelModel] | None = None
    _: KW_ONLY
    k: int = 10
    hold_out: float | None = None
    threads: int | None = None
    seed: int = 0

    def _learn(self, rows: Matrix, targets: Matrix, folds: Iterable[Fold], options: dict[str, Any]) -> None:
        members = build_members(self.members, self.threads, self.seed, targets.shape[1] * self.n_features_in_)
        parts = [part for fold in folds if (part := score_fold(members, rows, targets, fold, **options))]
        if not parts:
            raise UnsuitableModelError(
                f"each label has one row or group, so that none of {rows.shape[0]:,} sample(s) can be held out; give "
                "more rows, or train a model of kind wsabie"
            )
        holdout = HoldoutScores.join(parts).standardise()
        self.set_members(members, search_weights(holdout, self.k), holdout)
        self.fit_members(rows, targets, **options)

    def set_members(self, members: Sequence[LabelModel], weights: Float64, holdout: HoldoutScores) -> None:
        """Set the members with a weight above 0 for their scores at a spread of 1.

        Parameters
        ----------
        members : sequence of LabelModel
        weights : (n_members,) float64
            Members of weight 0 are left out.
        holdout : HoldoutScores
            Scores of the members at a spread of 1 on held-out rows.
        """
        numbers = np.flatnonzero(weights).tolist()
        self.members_ = [members[number] for number in numbers]
        self.weights_ = (weights / holdout.spreads)[numbers]
        self.validation_ndcg_ = float(holdout.compute_ndcg(weights, self.k).mean())

    def fit_members(self, rows: Matrix, targets: Matrix, **options: Any) -> None:
        """Train the members that were set from all rows.

        Parameters
        ----------
        rows : sparse matrix or array, (n, n_features)
        targets : sparse matrix, (n, n_labels)
            1 and -1.
        **options
            Of `fit` of every member.
        """
        for member in self.members_:
            member.fit(rows, targets, **options)

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        require(self.members is None or len(self.members) > 0, "there are no members; give at least one estimator")
        for member in self.members or ():
            require(isinstance(member, LabelModel), f"a member is {type(member).__name__}; give estimators of labels")
            member.check_parameters()

    def scores_by_member(self, X: Matrix) -> list[Float32]:
        """Return the weighted scores of each member, whose sum are the scores.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        list of (n, n_labels) float32

        Raises
        ------
        InputError
            As `scores`.
        """
        return list(self._iterate_scores(self._check_rows(X)))

    def _iterate_scores(self, inputs: FeatureMatrix) -> Iterator[Float32]:
        rows = convert_to_matrix(inputs, self.n_features_in_)
        for member, weight in zip(self.members_, self.weights_, strict=True):
            yield np.float32(weight) * member.scores(rows)

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        return reduce(np.add, self._iterate_scores(inputs))

    @property
    def label_vectors(self) -> Float32:
        """Vectors of the labels of the member `Wsabie`, which `neighbours` compares; a view."""
        for member in self.members_:
            if isinstance(member, Wsabie):
                return member.label_vectors
        return super().label_vectors

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return sum(int(member.n_bytes) for member in self.members_)

    def facts(self) -> JsonObject:
        members = dict(zip(map(find_name, self.members_), self.weights_.tolist(), strict=True))
        return {**super().facts(), "members": members, f"validation_ndcg@{self.k}": self.validation_ndcg_}

    def to_state(self) -> ModelState:
        self._check_fitted()
        states = [member.to_state() for member in self.members_]
        config = {
            **self._dump_config(),
            "members": [{"kind": state.kind, "config": state.config} for state in states],
            "weights": self.weights_.tolist(),
            "validation_ndcg": self.validation_ndcg_,
        }
        parts = [state.add_prefix(f"members/{m}") for m, state in enumerate(states)]
        tensors = {name: array for part in parts for name, array in part.items()}
        return ModelState(self.kind, config, tensors)

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        model, fields = cls._restore_config(state.config), read_config(FusionConfig, state.config)
        model.members_ = [
            find_model_class(member.kind).from_state(state.select_prefix(f"members/{m}", member.kind, member.config))
            for m, member in enumerate(fields.members)
        ]
        for member in model.members_:
            if list(member.vocabulary_) != list(model.vocabulary_) or member.n_features_in_ != model.n_features_in_:
                raise ValueError("a member is of different labels or features")
        if len(fields.weights) != len(model.members_):
            raise ValueError(f"there are {len(fields.weights)} weights for {len(model.members_)} members")
        model.weights_, model.validation_ndcg_ = np.array(fields.weights), fields.validation_ndcg
        return model

    def _dump_config(self) -> JsonObject:
        config = super()._dump_config()
        return {**config, "parameters": {**config["parameters"], "members": None}}
