"""A model out of the parts that a folder holds."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wsabie.base.errors import ModelFolderError, bracket_detail
from wsabie.storage.folder import Parts, load_folder


def load_one_of(
    path: str | Path, kinds: Mapping[str, Callable[[Parts], Any]], made_by: str = "wsabie train --model"
) -> Any:
    """The model in a folder, made of its parts by the function of its kind.

    Raises
    ------
    ModelFolderError
        Missing, damaged, of another version, or of another kind.
    """
    parts = load_folder(path)
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
