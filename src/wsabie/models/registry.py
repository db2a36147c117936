"""Open any model folder by the kind that its `config.json` names."""

from pathlib import Path
from typing import Any

from wsabie.base.errors import ModelFolderError
from wsabie.storage.folder import load_folder


def load(path: str | Path) -> Any:
    """The model in a folder: a `Wsabie` estimator, or an `Annotator` (model and features) as `wsabie train` saves it.

    Raises
    ------
    ModelFolderError
        Missing, damaged, of another version, or of a kind that this version does not know.
    """
    from wsabie.models import annotator, wsabie

    parts = load_folder(path)
    kinds: dict[str, Any] = {wsabie.KIND: wsabie.Wsabie, annotator.KIND: annotator.Annotator}
    if parts.kind not in kinds:
        raise ModelFolderError(f"{path} holds a {parts.kind!r}, which is not a model; known are {', '.join(kinds)}")
    try:
        return kinds[parts.kind].from_parts(parts)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFolderError(
            f"{path} lacks a part of the model ({error}); restore it from a copy or train again"
        ) from error
