"""Holders of the served model: mapped into memory, and replaced when its folder holds another one."""

import os
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from wsabie.collection.db.database import begin_snapshot
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use
from wsabie.collection.search.query_parsing import LabelNames, read_names
from wsabie.core.errors import InputError
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.annotators import Annotator
from wsabie.models.index_files import FOLDER as INDEX_FOLDER
from wsabie.models.index_files import find_index
from wsabie.storage.model_folder import is_model_folder, read_content_checksum

MIN_SHARED_BYTES = 1 << 20
"""Smallest table, in bytes, that is worth a file."""

TABLES_VARIABLE = "WSABIE_TABLES"
"""The variable that names the folder of the service."""
_CHECK_INTERVAL = 1.0  # seconds


def share_features(model: Any, checksum: str) -> None:
    """Map the features of the model with this checksum, if several processes serve it."""
    folder, space = os.environ.get(TABLES_VARIABLE), getattr(model, "space_", None)
    if folder is None or not isinstance(space, JointSpace) or space.features.nbytes < MIN_SHARED_BYTES:
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


@dataclass(frozen=True)
class ModelVersion:
    """A loaded model; a request keeps the version that it began with.

    Attributes
    ----------
    annotator : Annotator
    id : str
        Identifies the model's content.
    names : list of str or None
        Current names of its labels in the collection, in order: merged labels have the same name, and deleted labels
        have none.
    loaded_model : LoadedModel or None
        The model with its evaluation on held-out items; None: it belongs to no collection.
    """

    annotator: Annotator
    id: str
    names: Sequence[str | None]
    loaded_model: LoadedModel | None = None

    @cached_property
    def n_redundant(self) -> int:
        """Number of labels that were deleted from the collection or merged into another."""
        return len(self.names) - len({*self.names} - {None})

    def find_model_labels(self, names: Iterable[str]) -> list[str]:
        """Translate names of the collection into labels of the model, whose own names are valid too.

        Raises
        ------
        UnknownLabelError
            A name is not a label of the model.
        """
        model_labels: dict[str, list[str]] = {}
        vocabulary = self.annotator.model.vocabulary_
        for model_label, name in zip(vocabulary, self.names, strict=True):
            if name is not None and name != model_label:
                model_labels.setdefault(name, []).append(model_label)
        model_names: list[str] = []
        for name in names:
            model_names += model_labels.get(name, [])
            model_names += [name] if name in vocabulary or name not in model_labels else []
        return model_names


class CollectionModelHolder:
    """Holder of the model that a collection has in use; the next request after a switch gets the new one."""

    trouble = None

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._version: tuple[LoadedModel, LabelNames, ModelVersion] | None = None

    def get_version(self) -> ModelVersion:
        """Return the model in use; raise InputError if there is none yet."""
        with begin_snapshot(self._collection.engine) as connection:
            loaded_model, labels, cached = load_model_in_use(self._collection), read_names(connection), self._version
            if cached is None or cached[0] is not loaded_model or cached[1] is not labels:
                names = [labels.labels.get(label) for label in loaded_model.read_current_labels(connection).tolist()]
                _prepare_model(loaded_model.model, read_content_checksum(loaded_model.path))
                version = ModelVersion(loaded_model.annotator, str(loaded_model.id), names, loaded_model)
                cached = self._version = loaded_model, labels, version
        return cached[2]


class FolderModelHolder:
    """Holder of the model in a folder; a new one that is saved there replaces it without losing a request.

    Parameters
    ----------
    path : Path
        Folder of a saved model.

    Raises
    ------
    WsabieError
        There is none, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._next_check = time.monotonic() + _CHECK_INTERVAL
        self._checksums = self._read_checksums()
        self._version = self._load()
        self.trouble: str | None = None

    def get_version(self) -> ModelVersion:
        """Return the model for a request."""
        if time.monotonic() > self._next_check and self._lock.acquire(blocking=False):
            try:
                self._reload_if_changed()
            finally:
                self._lock.release()
        return self._version

    def _reload_if_changed(self) -> None:
        """Load a changed model; if it is damaged, keep the old one and set `trouble`."""
        start, checksums, pause = time.monotonic(), self._read_checksums(), _CHECK_INTERVAL
        if checksums != self._checksums:
            try:
                self._version, self.trouble, self._checksums = self._load(), None, checksums
            except Exception as error:  # a model that is still being written must not end the service
                self.trouble = f"the model in {self.path} was replaced by one that cannot be used: {error}"
                pause = max(pause, 10 * (time.monotonic() - start))
        self._next_check = time.monotonic() + pause

    def _read_checksums(self) -> tuple[str, str]:
        """Return the checksums of the model and of its label index."""
        return read_content_checksum(self.path), read_content_checksum(self.path / INDEX_FOLDER)

    def _load(self) -> ModelVersion:
        refuse_non_model(self.path)
        annotator = Annotator.load(self.path)
        checksum = read_content_checksum(self.path)
        _prepare_model(annotator.model, checksum)
        find_index(annotator, self.path)  # of the current tables
        return ModelVersion(annotator, checksum[:16], list(annotator.model.vocabulary_))


ModelHolder: TypeAlias = CollectionModelHolder | FolderModelHolder
"""Provider of the model that answers a request."""


def refuse_non_model(path: Path) -> None:
    """Raise InputError if the folder holds no model."""
    if not is_model_folder(path):
        remedy = "give the folder of a collection, or one that `wsabie train --model` wrote"
        raise InputError(f"{path} is neither a collection nor a model; {remedy}")


def _prepare_model(model: Any, checksum: str) -> None:
    if hasattr(model, "threads"):
        model.threads = 1  # requests run in parallel already
    share_features(model, checksum)
