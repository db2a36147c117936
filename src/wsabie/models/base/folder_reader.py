"""Load a model from a folder with the function of its kind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wsabie.core.errors import ModelFolderError, bracket_detail
from wsabie.storage.model_folder import ModelState, open_model_folder


def load_by_kind(
    path: str | Path, kinds: Mapping[str, Callable[[ModelState], Any]], made_by: str = "wsabie train --model"
) -> Any:
    """Return the model in a folder, restored by the function of its kind.

    Raises
    ------
    ModelFolderError
        Missing, damaged, of another version, or of another kind.
    """
    parts = open_model_folder(path)
    if parts.kind not in kinds:
        raise ModelFolderError(
            f"{path} holds {parts.kind!r} where {' or '.join(map(repr, kinds))} is needed; "
            f"give the folder that `{made_by}` wrote"
        )
    try:
        return kinds[parts.kind](parts)
    except MemoryError as error:
        raise ModelFolderError(
            f"{path} needs more memory than there is{bracket_detail(error)}; free some, or restore it from a copy if "
            "it is damaged"
        ) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelFolderError(f"{path} lacks a part ({error}); restore it from a copy or make it again") from error
