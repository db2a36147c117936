"""Every kind of model that ranks labels, by the name that a folder gives it; its code is imported when one opens."""

from importlib import import_module
from typing import Any

from wsabie.base.errors import ModelFolderError
from wsabie.models.base import LabelModel
from wsabie.storage.folder import Parts

KINDS = {
    "wsabie": "wsabie.models.wsabie:Wsabie",
    "parts": "wsabie.models.parts:Parts",
    "linear": "wsabie.models.linear:LinearRanker",
    "full-rank": "wsabie.models.full_rank:FullRank",
    "ensemble": "wsabie.models.ensemble:Ensemble",
    "popularity": "wsabie.models.popularity:Popularity",
    "nearest": "wsabie.models.nearest:NearestNeighbours",
    "approximate-nearest": "wsabie.models.approximate:ApproximateNeighbours",
    "one-vs-rest": "wsabie.models.one_vs_rest:OneVsRest",
    "softmax": "wsabie.models.softmax:Softmax",
    "devise": "wsabie.models.devise:Devise",
    "conse": "wsabie.models.conse:Conse",
}
"""Kind to module:class."""


def model_class(kind: str) -> type[LabelModel]:
    """The class of a kind.

    Raises
    ------
    ModelFolderError
        This version knows no such kind.

    Examples
    --------
    >>> model_class("popularity").__name__
    'Popularity'
    """
    if kind not in KINDS:
        raise ModelFolderError(f"this version knows no model of kind {kind!r}; install the version that saved it")
    module, name = KINDS[kind].split(":")
    found: type[LabelModel] = getattr(import_module(module), name)
    return found


def model_from(parts: Parts) -> Any:
    """The model that these parts describe, of whatever kind."""
    return model_class(parts.kind).from_parts(parts)
