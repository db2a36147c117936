"""Open any model folder by the kind that its `config.json` names."""

from pathlib import Path
from typing import Any

from wsabie.models.annotators import annotator, space_annotator
from wsabie.models.base.folder_reader import load_by_kind
from wsabie.models.base.model_kinds import KINDS, restore_model
from wsabie.models.entity_space import space
from wsabie.models.index_files import find_index


def load(path: str | Path) -> Any:
    """Return the model in a folder: an estimator, an `Annotator`, a `Space` or a `SpaceAnnotator`.

    An index of its labels in the folder is used.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    ModelFolderError
        The folder is missing, damaged, of another version, or of an unknown kind.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from wsabie.models.wsabie.estimator import Wsabie
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]).save(folder)
    ...     load(folder).annotate(np.eye(3)[:1], k=1)[0][0][0]
    'red'
    """
    composite_loaders = {
        annotator.KIND: annotator.Annotator.from_parts,
        space.Space.kind: space.Space.from_parts,
        space_annotator.KIND: space_annotator.SpaceAnnotator.from_parts,
    }
    model = load_by_kind(path, {**dict.fromkeys(KINDS, restore_model), **composite_loaders})
    find_index(model, Path(path))
    return model
