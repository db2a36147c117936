"""Open any model folder by the kind that its `config.json` names."""

from pathlib import Path
from typing import Any

from wsabie.models import annotator
from wsabie.models.kinds import KINDS, model_from
from wsabie.models.loading import load_one_of


def load(path: str | Path) -> Any:
    """The model in a folder: an estimator, or an `Annotator` (model and features) as `wsabie train` saves it.

    Raises
    ------
    ModelFolderError
        Missing, damaged, of another version, or of a kind that this version does not know.
    """
    return load_one_of(path, {**dict.fromkeys(KINDS, model_from), annotator.KIND: annotator.Annotator.from_parts})
