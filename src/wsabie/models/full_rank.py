"""The full-rank model, a linear term beside the embedding: f_y(x) = w_y . x + blend * s(W_y, V x).

Weston et al. 2010, section 3, eq. 1: the two terms are trained separately and blended by a line search on validation
rows. The paper mentions an alternative, both terms at once with a penalty on ||w_y||^2; this is `joint=True`.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from wsabie.core.arrays import Float32, Matrix, count_rows
from wsabie.core.errors import InputError, UnsuitableModelError, require
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.embedding.linear_space import JointLinearSpace
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.base.feature_matrix import FeatureMatrix, iterate_row_ranges, slice_rows, take_rows
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.base.score_ranker import ScoreRanker
from wsabie.models.base.trained_model import FitOptions
from wsabie.models.base.validation_monitor import MAX_ROWS, sample_labelled_rows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker, allocate_weights
from wsabie.storage.model_folder import ModelState, is_model_folder
from wsabie.storage.schema_validation import check_parameters, read_config
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.resolved_settings import TrainingSettings

BLENDS = (0.0, *(2.0**e for e in range(-6, 9)))
"""Blends of the first round of the line search; two more rounds search between the neighbours of the best."""


@dataclass(frozen=True)
class FullRankConfig:
    """The part of a folder's config beside those of the two terms."""

    parameters: JsonObject
    custom_terms: dict[str, bool]
    blend: float
    searched: list[tuple[float, float]]
    validation_map: float | None


class _JointTerms(Wsabie):
    """Joint training of the embedding and the linear term, which gives the settings of the weights."""

    linear: LinearRanker

    def _resolve_settings(self, shape: TrainingShape) -> TrainingSettings:
        weights, points = self.linear._resolve_settings(shape), super()._resolve_settings(shape)
        return replace(
            points,
            bias_rate=points.bias_rate / 2,  # each term has a bias, and the score has their sum
            weight_rate=weights.weight_rate,
            max_norm_weights=weights.max_norm_weights,
            l2_weights=weights.l2_weights,
        )

    def _build_space(self, n_features: int) -> Any:
        return JointLinearSpace(super()._build_space(n_features), allocate_weights(n_features, len(self.vocabulary_)))


@dataclass(eq=False, repr=False)
class FullRank(ScoreRanker):
    """A linear ranking model and an embedding whose scores are added.

    Parameters
    ----------
    embedding : Wsabie or None
        Not yet fitted; None is `Wsabie()`.
    linear : LinearRanker or None
        Not yet fitted; None is `LinearRanker()`.
    blend : float or "auto", default "auto"
        Factor of the embedding's scores (the paper's lambda); "auto" is the best one on the validation rows.
    joint : bool, default False
        Train both terms at once; then `blend` is 1, and `linear.l2` is the penalty on ||w_y||^2.
    threads : int or None
    seed : int, default 0
        Replaces the seeds of both terms.

    Attributes
    ----------
    embedding_ : Wsabie
    linear_ : LinearRanker
    blend_ : float
    validation_map_ : float or None
        Mean average precision of the chosen blend, or of the best epoch if the terms were trained jointly.
    searched_ : list of (float, float)
        Every evaluated blend with its figure on the validation rows: MAP, or the metric of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = FullRank(Wsabie(dim=4, epochs=3), LinearRanker(epochs=3), blend=1.0, threads=1)
    >>> model.fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10).annotate(X[[0]], k=1)[0][0][0]
    'red'
    """

    kind = "full-rank"

    embedding: Wsabie | None = None
    linear: LinearRanker | None = None
    _: KW_ONLY
    blend: float | Literal["auto"] = "auto"
    joint: bool = False
    threads: int | None = None
    seed: int = 0

    def fit(
        self,
        X: Matrix,
        Y: Labels,
        *,
        validation: tuple[Matrix, Labels] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        label_names: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        metric: str = "MAP",
        **options: Unpack[FitOptions],
    ) -> Self:
        """Train both terms, the linear one first, and find the blend.

        Parameters
        ----------
        X, Y, validation, sample_weight, label_names, fingerprint, metric, progress, on_epoch
            See `Wsabie.fit`; `blend="auto"` needs validation rows unless the terms are trained jointly. The metric
            chooses the epochs of both terms, and the blend.
        checkpoint : path or None
            Folder for the states of training, with a folder for each term.
        resume : bool
            Continue from `checkpoint`; a term that is complete there is not trained again.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the message says where.
        DivergenceError
            Training produced numbers that are not finite.
        """
        self.check_parameters()
        search = self.blend == "auto" and not self.joint
        if search and validation is None:
            fact = "the full-rank model's blend is chosen on validation rows"
            raise UnsuitableModelError(f"{fact}; fit with validation=(X, Y), or give a number")
        fit_options: dict[str, Any] = {"validation": validation, "metric": metric, **options}
        fit_options |= {"sample_weight": sample_weight, "label_names": label_names}
        checkpoints = self._list_checkpoints(checkpoint, options.get("resume", False))
        embedding, linear = self._build_terms()
        if self.joint:
            self._fit_jointly(embedding, linear, X, Y, {**fit_options, "checkpoint": checkpoints["joint"]})
        else:  # the linear term first: it reports at once that it is too large
            linear.fit(X, Y, checkpoint=checkpoints["linear"], **fit_options)
            embedding.fit(X, Y, checkpoint=checkpoints["embedding"], **fit_options)
        self.embedding_, self.linear_ = embedding, linear
        self._copy_schema(embedding)
        self.blend_ = 1.0 if search or self.joint else float(self.blend)
        self.searched_: list[tuple[float, float]] = []
        self.validation_map_: float | None = embedding.facts()["validation_map"] if self.joint else None
        if search:
            validation_rows, truth = validation  # type: ignore[misc]  # checked above
            self._search_blend(validation_rows, truth, metric)
        return self

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        is_usable = isinstance(self.blend, (int, float, np.number)) and not isinstance(self.blend, bool)
        problem = f'blend is {self.blend!r}; choose "auto" or a number from 0 on'
        require(self.blend == "auto" or (is_usable and 0 <= float(self.blend) < float("inf")), problem)
        for term in self._build_terms():
            term.check_parameters()
        is_ridge = self.embedding is not None and self.embedding.init == "ridge"
        require(
            not (self.joint and is_ridge), 'terms that train together begin at random; leave init="ridge" or joint out'
        )

    def _build_terms(self) -> tuple[Wsabie, LinearRanker]:
        """Return both terms, unfitted."""
        run_parameters = {"threads": self.threads, "seed": self.seed}
        embedding: Wsabie = clone(self.embedding) if self.embedding is not None else Wsabie()
        linear: LinearRanker = clone(self.linear) if self.linear is not None else LinearRanker()
        return embedding.set_params(**run_parameters), linear.set_params(**run_parameters)

    def _list_checkpoints(self, checkpoint: str | Path | None, resume: bool) -> dict[str, Path | None]:
        """Return the checkpoint folders of the terms; InputError if one is from another way of training."""
        names = ("linear", "embedding", "joint")
        if checkpoint is None:
            return dict.fromkeys(names)
        checkpoints: dict[str, Path | None] = {name: Path(checkpoint) / name for name in names}
        conflicting_folders = [Path(checkpoint) / name for name in names if (name == "joint") != self.joint]
        if resume and any(map(is_model_folder, [Path(checkpoint), *conflicting_folders])):
            difference = "kind of model" if is_model_folder(checkpoint) else "joint"
            fact = f"the checkpoint at {checkpoint} was made with another {difference}"
            raise InputError(f"{fact}; use the same settings and data, or start over (`restart`)")
        return checkpoints

    def _fit_jointly(
        self, embedding: Wsabie, linear: LinearRanker, X: Matrix, Y: Labels, fit_options: dict[str, Any]
    ) -> None:
        model = _JointTerms(**embedding.get_params()).set_params(init="random")
        model.linear = linear
        model.fit(X, Y, **fit_options)
        space: Any = model.space_
        for part, term_space in ((embedding, space.joint), (linear, space.linear)):
            part.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
            part.calibration_, part.space_ = None, term_space

    def _search_blend(self, X: Matrix, Y: Labels, metric: str = "MAP") -> None:
        """Search the best blend in three rounds, the later two between the neighbours of the best."""
        inputs = self._check_rows(X, "validation X")
        truth = self._build_truth(Y, count_rows(inputs))
        rows = sample_labelled_rows(truth, MAX_ROWS)
        inputs, truth = take_rows(inputs, rows), truth[rows]
        figures: dict[float, tuple[float, float]] = {}
        blends: Sequence[float] = BLENDS
        for _ in range(3):
            figures |= self._evaluate_blends(inputs, truth, [blend for blend in blends if blend not in figures], metric)
            sorted_blends = sorted(figures)
            best = sorted_blends.index(max(sorted_blends, key=lambda blend: figures[blend][0]))
            low, high = sorted_blends[max(best - 1, 0)], sorted_blends[min(best + 1, len(sorted_blends) - 1)]
            blends = np.linspace(low, high, 7).tolist()
        self.blend_ = max(sorted(figures), key=lambda blend: figures[blend][0])
        self.searched_ = sorted((blend, figure) for blend, (figure, _) in figures.items())
        self.validation_map_ = figures[self.blend_][1]

    def _evaluate_blends(
        self, inputs: FeatureMatrix, truth: Matrix, blends: Sequence[float], metric: str
    ) -> dict[float, tuple[float, float]]:
        """Return the metric and the MAP of each blend, from one pass over the scores of both terms."""
        sums, n, k = {blend: np.zeros(2) for blend in blends}, len(self.vocabulary_), int(metric.partition("@")[2] or 1)
        for lo, hi in iterate_row_ranges(count_rows(inputs), 2 * n):
            part, part_truth = slice_rows(inputs, lo, hi), truth[lo:hi]
            linear, points = self.linear_._compute_scores(part), self.embedding_._compute_scores(part)
            for blend in blends:
                scores = linear + np.float32(blend) * points
                means = evaluate_scores([(0, scores)], part_truth, ks=(k,)).means
                sums[blend] += np.array([means[metric], means["MAP"]]) * (hi - lo)
        return {blend: tuple((total / count_rows(inputs)).tolist()) for blend, total in sums.items()}

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        self.linear_.threads = self.embedding_.threads = self.threads
        scores: Float32 = self.linear_._compute_scores(inputs)
        scores += np.float32(self.blend_) * self.embedding_._compute_scores(inputs)
        return scores

    @property
    def history_(self) -> list[EpochStats]:
        """Epochs of both terms, the linear ones first; or of the joint run."""
        embedding_history = self.embedding_.history_
        return embedding_history if self.joint else [*self.linear_.history_, *embedding_history]

    @property
    def settings_(self) -> JsonObject:
        """Settings of training by term, every "auto" resolved."""
        return {"linear": self.linear_.settings_, "embedding": self.embedding_.settings_}

    @property
    def label_vectors(self) -> Float32:
        """Label vectors of the embedding, (n_labels, dim) float32, which `neighbours` compares; a view."""
        return self.embedding_.label_vectors

    def facts(self) -> JsonObject:
        facts = {**super().facts(), "dimensions": self.embedding_.space_.dim, "blend": self.blend_}
        return {**facts, "epochs": len(self.history_), "validation_map": self.validation_map_}

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.linear_.n_bytes + self.embedding_.n_bytes)

    def to_state(self) -> ModelState:
        self._check_fitted()
        state = {"embedding": self.embedding_.to_state(), "linear": self.linear_.to_state()}
        config = {
            "parameters": to_json_value({name: getattr(self, name) for name in ("blend", "joint", "threads", "seed")}),
            "custom_terms": {name: getattr(self, name) is not None for name in state},
            "blend": self.blend_,
            "searched": self.searched_,
            "validation_map": self.validation_map_,
            **{name: part.config for name, part in state.items()},
        }
        tensors = {name: array for prefix, part in state.items() for name, array in part.add_prefix(prefix).items()}
        return ModelState(self.kind, config, tensors)

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        config, fields = state.config, read_config(FullRankConfig, state.config)
        embedding = Wsabie.from_state(state.select_prefix("embedding", Wsabie.kind, config["embedding"]))
        linear = LinearRanker.from_state(state.select_prefix("linear", LinearRanker.kind, config["linear"]))
        if list(embedding.vocabulary_) != list(linear.vocabulary_) or embedding.n_features_in_ != linear.n_features_in_:
            raise ValueError("the two terms are of different labels or features")
        terms = {"embedding": Wsabie(**embedding.get_params()), "linear": LinearRanker(**linear.get_params())}
        check_parameters(cls, fields.parameters)
        model = cls(**{name: part for name, part in terms.items() if fields.custom_terms[name]}, **fields.parameters)
        model.embedding_, model.linear_ = embedding, linear
        model._copy_schema(embedding)
        model.check_parameters()
        model.validation_map_, model.blend_, model.searched_ = fields.validation_map, fields.blend, fields.searched
        return model
