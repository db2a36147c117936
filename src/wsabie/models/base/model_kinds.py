"""Table of all kinds of models that rank labels; their code is imported when a folder is opened."""

from importlib import import_module
from typing import Any

from wsabie.core.errors import ModelFolderError
from wsabie.models.base.label_model import LabelModel
from wsabie.storage.model_folder import ModelState

KINDS = {
    "wsabie": "wsabie.models.wsabie.estimator:Wsabie",
    "parts": "wsabie.models.object_parts.object_parts:ObjectParts",
    "linear": "wsabie.models.linear.linear_ranker:LinearRanker",
    "full-rank": "wsabie.models.linear.full_rank:FullRank",
    "ensemble": "wsabie.models.ensembles.ensemble:Ensemble",
    "popularity": "wsabie.models.popularity:Popularity",
    "nearest": "wsabie.models.neighbours.exact_neighbours:NearestNeighbours",
    "approximate-nearest": "wsabie.models.neighbours.approximate_neighbours:ApproximateNeighbours",
    "one-vs-rest": "wsabie.models.linear.one_vs_rest:OneVsRest",
    "softmax": "wsabie.models.linear.softmax:Softmax",
    "devise": "wsabie.models.word_vectors.devise:Devise",
    "conse": "wsabie.models.word_vectors.conse:Conse",
}
"""The class of each kind, as module:class."""


def find_model_class(kind: str) -> type[LabelModel]:
    """Return the class of a kind of model.

    Raises
    ------
    ModelFolderError
        The kind is unknown to this version.

    Examples
    --------
    >>> find_model_class("popularity").__name__
    'Popularity'
    """
    if kind not in KINDS:
        raise ModelFolderError(f"this version knows no model of kind {kind!r}; install the version that saved it")
    module, name = KINDS[kind].split(":")
    model_class: type[LabelModel] = getattr(import_module(module), name)
    return model_class


def restore_model(parts: ModelState) -> Any:
    """Restore a model of any kind from its parts."""
    return find_model_class(parts.kind).from_parts(parts)
