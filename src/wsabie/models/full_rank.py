"""The full-rank model: a weight per label and feature beside the embedding, f_y(x) = w_y . x + blend * s(W_y, V x).

[W] section 3, eq. 1: the two terms are trained separately and blended by a line search on validation rows. The
alternative that the paper names and does not use, both terms at once with a penalty on ||w_y||^2, is `joint=True`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from wsabie.base.arrays import Float32, Matrix
from wsabie.base.errors import InputError, UnsuitableError
from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require
from wsabie.evaluation.evaluate import evaluate_scores
from wsabie.models import defaults
from wsabie.models.inputs import Inputs, n_rows, row_ranges, rows_between, take_rows
from wsabie.models.linear import LinearRanker, weights_for
from wsabie.models.monitor import MAX_ROWS
from wsabie.models.scored import ScoreRanker
from wsabie.models.wsabie import Wsabie
from wsabie.space.linear import FullSpace
from wsabie.storage.folder import Parts, is_model_folder
from wsabie.storage.schema import check_parameters, read_config
from wsabie.training.settings import Settings

BLENDS = (0.0, *(2.0**e for e in range(-6, 9)))
"""First round of the line search; two more look between the neighbours of the best."""


@dataclass(frozen=True)
class FullRankConfig:
    """The part of a folder's config beside those of the two terms."""

    parameters: dict[str, Any]
    given: dict[str, bool]
    blend: float
    searched: list[tuple[float, float]]
    validation_map: float | None


class _Jointly(Wsabie):
    """Both terms in one training run; `linear` gives the rate, decay and limit of the weights."""

    linear: LinearRanker

    def _resolved(self, shape: defaults.Shape) -> Settings:
        weights, points = self.linear._resolved(shape), super()._resolved(shape)
        return replace(
            points,
            bias_rate=points.bias_rate / 2,  # each term has a bias, and the score has their sum
            weight_rate=weights.weight_rate,
            max_norm_weights=weights.max_norm_weights,
            l2_weights=weights.l2_weights,
        )

    def _new_space(self, n_features: int) -> Any:
        return FullSpace(super()._new_space(n_features), weights_for(n_features, len(self.vocabulary_)))


class FullRank(ScoreRanker):
    """A linear ranking model and an embedding whose scores are added.

    Parameters
    ----------
    embedding : Wsabie or None
        Not yet fitted; None is `Wsabie()`.
    linear : LinearRanker or None
        Not yet fitted; None is `LinearRanker()`.
    blend : float or "auto", default "auto"
        What the embedding's scores are multiplied by (the paper's lambda); "auto" is the best on the validation rows.
    joint : bool, default False
        Train both terms at once; then `blend` is 1, and `linear.l2` is the penalty on ||w_y||^2.
    threads : int or None
    seed : int, default 0
        In place of the parts' own.

    Attributes
    ----------
    embedding_ : Wsabie
    linear_ : LinearRanker
    blend_ : float
    validation_map_ : float or None
        Of the chosen blend; of the kept epoch when the terms were trained jointly.
    searched_ : list of (float, float)
        Every blend that was tried with its figure on the validation rows: MAP unless `fit` was given another metric.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = FullRank(Wsabie(dim=4, epochs=3), LinearRanker(epochs=3), blend=1.0, threads=1)
    >>> model.fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10).annotate(X[[0]], k=1)[0][0][0]
    'red'
    """

    kind = "full-rank"

    def __init__(
        self,
        embedding: Wsabie | None = None,
        linear: LinearRanker | None = None,
        *,
        blend: float | Literal["auto"] = "auto",
        joint: bool = False,
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.embedding = embedding
        self.linear = linear
        self.blend = blend
        self.joint = joint
        self.threads = threads
        self.seed = seed

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
        metric: str = "MAP",
        progress: Progress = SILENT,
        on_epoch: Callable[[Any], None] | None = None,
    ) -> Self:
        """Train both terms, the linear one first, and find the blend.

        Parameters
        ----------
        X, Y, validation, sample_weight, label_names, fingerprint, metric, progress, on_epoch
            As for `Wsabie.fit`; `blend="auto"` needs validation rows unless the terms are trained jointly. The metric
            chooses the epochs of both terms, and the blend.
        checkpoint : path or None
            Folder for the states of training, one folder in it for each term.
        resume : bool
            Go on from `checkpoint`; a term that is done there is not trained again.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the sentence says where.
        DivergenceError
            Training produced numbers that are not finite.
        """
        self.check_parameters()
        search = self.blend == "auto" and not self.joint
        if search and validation is None:
            raise UnsuitableError(
                "the full-rank model's blend is chosen on validation rows; fit with validation=(X, Y), or give a number"
            )
        given: dict[str, Any] = {"validation": validation, "sample_weight": sample_weight, "label_names": label_names}
        given |= {"resume": resume, "fingerprint": fingerprint, "metric": metric}
        given |= {"progress": progress, "on_epoch": on_epoch}
        places = self._places(checkpoint, resume)
        embedding, linear = self._terms()
        if self.joint:
            self._fit_jointly(embedding, linear, X, Y, {**given, "checkpoint": places["joint"]})
        else:  # the linear term first: it says at once that it is too large
            linear.fit(X, Y, checkpoint=places["linear"], **given)
            embedding.fit(X, Y, checkpoint=places["embedding"], **given)
        self.embedding_, self.linear_ = embedding, linear
        self.vocabulary_, self.n_features_in_ = self.embedding_.vocabulary_, self.embedding_.n_features_in_
        self.feature_names_in_ = self.embedding_.feature_names_in_
        self.blend_ = 1.0 if search or self.joint else float(self.blend)
        self.searched_: list[tuple[float, float]] = []
        self.validation_map_: float | None = embedding.facts()["validation_map"] if self.joint else None
        if search:
            judged, truth = validation  # type: ignore[misc]  # checked above
            self._search(judged, truth, metric)
        return self

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        usable = isinstance(self.blend, (int, float, np.number)) and not isinstance(self.blend, bool)
        require(
            self.blend == "auto" or (usable and 0 <= float(self.blend) < float("inf")),
            f'blend is {self.blend!r}; choose "auto" or a number from 0 on',
        )
        for term in self._terms():
            term.check_parameters()

    def _terms(self) -> tuple[Wsabie, LinearRanker]:
        """Both terms, not yet fitted."""
        own = {"threads": self.threads, "seed": self.seed}
        embedding: Wsabie = clone(self.embedding) if self.embedding is not None else Wsabie()
        linear: LinearRanker = clone(self.linear) if self.linear is not None else LinearRanker()
        return embedding.set_params(**own), linear.set_params(**own)

    def _places(self, checkpoint: str | Path | None, resume: bool) -> dict[str, Path | None]:
        """Where the states of training are kept, by term; what another way of training left there is refused."""
        names = ("linear", "embedding", "joint")
        if checkpoint is None:
            return dict.fromkeys(names)
        places: dict[str, Path | None] = {name: Path(checkpoint) / name for name in names}
        others = [Path(checkpoint) / name for name in names if (name == "joint") != self.joint]
        if resume and any(map(is_model_folder, [Path(checkpoint), *others])):
            what = "kind of model" if is_model_folder(checkpoint) else "joint"
            raise InputError(
                f"the checkpoint at {checkpoint} was made with another {what}; "
                "use the same settings and data, or begin anew (--anew)"
            )
        return places

    def _fit_jointly(self, embedding: Wsabie, linear: LinearRanker, X: Any, Y: Any, given: dict[str, Any]) -> None:
        model = _Jointly(**embedding.get_params())
        model.linear = linear
        model.fit(X, Y, **given)
        space: Any = model.space_
        for part, own in ((embedding, space.joint), (linear, space.linear)):
            part.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
            part.calibration_, part.space_ = None, own

    def _search(self, X: Any, Y: Any, metric: str = "MAP") -> None:
        """Line search over the blend: a coarse round, and two between the neighbours of the best."""
        inputs = self._checked(X, "validation X")
        truth = self._truth(Y, n_rows(inputs))
        labelled = np.flatnonzero(np.diff((truth > 0).tocsr().indptr))
        rows = labelled[np.linspace(0, len(labelled) - 1, min(MAX_ROWS, len(labelled))).astype(int)]
        inputs, truth = take_rows(inputs, rows), truth[rows]
        tried: dict[float, tuple[float, float]] = {}
        wanted: Sequence[float] = BLENDS
        for _ in range(3):
            tried |= self._judged(inputs, truth, [blend for blend in wanted if blend not in tried], metric)
            known = sorted(tried)
            at = known.index(max(known, key=lambda blend: tried[blend][0]))
            low, high = known[max(at - 1, 0)], known[min(at + 1, len(known) - 1)]
            wanted = np.linspace(low, high, 7).tolist()
        self.blend_ = max(sorted(tried), key=lambda blend: tried[blend][0])
        self.searched_ = sorted((blend, figure) for blend, (figure, _) in tried.items())
        self.validation_map_ = tried[self.blend_][1]

    def _judged(
        self, inputs: Inputs, truth: Matrix, blends: Sequence[float], metric: str
    ) -> dict[float, tuple[float, float]]:
        """The metric's figure of each blend and its MAP, from one pass over the scores of both terms."""
        sums, n, k = {blend: np.zeros(2) for blend in blends}, len(self.vocabulary_), int(metric.partition("@")[2] or 1)
        for lo, hi in row_ranges(n_rows(inputs), 2 * n):
            part, own = rows_between(inputs, lo, hi), truth[lo:hi]
            linear, points = self.linear_._scores(part), self.embedding_._scores_of_checked(part)
            for blend in blends:
                scores = linear + np.float32(blend) * points
                means = evaluate_scores([(0, scores)], own, ks=(k,)).means
                sums[blend] += np.array([means[metric], means["MAP"]]) * (hi - lo)
        return {blend: tuple((total / n_rows(inputs)).tolist()) for blend, total in sums.items()}

    def _scores(self, inputs: Inputs) -> Float32:
        self.linear_.threads = self.embedding_.threads = self.threads
        scores: Float32 = self.linear_._scores(inputs)
        scores += np.float32(self.blend_) * self.embedding_._scores_of_checked(inputs)
        return scores

    @property
    def history_(self) -> list[Any]:
        """The epochs of both terms, the linear one's first; of the one run when they were trained jointly."""
        one = self.embedding_.history_
        return one if self.joint else [*self.linear_.history_, *one]

    @property
    def settings_(self) -> dict[str, Any]:
        """What training used, by term, every "auto" resolved."""
        return {"linear": self.linear_.settings_, "embedding": self.embedding_.settings_}

    @property
    def label_vectors(self) -> Float32:
        """Points of labels in the embedding, (n_labels, dim) float32, by which `neighbours` compares; a view."""
        return self.embedding_.label_vectors

    def facts(self) -> dict[str, Any]:
        """Sizes and figures, JSON-able."""
        known = {**super().facts(), "dimensions": self.embedding_.space_.dim, "blend": self.blend_}
        return {**known, "epochs": len(self.history_), "validation_map": self.validation_map_}

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.linear_.n_bytes + self.embedding_.n_bytes)

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        self._check_fitted()
        parts = {"embedding": self.embedding_.to_parts(), "linear": self.linear_.to_parts()}
        config = {
            "parameters": plain({name: getattr(self, name) for name in ("blend", "joint", "threads", "seed")}),
            "given": {name: getattr(self, name) is not None for name in parts},
            "blend": self.blend_,
            "searched": self.searched_,
            "validation_map": self.validation_map_,
            **{name: part.config for name, part in parts.items()},
        }
        tensors = {name: array for prefix, part in parts.items() for name, array in part.nested(prefix).items()}
        return Parts(self.kind, config, tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described."""
        config, fields = parts.config, read_config(FullRankConfig, parts.config)
        embedding = Wsabie.from_parts(parts.under("embedding", Wsabie.kind, config["embedding"]))
        linear = LinearRanker.from_parts(parts.under("linear", LinearRanker.kind, config["linear"]))
        if list(embedding.vocabulary_) != list(linear.vocabulary_) or embedding.n_features_in_ != linear.n_features_in_:
            raise ValueError("the two terms are of different labels or features")
        named = {"embedding": Wsabie(**embedding.get_params()), "linear": LinearRanker(**linear.get_params())}
        check_parameters(cls, fields.parameters)
        model = cls(**{name: part for name, part in named.items() if fields.given[name]}, **fields.parameters)
        model.embedding_, model.linear_ = embedding, linear
        model.vocabulary_, model.n_features_in_ = embedding.vocabulary_, embedding.n_features_in_
        model.feature_names_in_ = embedding.feature_names_in_
        model.check_parameters()
        model.validation_map_, model.blend_, model.searched_ = fields.validation_map, fields.blend, fields.searched
        return model
