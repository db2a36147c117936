"""Table of the kinds of model folders; their code is imported when a folder is opened."""

from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wsabie.core.errors import ModelFolderError, bracket_detail
from wsabie.models.index_files import find_index
from wsabie.storage.model_folder import ModelState, SavedObject, open_model_folder

if TYPE_CHECKING:
    from wsabie.models.base.label_model import LabelModel

KINDS = {
    "wsabie": "wsabie.models.joint_embedding.estimator:Wsabie",
    "parts": "wsabie.models.object_parts.ranker:ObjectParts",
    "linear": "wsabie.models.linear_ranker:LinearRanker",
    "full-rank": "wsabie.models.full_rank:FullRank",
    "fusion": "wsabie.models.stacking.fusion:Fusion",
    "ensemble": "wsabie.models.ensemble:Ensemble",
    "popularity": "wsabie.models.baselines:Popularity",
    "nearest": "wsabie.models.nearest_neighbours:NearestNeighbours",
    "approximate-nearest": "wsabie.models.nearest_neighbours:ApproximateNeighbours",
    "nearest-mean": "wsabie.models.baselines:NearestMean",
    "ridge": "wsabie.models.ridge:Ridge",
    "kernel-ridge": "wsabie.models.ridge:KernelRidge",
    "one-vs-rest": "wsabie.models.one_vs_rest:OneVsRest",
    "softmax": "wsabie.models.softmax:Softmax",
    "devise": "wsabie.models.devise:Devise",
    "conse": "wsabie.models.conse:Conse",
}
"""The class of each kind of model that ranks labels for rows, as module:class."""

_OTHER_KINDS = {
    "annotator": "wsabie.models.annotators:Annotator",
    "space": "wsabie.models.entity_space.space:Space",
    "space-annotator": "wsabie.models.entity_space.space_annotator:SpaceAnnotator",
}


class SavedModel(SavedObject):
    """Base of models, whose folders name their kind."""

    kind: ClassVar[str]
    written_by: ClassVar[str] = "`train(model=FOLDER)`"
    """Call that writes such folders, for error messages."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        model: Self = load_by_kind(path, {cls.kind: cls.from_state}, cls.written_by)
        return model


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


def load_by_kind(
    path: str | Path, kinds: Mapping[str, Callable[[ModelState], Any]], written_by: str = SavedModel.written_by
) -> Any:
    """Return the model in a folder, restored by the function of its kind.

    Raises
    ------
    ModelFolderError
        Missing, damaged, of another version, or of another kind.
    """
    state = open_model_folder(path)
    if state.kind not in kinds:
        fact = f"{path} holds {state.kind!r} where {' or '.join(map(repr, kinds))} is needed"
        raise ModelFolderError(f"{fact}; give the folder that {written_by} wrote")
    try:
        return kinds[state.kind](state)
    except MemoryError as error:
        fact = f"{path} needs more memory than there is{bracket_detail(error)}"
        raise ModelFolderError(f"{fact}; free some, or restore it from a copy if it is damaged") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelFolderError(f"{path} lacks a part ({error}); restore it from a copy or make it again") from error


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
