"""A model that is served: mapped into memory, and another one as soon as its folder holds another."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.points import opened_model
from wsabie.catalogue.shelf import OpenModel
from wsabie.models.annotator import Annotator
from wsabie.storage.folder import content_mark, is_model_folder

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
    opened : OpenModel or None
        The same with what it was judged by; None: it is the model of no collection.
    """

    annotator: Annotator
    id: str
    names: list[str]
    opened: OpenModel | None = None


class Served(Protocol):
    """Where the model of a request comes from."""

    @property
    def trouble(self) -> str | None: ...

    def current(self) -> Version: ...


class CollectionModel:
    """The model that a collection has in use: whoever switches it, the next request is answered by the other one."""

    trouble = None

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._version: tuple[OpenModel, Version] | None = None

    def current(self) -> Version:
        """The model in use; InputError where there is none yet."""
        opened, there = opened_model(self._collection), self._version
        if there is None or there[0] is not opened:
            there = opened, _version(opened.annotator, str(opened.number), opened)
            self._version = there
        return there[1]


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
        self._next_look = time.monotonic() + _LOOK_EVERY
        self._mark = content_mark(self.path)
        self._version = self._load()
        self.trouble: str | None = None

    def current(self) -> Version:
        """The model that a request is to be answered by."""
        if time.monotonic() > self._next_look and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._version

    def _look(self) -> None:
        """Take over another model; what is wrong with it is kept for `trouble`, and the old one goes on."""
        begun, mark, wait = time.monotonic(), content_mark(self.path), _LOOK_EVERY
        if mark != self._mark:
            try:
                self._version, self.trouble, self._mark = self._load(), None, mark
            except Exception as error:  # half a model must not end the service; the other half may be on its way
                self.trouble = f"the model in {self.path} was replaced by one that cannot be used: {error}"
                wait = max(wait, 10 * (time.monotonic() - begun))
        self._next_look = time.monotonic() + wait

    def _load(self) -> Version:
        refuse_other(self.path)
        annotator = Annotator.load(self.path)
        return _version(annotator, content_mark(self.path)[:16])


def refuse_other(path: Path) -> None:
    """InputError where there is no model."""
    if not is_model_folder(path):
        raise InputError(
            f"{path} is neither a collection nor a model; give the folder of a collection, or one that "
            "`wsabie train --model` wrote"
        )


def _version(annotator: Annotator, number: str, opened: OpenModel | None = None) -> Version:
    if hasattr(annotator.model, "threads"):
        annotator.model.threads = 1  # requests are what runs side by side
    return Version(annotator, number, list(annotator.model.vocabulary_), opened)
