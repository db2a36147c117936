"""A model reduced to a few arrays and steps, for exports to other programs.

    x' = scaled row;   p = x' V + c;   [p = a mix of given vectors];   s = similarity(p, W) + b;   the k best

Linear models have no W: their p are the scores. `wsabie.models.exporters.export_formats` writes this in several
formats.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError
from wsabie.embedding.joint_space import SimilarityName
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.devise import Devise
from wsabie.models.ensemble import Ensemble
from wsabie.models.linear_ranker import LinearRanker
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.models.softmax import Softmax
from wsabie.models.word_vectors import Conse, WordVectorRanker
from wsabie.models.wsabie.estimator import Wsabie
from wsabie.search.search_arrays import find_far_centre


class ClassMixture(NamedTuple):
    """ConSE's step: the vectors of the `top` best classes, averaged by their probabilities.

    Attributes
    ----------
    top : int
    targets : (n_classes, dim) float32
    """

    top: int
    targets: Float32


class ScoringTable(NamedTuple):
    """The table that points are compared with.

    Attributes
    ----------
    table : (n_rows, dim) float32
        W, relative to the centre, and at unit length for the cosine.
    similarity : {"dot", "euclidean", "cosine"}
    bias : (n_labels,) float32 or None
        -inf for labels that are never predicted.
    centre : (dim,) float32 or None
        Subtracted from points before distances are computed, if the table lies so far from the origin that digits
        would be lost.
    terms : (n_labels, most) int64 or None
        Rows of the table that belong to a label, padded with the first; the best one counts. None: a row per label.
    """

    table: Float32
    similarity: SimilarityName
    bias: Float32 | None = None
    centre: Float32 | None = None
    terms: Int64 | None = None


@dataclass(frozen=True)
class PortableModel:
    """A model as arrays.

    Attributes
    ----------
    kind : str
        Kind of the original model.
    labels : list of str
        Names by number; "" for merged or removed labels.
    n_features : int
        Features of unscaled rows.
    scaling : RowScaling
    features : (n_features + scaling.n_added, m) float32
        V, or the weights of a linear model.
    offset : (m,) float32 or None
        Added to x' V; -inf for labels that are never predicted.
    log_softmax : bool
        The sum is then converted to logarithms of probabilities.
    mixture : ClassMixture or None
    against : ScoringTable or None
        None: the sum is the scores.
    """

    kind: str
    labels: list[str]
    n_features: int
    scaling: RowScaling
    features: Float32
    offset: Float32 | None = None
    log_softmax: bool = False
    mixture: ClassMixture | None = None
    against: ScoringTable | None = None

    @property
    def sparse(self) -> bool:
        """True if rows are given as feature numbers and values."""
        return self.scaling.method in ("log", "tfidf")

    @property
    def constant(self) -> Float32 | None:
        """Contribution (m,) of the constant feature of dense rows to x' V, before rows get unit length."""
        return self.features[-1] * self.scaling.weight[-1] if self.scaling.n_added else None

    @property
    def own_features(self) -> Float32:
        """Rows of V of the given features, (n_features, m)."""
        return self.features[: self.n_features]

    @property
    def some_hidden(self) -> bool:
        """True if some labels are never predicted."""
        last = self.offset if self.against is None else self.against.bias
        return last is not None and not bool(np.isfinite(last).all())


def build_portable_model(model: Any) -> PortableModel:
    """Reduce a fitted model to arrays.

    Raises
    ------
    InputError
        This kind of model cannot be reduced to them.

    Examples
    --------
    >>> small = build_portable_model(Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]))
    >>> small.labels, small.features.shape, small.against.table.shape, small.sparse
    (['red', 'green', 'blue'], (4, 4), (3, 4), False)
    """
    for kind, arrays in _KINDS.items():
        if type(model) is kind:
            model._check_fitted()
            return arrays(model)
    raise InputError(
        f"a model of kind {getattr(model, 'kind', type(model).__name__)} does not come down to two tables; export one "
        f"of {', '.join(kind.kind for kind in _KINDS)}, or keep the model folder"
    )


def _convert_wsabie(model: Wsabie) -> PortableModel:
    space = model.space_
    bias = space.bias.copy()
    bias[model.vocabulary_.retired_ids()] = -np.inf
    table = model.label_vectors.astype(np.float32, copy=False)
    features = space.features[:, : space.dim]
    against = _build_scoring_table(table, space.similarity, bias if bias.any() else None)
    return _build_model(model, model.scaling_, features, against=against)


def _convert_ensemble(model: Ensemble) -> PortableModel:
    return replace(_convert_wsabie(model.joined_), kind=model.kind)


def _convert_linear_ranker(model: LinearRanker) -> PortableModel:
    return _convert_weights(model, model.coef_, model.space_.bias)


def _convert_one_vs_rest(model: OneVsRest) -> PortableModel:
    return _convert_weights(model, model.coef_, model.intercept_)


def _convert_softmax(model: Softmax) -> PortableModel:
    n = len(model.vocabulary_)
    weights = np.zeros((n, model.weights_.shape[1]), np.float32)
    bias = np.full(n, -np.inf, np.float32)
    weights[model.trained_label_ids_], bias[model.trained_label_ids_] = model.weights_, model.bias_
    return replace(_convert_weights(model, weights, bias), log_softmax=True)


def _convert_weights(model: Any, weights: Float32, bias: Float32) -> PortableModel:
    offset = np.asarray(bias) if np.any(bias) else None
    return _build_model(model, model.scaling_, np.ascontiguousarray(weights.T), offset=offset)


def _convert_devise(model: Devise) -> PortableModel:
    features = model.space_.features[:, : model.space_.dim]
    return _build_model(model, model.scaling_, features, against=_build_term_table(model))


def _convert_conse(model: Conse) -> PortableModel:
    inner = _convert_softmax(model.classifier_)
    mixture = ClassMixture(min(model.top, len(model.targets_)), model.targets_)
    against = _build_term_table(model)
    return _build_model(model, inner.scaling, inner.features, offset=inner.offset, mixture=mixture, against=against)


def _build_model(model: Any, scaling: RowScaling, features: Float32, **steps: Any) -> PortableModel:
    labels = list(model.vocabulary_)
    for label_id in model.vocabulary_.retired_ids():
        labels[label_id] = ""  # no row gets it
    return PortableModel(model.kind, labels, model.n_features_in_, scaling, features, **steps)


def _build_scoring_table(table: Float32, similarity: SimilarityName, bias: Float32 | None) -> ScoringTable:
    from wsabie.kernels.embedding.similarity import SHORTEST

    centre = find_far_centre(table) if similarity == "euclidean" else None
    if similarity == "cosine":
        table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), SHORTEST)
    return ScoringTable(table if centre is None else table - centre, similarity, bias, centre)


def _build_term_table(model: WordVectorRanker) -> ScoringTable:
    """Return the term vectors of a model, and the terms of each label."""
    if model.expand != "all":
        raise InputError('a model whose terms mean a random one of their labels cannot be exported; use expand="all"')
    term_table, n = model.terms_, len(model.vocabulary_)
    counts = np.bincount(term_table.label, minlength=n)
    places, most = np.cumsum(counts) - counts, max(1, int(counts.max()))
    within = np.arange(most) * (np.arange(most) < counts[:, None])
    terms = term_table.term[np.minimum(places[:, None] + within, len(term_table.term) - 1)]
    bias = None if counts.all() else np.where(counts > 0, 0, -np.inf).astype(np.float32)
    if most == 1:
        return _build_scoring_table(term_table.table[terms[:, 0]], "cosine", bias)
    return _build_scoring_table(term_table.table, "cosine", bias)._replace(terms=terms)


_KINDS: dict[Any, Callable[[Any], PortableModel]] = {
    Wsabie: _convert_wsabie,
    Ensemble: _convert_ensemble,
    Devise: _convert_devise,
    Conse: _convert_conse,
    Softmax: _convert_softmax,
    LinearRanker: _convert_linear_ranker,
    OneVsRest: _convert_one_vs_rest,
}
