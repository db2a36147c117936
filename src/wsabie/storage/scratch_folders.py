"""Scratch folders beside a result: they hold unfinished work and are removed afterwards."""

import re
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import explain_read_errors

_DRAFT = re.compile(r"\..*\.tmp")


def refuse_unknown_files(folder: Path, ours: str) -> None:
    """Refuse a folder that holds anything but names that match the pattern `ours` and drafts of them.

    To be called before work in the folder begins: it will be emptied.

    Raises
    ------
    InputError
        There are other files, perhaps the user's data, or it cannot be seen what there is.
    """
    with explain_read_errors(folder):
        if not folder.exists():
            return
        if not folder.is_dir():
            raise InputError(f"{folder} is a file where unfinished work is kept; move it away")
        names = sorted(path.name for path in folder.iterdir())
    foreign_names = [name for name in names if not (re.fullmatch(ours, name) or _DRAFT.fullmatch(name))]
    if foreign_names:
        raise InputError(
            f"{folder} holds {foreign_names[0]!r}, which is not of this command's making and would be lost; give the "
            "result another name, or move that away"
        )
