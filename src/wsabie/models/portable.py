"""What a model comes down to for other programs: a few arrays, and the same few steps for every kind that has them.

    x' = scaled row;   p = x' V + c;   [p = a mix of given vectors];   s = similarity(p, W) + b;   the k best

Linear models have no W: their p are the scores. `wsabie.models.export` writes this in several formats.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.base.errors import InputError
from wsabie.models.conse import Conse
from wsabie.models.devise import Devise
from wsabie.models.ensemble import Ensemble
from wsabie.models.linear import LinearRanker
from wsabie.models.meanings import MeaningRanker
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.models.scaling import RowScaling
from wsabie.models.softmax import Softmax
from wsabie.models.wsabie import Wsabie
from wsabie.search.ready import far_centre
from wsabie.space.joint import SimilarityName


class Mixture(NamedTuple):
    """ConSE's step: the vectors of the `top` best classes, averaged by their probabilities.

    Attributes
    ----------
    top : int
    targets : (n_classes, dim) float32
    """

    top: int
    targets: Float32


class Against(NamedTuple):
    """What points are compared with.

    Attributes
    ----------
    table : (n_rows, dim) float32
        W; about the centre, and at unit length for the cosine.
    similarity : {"dot", "euclidean", "cosine"}
    bias : (n_labels,) float32 or None
        -inf of labels that are never predicted.
    centre : (dim,) float32 or None
        Taken off a point before its distance from a table that lies far from the origin, where digits would be lost.
    terms : (n_labels, most) int64 or None
        Which rows of the table a label has, of which the best counts, the first repeated; None: a row for each label.
    """

    table: Float32
    similarity: SimilarityName
    bias: Float32 | None = None
    centre: Float32 | None = None
    terms: Int64 | None = None


@dataclass(frozen=True)
class Portable:
    """A model as arrays.

    Attributes
    ----------
    kind : str
        Of the model that it was.
    labels : list of str
        By number; "" of those that were merged or removed.
    n_features : int
        Of rows as they are given.
    scaling : RowScaling
    features : (n_features + scaling.n_added, m) float32
        V, or the weights of a linear model.
    offset : (m,) float32 or None
        Added to x' V; -inf of labels that are never predicted.
    log_softmax : bool
        Whether the sum is then brought to logarithms of probabilities.
    mixture : Mixture or None
    against : Against or None
        None: the sum is the scores.
    """

    kind: str
    labels: list[str]
    n_features: int
    scaling: RowScaling
    features: Float32
    offset: Float32 | None = None
    log_softmax: bool = False
    mixture: Mixture | None = None
    against: Against | None = None

    @property
    def sparse(self) -> bool:
        """Whether rows are given as the numbers of features and their values."""
        return self.scaling.method in ("log", "tfidf")

    @property
    def constant(self) -> Float32 | None:
        """What the constant feature behind dense rows adds to x' V before rows are brought to unit length, (m,)."""
        return self.features[-1] * self.scaling.weight[-1] if self.scaling.n_added else None

    @property
    def own_features(self) -> Float32:
        """The rows of V that given features have, (n_features, m)."""
        return self.features[: self.n_features]

    @property
    def some_hidden(self) -> bool:
        """Whether there are labels that are never predicted."""
        last = self.offset if self.against is None else self.against.bias
        return last is not None and not bool(np.isfinite(last).all())


def portable(model: Any) -> Portable:
    """A fitted model as arrays.

    Raises
    ------
    InputError
        A kind of model that does not come down to them.

    Examples
    --------
    >>> small = portable(Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]))
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


def _of_wsabie(model: Wsabie) -> Portable:
    space = model.space_
    bias = space.bias.copy()
    bias[model.vocabulary_.retired()] = -np.inf
    table = model.label_vectors.astype(np.float32, copy=False)
    features = space.features[:, : space.dim]
    against = _against(table, space.similarity, bias if bias.any() else None)
    return _portable(model, model.scaling_, features, against=against)


def _of_ensemble(model: Ensemble) -> Portable:
    return replace(_of_wsabie(model.joined_), kind=model.kind)


def _of_linear(model: LinearRanker) -> Portable:
    return _linear(model, model.coef_, model.space_.bias)


def _of_one_vs_rest(model: OneVsRest) -> Portable:
    return _linear(model, model.coef_, model.intercept_)


def _of_softmax(model: Softmax) -> Portable:
    n = len(model.vocabulary_)
    weights = np.zeros((n, model.weights_.shape[1]), np.float32)
    bias = np.full(n, -np.inf, np.float32)
    weights[model.seen_], bias[model.seen_] = model.weights_, model.bias_
    return replace(_linear(model, weights, bias), log_softmax=True)


def _linear(model: Any, weights: Float32, bias: Float32) -> Portable:
    offset = np.asarray(bias) if np.any(bias) else None
    return _portable(model, model.scaling_, np.ascontiguousarray(weights.T), offset=offset)


def _of_devise(model: Devise) -> Portable:
    features = model.space_.features[:, : model.space_.dim]
    return _portable(model, model.scaling_, features, against=_terms(model))


def _of_conse(model: Conse) -> Portable:
    inner = _of_softmax(model.classifier_)
    mixture = Mixture(min(model.top, len(model.targets_)), model.targets_)
    against = _terms(model)
    return _portable(model, inner.scaling, inner.features, offset=inner.offset, mixture=mixture, against=against)


def _portable(model: Any, scaling: RowScaling, features: Float32, **steps: Any) -> Portable:
    labels = list(model.vocabulary_)
    for gone in model.vocabulary_.retired():
        labels[gone] = ""  # no row gets it
    return Portable(model.kind, labels, model.n_features_in_, scaling, features, **steps)


def _against(table: Float32, similarity: SimilarityName, bias: Float32 | None) -> Against:
    from wsabie.kernels.similarity import SHORTEST

    centre = far_centre(table) if similarity == "euclidean" else None
    if similarity == "cosine":
        table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), SHORTEST)
    return Against(table if centre is None else table - centre, similarity, bias, centre)


def _terms(model: MeaningRanker) -> Against:
    """The terms of a model, and which of them each label has."""
    if model.expand != "all":
        raise InputError('a model whose terms mean a random one of their labels cannot be exported; use expand="all"')
    known, n = model.terms_, len(model.vocabulary_)
    counts = np.bincount(known.label, minlength=n)
    places, most = np.cumsum(counts) - counts, max(1, int(counts.max()))
    within = np.arange(most) * (np.arange(most) < counts[:, None])
    terms = known.term[np.minimum(places[:, None] + within, len(known.term) - 1)]
    bias = None if counts.all() else np.where(counts > 0, 0, -np.inf).astype(np.float32)
    if most == 1:
        return _against(known.table[terms[:, 0]], "cosine", bias)
    return _against(known.table, "cosine", bias)._replace(terms=terms)


_KINDS: dict[Any, Callable[[Any], Portable]] = {
    Wsabie: _of_wsabie,
    Ensemble: _of_ensemble,
    Devise: _of_devise,
    Conse: _of_conse,
    Softmax: _of_softmax,
    LinearRanker: _of_linear,
    OneVsRest: _of_one_vs_rest,
}
