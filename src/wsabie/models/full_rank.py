"""The full-rank model: a weight per label and feature beside the embedding, f_y(x) = w_y . x + blend * s(W_y, V x).

[W] section 3, eq. 1: the two terms are trained separately and blended by a line search on validation rows. The
alternative that the paper names and does not use, both terms at once with a penalty on ||w_y||^2, is `joint=True`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from wsabie.base.arrays import Float32, Matrix
from wsabie.base.errors import UnsuitableError
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require
from wsabie.evaluation.evaluate import evaluate_scores
from wsabie.models import defaults
from wsabie.models.inputs import Inputs, n_rows, row_ranges, rows_between, take_rows
from wsabie.models.linear import LinearRanker
from wsabie.models.monitor import MAX_ROWS
from wsabie.models.scored import ScoreRanker
from wsabie.models.wsabie import Wsabie
from wsabie.space.linear import FullSpace, LinearSpace
from wsabie.storage.folder import Parts
from wsabie.training.settings import Settings

BLENDS = (0.0, *(2.0**e for e in range(-6, 9)))
"""First round of the line search; two more look between the neighbours of the best."""


class _Jointly(Wsabie):
    """Both terms in one training run; `linear` gives the rate, decay and limit of the weights."""

    linear: LinearRanker

    def _resolved(self, shape: defaults.Shape) -> Settings:
        weights = self.linear._resolved(shape)
        return replace(
            super()._resolved(shape),
            weight_rate=weights.weight_rate,
            max_norm_weights=weights.max_norm_weights,
            l2_weights=weights.l2_weights,
        )

    def _new_space(self, n_features: int) -> Any:
        return FullSpace(super()._new_space(n_features), LinearSpace.zeros(n_features, len(self.vocabulary_)))


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
    searched_ : list of (float, float)
        Every blend that was tried with its mean average precision on the validation rows.

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
        progress: Progress = SILENT,
        on_epoch: Callable[[Any], None] | None = None,
    ) -> Self:
        """Train both terms, and find the blend.

        Parameters
        ----------
        X, Y, validation, sample_weight, label_names, progress, on_epoch
            As for `Wsabie.fit`; `blend="auto"` needs validation rows unless the terms are trained jointly.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the sentence says where.
        DivergenceError
            Training produced numbers that are not finite.
        """
        search = self.blend == "auto" and not self.joint
        if search and validation is None:
            raise UnsuitableError(
                "the full-rank model's blend is chosen on validation rows; fit with validation=(X, Y), or give a number"
            )
        usable = isinstance(self.blend, (int, float, np.number)) and not isinstance(self.blend, bool)
        require(
            self.blend == "auto" or (usable and 0 <= float(self.blend) < float("inf")),
            f'blend is {self.blend!r}; choose "auto" or a number from 0 on',
        )
        given = {"sample_weight": sample_weight, "label_names": label_names, "progress": progress, "on_epoch": on_epoch}
        own = {"threads": self.threads, "seed": self.seed}
        embedding = (clone(self.embedding) if self.embedding is not None else Wsabie()).set_params(**own)
        linear = (clone(self.linear) if self.linear is not None else LinearRanker()).set_params(**own)
        if self.joint:
            self._fit_jointly(embedding, linear, X, Y, {**given, "validation": validation})
        else:
            self.embedding_ = embedding.fit(X, Y, validation=validation, **given)
            self.linear_ = linear.fit(X, Y, validation=validation, **given)
        self.vocabulary_, self.n_features_in_ = self.embedding_.vocabulary_, self.embedding_.n_features_in_
        self.blend_ = 1.0 if search or self.joint else float(self.blend)
        self.searched_: list[tuple[float, float]] = []
        if search:
            self._search(*validation)  # type: ignore[misc]  # checked above
        return self

    def _fit_jointly(self, embedding: Wsabie, linear: LinearRanker, X: Any, Y: Any, given: dict[str, Any]) -> None:
        model = _Jointly(**embedding.get_params())
        model.linear = linear
        model.fit(X, Y, **given)
        space: Any = model.space_
        for part, own in ((embedding, space.joint), (linear, space.linear)):
            part.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
            part.calibration_, part.space_ = None, own
        self.embedding_, self.linear_ = embedding, linear

    def _search(self, X: Any, Y: Any) -> None:
        """Line search over the blend: a coarse round, and two between the neighbours of the best."""
        inputs = self._checked(X, "validation X")
        truth = self._truth(Y, n_rows(inputs))
        labelled = np.flatnonzero(np.diff((truth > 0).tocsr().indptr))
        rows = labelled[np.linspace(0, len(labelled) - 1, min(MAX_ROWS, len(labelled))).astype(int)]
        inputs, truth = take_rows(inputs, rows), truth[rows]
        tried: dict[float, float] = {}
        wanted: Sequence[float] = BLENDS
        for _ in range(3):
            tried |= self._judged(inputs, truth, [blend for blend in wanted if blend not in tried])
            known = sorted(tried)
            at = known.index(max(known, key=lambda blend: tried[blend]))
            low, high = known[max(at - 1, 0)], known[min(at + 1, len(known) - 1)]
            wanted = np.linspace(low, high, 7).tolist()
        self.blend_ = max(sorted(tried), key=lambda blend: tried[blend])
        self.searched_ = sorted(tried.items())

    def _judged(self, inputs: Inputs, truth: Matrix, blends: Sequence[float]) -> dict[float, float]:
        """Mean average precision of each blend, from one pass over the scores of both terms."""
        sums, n = dict.fromkeys(blends, 0.0), len(self.vocabulary_)
        for lo, hi in row_ranges(n_rows(inputs), 2 * n):
            part, own = rows_between(inputs, lo, hi), truth[lo:hi]
            linear, points = self.linear_._scores(part), self.embedding_._scores_of_checked(part)
            for blend in blends:
                scores = linear + np.float32(blend) * points
                sums[blend] += evaluate_scores([(0, scores)], own, ks=(1,)).means["MAP"] * (hi - lo)
        return {blend: total / n_rows(inputs) for blend, total in sums.items()}

    def _scores(self, inputs: Inputs) -> Float32:
        scores: Float32 = self.linear_._scores(inputs)
        scores += np.float32(self.blend_) * self.embedding_._scores_of_checked(inputs)
        return scores

    @property
    def history_(self) -> list[Any]:
        """The epochs of both terms, the embedding's first; of the one run when they were trained jointly."""
        one = self.embedding_.history_
        return one if self.joint else [*one, *self.linear_.history_]

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.linear_.n_bytes + self.embedding_.n_bytes)

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        self._check_fitted()
        parts = {"embedding": self.embedding_.to_parts(), "linear": self.linear_.to_parts()}
        config = {
            "own": {name: getattr(self, name) for name in ("blend", "joint", "threads", "seed")},
            "given": {name: getattr(self, name) is not None for name in parts},
            "blend": self.blend_,
            "searched": self.searched_,
            **{name: part.config for name, part in parts.items()},
        }
        tensors = {name: array for prefix, part in parts.items() for name, array in part.nested(prefix).items()}
        return Parts(self.kind, config, tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described."""
        config = parts.config
        embedding = Wsabie.from_parts(parts.under("embedding", Wsabie.kind, config["embedding"]))
        linear = LinearRanker.from_parts(parts.under("linear", LinearRanker.kind, config["linear"]))
        if list(embedding.vocabulary_) != list(linear.vocabulary_) or embedding.n_features_in_ != linear.n_features_in_:
            raise ValueError("the two terms are of different labels or features")
        named = {"embedding": Wsabie(**embedding.get_params()), "linear": LinearRanker(**linear.get_params())}
        model = cls(**{name: part for name, part in named.items() if config["given"][name]}, **config["own"])
        model.embedding_, model.linear_ = embedding, linear
        model.vocabulary_, model.n_features_in_ = embedding.vocabulary_, embedding.n_features_in_
        model.blend_, model.searched_ = float(config["blend"]), [tuple(pair) for pair in config["searched"]]
        return model
