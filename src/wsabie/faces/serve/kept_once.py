"""The tables of features that all processes of a service read are in memory once.

A model's labels are mapped from its folder as they lie there. Its features are copied into rows of whole cache lines
first (`space.tables`); where several processes serve one model, the first of them writes that copy into a folder of the
service, and all map it.
"""

import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.space.joint import JointSpace

LARGE = 1 << 20
"""Bytes from which a table is worth a file."""

FOLDER = "WSABIE_TABLES"
"""The variable that names the folder of the service."""


def share(model: Any, mark: str) -> None:
    """Map the features of a model whose content has this mark, if several processes serve it."""
    folder, space = os.environ.get(FOLDER), getattr(model, "space_", None)
    if folder is None or not isinstance(space, JointSpace) or space.features.nbytes < LARGE:
        return
    path = Path(folder) / mark
    with suppress(OSError):  # no room: each has its own
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=folder) as draft:
                space.features.tofile(draft.name)
                with suppress(FileExistsError):  # another process was quicker
                    os.link(draft.name, path)
        # "c": nobody writes, and kernels for what may be written are compiled already
        mapped = np.memmap(path, np.float32, "c", shape=space.features.shape).view(np.ndarray)
        model.space_ = replace(space, features=mapped)
