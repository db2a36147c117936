"""A model that is served: mapped into memory, and another one as soon as its folder holds another."""

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.models.annotator import Annotator
from wsabie.storage.folder import is_model_folder

_LOOK_EVERY = 1.0  # seconds


@dataclass(frozen=True)
class Version:
    """A model as it was loaded; a request keeps the one that it began with.

    Attributes
    ----------
    annotator : Annotator
    id : str
        Changes with the model's content.
    names : list of str
        Its labels, in order.
    """

    annotator: Annotator
    id: str
    names: list[str]


class ServedModel:
    """The model of a folder; a new one that is saved there is taken over without a request being lost.

    Parameters
    ----------
    path : Path
        As `wsabie train --model` wrote it.

    Raises
    ------
    WsabieError
        There is none, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._pointer = self._read_pointer()
        self._version = self._load()
        self.trouble: str | None = None

    def current(self) -> Version:
        """The model that a request is to be answered by."""
        if time.monotonic() - self._looked > _LOOK_EVERY and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._version

    def _look(self) -> None:
        """Take over another model; what is wrong with it is kept for `trouble`, and the old one goes on."""
        pointer = self._read_pointer()
        if pointer != self._pointer:
            try:
                self._version, self.trouble = self._load(), None
            except Exception as error:  # half a model must not end the service
                self.trouble = f"the model in {self.path} was replaced by one that cannot be used: {error}"
            self._pointer = pointer
        self._looked = time.monotonic()

    def _read_pointer(self) -> bytes:
        """The head of `config.json`, which holds the checksum of the rest; nothing while there is none."""
        try:
            with (self.path / "config.json").open("rb") as file:
                return file.read(80)
        except OSError:
            return b""

    def _load(self) -> Version:
        if not is_model_folder(self.path):
            raise InputError(f"there is no model at {self.path}; give the folder that `wsabie train --model` wrote")
        annotator = Annotator.load(self.path)
        if hasattr(annotator.model, "threads"):
            annotator.model.threads = 1  # requests are what runs side by side
        told: dict[str, Any] = json.loads((self.path / "config.json").read_bytes())
        return Version(annotator, str(told["sha256"])[:16], list(annotator.model.vocabulary_))
