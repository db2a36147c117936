"""A model that is served: mapped into memory, and another one as soon as its folder holds another."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import one_state
from wsabie.catalogue.points import opened_model
from wsabie.catalogue.shelf import OpenModel
from wsabie.catalogue.understanding import names_of
from wsabie.faces.serve.kept_once import share
from wsabie.models.annotator import Annotator
from wsabie.models.indexed import FOLDER as INDEX
from wsabie.models.indexed import find_index
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
    names : list of str or None
        Its labels, in order, as the collection calls them now: those that were merged have the same name, and those
        that were deleted have none.
    opened : OpenModel or None
        The same with what it was judged by; None: it is the model of no collection.
    """

    annotator: Annotator
    id: str
    names: Sequence[str | None]
    opened: OpenModel | None = None

    @cached_property
    def spare(self) -> int:
        """Labels too many, because others have their name or they have none."""
        return len(self.names) - len({*self.names} - {None})

    def own_names(self, names: Iterable[str]) -> list[str]:
        """What the model calls labels of these names; its own names are known too.

        Raises
        ------
        UnknownLabelError
            One is no label of the model.
        """
        known: dict[str, list[str]] = {}
        for own, name in zip(self.annotator.model.vocabulary_, self.names, strict=True):
            if name is not None and name != own:
                known.setdefault(name, []).append(own)
        vocabulary = self.annotator.model.vocabulary_
        found = [[*known.get(name, ()), *([name] if name in vocabulary or name not in known else [])] for name in names]
        return [one for some in found for one in some]


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
        self._version: tuple[OpenModel, Any, Version] | None = None

    def current(self) -> Version:
        """The model in use; InputError where there is none yet."""
        with one_state(self._collection.engine) as connection:
            opened, labels, there = opened_model(self._collection), names_of(connection), self._version
            if there is None or there[0] is not opened or there[1] is not labels:
                numbers = opened.labels_now(connection).tolist()
                names = [labels.labels.get(number) for number in numbers]
                there = (
                    opened,
                    labels,
                    _version(opened.annotator, content_mark(opened.path), str(opened.number), names, opened),
                )
                self._version = there
        return there[2]


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
        self._marks = self._look_at()
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
        begun, marks, wait = time.monotonic(), self._look_at(), _LOOK_EVERY
        if marks != self._marks:
            try:
                self._version, self.trouble, self._marks = self._load(), None, marks
            except Exception as error:  # half a model must not end the service; the other half may be on its way
                self.trouble = f"the model in {self.path} was replaced by one that cannot be used: {error}"
                wait = max(wait, 10 * (time.monotonic() - begun))
        self._next_look = time.monotonic() + wait

    def _look_at(self) -> tuple[str, str]:
        """By which the model and the index of its labels are known from others."""
        return content_mark(self.path), content_mark(self.path / INDEX)

    def _load(self) -> Version:
        refuse_other(self.path)
        annotator = Annotator.load(self.path)
        mark = content_mark(self.path)
        version = _version(annotator, mark, mark[:16], list(annotator.model.vocabulary_))
        find_index(annotator, self.path)  # of the tables as they lie now
        return version


def refuse_other(path: Path) -> None:
    """InputError where there is no model."""
    if not is_model_folder(path):
        raise InputError(
            f"{path} is neither a collection nor a model; give the folder of a collection, or one that "
            "`wsabie train --model` wrote"
        )


def _version(
    annotator: Annotator, mark: str, number: str, names: Sequence[str | None], opened: OpenModel | None = None
) -> Version:
    if hasattr(annotator.model, "threads"):
        annotator.model.threads = 1  # requests are what runs side by side
    share(annotator.model, mark)
    return Version(annotator, number, names, opened)
