"""Feature tables in memory once for all processes of a service.

The label table of a model is mapped from its folder. Its feature table is first copied into rows of whole cache lines
(`embedding.tables`). If several processes serve one model, the first writes that copy into a folder of the service, and
all processes map it.
"""

import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.embedding.joint_space import JointSpace

LARGE = 1 << 20
"""Smallest table, in bytes, that is worth a file."""

FOLDER = "WSABIE_TABLES"
"""The variable that names the folder of the service."""


def share_features(model: Any, checksum: str) -> None:
    """Map the features of the model with this checksum, if several processes serve it."""
    folder, space = os.environ.get(FOLDER), getattr(model, "space_", None)
    if folder is None or not isinstance(space, JointSpace) or space.features.nbytes < LARGE:
        return
    path = Path(folder) / checksum
    with suppress(OSError):  # no space: each process keeps its own table
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=folder) as draft:
                space.features.tofile(draft.name)
                with suppress(FileExistsError):  # another process was quicker
                    os.link(draft.name, path)
        # "c": nobody writes, and kernels for writable arrays are compiled already
        features = np.memmap(path, np.float32, "c", shape=space.features.shape).view(np.ndarray)
        model.space_ = replace(space, features=features)
