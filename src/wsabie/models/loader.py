"""Table of the kinds of model folders; their code is imported when a folder is opened."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from wsabie.core.errors import ModelFolderError
from wsabie.models.estimator_specs import SYSTEMS
from wsabie.models.index_files import find_index
from wsabie.storage.model_folder import ModelState, load_by_kind

if TYPE_CHECKING:
    from wsabie.models.base.label_model import LabelModel

_PRESETS = ("wsabie-auc", "owpc-sgd", "linear-warp", "pamir", "vse-ens", "opt-auc", "auto", "one-vs-rest-pa",
            "one-vs-rest-hinge", "svm")  # fmt: skip
"""Systems that are saved as another kind."""
KINDS = {name: spec.maker for name, spec in SYSTEMS.items() if name not in _PRESETS} | {
    "linear": "wsabie.models.linear_ranker:LinearRanker",
    "full-rank": "wsabie.models.full_rank:FullRank",
    "ensemble": "wsabie.models.ensemble:Ensemble",
}
"""The class of each kind of model that ranks labels for rows, as module:class."""

_OTHER_KINDS = {
    "annotator": "wsabie.models.annotators:Annotator",
    "space": "wsabie.models.entity_space.space:Space",
    "space-annotator": "wsabie.models.entity_space.space_annotator:SpaceAnnotator",
}


def load(path: str | Path) -> Any:
    """Return the model in a folder: an estimator, an `Annotator`, a `Space` or a `SpaceAnnotator`.

    An index of its labels in the folder is used.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Wsabie, Annotator, Space, ...
        Of the class that saved the folder.

    Raises
    ------
    ModelFolderError
        The folder is missing, damaged, of another version, or of an unknown kind.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from wsabie import Wsabie
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]).save(folder)
    ...     load(folder).annotate(np.eye(3)[:1], k=1)[0][0][0]
    'red'
    """
    model = load_by_kind(path, dict.fromkeys((*KINDS, *_OTHER_KINDS), restore_model))
    find_index(model, Path(path))
    return model


def find_model_class(kind: str) -> "type[LabelModel]":
    """Return the class of a kind of model that ranks labels for rows.

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
    model_class: type[LabelModel] = resolve_name(KINDS[kind])
    return model_class


def restore_model(state: ModelState) -> Any:
    """Restore a model of any kind from its state."""
    if state.kind in _OTHER_KINDS:
        return resolve_name(_OTHER_KINDS[state.kind]).from_state(state)
    return find_model_class(state.kind).from_state(state)
