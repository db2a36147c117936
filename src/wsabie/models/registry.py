"""Open any model folder by the kind that its `config.json` names."""

from pathlib import Path
from typing import Any

from wsabie.models import annotator, space, space_annotator
from wsabie.models.indexed import find_index
from wsabie.models.kinds import KINDS, model_from
from wsabie.models.loading import load_one_of


def load(path: str | Path) -> Any:
    """The model in a folder: an estimator, or an `Annotator` (model and features) as `wsabie train` saves it, or a
    `Space`, alone or with its features. An index of its labels that lies there is used.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    ModelFolderError
        Missing, damaged, of another version, or of a kind that this version does not know.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from wsabie.models.wsabie import Wsabie
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]).save(folder)
    ...     load(folder).annotate(np.eye(3)[:1], k=1)[0][0][0]
    'red'
    """
    whole = {
        annotator.KIND: annotator.Annotator.from_parts,
        space.Space.kind: space.Space.from_parts,
        space_annotator.KIND: space_annotator.SpaceAnnotator.from_parts,
    }
    model = load_one_of(path, {**dict.fromkeys(KINDS, model_from), **whole})
    find_index(model, Path(path))
    return model
