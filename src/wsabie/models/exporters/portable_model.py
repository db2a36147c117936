"""A model reduced to a few arrays and steps, for exports to other programs.

    x' = scaled row;   p = x' V + c;   [p = a mix of given vectors];   s = similarity(p, W) + b;   the k best

Linear models have no W: their p are the scores. `write_numpy_arrays` writes this as plain arrays with an example
program, `wsabie.models.exporters.onnx_model` as a graph.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.arrays import Array, Float32, Int64
from wsabie.core.errors import InputError
from wsabie.core.machine import collect_versions
from wsabie.embedding.joint_space import SimilarityName
from wsabie.models.annotators import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.baselines import NearestMean
from wsabie.models.conse import Conse
from wsabie.models.devise import Devise
from wsabie.models.ensemble import Ensemble
from wsabie.models.estimator_specs import find_name
from wsabie.models.exporters.export_formats import render_template
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.models.ridge import Ridge
from wsabie.models.softmax import Softmax
from wsabie.models.stacking.fusion import Fusion
from wsabie.models.word_vector_ranker import WordVectorRanker
from wsabie.search.search_arrays import find_far_centre
from wsabie.storage.atomic_files import create_folder


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
    unit_rows : bool
        Scaled rows are brought to unit length (sparse ones have it).
    log_softmax : bool
        The sum is then converted to logarithms of probabilities.
    top : int
        Above 0: ConSE's step, the vectors `targets` of the `top` best classes, averaged by their probabilities.
    targets : (n_classes, dim) float32 or None
    table : (n_rows, dim) float32 or None
        W that points are compared with, relative to the centre, and at unit length for the cosine; None: the sum is the
        scores.
    similarity : {"dot", "euclidean", "cosine"}
    bias : (n_labels,) float32 or None
        -inf for labels that are never predicted.
    centre : (dim,) float32 or None
        Subtracted from points before distances are computed, if the table lies so far from the origin that digits
        would be lost.
    terms : (n_labels, most) int64 or None
        Rows of the table that belong to a label, padded with the first; the best one counts. None: a row per label.
    """

    kind: str
    labels: list[str]
    n_features: int
    scaling: RowScaling
    features: Float32
    offset: Float32 | None = None
    unit_rows: bool = False
    log_softmax: bool = False
    top: int = 0
    targets: Float32 | None = None
    table: Float32 | None = None
    similarity: SimilarityName = "dot"
    bias: Float32 | None = None
    centre: Float32 | None = None
    terms: Int64 | None = None

    @property
    def is_sparse(self) -> bool:
        """True if rows are given as feature numbers and values."""
        return self.scaling.method in ("log", "tfidf")

    @property
    def has_hidden_labels(self) -> bool:
        """True if some labels are never predicted."""
        last = self.offset if self.table is None else self.bias
        return last is not None and not bool(np.isfinite(last).all())


def build_portable_model(model: LabelModel) -> PortableModel:
    """Reduce a fitted model to arrays.

    Raises
    ------
    InputError
        This kind of model cannot be reduced to them.

    Examples
    --------
    >>> small = build_portable_model(Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]))
    >>> small.labels, small.features.shape, small.table.shape, small.is_sparse
    (['red', 'green', 'blue'], (4, 4), (3, 4), False)
    """
    for kind, arrays in _KINDS.items():
        if type(model) is kind:
            model._check_fitted()
            return arrays(model)
    fact = f"a model of kind {getattr(model, 'kind', type(model).__name__)} does not come down to two tables"
    raise InputError(f"{fact}; export one of {', '.join(kind.kind for kind in _KINDS)}, or keep the model folder")


def build_portable_members(model: Fusion) -> list[tuple[PortableModel, float]]:
    """Reduce each member of a fusion to arrays; return them with their weights.

    Raises
    ------
    InputError
        A member cannot be reduced to them, or members take rows in different forms.
    """
    model._check_fitted()
    for member in model.members_:
        if type(member) not in _KINDS:
            fact = f"the member {find_name(member)} of this fusion does not come down to tables"
            raise InputError(f"{fact}; train a fusion without it, or keep the model folder")
    members = [build_portable_model(member) for member in model.members_]
    if len({member.is_sparse for member in members}) > 1:
        raise InputError("members of this fusion take rows of counts and rows as they are; give all the same scaling")
    return list(zip(members, model.weights_.tolist(), strict=True))


def collect_arrays(model: PortableModel) -> dict[str, Array]:
    """Return the arrays by the names that the templates know."""
    is_log_alone = model.is_sparse and (model.scaling.weight == 1).all()
    arrays = {
        "V": model.features,
        "offset": model.offset,
        "weight": None if is_log_alone else model.scaling.weight,
        "shift": model.scaling.shift,
        "targets": model.targets,
        "W": model.table,
        "bias": model.bias,
        "centre": model.centre,
        "terms": model.terms,
    }
    return {name: array for name, array in arrays.items() if array is not None and len(array)}


def _convert_wsabie(model: Wsabie) -> PortableModel:
    space = model.space_
    bias = space.bias.copy()
    bias[model.vocabulary_.retired_ids()] = -np.inf
    table = model.label_vectors.astype(np.float32, copy=False)
    arrays = _build_table(table, space.similarity, bias if bias.any() else None)
    return _build_model(model, space.features[:, : space.dim], **arrays)


def _convert_softmax(model: Softmax) -> PortableModel:
    n = len(model.vocabulary_)
    weights = np.zeros((n, model.weights_.shape[1]), np.float32)
    bias = np.full(n, -np.inf, np.float32)
    weights[model.trained_label_ids_], bias[model.trained_label_ids_] = model.weights_, model.bias_
    return _convert_weights(model, weights, bias, log_softmax=True)


def _convert_weights(model: Any, weights: Float32, bias: Float32, **steps: Any) -> PortableModel:
    offset = np.asarray(bias) if np.any(bias) else None
    return _build_model(model, np.ascontiguousarray(weights.T), offset=offset, **steps)


def _convert_nearest_mean(model: NearestMean) -> PortableModel:
    means = model.means_.toarray() if hasattr(model.means_, "tocsr") else model.means_.T
    return _build_model(model, np.ascontiguousarray(means), unit_rows=True)


def _convert_ridge(model: Ridge) -> PortableModel:
    sums = model.sums_.T.toarray() if hasattr(model.sums_, "tocsr") else model.sums_
    return _convert_weights(model, sums - model.corrections_ @ model.directions_.T, model.intercept_)


def _convert_conse(model: Conse) -> PortableModel:
    classifier, top = _convert_softmax(model.classifier_), min(model.top, len(model.targets_))
    labels = _build_model(model, classifier.features, model.classifier_.scaling_).labels
    arrays = _build_term_table(model) | {"targets": model.targets_}
    return replace(classifier, kind=model.kind, labels=labels, log_softmax=False, top=top, **arrays)


def _build_model(model: Any, features: Float32, scaling: RowScaling | None = None, **steps: Any) -> PortableModel:
    labels = list(model.vocabulary_)
    for label_id in model.vocabulary_.retired_ids():
        labels[label_id] = ""  # no row gets it
    return PortableModel(model.kind, labels, model.n_features_in_, scaling or model.scaling_, features, **steps)


def _build_table(table: Float32, similarity: SimilarityName, bias: Float32 | None) -> dict[str, Any]:
    """Return the fields of the table that points are compared with."""
    from wsabie.kernels.embedding.similarity import SHORTEST

    centre = find_far_centre(table) if similarity == "euclidean" else None
    if similarity == "cosine":
        table = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), SHORTEST)
    table = table if centre is None else table - centre
    return {"table": table, "similarity": similarity, "bias": bias, "centre": centre}


def _build_term_table(model: WordVectorRanker) -> dict[str, Any]:
    """Return the fields of the term vectors of a model, and the terms of each label."""
    if model.expand != "all":
        raise InputError('a model whose terms mean a random one of their labels cannot be exported; use expand="all"')
    term_table, n = model.terms_, len(model.vocabulary_)
    counts = np.bincount(term_table.label, minlength=n)
    starts, most = np.cumsum(counts) - counts, max(1, int(counts.max()))
    within = np.arange(most) * (np.arange(most) < counts[:, None])
    terms = term_table.term[np.minimum(starts[:, None] + within, len(term_table.term) - 1)]
    bias = None if counts.all() else np.where(counts > 0, 0, -np.inf).astype(np.float32)
    if most == 1:
        return _build_table(term_table.table[terms[:, 0]], "cosine", bias)
    return {**_build_table(term_table.table, "cosine", bias), "terms": terms}


_KINDS: dict[type[LabelModel], Callable[[Any], PortableModel]] = {
    Wsabie: _convert_wsabie,
    Ensemble: lambda model: replace(_convert_wsabie(model.joined_), kind=model.kind),
    Devise: lambda model: _build_model(model, model.space_.features[:, : model.space_.dim], **_build_term_table(model)),
    Conse: _convert_conse,
    Softmax: _convert_softmax,
    LinearRanker: lambda model: _convert_weights(model, model.coef_, model.space_.bias),
    OneVsRest: lambda model: _convert_weights(model, model.coef_, model.intercept_),
    NearestMean: _convert_nearest_mean,
    Ridge: _convert_ridge,
}


def write_numpy_arrays(annotator: Annotator, out: Path) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The model is of another kind, or the folder cannot be written.
    """
    model, feature_names = build_portable_model(annotator.model), annotator.feature_names
    arrays = collect_arrays(model)
    names = {"labels.txt": model.labels, **({} if feature_names is None else {"features.txt": feature_names})}
    files = [*(f"{name}.npy" for name in arrays), *names, "predict.py"]
    sizes = {"n_labels": sum(map(bool, model.labels)), "version": collect_versions()["wsabie"]}
    texts = {file: "".join(f"{' '.join(name.split())}\n" for name in listed) for file, listed in names.items()}
    texts["predict.py"] = render_template("predict.py", model=model, arrays=sorted(arrays))
    texts["README.md"] = render_template("arrays.md", model=model, files=files, **sizes)
    with create_folder(out) as draft:
        for name, array in arrays.items():
            content = BytesIO()  # np.save to a file would hide that a disk is full
            np.save(content, array, allow_pickle=False)
            (draft / f"{name}.npy").write_bytes(content.getbuffer())
        for file, text in texts.items():
            (draft / file).write_text(text, encoding="utf-8")
    return [out / file for file in [*files, "README.md"]]
